"""The report's sentences: the verdict, which method leads at the end, what went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unpooled.experiments.verdict import Verdict
from unpooled.report.curves import rounds_of
from unpooled.report.numbers import listed, percent, significant, span, whole
from unpooled.runs.metrics import higher_is_better
from unpooled.runs.run import Run, Status


def headline(verdict: Verdict | None, groups: Mapping[str, Sequence[Run]]) -> str:
    """The first sentence of the page."""
    if verdict is not None and verdict.sentence:
        return f"{verdict.sentence}."
    runs = [run for method in groups.values() for run in method]
    ended = [run for run in runs if run.status == Status.COMPLETED]
    count = f"{whole(len(runs))} run{'s' if len(runs) > 1 else ''} of {listed_methods(groups)}"
    if len(ended) == len(runs):
        return f"{count}, {'all ' if len(runs) > 1 else ''}completed."
    return f"{count}, {len(ended) or 'none'} completed."


def listed_methods(groups: Mapping[str, Sequence[Run]]) -> str:
    """The one method's name, or how many there are."""
    return next(iter(groups)) if len(groups) == 1 else f"{len(groups)} methods"


def judged(verdict: Verdict | None) -> str:
    """How far measured and expected are apart, or why nothing is judged."""
    if verdict is None:
        return (
            "No expected values came with these runs: this page shows what was measured and judges nothing."
        )
    if not verdict.comparisons:
        return "There is no table of expected values to compare these runs with."
    worst = max(verdict.comparisons, key=lambda c: abs(c.deviation) / (c.high - 1.0))
    tolerances = listed(list(dict.fromkeys(c.tolerance for c in verdict.comparisons)))
    text = (
        f"Nearest to its tolerance, or farthest outside, is {worst.method} at round {whole(worst.round)}: "
        f"{percent(worst.deviation)}; the tolerances are {tolerances} of the expected value."
    )
    outside = list(dict.fromkeys(c.method for c in verdict.comparisons if not c.holds))
    return text + (f" Outside its tolerance: {listed(outside)}." if outside else "")


def leader(groups: Mapping[str, Sequence[Run]], metric: str, label: str) -> str:
    """Which method ends best in a metric, in how many seeds, and what this does not show."""
    finals = {
        name: {run.seed: float(run.history[metric][-1]) for run in runs}
        for name, runs in groups.items()
        if all(run.status != Status.DIVERGED and len(run.history.get(metric, ())) for run in runs)
    }
    finals = {name: last for name, last in finals.items() if np.isfinite(list(last.values())).all()}
    if not finals:
        return f"No method has a final value of {label}."
    means = {name: float(np.mean(list(last.values()))) for name, last in finals.items()}
    higher = higher_is_better(metric)
    order = sorted(means, key=lambda name: -means[name] if higher else means[name])
    best = order[0]
    if len(groups) == 1:
        return f"{best} ends with {label} {_value(groups[best], finals[best])}."
    why = incomparable({name: groups[name] for name in order}, metric)
    if why:
        return f"{why}, so this page does not rank the methods by {label}."
    if len(order) == 1:
        return (
            f"{best} ends with {label} {_value(groups[best], finals[best])}. "
            "Nothing compares with it: the other runs diverged or did not record it."
        )
    extreme = "highest" if higher else "lowest"
    text = f"{best} ends {extreme} in {label}: {_value(groups[best], finals[best])}."
    if means[order[1]] == means[best]:
        level = [name for name in order if means[name] == means[best]]
        text = f"{listed(level)} end level in {label}: {_value(groups[best], finals[best])}."
    else:
        text += f" Next is {order[1]} with {significant(means[order[1]])}."
        text += _seeds(finals, best, extreme)
    lasts = [int(rounds_of(run)[-1]) for name in order for run in groups[name]]
    if len(set(lasts)) > 1:
        text += f" The methods did not run equally long ({span(lasts)} rounds)."
    return text


def incomparable(groups: Mapping[str, Sequence[Run]], metric: str) -> str:
    """Why the methods' values of a metric do not compare; empty where they do."""
    runs = [run for method in groups.values() for run in method]
    if metric == "objective" and len({str(run.settings.get("problem")) for run in runs}) > 1:
        return "The methods solved different problems"
    data: dict[int, set[str]] = {}
    for run in runs:
        data.setdefault(run.seed, set()).add(str(run.settings.get("data")))
    if any(len(seen) > 1 for seen in data.values()):
        return "Runs of the same seed saw different data"
    return ""


def _value(runs: Sequence[Run], final: Mapping[int, float]) -> str:
    lasts = [int(rounds_of(run)[-1]) for run in runs]
    text = f"{significant(float(np.mean(list(final.values()))))} after {span(lasts)} round"
    text += "" if max(lasts) == 1 else "s"
    if len(final) > 1:
        low, high = min(final.values()), max(final.values())
        text += f", the mean over {len(final)} seeds ({significant(low)} to {significant(high)})"
    return text


def _seeds(finals: Mapping[str, Mapping[int, float]], best: str, extreme: str) -> str:
    seeds = {tuple(sorted(last)) for last in finals.values()}
    if len(seeds) > 1:
        return " The methods were run with different seeds, so part of the difference may be chance."
    shared = next(iter(seeds))
    if len(shared) == 1:
        return " This is one seed; another may order them differently."
    pick = max if extreme == "highest" else min
    wins = sum(finals[best][s] == pick(last[s] for last in finals.values()) for s in shared)
    return f" {best} is {extreme} in {wins} of the {len(shared)} seeds."


def troubles(groups: Mapping[str, Sequence[Run]]) -> list[str]:
    """Runs that did not complete, each with its own sentence, and curves that lack recorded rounds."""
    found = []
    for name, runs in groups.items():
        ended = [run for run in runs if run.status != Status.COMPLETED]
        found += [f"{name}, seed {run.seed}: {run.status}. {run.message}" for run in ended]
        recorded = [rounds_of(run) for run in runs if len(rounds_of(run))]
        if not recorded:
            found.append(f"{name} has no recorded round and therefore no curve.")
        elif len(recorded) > 1:
            end = min(r[-1] for r in recorded)
            within = [set(r[r <= end].tolist()) for r in recorded]
            shared, most = len(set.intersection(*within)), max(map(len, within))
            if shared < most:
                found.append(
                    f"The runs of {name} recorded different rounds; its curve shows the {whole(shared)} "
                    "they share."
                )
    return found
