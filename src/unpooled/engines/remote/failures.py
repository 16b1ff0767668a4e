"""What is done about holders that do not answer: asked again, and then named."""

from __future__ import annotations

from collections.abc import Mapping

from unpooled.engines.remote.messages import Failure, Holder, Reply, Request, Transport


class SiteLostError(RuntimeError):
    """Holders without whom there is no answer. ``reasons`` has a sentence for each."""

    def __init__(self, reasons: Mapping[Holder, str]):
        said = "; ".join(f"{holder!r}: {reason}" for holder, reason in sorted(reasons.items()))
        super().__init__(f"no answer from {said}")
        self.reasons = dict(reasons)


class BadReplyError(SiteLostError):
    """Holders that answered something else than they were asked."""


class DuplicateClientError(ValueError):
    """Two holders tell the same id, ``name``."""

    def __init__(self, name: Holder, count: int):
        super().__init__(f"{count} nodes say that they are {name!r}: every site must have an id of its own")
        self.name = name


class TooFewClientsError(RuntimeError):
    """A round in which fewer clients took part than have to. ``reasons`` has a sentence for each lost one."""

    def __init__(self, round: int, present: int, minimum: int, reasons: Mapping[str, str]):
        said = "; ".join(f"client {name}: {reason}" for name, reason in reasons.items())
        super().__init__(
            f"round {round + 1} has {present} of the {minimum} clients that must take part at least: {said}"
        )
        self.reasons = dict(reasons)


def exchange(
    transport: Transport, requests: Mapping[Holder, Request], retries: int
) -> tuple[dict[Holder, Reply], dict[Holder, str]]:
    """The replies, and why there is none; whoever fails is asked again, so many times."""
    replies: dict[Holder, Reply] = {}
    reasons: dict[Holder, str] = {}
    for _ in range(retries + 1):
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
    """The replies of all, or a ``SiteLostError`` that names those without one."""
    replies, reasons = exchange(transport, requests, retries)
    if reasons:
        raise SiteLostError(reasons)
    return replies
