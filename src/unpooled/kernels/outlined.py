"""Kernels that are compiled once, on their own, and called by name.

What calls an ordinary kernel takes it in and optimises it anew, at each of the levels between an engine and a
penalty's loops. That is worth it for short ones. A long one, marked ``@outlined(signature)``, is compiled for
one set of argument types, and its callers hold no more than its name.

A process must know the symbol's address before a caller runs. Compiling a caller compiles the kernel and
leaves a marker file on disk; other processes load all marked kernels before they read any cached code
(``find_named``).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from unpooled.kernels.compile import OPTIONS, Kernel, _cache_directory, _digest, _numba, compiles, kept

_known: dict[str, OutlinedKernel] = {}  # by symbol


class OutlinedKernel(Kernel):
    """A kernel for one set of argument types, called by name."""

    def __init__(self, py_func: Callable[..., Any], signature: str, variant: str = ""):
        super().__init__(py_func)
        self.signature = signature
        self.symbol = f"{py_func.__module__}.{py_func.__qualname__}{variant}"
        _known[self.symbol] = self

    def fits(self, args: tuple[Any, ...]) -> bool:
        """Whether arguments of these types need no conversion."""
        from unpooled.kernels.numba_internals import argument_types

        return argument_types(self.signature) == tuple(args)

    @functools.cached_property
    def function(self) -> Any:
        """The dispatcher. Loads the kernels it calls by name first: cached code needs their addresses."""
        for called in _called(self) if compiles() else ():
            called.compiled  # noqa: B018
        return kept(self.py_func)

    def dispatcher(self, *args: Any) -> Any:
        """The dispatcher; the arguments never hold records."""
        return self.function

    @functools.cached_property
    def compiled(self) -> Any:
        """Its whole signature, once it is compiled or read from disk; compiled code finds it from now on."""
        from llvmlite.binding import add_symbol

        from unpooled.kernels.numba_internals import compiled_for

        kind, address = compiled_for(self.function, self.signature)
        add_symbol(self.symbol, address)
        return kind

    @property
    def source(self) -> Callable[..., Any]:
        """A Python function that calls the kernel by name."""
        return self.callee.py_func  # type: ignore[no-any-return]

    @functools.cached_property
    def callee(self) -> Any:
        """A call by name, compiled."""
        from numba.extending import intrinsic

        from unpooled.kernels.numba_internals import call_by_name

        directory = _marks()
        if directory:
            directory.mkdir(parents=True, exist_ok=True)  # the cache may have been cleared
            (directory / self.symbol).touch()
        kind, symbol = self.compiled, self.symbol

        def by_name(typing: Any, args: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                return call_by_name(context, builder, symbol, kind, signature.args[0], values[0])

            return kind.return_type(args), generate

        call: Any = intrinsic(by_name)
        return _numba().njit(**OPTIONS)(lambda *args: call(args))


def outlined(signature: str) -> Callable[[Callable[..., Any]], OutlinedKernel]:
    """Mark a function of the numba subset as a kernel that is compiled by itself, for these arguments."""
    return lambda py_func: OutlinedKernel(py_func, signature)


def for_floats(kernel: Kernel, signature: str) -> tuple[OutlinedKernel, ...]:
    """A kernel apart for float32 and for float64, which ``{f}`` stands for in the signature."""
    return tuple(OutlinedKernel(kernel.py_func, signature.format(f=f), f".{f}") for f in ("f4", "f8"))


def find_named() -> None:
    """Compile, or read from disk, every kernel that cached code may call by name."""
    directory = _marks()
    for path in sorted(directory.iterdir()) if directory and directory.is_dir() else ():
        if path.name not in _known and path.name.startswith("unpooled."):  # its module is not imported yet
            _import_for(path.name)
        if path.name in _known:
            _known[path.name].compiled  # noqa: B018


def _import_for(symbol: str) -> None:
    """Import the module that defines a symbol: the longest importable prefix of its name."""
    parts = symbol.split(".")
    for length in range(len(parts) - 1, 1, -1):
        with contextlib.suppress(ModuleNotFoundError):
            import_module(".".join(parts[:length]))
            return


def _called(kernel: Kernel) -> Iterator[OutlinedKernel]:
    """The kernels apart that one calls, also through others."""
    for name in kernel.py_func.__code__.co_names:
        other = kernel.py_func.__globals__.get(name)
        if isinstance(other, OutlinedKernel):
            yield other
        elif isinstance(other, Kernel):
            yield from _called(other)


def _marks() -> Path | None:
    return _cache_directory(_digest(()))
