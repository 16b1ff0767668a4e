"""Kernels that are compiled once, by themselves, and called by name.

What calls an ordinary kernel takes it in and optimises it anew, at each of the levels between an engine and a
penalty's loops. That is worth it for short ones. A long one, marked ``@outlined(signature)``, is compiled for
one set of argument types, and its callers hold no more than its name.

Its address must be known to the process before a caller runs. When a caller is compiled, so is it; a mark on
disk then tells other processes, before they read anything from there, to do the same (``find_named``).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from unpooled.kernels.compile import OPTIONS, Kernel, _cache_directory, _digest, _numba, compiles, kept

_known: dict[str, Outlined] = {}  # by symbol


class Outlined(Kernel):
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
        """The dispatcher. What it calls by name is found first: it cannot be read without."""
        for called in _called(self) if compiles() else ():
            called.compiled  # noqa: B018
        return kept(self.py_func)

    def dispatcher(self, *args: Any) -> Any:
        """The same for all arguments: there are no records among them."""
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
        """A call by name."""
        return self.callee.py_func  # type: ignore[no-any-return]

    @functools.cached_property
    def callee(self) -> Any:
        """A call by name, compiled."""
        from numba.extending import intrinsic

        from unpooled.kernels.numba_internals import call_by_name

        directory = _marks()
        if directory:
            directory.mkdir(parents=True, exist_ok=True)  # it may have been cleared away
            (directory / self.symbol).touch()
        kind, symbol = self.compiled, self.symbol

        def by_name(typing: Any, args: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                return call_by_name(context, builder, symbol, kind, signature.args[0], values[0])

            return kind.return_type(args), generate

        call: Any = intrinsic(by_name)
        return _numba().njit(**OPTIONS)(lambda *args: call(args))


def outlined(signature: str) -> Callable[[Callable[..., Any]], Outlined]:
    """Mark a function of the numba subset as a kernel that is compiled by itself, for these arguments."""
    return lambda py_func: Outlined(py_func, signature)


def for_floats(kernel: Kernel, signature: str) -> tuple[Outlined, ...]:
    """A kernel apart for float32 and for float64, which ``{f}`` stands for in the signature."""
    return tuple(Outlined(kernel.py_func, signature.format(f=f), f".{f}") for f in ("f4", "f8"))


def find_named() -> None:
    """Compile, or read from disk, every kernel that a caller on disk may call by its name."""
    directory = _marks()
    for path in sorted(directory.iterdir()) if directory and directory.is_dir() else ():
        if path.name not in _known and path.name.startswith("unpooled."):  # its module was not needed yet
            _import_for(path.name)
        if path.name in _known:
            _known[path.name].compiled  # noqa: B018


def _import_for(symbol: str) -> None:
    """The module that has it: the longest beginning of the name that is one."""
    parts = symbol.split(".")
    for length in range(len(parts) - 1, 1, -1):
        with contextlib.suppress(ModuleNotFoundError):
            import_module(".".join(parts[:length]))
            return


def _called(kernel: Kernel) -> Iterator[Outlined]:
    """The kernels apart that one calls, also through others."""
    for name in kernel.py_func.__code__.co_names:
        other = kernel.py_func.__globals__.get(name)
        if isinstance(other, Outlined):
            yield other
        elif isinstance(other, Kernel):
            yield from _called(other)


def _marks() -> Path | None:
    return _cache_directory(_digest(()))
