"""A coordinator that cheats: it builds requests by hand and sends them as any other request is sent."""

import numpy as np
import pandas as pd

from unpooled.engines.remote.messages import Request
from unpooled.engines.remote.packing import reply_bytes, reply_from, request_bytes, request_from
from unpooled.engines.remote.specs import encode
from unpooled.exact import AndersonProxGradient
from unpooled.study import table as tables_of
from unpooled.study.agreement import agree
from unpooled.study.config import parse
from unpooled.study.description import Description
from unpooled.study.desk import StudyDesk
from unpooled.study.envelope import Envelope, Scaling
from unpooled.study.modelling import stated

FEATURES = ["age", "sex", "marker0", "marker1"]


def patients(n=120, seed=0):
    """A hospital's table; the study is about four of its columns and one of the outcomes."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "patient_id": np.arange(1000, 1000 + n),
            "hiv": (rng.random(n) < 0.15).astype(int),
            "diagnosis": rng.choice(["flu", "cold", "gout"], n),
            "age": rng.normal(60, 9, n),
            "sex": rng.integers(0, 2, n),
            "marker0": rng.normal(size=n),
            "marker1": rng.normal(size=n),
        }
    )
    risk = 0.05 * (frame["age"] - 60) + frame["marker0"]
    frame["died"] = (rng.random(n) < 1 / (1 + np.exp(-risk))).astype(int)
    frame["pressure"] = 120 + 5 * risk + rng.normal(size=n)
    return frame


class Villain:
    """Asks one site, ``bern``, whatever it is told to; ``replies`` has all that came back."""

    def __init__(self, folder, target="died", kind="logistic", lam=0.01, frame=None, refuses=(), **more):
        frame = patients() if frame is None else frame
        frame.to_parquet(folder / "bern.parquet")
        given = {
            "name": "wards",
            "sites": ["bern", "genf"],
            "data": {"target": target, "features": FEATURES, **more.pop("data", {})},
            "model": {"kind": kind, "lambda": lam, "standardise": False, **more.pop("model", {})},
        }
        self.frame, self.study, self.shown = frame, parse({**given, **more}), []
        self.desk = StudyDesk(
            self.study,
            "bern",
            tables_of.read(folder / "bern.parquet"),
            refuses=refuses,
            say=lambda request, reply: self.shown.append(reply.spec.get("refused", "")),
        )
        told = self.send(Request("describe", {"settings": self.study.agreed}, {}), None)
        self.agreement = agree(self.study, [Description(**told.spec)])

    @property
    def problem(self):
        problem = stated(self.study, self.agreement)
        classes = len(self.agreement.classes)
        return problem.laid_out((len(self.agreement.feature_names),), classes if classes > 2 else None)

    @property
    def X(self):
        return self.frame[list(self.agreement.features)].to_numpy(float)

    def send(self, request, agreement, scaling=None):
        """What the site answers to a request that went over the wire."""
        around = Envelope.of(self.study, agreement, scaling).around(request)
        return reply_from(reply_bytes(self.desk.handle(request_from(request_bytes(around)))))

    def request(self, kind, spec, arrays, *, agreement=None, scaling=None):
        common = {"dtype": "float64", "n_clients": 1}
        asked = Request(kind, {**spec, **common}, {**arrays, "positions": np.array([0])})
        return self.send(asked, agreement or self.agreement, scaling)

    def ask(self, *questions, **options):
        """Questions of exact solvers: dicts of arrays, perhaps with a solver, a problem and a fold."""
        specs, arrays = [], {}
        for q, question in enumerate(questions):
            given = dict(question)
            parts = {
                "solver": given.pop("solver", AndersonProxGradient(self.study.minimum_rows)),
                "problem": given.pop("problem", self.problem),
                "fold": given.pop("fold", None),
            }
            spec = {}
            for name, part in parts.items():
                spec[name], more = encode(part, name=f"{q}/{name}")
                arrays |= more
            arrays |= {f"{q}/{name}": np.asarray(array) for name, array in given.items()}
            specs.append({**spec, "arrays": list(given)})
        return self.request("ask", {"questions": specs}, arrays, **options)

    def about(self, kind, problem=None, **arrays):
        spec, own = encode(problem or stated(self.study, self.agreement), name="problem")
        return self.request(kind, {"problem": spec}, own | arrays)


def scaling(p, scale=1.0, fill=None):
    return Scaling(np.zeros(p), np.full(p, scale), fill)
