"""Parkinson's disease heard over the telephone: what cross-validation inside patients hides.

    python examples/parkinsons.py FILE [--out DIR]

FILE is parkinsons_updrs.data of "Parkinsons Telemonitoring" (Tsanas, Little; UCI Machine Learning Repository,
dataset 189, CC BY 4.0): download and unpack it from the repository's page. Each of 42 patients is a client,
whose recordings stay with them.

With folds inside each patient, every patient has recordings on both sides, and a small α that learns their
voices looks right. Leaving whole patients out asks what a new patient would: then no α does better than no
features at all. What is left is how a voice moves with the disease inside a patient, once each has a level of
their own.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

import unpooled as up

matplotlib.use("agg")
import matplotlib.pyplot as plt

TARGET = "total_UPDRS"
LEFT_OUT = ["subject#", "motor_UPDRS", TARGET]


def main(path: Path, out: Path) -> Path:
    if not path.is_file():
        raise SystemExit(f"there is no {path}: see the top of this file for where to get it")
    frame = pd.read_csv(path)
    X, y, patient = frame.drop(columns=LEFT_OUT), frame[TARGET], frame["subject#"]
    options = {"standardise": True, "n_alphas": 60, "eps": 1e-3, "min_rows": 1}
    models = {
        "folds inside patients": up.FederatedLassoCV(cv=5, **options),
        "one patient left out": up.FederatedLassoCV(cv="sites", **options),
    }
    for name, model in models.items():
        model.fit(X, y, clients=patient)
        error = np.sqrt(model.mse_path_[np.argmin(model.mse_path_.mean(axis=1))].mean())
        kept = np.count_nonzero(model.coef_)
        print(f"{name}: α = {model.alpha_:.3g}, {kept} of {X.shape[1]} features, held-out error {error:.2f}")
        print(f"  {model.rounds_} rounds, {model.certificate_}")
    spread = float(y.std())
    print(f"without any feature the error is {spread:.2f} points")

    # What is left when every patient has a level of their own: how the voice moves with the disease.
    within = up.FederatedLassoCV(cv=5, site_intercepts=True, **options).fit(X, y, clients=patient)
    print(within.summary())

    out.mkdir(parents=True, exist_ok=True)
    target = out / "parkinsons.png"
    draw(models, within, spread, target)
    print(f"\nFigure: {target}")
    return target


def draw(
    models: dict[str, up.FederatedLassoCV], within: up.FederatedLassoCV, spread: float, target: Path
) -> None:
    """Held-out errors along the paths, and patients' own levels."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
    for (name, model), colour, style in zip(models.items(), ["#0072B2", "#D55E00"], ["-", "--"], strict=True):
        error = np.sqrt(model.mse_path_.mean(axis=1))
        left.plot(model.alphas_, error, style, color=colour, label=name)
        best = np.argmin(error)
        left.plot(model.alphas_[best], error[best], "o", color=colour)
    left.axhline(spread, color="0.5", linewidth=0.8, linestyle=":", label="no feature")
    left.set(
        xscale="log",
        xlabel="α",
        ylabel="held-out error, UPDRS points",
        title="Which rows are left out matters",
    )
    left.legend(frameon=False)
    levels = np.sort(np.asarray(within.site_intercepts_.values, dtype=float))
    right.plot(levels - levels.mean(), np.arange(len(levels)), "o", color="#009E73", markersize=4)
    right.axvline(0, color="0.3", linewidth=0.8)
    right.set(
        xlabel="level of the patient, UPDRS points from the mean", ylabel="patients", title="42 intercepts"
    )
    right.set_yticks([])
    figure.savefig(target, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", type=Path, help="parkinsons_updrs.data")
    parser.add_argument("--out", type=Path, default=Path("out/examples"), help="where the figure goes")
    arguments = parser.parse_args()
    main(arguments.path, arguments.out)
