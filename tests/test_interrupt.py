"""Ctrl-C is heard at the next round, whatever swallowed what it raised."""

import contextlib
import os
import select
import signal
import socket
import threading
import time
from dataclasses import dataclass

import pytest

import unpooled as up
from tests.runs import FAST, PROBLEM, go, same_bits
from unpooled._interrupt import deferred, recorded
from unpooled.engines.remote.client_server import ClientServer
from unpooled.engines.remote.data import RemoteData
from unpooled.engines.remote.messages import Direct
from unpooled.exact.clients import OracleClients
from unpooled.exact.fista import Fista

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="os.kill ends a process there instead of interrupting it"),
    pytest.mark.usefixtures("at_a_terminal"),
]


def press(signum=signal.SIGINT):
    os.kill(os.getpid(), signum)
    time.sleep(5)  # the signal ends it at once


def lost(signum=signal.SIGINT):
    with contextlib.suppress(BaseException):
        press(signum)


@dataclass
class At:
    """Loses an interrupt when it is called for the n-th time."""

    call: int
    calls: int = 0

    def __call__(self, *ignored):
        self.calls += 1
        if self.calls == self.call:
            lost()
        return 0.0


@pytest.fixture(params=["here", "remote"])
def data(request, small):
    return small if request.param == "here" else RemoteData.of(Direct({"site": ClientServer(small)}))


def test_a_run_whose_metric_swallows_it_ends_at_that_round(data):
    run = go(FAST, data, every=1, metrics={"n": At(4)})  # the first is at the start
    assert (run.status, run.state.round) == ("interrupted", 3)
    assert run.message == "Interrupted after round 3 of 12; simulate(…, resume=…) goes on."
    rest = go(FAST, data, every=1, metrics={"n": At(0)}, resume=run)
    same_bits(rest, go(FAST, data, every=1, metrics={"n": At(0)}))


def test_a_run_that_loses_it_before_the_first_round_does_none(small):
    assert go(FAST, small, metrics={"n": At(1)}).state.round == 0


def test_a_run_that_loses_it_while_numbers_are_chosen_does_no_round(small, monkeypatch):
    resolve = up.FedAvg.resolve
    monkeypatch.setattr(up.FedAvg, "resolve", lambda *given: (lost(), resolve(*given))[1])
    run = go(up.FedAvg(local_steps=4), small)
    assert (run.status, run.state.round) == ("interrupted", 0)


def test_a_run_whose_round_swallows_it_ends_with_that_round(data, monkeypatch):
    update, at = type(FAST).server_update, At(5)
    monkeypatch.setattr(type(FAST), "server_update", lambda *given: (at(), update(*given))[1])
    run = go(FAST, data)
    assert (run.status, run.state.round, at.calls) == ("interrupted", 5, 5)


def test_a_run_that_loses_it_in_the_last_round_is_interrupted_too(small):
    run = go(FAST, small, every=1, metrics={"n": At(13)})
    assert (run.status, run.state.round) == ("interrupted", 12)


@pytest.mark.parametrize("place", ["broadcast", "server_update"])
def test_a_solve_ends_at_the_round_that_swallows_it(data, monkeypatch, place):
    method, at = getattr(Fista, place), At(3)
    monkeypatch.setattr(Fista, place, lambda *given: (at(), method(*given))[1])
    with pytest.raises(KeyboardInterrupt):
        up.solve(PROBLEM, data, solver="fista")
    assert at.calls == 3


def test_a_certificate_whose_question_swallows_it_is_not_given(small, monkeypatch):
    ask = OracleClients.ask
    monkeypatch.setattr(OracleClients, "ask", lambda *given: (lost(), ask(*given))[1])
    run = go(FAST, small, certify=True)
    assert run.status == "completed"
    assert run.certificate is None
    assert "there is no certificate (interrupted)" in run.notes[-1]


def test_it_is_raised_at_the_next_check_and_the_handler_is_put_back():
    done = []

    def jobs():
        with recorded() as interrupt:
            interrupt.check()
            lost()
            done.append("the first job")
            interrupt.check()
            done.append("the second job")

    with pytest.raises(KeyboardInterrupt):
        jobs()
    assert done == ["the first job"]


def test_one_that_is_not_lost_is_raised_where_it_comes():
    with pytest.raises(KeyboardInterrupt), recorded():
        press()


def test_what_got_lost_around_a_block_is_known_in_it_and_the_other_way_round():
    with recorded() as outer:
        with recorded() as inner:
            lost()
        assert outer.came
        assert inner.came
        with recorded() as next_one:
            assert next_one.came
    with recorded() as afterwards:
        assert not afterwards.came


def test_a_handler_of_the_application_decides(small):
    """One that only takes note has the last word: the run goes on."""
    noted = []
    signal.signal(signal.SIGINT, lambda *signalled: noted.append(signalled))
    try:
        run = go(
            FAST, small, every=1, metrics={"n": lambda w: float(os.kill(os.getpid(), signal.SIGINT) or 0)}
        )
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert run.status == "completed"
    assert len(noted) == 13


def test_what_a_handler_of_the_application_raises_is_raised_again():
    def leave(signum, frame):
        raise SystemExit(7)

    def work():
        with recorded() as interrupt:
            lost()
            interrupt.check()

    signal.signal(signal.SIGINT, leave)
    try:
        with pytest.raises(SystemExit) as ended:
            work()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert ended.value.code == 7


def test_a_handler_installed_meanwhile_stays():
    def other(signum, frame):
        pass

    with recorded():
        signal.signal(signal.SIGINT, other)
    assert signal.signal(signal.SIGINT, signal.default_int_handler) is other


def test_a_service_that_is_stopped_counts_where_that_is_an_interrupt():
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with recorded() as interrupt:
            lost(signal.SIGTERM)
        assert interrupt.came
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_ignored_signals_stay_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with recorded():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_elsewhere_than_the_main_thread_signals_are_left_alone(small):
    def work():
        with recorded() as interrupt:
            interrupt.check()
            seen.append(signal.getsignal(signal.SIGINT))
        seen.append(go(FAST, small).status)

    seen = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler, "completed"]


def test_a_signal_that_another_thread_takes_waits_too():
    """Libraries have threads, and the system gives a signal to any that does not mask it."""
    done, steps = threading.Event(), []
    noticed, notice = socket.socketpair()
    notice.setblocking(False)
    before = signal.set_wakeup_fd(notice.fileno())
    other = threading.Thread(target=done.wait)
    other.start()

    def start_workers():
        with deferred():
            signal.pthread_kill(other.ident, signal.SIGINT)
            assert select.select([noticed], [], [], 60.0)[0]  # the interpreter has it
            for step in range(1000):
                steps.append(step)
                time.sleep(0)

    try:
        with pytest.raises(KeyboardInterrupt):
            start_workers()
    finally:
        done.set()
        other.join()
        signal.set_wakeup_fd(before)
        noticed.close()
        notice.close()
    assert len(steps) == 1000


class Dropping:
    """Python drops what ``__del__`` raises, and prints it where nobody keeps it from doing so."""

    def __del__(self):
        press()


def test_an_interrupt_that_python_drops_is_not_printed(small, capfd):
    def metric(w):
        Dropping()
        return 0.0

    run = go(FAST, small, every=1, metrics={"n": metric})
    assert (run.status, run.state.round) == ("interrupted", 0)
    assert capfd.readouterr().err == ""
