"""The walls of the house: what lies at the top level, and which way imports go."""

import ast
from pathlib import Path

import pytest

import unpooled

ROOT = Path(unpooled.__file__).parent
ORDER = [
    "kernels",
    "losses",
    "penalties",
    "data",
    "problem",
    "algorithms",
    "exact",
    "aggregation",
    "engines",
    "runs",
    "preprocessing",
    "inference",
    "estimators",
    "study",
    "experiments",
    "report",
    "cli",
]
"""From the ground up: a package may import those before it, and itself. Private ``_name.py`` files, which
import each other only, come before all of them; ``__init__.py`` after."""


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the library that a file imports, at the top, inside functions and for types alone."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "unpooled"}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "unpooled":
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else str(node.module) for name in names}
    return found


def level(module: str) -> int:
    """How high above the ground a module lies."""
    parts = module.split(".")
    if len(parts) == 1:
        return len(ORDER)
    return -1 if parts[1].startswith("_") else ORDER.index(parts[1])


def test_the_top_level_holds_these_and_nothing_else():
    entries = {
        path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert {name for name in entries if not name.startswith("_")} == set(ORDER)


@pytest.mark.parametrize("module", sorted(modules()))
def test_imports_go_one_way(module):
    known = modules()
    back = [other for other in sorted(imports(known[module], known)) if level(other) > level(module)]
    assert not back, f"{module} imports {back}, which stand above it"


def test_the_order_is_that_of_the_map():
    """CONTRIBUTING shows the tree; it names every package, in this order."""
    text = (ROOT.parents[1] / "CONTRIBUTING.md").read_text("utf-8")
    tree = text[text.index("## The map of the house") :]
    places = [tree.index(f"\n    {name}{'.py' if name in ('problem', 'cli') else '/'} ") for name in ORDER]
    assert places == sorted(places)
