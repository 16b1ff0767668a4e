"""Four hospitals' tables, and the study that they take part in."""

import numpy as np
import pandas as pd

from unpooled.study.config import parse
from unpooled.study.desk import StudyDesk

SITES = ("basel", "bern", "genf", "zurich")


def tables(n=260, seed=0, missing=False):
    """A frame for each site: numbers, two categorical columns, a number, a label and a count to explain."""
    rng = np.random.default_rng(seed)
    frames = {}
    for k, site in enumerate(SITES):
        m = n + 20 * k
        frame = pd.DataFrame(
            {
                "age": rng.normal(60 + k, 9, m).round(1),
                "creatinine": rng.lognormal(4.4, 0.3, m),
                "smoker": rng.choice(["never", "former", "current"], m),
                "ward": rng.integers(1, 4, m),
                **{f"marker{j}": rng.normal(size=m) for j in range(6)},
            }
        )
        risk = 0.05 * (frame["age"] - 60) + 0.9 * frame["marker0"] - 0.7 * frame["marker3"]
        risk += frame["smoker"].map({"never": 0.0, "former": 0.4, "current": 1.0}) + 0.2 * frame["ward"]
        frame["pressure"] = 120 + 5 * risk + rng.normal(size=m)
        frame["died"] = np.where(rng.random(m) < 1 / (1 + np.exp(1 - risk)), "yes", "no")
        frame["visits"] = rng.poisson(np.exp(0.3 * risk - 0.3))
        frame["stage"] = np.digitize(risk + rng.logistic(size=m), [-0.5, 1.0])
        if missing:
            frame.loc[rng.random(m) < 0.1, "creatinine"] = np.nan
        frames[site] = frame
    return frames


FEATURES = ["age", "creatinine", "smoker", "ward", *(f"marker{j}" for j in range(6))]


def settings(target="pressure", kind="lasso", lam=0.1, **more):
    """The tables of a study's file; ``more`` are keys by section, as data={…}."""
    given = {
        "name": "wards",
        "sites": list(SITES),
        "data": {
            "target": target,
            "features": FEATURES,
            "categorical": {"smoker": "agree", "ward": [1, 2, 3]},
        },
        "model": {"kind": kind, "lambda": lam},
        "limits": {"join_timeout": 20, "round_timeout": 20, "grace": 0},
    }
    for section, values in more.items():
        given[section] = {**given.get(section, {}), **values} if isinstance(values, dict) else values
    return given


def study(*arguments, **more):
    return parse(settings(*arguments, **more))


def desks(asked, files, which="whole", **options):
    """The sites of a study, in this process."""
    return {site: StudyDesk(asked, site, files[which][site], **options) for site in asked.sites}
