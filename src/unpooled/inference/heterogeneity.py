"""Score tests of whether the sites share one model, on the support of the fit.

At the pooled refit β on the selected columns and the intercept, the scores S_k = Σ_{i in k} x_i(y_i − μ_i)
of the sites sum to zero. If all sites share one model, with A_k = Σ_{i in k} ℓ''_i x_i x_iᵀ and A = Σ A_k,

    T_k = S_kᵀ (A_k − A_k A⁻¹ A_k)⁺ S_k

is χ² with degrees of freedom equal to the rank of that matrix, at most n_k. For the squared loss, T_k is the
reduction of the residual sum of squares if site k had coefficients of its own, and the test is the exact F
test (Chow 1960). With separate coefficients for all sites the reduction is Σ S_kᵀ A_k⁺ S_k: the overall test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from unpooled._ledger import Ledger
from unpooled._validation import ClientId
from unpooled._wording import part_of, text_table
from unpooled.data.federated import FederatedData
from unpooled.exact.clients import QuestionEngine
from unpooled.exact.fit import Fit
from unpooled.exact.site import unpacked
from unpooled.exact.solve import bind, check_numbers
from unpooled.inference.argument_checks import (
    check_fit,
    check_model,
    check_rows,
    check_share,
    refuse_site_intercepts,
)
from unpooled.inference.client_questions import ClientQuestions
from unpooled.inference.distributions import chi_squared_tail, f_tail
from unpooled.inference.multiplicity import benjamini_hochberg
from unpooled.inference.quadratic_model import inverse, refitted
from unpooled.kernels.arrays import Array, Arrays, Float
from unpooled.problem import Problem

RANK = 1e-9  # eigenvalues below this share of the largest count as zero


@dataclass(eq=False, repr=False)
class Heterogeneity:
    """The result of ``heterogeneity``, one entry per site.

    ``statistic`` is T_k (divided by σ̂² for the squared loss) and ``df`` its degrees of freedom, which are
    fewer than the columns of ``support`` if a site has few rows. ``p_value`` is NaN if no degrees of freedom
    remain. ``overall`` is (statistic, df, p-value) of all sites together.
    """

    sites: tuple[ClientId, ...]
    n_rows: Array
    statistic: Float
    df: Array
    p_value: Float
    overall: tuple[float, int, float]
    support: Array
    ledger: Ledger

    @property
    def rounds(self) -> int:
        """Rounds of communication."""
        return self.ledger.rounds

    @property
    def adjusted(self) -> Float:
        """p-values adjusted for the number of sites by the Benjamini–Hochberg procedure."""
        return benjamini_hochberg(self.p_value)

    def differing(self, q: float = 0.1) -> tuple[ClientId, ...]:
        """The sites whose adjusted p-value is at most q."""
        return tuple(self.sites[k] for k in np.flatnonzero(self.adjusted <= check_share("q", q)))

    def summary(self) -> str:
        """A table of text, the sites that differ most first."""
        order = np.argsort(self.p_value, kind="stable")
        rows: list[list[Any]] = []
        for k in order:
            counts = int(self.n_rows[k]), float(self.statistic[k]), int(self.df[k])
            rows.append([str(self.sites[k]), *counts, float(self.p_value[k]), float(self.adjusted[k])])
        statistic, df, p = self.overall
        rows.append(["all sites", int(self.n_rows.sum()), statistic, df, p, ""])
        return text_table(["site", "rows", "statistic", "df", "p", "p (BH)"], rows)

    def to_frame(self) -> Any:
        """The same as a pandas frame (needs pandas)."""
        import pandas as pd

        names = ("n_rows", "statistic", "df", "p_value", "adjusted")
        columns = {name: getattr(self, name) for name in names}
        return pd.DataFrame(columns, index=pd.Index(self.sites, name="site"))

    def __repr__(self) -> str:
        return (
            f"Heterogeneity({part_of(len(self.differing()), len(self.sites), 'site', 'differs', 'differ')} "
            f"at a false discovery rate of 0.1; overall p = {self.overall[2]:.3g}; {self.ledger})"
        )


def heterogeneity(
    problem: Problem,
    data: FederatedData,
    fit: Fit,
    *,
    min_rows: int = 10,
    engine: QuestionEngine | None = None,
) -> Heterogeneity:
    """Test for each site whether the pooled model fits it.

    Every site sends its own score and Hessian on the selected columns, which the server sees individually.
    This takes one round for the squared loss and a few for the logistic loss, in which the support is
    refitted without a penalty. ``min_rows`` is as in ``solve``; a refusal is an error.
    """
    bound = bind(problem, data)
    check_numbers(1.0, 1, min_rows)
    check_model(bound, "heterogeneity")
    check_rows(data, "heterogeneity")
    refuse_site_intercepts(problem, "heterogeneity")
    check_fit(fit, bound, data)
    if data.n_clients < 2:
        raise ValueError("heterogeneity compares sites, but the data has only one")
    questions = ClientQuestions.of(bound, data, engine, min_rows, "heterogeneity")
    flat = bound.layout.pack(fit.w, fit.intercept)
    _, working, totals = refitted(questions, flat, sites=True)
    if not working.size:
        raise ValueError("the fit has no non-zero coefficients and no intercept: there is nothing to test")
    scores, own, rss = _at_the_refit(totals, working, data.sizes)
    whole = sum(own[1:], own[0])
    pooled = inverse(whole)
    _, rank = quadratic_form(whole, np.zeros(len(working)), data.n_rows, np.diag(whole))
    drops, ranks = list[float](), list[int]()
    saturated, all_ranks = 0.0, 0
    for S, A, n in zip(scores, own, data.sizes.tolist(), strict=True):
        drop, df = quadratic_form(A - A @ pooled @ A, S, n, np.diag(A))
        everything, all_df = quadratic_form(A, S, n, np.diag(A))
        drops.append(drop)
        ranks.append(df)
        saturated, all_ranks = saturated + everything, all_ranks + all_df
    squared = problem.loss.has_dispersion
    left = data.n_rows - rank  # rows, less what the pooled model takes
    p_values = [_p_value(T, r, rss, left - r, squared) for T, r in zip(drops, ranks, strict=True)]
    scale = rss / left if squared and left > 0 else 1.0
    overall_df = all_ranks - rank
    overall = _p_value(saturated, overall_df, rss, data.n_rows - all_ranks, squared)
    return Heterogeneity(
        sites=data.ids,
        n_rows=data.sizes,
        statistic=np.array(drops) / scale,
        df=np.array(ranks),
        p_value=np.array(p_values),
        overall=(saturated / scale, overall_df, overall),
        support=working[working < data.n_features],
        ledger=questions.server.ledger,
    )


def _at_the_refit(
    totals: list[Arrays], working: Array, sizes: Array
) -> tuple[list[Float], list[Float], float]:
    """S_k, A_k and twice the loss of all rows, after the last Newton step from the point of the answers."""
    scores = [-n * total["gradient"][working] for n, total in zip(sizes, totals, strict=True)]
    own = [n * unpacked(total["hessian"], len(working)) for n, total in zip(sizes, totals, strict=True)]
    rest = np.sum(scores, axis=0)
    d = inverse(sum(own[1:], own[0])) @ rest
    twice = 2.0 * sum(n * float(total["loss"]) for n, total in zip(sizes, totals, strict=True))
    return [S - A @ d for S, A in zip(scores, own, strict=True)], own, max(twice - float(rest @ d), 0.0)


def quadratic_form(V: Float, S: Float, most: int, scale: Float) -> tuple[float, int]:
    """SᵀV⁺S and the rank of V, at most ``most``; columns are first divided by √scale."""
    unit = np.sqrt(np.where(scale > 0.0, scale, 1.0))
    values, vectors = linalg.eigh(V / np.multiply.outer(unit, unit))
    kept = np.flatnonzero(values > RANK * len(V))[-most:]
    along = (vectors[:, kept].T @ (S / unit)) / np.sqrt(values[kept])
    return float(along @ along), len(kept)


def _p_value(drop: float, df: int, rss: float, left: int, squared: bool) -> float:
    """The p-value of the F test with ``left`` degrees of freedom for the noise, or of the χ² test."""
    if df <= 0 or (squared and left <= 0):
        return float("nan")
    if not squared:
        return chi_squared_tail(drop, df)
    noise = max(rss - drop, 1e-300) / left
    return f_tail(drop / df / noise, df, left)
