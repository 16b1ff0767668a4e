"""Diabetes in five clinics: the lasso of the pooled patients, and how sure it is, without pooling them.

    python examples/diabetes.py [--out DIR]

The data are scikit-learn's own: 442 patients, ten measurements, how far the disease had gone a year later.
They are dealt to five clinics by age, so that no clinic sees the whole population. A fold of a clinic has
some twenty patients, of whom few may stand out in a column; the clinics agree here that this gives nobody
away (``min_rows=1``), and one round after that of the moments does for everything. Otherwise they would
refuse, and gradients would take some five hundred rounds to the same result.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import unpooled as up

matplotlib.use("agg")
import matplotlib.pyplot as plt

CLINICS = np.array(["Aarau", "Bern", "Chur", "Davos", "Erlach"])


def main(out: Path) -> Path:
    data = load_diabetes(scaled=False)
    names, X, y = np.array(data.feature_names), data.data, data.target
    clinic = CLINICS[np.digitize(X[:, 0], np.quantile(X[:, 0], [0.2, 0.4, 0.6, 0.8]))]

    folds = np.random.default_rng(0).integers(5, size=len(y))
    model = up.FederatedLassoCV(standardise=True, cv=folds, n_alphas=60, eps=1e-2, min_rows=1)
    model.fit(X, y, clients=clinic)
    print(model.summary())

    splits = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(5)]
    pooled = make_pipeline(StandardScaler(), LassoCV(alphas=model.alphas_, cv=splits, tol=1e-8)).fit(X, y)
    difference = np.abs(model.predict(X) - pooled.predict(X)).max()
    print(f"largest difference from scikit-learn's predictions on the pooled rows: {difference:.1e}\n")

    certain = model.inference()
    for j in np.argsort(certain.p_value):
        low, high = certain.interval()[j]
        print(f"{names[j]:>4} {certain.estimate[j]:+8.3f}   95 % from {low:+8.3f} to {high:+8.3f}")

    out.mkdir(parents=True, exist_ok=True)
    target = out / "diabetes.png"
    draw(model, certain, names, target)
    print(f"\nFigure: {target}")
    return target


def draw(
    model: up.FederatedLassoCV, certain: up.inference.Inference, names: np.ndarray, target: Path
) -> None:
    """The choice of α, and the intervals, each in units of its own standard error."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    mean = model.mse_path_.mean(axis=1)
    se = model.mse_path_.std(axis=1, ddof=1) / np.sqrt(model.mse_path_.shape[1])
    left.fill_between(model.alphas_, mean - se, mean + se, color="#0072B2", alpha=0.2, linewidth=0)
    left.plot(model.alphas_, mean, color="#0072B2")
    left.axvline(model.alpha_, color="0.3", linestyle="--", linewidth=1)
    left.set(
        xscale="log",
        xlabel="α",
        ylabel="held-out squared error",
        title="α by cross-validation",
    )
    order = np.argsort(np.abs(certain.z))
    half = (certain.interval()[:, 1] - certain.estimate) / certain.standard_error
    right.errorbar(
        certain.z[order],
        np.arange(len(names)),
        xerr=half[order],
        fmt="o",
        color="#D55E00",
        markersize=4,
        capsize=2,
    )
    right.axvline(0, color="0.3", linewidth=0.8)
    right.set_yticks(np.arange(len(names)), names[order])
    right.set(xlabel="estimate / standard error", title="95 % intervals")
    figure.savefig(target, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out/examples"), help="where the figure goes")
    main(parser.parse_args().out)
