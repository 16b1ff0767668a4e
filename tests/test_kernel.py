"""Compilation: late, cached on disk, and never stale."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.event import install_listener, trigger_event

from unpooled.kernels import compile, compile_notice, simd
from unpooled.kernels.compile import _digest, _forget_oldest, compiled, foreign_records, kernel, method
from unpooled.losses.squared import SquaredRecord
from unpooled.penalties.l1 import L1Record
from unpooled.penalties.regulariser import Free, Regulariser

double = method("double")


class Two(NamedTuple):
    factor: float

    @kernel
    def double(self, x):
        return self.factor * x


class Bare(NamedTuple):
    factor: float


def finished(code, cache, **more):
    environment = {**os.environ, "UNPOOLED_CACHE_DIR": str(cache), **more}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def python(code, cache):
    return finished(code, cache).stdout.strip()


AT_ONCE = (
    "from unpooled.kernels import compile_notice; compile_notice.SILENT_SECONDS = 0.0; "
    "from unpooled.kernels.draws import cohort;"
)


def test_importing_does_not_import_what_is_slow_to(tmp_path):
    slow = ("numba", "scipy", "sklearn", "matplotlib", "pandas", "flwr", "ray")
    code = f"import unpooled, sys; print([m for m in {slow} if m in sys.modules])"
    assert python(code, tmp_path) == "[]"


def test_methods_are_found_by_the_type_of_the_record():
    assert double(Two(2.0), 3.0) == 6.0
    assert Two(2.0).double(3.0) == 6.0
    assert Two.double.py_func(Two(2.0), 3.0) == 6.0

    def twice(record, x):
        return double(record, double(record, x))

    assert compiled(twice, (Two,))(Two(2.0), 3.0) == 12.0
    with pytest.raises(TypeError, match=r"Bare has no kernel 'double'"):
        double(Bare(1.0), 1.0)


def test_nan_is_seen_by_compiled_comparisons():
    """The fast-math flags must not let the compiler assume that NaN does not happen."""
    from unpooled.kernels.weighted_sum import all_sound

    for wrong in (np.nan, np.inf, -np.inf, 1e200):
        up = np.zeros((2, 9))
        assert all_sound(up)
        up[1, 4] = wrong
        assert not all_sound(up)
        assert not all_sound.py_func(up)


MODULE = """
from typing import NamedTuple
from unpooled.kernels.compile import compiled, kernel, method
grow = method("grow")
class Grow(NamedTuple):
    by: float
    @kernel
    def grow(self, x):
        return {body}
def run(record, x):
    return grow(record, x)
"""


def test_cached_on_disk_and_recompiled_when_a_kernel_changes(tmp_path):
    """A second process loads the compiled code; an edited kernel of a user's module is compiled anew."""
    module = tmp_path / "mine.py"
    call = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.dont_write_bytecode = True; import mine;"
        "f = mine.compiled(mine.run, (mine.Grow,));"
        "print(f(mine.Grow(2.0), 5.0), sum(f.stats.cache_hits.values()))"
    )
    module.write_text(MODULE.format(body="x + self.by"))
    assert python(call, tmp_path / "cache") == "7.0 0"
    assert python(call, tmp_path / "cache") == "7.0 1"
    module.write_text(MODULE.format(body="x * self.by"))
    assert python(call, tmp_path / "cache") == "10.0 0"
    helper = MODULE.format(body="lift(x) * self.by").replace(
        "class", "@kernel\ndef lift(x):\n    return x + 1\nclass"
    )
    module.write_text(helper)
    assert python(call, tmp_path / "cache") == "12.0 0"
    module.write_text(helper.replace("x + 1", "x + 2"))
    assert python(call, tmp_path / "cache") == "14.0 0"


def test_digest_knows_every_kernel_of_a_record():
    assert _digest((Two,)) != _digest((Bare,))
    assert _digest((Two,)) == _digest((Two,))
    assert _digest(()) == "unpooled"


