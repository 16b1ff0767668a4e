"""What questions may hold: the problem, folds, solver and words that a site's own copy of a study makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unpooled.data.folds import Fold
from unpooled.engines.remote.specs import encode, key_of
from unpooled.exact import AndersonProxGradient
from unpooled.exact.choose import SOLVERS
from unpooled.exact.clients import Question
from unpooled.kernels.arrays import Array
from unpooled.problem import BoundProblem
from unpooled.study.agreement import Agreement
from unpooled.study.config import Study, StudyError
from unpooled.study.modelling import stated
from unpooled.study.rare import own_folds


class NotAllowedError(StudyError):
    """What the coordinator asked and the site does not answer, with the rule that says so."""

    def __init__(self, asked: str, rule: str):
        super().__init__(f"the coordinator asked for {asked}, and {rule}")


def is_vector(problem: BoundProblem, array: Array) -> bool:
    """Whether an array is a point of the problem."""
    return array.shape == (problem.layout.size,) and is_finite(array)


def _is_models(problem: BoundProblem, array: Array) -> bool:
    return array.ndim == 2 and array.shape[1] == problem.layout.size and is_finite(array)


def _is_center(problem: BoundProblem, array: Array) -> bool:
    return array.shape == (_n_columns(problem) + 1,) and is_finite(array)


def _is_features(problem: BoundProblem, array: Array) -> bool:
    return _is_sorted(array, _n_columns(problem))


def _is_working(problem: BoundProblem, array: Array) -> bool:
    return _is_sorted(array, problem.layout.size)


def _is_row(problem: BoundProblem, array: Array) -> bool:
    return array.shape == (_n_columns(problem),) and is_finite(array)


def _is_targets(problem: BoundProblem, array: Array) -> bool:
    return array.size <= problem.layout.n_outputs and is_finite(array)


def _is_empty(problem: BoundProblem, array: Array) -> bool:
    return array.size == 0


WORDS: dict[str, Callable[[BoundProblem, Array], bool]] = {
    "features": _is_features,
    "center": _is_center,
    "w": is_vector,
    "working": _is_working,
    "base": is_vector,
    "tilt": is_vector,
    "origin": _is_row,
    "models": _is_models,
    "pooled": _is_targets,
    "curvature": _is_empty,
}
"""The words of a question (``exact.oracle``) that solvers use in a study, and what each may hold."""

GIVES = {"features": "gram", "working": "hessian", "tilt": "hessian"}  # words that ask for second order


def shape_of(agreement: Agreement) -> tuple[tuple[int, ...], int | None]:
    """The shape of a row, and the number of outputs where there are several."""
    n = len(agreement.classes)
    return (len(agreement.feature_names),), n if n > 2 else None


def check_problem(study: Study, agreement: Agreement, given: BoundProblem, *, any_lam: bool = False) -> None:
    """The problem must be the study's, at its λ or where that is chosen at any."""
    own = stated(study, agreement)
    lam = getattr(given.problem.penalty, "lam", None)
    if not any_lam and not isinstance(study.lam, str) and lam != study.lam:
        raise NotAllowedError(f"λ = {lam!r}", f"model.lambda = {study.lam!r}")
    if given.problem.intercept != own.intercept or given.problem.ball != own.ball:
        raise NotAllowedError(
            f"another intercept, {given.problem.intercept!r}", f"model.intercept = {study.intercept!r}"
        )
    if isinstance(lam, int | float) and lam >= 0.0:
        own = own.with_lam(lam)
    laid_out = replace(own.laid_out(*shape_of(agreement)), constrained=given.constrained)
    if not _are_same(given, laid_out):
        what = f"{type(given.problem.loss).__name__} with {type(given.problem.penalty).__name__}"
        raise NotAllowedError(f"another problem, {what}", f"model.kind = {study.model!r}")


