"""Questions that a cheating coordinator could ask to get at rows: the site refuses each, and says why."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import unpooled as up
from tests.study.sites import desks, study
from tests.study.villain import FEATURES, Villain, patients, scaling
from unpooled.data.folds import Dealt, Fold
from unpooled.engines.remote.messages import Direct, Request
from unpooled.engines.remote.specs import encode
from unpooled.engines.remote.summaries import ColumnSummary, OwnIntercept
from unpooled.exact import AndersonProxGradient, Fista, ProxNewton, SufficientStatistics
from unpooled.preprocessing.levels import Categories
from unpooled.study import table as tables_of
from unpooled.study.agreement import Agreement
from unpooled.study.config import parse
from unpooled.study.coordinator import run_study
from unpooled.study.desk import StudyDesk
from unpooled.study.effective import Point, Seen
from unpooled.study.envelope import opened


def refused(villain, reply, words):
    """Nothing left the site; the coordinator and the site's terminal read the same sentence."""
    assert not reply.arrays
    said = reply.spec["refused"]
    assert "the coordinator asked" in said
    assert words in said
    assert villain.shown[-1] == said


def test_an_ordinary_question_is_answered(tmp_path):
    bern = Villain(tmp_path)
    reply = bern.ask({"w": np.zeros(5)})
    u = 0.5 - bern.frame["died"].to_numpy()
    np.testing.assert_allclose(reply.arrays["0/0/gradient"][:4], bern.X.T @ u / 120)


def test_folds_of_one_row(tmp_path):
    bern = Villain(tmp_path, "pressure", "lasso", "cv")
    rows = [Fold(Dealt(120, 7), f, held_out=True) for f in range(120)]
    questions = [{"features": np.arange(0), "fold": fold} for fold in rows]
    refused(bern, bern.ask(*questions[:3]), "model.folds = 5 with solver.seed = 0")
    own = {"features": np.arange(0), "fold": Fold(Dealt(5, 0, 10), 1, held_out=False)}
    assert not bern.ask(own).spec
    refused(bern, bern.ask({**own, "fold": Fold(Dealt(5, 0, 10), 5, held_out=True)}), "model.folds")
    refused(bern, bern.ask({**own, "fold": Fold(Dealt(5, 1), 0, held_out=False)}), "solver.seed = 0")
    refused(bern, bern.ask({"w": np.zeros(5), "fold": Fold(Dealt(5, 0, 10), 0, held_out=True)}), "held out")
    plain = Villain(tmp_path, "pressure", "lasso", 0.1)
    refused(plain, plain.ask(own), "model.lambda = 0.1 has no folds")


@pytest.mark.parametrize("more", [["patient_id"], ["hiv"], ["died"]])
def test_features_outside_the_study(tmp_path, more):
    bern = Villain(tmp_path, "pressure", "lasso", 0.1)
    wide = Agreement((*FEATURES, *more), (), ())
    reply = bern.ask({"features": np.arange(0)}, agreement=wide)
    refused(bern, reply, f"column {more[0]!r}, which is not in data.features")


def test_a_dictionary_of_levels(tmp_path):
    bern = Villain(tmp_path, "pressure", "lasso", 0.1)
    probe = Categories("diagnosis", ("cold", "gout"), "cold", True)
    reply = bern.ask({"features": np.arange(0)}, agreement=Agreement((*FEATURES, "diagnosis"), (probe,), ()))
    refused(bern, reply, "column 'diagnosis', which is not in data.features")
    probe = Categories("sex", (0, 1), 0, False)
    reply = bern.ask({"features": np.arange(0)}, agreement=Agreement(tuple(FEATURES), (probe,), ()))
    refused(bern, reply, "levels of 'sex', which is not in data.categorical")


def test_levels_that_few_rows_have_stay_hidden(tmp_path):
    frame = patients()
    frame.loc[[3, 40], "diagnosis"] = "zoster"
    more = {"data": {"features": [*FEATURES, "diagnosis"], "categorical": {"diagnosis": "agree"}}}
    bern = Villain(tmp_path, "pressure", "lasso", 0.1, frame, **more)
    levels = ("cold", "flu", "gout", "zoster")
    guessed = Agreement((*FEATURES, "diagnosis"), (Categories("diagnosis", levels, "cold", False),), ())
    problem = up.Problem(up.Squared(), up.L1(0.1), True).laid_out((7,), None)
    reply = bern.ask({"features": np.arange(0), "problem": problem}, agreement=guessed)
    assert reply.spec == {}
    at = guessed.feature_names.index("diagnosis=zoster")
    assert reply.arrays["0/0/mean_x"][at] == 0.0
    few = Agreement((*FEATURES, "diagnosis"), (Categories("diagnosis", ("cold",), "cold", True),), ())
    refused(bern, bern.ask({"features": np.arange(0)}, agreement=few), "leave out levels of 'diagnosis'")


