"""Names of numba that are not public: which of them a new version has moved, and that no other is used."""

import ast
import inspect
import re
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numba
import pytest
from numba.extending import intrinsic

import unpooled
from unpooled.kernels import numba_internals as internals

ROOT = Path(unpooled.__file__).parent
MODULES = {
    "numba.core.cgutils": [
        "alloca_once_value",
        "for_range",
        "for_range_slice",
        "get_or_insert_function",
        "if_unlikely",
        "unpack_tuple",
    ],
    "numba.core.event": ["Listener", "register"],
    "numba.core.sigutils": ["normalize_signature"],
    "numba.core.registry": ["cpu_target"],
    "numba.core.config": ["CACHE_DIR"],
}
CONTEXT = ["call_conv", "cast", "get_dummy_value", "make_array", "codegen"]
CONVENTION = ["call_function", "get_function_type", "return_status_propagate"]


class Point(NamedTuple):
    x: float


def twice(x):
    return 2.0 * x


@cache
def dispatcher(**options):
    made = numba.njit(**options)(twice)
    made.compile("f8(f8)")
    return made


@pytest.mark.parametrize("name", [f"{m}.{name}" for m, names in MODULES.items() for name in names])
def test_a_name_of_a_module(name):
    module, _, last = name.rpartition(".")
    assert hasattr(import_module(module), last)


def test_every_tool_that_is_used_is_listed():
    used = set()
    for path in (ROOT / "kernels").rglob("*.py"):
        used |= set(re.findall(r"\btools\.(\w+)", path.read_text("utf-8")))
    assert used == set(MODULES["numba.core.cgutils"])


@pytest.mark.parametrize("name", CONTEXT)
def test_a_name_of_the_target_context(name):
    assert hasattr(internals.cpu_target.target_context, name)


@pytest.mark.parametrize("name", CONVENTION)
def test_a_name_of_the_calling_convention(name):
    assert hasattr(internals.cpu_target.target_context.call_conv, name)


@pytest.mark.parametrize("name", ["_cache", "overloads", "compile"])
def test_a_name_of_a_dispatcher(name):
    assert hasattr(dispatcher(), name)


@pytest.mark.parametrize("options", [{}, {"cache": True}], ids=["not kept", "kept on disk"])
def test_a_dispatchers_cache_reads_by_load_overload(options, tmp_path):
    with internals.cache_in(tmp_path):
        made = numba.njit(**options)(twice)
    called = []
    internals.before_reading(made, lambda: called.append(1))
    assert made(2.0) == 4.0
    assert called == [1]
    assert bool(list(tmp_path.rglob("*.nbi"))) == bool(options)


@pytest.mark.parametrize("name", ["signature", "library.get_pointer_to_function", "fndesc.llvm_func_name"])
def test_a_name_of_what_was_compiled(name):
    [found] = dispatcher().overloads.values()
    for part in name.split("."):
        assert hasattr(found, part)
        found = getattr(found, part)


@pytest.mark.parametrize("name", internals.CALLEE)
def test_an_option_of_njit(name):
    assert numba.njit(**{name: internals.CALLEE[name]})(twice).targetoptions[name] == internals.CALLEE[name]
    numba.njit(lambda x: x, **{name: internals.CALLEE[name]}).compile("f8(f8)")


def test_an_option_that_numba_does_not_know_would_be_refused():
    with pytest.raises((KeyError, TypeError), match="_no_such_option"):
        numba.njit(lambda x: x, _no_such_option=True).compile("f8(f8)")


def test_magic_tuple_has_the_triple_and_the_features():
    triple, features = internals.host()
    assert "-" in triple
    assert all(feature[0] in "+-" for feature in features if feature)


def test_normalize_signature_gives_the_arguments_first():
    assert internals.argument_types("f8(f8, i8)") == (numba.float64, numba.int64)


def test_an_event_names_its_dispatcher():
    heard = []

    class Ear(internals.Listener):
        def on_start(self, event):
            heard.append(internals.function_of(event))

        def on_end(self, event):
            pass

    made = numba.njit(lambda x: x + 1.0)
    with internals.event.install_listener(internals.COMPILING, Ear()):
        made(1.0)
    assert heard == [made]


def test_the_type_of_a_record_knows_its_class():
    assert internals.record_class(numba.typeof(Point(1.0))) is Point


def test_a_function_is_called_by_its_name():
    from llvmlite.binding import add_symbol

    kind, address = internals.compiled_for(numba.njit(twice), "f8(f8)")
    add_symbol("unpooled.tests.twice", address)

    @intrinsic
    def by_name(typing, args):
        def write(context, builder, signature, values):
            have = signature.args[0]
            return internals.call_by_name(context, builder, "unpooled.tests.twice", kind, have, values[0])

        return kind.return_type(args), write

    assert numba.njit(lambda x: by_name((x,)))(21) == 42.0  # and the argument is made a float


def imported(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


def test_no_other_module_of_the_library_imports_from_within_numba():
    public = {"numba", "numba.extending"}
    here = inspect.getfile(internals)
    for path in sorted(ROOT.rglob("*.py")):
        names = {name for name in imported(path) if name.split(".")[0] == "numba"}
        assert names <= public or str(path) == here, f"{path} imports {names - public}"


def test_no_other_module_of_kernels_has_a_name_from_within_numba():
    names = {*CONTEXT, *CONVENTION, "_cache", "overloads", "fndesc", "llvm_func_name", "load_overload"}
    names |= {"instance_class", "magic_tuple", "target_context", "CACHE_DIR", "get_pointer_to_function"}
    for path in sorted((ROOT / "kernels").rglob("*.py")):
        if path.name != "numba_internals.py":
            tree = ast.walk(ast.parse(path.read_text("utf-8")))
            found = {node.attr for node in tree if isinstance(node, ast.Attribute)}
            assert not found & names, path


def test_numba_has_an_upper_bound():
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    [line] = [line for line in project["dependencies"] if line.startswith("numba")]
    assert re.fullmatch(r"numba>=0\.\d+,<0\.\d+", line)
