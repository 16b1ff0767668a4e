"""A user's own loss and penalty, plain and compiled: the examples of the documentation, run."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import unpooled as up


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
