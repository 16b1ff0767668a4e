"""An intercept for every site, against pooled rows with a dummy for every site."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, PoissonRegressor

import unpooled as up
from tests.exact.federations import LOSSES, rows
from unpooled.preprocessing import prepare, site_intercepts

P, SITES = 6, 5


def drawn(kind, n=400, seed=0, spread=1.0):
    """Pooled rows whose sites differ in their intercepts, and the sites' names."""
    X, y, clients = rows(kind, n=n, p=P, sites=SITES, seed=seed)
    if kind in ("squared", "huber"):
        y = y + spread * np.arange(SITES)[clients]
    return X, y, np.array(["e", "b", "a", "d", "c"])[clients]


def dummies(clients):
    return (clients[:, None] == np.array(list("abcde"))).astype(float)


def sites(kind, penalty=None):
    return up.Problem(LOSSES[kind], penalty or up.Zero(), "sites")


def test_least_squares_is_scikit_learns_with_dummies():
    X, y, clients = drawn("squared")
    data = up.FederatedData.from_arrays(X, y, clients)
    fit = up.solve(sites("squared"), data, tol=1e-12)
    truth = LinearRegression(fit_intercept=False).fit(np.hstack([X, dummies(clients)]), y)
    np.testing.assert_allclose(fit.w, truth.coef_[:P], atol=1e-10)
    found = site_intercepts(fit.problem, data, fit.w)
    np.testing.assert_allclose(found.values, truth.coef_[P:], atol=1e-10)
    assert found.ids == ("a", "b", "c", "d", "e")
    assert fit.rounds == found.ledger.rounds == 1
    assert found.ledger.kinds == ("intercept",)


def test_the_lasso_is_scikit_learns_within_sites():
    X, y, clients = drawn("squared")
    fit = up.solve(sites("squared", up.L1(0.1)), up.FederatedData.from_arrays(X, y, clients), tol=1e-12)
    D = dummies(clients)
    within = np.column_stack([X, y]) - D @ np.linalg.lstsq(D, np.column_stack([X, y]), rcond=None)[0]
    lasso = Lasso(0.1, fit_intercept=False, tol=1e-13, max_iter=100_000).fit(within[:, :P], within[:, P])
    np.testing.assert_allclose(fit.w, lasso.coef_, atol=1e-8)
    assert fit.certificate.kind == "duality gap"
    assert fit.certificate.relative < 1e-12


@pytest.mark.parametrize("kind", ["logistic", "poisson"])
def test_likelihoods_are_scikit_learns_with_dummies(kind):
    X, y, clients = drawn(kind)
    data = up.FederatedData.from_arrays(X, y, clients)
    A = np.hstack([X, dummies(clients)])
    if kind == "logistic":
        truth = (
            LogisticRegression(
                C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1000
            )
            .fit(A, y)
            .coef_[0]
        )
    else:
        truth = (
            PoissonRegressor(alpha=0, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1000)
            .fit(A, y)
            .coef_
        )
    fit = up.solve(sites(kind), data, tol=1e-11)
    np.testing.assert_allclose(fit.w, truth[:P], atol=1e-8)
    np.testing.assert_allclose(site_intercepts(fit.problem, data, fit.w).values, truth[P:], atol=1e-8)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_pooled_optimum_with_unpenalised_dummies(kind, weighted):
    """The dummies' problem solved by another way (coefficients of weight zero), and its own conditions."""
    X, y, clients = drawn(kind)
    s = np.random.default_rng(1).uniform(0.2, 2, len(y)) if weighted else None
    data = up.FederatedData.from_arrays(X, y, clients, s)
    one = up.FederatedData.from_arrays(np.hstack([X, dummies(clients)]), y, np.zeros(len(y), int), s)
    u = np.append(np.ones(P), np.zeros(SITES))
    truth = up.solve(up.Problem(LOSSES[kind], up.L1(0.03, u)), one, tol=1e-11)
    for solver in ("auto", "prox_newton", "anderson", "fista"):
        fit = up.solve(
            sites(kind, up.L1(0.03)), data, tol=1e-11 if solver == "auto" else 1e-10, solver=solver
        )
        np.testing.assert_allclose(fit.w, truth.w[:P], atol=1e-8 if solver == "auto" else 1e-5)
        assert fit.certificate.kind == "duality gap"
        assert fit.certificate.objective == pytest.approx(truth.certificate.objective, abs=1e-9)
        assert fit.intercept is None
    b = site_intercepts(fit.problem, data, truth.w[:P]).values
    expected = truth.w[P:] - (truth.w[P:].mean(axis=1, keepdims=True) if kind == "softmax" else 0.0)
    np.testing.assert_allclose(b, expected, atol=1e-8)
    at = fit.problem.objective(truth.w[:P], data, b)
    assert at == pytest.approx(truth.certificate.objective, abs=1e-10)
    in_w = fit.problem.gradient(truth.w[:P], data, b)
    assert np.abs(in_w).max() <= 0.03 + 1e-9


