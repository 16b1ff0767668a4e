"""What a fit says of clients that keep their matrices back, and of the solver that takes over."""

import numpy as np
import pytest

import unpooled as up
from unpooled.inference import influence, stability_selection


def federation(sizes, rare=(), kind="squared", p=4):
    """Clients of these sizes; those numbered in ``rare`` have a column in which two rows stand out."""
    rng = np.random.default_rng(0)
    clients = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.standard_normal((len(clients), p))
    for k in rare:
        own = np.flatnonzero(clients == k)
        X[own, p - 1] = 0.0
        X[own[:2], p - 1] = 1.0
    y = X[:, 0] + rng.standard_normal(len(clients))
    return up.FederatedData.from_arrays(X, (y > 0) * 1.0 if kind == "logistic" else y, clients)


def problem(kind="squared"):
    return up.Problem(up.Logistic() if kind == "logistic" else up.Squared(), up.L1(0.05), True)


def kept(notes):
    [said] = [note for note in notes if "could give rows away" in note]
    return said


def test_one_note_says_which_solver_took_over():
    fit = up.solve(problem(), federation([60] * 5 + [5] * 10))
    assert fit.solver == "prox-Newton"
    assert fit.notes == [
        "sufficient statistics were refused because 10 of 15 clients have fewer than 10 rows: Gram matrices "
        "and Hessians could give rows away there. prox-Newton was used instead: the gradients of all clients "
        "decide, and the matrices that were sent set the steps; min_rows=10 sets the limit."
    ]
    for fit in (
        up.solve(problem(), federation([5] * 4)),
        up.path(problem(), federation([5] * 4), n_lambdas=3),
    ):
        assert fit.solver == "Anderson prox-gradient"
        assert fit.notes == [
            "sufficient statistics were refused because 4 of 4 clients have fewer than 10 rows: Gram "
            "matrices and Hessians could give rows away there. Anderson prox-gradient was used instead: it "
            "needs gradients only; min_rows=10 sets the limit."
        ]
    fit = up.solve(problem(), federation([60] * 3))
    assert fit.notes[0].startswith("sufficient statistics were chosen: the loss is squared")


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_clients_count_once_whichever_site_is_left_out(kind):
    data = federation([60] * 5 + [5] * 10, rare=[0, 1], kind=kind)
    words = (
        "10 of 15 clients have fewer than 10 rows and 2 of 15 clients have a column in which fewer than 10 "
        "rows stand out: "
    )
    cv = up.cross_validate(problem(kind), data, folds="sites", n_lambdas=3)
    assert words in kept(cv.path.notes)
    assert words in kept(influence(problem(kind), data).notes)
    assert words in kept(up.solve(problem(kind), data).notes)


def test_clients_count_once_over_folds():
    data = federation([45, 60, 60])
    dealt = np.concatenate([np.arange(n) % 5 for n in (45, 60, 60)])  # nine rows in each fold, or twelve
    cv = up.cross_validate(problem(), data, folds=dealt, n_lambdas=3)
    assert "refused because 1 of 3 clients has fewer than 10 rows in a fold:" in kept(cv.path.notes)
    sizes = [5, 10, 10, 10, 10], [14, 4, 14, 14, 14], [14, 14, 4, 14, 14]  # each has few in another fold
    folds = np.concatenate([np.repeat(np.arange(5), own) for own in sizes])
    cv = up.cross_validate(problem(), data, folds=folds, n_lambdas=3)
    assert "refused because 3 of 3 clients have fewer than 10 rows in a fold:" in kept(cv.path.notes)


def test_clients_that_are_small_without_a_fold():
    data = federation([11, 60, 60], kind="logistic")  # eleven rows, of which folds leave nine or eight
    cv = up.cross_validate(problem("logistic"), data, folds=5, n_lambdas=3)
    assert kept(cv.path.notes).startswith("1 of 3 clients has fewer than 10 rows when a fold is left out: ")
    cv = up.cross_validate(problem("logistic"), federation([60] * 3, kind="logistic"), n_lambdas=3)
    assert not any("rows away" in note for note in cv.path.notes)


def test_of_rare_values_in_several_folds_the_least_is_said():
    data = federation([100, 100, 100], rare=[0, 1])
    data.X[100:102, 3] = 0.0
    data.X[[103, 104], 3] = 1.0
    folds = np.arange(300) % 4
    folds[[0, 1]], folds[[103, 104]] = 0, 1  # at two clients, in different folds
    cv = up.cross_validate(problem(), data, folds=folds, n_lambdas=3)
    assert "because at least 1 of 3 clients has a column in which" in kept(cv.path.notes)
    folds[[103, 104]] = 0
    cv = up.cross_validate(problem(), data, folds=folds, n_lambdas=3)
    assert "because 2 of 3 clients have a column in which" in kept(cv.path.notes)


def test_halves():
    found = stability_selection(problem(), federation([18, 60, 60]), n_subsamples=4, n_lambdas=3)
    assert "refused because 1 of 3 clients has fewer than 10 rows in a half:" in kept(found.notes)