def test_foreign_records_are_found_inside_others():
    own = Regulariser(L1Record(1.0), Free(3))
    assert foreign_records((own, 1.0, (2, SquaredRecord()))) == ()
    assert foreign_records((Regulariser(Two(1.0), Free(3)), Bare(2.0), (1, Bare(3.0)))) == (Two, Bare, Bare)


def test_a_users_record_does_not_spoil_the_cache_for_others(tmp_path):
    """An index of compiled code cannot be read without the module of the types in it: it is kept apart."""
    (tmp_path / "mine.py").write_text(
        "from typing import NamedTuple\nfrom unpooled.kernels.compile import kernel\n"
        "class Cube(NamedTuple):\n    by: float\n    @kernel\n"
        "    def value(self, z, y):\n        return self.by * z[0] ** 3\n"
    )
    total = "from unpooled.losses.base import weighted_total as f; import numpy as np;"
    call = "print(f({}, np.full((2, 1), 2.0), np.zeros(2), np.ones(2)))"
    theirs = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import mine;{total}" + call.format(
        "mine.Cube(1.0)"
    )
    ours = f"{total}from unpooled.losses.squared import SquaredRecord;" + call.format("SquaredRecord()")
    for _ in range(2):
        assert python(theirs, tmp_path / "cache") == "16.0"
        assert python(ours, tmp_path / "cache") == "4.0"


def test_only_recent_digests_are_kept(tmp_path):
    for i in range(12):
        (tmp_path / f"d{i}").mkdir()
        os.utime(tmp_path / f"d{i}", (i, i))
    _forget_oldest(tmp_path, 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d10", "d11", "d9"]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path):
    (tmp_path / "file").write_text("")
    code = f"{AT_ONCE} print(len(cohort(0, 0, 9, 4)))"
    done = finished(code, tmp_path / "file")
    assert done.stdout == "4\n"
    assert "about 10 s, in every process: cannot write to UNPOOLED_CACHE_DIR" in done.stderr
    assert Path(tmp_path / "file").is_file()


def test_compiling_is_said_once_and_reading_is_not(tmp_path):
    """On stderr, for the first of two kernels; another process, whose kernels are on disk, says nothing."""
    more = (
        "import numpy as np; from unpooled.kernels.weighted_sum import all_sound; all_sound(np.zeros((2, 3)))"
    )
    code = f"{AT_ONCE} cohort(0, 0, 9, 4); {more}"
    cache = tmp_path / "cache"
    said = (
        "unpooled: compiling … (about 10 s, once for each combination of loss, penalty and algorithm; "
        f"cached in {cache} for later processes)\n"
    )
    assert [finished(code, cache).stderr for _ in range(2)] == [said, ""]
    assert finished(code, tmp_path / "other", UNPOOLED_QUIET="1").stderr == ""


def test_only_what_is_ours_and_takes_a_while_is_said(monkeypatch, capsys):
    monkeypatch.setattr(compile_notice, "SILENT_SECONDS", 3600.0)
    ours, theirs = object(), object()
    announcer = compile_notice.CompileNotice({ours: None})
    with install_listener("numba:compile", announcer):
        with trigger_event("numba:compile", data={"dispatcher": theirs}):
            assert announcer.timer is None
        with trigger_event("numba:compile", data={"dispatcher": ours}):
            with trigger_event("numba:compile", data={"dispatcher": theirs}):  # which ours calls
                pass
            assert announcer.timer.is_alive()
    announcer.timer.join()
    assert announcer.spent > 0.0
    assert capsys.readouterr().err == ""


NAMED = """
import numpy as np
from unpooled.kernels.outlined import outlined
from unpooled.kernels.compile import kernel
@outlined("f8(f8[::1], i8)")
def inner(x, power):
    total = 0.0
    for j in range(x.size):
        total += x[j] ** power
    return total
@outlined("UniTuple(f8, 2)(f8[::1])")
def outer(x):
    x[0] = inner(x, 2)
    return x[0], inner(x, 1)
@kernel
def run(x):
    return outer(x)
"""


def test_kernels_called_by_name(tmp_path):
    """Compiled at first, read from disk later, and found again when their file only looks newer."""
    (tmp_path / "mine.py").write_text(NAMED)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import mine, numpy as np; x = np.arange(4.0); "
    )
    ask = code + "print(*mine.run(x), *mine.outer.py_func(np.arange(4.0)), *mine.outer(np.arange(4.0)))"
    cache = tmp_path / "cache"
    expected = "14.0 20.0 " * 3
    assert python(ask, cache) == expected.strip()
    held = len(list(cache.rglob("*.nbc")))
    assert held >= 3
    assert python(ask, cache) == expected.strip()
    assert len(list(cache.rglob("*.nbc"))) == held
    first = "import numpy as np, unpooled as up; print(up.Nuclear(1.0).prox(np.eye(2), 0.5)[0, 0])"
    assert python(first, cache) == python(first, cache) == "0.5"
    lost = list(cache.rglob("linalg*/singular_values.shrink-*.nbi"))
    assert lost
    for index in lost:  # as if the file had been touched: its callers are still on disk
        index.unlink()
    assert python(first, cache) == "0.5"


