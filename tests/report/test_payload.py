"""What the page is given to draw: means, thinning, odd runs; no browser."""

import dataclasses
import json

import numpy as np
import pytest

from unpooled.report import palette
from unpooled.report.curves import MOST_POINTS, average, thin
from unpooled.report.estimates import estimate
from unpooled.report.payload import payload
from unpooled.runs.run import Status


def with_history(run, **columns):
    history = {name: np.asarray(column) for name, column in columns.items()}
    return dataclasses.replace(run, history=history)


def test_mean_and_range_over_seeds(groups):
    data = payload(groups)
    for method, runs in enumerate(groups.values()):
        values = np.array([run.history["l2"] for run in runs])
        curve = next(metric for metric in data["metrics"] if metric["name"] == "l2")["curves"][method]
        assert curve["round"] == runs[0].history["round"].tolist()
        np.testing.assert_allclose(curve["mean"], values.mean(axis=0), rtol=1e-6)
        np.testing.assert_allclose(curve["low"], values.min(axis=0), rtol=1e-6)
        np.testing.assert_allclose(curve["high"], values.max(axis=0), rtol=1e-6)


def test_axes_come_from_settings_and_ledger(groups):
    fast, fedavg = payload(groups)["methods"]
    assert (fast["localSteps"], fedavg["localSteps"]) == (4, 8)
    assert fast["bytesPerRound"] == 5 * 40 * 8 * 2  # clients × coefficients × bytes × both ways


def test_dense_history_keeps_ends_and_extremes(dense):
    curve = thin(average([dense], "objective"))
    assert 400 < len(curve) <= MOST_POINTS
    assert (curve.rounds[0], curve.rounds[-1]) == (0, 15000)
    assert {7001, 9003} <= set(curve.rounds.tolist())
    assert (curve.mean.max(), curve.mean.min()) == (99.0, 0.01)
    assert (np.diff(curve.rounds) > 0).all()
    assert np.diff(curve.rounds).max() <= 60
    assert np.array_equal(curve.mean, dense.history["objective"][curve.rounds])


def test_thinning_keeps_the_extremes_of_the_range(groups):
    """The lowest and highest of single runs, which the mean does not show."""
    rounds, runs = np.arange(5000), []
    for seed, run in enumerate(groups["Fast-FedDA"][:2]):
        values = np.full(5000, 5.0)
        values[1234 + seed] = (-7.0, 30.0)[seed]
        runs.append(with_history(run, round=rounds, objective=values))
    curve = thin(average(runs, "objective"))
    assert (curve.low.min(), curve.high.max()) == (-7.0, 30.0)


def test_short_histories_are_not_thinned(groups):
    curve = average(groups["FedAvg"], "l2")
    assert thin(curve) is curve


def test_different_rounds_are_never_interpolated(groups):
    a, b = groups["Fast-FedDA"][:2]
    a = with_history(a, round=[0, 2, 4, 6, 8, 10], objective=[6.0, 5, 4, 3, 2, 1])
    b = with_history(b, round=[0, 3, 6, 9, 10], objective=[8.0, 7, 5, 4, 3])
    curve = average([a, b], "objective")
    assert curve.rounds.tolist() == [0, 6, 10]
    assert curve.mean.tolist() == [7.0, 4.0, 2.0]


def test_a_run_that_ended_early_leaves_the_mean(groups):
    a, b = groups["Fast-FedDA"][:2]
    a = with_history(a, round=[0, 1], objective=[6.0, 100.0])
    b = with_history(b, round=[0, 1, 2], objective=[4.0, 2.0, 1.0])
    curve = average([a, b], "objective")
    assert curve.mean.tolist() == [5.0, 51.0, 1.0]
    assert curve.plain()["runs"] == [2, 2, 1]


def test_what_is_not_finite_is_null(groups):
    run = with_history(
        groups["Fast-FedDA"][0], round=[0, 1, 2], objective=[1.0, 2, 3], m=[np.nan, np.inf, 1e308]
    )
    data = payload({"a": [run, dataclasses.replace(run, seed=9)]})
    curve = data["metrics"][1]["curves"][0]
    assert curve["mean"] == [None, None, 1e308]
    json.dumps(data, allow_nan=False)


