"""Bad input is refused with the value that was wrong and what is accepted."""

import numpy as np
import pytest

import unpooled as up
from tests.exact.federations import federated, rows

LASSO = up.Problem(up.Squared(), up.L1(0.1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "prox_newtn"}, "there is no solver 'prox_newtn'; closest: 'prox_newton'"),
        ({"solver": 3}, "solver must be a name or an exact solver"),
        ({"tol": float("nan")}, "tol must be a positive number, got nan"),
        ({"tol": 0.0}, "tol must be a positive number"),
        ({"tol": "small"}, "tol must be a positive number"),
        ({"max_rounds": 0}, "max_rounds must be a whole number ≥ 1"),
        ({"max_rounds": 2.5}, "max_rounds must be a whole number"),
        ({"min_rows": -1}, "min_rows must be a whole number ≥ 0"),
        ({"min_rows": float("inf")}, "min_rows must be a whole number ≥ 0"),
        ({"engine": object()}, "engine must be one of unpooled.engines"),
        ({"w0": np.zeros(3)}, "w0 has shape"),
        ({"intercept0": 1.0}, "intercept0 is given, but the problem has no intercept"),
    ],
)
def test_options(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        up.solve(LASSO, federated("squared", n=60, p=5), **options)


def test_problems_and_data():
    data = federated("squared", n=60, p=5)
    with pytest.raises(TypeError, match="problem must be a Problem"):
        up.solve(up.L1(0.1), data)
    with pytest.raises(TypeError, match="data must be a FederatedData"):
        up.solve(LASSO, data.X)
    with pytest.raises(ValueError, match="ball=2"):
        up.solve(up.Problem(up.Squared(), up.L1(0.1), ball=2.0), data)


def test_pairs_that_do_not_fit():
    X = np.random.default_rng(0).standard_normal((40, 3, 2))
    matrices = up.FederatedData.from_arrays(X, np.zeros(40), np.arange(40) % 2)
    nuclear = up.Problem(up.Squared(), up.Nuclear(0.1))
    with pytest.raises(ValueError, match=r"prox-Newton cannot solve Squared with Nuclear.*separate blocks"):
        up.solve(nuclear, matrices, solver="prox_newton")
    logistic = up.Problem(up.Logistic(), up.L1(0.1))
    with pytest.raises(ValueError, match=r"sufficient statistics cannot solve Logistic.*squared loss"):
        up.solve(logistic, federated("logistic"), solver="sufficient_statistics")


def test_one_class_everywhere():
    X, _, clients = rows("logistic", n=60, p=4)
    data = up.FederatedData.from_arrays(X, np.ones(60), clients)
    with pytest.raises(ValueError, match="every label of every client is positive"):
        up.solve(up.Problem(up.Logistic(), up.L1(0.1), True), data)
    counts = up.FederatedData.from_arrays(X, np.zeros(60), clients)
    with pytest.raises(ValueError, match="every count of every client is 0"):
        up.solve(up.Problem(up.Poisson(), up.L1(0.1), True), counts)
    with pytest.raises(ValueError, match="no client has a row of class 1, 2"):
        up.solve(up.Problem(up.Softmax(n_classes=3), up.L1(0.1), True), counts)


def test_a_client_with_wrong_labels_is_named():
    X, y, clients = rows("logistic", n=60, p=4)
    y[clients == 2] = 7.0
    with pytest.raises(ValueError, match="client 2: Logistic needs labels"):
        up.solve(up.Problem(up.Logistic(), up.L1(0.1)), up.FederatedData.from_arrays(X, y, clients))


def test_a_refusal_that_leaves_no_round():
    with pytest.raises(ValueError, match="max_rounds=1 left no round"):
        up.solve(LASSO, federated("squared", n=20, p=3, sites=4), max_rounds=1)


def test_a_start_beyond_the_numbers():
    data = federated("poisson", n=60, p=4)
    with pytest.raises(ValueError, match="w0 is not finite"):
        up.solve(up.Problem(up.Poisson(), up.L1(0.1)), data, w0=np.full(4, 1e6))


@pytest.mark.parametrize("label", [0.0, 1.0])
@pytest.mark.parametrize("sites", [3, 7, 9])
def test_one_class_is_refused_whatever_shares_sum_to(label, sites):
    X = np.random.default_rng(0).standard_normal((30, 3))
    data = up.FederatedData.from_arrays(X, np.full(30, label), np.arange(30) % sites)
    words = f"every label of every client is {'positive' if label else 'negative'}"
    with pytest.raises(ValueError, match=words):
        up.solve(up.Problem(up.Logistic(), up.L1(0.1), intercept=True), data)
