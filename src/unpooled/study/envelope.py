"""Around every request of a study: which study it is, what was agreed, how rows are scaled.

So each request says all that a site needs to answer it. A site that was started anew in the middle of a study
needs no word of what came before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unpooled.engines.remote.messages import Request
from unpooled.kernels.arrays import Arrays, Float
from unpooled.study.agreement import Agreement
from unpooled.study.config import Study, StudyError

SPEC, ARRAYS = "study", "study/"


@dataclass(frozen=True, eq=False)
class Scaling:
    """Rows become (x − shift)/scale; ``fill`` stands for missing values, if anything may."""

    shift: Float
    scale: Float
    fill: Float | None


@dataclass(frozen=True, eq=False)
class Envelope:
    """What is agreed so far; None for what is not."""

    digest: str
    agreement: Agreement | None = None
    scaling: Scaling | None = None
    center: float | None = None  # what targets lose

    @classmethod
    def of(
        cls,
        study: Study,
        agreement: Agreement | None = None,
        scaling: Scaling | None = None,
        center: float | None = None,
    ) -> Envelope:
        """Around the requests of a study."""
        return cls(study.digest, agreement, scaling, center)

    @property
    def arrays(self) -> Arrays:
        """The numbers that were agreed on, by name."""
        arrays: Arrays = {}
        if self.scaling is not None:
            arrays |= {"shift": self.scaling.shift, "scale": self.scaling.scale}
            arrays |= {} if self.scaling.fill is None else {"fill": self.scaling.fill}
        return arrays if self.center is None else arrays | {"center": np.array(self.center)}

    def around(self, request: Request) -> Request:
        """The request as it is sent."""
        own: dict[str, Any] = {"digest": self.digest}
        if self.agreement is not None:
            own["agreement"] = self.agreement.plain()
        arrays = {f"{ARRAYS}{name}": array for name, array in self.arrays.items()}
        return Request(request.kind, {**request.spec, SPEC: own}, {**request.arrays, **arrays})


def opened(request: Request) -> tuple[Envelope, Request]:
    """The envelope of a request, and what was in it."""
    if SPEC not in request.spec:
        raise StudyError(f"a request {request.kind!r} came that belongs to no study")
    own = request.spec[SPEC]
    inner = Request(
        request.kind,
        {name: value for name, value in request.spec.items() if name != SPEC},
        {name: array for name, array in request.arrays.items() if not name.startswith(ARRAYS)},
    )
    agreement = Agreement.from_plain(own["agreement"]) if "agreement" in own else None
    scaling = None
    if f"{ARRAYS}shift" in request.arrays:
        a = request.arrays
        scaling = Scaling(a[f"{ARRAYS}shift"], a[f"{ARRAYS}scale"], a.get(f"{ARRAYS}fill"))
    center = request.arrays.get(f"{ARRAYS}center")
    return Envelope(own["digest"], agreement, scaling, None if center is None else float(center)), inner
