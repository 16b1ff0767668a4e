"""A transport that waits: for sites to join, and for one that was lost to come back."""

from __future__ import annotations

import time
from collections.abc import Mapping

from unpooled._wording import printable
from unpooled.engines.remote.failures import DuplicateClientError, SiteLostError
from unpooled.engines.remote.messages import Failure, Holder, Reply, Request, Through, Transport
from unpooled.study.config import StoppedError, Study
from unpooled.study.events import Watch

PAUSE = 0.5  # seconds between two looks at who is there
REFUSED = "refused"  # the name under which a site says why it does not answer


class RefusalError(SiteLostError):
    """Sites that are there and do not answer."""


class Patient(Through):
    """Asks again whoever does not answer, for ``grace`` seconds more; then a ``SiteLostError``.

    ``awaited`` are sites that are waited for once there is something to ask.
    """

    def __init__(self, transport: Transport, study: Study, watch: Watch):
        super().__init__(transport)
        self.study, self.watch = study, watch
        self.awaited: tuple[str, ...] = ()

    def exchange(self, requests: Mapping[Holder, Request]) -> dict[Holder, Reply | Failure]:
        """All replies. Only of those who were to train there may be failures: a round can do without some."""
        if self.awaited:
            gathered(self.study, self.transport, self.awaited, len(self.awaited), self.watch)
            self.awaited = ()
        replies: dict[Holder, Reply | Failure] = {}
        left, began, is_told = dict(requests), time.monotonic(), False
        while left:
            found = self.transport.exchange(left)
            answers = {site: each for site, each in found.items() if isinstance(each, Reply)}
            refused = {
                site: printable(str(r.spec[REFUSED])) for site, r in answers.items() if REFUSED in r.spec
            }
            if refused:  # an answer too: to ask again would bring the same
                raise RefusalError(refused)
            replies |= answers
            left = {site: request for site, request in left.items() if site not in replies}
            reasons = {site: _reason(found.get(site)) for site in left}
            if not left:
                break
            if all(request.kind == "train" for request in left.values()):
                replies |= {site: Failure(reason) for site, reason in reasons.items()}
                self.watch("lost", {"sites": reasons, "seconds": 0.0})
                break
            spent = time.monotonic() - began
            if spent >= self.study.grace:
                raise SiteLostError(reasons)
            if not is_told:
                self.watch("lost", {"sites": reasons, "seconds": self.study.grace - spent})
                is_told = True
            time.sleep(min(PAUSE, max(self.study.grace - spent, 0.0)))
        return {site: replies[site] for site in requests}


def gathered(
    study: Study, transport: Transport, wanted: tuple[str, ...], least: int, watch: Watch
) -> list[str]:
    """Wait for the sites: for all of ``wanted``, or for ``least`` and then ``grace`` seconds more."""
    began = time.monotonic()
    enough, known, twins = float("inf"), None, ""
    here: tuple[Holder, ...] = ()
    while True:
        try:
            here, twins = transport.holders(), ""
        except DuplicateClientError as error:  # whose rows are meant only the sites can settle
            if twins != error.name:
                twins = str(error.name)
                text = f"two have joined as {twins}: nothing begins until one of them leaves"
                watch("note", {"text": text})
        there = [site for site in wanted if site in here and not twins]
        now = time.monotonic()
        if there != known and not twins:
            watch("joined", {"sites": there, "wanted": list(wanted), "least": least})
            known = there
            enough = now + study.grace if len(there) >= least else float("inf")
        if not twins and (len(there) == len(wanted) or now >= enough):
            return there
        if now - began >= study.join_timeout:
            missing = ", ".join(site for site in wanted if site not in there)
            why = f"two have joined as {twins}" if twins else f"missing: {missing}"
            raise StoppedError(
                f"{len(there)} of at least {least} sites joined within {study.join_timeout:g} s "
                f"(limits.join_timeout); {why}"
            )
        time.sleep(PAUSE)


def _reason(found: Reply | Failure | None) -> str:
    return printable(found.reason) if isinstance(found, Failure) else "no answer"
