"""Every name of numba that its documentation does not promise to keep, and nothing else.

pyproject.toml bounds numba because of them. Whoever raises the bound runs tests/test_numba_internals.py,
which tells name by name what a new version has moved. To import this module is to import numba.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
from numba.core import cgutils, event, sigutils
from numba.core.registry import cpu_target

tools: Any = cgutils  # what writes LLVM's instructions: loops, variables on the stack, functions by name
Listener: Any = event.Listener
COMPILING = "numba:compile"  # the event that a function is compiled
CALLEE = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": True}  # options of njit: no wrappers
BORROWER = {**CALLEE, "_nrt": False}  # does not count references to arrays: each count is an atomic operation


def host() -> tuple[str, set[str]]:
    """The target triple and the features of the host that numba compiles for, and keys its cache by."""
    triple, _, features = cpu_target.target_context.codegen().magic_tuple()
    return triple, set(features.split(","))


def argument_types(signature: str) -> tuple[Any, ...]:
    """The types that a signature names."""
    parse: Any = sigutils.normalize_signature
    return tuple(parse(signature)[0])


def listen(listener: Any) -> None:
    """Let it hear, from now on, when a function begins to be compiled and when it is."""
    event.register(COMPILING, listener)


def function_of(heard: Any) -> Any:
    """The dispatcher that an event of compiling is about."""
    return heard.data["dispatcher"]


def record_class(kind: Any) -> Any:
    """The NamedTuple behind the type of a record."""
    return kind.instance_class


@contextmanager
def cache_in(directory: Path | None) -> Iterator[None]:
    """Dispatchers made in this block keep compiled code there."""
    config: Any = numba.config
    before = config.CACHE_DIR
    try:
        config.CACHE_DIR = str(directory) if directory else ""
        yield
    finally:
        config.CACHE_DIR = before


def before_reading(dispatcher: Any, prepare: Callable[[], None]) -> None:
    """Call ``prepare`` each time before compiled code is looked for on disk.

    Where nothing is kept on disk the cache is one that never has anything.
    """
    cache = dispatcher._cache
    read = cache.load_overload

    def load_overload(*args: Any) -> Any:
        prepare()
        return read(*args)

    cache.load_overload = load_overload


def compiled_for(dispatcher: Any, signature: str) -> tuple[Any, int]:
    """Compile for these arguments, or read that from disk: the whole signature, and the code's address."""
    dispatcher.compile(signature)
    only = dispatcher.overloads[argument_types(signature)]
    return only.signature, int(only.library.get_pointer_to_function(only.fndesc.llvm_func_name))


def call_by_name(context: Any, builder: Any, symbol: str, kind: Any, have: Sequence[Any], packed: Any) -> Any:
    """Write a call of the compiled function ``symbol`` of signature ``kind``.

    ``packed`` is a tuple of its arguments, whose types are those in ``have``.
    """
    pairs = zip(tools.unpack_tuple(builder, packed), have, kind.args, strict=True)
    given = [context.cast(builder, value, own, wanted) for value, own, wanted in pairs]
    convention = context.call_conv
    shape = convention.get_function_type(kind.return_type, kind.args)
    function = tools.get_or_insert_function(builder.module, shape, symbol)
    status, result = convention.call_function(builder, function, kind.return_type, kind.args, given)
    with tools.if_unlikely(builder, status.is_error):
        convention.return_status_propagate(builder, status)
    return result


def array_of(context: Any, builder: Any, kind: Any, value: Any) -> tuple[Any, list[Any]]:
    """The pointer to an array's first entry, and its shape."""
    array = context.make_array(kind)(context, builder, value)
    return array.data, tools.unpack_tuple(builder, array.shape)


def nothing(context: Any) -> Any:
    """What a function without a result returns."""
    return context.get_dummy_value()
