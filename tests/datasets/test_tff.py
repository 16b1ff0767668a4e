import sys

import h5py
import numpy as np
import pytest

from unpooled.data.datasets import load_tff

RNG = np.random.default_rng(0)
TRAIN = {name: (RNG.random((len(y), 28, 28)).astype("f4"), y) for name, y in {
    "f2_00": [3, 61, 9], "f1_07": [0, 5], "f0_33": [40, 11]}.items()}  # fmt: skip
TEST = {name: (RNG.random((len(y), 28, 28)).astype("f4"), y) for name, y in {
    "f2_00": [8, 35], "f1_07": [1], "f9_99": [4]}.items()}  # fmt: skip


def write(path, clients, pixels="f4", column=False):
    """A file as TFF wrote them."""
    with h5py.File(path, "w") as file:
        for name, (x, y) in clients.items():
            group = file.create_group(f"examples/{name}")
            group["pixels"] = np.asarray(x, dtype=pixels)
            group["label"] = np.array(y, dtype="i4").reshape((-1, 1) if column else -1)
    return path


@pytest.fixture
def files(tmp_path):
    return write(tmp_path / "train.h5", TRAIN), write(tmp_path / "test.h5", TEST)


def assert_holds(data, clients):
    assert data.ids == tuple(sorted(clients))
    assert (data.X.dtype, data.y.dtype) == (np.float32, np.float32)
    for client in data:
        x, y = clients[client.id]
        np.testing.assert_array_equal(client.X, np.reshape(x, (-1, 784)))
        np.testing.assert_array_equal(client.y, y)


def test_every_client_exactly(files):
    train, test = load_tff(*files)
    assert_holds(train, TRAIN)
    assert_holds(test, {name: TEST[name] for name in ("f1_07", "f2_00")})


def test_double_precision_and_labels_in_a_column(tmp_path):
    train = write(tmp_path / "a.h5", TRAIN, pixels="f8", column=True)
    assert_holds(load_tff(str(train), str(write(tmp_path / "b.h5", TEST)))[0], TRAIN)


def test_labels_small_clients_and_chosen_ones(files):
    train, test = load_tff(*files, classes=10, min_train=2)
    x, y = TRAIN["f2_00"]
    assert_holds(train, {"f1_07": TRAIN["f1_07"], "f2_00": (x[[0, 2]], [3, 9])})
    assert_holds(test, {"f1_07": TEST["f1_07"], "f2_00": (TEST["f2_00"][0][:1], [8])})
    train, test = load_tff(*files, clients=["f2_00"])
    assert_holds(train, {"f2_00": (x, y)})
    assert_holds(test, {"f2_00": TEST["f2_00"]})


def test_missing_and_broken_files(files, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none\.h5"):
        load_tff(files[0], tmp_path / "none.h5")
    text = tmp_path / "text.h5"
    text.write_text("not HDF5")
    with pytest.raises(ValueError, match=r"text\.h5 is not an HDF5 file"):
        load_tff(text, files[1])
    other = tmp_path / "other.h5"
    with h5py.File(other, "w") as file:
        file["numbers"] = [1, 2]
    with pytest.raises(ValueError, match=r"other\.h5 has no group 'examples'"):
        load_tff(other, files[1])


def test_a_broken_client_is_named(files, tmp_path):
    with h5py.File(files[0], "a") as file:
        del file["examples/f1_07/pixels"]
    with pytest.raises(ValueError, match=r"train\.h5, client 'f1_07' has no 'pixels'"):
        load_tff(*files)
    for x, message in {
        (2, 28, 27): r"2 labels need images of shape \(2, 784\), got \(2, 756\)",
        (3, 28, 28): r"2 labels need images of shape \(2, 784\), got \(3, 784\)",
    }.items():
        wrong = write(tmp_path / "wrong.h5", {"a": (np.zeros(x), [1, 2])})
        with pytest.raises(ValueError, match=rf"wrong\.h5, client 'a': {message}"):
            load_tff(wrong, files[1])
    wrong = write(tmp_path / "wrong.h5", {"a": (np.full((1, 28, 28), 255), [1])})
    with pytest.raises(ValueError, match=r"client 'a': pixels must lie in \[0, 1\], got 255.0"):
        load_tff(wrong, files[1])


def test_without_h5py(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"pip install 'unpooled\[data\]'"):
        load_tff(*files)
