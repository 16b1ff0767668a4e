"""The one retry policy: how many times, for how long and how far apart something is tried.

    for attempt in Retry(tries=3):                       for _ in Retry(seconds=60.0, pause=0.1):
        try:                                                 if is_there():
            return call()                                        break
        except UnreachableError:                         else:
            if attempt.is_last:                              raise TimeoutError("nobody came")
                raise

There is always a first attempt, and one more when the time is up: what happened during the last pause counts.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


class Attempt(NamedTuple):
    """One of a policy's attempts."""

    number: int  # 1 for the first
    seconds: float  # since the first
    is_last: bool


@dataclass(frozen=True)
class Retry:
    """Try at most ``tries`` times and for ``seconds``, with pauses between attempts.

    The first pause takes ``pause`` seconds; each is ``growth`` times the one before, up to ``longest``.
    """

    tries: float = math.inf
    seconds: float = math.inf
    pause: float = 0.0
    growth: float = 1.0
    longest: float = math.inf

    def __iter__(self) -> Iterator[Attempt]:
        began, pause = time.monotonic(), self.pause
        for number in itertools.count(1):
            spent = time.monotonic() - began
            is_last = number >= self.tries or spent >= self.seconds
            yield Attempt(number, spent, is_last)
            if is_last:
                return
            left = began + self.seconds - time.monotonic()
            time.sleep(max(0.0, min(pause, left)))
            pause = min(self.growth * pause, self.longest)
