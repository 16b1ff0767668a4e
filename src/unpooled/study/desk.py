"""A site in a study: it describes its table, prepares its rows as agreed, and answers what it may.

Every request is held against the site's own copy of the study (``policy``), every reply against what the
site refuses; then its owner may be asked, it is written to the audit file, and only then given to whatever
carries it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from unpooled._validation import listing
from unpooled._wording import printable
from unpooled.engines.remote.client_server import ClientServer
from unpooled.engines.remote.messages import Reply, Request
from unpooled.engines.remote.specs import key_of
from unpooled.study.accepted import check_agreement, check_center, check_scaling
from unpooled.study.agreement import Agreement
from unpooled.study.audit import Audit
from unpooled.study.config import Study, StudyError
from unpooled.study.description import describe, unfits
from unpooled.study.design import encoded, federated
from unpooled.study.envelope import Envelope, opened
from unpooled.study.patience import REFUSED
from unpooled.study.policy import Policy
from unpooled.study.sharing import RESULTS
from unpooled.study.table import Table

Say = Callable[[Request, Reply], None]
log = logging.getLogger("unpooled.study")


class StudyDesk:
    """A site's rows and what it is asked about them.

    Parameters
    ----------
    study, site, table : whose rows in which study.
    audit : where questions and replies are written before these leave.
    refuses : kinds of statistics that do not leave, such as "gram" and "hessian".
    say : told of every request and reply, once the reply may leave.
    note : told in words what the sites have agreed to leave out.
    approve : asked whether an answer may leave, before it does.
    """

    def __init__(
        self,
        study: Study,
        site: str,
        table: Table,
        *,
        audit: Audit | None = None,
        refuses: tuple[str, ...] = (),
        say: Say | None = None,
        note: Callable[[str], None] | None = None,
        approve: Callable[[Request, Reply], bool] | None = None,
    ):
        self.study, self.site, self.table = study, site, table
        self.audit, self.refuses, self.say, self.note, self.approve = audit, refuses, say, note, approve
        self.policy = Policy(study, site, refuses)
        self.answers = 0
        self.told: list[Mapping[str, Any]] = []
        self._desk: tuple[str, ClientServer] | None = None

    def handle(self, request: Request) -> Reply:
        """The answer; what goes wrong is an answer too, in words that hold no values."""
        try:
            reply = self._answered(request)
        except StudyError as error:
            reply = Reply({REFUSED: str(error)}, {})
        except Exception as error:
            log.exception("a request %r could not be answered", request.kind)
            reply = Reply({REFUSED: f"{type(error).__name__}; the site's own log says more"}, {})
        is_answer = request.kind != "tell" and REFUSED not in reply.spec
        if is_answer and self.approve is not None and not self.approve(request, reply):
            reply = Reply({REFUSED: f"its owner does not approve of this answer to {request.kind!r}"}, {})
        self.answers += 1
        if self.audit is not None:
            try:
                self.audit.write(self.answers, request, reply)
            except OSError as error:
                reply = Reply({REFUSED: f"its audit file cannot be written: {error.strerror}"}, {})
        if self.say is not None:
            self.say(request, reply)
        return reply

    def _answered(self, request: Request) -> Reply:
        envelope, inner = opened(request)
        if request.kind == "describe":
            differ = self.study.differences(inner.spec.get("settings", {}))
            if differ:
                raise StudyError("its study.toml is another one: " + "; ".join(differ))
            return Reply(describe(self.study, self.site, self.table, self.refuses).plain(), {})
        if request.kind == "tell":
            said = {name: _printable(each) for name, each in inner.spec.items() if name != RESULTS}
            if RESULTS in inner.spec and self.study.share_results:
                said[RESULTS] = inner.spec[RESULTS]  # made plain when it is shown or written
            self.told.append(said)
            return Reply({}, {})
        if envelope.digest != self.study.digest:
            raise StudyError("its study.toml is not the coordinator's")
        if envelope.agreement is None:
            raise StudyError(f"a request {request.kind!r} came before the sites had agreed on their columns")
        digest = self.policy.request(inner, _key(envelope))
        reply = self.policy.without_squares(self._prepared(envelope).handle(inner))
        self.policy.leaving(reply, digest)
        return reply

    def _prepared(self, envelope: Envelope) -> ClientServer:
        """The desk with rows as agreed; made once."""
        agreement, scaling = envelope.agreement, envelope.scaling
        assert agreement is not None
        key = _key(envelope)
        if self._desk is None or self._desk[0] != key:
            if unfits(self.study, self.table, self.site):
                raise StudyError("its table does not fit the study")
            check_agreement(self.study, self.site, self.table, agreement)
            X, y = encoded(self.study, self.site, agreement, self.table)
            check_scaling(self.study, self.site, X, scaling)
            check_center(self.study, envelope.center)
            y = y - (envelope.center or 0.0)
            prepared = None if scaling is None else (scaling.shift, scaling.scale, scaling.fill)
            data = federated(self.site, X, y, agreement.feature_names, prepared)
            self.policy.prepare(envelope)  # last: the rows and what was agreed change together
            self._say_left_out(agreement)
            self._desk = (key, ClientServer(data, guard=self.policy))
        return self._desk[1]

    def _say_left_out(self, agreement: Agreement) -> None:
        if self.note is not None and self._desk is None and self.study.features != "all":
            gone = [name for name in self.study.features if name not in agreement.features]
            if gone:
                self.note(f"left out because too few rows stand out at one site (data.rare): {listing(gone)}")


def _printable(said: Any) -> Any:
    """What the coordinator says at the end, as it may stand on a terminal."""
    return [printable(str(each)) for each in said] if isinstance(said, list) else printable(str(said))


def _key(envelope: Envelope) -> str:
    assert envelope.agreement is not None
    return key_of(json.loads(json.dumps(envelope.agreement.plain())), envelope.arrays)