def steep(bern, row, size):
    """Points between which the margin of one row alone crosses zero."""
    direction = np.random.default_rng(1).normal(size=4) / bern.X.std(axis=0)
    z = bern.X @ direction
    order = np.sort(z)
    at = int(np.searchsorted(order, z[row]))
    low, high = order[max(at - 1, 0)], order[min(at + 1, len(z) - 1)]
    ends = ((low + z[row]) / 2, (high + z[row]) / 2)
    return [np.append(size * direction, -size * end) for end in ends]


def test_steep_points_isolate_a_row_by_differences_of_gradients(tmp_path):
    bern = Villain(tmp_path)
    recovered = 0
    for row in range(40):
        one, other = (bern.ask({"w": w}) for w in steep(bern, row, 1e7))
        if one.arrays and other.arrays:
            found = 120 * (other.arrays["0/0/gradient"] - one.arrays["0/0/gradient"])
            recovered += np.allclose(np.abs(found[:4]), np.abs(bern.X[row]), rtol=1e-3)
    assert recovered == 0
    assert any("fewer than limits.minimum_rows = 10 rows" in said for said in bern.shown)
    assert all("the coordinator asked" in said for said in bern.shown if said)


def test_steep_points_are_found_between_others(tmp_path):
    bern = Villain(tmp_path)
    first, second = steep(bern, 60, 1e7)
    assert bern.ask({"w": first}).arrays
    for k in range(20):
        bern.ask({"w": np.append(np.full(4, 0.001 * k), 0.0)})
    refused(bern, bern.ask({"w": second}), "differ in fewer than limits.minimum_rows = 10 rows")


def test_steep_points_isolate_a_row_by_hessians(tmp_path):
    bern = Villain(tmp_path)
    direction = np.random.default_rng(1).normal(size=4) / bern.X.std(axis=0)
    z = bern.X @ direction
    w = np.append(1e4 * direction, -1e4 * np.median(z) - 1e-3)
    reply = bern.ask({"w": w, "working": np.arange(5), "solver": ProxNewton(10)})
    refused(bern, reply, "fewer than limits.minimum_rows = 10 rows")


def test_the_complement_of_a_fold_is_guarded_too(tmp_path):
    """Twelve rows carry the gradient, one of them in the fold: all rows less the others would be that row."""
    frame = patients()
    dealt = Dealt(5, 0, 10).of(0, "bern", 120)
    heavy = [*np.flatnonzero(dealt == 2)[:1], *np.flatnonzero(dealt != 2)[:11]]
    frame["age"] = np.where(np.arange(120) % 2, -1.0, 1.0) * np.random.default_rng(3).uniform(0.9, 1.0, 120)
    frame["died"] = (frame["age"] > 0).astype(int)
    frame.loc[heavy, "died"] = 1 - frame.loc[heavy, "died"]  # against the model, with residuals near 1
    w = np.array([30.0, 0.0, 0.0, 0.0, 0.0])
    fold = Fold(Dealt(5, 0, 10), 2, held_out=False)
    assert Villain(tmp_path, lam="cv", frame=frame).ask({"w": w}).arrays  # twelve rows are enough
    bern = Villain(tmp_path, lam="cv", frame=frame)
    refused(bern, bern.ask({"w": w, "fold": fold}), "it rests on fewer than limits.minimum_rows = 10 rows")


