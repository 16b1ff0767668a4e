"""Memory-mapped rows: used where they lie, refused where they would have to be loaded whole."""

import subprocess
import sys

import numpy as np
import pytest

import unpooled as up
from tests.runs import FAST, go, same_bits


def mapped(path, array):
    np.save(path / "X.npy", array)
    return np.load(path / "X.npy", mmap_mode="r")


def clients(data):
    return np.repeat(data.ids, data.sizes)


def test_a_run_on_mapped_rows_has_the_same_bits(tmp_path, small):
    X = mapped(tmp_path, small.X)
    data = up.FederatedData.from_arrays(X, small.y, clients(small))
    assert np.shares_memory(data.X, X)
    assert data.fingerprint() == up.FederatedData.from_arrays(small.X, small.y, clients(small)).fingerprint()
    same_bits(go(FAST, data), go(FAST, small))


def test_what_would_load_all_rows_is_refused(tmp_path, small):
    X, ids = mapped(tmp_path, small.X), clients(small)
    make = up.FederatedData.from_arrays
    with pytest.raises(ValueError, match="memory-mapped, but its rows are not sorted by client"):
        make(X, small.y, ids[::-1])
    with pytest.raises(ValueError, match=r"memory-mapped, but its rows do not lie one after the other"):
        make(X[:, ::2], small.y, ids)
    with pytest.raises(ValueError, match="memory-mapped, but it is float64, not float32"):
        make(X, small.y, ids).astype("float32")
    with pytest.raises(ValueError, match="memory-mapped, but it is int64, not float32 or float64"):
        make(mapped(tmp_path, np.ones(X.shape, int)), small.y, ids)


def test_a_value_that_is_not_finite_is_named(tmp_path, small):
    broken = np.array(small.X)
    broken[31, 7] = np.nan
    with pytest.raises(ValueError, match="client 1, row 31, column 7 holds nan"):
        up.FederatedData.from_arrays(mapped(tmp_path, broken), small.y, clients(small))


# 160 MB of rows in files. RssAnon is what a process has in memory of its own, pages of mapped files apart.
# It is sampled while data are read and a run is made, compiled code being ready before.
CODE = """
import sys, threading, time
import numpy as np, pyarrow as pa, pyarrow.parquet as pq, unpooled as up
from pathlib import Path

def own():
    status = dict(line.split(":") for line in open("/proc/self/status"))
    return 1024 * int(status["RssAnon"].split()[0])

folder, (K, n, p) = Path(sys.argv[1]), (20, 4000, 500)
problem, algorithm = up.Problem(up.Squared(), up.L1(0.1), intercept=True), up.FastFedDA(local_steps=5)
options = {"rounds": 20, "cohort": 10, "batch_size": 10}

def go(data):
    run = up.simulate(algorithm, problem, data, metrics={"mse": up.metrics.mse(data)}, **options)
    assert run.status == "completed", run.message
    return run

def rows(k, n):
    X = np.random.default_rng(k).standard_normal((n, p), dtype=np.float32)
    return {"y": X[:, 0], **{f"x{j}": X[:, j] for j in range(p)}}

for k in range(K):
    pq.write_table(pa.table(rows(k, n)), folder / f"client{k:02}.parquet", row_group_size=1000)
    if k == 0:
        (folder / "small").mkdir()
        pq.write_table(pa.table(rows(k, 50)), folder / "small" / "a.parquet")
options["cohort"] = 1
go(up.FederatedData.from_parquet(folder / "small", "y", cache=folder / "cache"))
options["cohort"] = 10

peak, watching = 0, True
def watch():
    global peak
    while watching:
        peak = max(peak, own())
        time.sleep(0.002)

before = own()
threading.Thread(target=watch, daemon=True).start()
data = up.FederatedData.from_parquet(folder, "y", cache=folder / "cache")
run = go(data)
assert data.X.nbytes == K * n * p * 4
print((peak - before) / data.X.nbytes)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory from /proc")
def test_data_on_disk_needs_little_memory(tmp_path):
    done = subprocess.run([sys.executable, "-c", CODE, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.25
