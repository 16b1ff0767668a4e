"""Holders that are silent or send what they should not: named, left out, or the end of a run."""

import numpy as np
import pytest

import unpooled as up
from tests.remote.desks import Faulty, apart, desks, silent
from tests.runs import ALGORITHMS, FAST, PROBLEM, go
from unpooled.engines.remote.data import RemoteData
from unpooled.engines.remote.engine import Remote
from unpooled.engines.remote.failures import SiteLostError, TooFewClientsError
from unpooled.engines.remote.messages import Reply

BAD = "site 4"


def faulty(data, fault):
    return RemoteData.of(Faulty(desks(data), fault), weights=data.weights)


def changed(**arrays):
    """A fault: the reply of one site has other arrays."""

    def fault(holder, request, reply):
        if holder != BAD or request.kind != "train":
            return reply
        new = {name: change(reply.arrays.get(name)) for name, change in arrays.items()}
        return Reply(reply.spec, {k: v for k, v in {**reply.arrays, **new}.items() if v is not None})

    return fault


def told(**spec):
    def fault(holder, request, reply):
        bad = holder == BAD and request.kind == "train"
        return Reply({**reply.spec, **spec}, reply.arrays) if bad else reply

    return fault


FAULTS = {
    "NaN": (changed(up=lambda u: np.full_like(u, np.nan)), "its upload is not finite"),
    "shape": (changed(up=lambda u: u[:, :, 1:]), r"'up' has shape \(1, 1, 39\), expected \(1, 1, 40\)"),
    "dtype": (changed(up=lambda u: u.astype("f4")), "'up' has dtype float32, expected float64"),
    "norm": (changed(up=lambda u: 1e9 * u + 1e9), r"its upload has the norm [\d.]+e\+\d\d, above 1e\+06"),
    "stale": (told(round=0), "its reply is of round 1, not of round 2"),
    "no round": (told(round=None), "its reply is of no round, not of round 1"),
    "names": (told(names=["increment"]), r"it sent \['increment'\], not dual_increment"),
    "missing": (changed(up=lambda u: None), "its reply has no 'up'"),
    "twice": (changed(clients=lambda c: np.repeat(c, 2)), "it sent the upload of a client twice"),
    "another": (changed(clients=lambda c: c + 1), "the uploads of 1 of its clients are missing"),
    "silent": (silent(BAD), "its line is dead"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_the_round_goes_on_without_the_offender(small, kind):
    fault, words = FAULTS[kind]
    engine = Remote(minimum=11, norm_bound=1e6, retries=0)
    run = go(FAST, faulty(small, fault), cohort=None, rounds=3, engine=engine)
    assert run.status == "completed"
    assert run.ledger.client_updates == 36 - (2 if kind == "stale" else 3)
    [note] = run.notes
    assert note.startswith("client 4 was left out of ")
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(run.w, go(FAST, small, cohort=None, rounds=3).w)
    whole = Remote(norm_bound=1e6, retries=0)
    if kind == "NaN":
        run = go(FAST, faulty(small, fault), cohort=None, rounds=3, engine=whole)
        assert run.status == "diverged"
        assert run.message == "The upload of client 4 was not finite in round 1."
        return
    with pytest.raises(TooFewClientsError, match=rf"only 11 clients .* 12 are required .client 4: {words}"):
        go(FAST, faulty(small, fault), cohort=None, rounds=3, engine=whole)


@pytest.mark.parametrize("weighting", ["renormalised", "unbiased"])
def test_the_weights_are_those_of_who_took_part(small, weighting):
    """A federation of the others, with their π_k in proportion, is what remains."""
    engine = Remote(minimum=2, retries=0)
    options = {"cohort": None, "batch_size": None, "rounds": 5, "weighting": weighting}
    run = go(FAST, faulty(small, silent(BAD)), engine=engine, **options)
    others = small.subset([name for name in small.ids if name != 4])
    np.testing.assert_allclose(run.w, go(FAST, others, **options).w, rtol=1e-10, atol=1e-12)


def test_who_fails_once_is_asked_again(small):
    data = faulty(small, silent(BAD, first=1, times=1))
    run = go(FAST, data, engine=Remote(retries=1))
    np.testing.assert_array_equal(run.w, go(FAST, small).w)
    assert run.notes == []


def test_only_rounds_that_count_are_remembered(small):
    """A site whose reply of a round is lost must not remember that round."""
    scaffold = ALGORITHMS[-1]
    lost = silent(BAD, first=2, times=2)
    options = {"cohort": None, "rounds": 8}
    at_desks = go(scaffold, faulty(small, lost), engine=Remote(minimum=11, retries=0), **options)
    lost = silent(BAD, first=2, times=2)
    at_server = go(
        scaffold, faulty(small, lost), engine=Remote(minimum=11, retries=0, keeps="server"), **options
    )
    np.testing.assert_array_equal(at_desks.w, at_server.w)
    assert at_desks.memory.tolist() == [7] * 12
    assert (at_desks.w != go(scaffold, small, **options).w).any()


def test_a_desk_that_forgot_says_so(small):
    scaffold, transport = ALGORITHMS[-1], desks(small)
    data = RemoteData.of(transport)
    half = go(scaffold, data, cohort=None, rounds=3)
    state = transport.servers[BAD].state()
    transport.servers[BAD].memory.kept.clear()
    with pytest.raises(TooFewClientsError, match=r"client 4 has lost what it remembered of round 3"):
        go(scaffold, data, cohort=None, rounds=6, resume=half)
    transport.servers[BAD].restore(*state)
    rest = go(scaffold, data, cohort=None, rounds=6, resume=half)
    np.testing.assert_array_equal(rest.w, go(scaffold, small, cohort=None, rounds=6).w)


def test_an_exact_answer_needs_every_site(small):
    data = faulty(small, silent(BAD, kind="ask"))
    with pytest.raises(SiteLostError, match=r"no answer from 'site 4': its line is dead") as caught:
        up.solve(PROBLEM, data)
    assert caught.value.reasons == {BAD: "its line is dead"}
    once = faulty(small, silent(BAD, kind="ask", times=1))
    np.testing.assert_array_equal(up.solve(PROBLEM, once).w, up.solve(PROBLEM, small).w)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: np.full(a.shape, np.nan), "holds NaN"),
        (lambda a: np.ones(3), r"has shape \(3,\)"),
        (lambda a: np.array(["x"]), "has dtype <U1"),
    ],
)
def test_exact_answers_are_checked(small, change, words):
    def fault(holder, request, reply):
        if holder != BAD or request.kind != "ask":
            return reply
        key = next(name for name in reply.arrays if name.endswith("mean_xt"))
        return Reply(reply.spec, {**reply.arrays, key: change(reply.arrays[key])})

    with pytest.raises(SiteLostError, match=rf"'site 4': its mean_xt {words}"):
        up.solve(PROBLEM, faulty(small, fault))


def test_what_federations_are_refused(small):
    one, two = (up.FederatedData.from_arrays(small.X, small.y, np.zeros(360, int)) for _ in "ab")
    from unpooled.engines.remote.client_server import ClientServer
    from unpooled.engines.remote.messages import Direct

    with pytest.raises(ValueError, match=r"client id 0 is held by both 'a' and 'b'"):
        RemoteData.of(Direct({"a": ClientServer(one), "b": ClientServer(two)}))
    other = up.FederatedData.from_arrays(small.X[:, :3], small.y, np.ones(360, int))
    with pytest.raises(ValueError, match=r"'a' and 'b' differ in row_shape: \[40\] there, \[3\] here"):
        RemoteData.of(Direct({"a": ClientServer(one), "b": ClientServer(other)}))
    with pytest.raises(ValueError, match="no holder of rows has joined"):
        RemoteData.of(Direct({}))
    with pytest.raises(ValueError, match=r"client 0: its targets do not fit Logistic"):
        up.solve(up.Problem(up.Logistic(), up.L1(0.1)), apart(small))
