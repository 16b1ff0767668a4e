"""A whole study over desks in this process gives what the pooled estimators give."""

import csv
import json

import numpy as np
import pytest

import unpooled as up
from tests.study.sites import FEATURES, SITES, study, tables
from unpooled.preprocessing import encode
from unpooled.remote.direct import Direct
from unpooled.remote.messages import Failure
from unpooled.study import table as tables_of
from unpooled.study.agreement import DisagreementError
from unpooled.study.audit import Audit
from unpooled.study.config import StudyError
from unpooled.study.coordinator import StoppedError, run_study
from unpooled.study.desk import StudyDesk

CATEGORICAL = ["smoker", "ward"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Every site's file, two in CSV and two in Parquet; and another set with missing values."""
    folder = tmp_path_factory.mktemp("tables")
    for name, missing in (("whole", False), ("holes", True)):
        for k, (site, frame) in enumerate(tables(missing=missing).items()):
            path = folder / f"{name}-{site}"
            if k % 2:
                frame.to_csv(f"{path}.csv", index=False)
            else:
                frame.to_parquet(f"{path}.parquet")
    return {
        name: {path.stem.split("-")[1]: tables_of.read(path) for path in sorted(folder.glob(f"{name}-*"))}
        for name in ("whole", "holes")
    }


def desks(asked, files, which="whole", **options):
    return {site: StudyDesk(asked, site, files[which][site], **options) for site in asked.sites}


def pooled(target, missing=False):
    """Rows of all sites with their dummies, and whose they are."""
    frames = {site: frame[[*FEATURES, target]] for site, frame in tables(missing=missing).items()}
    if target == "died":
        frames = {
            site: frame.assign(died=frame["died"].eq("yes").astype(int)) for site, frame in frames.items()
        }
    return encode(frames, target, categorical=CATEGORICAL, allow_missing=missing).data


CASES = {
    "lasso": ("pressure", "lasso", 0.1, {}, lambda: up.FederatedLasso(0.1, standardise=True)),
    "lasso cv": (
        "pressure",
        "lasso",
        "cv",
        {"n_lambdas": 25},
        lambda: up.FederatedLassoCV(standardise=True, n_alphas=25),
    ),
    "raw": (
        "pressure",
        "lasso",
        0.5,
        {"standardise": False, "intercept": False},
        lambda: up.FederatedLasso(0.5, fit_intercept=False),
    ),
    "elastic net": (
        "pressure",
        "elastic net",
        0.1,
        {"l1_ratio": 0.3, "unpenalised": ["smoker"]},
        lambda: up.FederatedElasticNet(
            0.1, l1_ratio=0.3, standardise=True, unpenalised=["smoker=former", "smoker=never"]
        ),
    ),
    "group lasso": (
        "pressure",
        "group lasso",
        0.2,
        {"groups": {"blood": ["creatinine", "marker0"]}},
        lambda: up.FederatedGroupLasso(0.2, standardise=True, groups=[0, 1, 2, 2, 3, 3, 1, 4, 5, 6, 7, 8]),
    ),
    "sites": (
        "pressure",
        "lasso",
        0.1,
        {"intercept": "sites"},
        lambda: up.FederatedLasso(0.1, standardise=True, site_intercepts=True),
    ),
    "huber": (
        "pressure",
        "huber",
        0.1,
        {"delta": 2.0},
        lambda: up.FederatedHuberRegressor(0.1, delta=2.0, standardise=True),
    ),
    "poisson": ("visits", "poisson", 0.05, {}, lambda: up.FederatedPoissonRegressor(0.05, standardise=True)),
    "logistic": (
        "died",
        "logistic",
        0.01,
        {},
        lambda: up.FederatedLogisticRegression(C=1 / (0.01 * 1160), standardise=True),
    ),
    "logistic cv": (
        "died",
        "logistic",
        "cv",
        {"n_lambdas": 12, "ratio": 0.05},
        lambda: up.FederatedLogisticRegressionCV(standardise=True, n_alphas=12, eps=0.05),
    ),
    "multinomial": (
        "stage",
        "multinomial",
        0.01,
        {},
        lambda: up.FederatedLogisticRegression(C=1 / (0.01 * 1160), standardise=True),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_that_of_the_pooled_estimator(files, tmp_path, name):
    target, kind, lam, model, estimator = CASES[name]
    asked = study(target, kind, lam, model=model)
    result = run_study(asked, Direct(desks(asked, files)), tmp_path)
    known = estimator().fit(pooled(target))
    coef = known.coef_.T if known.coef_.ndim == 2 else known.coef_
    np.testing.assert_allclose(result.coef, coef.reshape(result.coef.shape), rtol=0, atol=1e-8)
    if name == "sites":
        assert list(result.intercept) == list(SITES)
        np.testing.assert_allclose(list(result.intercept.values()), known.site_intercepts_.values, atol=1e-8)
    elif model.get("intercept", True):
        np.testing.assert_allclose(result.intercept, np.squeeze(known.intercept_), rtol=0, atol=1e-7)
    assert result.converged
    assert (np.asarray(result.coef) != 0).any()
    assert not (tmp_path / "checkpoint").exists()
    rows = list(csv.DictReader((tmp_path / "coefficients.csv").read_text("utf-8").splitlines()))
    written = [float(row["coefficient"]) for row in rows if row["term"] != "(intercept)"]
    np.testing.assert_array_equal(written, np.ravel(result.coef))
    assert {row["feature"] for row in rows} - {"(intercept)"} == set(FEATURES)
    described = json.loads((tmp_path / "result.json").read_text("utf-8"))
    assert described["sites"] == {site: 260 + 20 * k for k, site in enumerate(SITES)}
    assert described["certificate"]["kind"] in ("duality gap", "KKT residual")
    assert "unpooled" in described["versions"]["bern"]
    assert (tmp_path / "summary.txt").read_text("utf-8").startswith(f"wards: {kind} of {target}")


def test_missing_values_are_filled_with_the_mean_of_all(files, tmp_path):
    asked = study(data={"missing": "mean"})
    result = run_study(asked, Direct(desks(asked, files, "holes")), tmp_path)
    known = up.FederatedLasso(0.1, standardise=True, missing="mean").fit(pooled("pressure", missing=True))
    np.testing.assert_allclose(result.coef, known.coef_, rtol=0, atol=1e-8)
    assert any("missing values are now the mean" in note for note in result.notes)
