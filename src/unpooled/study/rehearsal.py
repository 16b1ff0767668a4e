"""A study with one site alone, in this process: what would leave it, found by letting it answer."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from unpooled._files import plain
from unpooled._ledger import in_words
from unpooled._wording import counted
from unpooled.engines.remote.messages import Direct, Reply, Request
from unpooled.study.config import Study
from unpooled.study.coordinator import run_study
from unpooled.study.desk import StudyDesk
from unpooled.study.table import Table

NAMES = {"describe": "agreement", "collect": "summaries", "ask": "fit", "train": "fit", "value": "objective"}
NAMES |= {"spectra": "curvature", "curve": "curvature", "tally": "columns"}
HIDDEN = ("share", "clients", "refused_rows", "refused_columns")  # counts that go with other things
WORDS = {"up": "sums of gradients after local steps", "value": "loss", "top": "bounds of the curvature"}
WORDS |= {"longest": "length of the longest row", "product": "products of the curvature"}


@dataclass
class Step:
    """Answers of one kind: what is in them, the size of the largest, and how many there were."""

    name: str
    what: str
    size: int = 0
    times: int = 0


@dataclass
class Rehearsal:
    """The steps in order; ``ended`` says why it went no further, where it did not."""

    steps: list[Step] = field(default_factory=list)
    ended: str = ""

    def hear(self, request: Request, reply: Reply) -> None:
        """Take in an answer."""
        if request.kind in ("tell",):
            return
        what, size = words_of(request, reply)
        name = NAMES.get(request.kind, request.kind)
        step = next((each for each in self.steps if (each.name, each.what) == (name, what)), None)
        if step is None:
            step = Step(name, what)
            self.steps.append(step)
        step.size, step.times = max(step.size, size), step.times + 1


def rehearse(study: Study, site: str, table: Table, refuses: tuple[str, ...] = ()) -> Rehearsal:
    """Let the site answer a study in which it is alone."""
    folds = 5 if isinstance(study.folds, str) else study.folds
    most = max(study.max_questions, study.n_lambdas * (1 + folds))
    alone = replace(study, sites=(site,), minimum_sites=1, folds=folds, max_questions=most, grace=0.0)
    found = Rehearsal()
    desk = StudyDesk(alone, site, table, refuses=refuses, say=found.hear)
    with tempfile.TemporaryDirectory() as folder:
        try:
            run_study(alone, Direct({site: desk}), Path(folder) / "rehearsal")
        except ValueError as error:  # such as a single class among this site's labels
            found.ended = str(error)
    return found


def words_of(request: Request, reply: Reply) -> tuple[str, int]:
    """What an answer holds, in words, and how many bytes it has."""
    size = sum(np.asarray(a).nbytes for a in reply.arrays.values())
    size += len(json.dumps(plain(reply.spec)).encode()) if reply.spec else 0
    return _described(reply) if request.kind == "describe" else _words(reply), size


def _described(reply: Reply) -> str:
    spec = reply.spec
    parts = [f"names and types of {counted(len(spec['kinds']), 'column')}, the number of rows"]
    if spec["levels"]:
        parts.append(f"levels of {', '.join(spec['levels'])}")
    if spec["classes"]:
        parts.append("labels of the target")
    if spec["missing"]:
        parts.append("which columns have missing values")
    return ", ".join([*parts, "versions of the software"])


def _words(reply: Reply) -> str:
    kinds = {name.rpartition("/")[2] for name in reply.arrays} - set(HIDDEN)
    return in_words(WORDS.get(kind, kind) for kind in kinds)
