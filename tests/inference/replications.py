"""Many data sets of one truth, K = 10 sites of 100 rows and 200 features whose means differ by site: how
often intervals cover, how many discoveries are false, how often tests of sites reject."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy import stats

import unpooled as up
from tests.inference import pooled
from unpooled.inference import debiased_lasso, heterogeneity

LAM = {"squared": 0.5, "logistic": 0.25}  # times √(2 log p/N)


@dataclass
class Replication:
    """For one data set: which coefficients are covered; the false share of discoveries; p-values of sites."""

    covered: np.ndarray
    z: np.ndarray
    false_share: float
    power: float
    p_sites: np.ndarray
    p_overall: float


def replication(kind, seed, p=200, level=0.95, factor=None, columns=None, rho=0.0):
    data, beta = pooled.federation(kind, [seed, 2024], p=p, rho=rho)
    lam = (LAM[kind] if factor is None else factor) * np.sqrt(2 * np.log(p) / data.n_rows)
    problem = pooled.problem(kind, lam)
    fit = up.solve(problem, data)
    own = debiased_lasso(problem, data, fit, level=level, columns=columns)
    beta = beta[own.columns]
    low, high = own.interval().T
    found = np.isin(own.columns, own.selected(0.1))
    sites = heterogeneity(problem, data, fit)
    return Replication(
        covered=(low <= beta) & (beta <= high),
        z=(own.estimate - beta) / own.standard_error,
        false_share=float(np.sum(found & (beta == 0)) / max(found.sum(), 1)),
        power=float(found[beta != 0].mean()),
        p_sites=sites.p_value,
        p_overall=sites.overall[2],
    )


def replications(kind, count, workers=1, **options):
    """The data sets with seeds 0, 1, …"""
    if workers == 1:
        return [replication(kind, seed, **options) for seed in range(count)]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(_one, [(kind, seed, options) for seed in range(count)], chunksize=5))


def _one(job):
    kind, seed, options = job
    return replication(kind, seed, **options)


def share(hits):
    """The mean of 0/1 values over data sets, and its standard error from the data sets' own means."""
    means = np.array([np.mean(h) for h in hits], dtype=float)
    return means.mean(), means.std(ddof=1) / np.sqrt(len(means))


def binomial_bounds(probability, trials, tail=1e-3):
    """Between these a count of independent trials lies, but for 2·tail of all times."""
    return stats.binom.ppf([tail, 1 - tail], trials, probability)