def test_a_run_without_any_history(groups):
    run = with_history(groups["Fast-FedDA"][0])
    data = payload({"a": [run]})
    assert data["metrics"] == []
    both = payload({"a": [run], "b": groups["FedAvg"]})
    assert both["metrics"][0]["curves"][0] == {"round": [], "mean": []}


def test_metrics_in_the_order_of_their_labels(groups):
    names = [m["name"] for m in payload(groups, labels={"nonzeros": "n", "absent": "?"})["metrics"]]
    assert names == ["nonzeros", "objective", "l2"]
    data = payload(groups, metric="l2")
    assert data["metrics"][data["selected"]]["name"] == "l2"


def test_log_axis_by_default_where_it_helps(groups):
    run = groups["FedAvg"][0]
    wide = with_history(run, round=[0, 1], objective=[100.0, 1.0], flat=[2.0, 1.0], zero=[100.0, 0.0])
    assert [m["log"] for m in payload({"a": [wide]})["metrics"]] == [True, False, False]
    assert [m["log"] for m in payload({"a": [wide]}, log={"objective": False})["metrics"]] == [False] * 3


def test_support_against_the_truth(groups, data):
    shown = estimate(groups, data.truth)
    run, method = groups["Fast-FedDA"][0], shown["methods"][0]
    assert (shown["kind"], shown["seed"]) == ("coefficients", 0)
    np.testing.assert_allclose(method["low"], run.w, rtol=1e-6)
    np.testing.assert_allclose(method["error_high"], run.w - data.truth, rtol=1e-5, atol=1e-12)
    assert method["nonzeros"] == np.count_nonzero(run.w)
    found, true = np.abs(run.w) > 0.01, data.truth != 0
    assert method["found"] == (found & true).sum()
    assert method["missed"] + method["found"] == 8
    assert method["spurious"] == (found & ~true).sum()


def test_many_coefficients_share_bins_and_keep_extremes(groups):
    w = np.zeros(10_001)
    w[[17, 9_999]] = 3.0, -4.0
    run = dataclasses.replace(groups["FedAvg"][0], w=w)
    shown = estimate({"a": [run]}, None)
    method = shown["methods"][0]
    assert len(method["low"]) == len(shown["edges"]) - 1 == 512
    assert (min(method["low"]), max(method["high"])) == (-4.0, 3.0)
    assert sum(method["nonzero"]) == method["nonzeros"] == 2


def test_matrices_give_singular_values(lowrank):
    run, truth = lowrank
    shown = estimate({"MiD": [run]}, truth)
    assert shown["kind"] == "spectrum"
    assert shown["truth"] == [1, 1, 1, 0, 0, 0, 0]
    np.testing.assert_allclose(
        shown["methods"][0]["values"], np.linalg.svd(run.w, compute_uv=False), rtol=1e-5, atol=1e-12
    )


def test_a_sparse_matrix_is_shown_by_entries(groups):
    run = dataclasses.replace(groups["FedAvg"][0], w=np.eye(3))
    assert estimate({"a": [run]}, None)["kind"] == "coefficients"


def test_estimates_of_another_shape_are_named(groups):
    other = dataclasses.replace(groups["FedAvg"][0], w=np.ones(3))
    assert estimate({"a": groups["FedAvg"], "b": [other]}, None)["left_out"] == ["b"]


def test_how_runs_ended(groups, diverged):
    stopped = dataclasses.replace(groups["FedAvg"][1], status=Status.INTERRUPTED)
    method = payload({"a": [diverged, stopped]})["methods"][0]
    assert (method["diverged"], method["interrupted"]) == ([0], [1])


def test_forty_methods_look_different():
    from unpooled.report.plot import STYLES

    pairs = {(palette.style(i)["colour"], palette.style(i)["dash"]) for i in range(40)}
    assert len(pairs) == 40
    assert palette.COLOURS[: len(STYLES)] == [style["color"] for style in STYLES]
    assert len(set(palette.COLOURS)) == len(palette.COLOURS)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_json_of_any_precision(groups, data, dtype):
    run = groups["FedAvg"][0]
    history = {name: c if name == "round" else c.astype(dtype) for name, c in run.history.items()}
    run = dataclasses.replace(run, w=run.w.astype(dtype), history=history)
    json.dumps(payload({"a": [run]}, truth=data.truth.astype(dtype)), allow_nan=False)
