"""Figures; the only importer of matplotlib."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from unpooled.experiments.experiment import Experiment
from unpooled.experiments.sweep import Line
from unpooled.runs.run import Run

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
USUAL = ("FedMiD", "FedDA", "Fast-FedDA", "C-FedDA", "MC-FedDA")  # have the first styles in every figure
NARROW = 30.0  # a logarithmic axis that spans less has plain numbers
LINEAR = ("f1", "rank", "nonzeros", "train_accuracy", "test_accuracy")


def style_indices(names: Sequence[str]) -> list[int]:
    """A style for each name: the usual methods' own, others the ones after."""
    others = [name for name in names if name not in USUAL]
    return [USUAL.index(n) if n in USUAL else len(USUAL) + others.index(n) for n in names]


def experiment_figure(
    experiment: Experiment,
    runs: Mapping[str, Sequence[Run]],
    path: str | os.PathLike[str],
    optimum: Mapping[str, float] | None = None,
) -> Path:
    """One panel a metric, one line a method: the mean over seeds, with its range as a band.

    ``optimum`` gives a metric's value at the exact optimum, drawn as a thin line.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import MaxNLocator

    path, optimum = Path(path), dict(optimum or {})
    labels = experiment.metrics
    with plt.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = plt.subplots(
            1, len(labels), figsize=(3.1 * len(labels), 3.1 + 0.25 * (len(runs) > 6)), layout="constrained"
        )
        for axis, (metric, label) in zip(np.atleast_1d(axes), labels.items(), strict=True):
            for style, (method, method_runs) in zip(cycle(STYLES), runs.items(), strict=False):
                _line(axis, method_runs, metric, method, style)
            if metric in optimum:
                axis.axhline(optimum[metric], color="black", linewidth=0.8, zorder=0, label="exact optimum")
            axis.set_yscale("linear" if metric in LINEAR else "log")
            axis.xaxis.set_major_locator(MaxNLocator(4))
            if metric not in LINEAR and np.divide(*axis.get_ylim()[::-1]) < NARROW:
                _plain_log_ticks(axis)
            if "accuracy" in metric:
                low, high = (
                    _settled(runs, metric),
                    max(run.history[metric].max() for m in runs.values() for run in m),
                )
                axis.set_ylim(bottom=low, top=min(1.0, high + 0.1 * (high - low)))
            axis.set_xlabel("communication round")
            axis.set_title(label, fontsize=9.5)
            axis.margins(x=0)
        handles, names = np.atleast_1d(axes)[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 6), frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=200)
        plt.close(figure)
    return path


def study_figure(lines: Sequence[Line], path: str | os.PathLike[str]) -> Path:
    """One panel a sweep on logarithmic axes: points at each x, the range over seeds, the fitted line."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    path = Path(path)
    sweeps = list({line.sweep.name: line.sweep for line in lines}.values())
    names = list(dict.fromkeys(line.method for line in lines))
    style = dict(zip(names, style_indices(names), strict=True))
    with plt.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = plt.subplots(1, len(sweeps), figsize=(3.6 * len(sweeps), 3.4), layout="constrained")
        for axis, sweep in zip(np.atleast_1d(axes), sweeps, strict=True):
            axis.set(xscale="log", yscale="log", xlabel=sweep.x_label)
            axis.set_title(f"{sweep.title}: {sweep.label}", fontsize=9.5)
            axis.set_xticks(sweep.x, [f"{x:g}" if x == int(x) else f"{x:.2g}" for x in sweep.x])
            axis.xaxis.minorticks_off()
            _plain_log_ticks(axis)
            mine = [line for line in lines if line.sweep is sweep]
            for i, line in enumerate(mine):
                _sweep_line(axis, line, style[line.method], aside=1.0 + 0.05 * (i - (len(mine) - 1) / 2))
            if sweep.bound is not None:
                axis.plot(sweep.x, sweep.bound, color="black", linewidth=0.9, label=sweep.bound_label)
            axis.legend(frameon=False, fontsize=7.5)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=200)
        plt.close(figure)
    return path


def _sweep_line(axis: Any, line: Line, index: int, aside: float) -> None:
    """Points stand a little aside, so that those of two methods do not cover each other."""
    style, marker = STYLES[index % len(STYLES)], "Xs^oDv"[index % 6]
    x, mean = np.asarray(line.sweep.x), np.asarray(line.mean)
    low, high = (np.array([edge(values) for values in line.values]) for edge in (min, max))
    axis.errorbar(x * aside, mean, [mean - low, high - mean], fmt=marker, markersize=4, color=style["color"],
                  elinewidth=0.9, capsize=2)  # fmt: skip
    fitted = np.exp(np.polyval(np.polyfit(np.log(x), np.log(mean), 1), np.log(x)))
    slope = f"{line.slope:.2f}".replace("-", "−")
    axis.plot(x, fitted, linewidth=1.3, label=f"{line.method}, slope {slope}", **style)


def _plain_log_ticks(axis: Any) -> None:
    """0.2, 0.5, 1, 2 … along a logarithmic axis that spans a few decades at most."""
    from matplotlib.ticker import LogLocator

    axis.yaxis.set(major_locator=LogLocator(subs=(1, 2, 3, 5)), major_formatter="{x:g}")
    axis.yaxis.set_minor_formatter("")


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