def test_losses_at_chosen_points_isolate_no_row(tmp_path):
    bern = Villain(tmp_path, lam="cv")
    held = Fold(Dealt(5, 0, 10), 0, held_out=True)
    inside = np.flatnonzero(Dealt(5, 0, 10).of(0, "bern", 120) == 0)
    few = Villain.__new__(Villain)
    few.frame, few.agreement = bern.frame.iloc[inside], bern.agreement
    models = np.array(steep(few, 12, 1e7))
    refused(bern, bern.ask({"models": models, "fold": held}), "differ in fewer than")
    fair = np.zeros((3, 5)) + np.arange(3)[:, None] * 1e-3
    assert bern.ask({"models": fair, "fold": held}).arrays["0/0/losses"].shape == (3,)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"problem": up.Poisson()}, "model.kind = 'logistic'"),
        ({"penalty": up.L1(0.01)}, "model.kind"),
        ({"intercept": False}, "model.intercept = True"),
        ({"lam": 0.5}, "model.lambda = 0.01"),
    ],
)
def test_another_problem(tmp_path, change, words):
    bern = Villain(tmp_path)
    problem = bern.problem.problem
    if "problem" in change:
        problem = replace(problem, loss=change["problem"])
    if "penalty" in change:
        problem = replace(problem, penalty=change["penalty"])
    if "intercept" in change:
        problem = replace(problem, intercept=False)
    if "lam" in change:
        problem = problem.with_lam(change["lam"])
    bound = problem.laid_out((4,), None)
    refused(bern, bern.ask({"w": np.zeros(bound.layout.size), "problem": bound}), words)


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        (ProxNewton(1), "min_rows=1 is not limits.minimum_rows = 10"),
        (ProxNewton(99), "min_rows=99 is not limits.minimum_rows = 10"),
        (SufficientStatistics(10), "solver.method = 'prox_newton'"),
        (Fista(10), "solver.method = 'prox_newton'"),
        (AndersonProxGradient(0), "second-order statistics"),
    ],
)
def test_another_solver(tmp_path, solver, words):
    bern = Villain(tmp_path, solver={"method": "prox_newton"})
    question = {"w": np.zeros(5), "working": np.arange(5), "solver": solver}
    refused(bern, bern.ask(question), words)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"w": np.zeros(5), "squares": np.arange(0)}, "'squares'"),
        ({"w": np.zeros(4)}, "'w'"),
        ({"w": np.full(5, np.nan)}, "'w'"),
        ({"w": np.zeros(5), "working": np.array([0, 0]), "solver": ProxNewton(10)}, "'working'"),
        ({"models": np.zeros((2, 5))}, "'models'"),
        ({"rows": np.arange(3)}, "'rows'"),
    ],
)
def test_words_that_no_solver_uses(tmp_path, question, words):
    bern = Villain(tmp_path)
    refused(bern, bern.ask(question), words)


def test_requests_that_the_solver_does_not_make(tmp_path):
    bern = Villain(tmp_path, "pressure", "lasso", 0.1)
    logistic = up.Problem(up.Logistic(), up.L1(0.1), True)
    reply = bern.about("bind", logistic)
    refused(bern, reply, "'bind'")
    assert not any(f"{y:g}" in reply.spec["refused"] for y in bern.frame["pressure"])
    for kind in ("spectra", "tally", "train"):
        refused(bern, bern.about(kind), f"{kind!r}")
    refused(bern, bern.about("value", w=np.zeros(4)), "'value'")
    refused(bern, bern.about("curve", u=np.eye(5)[0]), "'curve'")


def test_products_of_the_curvature_are_second_order(tmp_path):
    asked = {"solver": {"method": "fast_fedda"}}
    bern = Villain(tmp_path, "pressure", "lasso", 0.1, **asked)
    assert bern.about("curve", u=np.eye(5)[0]).arrays["product"].shape == (1, 5)
    for refuses in (("gram",), ("hessian",)):
        bern = Villain(tmp_path, "pressure", "lasso", 0.1, refuses=refuses, **asked)
        refused(bern, bern.about("curve", u=np.eye(5)[0]), "--refuse")


@pytest.mark.parametrize("u", [np.zeros(4), np.zeros(50), np.zeros((5, 1)), np.full(5, np.nan)])
def test_products_with_what_is_no_vector(tmp_path, u):
    """A vector that is too short would be read beyond its end."""
    bern = Villain(tmp_path, "pressure", "lasso", 0.1, solver={"method": "fast_fedda"})
    refused(bern, bern.about("curve", u=u), "expected (5,) finite numbers: are the versions the same?")


def test_losses_at_what_is_no_point(tmp_path):
    bern = Villain(tmp_path, "pressure", "lasso", 0.1, solver={"method": "fast_fedda"})
    words = "the loss at a point of shape (3,), and expected (4,) finite numbers: are the versions the same?"
    refused(bern, bern.about("value", w=np.zeros(3), intercept=np.array(0.0)), words)
    words = "the loss at a point with NaN or infinite numbers"
    refused(bern, bern.about("value", w=np.full(4, np.nan), intercept=np.array(0.0)), words)
    refused(bern, bern.about("value", w=np.zeros(4), intercept=np.array(np.inf)), words)