@pytest.mark.parametrize("kind", LOSSES)
def test_the_gap_is_never_too_small(kind):
    from tests.exact.test_certificate import certificates

    X, y, clients = drawn(kind, n=150)
    data, task = up.FederatedData.from_arrays(X, y, clients), sites(kind, up.L1(0.04))
    fit = up.solve(task, data, tol=1e-10)
    best = fit.certificate.objective
    layout, rng = task.bind(data).layout, np.random.default_rng(0)
    points = [layout.pack(fit.w) + size * rng.normal(size=layout.size) for size in (0, 1e-4, 0.1, 1) * 3]
    for w, certificate in zip(points, certificates(task, data, points), strict=True):
        coef = layout.unpack(w)[0]
        value = task.objective(coef, data, site_intercepts(task, data, coef).values)
        assert certificate.objective == pytest.approx(value, rel=1e-9)
        assert certificate.gap >= value - best - 1e-11


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_lambda_max_and_paths(kind):
    X, y, clients = drawn(kind)
    data = up.FederatedData.from_arrays(X, y, clients)
    D = dummies(clients)
    residual = y - D @ np.linalg.lstsq(D, y, rcond=None)[0]  # with a canonical link: t less its site's mean
    task = sites(kind, up.L1(0.1))
    assert up.lambda_max(task, data) == pytest.approx(np.abs(X.T @ residual).max() / len(y), rel=1e-9)
    path = up.path(task, data, n_lambdas=4, ratio=0.05, tol=1e-9)
    fit = up.solve(task.with_lam(path.lambdas[3]), data, tol=1e-11)
    np.testing.assert_allclose(path.coefs[3], fit.w, atol=1e-5)


@pytest.mark.parametrize("kind", ["squared", "logistic", "softmax"])
def test_cross_validation_takes_the_intercepts_of_the_rows_kept(kind):
    X, y, clients = drawn(kind)
    data = up.FederatedData.from_arrays(X, y, clients)
    of = np.arange(len(y)) % 3
    lambdas = [0.2, 0.05, 0.01]
    found = up.cross_validate(sites(kind, up.L1(0.1)), data, folds=of, lambdas=lambdas, tol=1e-10)
    names = np.repeat(data.ids, data.sizes)
    for f, i in [(0, 0), (1, 1), (2, 2)]:
        kept = up.FederatedData.from_arrays(data.X[of != f], data.y[of != f], names[of != f])
        left = up.FederatedData.from_arrays(data.X[of == f], data.y[of == f], names[of == f])
        task = sites(kind, up.L1(lambdas[i]))
        fit = up.solve(task, kept, tol=1e-11)
        b = site_intercepts(task, kept, fit.w).values
        assert found.losses[i, f] == pytest.approx(task.smooth(fit.w, left, b), rel=1e-6)
    np.testing.assert_allclose(found.path.coefs[1], up.solve(sites(kind, up.L1(0.05)), data).w, atol=1e-4)
    assert found.rounds <= (2 if kind == "squared" else 40)