def check_fold(study: Study, question: Question) -> None:
    """The folds must be those that the study's settings make."""
    fold = question.fold
    if fold is None:
        return
    own = own_folds(study)
    if own is None:
        raise NotAllowedError("rows of a fold", f"model.lambda = {study.lam!r} has no folds")
    folds, count = own
    if not isinstance(fold, Fold):
        raise NotAllowedError(
            f"the rows of {type(fold).__name__}, which is no fold", f"model.folds = {study.folds!r}"
        )
    is_number = isinstance(fold.number, int) and 0 <= fold.number < count
    if fold.folds != folds or not is_number:
        raise NotAllowedError(
            f"the rows of {fold.folds!r}, number {fold.number!r}",
            f"model.folds = {study.folds!r} with solver.seed = {study.seed} deals others",
        )
    if fold.held_out and "w" in question.arrays:
        raise NotAllowedError(
            "a gradient of the rows held out in a fold", "a study asks for their losses and moments only"
        )


def check_words(study: Study, question: Question, refuses: Sequence[str]) -> None:
    """The solver must be one that the study's method may use, and ask in its words."""
    solver = question.solver
    allowed = [kind(min_rows=study.minimum_rows) for kind in _solvers(study)]
    least = getattr(solver, "min_rows", None)
    if not any(_are_same(solver, each) for each in [*allowed, AndersonProxGradient(min_rows=0)]):
        if any(type(solver) is type(each) for each in allowed) and least != study.minimum_rows:
            raise NotAllowedError(
                "a Gram matrix or Hessian",
                f"min_rows={least} is not limits.minimum_rows = {study.minimum_rows}",
            )
        raise NotAllowedError(f"answers to {type(solver).__name__}", f"solver.method = {study.solver!r}")
    for name, array in question.arrays.items():
        if name not in WORDS or not WORDS[name](question.problem, array):
            raise NotAllowedError(f"{name!r} of shape {array.shape}", "no solver of this study asks for that")
        if name in GIVES and array.size:
            if not solver.is_second_order:
                raise NotAllowedError(
                    f"second-order statistics, {GIVES[name]!r}",
                    f"{type(solver).__name__} has no use for them",
                )
            check_second_order(GIVES[name], (GIVES[name],), refuses)
    if ("tilt" in question.arrays) != ("base" in question.arrays):
        raise NotAllowedError("'tilt' without 'base', or the reverse", "one has no meaning without the other")
    if "models" in question.arrays:
        most = study.n_lambdas
        if question.fold is None or not question.fold.held_out or len(question.arrays["models"]) > most:
            raise NotAllowedError("'models'", f"losses are those of rows held out, at {most} points at most")


def check_second_order(what: str, kinds: Sequence[str], refuses: Sequence[str]) -> None:
    """Refuse what this site was told never to send."""
    refused = [kind for kind in refuses if kind in kinds]
    if refused:
        raise NotAllowedError(what, f"this site was started with --refuse {','.join(refused)}")


def _solvers(study: Study) -> list[type]:
    """The solvers that a method may use; gradients are the way out where a site refuses more."""
    if study.solver == "auto":
        return [SOLVERS[name] for name in ("sufficient_statistics", "prox_newton", "anderson")]
    return [SOLVERS[study.solver], AndersonProxGradient]


def _are_same(one: Any, other: Any) -> bool:
    """Whether two of the library's objects are the same, field by field, arrays included."""
    return type(one) is type(other) and key_of(*encode(one)) == key_of(*encode(other))


def is_finite(array: Any) -> bool:
    """Whether an array holds numbers only; None does."""
    return array is None or (np.asarray(array).dtype.kind in "iuf" and bool(np.isfinite(array).all()))


def _is_sorted(array: Array, stop: int) -> bool:
    if array.ndim != 1 or array.dtype.kind not in "iu":
        return False
    return not array.size or bool((np.diff(array) > 0).all() and array[0] >= 0 and array[-1] < stop)


def _n_columns(problem: BoundProblem) -> int:
    return problem.layout.n_coefficients // problem.layout.n_outputs
