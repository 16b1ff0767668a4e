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
from unpooled.engines.flower.environment import app
from unpooled.engines.flower.records import NotOursError, reply_of, request_record
from unpooled.engines.flower.roster import LEEWAY, Place, Roster, post, pull
from unpooled.engines.flower.signing import ForgedError, Signatures
from unpooled.engines.remote.messages import Failure, Holder, Reply, Request
from unpooled.engines.retry import Retry

UNAVAILABLE = (3, 4, 5)  # Flower's codes for a message, a reply or a node that is gone
LOOK_SECONDS = 1.0  # between two checks of who is there
SLOW_SECONDS = 30.0  # after which ``tell`` learns for whom an exchange waits

Tell = Callable[[str, Mapping[str, Any]], None]
"""Called with "waiting", "gone" or "back", the ``sites``, and for how many ``seconds`` we wait for them."""

log = logging.getLogger("unpooled.runs.flower")


class GridTransport:
    """Carries requests to the nodes of a Flower run, which are named by their client ids.

    Parameters
    ----------
    grid : the Grid that Flower gives to a server app.
    timeout : seconds after which a node that has not answered counts as failed.
    quorum : once this many have answered, the others have ``grace`` seconds left; None waits for all.
    grace : see ``quorum``.
    return_seconds : how long to wait for a node that goes away while it is asked. When it is back it is asked
        again, whatever its node id; so is one that was restarted before Flower missed it.
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
        """The client ids of all nodes, sorted; ``DuplicateClientError`` where two nodes claim one id."""
        self.roster.check()
        return tuple(sorted(self.roster.look()))

    def wait_for(self, least: int, timeout: float) -> tuple[Holder, ...]:
        """Wait for at least ``least`` holders; ``TimeoutError`` where they do not come in time."""
        told = -1
        for attempt in Retry(seconds=timeout, pause=max(self.poll_seconds, 0.2)):
            here = self.holders() if len(list(self.grid.get_node_ids())) >= least else ()
            if len(here) >= least:
                return here
            if attempt.is_last:
                here = self.holders()
                names = ", ".join(map(repr, here)) or "none"
                raise TimeoutError(
                    f"{counted(least, 'site')} needed, and after {timeout:g} s {len(here)} are there: {names}"
                )
            if len(here) != told:
                told = len(here)
                log.info("waiting for sites: %d of at least %d are there", told, least)
        raise AssertionError("the last attempt returns or raises")

    def exchange(self, requests: Mapping[Holder, Request]) -> dict[Holder, Reply | Failure]:
        """Ask each holder; whoever does not answer in time, or cannot, has a ``Failure``."""
        under_way = Exchange(self, requests)
        for _ in Retry(pause=self.poll_seconds):
            if not under_way.is_open():
                break
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
        """Read the replies that have arrived; whether there is someone to wait for."""
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
        """What a node answered; a failure where somebody else may have answered for it."""
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
        """Ask those that are there and not yet asked, and those that were restarted meanwhile."""
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
        """Report those that are gone, once."""
        new = set(names) - self.missed
        self._tell("gone", new, self.transport.return_seconds)
        self.missed |= new

    def _tell(self, event: str, names: Iterable[Holder], seconds: float) -> None:
        if self.transport.tell is not None and (sites := sorted(names)):
            self.transport.tell(event, {"sites": sites, "seconds": seconds})


def answer(name: Holder, message: Any) -> Reply | Failure:
    """What a node answered."""
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


class RoundMessages:
    """The messages that a strategy hands to Flower's loop in a round, and their replies."""

    def __init__(self, transport: GridTransport):
        self.transport = transport
        self._sent: list[tuple[Any, Holder]] = []

    def write(self, requests: Mapping[Holder, Request], kind: str, server_round: int) -> list[Any]:
        """A message to each holder that is there."""
        nodes = self.transport.roster.look()
        self._sent = [
            (
                app().Message(
                    content=request_record(request),
                    dst_node_id=nodes[holder].node,
                    message_type=kind,
                    group_id=str(server_round),
                    ttl=self.transport.timeout + LEEWAY,
                ),
                holder,
            )
            for holder, request in requests.items()
            if holder in nodes
        ]
        return [message for message, _ in self._sent]

    def read(self, replies: Iterable[Any]) -> dict[Holder, Reply | Failure]:
        """Replies by holder. The id of the message tells: Flower's own errors come from no node."""
        holders = {message.metadata.message_id: holder for message, holder in self._sent}
        found: dict[Holder, Reply | Failure] = {}
        for reply in replies:
            holder = holders.get(reply.metadata.reply_to_message_id)
            if holder is not None:
                found[holder] = answer(holder, reply)
        return found
