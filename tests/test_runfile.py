"""Runs on disk: whole or not at all, and never silently wrong."""

import json
import os
import zipfile

import numpy as np
import pytest

import unpooled as up
from unpooled.runs import runfile


@pytest.fixture(scope="module")
def run():
    shape = {"n_clients": 4, "n_rows": 20, "n_features": 6, "n_classes": 3, "sparsity": 3}
    data = up.datasets.sparse_classification(seed=0, **shape)
    problem = up.Problem(up.Softmax(), up.L1(0.01), intercept=True)
    return up.simulate(
        up.Scaffold(step=0.05, local_steps=2), problem, data,
        rounds=6, cohort=2, batch_size=5, seed=3, metrics={"accuracy": up.metrics.accuracy(data)},
    )  # fmt: skip


def test_what_is_saved_is_loaded(run, tmp_path):
    path = run.save(tmp_path / "a.run")
    back = up.load(path)
    assert np.array_equal(back.w, run.w)
    assert np.array_equal(back.intercept, run.intercept)
    assert back.intercept.shape == (3,)
    assert np.array_equal(back.memory, run.memory)
    assert back.state.round == 6
    for name in run.state.arrays:
        assert np.array_equal(back.state.arrays[name], run.state.arrays[name])
    assert back.history.keys() == run.history.keys() == {"round", "objective", "accuracy"}
    for name in run.history:
        assert np.array_equal(back.history[name], run.history[name])
        assert back.history[name].dtype == run.history[name].dtype
    for name in ("status", "message", "ledger", "settings", "notes", "versions", "seed", "seconds"):
        assert getattr(back, name) == getattr(run, name), name
    assert repr(back) == repr(run)
    assert back.versions["unpooled"] == up.__version__


def test_a_scalar_intercept_and_infinite_settings_survive(tmp_path):
    data = up.datasets.sparse_regression(seed=0, n_clients=2, n_rows=10, n_features=4, sparsity=2)
    problem = up.Problem(up.Squared(), up.L1(0.1), intercept=True)
    algorithm = up.MCFedDA(mu=0.1, gamma=9.0, stages=[(2, 0.2, np.inf)])
    run = up.simulate(algorithm, problem, data)
    back = up.load(run.save(tmp_path / "s.run"))
    assert isinstance(back.intercept, float)
    assert back.intercept == run.intercept
    assert back.settings == run.settings
    assert back.settings["algorithm"]["stages"] == [[2, 0.2, np.inf]]


def test_saving_replaces_the_old_file_at_once(run, tmp_path, monkeypatch):
    path = tmp_path / "a.run"
    run.save(path)
    before = path.read_bytes()

    def full_disk(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full_disk)
    with pytest.raises(OSError, match="No space left"):
        run.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.run"]


def test_no_flipped_bit_goes_unnoticed(run, tmp_path):
    """Every bit of the archive's own tables, and some of what is in it."""
    path = run.save(tmp_path / "a.run")
    content = path.read_bytes()
    tables = content.index(b"PK\x01\x02")  # the names and places of what is in it, at its end
    rng = np.random.default_rng(0)
    flips = [*range(8 * tables, 8 * len(content)), *rng.integers(0, 8 * tables, 500).tolist()]
    for flip in flips:
        byte, bit = divmod(flip, 8)
        path.write_bytes(content[:byte] + bytes([content[byte] ^ 1 << bit]) + content[byte + 1 :])
        try:
            back = up.load(path)
        except ValueError:
            continue
        assert np.array_equal(back.w, run.w)
        assert back.state.arrays.keys() == run.state.arrays.keys()
        assert back.history.keys() == run.history.keys()
        assert all(
            np.array_equal(back.state.arrays[name], run.state.arrays[name]) for name in run.state.arrays
        )
        assert (back.status, back.settings, back.ledger) == (run.status, run.settings, run.ledger)


def test_a_file_that_does_not_name_its_arrays_is_read(run, tmp_path):
    """As the first ones were."""
    path, old = run.save(tmp_path / "a.run"), tmp_path / "old.run"
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(old, "w") as other:
        for name in archive.namelist():
            content = archive.read(name)
            if name == "run.json":
                content = json.dumps({k: v for k, v in json.loads(content).items() if k != "arrays"}).encode()
            other.writestr(name, content)
    assert np.array_equal(up.load(old).w, run.w)


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "text", "foreign zip", "not json"])
def test_a_damaged_file_is_refused(run, tmp_path, damage):
    path = run.save(tmp_path / "a.run")
    content = path.read_bytes()
    if damage == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        middle = content.index(b"state/w.npy") + 200
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "text":
        path.write_text("round,objective\n1,2\n")
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("run.json" if damage == "not json" else "else.json", "{")
    with pytest.raises(ValueError, match=r"a\.run is not a run saved by unpooled, or it is damaged"):
        up.load(path)


def test_a_newer_format_is_refused(run, tmp_path, monkeypatch):
    monkeypatch.setattr(runfile, "FORMAT", 99)
    path = run.save(tmp_path / "a.run")
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"was written by unpooled .* which this version cannot read"):
        up.load(path)
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("run.json"))["format"] == 99


def test_where_nothing_can_be_written(run, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*none'"):
        run.save(tmp_path / "none" / "a.run")
    with pytest.raises(IsADirectoryError, match=rf"Is a directory: '{tmp_path}'"):
        run.save(tmp_path)


def test_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no run at"):
        up.load(tmp_path / "none.run")
