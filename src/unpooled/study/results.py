"""What comes out of a study: coefficients in raw units, a description in JSON, a summary to read."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unpooled._files import whole_file
from unpooled._ledger import Ledger, in_words
from unpooled._version import versions
from unpooled._wording import counted, part_of, printable
from unpooled.exact.certificate import Certificate
from unpooled.kernels.arrays import Float
from unpooled.study.agreement import Agreement
from unpooled.study.config import Study, StudyError
from unpooled.study.events import Watch

INTERCEPT = "(intercept)"
MOST_SHOWN = 40
FORMULA = ("=", "+", "-", "@")  # with which a cell begins that a spreadsheet computes


class Term(NamedTuple):
    """A line of the table of coefficients."""

    term: str
    feature: str
    level: str
    label: str
    value: float


@dataclass(frozen=True, eq=False)
class Result:
    """A fitted model and how it came about.

    ``coef`` is (p,), or (p, C) for classes; ``intercept`` None, a number, (C,), or by site. ``curve`` has the
    λ that were tried, with what was found at each.
    """

    study: Study
    agreement: Agreement
    rows: Mapping[str, int]
    coef: Float
    intercept: Any
    lam: float
    solver: str
    certificate: Certificate | None
    converged: bool
    ledger: Ledger
    notes: list[str]
    site_versions: Mapping[str, Mapping[str, str]]
    seconds: float
    curve: Mapping[str, list[float]] = field(default_factory=dict)

    def terms(self) -> Iterator[Term]:
        """The intercepts, then the coefficients, in the order of the columns."""
        classes = [""]
        if self.coef.ndim == 2:
            classes = [str(label) for label in self.agreement.classes]
        if isinstance(self.intercept, Mapping):
            for site, values in self.intercept.items():
                for label, value in zip(classes, np.atleast_1d(values), strict=True):
                    yield Term(INTERCEPT, INTERCEPT, site, label, float(value))
        elif self.intercept is not None:
            for label, value in zip(classes, np.atleast_1d(self.intercept), strict=True):
                yield Term(INTERCEPT, INTERCEPT, "", label, float(value))
        names, columns = self.agreement.feature_names, self.agreement.columns
        for j, (name, column) in enumerate(zip(names, columns, strict=True)):
            level = name.removeprefix(f"{column}=") if name != column else ""
            for label, value in zip(classes, np.atleast_1d(self.coef[j]), strict=True):
                yield Term(name, column, level, label, float(value))

    def csv(self) -> str:
        """The table of coefficients, every digit of them."""
        return table_text(self.terms(), self.coef.ndim == 2)

    def plain(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        certificate = None if self.certificate is None else asdict(self.certificate)
        return {
            "study": self.study.name,
            "digest": self.study.digest,
            "settings": self.study.agreed,
            "sites": dict(self.rows),
            "lambda": self.lam,
            "solver": self.solver,
            "converged": self.converged,
            "certificate": certificate,
            "ledger": asdict(self.ledger),
            "left the sites": in_words(self.ledger.kinds),
            "notes": self.notes,
            "seconds": round(self.seconds, 3),
            "versions": {"coordinator": versions(), **self.site_versions},
            "agreement": self.agreement.plain(),
            "coefficients": [t._asdict() for t in self.terms()],
            "curve": dict(self.curve),
        }

    def summary(self) -> str:
        """A page to read."""
        study, rows = self.study, sum(self.rows.values())
        kept, size = int(np.count_nonzero(self.coef)), self.coef.size
        chosen = {"cv": ", chosen by cross-validation", "path": f", chosen by {study.criterion.upper()}"}
        lines = [
            f"{study.name}: {study.model} of {study.target}",
            f"  {counted(rows, 'row')} of {counted(len(self.rows), 'site')}: "
            + ", ".join(f"{site} {n}" for site, n in self.rows.items()),
            f"  λ = {self.lam:.6g}{chosen.get(str(study.lam), '')}",
            f"  {part_of(kept, size, 'coefficient')} not zero",
        ]
        if self.certificate is not None:
            reached = "reached" if self.converged else "NOT reached"
            lines.append(f"  {self.certificate}; tolerance {study.tolerance:g} {reached}")
        lines += [f"  {self.solver}: {self.ledger}", f"  left the sites: {in_words(self.ledger.kinds)}"]
        lines += [f"  {note}" for note in self.notes]
        return "\n".join(printable(line) for line in [*lines, "", *self._table()]) + "\n"

    def _table(self) -> list[str]:
        shown = [t for t in self.terms() if t.value or t.term == INTERCEPT]
        names = [" ".join(filter(None, [_shown_name(t), t.label and f"[{t.label}]"])) for t in shown]
        width = max(map(len, names), default=0)
        lines = [f"  {name:<{width}} {t.value:>13.6g}" for name, t in zip(names, shown, strict=True)]
        more = len(lines) - MOST_SHOWN
        return lines if more <= 0 else [*lines[:MOST_SHOWN], f"  … and {more} more, see coefficients.csv"]


def table_text(terms: Iterable[Term], with_class: bool) -> str:
    """A table of coefficients as CSV.

    A name that a spreadsheet would take for a formula has an apostrophe in front; letters that control a
    terminal are spelt out.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["term", "feature", "level", *(["class"] if with_class else []), "coefficient"])
    for t in terms:
        cells = [t.term, t.feature, t.level, *([t.label] if with_class else [])]
        writer.writerow([*map(_cell, cells), repr(t.value)])
    return text.getvalue()


