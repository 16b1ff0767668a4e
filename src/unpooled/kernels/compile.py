"""Compile plain functions on their first call.

``@kernel`` marks a function written in the subset of Python that numba compiles. It has three callers:

- Python: the call compiles the function for its argument types and runs it. numba is imported at that point.
- Another kernel: numba inlines the compiled function.
- A test: ``f.py_func`` runs the source uncompiled. With ``UNPOOLED_COMPILE=off`` in the environment all
  kernels run that way, so that debuggers and coverage tools work inside them.

A long kernel would be optimised anew in each of its callers; ``outlined`` has it compiled once.

A loss, a penalty or an algorithm's local loop reaches compiled code as a *record*: a NamedTuple whose
fields are numbers and arrays and whose methods are kernels. ``prox = method("prox")`` makes a function
that calls the method of the record it is given. Compiled code resolves the method by the record's type at
compile time, so the loop performs no look-up.

Compiled code is cached on disk, in a directory named after a digest of every source that went into it.
After an edit to a kernel, including a user's own, the cache is not used.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

# Sums may be reordered and contracted into FMAs, so that loops vectorise. The flags that assume away NaN
# and infinity are left out on purpose: the divergence guard has to see them.
FASTMATH = frozenset({"reassoc", "contract", "arcp", "nsz"})
OPTIONS: dict[str, Any] = {"fastmath": set(FASTMATH), "error_model": "numpy", "nogil": True}
KEPT_VERSIONS, KEPT_SETS = 6, 50  # of the package; of a user's own records


class Kernel:
    """A plain function and, once it is needed, its compiled form."""

    def __init__(self, py_func: Callable[..., Any], **options: Any):
        self.py_func = py_func
        self.options = options  # other than the usual ones
        self._dispatchers: dict[tuple[type, ...], Any] = {}
        functools.update_wrapper(self, py_func)

    def dispatcher(self, *args: Any) -> Any:
        """The compiled function for calls from Python; a user's record types get their own dispatcher."""
        records = foreign_records(args)
        if records not in self._dispatchers:
            self._dispatchers[records] = compiled(self.py_func, records, **self.options)
        return self._dispatchers[records]

    @property
    def source(self) -> Callable[..., Any]:
        """The function that compiled code inlines: ``py_func``, as a wrapper would be optimised again."""
        return self.py_func

    @functools.cached_property
    def callee(self) -> Any:
        """The compiled function that other kernels call; it is kept on disk as a part of them."""
        numba = _numba()
        from unpooled.kernels.numba_internals import CALLEE

        return numba.njit(**{**OPTIONS, **CALLEE, **self.options})(self.py_func)

    def __call__(self, *args: Any) -> Any:
        """Run the compiled function."""
        return self.dispatcher(*args)(*args)

    def __get__(self, record: Any, owner: type | None = None) -> Any:
        return self if record is None else functools.partial(self, record)


def foreign_records(args: tuple[Any, ...]) -> tuple[type, ...]:
    """The record types among ``args``, at any depth, that are defined outside this package."""
    found: tuple[type, ...] = ()
    for arg in args:
        if isinstance(arg, tuple):
            own = type(arg) is tuple or type(arg).__module__.partition(".")[0] == "unpooled"
            found += foreign_records(arg) if own else (type(arg), *foreign_records(arg))
    return found


def kernel(py_func: Callable[..., Any]) -> Kernel:
    """Mark a function of the numba subset as a kernel."""
    return Kernel(py_func)


def in_order(py_func: Callable[..., Any]) -> Kernel:
    """Mark a kernel, for calls from other kernels, whose sums must keep the order in the source."""
    return Kernel(py_func, fastmath={"contract"})


_taught: list[tuple[Callable[..., Any], Callable[..., Kernel], bool]] = []


