"""The result of the debiased lasso."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unpooled._ledger import Ledger, in_words, megabytes
from unpooled._wording import counted, text_table
from unpooled.inference.argument_checks import check_share
from unpooled.inference.distributions import quantile, two_sided
from unpooled.inference.multiplicity import benjamini_hochberg
from unpooled.kernels.arrays import Array, Float


@dataclass(eq=False, repr=False)
class Inference:
    """Estimates with their uncertainty, returned by ``debiased_lasso``; one entry per feature in ``columns``.

    ``coef`` holds the fit's shrunken coefficients, ``estimate`` and ``standard_error`` the debiased ones.
    ``degrees`` are the degrees of freedom of Student's distribution, inf for the normal. ``sigma`` is the
    standard deviation of the noise (1 for logistic regression). ``ledger`` covers the rounds of this call:
    it includes the fit if none was given, and is empty after a fit by sufficient statistics.
    """

    names: tuple[str, ...]
    columns: Array
    coef: Float
    estimate: Float
    standard_error: Float
    degrees: float
    sigma: float
    level: float
    lam_node: float
    covariance: str
    n_rows: int
    ledger: Ledger
    notes: list[str]

    @property
    def rounds(self) -> int:
        """Rounds of communication."""
        return self.ledger.rounds

    @property
    def z(self) -> Float:
        """estimate / standard error."""
        return np.asarray(self.estimate / self.standard_error)

    @property
    def p_value(self) -> Float:
        """Two-sided p-values of the hypothesis that the coefficient is zero."""
        return two_sided(self.z, self.degrees)

    @property
    def adjusted(self) -> Float:
        """p-values adjusted by the Benjamini–Hochberg procedure."""
        return benjamini_hochberg(self.p_value)

    def interval(self, level: float | None = None) -> Float:
        """Confidence intervals, shape (m, 2); each covers its coefficient with this probability."""
        level = self.level if level is None else check_share("level", level)
        half = quantile(level, self.degrees) * self.standard_error
        return np.stack([self.estimate - half, self.estimate + half], axis=1)

    def selected(self, q: float = 0.1) -> Array:
        """The columns whose adjusted p-value is at most q: a false discovery rate of about q or less."""
        return self.columns[self.adjusted <= check_share("q", q)]

    def summary(self, most: int = 20) -> str:
        """The ``most`` most significant coefficients as a text table."""
        chosen = np.argsort(self.p_value, kind="stable")[:most]
        low, high = self.interval().T
        share = f"{100 * self.level:g} %"
        head = ["", "fit", "estimate", "se", f"{share} from", "to", "p", "p (BH)"]
        columns = [self.coef, self.estimate, self.standard_error, low, high, self.p_value, self.adjusted]
        rows = [[self.names[i], *(float(column[i]) for column in columns)] for i in chosen]
        left = len(self.names) - len(chosen)
        lines = [
            text_table(head, rows),
            *([f"and {left} more, with larger p-values"] if left > 0 else []),
            f"{self.n_rows} rows; standard errors: {self.covariance}, σ = {self.sigma:.4g}; "
            f"nodewise λ = {self.lam_node:.4g}",
            f"{counted(self.ledger.rounds, 'round')}, "
            f"{megabytes(self.ledger.bytes_up)} up: {in_words(self.ledger.kinds) or 'no questions asked'}",
        ]
        return "\n".join(lines + self.notes)

    def to_frame(self) -> Any:
        """A pandas data frame with one row per coefficient (needs pandas)."""
        import pandas as pd

        low, high = self.interval().T
        columns = {
            "coef": self.coef,
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "z": self.z,
            "p_value": self.p_value,
            "adjusted": self.adjusted,
            "low": low,
            "high": high,
        }
        return pd.DataFrame(columns, index=pd.Index(self.names, name="feature"))

    def __repr__(self) -> str:
        found = f"{len(self.selected())} of {len(self.names)} coefficients"
        return f"Inference({found} at a false discovery rate of 0.1; {self.ledger})"
