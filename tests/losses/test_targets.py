"""Targets that do not fit the loss are refused at the entrance, by client."""

import numpy as np
import pytest

import unpooled as up


def data(y):
    return up.FederatedData.from_clients({"a": (np.ones((2, 3)), [0.0, 1.0]), "b": (np.ones((2, 3)), y)})


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        (up.Logistic(), [1.0, 2.0], r"client 'b': Logistic needs labels in .* got 1, 2; Softmax"),
        (up.Softmax(), [1.0, 0.5], r"client 'b': Softmax needs labels 0, 1, …, C-1, got 0.5"),
        (up.Softmax(), [1.0, -1.0], r"got -1"),
        (
            up.Softmax(n_classes=2),
            [1.0, 3.0],
            r"client 'b': Softmax\(n_classes=2\) needs labels below 2, got 3",
        ),
        (up.Poisson(), [1.0, -2.0], r"client 'b': Poisson needs targets ≥ 0, got -2"),
    ],
)
def test_refused(loss, y, message):
    with pytest.raises(ValueError, match=message):
        up.simulate(up.FedAvg(step=0.1), up.Problem(loss, up.Zero()), data(y), rounds=1)


def test_both_conventions_for_binary_labels_mean_the_same():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 3)), rng.integers(0, 2, 20).astype(float)
    w, loss = rng.standard_normal(3), up.Logistic()
    assert loss.value(w, X, y) == loss.value(w, X, 2 * y - 1)
    assert np.array_equal(loss.gradient(w, X, y), loss.gradient(w, X, 2 * y - 1))


def test_a_client_may_have_one_class_only():
    X = np.random.default_rng(1).standard_normal((6, 3))
    one = up.FederatedData.from_clients([(X[:3], [0, 0, 0]), (X[3:], [2, 1, 2])])
    run = up.simulate(up.FastFedDA(mu=0.1, gamma=5.0), up.Problem(up.Softmax(), up.L1(0.01)), one, rounds=5)
    assert run.status == "completed"
    assert run.w.shape == (3, 3)


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
def test_parameters(wrong):
    with pytest.raises(ValueError, match="delta must be a positive number"):
        up.Huber(wrong)
    with pytest.raises(ValueError, match="n_classes must be at least 2"):
        up.Softmax(n_classes=1)
