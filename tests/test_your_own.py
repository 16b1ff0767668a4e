"""A user's own loss and penalty, plain and compiled: the examples of the documentation, run."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import unpooled as up
from tests.own_members import NegativeBinomial, SparseGroupLasso
from tests.remote.desks import apart
from unpooled.engines.remote import specs
from unpooled.engines.remote.specs import SpecError
from unpooled.estimators.base import WithAlpha
from unpooled.estimators.linear import FederatedLinearRegressor


class PlainLogCosh:
    def value(self, w, X, y):
        return np.mean(np.log(np.cosh(X @ w - y)))

    def gradient(self, w, X, y):
        return X.T @ np.tanh(X @ w - y) / len(y)


class WeightedLogCosh:
    def value(self, w, X, y, sample_weight=None):
        return np.average(np.log(np.cosh(X @ w - y)), weights=sample_weight)

    def gradient(self, w, X, y, sample_weight=None):
        s = np.ones(len(y)) if sample_weight is None else sample_weight
        return X.T @ (s * np.tanh(X @ w - y)) / len(y)


class LogCoshRecord(NamedTuple):
    scale: float

    @up.kernel
    def value(self, z, y):
        return self.scale * np.log(np.cosh(z[0] - y))

    @up.kernel
    def residual(self, z, y):
        z[0] = self.scale * np.tanh(z[0] - y)


@dataclass(frozen=True)
class LogCosh(up.LinearLoss):
    scale: float = 1.0

    def record(self):
        return LogCoshRecord(self.scale)

    def curvature(self, y):
        return np.full(len(y), self.scale)


@dataclass(frozen=True)
class PlainL1(up.Penalty):
    lam: float

    def norm(self, w):
        return float(np.abs(w).sum())

    def prox(self, v, step):
        return np.sign(v) * np.maximum(np.abs(v) - step * self.lam, 0.0)


@pytest.fixture(scope="module")
def data():
    return up.datasets.sparse_regression(seed=4, n_clients=5, n_rows=25, n_features=10, sparsity=3)


ALGORITHMS = [
    up.FastFedDA(mu=0.1, gamma=30.0, local_steps=3),
    up.FedMiD(step=0.02, local_steps=3),
    up.Scaffold(step=0.02, local_steps=3),
]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: type(algorithm).__name__)
@pytest.mark.parametrize("intercept", [False, True])
def test_plain_and_compiled_give_the_same(data, algorithm, intercept):
    """Loss and penalty in plain NumPy, either or both, against the compiled pair on the same batches."""
    runs = [
        up.simulate(
            algorithm, up.Problem(loss, penalty, intercept=intercept), data,
            rounds=15, cohort=3, batch_size=6, seed=2,
        )
        for loss in (LogCosh(), PlainLogCosh())
        for penalty in (up.L1(0.05), PlainL1(0.05))
    ]  # fmt: skip
    for run in runs[1:]:
        # a plain penalty has no subgradient of its own: its envelope's is good to 1e-11 a step
        np.testing.assert_allclose(run.w, runs[0].w, rtol=0, atol=1e-9)
        np.testing.assert_allclose(run.history["objective"], runs[0].history["objective"], rtol=1e-9)
        if intercept:
            assert run.intercept == pytest.approx(runs[0].intercept, abs=1e-9)


def test_a_plain_loss_on_sparse_rows_and_matrices(data):
    import scipy.sparse

    ids = np.repeat(data.ids, data.sizes)
    csr = up.FederatedData.from_arrays(scipy.sparse.csr_array(data.X), data.y, ids)
    for intercept in (False, True):
        problem = up.Problem(PlainLogCosh(), up.L1(0.05), intercept=intercept)
        a, b = (up.simulate(ALGORITHMS[0], problem, d, rounds=5, batch_size=6) for d in (data, csr))
        np.testing.assert_allclose(a.w, b.w, rtol=0, atol=1e-13)


def test_weights_need_a_place(data):
    ids = np.repeat(data.ids, data.sizes)
    s = np.random.default_rng(0).uniform(0.5, 2.0, data.n_rows)
    weighted = up.FederatedData.from_arrays(data.X, data.y, ids, sample_weight=s)
    with pytest.raises(TypeError, match=r"PlainLogCosh.value takes only \(w, X, y\)"):
        up.simulate(ALGORITHMS[0], up.Problem(PlainLogCosh(), up.L1(0.05)), weighted, rounds=2)
    a, b = (
        up.simulate(ALGORITHMS[0], up.Problem(loss, up.L1(0.05)), weighted, rounds=9, batch_size=6)
        for loss in (LogCosh(), WeightedLogCosh())
    )
    np.testing.assert_allclose(a.w, b.w, rtol=0, atol=1e-12)


def test_what_a_plain_part_cannot_do_is_said(data):
    with pytest.raises(ValueError, match=r"gamma \(or step\) has no default for the loss PlainLogCosh"):
        up.simulate(up.FastFedDA(mu=0.1), up.Problem(PlainLogCosh(), up.L1(0.05)), data, rounds=2)

    class WrongShape(PlainLogCosh):
        def gradient(self, w, X, y):
            return X @ w

    with pytest.raises(
        ValueError, match=r"WrongShape.gradient returned shape \(25,\) for w of shape \(10,\)"
    ):
        up.simulate(ALGORITHMS[0], up.Problem(WrongShape(), up.L1(0.05)), data, rounds=2)

    class NoBall:
        lam = 0.1

        def value(self, w):
            return 0.1 * float(np.abs(w).sum())

        def prox(self, v, step):
            return v

    with pytest.raises(
        TypeError, match=r"NoBall has no constrained_prox, which a finite radius or ball needs"
    ):
        up.simulate(ALGORITHMS[0], up.Problem(LogCosh(), NoBall(), ball=1.0), data, rounds=2)


# --- a loss and a penalty that offer everything, on every road

R, GROUPS = 3.0, (0, 0, 0, 1, 1, 1, 2, 2)


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(3)
    X, ids = 0.5 * rng.standard_normal((400, 8)), np.arange(400) % 4
    mean = np.exp(0.4 + X[:, 0] - 0.8 * X[:, 3])
    return up.FederatedData.from_arrays(X, rng.negative_binomial(R, R / (R + mean)).astype(float), ids)


def by_cvxpy(data, penalty=None, intercept=True):
    """min mean ℓ + h by an interior-point method."""
    import cvxpy as cp

    w, b = cp.Variable(data.n_features), cp.Variable()
    z = data.X @ w + (b if intercept else 0.0)
    smooth = (data.y + R) @ (cp.logistic(z - np.log(R)) + np.log(R)) / data.n_rows - data.y @ z / data.n_rows
    problem = cp.Problem(cp.Minimize(smooth + (0.0 if penalty is None else penalty(w))))
    return problem.solve(solver=cp.CLARABEL), w.value, b.value


def sparse_group(w):
    import cvxpy as cp

    of = np.array(GROUPS)
    norms = [np.sqrt(np.sum(of == g)) * cp.norm2(w[np.flatnonzero(of == g)]) for g in range(3)]
    return 0.03 * (0.5 * cp.norm1(w) + 0.5 * sum(norms))


OWN = up.Problem(NegativeBinomial(R), SparseGroupLasso(0.03, GROUPS), intercept=True)


def test_own_members_are_what_they_say():
    """The derivatives by differences, the conjugate by Fenchel's equality, the dual norm by its supremum."""
    rng = np.random.default_rng(0)
    loss, Z, y = NegativeBinomial(R), rng.standard_normal((50, 1)), rng.poisson(2.0, 50).astype(float)
    U, h = loss.residuals(Z, y), 1e-5
    np.testing.assert_allclose((loss.values(Z + h, y) - loss.values(Z - h, y)) / (2 * h), U[:, 0], atol=1e-8)
    slope = (loss.residuals(Z + h, y) - loss.residuals(Z - h, y)) / (2 * h)
    np.testing.assert_allclose(slope, loss.second_derivative(Z, y), atol=1e-8)
    np.testing.assert_allclose(loss.conjugate(U, y), U[:, 0] * Z[:, 0] - loss.values(Z, y), atol=1e-12)
    penalty, u = SparseGroupLasso(1.0, GROUPS), rng.standard_normal(8)
    inside, outside = (penalty.prox(factor * u / penalty.dual_norm(u), 1.0) for factor in (0.9999, 1.0001))
    assert not inside.any()
    assert outside.any()


