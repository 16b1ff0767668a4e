"""Crime in 1994 communities of 46 states: one sparse model for all, and the states that pull it their way.

    python examples/communities_and_crime.py FILE [--out DIR]

FILE is communities.data of "Communities and Crime" (Redmond; UCI Machine Learning Repository, dataset 183,
CC BY 4.0), with or without a header line of its names: download and unpack it from the repository's page.
Each state is a client.

Some states have only a handful of communities. Their Gram matrix would give rows away, so by default they
refuse to send one, and only gradients are exchanged. The data are public here, so the states may agree on
``min_rows=1``: then one round does for the whole path and cross-validation, and one for what every state's
absence would change.
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

TARGET = "ViolentCrimesPerPop"
NOT_FEATURES = ["state", "county", "community", "communityname string", "communityname", "fold"]


def load(path: Path) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """The columns that are known everywhere, the target, the state."""
    if not path.is_file():
        raise SystemExit(f"there is no {path}: see the top of this file for where to get it")
    frame = pd.read_csv(path, na_values="?")
    if TARGET not in frame.columns:
        listed = (path.parent / "communities.names").read_text().splitlines()
        names = [line.split()[1] for line in listed if line.startswith("@attribute")]
        frame = pd.read_csv(path, names=names, na_values="?")
    X = frame.drop(columns=[TARGET, *(name for name in NOT_FEATURES if name in frame)])
    return X.dropna(axis=1), frame[TARGET], frame["state"].astype(str)


def main(path: Path, out: Path) -> Path:
    X, y, state = load(path)
    careful = up.FederatedLasso(0.01, standardise=True, tol=1e-6).fit(X, y, clients=state)
    print(careful.summary(), "\n")

    model = up.FederatedLassoCV(standardise=True, rule="1se", min_rows=1).fit(X, y, clients=state)
    print(model.summary(), "\n")
    certain = model.inference()
    print(certain.summary(most=12), "\n")
    without = up.inference.influence(model.problem_, model._data, min_rows=1)
    print("\n".join(without.summary().splitlines()[:9]))

    out.mkdir(parents=True, exist_ok=True)
    target = out / "communities_and_crime.png"
    draw(model, certain, target)
    print(f"\nFigure: {target}")
    return target


def draw(model: up.FederatedLassoCV, certain: up.inference.Inference, target: Path) -> None:
    """The path with its choice, and the clearest coefficients with their intervals."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    path = model.cv_result_.path
    left.plot(path.lambdas, path.coefs, color="0.6", linewidth=0.6)
    top = np.argsort(certain.p_value)[:12]
    for j in np.argsort(-np.abs(path.coefs[model.cv_result_.index]))[:5]:
        left.plot(path.lambdas, path.coefs[:, j], linewidth=1.6, label=certain.names[j])
    left.axvline(model.alpha_, color="0.2", linestyle="--", linewidth=1)
    left.set(xscale="log", xlabel="α", ylabel="coefficient, standardised", title="100 λ in one round")
    left.legend(frameon=False, fontsize=8, loc="upper left")
    order = top[np.argsort(certain.z[top])]
    half = (certain.interval()[:, 1] - certain.estimate) / certain.standard_error
    rows = np.arange(len(order))
    right.errorbar(
        certain.z[order], rows, xerr=half[order], fmt="o", color="#0072B2", markersize=4, capsize=2
    )
    right.axvline(0, color="0.3", linewidth=0.8)
    right.set_yticks(rows, np.array(certain.names)[order], fontsize=8)
    right.set(xlabel="estimate / standard error", title="Free of shrinkage, with 95 % intervals")
    figure.savefig(target, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", type=Path, help="communities.data")
    parser.add_argument("--out", type=Path, default=Path("out/examples"), help="where the figure goes")
    arguments = parser.parse_args()
    main(arguments.path, arguments.out)
