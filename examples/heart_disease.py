"""Heart disease in four hospitals: sparse logistic regression with an intercept for each.

    python examples/heart_disease.py FOLDER [--out DIR]

FOLDER holds processed.cleveland.data, processed.hungarian.data, processed.switzerland.data and
processed.va.data of "Heart Disease" (Janosi, Steinbrunn, Pfisterer, Detrano; UCI Machine Learning Repository,
dataset 45, CC BY 4.0): download and unpack it from the repository's page.

The hospitals measure differently and see different patients: each has an intercept of its own, which the
fit does not reveal. What leaves a hospital are moments, gradients and Hessians, and ``summary`` says so.
Levels and columns that few patients have are kept here (``rare="keep"``, ``min_rows=0``): the data are
public.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

import unpooled as up
from unpooled.preprocessing import encode

matplotlib.use("agg")
import matplotlib.pyplot as plt

HOSPITALS = {
    "cleveland": "Cleveland",
    "hungarian": "Budapest",
    "switzerland": "Zürich/Basel",
    "va": "Long Beach",
}
COLUMNS = "age sex cp trestbps chol fbs restecg thalach exang oldpeak slope ca thal num".split()  # noqa: SIM905
USED = COLUMNS[:10]  # the other three are missing nearly everywhere but in Cleveland
PAIN = {1: "typical", 2: "atypical", 3: "no angina", 4: "silent"}
ECG = {0: "normal", 1: "ST-T", 2: "hypertrophy"}


def load(folder: Path) -> pd.DataFrame:
    """All hospitals' rows; a cholesterol or a blood pressure of zero is one that was not taken."""
    frames = []
    for name, city in HOSPITALS.items():
        path = folder / f"processed.{name}.data"
        if not path.is_file():
            raise SystemExit(f"there is no {path}: see the top of this file for where to get it")
        frames.append(pd.read_csv(path, names=COLUMNS, na_values="?").assign(hospital=city))
    frame = pd.concat(frames, ignore_index=True)
    frame[["trestbps", "chol"]] = frame[["trestbps", "chol"]].replace(0, np.nan)
    frame["restecg"] = frame["restecg"].fillna(0)  # two rows; a level of its own would be rare
    frame["cp"], frame["restecg"] = frame["cp"].map(PAIN), frame["restecg"].map(ECG)
    frame["disease"] = (frame["num"] > 0).astype(int)
    return frame[[*USED, "disease", "hospital"]]


def main(folder: Path, out: Path) -> Path:
    coded = encode(load(folder), "disease", client="hospital", allow_missing=True, rare="keep")
    names = np.array(coded.feature_names)
    model = up.FederatedLogisticRegressionCV(
        standardise=True, missing="mean", site_intercepts=True, rule="1se", n_alphas=40, eps=1e-2, min_rows=0
    ).fit(coded.data)
    print(model.summary(), "\n")

    certain = model.inference()
    print("log odds for one unit more, with what the hospitals together know about it:")
    print(certain.summary(most=len(names)), "\n")
    for hospital in HOSPITALS.values():
        print(f"{hospital:>13}: intercept {float(model.site_intercepts_.of(hospital)):+.2f}")

    out.mkdir(parents=True, exist_ok=True)
    target = out / "heart_disease.png"
    draw(model, certain, names, target)
    print(f"\nFigure: {target}")
    return target


def draw(
    model: up.FederatedLogisticRegressionCV, certain: up.inference.Inference, names: np.ndarray, target: Path
) -> None:
    """A forest of odds ratios, for one standard deviation, and the hospitals' own odds."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9.5, 4.2), layout="constrained", gridspec_kw={"width_ratios": [2, 1]}
    )
    scale = model._prepared.scale.ravel()
    order = np.argsort(certain.estimate * scale)
    ratio, ends = np.exp(certain.estimate * scale)[order], np.exp(certain.interval() * scale[:, None])[order]
    kept = model.coef_.ravel()[order] != 0
    rows = np.arange(len(names))
    left.hlines(rows, ends[:, 0], ends[:, 1], color="0.45")
    left.plot(ratio[kept], rows[kept], "o", color="#0072B2", label="kept by the lasso")
    left.plot(ratio[~kept], rows[~kept], "o", color="white", markeredgecolor="#0072B2", label="not kept")
    left.axvline(1, color="0.3", linewidth=0.8)
    left.set_yticks(rows, names[order])
    left.set(
        xscale="log",
        xlabel="odds ratio of one standard deviation, 95 %",
        title="What goes with heart disease",
    )
    ticks = [0.5, 0.7, 1, 1.5, 2, 3]
    left.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    left.minorticks_off()
    left.legend(frameon=False, loc="lower right")
    hospitals = list(HOSPITALS.values())
    values = [float(model.site_intercepts_.of(hospital)) for hospital in hospitals]
    values = np.array(values) - np.mean(values)
    right.barh(hospitals, values, color="#E69F00")
    right.axvline(0, color="0.3", linewidth=0.8)
    right.set(xlabel="log odds, from their mean", title="Hospitals' intercepts")
    figure.savefig(target, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="with the four processed.*.data files")
    parser.add_argument("--out", type=Path, default=Path("out/examples"), help="where the figure goes")
    arguments = parser.parse_args()
    main(arguments.folder, arguments.out)
