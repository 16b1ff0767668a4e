"""Counts and the words behind them: one of a thing is not many."""

import numpy as np
import pytest

import unpooled as up
from unpooled._wording import counted, numbered, part_of
from unpooled.preprocessing import moments, prepare


def test_one_and_many():
    assert [counted(n, "row") for n in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
    assert [part_of(n, 3, "client", "has", "have") for n in (0, 1, 2)] == [
        "0 of 3 clients have",
        "1 of 3 clients has",
        "2 of 3 clients have",
    ]
    assert part_of(1, 1, "column") == "1 of 1 column is"
    assert [numbered(n, "pass", "passes") for n in (1, 2)] == ["1 pass", "2 passes"]


def test_what_a_fit_says_of_one():
    X, y = np.linspace(0.0, 1.0, 13)[:, None], np.arange(13.0)
    clients = np.repeat(["a", "b"], [12, 1])
    model = up.FederatedLasso(0.1).fit(X, y, clients=clients)
    text = model.summary()
    assert "13 rows × 1 feature of 2 clients" in text
    assert "1 of 1 coefficient is not zero" in text
    assert "1 of 2 clients has fewer than 10 rows" in text
    data = up.FederatedData.from_arrays(
        np.where(np.arange(13)[:, None] == 3, np.nan, X), y, clients, allow_missing=True
    )
    assert repr(data).startswith("FederatedData(2 clients, 13 rows × 1 feature, ")
    assert moments(data).notes == ("1 of 2 clients has a single row, which the mean shows.",)
    assert prepare(data, missing="mean").notes[-1] == "1 missing value is now the mean of those observed."
    with pytest.raises(ValueError, match="1 of 3 folds has no rows"):
        up.FederatedLassoCV(cv=np.where(np.arange(13) < 5, 0, 2)).fit(X, y, clients=clients)
    one = up.FederatedData.from_arrays(X, y, np.zeros(13, int))
    problem = up.Problem(up.Squared(), up.L1(0.1))
    with pytest.raises(ValueError, match=r"cohort=2, but the data has 1 client$"):
        up.simulate(up.FedAvg(), problem, one, rounds=1, cohort=2)
