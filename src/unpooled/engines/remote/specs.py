"""The library's objects as plain data: what JSON can hold, and named arrays. Nothing else crosses a network.

    spec, arrays = encode(up.Problem(up.Logistic(), up.L1(0.01)))
    decode(spec, arrays) == up.Problem(up.Logistic(), up.L1(0.01))

Only the classes of a table are built, each by its constructor, which checks what it is given. A user's own
class crosses where both ends have imported it and put it into their table (``allow``); between processes that
trust each other (``trusted``) it crosses pickled.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import isabstract
from typing import Any

import numpy as np

from unpooled import algorithms, exact, losses, penalties
from unpooled.algorithms.base import Algorithm
from unpooled.data.folds import BySite, Dealt, Fold, Halved
from unpooled.engines.remote.summaries import ColumnSummary, OwnIntercept
from unpooled.exact.base import ExactSolver
from unpooled.kernels.arrays import Array, Arrays
from unpooled.kernels.layout import Layout
from unpooled.losses.base import LinearLoss
from unpooled.penalties.base import Penalty
from unpooled.penalties.group_labels import Labels
from unpooled.problem import BoundProblem, Problem

PROTOCOLS = (Algorithm, ExactSolver, LinearLoss, Penalty)


def _members(*packages: Any) -> Iterator[type]:
    """The classes that packages export and that implement a protocol: a new one is found by being listed."""
    for package in packages:
        for kind in map(package.__dict__.get, package.__all__):
            if isinstance(kind, type) and issubclass(kind, PROTOCOLS) and not isabstract(kind):
                yield kind


KNOWN: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *_members(algorithms, exact, losses, penalties),
        *(Labels, Layout, Problem, BoundProblem),
        *(Fold, BySite, Dealt, Halved),
        *(ColumnSummary, OwnIntercept),
    )
}
ALLOWED: dict[str, type] = {}
"""Classes of the user's own that this process has allowed by name."""


def allow(*kinds: type) -> None:
    """Let losses, penalties, algorithms or solvers of your own cross to other organisations.

    A class crosses as its name and the values of its fields; the other end builds it from a class of that
    name which it has imported and allowed itself. So call this at both ends, with the same classes: no code
    travels. A class must be a dataclass whose fields are numbers, strings, tuples or arrays.
    """
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, PROTOCOLS) and dataclasses.is_dataclass(kind)):
            raise TypeError(f"only dataclasses that are a loss, penalty, algorithm or solver, got {kind!r}")
        if {**KNOWN, **ALLOWED}.get(kind.__name__, kind) is not kind:
            raise ValueError(f"another class called {kind.__name__!r} is allowed already: rename one of them")
    ALLOWED.update({kind.__name__: kind for kind in kinds})


FEW = 16  # numbers up to which a tuple is written out; longer ones go as an array


class SpecError(ValueError):
    """Something that cannot cross, or that came across and is not what it should be."""


def encode(thing: Any, trusted: bool = False, name: str = "") -> tuple[Any, Arrays]:
    """Plain data and arrays, whose names begin with ``name``."""
    arrays: Arrays = {}
    return _encoded(thing, arrays, name, trusted), arrays


def decode(spec: Any, arrays: Mapping[str, Array], trusted: bool = False) -> Any:
    """What ``encode`` was given."""
    try:
        return _decoded(spec, arrays, trusted)
    except (KeyError, TypeError, AttributeError) as failure:
        raise SpecError(f"what came describes none of the library's objects: {failure}") from None


def key_of(spec: Any, arrays: Mapping[str, Array]) -> str:
    """A digest that is the same where spec and arrays are: what holders keep built objects under."""
    return hashed(hashlib.blake2b(digest_size=16), spec, arrays)


def hashed(digest: Any, spec: Any, arrays: Mapping[str, Array]) -> str:
    """What one of ``hashlib``'s digests makes of plain data and arrays."""
    digest.update(json.dumps(spec, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return str(digest.hexdigest())


def _encoded(thing: Any, arrays: Arrays, name: str, trusted: bool) -> Any:
    if thing is None or isinstance(thing, bool | str):
        return thing
    if isinstance(thing, int | np.integer):
        return int(thing)
    if isinstance(thing, float | np.floating):
        return float(thing) if math.isfinite(thing) else {"float": repr(float(thing))}
    if isinstance(thing, np.ndarray):
        return _kept(thing, arrays, name)
    kind = type(thing).__name__
    if type(thing) in (KNOWN.get(kind), None if trusted else ALLOWED.get(kind)):
        fields = {field: getattr(thing, field) for field in _fields(type(thing))}
        return {"is": kind} | {f: _encoded(v, arrays, f"{name}.{f}", trusted) for f, v in fields.items()}
    if isinstance(thing, tuple | list):
        numbers = {type(item) for item in thing}
        if len(thing) > FEW and numbers in ({int}, {float}):
            return {"tuple": _kept(np.array(thing), arrays, name)}
        return {"tuple": [_encoded(item, arrays, f"{name}.{i}", trusted) for i, item in enumerate(thing)]}
    if trusted:
        pickler: Any = import_module("ray.cloudpickle")  # Ray's can take classes of the main module
        return {"pickle": _kept(np.frombuffer(pickler.dumps(thing), np.uint8), arrays, name)}
    raise SpecError(
        f"{kind} is not one of the library's own classes, and only these cross to other organisations: use "
        "engines.Local() or engines.Ray(), one of the library's losses and penalties, or allow the class by "
        "name at both ends (unpooled.flower.allow)"
    )


def _kept(array: Array, arrays: Arrays, name: str) -> Any:
    arrays[name] = array
    return {"array": name}


def _decoded(spec: Any, arrays: Mapping[str, Array], trusted: bool) -> Any:
    if not isinstance(spec, Mapping):
        return spec
    if "array" in spec:
        return arrays[spec["array"]]
    if "float" in spec:
        return float(spec["float"])
    if "tuple" in spec:
        if isinstance(spec["tuple"], Mapping):
            return tuple(arrays[spec["tuple"]["array"]].tolist())
        return tuple(_decoded(item, arrays, trusted) for item in spec["tuple"])
    if "pickle" in spec:
        if not trusted:
            raise SpecError("a pickled object came, which is taken from trusted processes only")
        from pickle import loads

        return loads(arrays[spec["pickle"]["array"]].tobytes())
    kind = KNOWN.get(spec["is"], ALLOWED.get(spec["is"]))
    if kind is None:
        raise SpecError(f"{spec['is']!r} is not one of the library's classes: are the versions the same?")
    return kind(**{field: _decoded(spec[field], arrays, trusted) for field in _fields(kind)})


def _fields(kind: Any) -> list[str]:
    """What a constructor takes."""
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind) if field.init]
    return list(kind._fields)