def method(name: str, default: Kernel | None = None, borrows: bool = False) -> Callable[..., Any]:
    """A function of a record and arguments that calls the record's kernel ``name``, or ``default``.

    Set ``borrows`` for kernels that neither allocate nor return an array: the caller owns all arguments, and
    reference counting can be skipped.
    """

    def call(record: Any, *args: Any) -> Any:
        return _kernel_of(type(record), name, default)(record, *args)

    call.__name__ = call.__qualname__ = name
    _learn(call, lambda record, *args: _kernel_of(_class_of(record), name, default), borrows)
    return call


class Vectorised:
    """A kernel in plain loops, with a SIMD version of the same name in ``module``.

    Compiled code takes the latter where the host has vectors for its arguments: by name, where the module's
    ``OUTLINED`` has it for these types (see ``outlined``).
    """

    def __init__(self, plain: Kernel, module: str):
        self.plain, self.module, self.name = plain, module, plain.py_func.__name__
        self.__name__ = self.__qualname__ = self.name

    def __call__(self, *args: Any) -> Any:
        """Run the plain loops."""
        return self.plain.py_func(*args)

    def choose(self, *args: Any) -> Kernel:
        """The kernel for arguments of these types."""
        from unpooled.kernels import simd

        if not simd.fits(*args):
            return self.plain
        inlined: Kernel = getattr(self._vectors(), self.name)
        return next((by_itself for by_itself in self._outlined() if by_itself.fits(args)), inlined)

    def _vectors(self) -> Any:
        return import_module(f"unpooled.kernels.{self.module}")

    def _outlined(self) -> Any:
        return getattr(self._vectors(), "OUTLINED", {}).get(self.name, ())


def vectorised(plain: Kernel, module: str = "vector_products") -> Vectorised:
    """Pair a kernel with its SIMD version (see ``Vectorised``)."""
    found = Vectorised(plain, module)
    _learn(found, found.choose, borrows=True)
    return found


def _class_of(record: Any) -> Any:
    from unpooled.kernels.numba_internals import record_class

    return record_class(record)


def _kernel_of(record: type, name: str, default: Kernel | None) -> Any:
    """The record type's kernel of this name, or the default; TypeError if there is neither."""
    found = getattr(record, name, default)
    if found is None:
        raise TypeError(f"{record.__name__} has no kernel {name!r}")
    return found


def _learn(call: Callable[..., Any], choose: Callable[..., Kernel], borrows: bool) -> None:
    """Register ``call`` with numba, now or as soon as numba is imported.

    Compiled code then runs the kernel that ``choose`` selects by argument types. See ``method`` for
    ``borrows``.
    """
    _taught.append((call, choose, borrows))
    if _numba.cache_info().currsize:
        _teach(call, choose, borrows)


def _teach(call: Callable[..., Any], choose: Callable[..., Kernel], borrows: bool) -> None:
    from numba.extending import overload

    from unpooled.kernels.numba_internals import BORROWER, CALLEE

    options = {**OPTIONS, **(BORROWER if borrows else CALLEE)}
    overload(call, jit_options=options, strict=False)(  # type: ignore[arg-type]
        lambda *args: choose(*args).source
    )


@functools.cache
def compiles() -> bool:
    """Whether kernels are compiled: unless the environment variable UNPOOLED_COMPILE is "off"."""
    asked = os.environ.get("UNPOOLED_COMPILE", "on")
    if asked not in ("on", "off"):
        raise ValueError(f"UNPOOLED_COMPILE must be one of on, off, got {asked!r}")
    return asked == "on"


@functools.cache
def _numba() -> Any:
    """Import numba and register kernels and methods; the only place that configures numba."""
    import numba
    from numba.extending import typeof_impl

    from unpooled.kernels.compile_notice import CompileNotice
    from unpooled.kernels.numba_internals import listen

    @typeof_impl.register(Kernel)
    def _typeof_kernel(value: Kernel, context: Any) -> Any:
        return numba.typeof(value.callee)

    for call, choose, borrows in _taught:
        _teach(call, choose, borrows)
    listen(CompileNotice(_kept))
    return numba


