"""What crossed the network."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from unpooled._wording import counted

WORDS = {
    "anchor": "column means",
    "conjugate": "dual objective",
    "curvature": "bounds of the curvature",
    "diagonal": "diagonal of the Gram matrix or Hessian",
    "diagonal_rows": "row counts",
    "dual_gradient": "gradients",
    "floor": "least possible loss",
    "gradient": "gradients",
    "gram": "Gram matrix",
    "hessian": "Hessians",
    "hidden_weight": "row counts",
    "hidden_x": "column means",
    "intercept": "site intercepts",
    "loss": "losses",
    "losses": "held-out losses",
    "mean_t": "mean of the target",
    "mean_x": "column means",
    "mean_xt": "products of columns and target",
    "mean_yy": "mean square of the target",
    "missing": "counts of missing values",
    "observed": "counts of observed values",
    "offset": "column means",
    "refused_columns": "refusals",
    "refused_rows": "refusals",
    "rows": "row counts",
    "squares": "sums of squares",
}


class Traffic(NamedTuple):
    """Numbers sent, and the bytes they took; a sparse vector's bytes include the numbers of its features."""

    floats: int
    bytes: int


@dataclass(frozen=True)
class Ledger:
    """Rounds, and numbers and bytes each way, summed over clients. ``setup_rounds`` chose the defaults.

    ``kinds`` names the statistics that left a site, where a client answers questions (exact solvers).
    """

    rounds: int = 0
    setup_rounds: int = 0
    client_updates: int = 0
    floats_up: int = 0
    floats_down: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    kinds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", tuple(self.kinds))  # a list, when read from a file

    def after_round(self, n_clients: int, up: Traffic, down: Traffic) -> Ledger:
        """The ledger with one more round, and what all its clients together sent and were sent in it."""
        return Ledger(
            rounds=self.rounds + 1,
            setup_rounds=self.setup_rounds,
            client_updates=self.client_updates + n_clients,
            floats_up=self.floats_up + up.floats,
            floats_down=self.floats_down + down.floats,
            bytes_up=self.bytes_up + up.bytes,
            bytes_down=self.bytes_down + down.bytes,
            kinds=self.kinds,
        )

    def after_answers(
        self, n_clients: int, floats_up: int, floats_down: int, kinds: tuple[str, ...], itemsize: int = 8
    ) -> Ledger:
        """The ledger with one more round, in which clients together sent and were sent so many numbers."""
        up, down = Traffic(floats_up, floats_up * itemsize), Traffic(floats_down, floats_down * itemsize)
        after = self.after_round(n_clients, up, down)
        return dataclasses.replace(after, kinds=tuple(sorted({*self.kinds, *kinds})))

    def __add__(self, other: Ledger) -> Ledger:
        """What crossed the network in both."""
        mine, theirs = dataclasses.asdict(self), dataclasses.asdict(other)
        kinds = tuple(sorted({*mine.pop("kinds"), *theirs.pop("kinds")}))
        return Ledger(**{name: count + theirs[name] for name, count in mine.items()}, kinds=kinds)

    def __str__(self) -> str:
        rounds, up, down = counted(self.rounds, "round"), megabytes(self.bytes_up), megabytes(self.bytes_down)
        return f"{rounds}, {up} up, {down} down"


def megabytes(count: int) -> str:
    """A number of bytes for people."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def in_words(kinds: Iterable[str]) -> str:
    """``Gram matrix, column means, …``: each once, in the order of the alphabet; other names as they are."""
    return ", ".join(sorted({WORDS.get(kind, kind) for kind in kinds}, key=str.lower))
