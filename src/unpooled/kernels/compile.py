"""Plain functions that are compiled when they are first called.

``@kernel`` marks a function written in the subset of Python that numba compiles. Three callers see it:

- Python calls it: it is compiled for the argument types and run. numba is imported then, not before.
- Another kernel calls it: numba finds the compiled function behind it and inlines it.
- A test calls ``f.py_func``: the source runs as it stands. With ``UNPOOLED_COMPILE=off`` in the environment
  everything does, so that a debugger or a coverage tool sees inside.

A long kernel would be optimised anew in each of its callers; ``outlined`` has it compiled once.

A loss, a penalty or an algorithm's local loop reaches compiled code as a *record*: a NamedTuple whose
fields are numbers and arrays and whose methods are kernels. ``prox = method("prox")`` makes a function
that calls the method of whatever record it is given; compiled code picks it by the record's type, so
nothing is looked up while the loop runs.

Compiled code is kept on disk in a directory named after a digest of every source that went into it: an
edited kernel, also a user's own, is never served stale.
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
        """The compiled function that Python calls; what is compiled for a user's records is kept apart."""
        records = foreign_records(args)
        if records not in self._dispatchers:
            self._dispatchers[records] = compiled(self.py_func, records, **self.options)
        return self._dispatchers[records]

    @property
    def source(self) -> Callable[..., Any]:
        """What stands for it in compiled code that chose it: itself, for a function around it would be
        optimised once more.
        """
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
    """The types of the records among ``args``, and inside them, that are not this package's."""
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
    """Mark a kernel, for others to call, whose sums are added in the order in which they are written."""
    return Kernel(py_func, fastmath={"contract"})


_taught: list[tuple[Callable[..., Any], Callable[..., Kernel], bool]] = []


def method(name: str, default: Kernel | None = None, borrows: bool = False) -> Callable[..., Any]:
    """A function of a record and arguments that calls the record's kernel ``name``, or else ``default``.

    ``borrows`` is for kernels that make no array and return none: their caller keeps what they are given.
    """

    def call(record: Any, *args: Any) -> Any:
        return _kernel_of(type(record), name, default)(record, *args)

    call.__name__ = call.__qualname__ = name
    _learn(call, lambda record, *args: _kernel_of(_class_of(record), name, default), borrows)
    return call


class Vectorised:
    """A kernel in plain loops, or the one of the same name in ``module``.

    Compiled code takes the latter where the host has vectors for its arguments: by name, where the module's
    ``OUTLINED`` has it for these types (see ``outlined``).
    """

    def __init__(self, plain: Kernel, module: str):
        self.plain, self.module, self.name = plain, module, plain.py_func.__name__
        self.__name__ = self.__qualname__ = self.name

    def __call__(self, *args: Any) -> Any:
        """The plain loops."""
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
    """A function that compiled code has in vectors (see ``Vectorised``)."""
    found = Vectorised(plain, module)
    _learn(found, found.choose, borrows=True)
    return found


def _class_of(record: Any) -> Any:
    from unpooled.kernels.numba_internals import record_class

    return record_class(record)


def _kernel_of(record: type, name: str, default: Kernel | None) -> Any:
    """The record type's kernel of this name, or the default, or an error that names both."""
    found = getattr(record, name, default)
    if found is None:
        raise TypeError(f"{record.__name__} has no kernel {name!r}")
    return found


def _learn(call: Callable[..., Any], choose: Callable[..., Kernel], borrows: bool) -> None:
    """Let compiled code call ``call``, now or when numba is imported: it runs the kernel that is chosen by
    the arguments' types. See ``method`` for ``borrows``.
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
    """Import numba and teach it kernels and methods; the one place where it is configured."""
    import numba
    from numba.extending import typeof_impl

    from unpooled.kernels.announce import Announcer
    from unpooled.kernels.numba_internals import listen

    @typeof_impl.register(Kernel)
    def _typeof_kernel(value: Kernel, context: Any) -> Any:
        return numba.typeof(value.callee)

    for call, choose, borrows in _taught:
        _teach(call, choose, borrows)
    listen(Announcer(_kept))
    return numba


def compiled(py_func: Callable[..., Any], records: tuple[type, ...] = (), **options: Any) -> Any:
    """The dispatcher that is ``kept``; what it reads from disk finds the kernels that it calls by name."""
    function = kept(py_func, records, **options)
    if compiles():
        from unpooled.kernels.numba_internals import before_reading

        before_reading(function, _find_named)
    return function


_kept: dict[Any, Path | None] = {}  # dispatchers, and the folders of their compiled code


def kept(py_func: Callable[..., Any], records: tuple[type, ...] = (), **options: Any) -> Any:
    """The numba dispatcher of ``py_func``, cached on disk under a digest of the package and a user's records.

    An index on disk names the types it holds. Were it shared, a process without the user's module could
    not read it. Where nothing is compiled it is ``py_func``, which warns as little as compiled code does.
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
    """A digest of what compiled code depends on: the sources that have to do with kernels, and the switch."""
    digest = hashlib.sha256(f"{sys.version} {os.environ.get('UNPOOLED_SIMD')}".encode())
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        source = path.read_bytes()
        if b"kernel" in source or b"numba" in source:
            digest.update(source)
    return digest.hexdigest()[:20]


def _digest(records: tuple[type, ...]) -> str:
    """A digest of the kernels of records that are a user's own; "unpooled" where there are none.

    It takes their bytecode, and the whole file they stand in for the functions they call.
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
    """Where compiled code of this digest is kept; None where nothing can be written.

    One folder for each version of the package, and in it one for its own records and one for each set of a
    user's; those not used for longest are forgotten. Where anybody can make folders, only this user's own
    one will do: what is in it is executed.
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
    """Refuse a folder that is a link, that others own, or that others can write to."""
    about = folder.lstat()
    is_mine = not hasattr(os, "getuid") or (about.st_uid == os.getuid() and not about.st_mode & 0o022)
    if not is_mine or not stat.S_ISDIR(about.st_mode):
        raise PermissionError(f"{folder} is not this user's own")


def _forget_oldest(parent: Path, kept: int) -> None:
    """Keep the most recently used folders only."""
    by_age = sorted(parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for stale in by_age[kept:]:
        shutil.rmtree(stale, ignore_errors=True)
