"""Held-out losses of sites whose training rows give no finite intercept, against the rule's own words.

The rule: half a row more, at the mean margin of the site's training rows, whose target is the pooled mean;
for a site without training rows that row alone, at the mean margin of the rows left out.
"""

import numpy as np
import pytest
from scipy.optimize import minimize

import unpooled as up
from tests.exact.federations import LOSSES, rows
from unpooled.preprocessing import site_intercepts

LAMBDAS = [0.1, 0.02]


def federation(kind, n=200, sites=5, seed=0):
    """Site 2 has one label, no counts, or two of three classes; site 9 has one row."""
    X, y, clients = rows(kind, n=n, p=4, sites=sites, seed=seed)
    own = clients == 2
    y[own] = {"softmax": y[own] % 2, "squared": y[own], "huber": y[own]}.get(kind, 0.0)
    clients[n - 1] = 9
    return up.FederatedData.from_arrays(X, y, clients)


def values(kind, Z, y):
    """ℓ(z, y) of a row, for targets that may be fractions: (n, C) for classes."""
    if kind == "logistic":
        return np.logaddexp(0.0, Z[:, 0]) - y[:, 0] * Z[:, 0]
    if kind == "poisson":
        return np.exp(Z[:, 0]) - y[:, 0] * Z[:, 0]
    if kind == "softmax":
        return np.log(np.exp(Z).sum(axis=1)) - np.sum(y * Z, axis=1)
    return LOSSES[kind].values(Z, y[:, 0])


def intercept(kind, Z, T, pooled, others):
    """The rule, by a general minimiser."""
    at = (Z if len(Z) else others).mean(axis=0)

    def objective(a):
        of_rows = values(kind, Z + a, T).sum() if len(Z) else 0.0
        return of_rows + 0.5 * values(kind, (at + a)[None], pooled[None])[0]

    return minimize(objective, np.zeros(Z.shape[1]), method="BFGS", options={"gtol": 1e-9}).x


def pooled_mean(kind, T):
    """With half a row of margin zero, so that no class has probability zero."""
    if kind in ("squared", "huber"):
        return T.mean(axis=0)
    zero = {"logistic": 0.5, "poisson": 1.0, "softmax": 1.0 / 3.0}[kind]
    return (T.sum(axis=0) + 0.5 * zero) / (len(T) + 0.5)


@pytest.mark.parametrize("kind", LOSSES)
def test_the_rule(kind):
    data = federation(kind)
    names, of = np.repeat(data.ids, data.sizes), np.arange(data.n_rows) % 3
    task = up.Problem(LOSSES[kind], up.L1(0.1), "sites")
    found = up.cross_validate(task, data, folds=of, lambdas=LAMBDAS, tol=1e-11, min_rows=0)
    T = LOSSES[kind].targets(data.y, 3 if kind == "softmax" else 1)
    checked = set()
    for f in range(3):
        kept = up.FederatedData.from_arrays(data.X[of != f], data.y[of != f], names[of != f])
        for i, lam in enumerate(LAMBDAS):
            fit = up.solve(task.with_lam(lam), kept, tol=1e-11, min_rows=0)
            own = site_intercepts(task, kept, fit.w)
            Z, total = (data.X @ fit.w).reshape(data.n_rows, -1), 0.0
            for site in data.ids:
                train, test = (names == site) & (of != f), (names == site) & (of == f)
                a = np.atleast_1d(own.of(site))
                if site not in own.ids or not np.isfinite(a).all():
                    a = intercept(kind, Z[train], T[train], pooled_mean(kind, T[of != f]), Z[test])
                    checked |= {(site, bool(train.any()))} if test.any() else set()
                total += values(kind, Z[test] + a, T[test]).sum()
            assert found.losses[i, f] == pytest.approx(total / np.sum(of == f), rel=1e-5)
    one_label = set() if kind in ("squared", "huber") else {(2, True)}
    assert checked == {(9, False)} | one_label


def test_a_row_alone_does_not_sway_the_choice():
    """It is predicted by the pooled mean, whatever λ."""
    data = federation("logistic")
    alone = data.subset([9])
    of = np.where(np.repeat(data.ids, data.sizes) == 9, 0, np.arange(data.n_rows) % 2)
    task = up.Problem(up.Logistic(), up.L1(0.1), "sites")
    found = up.cross_validate(task, data, folds=of, lambdas=LAMBDAS, min_rows=0)
    n, ones = np.sum(of == 1), data.y[of == 1].sum()
    p = (ones + 0.25) / (n + 0.5)
    loss = -np.log(p if alone.y[0] > 0 else 1.0 - p)
    rest = data.subset([k for k in data.ids if k != 9])
    of_rest = of[np.repeat(data.ids, data.sizes) != 9]
    without = up.cross_validate(task, rest, folds=of_rest, lambdas=LAMBDAS, min_rows=0)
    share = 1.0 / np.sum(of == 0)
    expected = share * loss + (1.0 - share) * without.losses[:, 0]
    np.testing.assert_allclose(found.losses[:, 0], expected, rtol=1e-3)


def test_the_null_model_is_not_chosen_for_a_site_with_one_positive():
    """In the fold that holds it the site's training rows have one class; one site has a single row."""
    rng = np.random.default_rng(0)
    clients = np.repeat(np.arange(8), 50)
    X = rng.standard_normal((400, 4))
    z = X[:, 0] - 0.8 * X[:, 1] + rng.standard_normal(8)[clients]
    y = (rng.random(400) < 1.0 / (1.0 + np.exp(-z))).astype(int)
    for site in (3, 7):
        y[clients == site] = 0
        y[50 * site + 4] = 1
    clients[0] = 99
    options = {"site_intercepts": True, "rule": "1se", "n_alphas": 6, "eps": 0.05, "min_rows": 0, "cv": 3}
    model = up.FederatedLogisticRegressionCV(**options).fit(X, y, clients=clients)
    assert {0, 1} <= set(np.flatnonzero(model.coef_[0]))
    found = model.cv_result_
    assert 0.4 < found.mean[found.index] < 0.65
    assert found.se[found.index] < 0.05


def test_a_class_that_no_training_row_has():
    X, y, clients = rows("softmax", n=90, p=4, sites=3)
    y[y == 2] = 0
    y[:2] = 2  # both are left out together
    of = np.arange(90) % 3
    of[:2] = 0
    data = up.FederatedData.from_arrays(X, y, clients)
    of = of[np.argsort(clients, kind="stable")]
    task = up.Problem(up.Softmax(n_classes=3), up.L1(0.1), "sites")
    found = up.cross_validate(task, data, folds=of, lambdas=LAMBDAS, min_rows=0)
    assert found.losses.max() < 2.0


def test_an_intercept_of_exactly_zero_is_told_without_a_warning():
    data = up.FederatedData.from_arrays(np.zeros((4, 1)), [0.0, 1.0, 0.0, 1.0], np.zeros(4, int))
    task = up.Problem(up.Logistic(), up.L1(0.1), "sites")
    assert site_intercepts(task, data, np.zeros(1)).values == 0.0