def test_raw_units_and_predictions():
    X, y, clients = drawn("poisson")
    X = X * np.array([1, 100, 0.01, 1, 1, 1]) + 3
    data = up.FederatedData.from_arrays(X, y, clients)
    prepared = prepare(data, site_intercepts=True)
    task = prepared.problem(up.Poisson(), up.L1(0.02))
    assert task.intercept == "sites"
    fit = up.solve(task, prepared.data, tol=1e-10)
    coef, _ = prepared.back(fit.w)
    found = prepared.site_intercepts(fit.w, task)
    raw = X @ coef + found.of_rows(clients)
    own = site_intercepts(task, prepared.data, fit.w)
    np.testing.assert_allclose(raw, prepared.apply(X) @ fit.w + own.of_rows(clients), atol=1e-9)
    for site in "abcde":  # the likelihood's condition: every site's total is fitted
        assert np.exp(raw)[clients == site].sum() == pytest.approx(y[clients == site].sum(), rel=1e-9)
    assert found.unknown == pytest.approx(data.weights @ found.values)
    np.testing.assert_array_equal(found.of_rows(["b", "zz"]), [found.values[1], found.unknown])
    assert found.of("zz") == found.unknown
    with pytest.raises(ValueError, match="site 'zz' took no part in the fit"):
        found.of("zz", unknown="refuse")
    with pytest.raises(ValueError, match="unknown must be 'mean' or 'refuse'"):
        found.of("a", unknown="zero")


def test_softmax_in_raw_units():
    X, y, clients = drawn("softmax")
    data = up.FederatedData.from_arrays(X + 5, y, clients)
    prepared = prepare(data, site_intercepts=True)
    task = prepared.problem(up.Softmax(n_classes=3), up.L1(0.02))
    fit = up.solve(task, prepared.data)
    found = prepared.site_intercepts(fit.w, task)
    assert found.values.shape == (5, 3)
    raw = (X + 5) @ prepared.back(fit.w)[0] + found.of_rows(clients)
    expected = prepared.apply(X + 5) @ fit.w + site_intercepts(task, prepared.data, fit.w).of_rows(clients)
    np.testing.assert_allclose(raw, expected, atol=1e-9)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_far_means_and_sparse_rows(store):
    X, y, clients = drawn("logistic")
    near = up.solve(sites("logistic", up.L1(0.02)), up.FederatedData.from_arrays(X, y, clients), tol=1e-11)
    data = up.FederatedData.from_arrays(store(X + 100.0), y, clients)
    far = up.solve(sites("logistic", up.L1(0.02)), data, tol=1e-9)
    np.testing.assert_allclose(far.w, near.w, atol=1e-6)


def test_a_site_with_one_label_says_nothing():
    """Its intercept is infinite and its rows fit whatever w is: the optimum is that of the others."""
    X, y, clients = drawn("logistic")
    y[clients == "c"] = 1.0
    data = up.FederatedData.from_arrays(X, y, clients)
    fit = up.solve(sites("logistic", up.L1(0.02)), data, tol=1e-10)
    others = data.subset(list("abde"))
    share = others.n_rows / data.n_rows  # of the objective
    truth = up.solve(sites("logistic", up.L1(0.02 / share)), others, tol=1e-10)
    np.testing.assert_allclose(fit.w, truth.w, atol=1e-7)
    found = site_intercepts(fit.problem, data, fit.w)
    assert found.values[2] == np.inf
    assert np.isfinite(found.unknown)
    y[clients == "c"] = 0.0
    X, counts, clients = drawn("poisson")
    counts[clients == "c"] = 0.0
    data = up.FederatedData.from_arrays(X, counts, clients)
    fit = up.solve(sites("poisson", up.L1(0.02)), data, tol=1e-10)
    assert site_intercepts(fit.problem, data, fit.w).values[2] == -np.inf


def test_a_class_that_a_site_lacks():
    X, y, clients = drawn("softmax")
    y[(clients == "c") & (y == 2)] = 0.0
    data = up.FederatedData.from_arrays(X, y, clients)
    fit = up.solve(sites("softmax", up.L1(0.02)), data, tol=1e-9)
    b = site_intercepts(fit.problem, data, fit.w).values
    assert b[2, 2] == -np.inf
    assert np.isfinite(np.delete(b.ravel(), 8)).all()


def test_nothing_of_the_intercepts_leaves_a_site_in_the_fit():
    for kind in ("squared", "logistic"):
        X, y, clients = drawn(kind)
        data = up.FederatedData.from_arrays(X, y, clients)
        ours = up.solve(sites(kind, up.L1(0.02)), data)
        plain = up.solve(up.Problem(LOSSES[kind], up.L1(0.02), True), data)
        assert set(ours.ledger.kinds) <= {*plain.ledger.kinds, "loss", "gradient", "hessian"}
        assert ours.solver == plain.solver  # no columns were added that the guard would refuse