def write(result: Result, folder: Path) -> list[Path]:
    """Write coefficients.csv, result.json and summary.txt, each whole or not at all.

    Where several λ were tried, lambdas.csv too.
    """
    texts = {
        "coefficients.csv": result.csv(),
        "result.json": json_text(result.plain()),
        "summary.txt": result.summary(),
    }
    if result.curve:
        texts["lambdas.csv"] = curve_text(result.curve)
    return written(texts, folder)


def written(texts: Mapping[str, str], folder: Path) -> list[Path]:
    """Write files by name."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            with whole_file(folder / name) as file:
                file.write(text.encode())
    except OSError as error:
        raise StudyError(f"the results cannot be written to {folder}: {error.strerror}") from None
    return [folder / name for name in texts]


def kept(result: Result, folder: Path, watch: Watch) -> Path | None:
    """Write the results to ``folder``, or where that cannot be to a new one elsewhere; where they are."""
    try:
        write(result, folder)
        return folder
    except StudyError as error:
        watch("note", {"text": str(error)})
    try:
        elsewhere = Path(tempfile.mkdtemp(prefix=f"unpooled-{_file_name(result.study.name)}-"))
        write(result, elsewhere)
    except (OSError, StudyError):
        return None
    watch("note", {"text": f"the results are in {elsewhere}: copy them before the system deletes them"})
    return elsewhere


def _file_name(name: str) -> str:
    return "".join(each for each in name if each.isascii() and each.isalnum())[:40]


def _shown_name(term: Term) -> str:
    return f"{term.term} {term.level}".strip() if term.term == INTERCEPT else term.term


def _cell(name: str) -> str:
    return f"'{printable(name)}" if name.startswith(FORMULA) else printable(name)


def json_text(plain: Mapping[str, Any]) -> str:
    """Readable, but for letters that would control a terminal."""
    text = json.dumps(finite(plain), indent=1, ensure_ascii=False) + "\n"
    controls = {each for each in text if each != "\n" and printable(each) != each}
    return text.translate({ord(each): json.dumps(each)[1:-1] for each in controls})


def curve_text(curve: Mapping[str, list[float]]) -> str:
    """What was found at each λ, as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_cell, curve))
    writer.writerows([repr(value) for value in row] for row in zip(*curve.values(), strict=True))
    return text.getvalue()


def finite(value: Any) -> Any:
    """Infinite numbers as texts: JSON has none."""
    if isinstance(value, Mapping):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
