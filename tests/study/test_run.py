"""A whole study over desks in this process gives what the pooled estimators give."""

import csv
import json

import numpy as np
import pytest

import unpooled as up
from tests.study.sites import FEATURES, SITES, desks, study, tables
from unpooled.engines.remote.messages import Direct
from unpooled.preprocessing import encode
from unpooled.study.audit import Audit
from unpooled.study.config import StoppedError, StudyError
from unpooled.study.coordinator import run_study
from unpooled.study.desk import StudyDesk

CATEGORICAL = ["smoker", "ward"]


def pooled(target, missing=False):
    """Rows of all sites with their dummies, and whose they are."""
    frames = {site: frame[[*FEATURES, target]] for site, frame in tables(missing=missing).items()}
    if target == "died":
        frames = {
            site: frame.assign(died=frame["died"].eq("yes").astype(int)) for site, frame in frames.items()
        }
    return encode(frames, target, categorical=CATEGORICAL, allow_missing=missing).data


CASES = {
    "lasso": ("pressure", "lasso", 0.1, {}, lambda: up.FederatedLasso(0.1, standardise=True)),
    "lasso cv": (
        "pressure",
        "lasso",
        "cv",
        {"n_lambdas": 8},
        lambda: up.FederatedLassoCV(standardise=True, n_alphas=8),
    ),
    "raw": (
        "pressure",
        "lasso",
        0.5,
        {"standardise": False, "intercept": False},
        lambda: up.FederatedLasso(0.5, fit_intercept=False),
    ),
    "elastic net": (
        "pressure",
        "elastic net",
        0.1,
        {"l1_ratio": 0.3, "unpenalised": ["smoker"]},
        lambda: up.FederatedElasticNet(
            0.1, l1_ratio=0.3, standardise=True, unpenalised=["smoker=former", "smoker=never"]
        ),
    ),
    "group lasso": (
        "pressure",
        "group lasso",
        0.2,
        {"groups": {"blood": ["creatinine", "marker0"]}},
        lambda: up.FederatedGroupLasso(0.2, standardise=True, groups=[0, 1, 2, 2, 3, 3, 1, 4, 5, 6, 7, 8]),
    ),
    "sites": (
        "pressure",
        "lasso",
        0.1,
        {"intercept": "sites"},
        lambda: up.FederatedLasso(0.1, standardise=True, site_intercepts=True),
    ),
    "huber": (
        "pressure",
        "huber",
        0.1,
        {"delta": 2.0},
        lambda: up.FederatedHuberRegressor(0.1, delta=2.0, standardise=True),
    ),
    "poisson": ("visits", "poisson", 0.05, {}, lambda: up.FederatedPoissonRegressor(0.05, standardise=True)),
    "logistic": (
        "died",
        "logistic",
        0.01,
        {},
        lambda: up.FederatedLogisticRegression(C=1 / (0.01 * 1160), standardise=True),
    ),
    "logistic cv": (
        "died",
        "logistic",
        "cv",
        {"n_lambdas": 12, "ratio": 0.05},
        lambda: up.FederatedLogisticRegressionCV(standardise=True, n_alphas=12, eps=0.05),
    ),
    "multinomial": (
        "stage",
        "multinomial",
        0.01,
        {},
        lambda: up.FederatedLogisticRegression(C=1 / (0.01 * 1160), standardise=True),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_that_of_the_pooled_estimator(files, tmp_path, name):
    target, kind, lam, model, estimator = CASES[name]
    asked = study(target, kind, lam, model=model)
    result = run_study(asked, Direct(desks(asked, files)), tmp_path)
    known = estimator().fit(pooled(target))
    coef = known.coef_.T if known.coef_.ndim == 2 else known.coef_
    np.testing.assert_allclose(result.coef, coef.reshape(result.coef.shape), rtol=0, atol=1e-8)
    if name == "sites":
        assert list(result.intercept) == list(SITES)
        np.testing.assert_allclose(list(result.intercept.values()), known.site_intercepts_.values, atol=1e-8)
    elif model.get("intercept", True):
        np.testing.assert_allclose(result.intercept, np.squeeze(known.intercept_), rtol=0, atol=1e-7)
    assert result.converged
    assert (np.asarray(result.coef) != 0).any()
    assert not (tmp_path / "checkpoint").exists()
    rows = list(csv.DictReader((tmp_path / "coefficients.csv").read_text("utf-8").splitlines()))
    written = [float(row["coefficient"]) for row in rows if row["term"] != "(intercept)"]
    np.testing.assert_array_equal(written, np.ravel(result.coef))
    assert {row["feature"] for row in rows} - {"(intercept)"} == set(FEATURES)
    described = json.loads((tmp_path / "result.json").read_text("utf-8"))
    assert described["sites"] == {site: 260 + 20 * k for k, site in enumerate(SITES)}
    assert described["certificate"]["kind"] in ("duality gap", "KKT residual")
    assert "unpooled" in described["versions"]["bern"]
    assert (tmp_path / "summary.txt").read_text("utf-8").startswith(f"wards: {kind} of {target}")


def test_missing_values_are_filled_with_the_mean_of_all(files, tmp_path):
    asked = study(data={"missing": "mean"})
    result = run_study(asked, Direct(desks(asked, files, "holes")), tmp_path)
    known = up.FederatedLasso(0.1, standardise=True, missing="mean").fit(pooled("pressure", missing=True))
    np.testing.assert_allclose(result.coef, known.coef_, rtol=0, atol=1e-8)
    assert any("missing values are now the mean" in note for note in result.notes)


def test_refused_statistics_do_not_leave_and_gradients_do(files, tmp_path):
    asked = study()
    stubborn = desks(asked, files)
    log = Audit(tmp_path / "audit.jsonl", asked.name, "bern", values=True)
    stubborn["bern"] = StudyDesk(
        asked, "bern", files["whole"]["bern"], audit=log, refuses=("gram", "hessian")
    )
    result = run_study(asked, Direct(stubborn), tmp_path / "results")
    known = up.FederatedLasso(0.1, standardise=True).fit(pooled("pressure"))
    np.testing.assert_allclose(result.coef, known.coef_, rtol=0, atol=1e-3)
    assert result.converged
    assert "bern does not send gram, hessian: gradients were used." in result.notes
    assert "gram" not in result.ledger.kinds
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text("utf-8").splitlines()]
    assert len(lines) == stubborn["bern"].answers
    names = {array["name"].rpartition("/")[2] for line in lines for array in line["arrays"]}
    assert "gradient" in names
    assert not names & {"gram", "hessian", "diagonal"}
    asked = study("died", "logistic", 0.01, solver={"method": "prox_newton"})
    bern = StudyDesk(asked, "bern", files["whole"]["bern"], refuses=("hessian",))
    with pytest.raises(StudyError, match=r'solver.method = "prox_newton" needs what bern does not send'):
        run_study(asked, Direct({**desks(asked, files), "bern": bern}), tmp_path / "newton")


def test_the_audit_has_every_answer_and_no_row(files, tmp_path):
    asked = study("died", "logistic", 0.01)
    logs = {site: Audit(tmp_path / f"{site}.jsonl", asked.name, site, values=True) for site in SITES}
    sent = {}

    class Listening(Direct):
        def exchange(self, requests):
            replies = super().exchange(requests)
            for site, reply in replies.items():
                sent.setdefault(site, []).append(reply)
            return replies

    at = {site: StudyDesk(asked, site, files["whole"][site], audit=logs[site]) for site in SITES}
    result = run_study(asked, Listening(at), tmp_path / "results")
    for site in SITES:
        lines = [json.loads(line) for line in (tmp_path / f"{site}.jsonl").read_text("utf-8").splitlines()]
        assert [line["answer"] for line in lines] == list(range(1, len(sent[site]) + 1))
        for line, reply in zip(lines, sent[site], strict=True):
            assert {array["name"] for array in line["arrays"]} == set(reply.arrays)
            assert line["bytes"] == sum(array.nbytes for array in reply.arrays.values())
            for array in line["arrays"]:
                np.testing.assert_array_equal(array["values"], reply.arrays[array["name"]])
        assert lines[0]["kind"] == "describe"
        assert lines[0]["said"]["rows"] == result.rows[site]
        largest = max(np.size(array) for reply in sent[site] for array in reply.arrays.values())
        assert largest < result.rows[site]  # nothing that has a number for each row


def test_nothing_leaves_that_cannot_be_logged(files, tmp_path):
    asked = study(limits={"minimum_sites": 3})
    at = desks(asked, files)
    log = Audit(tmp_path / "bern.jsonl", asked.name, "bern")
    log.path = tmp_path / "gone" / "bern.jsonl"
    at["bern"] = StudyDesk(asked, "bern", files["whole"]["bern"], audit=log)
    result = run_study(asked, Direct(at), tmp_path / "results")
    assert list(result.rows) == ["basel", "genf", "zurich"]
    assert any("bern was left out: its audit file cannot be written" in note for note in result.notes)


GREED = {
    "few rows": ({}, '"min_rows": 20', '"min_rows": 1', r"min_rows=1 is not limits.minimum_rows = 20"),
    "one row a step": (
        {"solver": {"method": "fast_fedda", "batch_size": 16}},
        '"batch_size": 16',
        '"batch_size": 1',
        r"asked for minibatches of 1 rows, and solver.batch_size = 16",
    ),
}


@pytest.mark.parametrize("name", GREED)
def test_a_site_guards_its_rows_whatever_the_coordinator_asks(files, tmp_path, name):
    more, fair, greedy, words = GREED[name]
    asked = study(limits={"minimum_rows": 20}, **more)

    class Greedy(Direct):
        def exchange(self, requests):
            changed = {}
            for site, request in requests.items():
                spec = json.loads(json.dumps(request.spec).replace(fair, greedy))
                changed[site] = request if request.kind == "describe" else request._replace(spec=spec)
            return super().exchange(changed)

    with pytest.raises(StoppedError, match=words):
        run_study(asked, Greedy(desks(asked, files)), tmp_path)


def test_a_path_by_an_information_criterion(files, tmp_path):
    asked = study(lam="path", model={"n_lambdas": 20})
    result = run_study(asked, Direct(desks(asked, files)), tmp_path)
    rows = list(csv.DictReader((tmp_path / "lambdas.csv").read_text("utf-8").splitlines()))
    assert len(rows) == 20
    least = min(rows, key=lambda row: float(row["bic"]))
    assert float(least["lambda"]) == result.lam
    assert int(least["non_zero"]) == np.count_nonzero(result.coef)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "aggregate"), [("mean", None), ("median", up.CoordinateMedian()), (0.25, up.TrimmedMean(0.25))]
)
def test_a_federated_algorithm_gives_the_bits_of_simulate(files, tmp_path, asked, aggregate):
    solver = {"method": "fast_fedda", "rounds": 6, "local_steps": 5, "batch_size": 16, "seed": 3}
    asked = study(solver=solver | {"aggregate": asked}, limits={"minimum_sites": 3})
    result = run_study(asked, Direct(desks(asked, files)), tmp_path / "whole")
    prepared = up.preprocessing.prepare(pooled("pressure"))
    problem = prepared.problem(up.Squared(), up.L1(0.1))
    algorithm = up.FastFedDA(local_steps=5)
    options = {"rounds": 6, "batch_size": 16, "seed": 3, "every": 6, "aggregate": aggregate}
    run = up.simulate(algorithm, problem, prepared.data, **options)
    np.testing.assert_array_equal(result.coef, prepared.back(run.w, run.intercept)[0])
    assert result.certificate is None