def test_small_sites_refuse_as_ever():
    X, y, clients = drawn("squared", n=100)
    clients[:3] = "f"
    data = up.FederatedData.from_arrays(X, y, clients)
    fit = up.solve(sites("squared", up.L1(0.1)), data, tol=1e-10)
    assert fit.solver == "prox-Newton"
    assert any("fewer than 10 rows" in note for note in fit.notes)
    exact = up.solve(sites("squared", up.L1(0.1)), data, min_rows=0, tol=1e-12)
    np.testing.assert_allclose(fit.w, exact.w, atol=1e-5)


def test_the_names_of_the_sites_do_not_matter():
    X, y, clients = drawn("logistic")
    other = np.array([10 - ord(c) for c in clients])
    fits = [
        up.solve(sites("logistic", up.L1(0.02)), up.FederatedData.from_arrays(X, y, c), tol=1e-11)
        for c in (clients, other)
    ]
    np.testing.assert_allclose(fits[0].w, fits[1].w, atol=1e-10)


class LogCosh:
    def value(self, w, X, y):
        return float(np.mean(np.log(np.cosh(X @ w - y))))

    def gradient(self, w, X, y):
        return X.T @ np.tanh(X @ w - y) / len(y)


def test_what_has_no_site_intercepts():
    X, y, clients = drawn("squared")
    data = up.FederatedData.from_arrays(X, y, clients)
    with pytest.raises(ValueError, match="intercept='sites' needs an exact solver"):
        up.simulate(up.FedDA(), sites("squared", up.L1(0.1)), data, rounds=1)
    with pytest.raises(ValueError, match="folds='sites' leaves out sites whose intercepts"):
        up.cross_validate(sites("squared", up.L1(0.1)), data, folds="sites")
    with pytest.raises(TypeError, match="needs a LinearLoss"):
        up.Problem(LogCosh(), up.L1(0.1), "sites")
    with pytest.raises(ValueError, match="intercept must be True, False or 'sites', got 'site'"):
        up.Problem(up.Squared(), up.L1(0.1), "site")
    with pytest.raises(ValueError, match="the problem has no site intercepts"):
        site_intercepts(up.Problem(up.Squared(), up.L1(0.1)), data, np.zeros(P))


@pytest.mark.parametrize(
    ("known", "given", "written"),
    [
        (1224, ["1224", "1308", "1224"], "'1224'.*1224"),
        ("1224", [1224, 1308, 1224], "1224.*'1224'"),
        (1224, ["1224.0", " 1308", "1224.0"], "'1224.0'.*1224"),
        ("Bern", ["Bern ", "Zug", "Bern "], "'Bern '.*'Bern'"),
    ],
)
def test_ids_of_another_type_are_warned_of(known, given, written):
    """They count as unknown sites, which is what the ids of a table read as text would be in silence."""
    X, y, _ = drawn("squared")
    second = 1308 if known == 1224 else "1308" if known == "1224" else "Chur"
    ids = np.array([known, second])[np.arange(len(y)) % 2]
    model = up.FederatedLasso(0.1, site_intercepts=True).fit(X, y, clients=ids)
    count = sum(str(each).strip().split(".")[0] in (str(known), str(second)) for each in given)
    with pytest.warns(UserWarning, match=rf"{count} of 3 rows.*{written}") as caught:
        found = model.predict(X[:3], clients=given)
    assert len(caught) == 1
    np.testing.assert_allclose(found, model.predict(X[:3]))


def test_sites_that_took_no_part_get_the_mean_without_a_warning():
    X, y, clients = drawn("squared")
    model = up.FederatedLasso(0.1, site_intercepts=True).fit(X, y, clients=clients)
    np.testing.assert_allclose(model.predict(X[:2], clients=["Zug", "Uri"]), model.predict(X[:2]))
    np.testing.assert_allclose(
        model.predict(X[:2], clients=np.array(["a", "Zug"], dtype=object)),
        [model.predict(X[:1], clients=["a"])[0], model.predict(X[1:2])[0]],
    )