@pytest.mark.parametrize("n_outputs", [3, 10**9, -1, "1", True, None])
def test_the_columns_are_counted_for_the_studys_model_only(tmp_path, n_outputs):
    bern = Villain(tmp_path, "pressure", "lasso", 0.1, solver={"method": "fast_fedda"})
    assert bern.request("tally", {"n_outputs": 1}, {}).arrays
    reply = bern.request("tally", {"n_outputs": n_outputs}, {})
    refused(bern, reply, f"with {n_outputs!r} outputs, and model.kind = 'lasso' has 1 here")


@pytest.mark.parametrize("given", [{"scale": -1.0}, {"scale": np.nan}, {"p": 3}])
def test_scalings_that_are_none(tmp_path, given):
    bern = Villain(tmp_path, "pressure", "lasso", 0.1, model={"standardise": True})
    reply = bern.ask({"features": np.arange(0)}, scaling=scaling(**{"p": 4, **given}))
    refused(bern, reply, "have (4,) finite numbers: are the versions the same?")


def test_rows_at_no_position(tmp_path):
    bern = Villain(tmp_path)
    asked = Request(
        "ask", {"questions": [], "dtype": "float64", "n_clients": 3}, {"positions": np.array([0])}
    )
    refused(
        bern, bern.send(asked, bern.agreement), "n_clients, which is 2 at most: are the versions the same?"
    )


def test_what_is_no_fold(tmp_path):
    bern = Villain(tmp_path, "pressure", "lasso", "cv")
    reply = bern.ask({"features": np.arange(0), "fold": Dealt(5, 0, 10)})
    refused(bern, reply, "the rows of Dealt, which is no fold, and model.folds = 5")


def test_summaries_that_were_not_agreed(tmp_path):
    bern = Villain(tmp_path)
    spec, arrays = encode(ColumnSummary(), name="summary")
    refused(bern, bern.request("collect", {"summary": spec}, arrays), "model.standardise = False")
    spec, arrays = encode(OwnIntercept(bern.problem, np.zeros(5)), name="summary")
    refused(bern, bern.request("collect", {"summary": spec}, arrays), "model.intercept = True")


def test_scalings_of_the_coordinators_choice(tmp_path):
    frame = patients()
    frame.loc[17, "marker0"] = np.nan
    more = {"data": {"missing": "mean"}, "model": {"standardise": True}}
    bern = Villain(tmp_path, "pressure", "lasso", 0.1, frame, **more)
    question = {"features": np.arange(0)}
    fill = np.full(4, 1e9)
    refused(bern, bern.ask(question, scaling=scaling(4, fill=fill)), "fewer than limits.minimum_rows")
    assert bern.ask(question, scaling=scaling(4, fill=np.zeros(4))).arrays
    refused(bern, bern.ask(question, scaling=scaling(4, fill=np.ones(4))), "another scaling")


def test_too_many_questions_requests_and_numbers(tmp_path):
    bern = Villain(tmp_path, limits={"max_requests": 3})
    assert bern.study.max_questions == 1
    refused(bern, bern.ask({"w": np.zeros(5)}, {"w": np.ones(5) / 100}), "limits.max_questions = 1")
    points = [np.full(5, 1e-3 * k) for k in range(4)]
    for w in points[:3]:
        assert bern.ask({"w": w}).arrays
    assert bern.ask({"w": points[0]}).arrays  # the same once more tells nothing new
    refused(bern, bern.ask({"w": points[3]}), "limits.max_requests = 3")
    bern = Villain(tmp_path, limits={"max_numbers": 8})
    assert bern.ask({"w": points[0]}).arrays
    for _ in range(2):
        refused(bern, bern.ask({"w": points[1]}), "limits.max_numbers = 8")
    assert bern.ask({"w": points[0]}).arrays  # what has left tells nothing new
    assert bern.desk.policy.numbers <= 8


