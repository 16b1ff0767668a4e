"""An engine some of whose clients lie: they turn their uploads around and enlarge them."""

from dataclasses import dataclass

import numpy as np

from unpooled.engines.local.engine import Local, LocalClients
from unpooled.engines.local.loops import Loops


class LyingLoops(Loops):
    """Loops of clients of which the first ``liars`` send ``factor`` times what they should."""

    liars, factor = 0, 1.0

    def whole(self, now, cohort, memory, limit, own_order=False):
        for part, up, _ in super().whole(now, cohort, memory, limit, own_order):
            up[cohort[part] < self.liars] *= self.factor
            yield part, up, np.isfinite(up).all(axis=(1, 2))

    def sparse(self, now, cohort, idle, limit):
        for part, uploads in super().sparse(now, cohort, idle, limit):
            n_outputs, n_intercepts = now.draws.n_outputs, self.layout.n_intercepts
            for s in np.flatnonzero(uploads.cohort < self.liars):
                at = n_outputs * uploads.first[s] + n_intercepts * s
                uploads.values[:, at : at + n_outputs * uploads.used[s] + n_intercepts] *= self.factor
            yield part, uploads


@dataclass(frozen=True)
class Liars(Local):
    """The local engine with ``liars`` such clients."""

    liars: int = 0
    factor: float = -100.0

    def open(self, *arguments):
        clients: LocalClients = super().open(*arguments)
        clients.loops.__class__ = LyingLoops
        clients.loops.liars, clients.loops.factor = self.liars, self.factor
        return clients