def compiled(py_func: Callable[..., Any], records: tuple[type, ...] = (), **options: Any) -> Any:
    """The dispatcher of ``kept``, which resolves outlined kernels before it loads code from disk."""
    function = kept(py_func, records, **options)
    if compiles():
        from unpooled.kernels.numba_internals import before_reading

        before_reading(function, _find_named)
    return function


_kept: dict[Any, Path | None] = {}  # dispatchers and their cache directories


def kept(py_func: Callable[..., Any], records: tuple[type, ...] = (), **options: Any) -> Any:
    """The numba dispatcher of ``py_func``, cached on disk under a digest of the package and a user's records.

    User records have separate directories because numba's index on disk names the types it holds: a process
    that lacks the user's module could not read a shared index. With compilation off, returns ``py_func``
    with floating-point warnings silenced, as in compiled code.
    """
    if not compiles():
        return np.errstate(all="ignore")(py_func)
    numba = _numba()
    from unpooled.kernels.numba_internals import cache_in

    directory = _cache_directory(_digest(records))
    with cache_in(directory):
        function = numba.njit(cache=directory is not None, **{**OPTIONS, **options})(py_func)
    _kept[function] = directory
    return function


def _find_named() -> None:
    """Whatever is read from disk may call kernels by name (see ``outlined``): they are found first."""
    from unpooled.kernels.outlined import find_named

    find_named()


@functools.cache
def _package_digest() -> str:
    """A digest of what compiled code depends on: Python, UNPOOLED_SIMD and all sources with kernels."""
    digest = hashlib.sha256(f"{sys.version} {os.environ.get('UNPOOLED_SIMD')}".encode())
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        source = path.read_bytes()
        if b"kernel" in source or b"numba" in source:
            digest.update(source)
    return digest.hexdigest()[:20]


def _digest(records: tuple[type, ...]) -> str:
    """A digest of the kernels of user-defined records; "unpooled" if there are none.

    It covers their bytecode and, for the functions they call, the whole source file.
    """
    digest = hashlib.sha256()
    for record in records:
        digest.update(f"{record.__module__}.{record.__qualname__}".encode())
        for name, value in sorted(vars(record).items()):
            if isinstance(value, Kernel):
                code = value.py_func.__code__
                digest.update(repr((name, code.co_code, code.co_consts)).encode())
                if os.path.isfile(code.co_filename):
                    digest.update(Path(code.co_filename).read_bytes())
    return digest.hexdigest()[:20] if records else "unpooled"


@functools.cache
def _cache_directory(digest: str) -> Path | None:
    """The cache directory for this digest; None if no location is writable.

    Each version of the package has a directory, which holds one for the package's own records and one for
    each set of user-defined records. The least recently used are deleted. A directory under the shared
    temporary directory must belong to this user, because its content is executed.
    """
    root = os.environ.get("UNPOOLED_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    spare = Path(tempfile.gettempdir()) / f"unpooled-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    for base in [Path(root)] if root else [Path(home) / "unpooled", spare]:
        try:
            if base == spare:
                base.mkdir(mode=0o700, exist_ok=True)
                _refuse_foreign(base)
            directory = base / "kernels" / _package_digest() / digest
            directory.mkdir(parents=True, exist_ok=True)
            for used, kept in ((directory, KEPT_SETS), (directory.parent, KEPT_VERSIONS)):
                os.utime(used)
                _forget_oldest(used.parent, kept)
        except OSError:
            continue
        if os.access(directory, os.W_OK):
            return directory
    return None


def _refuse_foreign(folder: Path) -> None:
    """Refuse a directory that is a link, that another user owns, or that others can write to."""
    about = folder.lstat()
    is_mine = not hasattr(os, "getuid") or (about.st_uid == os.getuid() and not about.st_mode & 0o022)
    if not is_mine or not stat.S_ISDIR(about.st_mode):
        raise PermissionError(f"{folder} does not belong to this user, or others can write to it")


def _forget_oldest(parent: Path, kept: int) -> None:
    """Delete all but the most recently used directories."""
    by_age = sorted(parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for stale in by_age[kept:]:
        shutil.rmtree(stale, ignore_errors=True)
