"""The result for the sites, where ``share_results`` says so: what is sent, and what a site makes of it.

A site writes the same files as the coordinator, but makes them itself: what the coordinator sends is text and
numbers to it, whoever the coordinator is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unpooled._wording import printable
from unpooled.study.config import StudyError
from unpooled.study.results import Result, Term, curve_text, finite, json_text, table_text, written

RESULTS = "results"  # what it is called in the coordinator's last word


def shared(result: Result) -> dict[str, Any]:
    """What a site is sent beside the last word."""
    return {RESULTS: {"result": finite(result.plain()), "summary": result.summary()}}


def summary_of(told: Mapping[str, Any]) -> str:
    """The page to read in the coordinator's last word, as it may stand on a terminal; "" where none is."""
    given = told.get(RESULTS)
    return printable(str(given.get("summary", "")), lines=True) if isinstance(given, Mapping) else ""


def keep(told: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the results that are in the coordinator's last word; where they are."""
    given = told.get(RESULTS)
    if given is None:
        return []
    try:
        plain = given["result"]
        terms = [_term(each) for each in plain["coefficients"]]
        curve = {
            str(name): [each if isinstance(each, int) else float(each) for each in values]
            for name, values in plain.get("curve", {}).items()
        }
        if len({len(values) for values in curve.values()}) > 1:
            raise ValueError("columns of different lengths")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
        raise StudyError(f"the coordinator's results cannot be read ({why})") from None
    texts = {
        "coefficients.csv": table_text(terms, any(term.label for term in terms)),
        "result.json": json_text(plain),
        "summary.txt": summary_of(told),
    }
    if curve:
        texts["lambdas.csv"] = curve_text(curve)
    return written(texts, folder)


def _term(given: Mapping[str, Any]) -> Term:
    term, feature, level, label = (str(given[name]) for name in ("term", "feature", "level", "label"))
    return Term(term, feature, level, label, float(given["value"]))