@pytest.mark.parametrize("solver", ["auto", "fista"])
def test_own_members_are_solved_with_a_certificate(counts, solver):
    truth, w, b = by_cvxpy(counts, sparse_group)
    fit = up.solve(OWN, counts, solver=solver, tol=1e-6)
    assert fit.certificate.objective == pytest.approx(truth, abs=1e-7)
    np.testing.assert_allclose(fit.w, w, atol=2e-3)
    assert fit.intercept == pytest.approx(b, abs=2e-3)
    no_intercept = up.solve(up.Problem(OWN.loss, OWN.penalty), counts)
    assert no_intercept.certificate.kind == "duality gap"
    assert no_intercept.certificate.gap <= 1e-7


def test_an_own_loss_gets_prox_newton_and_a_duality_gap(counts):
    import cvxpy as cp

    truth, w, b = by_cvxpy(counts, lambda w: 0.02 * cp.norm1(w))
    fit = up.solve(up.Problem(NegativeBinomial(R), up.L1(0.02), intercept=True), counts)
    assert fit.solver == "prox-Newton"
    assert fit.certificate.kind == "duality gap"
    assert fit.rounds <= 10
    assert fit.certificate.objective == pytest.approx(truth, abs=1e-7)
    np.testing.assert_allclose(fit.w, w, atol=1e-3)
    assert fit.intercept == pytest.approx(b, abs=1e-3)


