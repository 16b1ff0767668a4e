"""A site in a study: it describes its table, prepares its rows as agreed, and answers what it may.

Every reply goes through ``handle``: there it is held against what the site refuses, written to the audit
file, and only then given to whatever carries it.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from unpooled.remote.desk import Desk
from unpooled.remote.messages import Reply, Request
from unpooled.study.audit import Audit
from unpooled.study.config import Study, StudyError
from unpooled.study.description import describe, unfits
from unpooled.study.design import encoded, federated
from unpooled.study.envelope import Envelope, opened
from unpooled.study.patience import REFUSED
from unpooled.study.sharing import RESULTS
from unpooled.study.table import Table
from unpooled.wording import printable

Say = Callable[[Request, Reply], None]
log = logging.getLogger("unpooled.study")


class StudyDesk:
    """A site's rows and what it is asked about them.

    Parameters
    ----------
    study, site, table : whose rows in which study.
    audit : where replies are written before they leave.
    refuses : kinds of statistics that do not leave, such as "gram" and "hessian".
    say : told of every request and reply, once the reply may leave.
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
    ):
        self.study, self.site, self.table = study, site, table
        self.audit, self.refuses, self.say = audit, refuses, say
        self.answers = 0
        self.told: list[Mapping[str, Any]] = []
        self._desk: tuple[str, Desk] | None = None

    def handle(self, request: Request) -> Reply:
        """The answer; what goes wrong is an answer too, in words that hold no values."""
        try:
            reply = self._answered(request)
            self._check(reply)
        except StudyError as error:
            reply = Reply({REFUSED: str(error)}, {})
        except Exception as error:
            log.exception("a request %r could not be answered", request.kind)
            reply = Reply({REFUSED: f"{type(error).__name__}; the site's own log says more"}, {})
        self.answers += 1
        if self.audit is not None:
            try:
                self.audit.write(self.answers, request.kind, reply)
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
        self._check_least(inner)
        return self._prepared(envelope).handle(inner)

    def _prepared(self, envelope: Envelope) -> Desk:
        """The desk with rows as agreed; made once."""
        assert envelope.agreement is not None
        key, scaling = _key(envelope), envelope.scaling
        if self._desk is None or self._desk[0] != key:
            if unfits(self.study, self.table):
                raise StudyError("its table does not fit the study")
            X, y = encoded(self.study, envelope.agreement, self.table)
            prepared = None if scaling is None else (scaling.shift, scaling.scale, scaling.fill)
            data = federated(self.site, X, y, envelope.agreement.feature_names, prepared)
            self._desk = (key, Desk(data))
        return self._desk[1]

    def _check_least(self, request: Request) -> None:
        """Refuse what guards rows less than the study does: Gram matrices of few rows, small minibatches."""
        if request.kind == "train" and (request.spec["run"]["batch_size"] or 0) != self.study.batch_size:
            raise StudyError(
                f"it was asked for minibatches of {request.spec['run']['batch_size']} rows, "
                f"and solver.batch_size = {self.study.batch_size}"
            )
        for q, asked in enumerate(request.spec.get("questions", ())):
            names = [name for name in ("features", "working") if name in asked["arrays"]]
            is_second_order = any(request.arrays[f"{q}/{name}"].size for name in names)
            if is_second_order and asked["solver"]["min_rows"] < self.study.minimum_rows:
                raise StudyError(
                    f"it was asked for a Gram matrix or Hessian with min_rows={asked['solver']['min_rows']}, "
                    f"below limits.minimum_rows = {self.study.minimum_rows}"
                )

    def _check(self, reply: Reply) -> None:
        for name in reply.arrays:
            kind = name.rpartition("/")[2]
            if kind in self.refuses:
                raise StudyError(f"it does not send {kind!r}")


def _printable(said: Any) -> Any:
    """What the coordinator says at the end, as it may stand on a terminal."""
    return [printable(str(each)) for each in said] if isinstance(said, list) else printable(str(said))


def _key(envelope: Envelope) -> str:
    assert envelope.agreement is not None
    total = hashlib.sha256(json.dumps(envelope.agreement.plain(), sort_keys=True).encode())
    if envelope.scaling is not None:
        for array in (envelope.scaling.shift, envelope.scaling.scale, envelope.scaling.fill):
            total.update(b"-" if array is None else array.tobytes())
    return total.hexdigest()
