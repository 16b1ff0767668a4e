"""The data that the page's scripts draw, as plain JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unpooled.kernels.arrays import Array
from unpooled.report import palette
from unpooled.report.curves import average, log_by_default, thin
from unpooled.report.estimates import estimate
from unpooled.report.numbers import plain
from unpooled.runs.run import Run, Status


def payload(
    groups: Mapping[str, Sequence[Run]],
    *,
    labels: Mapping[str, str] | None = None,
    log: Mapping[str, bool] | None = None,
    references: Mapping[str, float] | None = None,
    reference_label: str = "reference",
    truth: Array | None = None,
    image: tuple[int, int] | None = None,
    metric: str = "objective",
) -> dict[str, Any]:
    """Methods, metrics with a curve for each method, and the estimates."""
    names = metric_names(groups, labels or {})
    return {
        "methods": [_method(i, name, runs) for i, (name, runs) in enumerate(groups.items())],
        "metrics": [_metric(name, groups, labels or {}, log or {}, references or {}) for name in names],
        "selected": names.index(metric) if metric in names else 0,
        "referenceLabel": reference_label,
        "estimate": estimate(groups, truth, image),
    }


def metric_names(groups: Mapping[str, Sequence[Run]], labels: Mapping[str, str]) -> list[str]:
    """Every recorded column: first the labelled ones in their order, then the others in theirs."""
    columns = [name for runs in groups.values() for run in runs for name in run.history if name != "round"]
    recorded = list(dict.fromkeys(columns))
    return [*(n for n in labels if n in recorded), *(n for n in recorded if n not in labels)]


def _method(index: int, name: str, runs: Sequence[Run]) -> dict[str, Any]:
    rounds = sum(run.ledger.rounds for run in runs)
    sent = sum(run.ledger.bytes_up + run.ledger.bytes_down for run in runs)
    return {
        "name": name,
        **palette.style(index),
        "seeds": [run.seed for run in runs],
        "diverged": [run.seed for run in runs if run.status == Status.DIVERGED],
        "interrupted": [run.seed for run in runs if run.status == Status.INTERRUPTED],
        "localSteps": runs[0].settings.get("algorithm", {}).get("local_steps"),
        "bytesPerRound": sent / rounds if rounds else None,
    }


def _metric(
    name: str,
    groups: Mapping[str, Sequence[Run]],
    labels: Mapping[str, str],
    log: Mapping[str, bool],
    references: Mapping[str, float],
) -> dict[str, Any]:
    curves = [average(runs, name) for runs in groups.values()]
    return {
        "name": name,
        "label": labels.get(name, name),
        "log": log.get(name, log_by_default(curves)),
        "reference": plain(references[name]) if name in references else None,
        "curves": [thin(curve).plain() for curve in curves],
    }
