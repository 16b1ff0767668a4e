"""How a run ends: its certificate, its best iterate, and the words for one that got worse."""

import json
import zipfile

import numpy as np
import pytest
from sklearn.linear_model import Lasso

import unpooled as up
from tests.remote.desks import Faulty, apart, desks, silent
from tests.runs import ALGORITHMS, FAST, NAMES, PROBLEM, go, same_bits
from unpooled.engines.remote.data import RemoteData


@pytest.fixture(scope="module")
def data(small):
    return small


@pytest.fixture(scope="module")
def optimum(data):
    """The least objective, by scikit-learn on the pooled rows."""
    fit = Lasso(alpha=0.1, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(data.X, data.y)
    return PROBLEM.objective(fit.coef_, data)


@pytest.fixture(scope="module")
def worse():
    """Sites that differ, of which two are drawn a round: FedDA goes up after it has gone down."""
    rng = np.random.default_rng(0)
    clients = []
    for _ in range(12):
        X = rng.standard_normal((30, 10)) * rng.uniform(0.2, 2.0) + 2.0 * rng.standard_normal(10)
        clients.append((X, X @ rng.standard_normal(10) + rng.standard_normal(30)))
    return up.FederatedData.from_clients(clients)


def fedda(worse, **options):
    options = {"rounds": 300, "every": 10, "cohort": 2, "seed": 0, **options}
    return up.simulate(up.FedDA(), up.Problem(up.Squared(), up.L1(0.05)), worse, **options)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=NAMES)
def test_a_certificate_bounds_the_true_gap(data, optimum, algorithm):
    plain, run = go(algorithm, data), go(algorithm, data, certify=True)
    same_bits(plain, run)
    assert plain.certificate is None
    assert run.certificate.kind == "duality gap"
    assert run.certificate.objective == pytest.approx(run.history["objective"][-1], rel=1e-12)
    assert run.certificate.gap >= run.certificate.objective - optimum - 1e-12


def test_a_certificate_is_tight_at_the_end_of_a_good_run(data, optimum):
    run = up.simulate(up.FastFedDA(local_steps=1), PROBLEM, data, rounds=2500, certify=True)
    assert run.certificate.objective == pytest.approx(optimum, rel=1e-9)
    assert run.certificate.relative < 1e-7


def test_the_round_of_a_certificate_is_counted_and_shown(data):
    plain, run = go(FAST, data), go(FAST, data, certify=True)
    more = run.ledger.rounds, run.ledger.client_updates
    assert more == (plain.ledger.rounds + 1, plain.ledger.client_updates + data.n_clients)
    assert run.ledger.floats_up > plain.ledger.floats_up + 12 * 40
    assert {"loss", "gradient"} <= set(run.ledger.kinds)
    assert "completed after 12 rounds" in repr(run)
    assert f"{run.certificate}, by one more round" in run.summary()
    assert "duality gap" not in plain.summary()


