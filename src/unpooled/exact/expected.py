"""What an answer to a question of the oracle looks like: which names, and of each the shape and the range.

An answer that comes from elsewhere is held against this before it is summed, so that no client can say
anything but its own sums. Whoever adds a word to the vocabulary of ``oracle`` adds its rule here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from unpooled.exact.oracle import NONE, site_columns
from unpooled.kernels.arrays import Array, Arrays
from unpooled.problem import BoundProblem

LARGEST = float(np.finfo(np.float64).max)
REFUSALS = ("refused_rows", "refused_columns")


class Rule(NamedTuple):
    """What a named array of an answer must be.

    ``is_count``: of a whole type, which is added rather than averaged; otherwise float64. ``may_overflow``:
    need not be finite where the client's loss, or its conjugate, is infinite, as it can be at a point that a
    solver only tries. ``may_refuse``: is left out by a client that says why. ``is_optional``: is there or
    not, by what the client keeps to itself and by the penalty.
    """

    shape: tuple[int, ...]
    least: float = -LARGEST
    most: float = LARGEST
    is_count: bool = False
    may_overflow: bool = False
    may_refuse: bool = False
    is_optional: bool = False


def expected(problem: BoundProblem, question: Arrays, n_rows: int) -> dict[str, Rule]:
    """The rules of an answer about ``n_rows`` rows, name by name."""
    layout, loss = problem.layout, problem.linear
    p = layout.n_coefficients // layout.n_outputs
    rules: dict[str, Rule] = {}
    names = [name for name in ("features", "working") if name in question]
    if np.concatenate([NONE, *(site_columns(problem, question[n]) for n in names)]).size:
        rules |= dict.fromkeys(REFUSALS, Rule((), 0, 1, is_count=True))
    if "features" in question:
        n_targets = 1 if loss is None else loss.targets(np.zeros(1), layout.n_outputs).shape[1]
        rules |= {
            "mean_x": Rule((p,)),
            "mean_t": Rule((n_targets,)),
            "mean_xt": Rule((n_targets * p,)),
            "mean_yy": Rule((), 0.0),
            "floor": Rule(()),
            "rows": Rule((), n_rows, n_rows, is_count=True),
        }
        n = len(question["features"])
        if n:
            rules |= {
                "gram": Rule(_triangle(n), may_refuse=True),
                "diagonal": Rule((n,), is_optional=True),
                "hidden_x": Rule((n,), is_optional=True),
                "hidden_weight": Rule((), 0.0, is_optional=True),
            }
    if "w" in question:
        rules |= {"loss": Rule((), most=np.inf), "gradient": Rule((layout.size,), may_overflow=True)}
        n = len(question.get("working", NONE))
        if n and loss is not None:
            rules["hessian"] = Rule(_triangle(n), may_overflow=True, may_refuse=True)
            rules["diagonal"] = Rule((n,), may_overflow=True, is_optional=True)
            if "squares" in question:
                rules["squares"] = rules["hessian"]
    if "tilt" in question:
        rules["conjugate"] = Rule((), -np.inf, np.inf, may_overflow=True)
        rules["dual_gradient"] = Rule((layout.size,), may_overflow=True)
    if "models" in question:
        rules["losses"] = Rule((len(question["models"]),), most=np.inf)
    if "curvature" in question and loss is not None:
        of_columns = {
            "diagonal": Rule((p,), 0.0, is_optional=True),
            "diagonal_rows": Rule((), n_rows, n_rows, is_count=True, is_optional=True),
        }
        rules = of_columns | rules | {"curvature": Rule((2,))}
    return rules


def complaint(answer: Arrays, rules: Mapping[str, Rule]) -> str | None:
    """What is wrong with an answer, in words that follow the name of who gave it; None where nothing is."""
    unknown = sorted(answer.keys() - rules.keys())
    if unknown:
        return f"it sent {unknown[0]!r}, which it was not asked: are the versions of unpooled the same?"
    has_refused = any(bool(np.any(answer[name])) for name in REFUSALS if name in answer)
    overflows = _is_infinite(answer.get("loss")) or _is_infinite(answer.get("conjugate"))
    for name, rule in rules.items():
        if name in answer:
            said = broken(answer[name], rule, overflows=overflows)
            if said:
                return f"its {name} {said}"
        elif not (rule.is_optional or (rule.may_refuse and has_refused)):
            return f"its answer has no {name}"
    return None


def broken(array: Array, rule: Rule, *, overflows: bool = False) -> str | None:
    """What is wrong with an array; None where nothing is."""
    if array.dtype.kind not in "iuf":
        return f"has dtype {array.dtype}"
    may_overflow = rule.may_overflow and overflows
    if np.isnan(array).any() and not may_overflow:
        return "holds NaN"
    if array.shape != rule.shape:
        return f"has shape {array.shape}, expected {rule.shape}"
    if array.dtype.kind not in "iu" if rule.is_count else array.dtype != np.float64:
        return f"has dtype {array.dtype}, expected {'whole numbers' if rule.is_count else 'float64'}"
    outside = array[~((array >= rule.least) & (array <= rule.most))]
    if outside.size and not may_overflow:
        value = outside.ravel()[0]
        if np.isinf(value):
            return "holds an infinite number: is there a huge value in its table?"
        return f"holds {value:g}, outside {rule.least:g} to {rule.most:g}"
    return None


def _triangle(n: int) -> tuple[int]:
    return (n * (n + 1) // 2,)


def _is_infinite(value: Array | None) -> bool:
    """Whether a number is +inf; or NaN, as 0·inf is for a row without weight."""
    return value is not None and value.shape == () and value.dtype.kind == "f" and not value < np.inf