FORMS = """
import numpy as np, unpooled as up
from unpooled.engines.local.columns import layouts
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 24)) * (np.arange(24) > 9)
y = X[:, 10:14].sum(axis=1)
clients = np.arange(60) // 10
runs = []
for target, loss in ((y, up.Squared()), (np.digitize(y, [-1.0, 0.0, 1.0]), up.Softmax(4))):
    for several, empty in ((24, 0.0), (2, 0.8)):  # rows without vacant columns, and non-zeros
        layouts.SEVERAL = several
        data = up.FederatedData.from_arrays(X * (rng.random(X.shape) >= empty), target, clients)
        problem = up.Problem(loss, up.L1(0.01))
        runs.append(up.simulate(up.FastFedDA(), problem, data, rounds=3, batch_size=5, progress=False))
dense = up.FederatedData.from_arrays(X[:, 10:], y, clients)
problem = up.Problem(up.Squared(), up.L1(0.01))
runs.append(up.simulate(up.FastFedDA(), problem, dense, rounds=3, progress=False))
print([float(np.abs(run.w).sum()) for run in runs])
"""


MEANWHILE = f"""
import subprocess, sys
from unpooled.kernels.draws import cohort
cohort(0, 0, 9, 4)  # the cache is in use before anything in it calls by name
done = subprocess.run([sys.executable, "-c", {FORMS!r}], capture_output=True, text=True, check=True)
print(done.stdout.strip())
exec({FORMS!r})
"""


@pytest.mark.slow
def test_processes_find_every_product_that_another_compiled(tmp_path):
    """Callers that are read from disk call them by name; without an address the process would crash."""
    theirs, ours = python(MEANWHILE, tmp_path / "cache").splitlines()
    assert theirs == ours
    marks = {path.name.split(".")[-2] for path in (tmp_path / "cache").rglob("unpooled.*products.*")}
    wanted = {"margins", "adjoint", "sparse_margins", "sparse_adjoint"}
    assert marks == (wanted if simd.width() else set())


CLEARED = """
import os, shutil
import numpy as np
from unpooled.kernels.draws import cohort
print(len(cohort(0, 0, 9, 4)))
shutil.rmtree(os.environ["UNPOOLED_CACHE_DIR"])
from unpooled.kernels.weighted_sum import add_here
mean = np.zeros((1, 2))
add_here(mean, np.ones(1), np.ones((1, 1, 2)))
print(mean.sum())
"""


def test_a_cache_that_is_cleared_away_is_made_again(tmp_path):
    """By a user, or by the system, while a process runs."""
    assert python(CLEARED, tmp_path / "cache") == "4\n2.0"


@pytest.mark.parametrize("name", ["losses/logistic.py", "penalties/l1.py", "kernels/draws.py"])
def test_an_edit_to_any_kernel_changes_the_cache_directory(name, monkeypatch):
    edited, read = Path(compile.__file__).parents[1] / name, Path.read_bytes
    before = compile._package_digest.__wrapped__()
    monkeypatch.setattr(Path, "read_bytes", lambda p: read(p) + (b"#" if p == edited else b""))
    assert compile._package_digest.__wrapped__() != before
