"""Requests to Flower's nodes and their replies, over the Grid of a server app.

Where the seconds of a round go with Flower's own SuperNodes: one that has nothing to do looks for messages
every 3 s, starts a new process for each, and looks every 0.5 s whether that has answered. None of it can be
set. What can be is: here replies are looked for every ``poll_seconds`` (Flower's own loop waits 3 s), and a
SuperNode looks every ``environment.POLL_SECONDS`` for a process to start (Flower's own: 1 s). The sites of a
study have a ``node`` of ours, with which an exchange takes 0.3 to 2.5 s.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from unpooled._wording import counted
from unpooled.engines.flower.mailbox import post, pull
from unpooled.engines.flower.records import NotOursError, reply_of, request_record
from unpooled.engines.flower.roster import Place, Roster
from unpooled.engines.flower.signing import ForgedError, Signatures
from unpooled.engines.remote.messages import Failure, Holder, Reply, Request

UNAVAILABLE = (3, 4, 5)  # Flower's codes for a message, a reply or a node that is gone
LOOK_SECONDS = 1.0  # between two looks at who is there
SLOW_SECONDS = 30.0  # after which it is told for whom an exchange waits

Tell = Callable[[str, Mapping[str, Any]], None]
"""Told "waiting", "gone" and "back", with ``sites``, and ``seconds`` for which they are waited for."""

log = logging.getLogger("unpooled.runs.flower")


class GridTransport:
    """Carries requests to the nodes of a Flower run, which are named by their client ids.

    Parameters
    ----------
    grid : the Grid that Flower gives to a server app.
    timeout : seconds after which a node that has not answered counts as failed.
    quorum : once so many have answered, the others have ``grace`` seconds left; None waits for all.
    grace : see ``quorum``.
    return_seconds : how long a node that has gone while it was asked may take to come back. Then it is asked
        again, whatever its node id; as is one that was started again before Flower missed it.
    hello_seconds : how long a node may take to tell its client id.
    poll_seconds : how often replies are looked for.
    tell : told of nodes that are slow, gone or back.
    signatures : with which requests are signed and replies checked, where clients want it (see ``node``).
    """

    def __init__(
        self,
        grid: Any,
        *,
        timeout: float = 600.0,
        quorum: int | None = None,
        grace: float = 10.0,
        return_seconds: float = 60.0,
        hello_seconds: float = 30.0,
        poll_seconds: float = 0.1,
        tell: Tell | None = None,
        signatures: Signatures | None = None,
    ):
        numbers = {"timeout": timeout, "grace": grace, "return_seconds": return_seconds}
        for name, number in {**numbers, "hello_seconds": hello_seconds, "poll_seconds": poll_seconds}.items():
            if not number >= 0.0:
                raise ValueError(f"{name} must be a number of seconds ≥ 0, got {number!r}")
        if quorum is not None and quorum < 1:
            raise ValueError(f"quorum must be a whole number ≥ 1, got {quorum!r}")
        self.grid, self.timeout, self.quorum, self.grace = grid, timeout, quorum, grace
        self.return_seconds, self.poll_seconds, self.tell = return_seconds, poll_seconds, tell
        self.signatures = signatures
        self.roster = Roster(grid, poll_seconds, hello_seconds)

    def holders(self) -> tuple[Holder, ...]:
        """The client ids of all nodes that are there, sorted; ``DuplicateClientError`` where two have one."""
        self.roster.check()
        return tuple(sorted(self.roster.look()))

    def wait_for(self, least: int, timeout: float) -> tuple[Holder, ...]:
        """The holders, once there are at least so many; ``TimeoutError`` where there are not in time."""
        deadline, told = time.monotonic() + timeout, -1
        while True:
            here = self.holders() if len(list(self.grid.get_node_ids())) >= least else ()
            if len(here) >= least:
                return here
            if time.monotonic() > deadline:
                here = self.holders()
                names = ", ".join(map(repr, here)) or "none"
                raise TimeoutError(
                    f"{counted(least, 'site')} needed, and after {timeout:g} s {len(here)} are there: {names}"
                )
            if len(here) != told:
                told = len(here)
                log.info("waiting for sites: %d of at least %d are there", told, least)
            time.sleep(max(self.poll_seconds, 0.2))

    def exchange(self, requests: Mapping[Holder, Request]) -> dict[Holder, Reply | Failure]:
        """Ask each holder; whoever does not answer in time, or cannot, has a ``Failure``."""
        under_way = Exchange(self, requests)
        while under_way.is_open():
            time.sleep(self.poll_seconds)
        return under_way.answers()

    def close(self) -> None:
        """Nothing was started: the Grid is Flower's."""