def test_an_own_loss_has_site_intercepts(counts):
    problem = up.Problem(NegativeBinomial(R), up.L1(0.02), intercept="sites")
    fit = up.solve(problem, counts)
    own = up.preprocessing.site_intercepts(problem, counts, fit.w).values
    gradient, active = problem.gradient(fit.w, counts, own), fit.w != 0.0
    np.testing.assert_allclose(gradient[active], -0.02 * np.sign(fit.w[active]), atol=1e-6)
    assert (np.abs(gradient[~active]) <= 0.02).all()
    assert fit.certificate.kind == "duality gap"


def test_a_path_a_criterion_and_cross_validation_take_own_members(counts):
    path = up.path(OWN, counts, n_lambdas=8)
    assert np.abs(path.coefs[0]).max() < 1e-6
    assert path.n_nonzero[-1] == 8
    assert np.argmin(up.information(path, "bic")) == up.select(path)
    chosen = up.cross_validate(OWN, counts, folds=4, lambdas=path.lambdas, seed=1)
    assert 0 < np.argmin(chosen.mean) < 7
    assert set(np.flatnonzero(path.coefs[chosen.index])) >= {0, 3}


def test_intervals_of_an_own_loss(counts):
    """Against maximum likelihood with the inverse information, both from the literal formulas."""
    problem = up.Problem(NegativeBinomial(R), up.L1(0.001), intercept=True)
    found = up.inference.debiased_lasso(problem, counts, lam_node=0.0, base="support")
    _, w, b = by_cvxpy(counts)
    odds = np.exp(counts.X @ w + b) / R
    A = np.column_stack([counts.X, np.ones(400)])
    information = A.T @ ((counts.y + R) * odds / (1.0 + odds) ** 2 * A.T).T
    np.testing.assert_allclose(found.estimate, w, atol=1e-5)
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    np.testing.assert_allclose(found.standard_error, errors[:8], rtol=1e-4)


def test_an_estimator_of_own_members(counts):
    @dataclass(eq=False, repr=False)
    class CountRegressor(WithAlpha, FederatedLinearRegressor):
        def _loss(self, data):
            return NegativeBinomial(R)

        def _penalty(self, lam):
            return SparseGroupLasso(lam, GROUPS)

    model = CountRegressor(alpha=0.03).fit(counts)
    np.testing.assert_array_equal(model.coef_, up.solve(OWN, counts).w)


def test_own_members_run_everywhere_with_the_same_bits(counts):
    """In process, and at sites that allow them by name."""
    algorithm = up.FedMiD(step=0.05, local_steps=3)
    here = up.simulate(algorithm, OWN, counts, rounds=6, batch_size=10, seed=2)
    assert here.status == "completed"
    remote = apart(counts)

    class Unlisted(NegativeBinomial):
        pass

    with pytest.raises(SpecError, match="Unlisted is not one of the library's own classes"):
        up.solve(up.Problem(Unlisted(R), OWN.penalty), remote)
    specs.allow(NegativeBinomial, SparseGroupLasso)
    there = up.simulate(algorithm, OWN, remote, rounds=6, batch_size=10, seed=2)
    exact = up.solve(OWN, remote)
    np.testing.assert_array_equal(there.w, here.w)
    np.testing.assert_array_equal(exact.w, up.solve(OWN, counts).w)


def test_only_members_can_be_allowed():
    with pytest.raises(TypeError, match="only dataclasses that are a loss, penalty, algorithm or solver"):
        specs.allow(dict)

    @dataclass(frozen=True)
    class Squared(up.LinearLoss):
        def record(self):
            return None

        def curvature(self, y):
            return y

    with pytest.raises(ValueError, match="another class called 'Squared' is allowed already"):
        specs.allow(Squared)
    assert specs.KNOWN["Squared"] is up.Squared
