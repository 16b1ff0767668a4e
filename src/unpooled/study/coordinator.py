"""``run_study``: from sites that have joined to results, over any transport.

    wait for the sites → agree on columns → scale (moments) → fit → write

Every answer is in the journal before the next question, so that a study can be resumed; a site that is lost
for good is left out, where enough remain, and everything begins again without it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from unpooled._ledger import Ledger, Traffic
from unpooled._version import versions
from unpooled._wording import numbered
from unpooled.engines.remote.engine import Remote
from unpooled.engines.remote.failures import (
    BadReplyError,
    DuplicateClientError,
    SiteLostError,
    TooFewClientsError,
)
from unpooled.engines.remote.messages import Reply, Request, Transport
from unpooled.preprocessing.moments import Moments, moments
from unpooled.study.agreement import Agreement, DisagreementError, agree, notes
from unpooled.study.centring import target_center
from unpooled.study.config import StoppedError, Study, StudyError
from unpooled.study.described import described as checked_descriptions
from unpooled.study.description import Description
from unpooled.study.envelope import Envelope, Scaling
from unpooled.study.events import Watch, silent
from unpooled.study.fitting import Fitted, fitted
from unpooled.study.journal import Journal
from unpooled.study.modelling import stated
from unpooled.study.patience import Patient, RefusalError, gathered
from unpooled.study.results import Result, kept
from unpooled.study.sharing import shared
from unpooled.study.sites_data import Enveloped, SitesData, sites_data


def run_study(
    study: Study,
    transport: Transport,
    folder: Path,
    *,
    resume: bool = False,
    watch: Watch = silent,
) -> Result:
    """Run a study to its results, which are written to ``folder``.

    A ``StudyError`` says what is wrong with the study or its sites; a ``StoppedError`` that too few sites are
    left, and that ``resume`` goes on from there.
    """
    began = time.monotonic()
    patient = Patient(transport, study, watch)
    journal = Journal(patient, folder / "checkpoint", study, watch, resume=resume)
    without = journal.without
    while True:
        if journal.sites is None:
            wanted = tuple(site for site in study.sites if site not in without)
            sites = gathered(study, transport, wanted, study.minimum_sites, watch)
        else:
            sites = journal.sites  # they are waited for where the answers on disk are not all
            patient.awaited = tuple(sites)
        journal.begin(sites, without)
        attempt = _Attempt(study, journal, sites, watch)
        try:
            result = attempt.result(without, began)
            break
        except SiteLostError as lost:
            if isinstance(lost, RefusalError | BadReplyError):
                lost = type(lost)(attempt.with_versions(lost.reasons))
                journal.forget(lost.reasons)  # they are to be asked again, now or should it be resumed
                if journal.is_replayed:
                    continue
                _tell(transport, study, {site: {"unfit": [reason]} for site, reason in lost.reasons.items()})
            without |= lost.reasons
            left = [site for site in sites if site not in without]
            if len(left) < study.minimum_sites:
                said = "; ".join(f"{site}: {reason}" for site, reason in lost.reasons.items())
                raise StoppedError(
                    f"{said}; {len(left)} of at least {study.minimum_sites} sites are left "
                    "(limits.minimum_sites)"
                ) from None
            watch("left out", {"sites": lost.reasons, "left": left})
            journal.begin(left, without)
        except TooFewClientsError as few:
            journal.forget_last()
            raise StoppedError(f"{few} (limits.minimum_sites)") from None
        except DuplicateClientError as twins:
            raise StoppedError(str(twins)) from None
        except StoppedError:
            raise
        except ValueError as error:  # to do the same again would bring the same
            journal.delete()
            differ = error.by_site if isinstance(error, DisagreementError) else {}
            ended = f"it ended without a result: {'the sites do not agree' if differ else error}"
            words = {site: {"unfit": differ[site]} if site in differ else {"failed": ended} for site in sites}
            _tell(transport, study, words)
            raise error if isinstance(error, StudyError) else StudyError(str(error)) from None
    place = kept(result, folder, watch)
    if patient.awaited and not journal.is_told:  # nobody was asked: they may be on their way back
        gathered(study, transport, patient.awaited, 0, watch)
    done = {"done": result.summary().splitlines()[0], **(shared(result) if study.share_results else {})}
    told: dict[str, Mapping[str, Any]] = dict.fromkeys(result.rows, done)
    told |= {site: {"done": f"this site was left out: {why}"} for site, why in without.items()}
    _tell(transport, study, told)
    if place is None:  # nothing could be written: the answers are all that there is
        watch("done", {"folder": "", "summary": result.summary(), "csv": result.csv()})
        return result
    journal.tell()
    journal.delete()
    watch("done", {"folder": str(place), "summary": result.summary()})
    return result


@dataclass
class _Attempt:
    """One go at a study with given sites."""

    study: Study
    journal: Journal
    sites: Sequence[str]
    watch: Watch
    versions: dict[str, str] = field(default_factory=dict)  # what the sites run

    def result(self, without: Mapping[str, str], began: float) -> Result:
        """Everything from the agreement to the fit."""
        study = self.study
        described, ledger = self._describe()
        agreement = agree(study, described)
        said = [f"{site} was left out: {reason}." for site, reason in without.items()]
        said += notes(agreement, study, described)
        self.watch("agreed", {"sites": {d.site: d.rows for d in described}, "notes": said})
        data, scaling, found = self._scaled(agreement, described)
        if found is not None:
            ledger, said = ledger + found.ledger, said + self._said(found)
        center = 0.0
        if study.is_centred:
            center, asked = target_center(study, stated(study, agreement), data)
            around = Envelope.of(study, agreement, scaling, center)
            data = replace(data, transport=Enveloped(self.journal, around, self.sites))
            ledger = ledger + asked
        refused = {d.site: d.refuses for d in described if d.refuses}
        model = fitted(study, agreement, data, refused)
        said += model.notes
        coef, intercept = _raw(model, scaling)
        intercept = intercept + center if center else intercept
        return Result(
            study=study,
            agreement=agreement,
            rows={d.site: d.rows for d in described},
            coef=coef,
            intercept=intercept,
            lam=model.lam,
            solver=model.solver,
            certificate=model.certificate,
            converged=model.converged,
            ledger=ledger + model.ledger,
            notes=said,
            site_versions={d.site: d.versions for d in described},
            seconds=time.monotonic() - began,
            curve=model.curve,
        )

    def with_versions(self, reasons: Mapping[str, str]) -> dict[str, str]:
        """What is said of sites, with the version that each runs where it is not the coordinator's."""
        mine = versions()["unpooled"]
        other = {site: its for site, its in self.versions.items() if its != mine}
        return {
            site: f"{why}; it runs unpooled {other[site]}, and this is {mine}" if site in other else why
            for site, why in reasons.items()
        }

    def _describe(self) -> tuple[list[Description], Ledger]:
        """What the sites say of their tables; those that do not fit are named."""
        asked = Enveloped(self.journal, Envelope.of(self.study), self.sites)
        request = Request("describe", {"settings": self.study.agreed}, {})
        replies = asked.exchange(dict.fromkeys(self.sites, request))
        described = checked_descriptions({site: r for site, r in replies.items() if isinstance(r, Reply)})
        self.versions = {each.site: each.versions.get("unpooled", "") for each in described}
        size = sum(len(str(each.plain()).encode()) for each in described)
        ledger = Ledger(kinds=("columns", "levels", "rows"))
        return described, ledger.after_round(len(described), Traffic(0, size), Traffic(0, 0))

    def _scaled(
        self, agreement: Agreement, described: list[Description]
    ) -> tuple[SitesData, Scaling | None, Moments | None]:
        """The data to fit, how they were scaled, and the moments of the columns where they were asked for."""
        study = self.study
        gone = any(set(d.missing) & set(agreement.features) for d in described)
        asked = Enveloped(self.journal, Envelope.of(study, agreement), self.sites)
        data = sites_data(asked, agreement, described, has_missing=gone)
        if not study.standardise and not gone:
            return data, None, None
        found = moments(data, engine=Remote(retries=0))
        zero = np.zeros(data.row_shape)
        center = study.standardise and study.intercept is not False
        shift = found.mean if center else zero
        scale = found.scale if study.standardise else zero + 1.0
        scaling = Scaling(shift, scale, found.mean if study.missing == "mean" else None)
        around = Enveloped(self.journal, Envelope.of(study, agreement, scaling), self.sites)
        return replace(data, transport=around, has_missing=False), scaling, found

    def _said(self, found: Moments) -> list[str]:
        filled = int(found.missing.sum())
        if not filled:
            return list(found.notes)
        values = numbered(filled, "missing value is", "missing values are")
        return [*found.notes, f"{values} now the mean of those observed."]


def _raw(model: Fitted, scaling: Scaling | None) -> tuple[Any, Any]:
    """The model in raw units: coef = w/scale, intercept − Σ_j shift_j coef_j."""
    if scaling is None:
        return model.w, model.intercept
    coef = (model.w.T / scaling.scale).T
    if not scaling.shift.any():
        return coef, model.intercept
    moved = scaling.shift @ coef
    if isinstance(model.intercept, Mapping):
        return coef, {site: value - moved for site, value in model.intercept.items()}
    return coef, -moved if model.intercept is None else model.intercept - moved


def _tell(transport: Transport, study: Study, words: Mapping[str, Mapping[str, Any]]) -> None:
    """Say something to sites; who is not there is not waited for."""
    envelope = Envelope.of(study)
    with contextlib.suppress(DuplicateClientError):
        there = transport.holders()
        words = {site: spec for site, spec in words.items() if site in there}
    transport.exchange({site: envelope.around(Request("tell", spec, {})) for site, spec in words.items()})
