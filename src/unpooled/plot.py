"""Figures; the only importer of matplotlib."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from unpooled.experiments.experiment import Experiment
from unpooled.run import Run

# Okabe and Ito's colours, told apart by people with any colour vision; lines differ in dash as well.
STYLES: list[dict[str, Any]] = [
    {"color": "#555555", "linestyle": (0, (1, 1.2))},
    {"color": "#E69F00", "linestyle": (0, (5, 1.5))},
    {"color": "#0072B2", "linestyle": "-"},
    {"color": "#D55E00", "linestyle": (0, (4, 1.2, 1, 1.2))},
    {"color": "#009E73", "linestyle": (0, (2.5, 1))},
    {"color": "#CC79A7", "linestyle": (0, (7, 1.5))},
    {"color": "#56B4E9", "linestyle": (0, (1, 2.5))},
    {"color": "#000000", "linestyle": (0, (3, 1, 1, 1, 1, 1))},
]
LINEAR = ("f1", "rank", "nonzeros", "train_accuracy", "test_accuracy")


def experiment_figure(
    experiment: Experiment, runs: Mapping[str, Sequence[Run]], path: str | os.PathLike[str]
) -> Path:
    """One panel a metric, one line a method: the mean over seeds, with its range as a band."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    path = Path(path)
    labels = experiment.metrics
    with plt.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = plt.subplots(
            1, len(labels), figsize=(3.1 * len(labels), 3.1 + 0.25 * (len(runs) > 5)), layout="constrained"
        )
        for axis, (metric, label) in zip(np.atleast_1d(axes), labels.items(), strict=True):
            for style, (method, method_runs) in zip(cycle(STYLES), runs.items(), strict=False):
                _line(axis, method_runs, metric, method, style)
            if metric == experiment.expected.get("metric"):
                optimum = experiment.expected["optimum"]
                axis.axhline(optimum, color="black", linewidth=0.8, zorder=0)
                axis.annotate("exact optimum", (0.02, optimum), xycoords=("axes fraction", "data"),
                              xytext=(0, 3), textcoords="offset points", fontsize=7.5)  # fmt: skip
            axis.set_yscale("linear" if metric in LINEAR else "log")
            if "accuracy" in metric:
                axis.set_ylim(bottom=_settled(runs, metric), top=1.0)
            axis.set_xlabel("communication round")
            axis.set_title(label, fontsize=9.5)
            axis.margins(x=0)
        handles, names = np.atleast_1d(axes)[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 5), frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=200)
        plt.close(figure)
    return path


def _settled(runs: Mapping[str, Sequence[Run]], metric: str) -> float:
    """The smallest value after the first fiftieth of the rounds, from where on curves can be told apart."""
    smallest = min(run.history[metric][len(run.history["round"]) // 50 + 1 :].min(initial=1.0)
                   for method_runs in runs.values() for run in method_runs)  # fmt: skip
    return float(max(0.0, smallest - 0.05 * (1.0 - smallest)))


def weights_figure(run: Run, shape: tuple[int, int], path: str | os.PathLike[str], title: str) -> Path:
    """The coefficients (p, C) as one image a class: blue for, red against, white where they are zero."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    path = Path(path)
    classes = run.w.shape[1]
    columns = min(classes, 10)
    rows = -(-classes // columns)
    top = float(np.abs(run.w).max()) or 1.0
    with plt.rc_context({"font.size": 8}):
        figure, axes = plt.subplots(rows, columns, figsize=(1.05 * columns, 1.25 * rows + 0.4),
                                    squeeze=False, layout="constrained")  # fmt: skip
        for axis in axes.flat:
            axis.set_axis_off()
        for c, axis in zip(range(classes), axes.flat, strict=False):
            image = axis.imshow(run.w[:, c].reshape(shape), cmap="RdBu", vmin=-top, vmax=top)
            axis.set_title(f"{c}: {np.mean(run.w[:, c] == 0):.0%} zero")
        figure.colorbar(image, ax=axes, shrink=0.8, label="coefficient")
        figure.suptitle(title, fontsize=9.5)
        figure.savefig(path, dpi=200)
        plt.close(figure)
    return path


def _line(axis: Any, runs: Sequence[Run], metric: str, label: str, style: Mapping[str, Any]) -> None:
    rounds = runs[0].history["round"]
    values = np.array([run.history[metric] for run in runs])
    axis.plot(rounds, values.mean(axis=0), label=label, linewidth=1.5, **style)
    if len(runs) > 1:
        axis.fill_between(
            rounds, values.min(axis=0), values.max(axis=0), color=style["color"], alpha=0.18, lw=0
        )
