"""The whole check of what the intervals and tests promise: 500 data sets each (``make check-statistics``)."""

import os

import numpy as np
import pytest
from scipy import stats

from tests.inference.replications import replications, share

pytestmark = [pytest.mark.statistics, pytest.mark.timeout(7200)]

COUNT = 500
# A known limit, not a pass: it must be looked at again, here and in the docs, when it is mended.
SHORT = pytest.mark.xfail(strict=True, reason="92.8 % of coefficients not zero; sites rejected at 0.071")
SETTINGS = [
    ("squared", 0.0, 0.5),
    ("squared", 0.0, 1.0),
    ("squared", 0.6, 0.5),
    ("logistic", 0.0, 0.25),
    ("logistic", 0.0, 0.5),
    pytest.param("logistic", 0.6, 0.25, marks=SHORT),
]
ROW = "{:<10}{:>6}{:>6}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}"
HEAD = ("loss", "ρ", "λ/λ₀", "zero", "± se", "non-zero", "± se", "FDR", "power", "site", "overall", "site KS")


@pytest.fixture(scope="module", autouse=True)
def heading():
    print(f"\n{COUNT} data sets, K = 10, n_k = 100, p = 200, 10 coefficients not zero, λ₀ = √(2 log p/N),")
    print("neighbouring features correlated by ρ; means that differ by site;")
    print(
        "coverage of 95 % intervals; FDR of Benjamini-Hochberg at 0.1; rejections at 0.05 of tests of sites"
    )
    print(ROW.format(*HEAD))


@pytest.mark.parametrize(("kind", "rho", "factor"), SETTINGS)
def test_coverage_discoveries_and_sites(kind, rho, factor):
    runs = replications(kind, COUNT, workers=os.cpu_count() or 1, factor=factor, rho=rho)
    zero, zero_se = share([run.covered[10:] for run in runs])
    kept, kept_se = share([run.covered[:10] for run in runs])
    false, _ = share([run.false_share for run in runs])
    power, _ = share([run.power for run in runs])
    site, _ = share([run.p_sites < 0.05 for run in runs])
    overall, _ = share([run.p_overall < 0.05 for run in runs])
    uniform = stats.kstest(np.concatenate([run.p_sites for run in runs]), "uniform").statistic
    numbers = (zero, zero_se, kept, kept_se, false, power, site, overall, uniform)
    print(ROW.format(kind, rho, factor, *(f"{number:.4f}" for number in numbers)), flush=True)
    assert 0.93 <= zero <= 0.97
    assert 0.93 <= kept <= 0.97
    assert false <= 0.12
    assert 0.035 <= site <= 0.065
    assert overall <= 0.08