def test_a_question_under_another_envelope_is_another_one(tmp_path):
    """Rows scaled or centred otherwise give other sums."""
    question, more = {"features": np.arange(0)}, {"model": {"standardise": True}, "limits": {}}
    one, other = scaling(4), scaling(4, scale=2.0)
    for limit, most in (("max_requests", 1), ("max_numbers", 20)):
        more["limits"] = {limit: most, "minimum_sites": 1}
        bern = Villain(tmp_path, "pressure", "lasso", 0.1, **more)
        assert bern.ask(question, scaling=one).arrays
        assert bern.ask(question, scaling=one).arrays
        refused(bern, bern.ask(question, scaling=other), f"limits.{limit} = {most}")
        assert bern.ask(question, scaling=one).arrays


def test_an_agreement_that_is_refused_leaves_the_good_one_in_force(tmp_path):
    bern = Villain(tmp_path)
    assert bern.ask({"w": np.zeros(5)}).arrays
    few = Agreement(tuple(FEATURES[:3]), (), bern.agreement.classes)
    refused(bern, bern.ask({"w": np.zeros(5)}, agreement=few), "another agreement")
    assert bern.ask({"w": np.full(5, 1e-3)}).arrays


def test_what_comes_with_a_refused_scaling_is_not_taken(tmp_path):
    """Neither does it count as one of the agreements that a study may have."""
    more = {"model": {"standardise": True}, "limits": {"minimum_sites": 1}}
    bern = Villain(tmp_path, "pressure", "lasso", 0.1, **more)
    question = {"features": np.arange(0)}
    for scale in (1.0, 2.0):
        assert bern.ask(question, scaling=scaling(4, scale)).arrays
    few = Agreement(tuple(FEATURES[:3]), (), ())
    refused(bern, bern.ask(question, agreement=few, scaling=scaling(3, 3.0)), "another scaling")
    assert len(bern.desk.policy._taken["agreement"]) == 1
    assert bern.ask(question, scaling=scaling(4)).arrays


def test_local_steps_of_another_kind(tmp_path):
    asked = {"solver": {"method": "fedavg", "rounds": 5, "local_steps": 4, "batch_size": 16}}
    bern = Villain(tmp_path, "pressure", "lasso", 0.1, **asked)

    def train(algorithm, round=0, seed=0, w=None):
        spec, arrays = encode(algorithm, name="algorithm")
        problem, own = encode(bern.problem, name="problem")
        run = {"algorithm": spec, "seed": seed, "batch_size": 16, "states": "float64"}
        told = {"run": {**run, "memory": "nobody", "layout": None}, "problem": problem, "round": round}
        down = {"down/w": np.zeros(5) if w is None else w, "cohort": np.array([0])}
        return bern.request("train", {**told, "down": ["w"]}, arrays | own | down)

    assert train(up.FedAvg(step=1e-6, local_steps=4)).arrays["up"].size
    refused(bern, train(up.FedAvg(step=1e-6, local_steps=1)), "solver.local_steps = 4")
    refused(bern, train(up.FedMiD(step=1e-6, local_steps=4)), "solver.method = 'fedavg'")
    refused(bern, train(up.FedAvg(step=1e-6, local_steps=4), seed=1), "solver.seed = 0")
    refused(bern, train(up.FedAvg(step=1e-6, local_steps=4), round=5), "solver.rounds = 5")


@pytest.mark.parametrize(
    ("target", "kind", "lam", "more"),
    [
        ("pressure", "lasso", "cv", {"model": {"n_lambdas": 5}}),
        ("died", "logistic", "cv", {"model": {"n_lambdas": 5}}),
        ("visits", "poisson", 0.05, {"model": {"intercept": "sites"}}),
        ("stage", "multinomial", 0.01, {"solver": {"method": "anderson"}}),
        ("pressure", "lasso", 0.1, {"solver": {"method": "fast_fedda", "rounds": 3, "batch_size": 16}}),
    ],
)
def test_an_honest_study_is_answered_to_the_bit(files, tmp_path, target, kind, lam, more):
    """As by a desk without a guard."""
    asked = study(target, kind, lam, **more)
    at, exchanged = desks(asked, files), []

    class Reading(Direct):
        def exchange(self, requests):
            replies = super().exchange(requests)
            exchanged.extend((site, requests[site], replies[site]) for site in requests)
            return replies

    run_study(asked, Reading(at), tmp_path)
    plain = desks(asked, files)
    for site, request, reply in exchanged:
        envelope, inner = opened(request)
        if request.kind not in ("describe", "tell"):
            desk = plain[site]._prepared(envelope)
            desk.guard = None
            answer = desk.handle(inner)
            assert set(answer.arrays) == set(reply.arrays)
            for name, array in answer.arrays.items():
                np.testing.assert_array_equal(array, reply.arrays[name])


