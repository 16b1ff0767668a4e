"""Holders that do not answer: ask them again, then name them."""

from __future__ import annotations

from collections.abc import Mapping

from unpooled.engines.remote.messages import Failure, Holder, Reply, Request, Transport
from unpooled.engines.retry import Retry


class SiteLostError(RuntimeError):
    """Holders that do not answer, and are needed. ``reasons`` has a sentence for each."""

    def __init__(self, reasons: Mapping[Holder, str]):
        said = "; ".join(f"{holder!r}: {reason}" for holder, reason in sorted(reasons.items()))
        super().__init__(f"no answer from {said}")
        self.reasons = dict(reasons)


class BadReplyError(SiteLostError):
    """Holders that answered something other than what they were asked."""


class DuplicateClientError(ValueError):
    """Two holders claim the same id, ``name``."""

    def __init__(self, name: Holder, count: int):
        super().__init__(f"{count} nodes say that they are {name!r}: every site must have an id of its own")
        self.name = name


class TooFewClientsError(RuntimeError):
    """Too few clients took part in a round. ``reasons`` has a sentence for each that is missing."""

    def __init__(self, round: int, present: int, minimum: int, reasons: Mapping[str, str]):
        said = "; ".join(f"client {name}: {reason}" for name, reason in reasons.items())
        took_part = "only 1 client" if present == 1 else f"only {present} clients" if present else "no client"
        required = "1 is" if minimum == 1 else f"{minimum} are"
        super().__init__(f"round {round + 1}: {took_part} took part; {required} required ({said})")
        self.reasons = dict(reasons)


def exchange(
    transport: Transport, requests: Mapping[Holder, Request], retries: int
) -> tuple[dict[Holder, Reply], dict[Holder, str]]:
    """The replies, and the reason for each missing one. Ask those that fail again, ``retries`` times."""
    replies: dict[Holder, Reply] = {}
    reasons: dict[Holder, str] = {}
    for _ in Retry(tries=retries + 1):
        missing = {holder: requests[holder] for holder in requests if holder not in replies}
        if not missing:
            break
        for holder, answer in transport.exchange(missing).items():
            if isinstance(answer, Failure):
                reasons[holder] = answer.reason
            else:
                replies[holder] = answer
    silent = {holder for holder in requests if holder not in replies}
    return replies, {holder: reasons.get(holder, "no answer") for holder in silent}


def exchange_all(
    transport: Transport, requests: Mapping[Holder, Request], retries: int
) -> dict[Holder, Reply]:
    """Every holder's reply; ``SiteLostError`` names those without one."""
    replies, reasons = exchange(transport, requests, retries)
    if reasons:
        raise SiteLostError(reasons)
    return replies