def test_a_certificate_where_nothing_has_moved():
    """At w = 0 with an intercept too, where moments alone would tell about another model."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40, 3)), 5.0 + rng.standard_normal(40)
    data = up.FederatedData.from_arrays(X, y, np.arange(40) % 4)
    problem = up.Problem(up.Squared(), up.L1(0.1), intercept=True)
    run = up.simulate(up.FedAvg(step=1e-300), problem, data, rounds=1, certify=True)
    fit = Lasso(alpha=0.1, tol=1e-12).fit(X, y)
    best = problem.objective(fit.coef_, data, fit.intercept_)
    assert run.certificate.objective == pytest.approx(0.5 * np.mean(y**2))
    assert run.certificate.gap >= run.certificate.objective - best


class Own:
    """A loss that the library does not know."""

    def value(self, w, X, y):
        return float(np.mean((X @ w - y) ** 2) / 2)

    def gradient(self, w, X, y):
        return X.T @ (X @ w - y) / len(y)


def test_without_a_dual_it_is_the_kkt_residual(data):
    run = go(FAST, data, problem=up.Problem(Own(), up.L1(0.1)), certify=True)
    gradient = data.X.T @ (data.X @ run.w - data.y) / data.n_rows
    moved = run.w - gradient
    residual = run.w - np.sign(moved) * np.maximum(np.abs(moved) - 0.1, 0.0)
    assert run.certificate.kind == "KKT residual"
    assert run.certificate.gap == pytest.approx(np.abs(residual).max(), rel=1e-10)


def test_a_certificate_from_elsewhere(data):
    here, there = (go(FAST, rows, certify=True) for rows in (data, apart(data)))
    assert there.certificate.gap == pytest.approx(here.certificate.gap, rel=1e-12)
    assert there.ledger == here.ledger


def test_a_site_lost_at_the_end_costs_the_certificate_only(data):
    away = RemoteData.of(Faulty(desks(data), silent("site 4", "ask")), weights=data.weights)
    run, whole = go(FAST, away, certify=True), go(FAST, data)
    assert np.array_equal(run.w, whole.w)
    assert (run.status, run.certificate) == ("completed", None)
    assert "there is no certificate (no answer from 'site 4': its line is dead)" in run.notes[-1]


def test_a_finished_run_is_certified_later(data, tmp_path):
    whole = go(FAST, data, certify=True)
    path = go(FAST, data).save(tmp_path / "a.run")
    later = go(FAST, data, resume=path, certify=True)
    same_bits(whole, later)
    assert later.certificate == whole.certificate == up.load(later.save(path)).certificate
    assert later.ledger == whole.ledger == up.load(path).ledger


def test_certify_is_refused_where_it_cannot_be(data):
    with pytest.raises(ValueError, match="exact loss and gradient, which privacy does not account for"):
        go(FAST, data, certify=True, privacy=up.CentralDP(clip=1.0, noise_multiplier=1.0, delta=1e-5))
    with pytest.raises(ValueError, match="certify does not know the constraint ball=3"):
        go(FAST, data, certify=True, problem=up.Problem(up.Squared(), up.L1(0.1), ball=3.0))


def test_a_run_that_got_worse_says_so_and_keeps_its_best(worse, tmp_path):
    run = fedda(worse)
    objective = run.history["objective"]
    at = int(np.argmin(objective))
    assert objective[-1] > 1.1 * objective[at]
    rise = f"the objective has risen since round {run.history['round'][at]}, from {objective[at]:.6g} to "
    assert [note for note in run.notes if note.startswith(rise)] == run.findings
    assert rise in run.summary()
    assert (run.best.round, run.best.objective) == (run.history["round"][at], objective[at])
    problem = up.Problem(up.Squared(), up.L1(0.05))
    assert problem.objective(run.best.w, worse) == run.best.objective
    back = up.load(run.save(tmp_path / "a.run"))
    assert np.array_equal(back.best.w, run.best.w)
    assert (back.best.round, back.best.objective) == (run.best.round, run.best.objective)
    assert repr(back) == repr(run)


def test_a_resumed_run_has_the_best_of_both_parts(worse, data, tmp_path):
    whole, half = fedda(worse), fedda(worse, rounds=250)
    assert half.findings
    rest = fedda(worse, resume=half.save(tmp_path / "half.run"))
    assert rest.best.round == whole.best.round <= 250
    assert np.array_equal(rest.best.w, whole.best.w)
    assert [note for note in rest.notes if "risen" in note] == whole.findings  # once, of the whole run
    better = go(FAST, data, resume=go(FAST, data, rounds=4))
    assert better.best.round == 12
    assert better.findings == []


def test_an_older_file_has_no_best_iterate_and_invents_none(worse, tmp_path):
    half = fedda(worse, rounds=250)
    path, old = half.save(tmp_path / "a.run"), tmp_path / "old.run"
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(old, "w") as other:
        for name in archive.namelist():
            content = archive.read(name)
            if name == "run.json":
                known = {"best", "certificate", "findings"}
                said = {k: v for k, v in json.loads(content).items() if k not in known}
                said["arrays"] = [array for array in said["arrays"] if not array.startswith("best/")]
                content = json.dumps(said).encode()
            if not name.startswith("best/"):
                other.writestr(name, content)
    back = up.load(old)
    assert (back.best, back.certificate, back.findings) == (None, None, [])
    assert np.array_equal(back.w, half.w)
    assert fedda(worse, resume=back).best is None  # the least objective was in the rounds before


def test_the_best_iterate_has_its_intercept(worse, tmp_path):
    problem = up.Problem(up.Squared(), up.L1(0.05), intercept=True)
    run = up.simulate(up.FedDA(), problem, worse, rounds=60, every=5, cohort=2)
    back = up.load(run.save(tmp_path / "a.run"))
    assert isinstance(back.best.intercept, float)
    assert problem.objective(back.best.w, worse, back.best.intercept) == run.history["objective"].min()


def test_setup_rounds_are_shown(data):
    run = go(up.FastFedDA(), data)
    assert "21 set-up rounds to choose its numbers, then 12 rounds" in run.summary()
    assert "set-up" not in go(FAST, data).summary()
