"""``study.toml``: read and checked, with complaints that name the key and what is allowed."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from unpooled._validation import closest, listing
from unpooled.exact.path import AT_ONCE
from unpooled.runs.simulate import RESTARTS
from unpooled.study.checks import Wrong
from unpooled.study.csv_file import CsvOptions
from unpooled.study.settings import FEDERATED, KEYS, LOCAL, REQUIRED, SECTIONS, Key

AROUND = 200  # requests before and after a fit: moments, the curvature, the start of a path


class StudyError(ValueError):
    """What is wrong with a study, for the one who runs it or takes part; printed without a stack trace."""


class StoppedError(StudyError):
    """A study that could not go on; it can be resumed."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study as ``study.toml`` states it; the fields are those of ``settings.KEYS``."""

    name: str
    sites: tuple[str, ...]
    address: str
    results: str
    share_results: bool
    target: str
    features: str | tuple[str, ...]
    categorical: Mapping[str, str | tuple[Any, ...]]
    missing: str
    csv: CsvOptions
    rare: str
    model: str
    lam: float | str
    standardise: bool
    intercept: bool | str
    l1_ratio: float
    delta: float
    groups: Mapping[str, tuple[str, ...]]
    unpenalised: tuple[str, ...]
    n_lambdas: int
    ratio: float
    criterion: str
    folds: int | str
    rule: str
    solver: str
    tolerance: float
    max_rounds: int
    rounds: int
    local_steps: int
    batch_size: int
    aggregate: str | float
    seed: int
    minimum_sites: int
    minimum_rows: int
    max_questions: int
    max_requests: int
    max_numbers: int
    norm_bound: float
    join_timeout: float
    round_timeout: float
    grace: float

    @property
    def is_classifier(self) -> bool:
        """Whether the target is a label."""
        return self.model in ("logistic", "multinomial")

    @property
    def file(self) -> CsvOptions:
        """How a site's CSV file is read: columns whose levels are texts in the study hold texts."""
        texts = [name for name, levels in self.categorical.items() if _are_texts(levels)]
        return replace(self.csv, text=(*self.csv.text, *texts))

    @property
    def is_centred(self) -> bool:
        """Whether targets lose their mean (``centring``): where an intercept of all sites takes it over."""
        return self.model == "huber" and self.intercept is True and not self.is_federated

    @property
    def fold_rows(self) -> int:
        """How many rows a site deals into a fold at least; small sites stay whole, but not beside their own
        intercepts, which would then be unknown.
        """
        return 0 if self.intercept == "sites" or self.folds == "sites" else self.minimum_rows

    @property
    def attempts(self) -> int:
        """How often everything may begin: once more for each site that is lost for good."""
        return _attempts(len(self.sites), self.minimum_sites)

    @property
    def is_federated(self) -> bool:
        """Whether the solver is one of many rounds and local steps."""
        return self.solver in FEDERATED

    @property
    def host(self) -> str:
        """Of the address."""
        return self.address.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """Of the address."""
        return int(self.address.rpartition(":")[2])

    @property
    def agreed(self) -> dict[str, Any]:
        """The settings that every site's copy must share, as JSON has them."""
        shared = {name: value for name, value in asdict(self).items() if name not in LOCAL}
        return dict(json.loads(json.dumps(shared)))

    @property
    def digest(self) -> str:
        """A short fingerprint of ``agreed``."""
        text = json.dumps(self.agreed, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def differences(self, other: Mapping[str, Any], where: str = "at the coordinator") -> list[str]:
        """Where another's ``agreed`` differs from this one's, key by key; ``where`` that one is."""
        mine = self.agreed
        path = {key.field: key.path for key in KEYS}
        return [
            f"{path[name]} is {mine[name]!r} here and {other.get(name)!r} {where}"
            for name in mine
            if mine[name] != other.get(name)
        ]


def load(path: str | os.PathLike[str]) -> Study:
    """Read a study from its file."""
    path = Path(path)
    try:
        given = tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        raise StudyError(f"there is no file {path}; `unpooled study init` writes one") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, IsADirectoryError) as error:
        raise StudyError(f"{path} is not a TOML file: {error}") from None
    except RecursionError:
        raise _too_deep(path) from None
    try:
        return parse(given)
    except StudyError as error:
        raise StudyError(f"{path}: {error}") from None
    except RecursionError:  # while words were looked for
        raise _too_deep(path) from None


def _too_deep(path: Path) -> StudyError:
    return StudyError(
        f"{path} is nested too deeply: a study has sections, keys, and lists or tables as values"
    )


def parse(given: Mapping[str, Any]) -> Study:
    """A study from the tables of its file."""
    _refuse_unknown(given)
    fields: dict[str, Any] = {}
    for key in KEYS:
        table = given.get(key.section, {}) if key.section else given
        fields[key.field] = _value(key, table)
    if fields["minimum_sites"] is None:
        fields["minimum_sites"] = len(fields["sites"])
    if fields["l1_ratio"] is None:
        fields["l1_ratio"] = 0.5 if fields["model"] == "elastic net" else 1.0
    questions, requests = needed(fields)
    fields["max_questions"] = fields["max_questions"] or questions
    fields["max_requests"] = fields["max_requests"] or requests
    study = Study(**fields)
    _refuse_together(study, given)
    return study


