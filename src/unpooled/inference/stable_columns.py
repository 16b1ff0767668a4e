"""How often columns were selected, and how many of the stable ones chance can explain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpooled._ledger import Ledger
from unpooled._wording import counted, part_of
from unpooled.inference.table import table
from unpooled.kernels.arrays import Array, Float


@dataclass(eq=False, repr=False)
class Stability:
    """What ``stability_selection`` returns.

    ``frequencies`` (L, p): the share of halves that select a column at each of ``lambdas``. ``mean_selected``
    is q; ``false_positives`` the bound on the expected number of falsely stable columns, and
    ``false_positives_unimodal`` the smaller one, NaN where it does not hold.
    """

    names: tuple[str, ...]
    lambdas: Float
    frequencies: Float
    threshold: float
    n_subsamples: int
    mean_selected: float
    ledger: Ledger
    notes: list[str]

    @property
    def rounds(self) -> int:
        """Rounds of communication."""
        return self.ledger.rounds

    @property
    def probability(self) -> Float:
        """The largest selection share of each column over the grid."""
        return np.asarray(self.frequencies.max(axis=0))

    @property
    def selected(self) -> Array:
        """The stable columns."""
        return np.flatnonzero(self.probability >= self.threshold - 1e-12)

    @property
    def false_positives(self) -> float:
        """q²/((2π − 1)p)."""
        return self.mean_selected**2 / ((2.0 * self.threshold - 1.0) * len(self.names))

    @property
    def false_positives_unimodal(self) -> float:
        """C(π, B)·q²/p."""
        p, pairs = len(self.names), self.n_subsamples // 2
        return unimodal_factor(self.threshold, pairs, self.mean_selected / p) * self.mean_selected**2 / p

    def summary(self, most: int = 20) -> str:
        """The columns that are selected most often, as a table of text."""
        chosen = np.argsort(-self.probability, kind="stable")[:most]
        stable = set(self.selected.tolist())
        rows = [
            [self.names[j], float(self.probability[j]), "stable" if j in stable else ""]
            for j in chosen.tolist()
        ]
        lines = [
            table(["", "share", ""], rows),
            f"{counted(len(stable), 'stable column')} (share ≥ {self.threshold:g} of {self.n_subsamples} "
            "halves); "
            f"expected false ones ≤ {self.false_positives:.3g}",
            str(self.ledger),
        ]
        return "\n".join(lines + self.notes)

    def __repr__(self) -> str:
        return (
            f"Stability({part_of(len(self.selected), len(self.names), 'column')} stable, expected "
            f"false ones ≤ {self.false_positives:.3g}; {self.ledger})"
        )


def unimodal_factor(threshold: float, pairs: int, share: float) -> float:
    """C(π, B) of Shah and Samworth (2013, theorem 2), for columns selected with probability ≤ ``share``."""
    lowest = min(0.5 + share**2, 0.5 + 0.5 / pairs + 0.75 * share**2)
    if share > 1.0 / np.sqrt(3.0) or threshold <= lowest:
        return float("nan")
    if threshold <= 0.75:
        return 0.5 / (2.0 * threshold - 1.0 - 0.5 / pairs)
    return 4.0 * (1.0 - threshold + 0.5 / pairs) / (1.0 + 1.0 / pairs)
