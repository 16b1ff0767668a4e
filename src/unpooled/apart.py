"""Kernels that are compiled once, by themselves, and called by name.

What calls an ordinary kernel takes it in and optimises it anew, at each of the levels between an engine and a
penalty's loops. That is worth it for short ones. A long one, marked ``@apart(signature)``, is compiled for
one set of argument types, and its callers hold no more than its name.

Its address must be known to the process before a caller runs. When a caller is compiled, so is it; a mark on
disk then tells later processes, which read the caller from there, to do the same (``ready``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from unpooled.kernel import OPTIONS, Kernel, _cache_directory, _digest, _numba


class Apart(Kernel):
    """A kernel for one set of argument types, called by name."""

    def __init__(self, py_func: Callable[..., Any], signature: str, variant: str = ""):
        super().__init__(py_func)
        self.signature = signature
        self.symbol = f"{py_func.__module__}.{py_func.__qualname__}{variant}"

    def fits(self, args: tuple[Any, ...]) -> bool:
        """Whether arguments of these types need no conversion."""
        from numba.core import sigutils

        return bool(_untyped(sigutils).normalize_signature(self.signature)[0] == args)

    @functools.cached_property
    def compiled(self) -> Any:
        """The compiled function, from disk if it is there; compiled code finds it from now on."""
        from llvmlite.binding import add_symbol
        from numba.core import sigutils

        function = self.dispatcher()
        function.compile(self.signature)
        only = function.overloads[_untyped(sigutils).normalize_signature(self.signature)[0]]
        add_symbol(self.symbol, only.library.get_pointer_to_function(only.fndesc.llvm_func_name))
        return only

    def ready(self) -> None:
        """Compile it, or read it from disk, if a caller on disk may need it."""
        directory = _cache_directory(_digest(()))
        if not self._is_ready and directory and (directory / self.symbol).exists():
            super().ready()
            self.compiled  # noqa: B018

    @property
    def source(self) -> Callable[..., Any]:
        """A call by name."""
        return self.callee.py_func  # type: ignore[no-any-return]

    @functools.cached_property
    def callee(self) -> Any:
        """A call by name, compiled."""
        from numba.core import cgutils
        from numba.extending import intrinsic

        directory = _cache_directory(_digest(()))
        if directory:
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


def apart(signature: str) -> Callable[[Callable[..., Any]], Apart]:
    """Mark a function of the numba subset as a kernel that is compiled by itself, for these arguments."""
    return lambda py_func: Apart(py_func, signature)


def for_floats(kernel: Kernel, signature: str) -> tuple[Apart, ...]:
    """A kernel apart for float32 and for float64, which ``{f}`` stands for in the signature."""
    return tuple(Apart(kernel.py_func, signature.format(f=f), f".{f}") for f in ("f4", "f8"))


def _untyped(module: Any) -> Any:
    return module