class Exchange:
    """One round of requests: who was asked, who has answered, who is gone and may come back."""

    def __init__(self, transport: GridTransport, requests: Mapping[Holder, Request]):
        self.transport, self.requests = transport, dict(requests)
        self.began = self.looked = time.monotonic()
        self.closing = self.began + transport.timeout
        self.heard: dict[Holder, Reply | Failure] = {}
        self.asked: dict[str, tuple[Holder, Place]] = {}
        self.lost: dict[Holder, float] = {}  # until when who has gone may come back
        self.gone = set(requests)
        self.missed = set[Holder]()  # those of whom it was told that they are gone
        self.slow = self.began + SLOW_SECONDS
        self._ask(transport.roster.look())
        self._miss(self.gone)

    def is_open(self) -> bool:
        """Take in what has come; whether there is someone to wait for."""
        transport = self.transport
        found = pull(transport.grid, self.asked)
        now = time.monotonic()  # a reply that was cut off in the middle holds up Flower's pull for minutes
        for number, message in found.items():
            name, _ = self.asked.pop(number)
            if message.has_error() and message.error.code in UNAVAILABLE:
                self.gone.add(name)
            else:
                self.heard[name] = self._checked(name, message)
        self._miss(self.gone)
        if (self.asked or self.gone) and now - self.looked >= LOOK_SECONDS:
            self.looked = now
            self._ask(transport.roster.look(patient=False))
        if self.asked and now >= self.slow:
            self.slow = float("inf")
            self._tell("waiting", (name for name, _ in self.asked.values()), now - self.began)
        replies = sum(isinstance(each, Reply) for each in self.heard.values())
        if transport.quorum is not None and replies >= transport.quorum:
            self.closing = min(self.closing, now + transport.grace)
        until = [self.lost.setdefault(name, now + transport.return_seconds) for name in self.gone]
        return (bool(self.asked) or any(now < each for each in until)) and now < self.closing

    def _checked(self, name: Holder, message: Any) -> Reply | Failure:
        """What a node has answered; a failure where somebody else may have."""
        found, signatures = answer(name, message), self.transport.signatures
        if isinstance(found, Reply) and signatures is not None:
            try:
                signatures.check(name, self.requests[name], message)
            except ForgedError as error:
                return Failure(str(error))
        return found

    def answers(self) -> dict[Holder, Reply | Failure]:
        """Everyone's reply or failure, in the order of the requests."""
        seconds = time.monotonic() - self.began
        late = {name: Failure(f"did not answer within {seconds:.0f} s") for name in self.requests}
        gone = {name: Failure(f"is not connected (waited {seconds:.0f} s)") for name in self.gone}
        every = {**late, **gone, **self.heard}
        return {name: every[name] for name in self.requests}

    def _ask(self, places: Mapping[Holder, Place]) -> None:
        """Ask those who are yet to be asked and are there, and those who were started again meanwhile."""
        moved = {n: name for n, (name, place) in self.asked.items() if places.get(name, place) != place}
        for number, name in moved.items():
            del self.asked[number]
            self.gone.add(name)
        self._miss(moved.values())
        there = {places[name].node: name for name in sorted(self.gone) if name in places}
        seconds = max(0.0, self.closing - time.monotonic())
        requests = {node: self.requests[name] for node, name in there.items()}
        grid, signatures = self.transport.grid, self.transport.signatures

        def record(node: int, request: Request) -> Any:
            if signatures is None:
                return request_record(request)
            return signatures.record(request, there[node], grid.run.run_id)

        for number, node in post(grid, requests, seconds, record).items():
            name = there[node]
            self.asked[number] = name, places[name]
            self.gone.remove(name)
            self.lost.pop(name, None)
        self._tell("back", self.missed - self.gone, 0.0)
        self.missed &= self.gone

    def _miss(self, names: Iterable[Holder]) -> None:
        """Tell of those who have gone, once."""
        new = set(names) - self.missed
        self._tell("gone", new, self.transport.return_seconds)
        self.missed |= new

    def _tell(self, event: str, names: Iterable[Holder], seconds: float) -> None:
        if self.transport.tell is not None and (sites := sorted(names)):
            self.transport.tell(event, {"sites": sites, "seconds": seconds})


def answer(name: Holder, message: Any) -> Reply | Failure:
    """What a node has answered."""
    if message.has_error():
        return Failure(reason(message.error))
    try:
        told, reply = reply_of(message.content)
    except (NotOursError, ValueError, KeyError, TypeError) as error:
        return Failure(f"sent what cannot be read: {error}")
    if told != name:
        return Failure(f"says that it is client {told!r}")
    return reply


def reason(error: Any) -> str:
    """Flower's error in words."""
    words = " ".join((error.reason or "").split())
    foreign = re.fullmatch(r"<class '(?:\w+\.)*(\w+)'>:<'(.*)'>", words)
    if foreign:
        words = f"{foreign[1]}: {foreign[2]}"
    return words or f"failed without a reason (Flower's code {error.code})"