def needed(fields: Mapping[str, Any]) -> tuple[int, int]:
    """How many questions a request has, and how many requests a site gets, at most, in an honest study.

    A site that is lost for good makes everything begin again without it.
    """
    attempts = _attempts(len(fields["sites"]), fields["minimum_sites"])
    if fields["solver"] in FEDERATED:
        return 1, attempts * (fields["rounds"] * (1 + RESTARTS) + AROUND)
    if not isinstance(fields["lam"], str):
        return 1, attempts * (fields["max_rounds"] + AROUND)
    groups, questions = -(-fields["n_lambdas"] // AT_ONCE), fields["n_lambdas"]
    if fields["lam"] == "cv":
        questions *= 1 + (len(fields["sites"]) if fields["folds"] == "sites" else fields["folds"])
    return questions, attempts * (groups * fields["max_rounds"] + AROUND)


def _attempts(sites: int, least: int) -> int:
    return 1 + sites - least


def _refuse_unknown(given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if name in SECTIONS and name:
            if not isinstance(value, Mapping):
                raise StudyError(f"{name} must be a section, [{name}], got {value!r}")
            known = [key.name for key in KEYS if key.section == name]
            for inner in value:
                if inner not in known:
                    _refuse_key(f"{name}.{inner}", inner, known, f"[{name}]")
        elif name not in [key.name for key in KEYS if not key.section]:
            known = [key.name for key in KEYS if not key.section] + list(SECTIONS[1:])
            _refuse_key(name, name, known, "the top")


def _refuse_key(path: str, name: str, known: list[str], where: str) -> None:
    elsewhere = [key.path for key in KEYS if key.name == name]
    hint = f"; it belongs to {elsewhere[0]}" if elsewhere else closest(name, known)
    if not hint:
        by_name = {key.name: key.path for key in KEYS}
        hint = "".join(f"; closest: {by_name[n]!r}" for n in difflib.get_close_matches(name, by_name, n=1))
    raise StudyError(f"{path} is not a key of a study{hint}; {where} has {listing(known)}")


def _value(key: Key, table: Mapping[str, Any]) -> Any:
    if key.name not in table:
        if key.default is REQUIRED:
            raise StudyError(f"{key.path} is missing: {key.comment}")
        return key.default
    try:
        return key.check(table[key.name])
    except Wrong as wrong:
        raise StudyError(f"{key.path} {wrong}") from None


def _refuse_together(study: Study, given: Mapping[str, Any]) -> None:
    """Values that are right alone and wrong together."""
    model = given.get("model", {})
    if study.minimum_sites > len(study.sites):
        raise StudyError(f"limits.minimum_sites is {study.minimum_sites}, but sites names {len(study.sites)}")
    if study.target in study.categorical or study.target in study.features:
        raise StudyError(f"data.target {study.target!r} cannot be a feature as well")
    if study.features != "all":
        for path, columns in _columns(study).items():
            for column in columns:
                if column not in study.features:
                    hint = closest(column, study.features)
                    raise StudyError(f"{path} names {column!r}, which is not in data.features{hint}")
    only = {"l1_ratio": ("elastic net", "logistic", "multinomial", "poisson", "huber"), "delta": ("huber",)}
    only |= {"groups": ("group lasso",)}
    for name, models in only.items():
        if name in model and study.model not in models:
            raise StudyError(f"model.{name} is for {', '.join(models)}, not for {study.model!r}")
    if study.unpenalised and study.model == "group lasso":
        raise StudyError("model.unpenalised: the group lasso penalises every group; leave it out")
    if study.lam == "path" and study.model == "huber":
        raise StudyError('model.lambda = "path" chooses by likelihood, which huber has not: a number or "cv"')
    if study.lam in ("path", "cv") and study.l1_ratio == 0.0:
        raise StudyError(
            f"model.l1_ratio = 0 makes no coefficient zero: model.lambda = {study.lam!r} has no start"
        )
    if study.folds == "sites" and study.intercept == "sites" and study.lam == "cv":
        raise StudyError('model.folds = "sites" leaves out sites whose intercept nobody knows: use a number')
    with_rounds = {"solver.aggregate": (study.aggregate, "mean"), "limits.norm_bound": (study.norm_bound, 0)}
    for path, (value, default) in with_rounds.items():
        if value != default and not study.is_federated:
            raise StudyError(
                f"{path} = {value!r} is for {', '.join(FEDERATED)}: exact solvers add up what sites send"
            )
    if study.is_federated and 0 < study.batch_size * study.local_steps < study.minimum_rows:
        raise StudyError(
            f"solver.batch_size = {study.batch_size} with solver.local_steps = {study.local_steps} sums up "
            f"fewer rows than limits.minimum_rows = {study.minimum_rows}: larger batches, or more steps"
        )
    if study.is_federated:
        if isinstance(study.lam, str):
            raise StudyError(
                f"solver.method = {study.solver!r} needs model.lambda to be a number, got {study.lam!r}"
            )
        if study.intercept == "sites":
            raise StudyError(f'model.intercept = "sites" needs an exact solver, not {study.solver!r}')


def _are_texts(levels: str | tuple[Any, ...]) -> bool:
    return not isinstance(levels, str) and isinstance(levels[0], str)


def _columns(study: Study) -> dict[str, tuple[str, ...]]:
    grouped = tuple(column for columns in study.groups.values() for column in columns)
    return {
        "data.categorical": tuple(study.categorical),
        "model.unpenalised": study.unpenalised,
        "model.groups": grouped,
    }