@pytest.mark.parametrize("lam", [0.1, "cv"])
def test_an_honest_study_with_hubers_loss_is_not_refused(files, tmp_path, lam):
    """Newton steps from zero would pass points at which the residual of one row alone is not clipped."""
    asked = study("pressure", "huber", lam, model={"n_lambdas": 5})
    at = desks(asked, files)
    result = run_study(asked, Direct(at), tmp_path)
    assert result.converged
    assert result.solver == "Anderson prox-gradient"
    assert "Hessians of Huber's loss can be about single rows: gradients were used." in result.notes


def test_clipped_residuals_isolate_a_row(tmp_path):
    bern = Villain(tmp_path, "pressure", "huber", 0.1, model={"delta": 0.01})
    y = np.sort(bern.frame["pressure"].to_numpy())
    ends = [np.append(np.zeros(4), (y[k] + y[k + 1]) / 2) for k in (59, 60)]
    assert bern.ask({"w": ends[0]}).arrays
    refused(bern, bern.ask({"w": ends[1]}), "differ in fewer than limits.minimum_rows = 10 rows")


def test_exponentials_of_few_rows_are_out_of_range(tmp_path):
    """Honest solvers try such points too: they are told that the loss is infinite, and take shorter steps."""
    frame = patients()
    frame["visits"] = np.random.default_rng(5).poisson(2.0, 120)
    bern = Villain(tmp_path, "visits", "poisson", 0.01, frame)
    top = np.append(3.0 * np.eye(4)[0], -200.0)  # e^z lies on the oldest patients
    weight = np.exp(bern.X @ top[:4] + top[4])
    assert weight.max() > 0.8 * weight.sum()
    reply = bern.ask({"w": top, "working": np.arange(5), "solver": ProxNewton(10)})
    assert {name.rpartition("/")[2] for name in reply.arrays} >= {"loss", "gradient", "hessian", "share"}
    for name, array in reply.arrays.items():
        if name.rpartition("/")[2] in ("loss", "gradient", "hessian"):
            assert np.isposinf(array).all()
    assert np.isfinite(bern.ask({"w": np.zeros(5)}).arrays["0/0/gradient"]).all()
    for k in range(14):
        reply = bern.ask({"w": top + 1e-3 * k})
    refused(bern, reply, "they keep resting on fewer than limits.minimum_rows = 10 rows")


@pytest.mark.parametrize("seed", [2, 5, 12])
def test_an_honest_study_of_counts_with_long_tails(tmp_path, seed):
    """A prox-Newton step that goes too far is taken back, and the result is that of the pooled rows."""
    rng = np.random.default_rng(seed)
    clients, at = {}, {}
    given = {"name": "a", "sites": ["a", "b"], "data": {"target": "y", "features": ["u", "v"]}}
    model = {"kind": "poisson", "lambda": 0.01, "standardise": False}
    asked = parse({**given, "model": model, "limits": {"grace": 0}})
    for site in "ab":
        X = np.exp(0.7 * rng.normal(size=(200, 2)))
        y = rng.poisson(np.exp(np.clip(0.8 * X[:, 0] - 1.0, None, 4.0)))
        pd.DataFrame({"u": X[:, 0], "v": X[:, 1], "y": y}).to_parquet(tmp_path / f"{site}.parquet")
        at[site] = StudyDesk(asked, site, tables_of.read(tmp_path / f"{site}.parquet"))
        clients[site] = (X, y.astype(float))
    result = run_study(asked, Direct(at), tmp_path / "results")
    known = up.FederatedPoissonRegressor(0.01).fit(up.FederatedData.from_clients(clients))
    np.testing.assert_allclose(result.coef, known.coef_, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("differing", "in_a_fold", "expected"), [(6, False, True), (6, True, False), (4, True, True)]
)
def test_half_of_the_rows_are_enough_within_a_fold(differing, in_a_fold, expected):
    """As for sums: a cross-validation asks at many points that lie close together."""
    seen, asked = Seen(10), np.ones(120, dtype=bool)
    asked[60:] = not in_a_fold
    weights = np.full((1, 120), 0.01)
    seen.remember(Point(weights.copy(), None, is_steep=True, jumps=True), asked)
    weights[0, :differing] = 0.02
    said = seen.isolates(Point(weights, None, is_steep=True, jumps=True), asked)
    assert (said == "it and an earlier one differ in") == expected
