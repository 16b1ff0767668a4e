"""Times as ratios: contenders take turns, A B C B C A …, and each turn is compared within its own repeat.

A machine that slows down for a while slows all contenders of that repeat; the median over repeats then
leaves it out. Absolute times are only shown beside the ratios.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

REST = 0.03  # seconds before each turn: thread pools spin for a while after their last task


@dataclass(frozen=True)
class Times:
    """Seconds of every contender's turns; turn i of all contenders belongs to repeat i."""

    seconds: Mapping[str, list[float]]

    def median(self, name: str) -> float:
        """The median time of a contender."""
        return statistics.median(self.seconds[name])

    def ratio(self, slow: str, fast: str) -> float:
        """The median over repeats of time(slow) / time(fast)."""
        return statistics.median(self._ratios(slow, fast))

    def spread(self, slow: str, fast: str) -> tuple[float, float]:
        """The smallest and the largest of those ratios."""
        ratios = self._ratios(slow, fast)
        return min(ratios), max(ratios)

    def _ratios(self, slow: str, fast: str) -> list[float]:
        return [a / b for a, b in zip(self.seconds[slow], self.seconds[fast], strict=True)]


def alternate(turns: Mapping[str, Callable[[], object]], repeats: int) -> Times:
    """Time every contender once a repeat. Whatever is slow only the first time must have been done."""
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    names = list(turns)
    for i in range(repeats):
        first = i % len(names)  # so that no one always comes after the same one
        for name in names[first:] + names[:first]:
            time.sleep(REST)
            began = time.perf_counter()
            turns[name]()
            seconds[name].append(time.perf_counter() - began)
    return Times(seconds)
