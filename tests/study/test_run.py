"""A whole study over desks in this process gives what the pooled estimators give."""

import csv
import json
import os
import re

import numpy as np
import pytest

import unpooled as up
from tests.study.sites import FEATURES, SITES, study, tables
from unpooled.preprocessing import encode
from unpooled.remote.direct import Direct
from unpooled.remote.messages import Failure, Reply
from unpooled.study import table as tables_of
from unpooled.study.agreement import DisagreementError
from unpooled.study.audit import Audit
from unpooled.study.config import StoppedError, StudyError
from unpooled.study.coordinator import run_study
from unpooled.study.desk import StudyDesk

CATEGORICAL = ["smoker", "ward"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Every site's file, two in CSV and two in Parquet; and another set with missing values."""
    folder = tmp_path_factory.mktemp("tables")
    for name, missing in (("whole", False), ("holes", True)):
        for k, (site, frame) in enumerate(tables(missing=missing).items()):
            path = folder / f"{name}-{site}"
            if k % 2:
                frame.to_csv(f"{path}.csv", index=False)
            else:
                frame.to_parquet(f"{path}.parquet")
    return {
        name: {path.stem.split("-")[1]: tables_of.read(path) for path in sorted(folder.glob(f"{name}-*"))}
        for name in ("whole", "holes")
    }


def desks(asked, files, which="whole", **options):
    return {site: StudyDesk(asked, site, files[which][site], **options) for site in asked.sites}


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
    assert not names & {"gram", "hessian"}
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


def test_a_site_guards_its_rows_whatever_the_coordinator_asks(files, tmp_path):
    asked, eager = study(limits={"minimum_rows": 20}), study(limits={"minimum_rows": 20})
    at = {site: StudyDesk(asked, site, files["whole"][site]) for site in SITES}

    class Greedy(Direct):
        def exchange(self, requests):
            changed = {}
            for site, request in requests.items():
                spec = json.loads(json.dumps(request.spec).replace('"min_rows": 20', '"min_rows": 1'))
                changed[site] = request._replace(spec=spec)
            return super().exchange(changed)

    with pytest.raises(StoppedError, match=r"min_rows=1, below limits.minimum_rows = 20"):
        run_study(eager, Greedy(at), tmp_path)


class Failing(Direct):
    """A transport on which a site stops answering at some exchange, and may come back."""

    def __init__(self, desks, site, at, back=10**9):
        super().__init__(desks)
        self.site, self.at, self.back, self.count = site, at, back, 0

    def exchange(self, requests):
        self.count += 1
        replies = super().exchange(requests)
        if self.at <= self.count < self.back and self.site in replies:
            replies[self.site] = Failure("is not connected")
        return replies


def test_a_lost_site_is_left_out_where_enough_remain(files, tmp_path):
    asked = study(limits={"minimum_sites": 3})
    seen = []
    result = run_study(
        asked, Failing(desks(asked, files), "genf", 3), tmp_path, watch=lambda event, data: seen.append(event)
    )
    three = study(sites=["basel", "bern", "zurich"])
    known = run_study(three, Direct(desks(three, files)), tmp_path / "three")
    np.testing.assert_array_equal(result.coef, known.coef)
    assert result.notes[0] == "genf was left out: is not connected."
    assert list(result.rows) == ["basel", "bern", "zurich"]
    assert [event for event in seen if event in ("lost", "left out")] == ["left out"]


def test_a_site_that_comes_back_in_time_is_waited_for(files, tmp_path):
    asked = study(limits={"grace": 30})
    seen = []
    flaky = Failing(desks(asked, files), "genf", 3, 5)
    result = run_study(asked, flaky, tmp_path, watch=lambda event, data: seen.append(event))
    known = run_study(asked, Direct(desks(asked, files)), tmp_path / "known")
    np.testing.assert_array_equal(result.coef, known.coef)
    assert "lost" in seen
    assert "left out" not in seen


class Spoiling(Direct):
    """A transport on which one site's numbers of a kind are not finite, or fewer than they should be."""

    def __init__(self, desks, site, kind, spoil):
        super().__init__(desks)
        self.site, self.kind, self.spoil = site, kind, spoil

    def exchange(self, requests):
        replies = super().exchange(requests)
        if requests and next(iter(requests.values())).kind == self.kind and self.site in replies:
            spec, arrays = replies[self.site]
            replies[self.site] = Reply(spec, {name: self.spoil(array) for name, array in arrays.items()})
        return replies


SPOILT = {
    "NaN": (lambda array: np.full(array.shape, np.nan), r"genf: its \w+ holds NaN"),
    "shape": (lambda array: np.ones((2, 3, 4)), r"genf: its \w+ has shape \(2, 3, 4\)"),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_a_site_that_sends_what_cannot_be_used_is_named_and_left_out(files, tmp_path, kind):
    spoil, words = SPOILT[kind]
    asked = study(limits={"minimum_sites": 3})
    at = desks(asked, files)
    result = run_study(asked, Spoiling(at, "genf", "ask", spoil), tmp_path / "left out")
    assert list(result.rows) == ["basel", "bern", "zurich"]
    assert re.match(words.replace("genf:", "genf was left out:"), result.notes[0])
    [told] = at["genf"].told
    assert told["done"].startswith("this site was left out: its ")
    asked = study()
    with pytest.raises(StoppedError, match=rf"{words}.*; 3 of at least 4 sites are left"):
        run_study(asked, Spoiling(desks(asked, files), "genf", "ask", spoil), tmp_path / "stopped")
    known = run_study(asked, Direct(desks(asked, files)), tmp_path / "known")
    mended = run_study(asked, Direct(desks(asked, files)), tmp_path / "stopped", resume=True)
    np.testing.assert_array_equal(mended.coef, known.coef)


@pytest.mark.slow
def test_a_round_with_too_few_sites_stops_and_is_resumed(files, tmp_path):
    asked = study(solver={"method": "fast_fedda", "rounds": 4, "local_steps": 5, "batch_size": 16})
    known = run_study(asked, Direct(desks(asked, files)), tmp_path / "known")
    with pytest.raises(StoppedError, match=r"round 2 has 3 of the 4 clients .* 'genf': is not connected"):
        run_study(asked, Failing(desks(asked, files), "genf", 20), tmp_path / "results")
    resumed = run_study(asked, Direct(desks(asked, files)), tmp_path / "results", resume=True)
    np.testing.assert_array_equal(resumed.coef, known.coef)


@pytest.mark.parametrize("damage", [None, "cut", "nonsense"])
def test_a_stopped_study_goes_on_to_the_same_bits(files, tmp_path, damage):
    asked = study("died", "logistic", 0.01)
    known = run_study(asked, Direct(desks(asked, files)), tmp_path / "known")
    with pytest.raises(StoppedError, match="genf: is not connected; 3 of at least 4 sites are left"):
        run_study(asked, Failing(desks(asked, files), "genf", 5), tmp_path / "results")
    kept = sorted((tmp_path / "results" / "checkpoint").glob("*.npz"))
    assert len(kept) == 4
    with pytest.raises(StudyError, match="holds a study that was not finished: --resume goes on"):
        run_study(asked, Direct(desks(asked, files)), tmp_path / "results")
    if damage:
        kept[-1].write_bytes(kept[-1].read_bytes()[:100] if damage == "cut" else b"nonsense")
    again, notes = Failing(desks(asked, files), "nobody", 1), []
    watch = lambda event, data: notes.append(data["text"]) if event == "note" else None  # noqa: E731
    result = run_study(asked, again, tmp_path / "results", resume=True, watch=watch)
    np.testing.assert_array_equal(result.coef, known.coef)
    assert result.intercept == known.intercept
    assert result.ledger == known.ledger
    straight = Failing(desks(asked, files), "nobody", 1)
    run_study(asked, straight, tmp_path / "straight")
    assert again.count == straight.count - (3 if damage else 4)
    assert any("is damaged: its answers are asked for again" in note for note in notes) == bool(damage)


def test_what_cannot_be_resumed(files, tmp_path):
    asked = study("died", "logistic", 0.01)
    with pytest.raises(StudyError, match="there is nothing to resume"):
        run_study(asked, Direct(desks(asked, files)), tmp_path, resume=True)
    with pytest.raises(StoppedError):
        run_study(asked, Failing(desks(asked, files), "genf", 5), tmp_path)
    other = study("died", "logistic", 0.02)
    with pytest.raises(StudyError, match=r"is another one: model.lambda is 0.02 here and 0.01 at"):
        run_study(other, Direct(desks(other, files)), tmp_path, resume=True)
    (tmp_path / "checkpoint" / "state.json").write_text("{")
    with pytest.raises(StudyError, match=r"state.json is damaged: begin anew"):
        run_study(asked, Direct(desks(asked, files)), tmp_path, resume=True)


def test_a_disk_that_is_full_costs_the_checkpoint_only(files, tmp_path):
    asked, notes = study(), []
    known = run_study(asked, Direct(desks(asked, files)), tmp_path / "known")
    checkpoint = tmp_path / "results" / "checkpoint"

    class Filling(Direct):
        """The disk fills up while the sites answer for the first time."""

        def exchange(self, requests):
            for number in range(1, 9):
                temporary = checkpoint / f".{number:06}.npz.{os.getpid()}"  # where it is written first
                if checkpoint.exists() and not temporary.is_symlink():
                    temporary.symlink_to("/dev/full")
            return super().exchange(requests)

    watch = lambda event, data: notes.append(data["text"]) if event == "note" else None  # noqa: E731
    result = run_study(asked, Filling(desks(asked, files)), tmp_path / "results", watch=watch)
    np.testing.assert_array_equal(result.coef, known.coef)
    assert len(notes) == 1
    assert "cannot be written (No space left on device): the study goes on" in notes[0]
    assert not checkpoint.exists()


def test_a_site_that_differs_is_told_and_named(files, tmp_path):
    asked = study()
    at = desks(asked, files)
    at["bern"] = StudyDesk(study(lam=0.3), "bern", files["whole"]["bern"])
    with pytest.raises(StoppedError, match=r"bern: its study.toml is another one: model.lambda is 0.3 here"):
        run_study(asked, Direct(at), tmp_path / "one")
    assert "model.lambda is 0.3 here and 0.1 at the coordinator" in at["bern"].told[0]["unfit"][0]
    at = desks(asked, files, "holes")
    with pytest.raises(DisagreementError, match="basel: column 'creatinine' has missing values"):
        run_study(asked, Direct(at), tmp_path / "two")
    assert at["bern"].told == [{"unfit": ["column 'creatinine' has missing values"]}]
    assert not (tmp_path / "two" / "checkpoint").exists()


def test_all_are_told_of_a_study_that_ends_without_a_result(files, tmp_path):
    asked = study("died", "multinomial", 0.1)
    at = desks(asked, files)
    with pytest.raises(StudyError, match="multinomial needs three classes or more"):
        run_study(asked, Direct(at), tmp_path)
    for desk in at.values():
        assert "it ended without a result: multinomial needs three classes" in desk.told[0]["failed"]


@pytest.mark.slow
def test_too_few_for_a_round_is_a_stop_that_can_be_resumed(files, tmp_path):
    solver = {"method": "fast_fedda", "rounds": 4, "local_steps": 5, "batch_size": 16}
    asked = study(solver=solver)
    known = run_study(asked, Direct(desks(asked, files)), tmp_path / "known")
    seen = []
    counting = Failing(desks(asked, files), "nobody", 1)
    run_study(asked, counting, tmp_path / "count")
    with pytest.raises(StoppedError, match="3 of the 4 clients that must take part"):
        run_study(asked, Failing(desks(asked, files), "genf", counting.count - 3), tmp_path / "results")
    watch = lambda event, data: seen.append(event)  # noqa: E731
    again = run_study(asked, Direct(desks(asked, files)), tmp_path / "results", resume=True, watch=watch)
    np.testing.assert_array_equal(again.coef, known.coef)
    assert 0 < seen.count("asked") < counting.count


def test_sites_that_do_not_come_are_named(files, tmp_path):
    asked = study(limits={"join_timeout": 1})
    at = desks(asked, files)
    del at["genf"]
    with pytest.raises(StudyError, match=r"3 of at least 4 sites joined within 1 s .* missing: genf"):
        run_study(asked, Direct(at), tmp_path)


def test_a_path_by_an_information_criterion(files, tmp_path):
    asked = study(lam="path", model={"n_lambdas": 20})
    result = run_study(asked, Direct(desks(asked, files)), tmp_path)
    rows = list(csv.DictReader((tmp_path / "lambdas.csv").read_text("utf-8").splitlines()))
    assert len(rows) == 20
    least = min(rows, key=lambda row: float(row["bic"]))
    assert float(least["lambda"]) == result.lam
    assert int(least["non_zero"]) == np.count_nonzero(result.coef)


@pytest.mark.slow
def test_a_federated_algorithm_gives_the_bits_of_simulate(files, tmp_path):
    solver = {"method": "fast_fedda", "rounds": 6, "local_steps": 5, "batch_size": 16, "seed": 3}
    asked = study(solver=solver, limits={"minimum_sites": 3})
    result = run_study(asked, Direct(desks(asked, files)), tmp_path / "whole")
    prepared = up.preprocessing.prepare(pooled("pressure"))
    problem = prepared.problem(up.Squared(), up.L1(0.1))
    algorithm = up.FastFedDA(local_steps=5)
    run = up.simulate(algorithm, problem, prepared.data, rounds=6, batch_size=16, seed=3, every=6)
    np.testing.assert_array_equal(result.coef, prepared.back(run.w, run.intercept)[0])
    assert result.certificate is None
