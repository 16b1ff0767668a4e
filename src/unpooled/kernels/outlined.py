"""Kernels that are compiled once, on their own, and called by name.

The caller of an ordinary kernel inlines it and optimises it again, at every level between an engine and a
penalty's loops. That pays for short kernels. A long kernel, marked ``@outlined(signature)``, is compiled for
one set of argument types, and its callers refer to it by symbol.

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
        """Whether the signature accepts these argument types without conversion."""
        from numba.core import sigutils

        return bool(_untyped(sigutils).normalize_signature(self.signature)[0] == args)

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
        """The compiled function, read from disk if cached; registers its symbol for compiled callers."""
        from llvmlite.binding import add_symbol
        from numba.core import sigutils

        self.function.compile(self.signature)
        only = self.function.overloads[_untyped(sigutils).normalize_signature(self.signature)[0]]
        add_symbol(self.symbol, only.library.get_pointer_to_function(only.fndesc.llvm_func_name))
        return only

    @property
    def source(self) -> Callable[..., Any]:
        """A Python function that calls the kernel by name."""
        return self.callee.py_func  # type: ignore[no-any-return]

    @functools.cached_property
    def callee(self) -> Any:
        """A compiled function that calls the kernel by name."""
        from numba.core import cgutils
        from numba.extending import intrinsic

        directory = _marks()
        if directory:
            directory.mkdir(parents=True, exist_ok=True)  # the cache may have been cleared
            (directory / self.symbol).touch()
        kind, symbol, tools = self.compiled.signature, self.symbol, _untyped(cgutils)

        def by_name(typing: Any, args: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                given = tools.unpack_tuple(builder, values[0])
                pairs = zip(given, signature.args[0], kind.args, strict=True)
                given = [context.cast(builder, value, have, wanted) for value, have, wanted in pairs]
                convention = context.call_conv
                shape = convention.get_function_type(kind.return_type, kind.args)
                function = tools.get_or_insert_function(builder.module, shape, symbol)
                status, result = convention.call_function(
                    builder, function, kind.return_type, kind.args, given
                )
                with tools.if_unlikely(builder, status.is_error):
                    convention.return_status_propagate(builder, status)
                return result

            return kind.return_type(args), generate

        call: Any = intrinsic(by_name)
        return _numba().njit(**OPTIONS)(lambda *args: call(args))


def outlined(signature: str) -> Callable[[Callable[..., Any]], OutlinedKernel]:
    """Mark a function of the numba subset as a kernel compiled on its own for this signature."""
    return lambda py_func: OutlinedKernel(py_func, signature)


def for_floats(kernel: Kernel, signature: str) -> tuple[OutlinedKernel, ...]:
    """Outlined versions of a kernel for float32 and float64; ``{f}`` in the signature is the float type."""
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
    """The outlined kernels that a kernel calls, directly or through other kernels."""
    for name in kernel.py_func.__code__.co_names:
        other = kernel.py_func.__globals__.get(name)
        if isinstance(other, OutlinedKernel):
            yield other
        elif isinstance(other, Kernel):
            yield from _called(other)


def _marks() -> Path | None:
    return _cache_directory(_digest(()))


def _untyped(module: Any) -> Any:
    return module
