import json
import sys
import tracemalloc

import numpy as np
import pytest

from unpooled.data.datasets import load_leaf


def images(seed, labels):
    """Pixels that LEAF would write: 255ths on a background of 1.0."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (len(labels), 784)) / 255
    x[:, :100] = 1.0
    return x, np.array(labels)


def entry(client):
    return {"x": client[0].tolist(), "y": client[1].tolist()}


def write(file, clients, empty=()):
    """One of LEAF's files; ``empty`` are the writers it could not split: with an entry, but not listed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    data = {name: entry(client) for name, client in clients.items()} | {e: {"x": [], "y": []} for e in empty}
    sizes = [len(client[1]) for client in clients.values()]
    file.write_text(json.dumps({"users": list(clients), "num_samples": sizes, "user_data": data}))
    return file


TRAIN = {
    "f2_00": images(1, [3, 9, 10, 61]),
    "f1_07": images(2, [0, 5]),
    "f0_33": images(3, [40, 11, 36]),
    "f3_12": images(4, [7]),
}
TEST = {
    "f2_00": images(5, [8, 35]),
    "f1_07": images(6, [1]),
    "f0_33": images(7, [2]),
    "f9_99": images(8, [4]),  # no training data
}


@pytest.fixture
def folder(tmp_path):
    for split, clients in {"train": TRAIN, "test": TEST}.items():
        for part, names in enumerate((["f2_00", "f1_07"], ["f3_12", "f9_99"], ["f0_33"])):
            held = {name: clients[name] for name in names if name in clients}
            file = tmp_path / split / f"all_data_{part}_niid_0_keep_0_{split}_9.json"
            write(file, held, empty=["f4_04"] if part == 1 else [])
    (tmp_path / "train" / "notes.json").write_text("not data")
    return tmp_path


def assert_holds(data, clients):
    assert data.ids == tuple(sorted(clients))
    assert (data.X.dtype, data.y.dtype, data.X.shape[1]) == (np.float32, np.float32, 784)
    for client in data:
        x, y = clients[client.id]
        np.testing.assert_array_equal(client.X, x.astype(np.float32))
        np.testing.assert_array_equal(client.y, y)


def test_every_client_of_every_part_exactly(folder):
    train, test = load_leaf(folder)
    assert_holds(train, TRAIN)
    assert_holds(test, {name: TEST[name] for name in ("f0_33", "f1_07", "f2_00")})
    assert (train.X[:, :100] == 1).all()  # the background stays white
    np.testing.assert_allclose(train.weights, [0.3, 0.2, 0.4, 0.1])


def test_labels_and_small_clients_are_left_out(folder):
    train, test = load_leaf(str(folder), classes=10, min_train=2)
    assert_holds(train, {name: (TRAIN[name][0][:2], TRAIN[name][1][:2]) for name in ("f1_07", "f2_00")})
    assert_holds(test, {"f1_07": TEST["f1_07"], "f2_00": (TEST["f2_00"][0][:1], [8])})
    assert (train.X.flags.c_contiguous, train.X.base, train.y.base) == (True, None, None)


def test_rows_between_others_are_left_out(tmp_path):
    x, y = images(0, [50, 1, 60, 2, 10, 3])
    for split in ("train", "test"):
        write(tmp_path / split / "all_data_0.json", {"a": (x, y), "b": (x[::-1], y[::-1])})
    for data in load_leaf(tmp_path, classes=10):
        assert_holds(data, {"a": (x[1::2], [1, 2, 3]), "b": (x[::-2], [3, 2, 1])})


def test_chosen_clients(folder):
    train, test = load_leaf(folder, clients=["f3_12", "f2_00"])
    assert_holds(train, {name: TRAIN[name] for name in ("f2_00", "f3_12")})
    assert_holds(test, {"f2_00": TEST["f2_00"]})
    with pytest.raises(
        ValueError, match=r"there is no client 'f3_13' among the 4 to train on; closest: 'f3_12'"
    ):
        load_leaf(folder, clients=["f2_00", "f3_13"])


def test_memory_is_for_the_result_and_one_client(tmp_path):
    rng = np.random.default_rng(0)
    clients = {f"w{k:02d}": (rng.random((20, 784)), np.arange(20)) for k in range(24)}
    file = write(tmp_path / "train" / "all_data_0.json", clients)
    write(tmp_path / "test" / "all_data_0.json", {"w00": images(0, [1])})
    result = 24 * 20 * 784 * 4
    one = 20 * 784 * (24 + 8)  # Python floats and the pointers to them

    def peak(**options):
        tracemalloc.start()
        train, _ = load_leaf(tmp_path, **options)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return train, used

    peak(clients=["w00"])  # so that imports are not counted
    train, used = peak()
    np.testing.assert_array_equal(train.client("w23").X, clients["w23"][0].astype(np.float32))
    assert used < result + 4 * one < file.stat().st_size / 2
    assert peak(clients=["w05", "w00"])[1] < 5 * one < file.stat().st_size / 3


@pytest.mark.parametrize("split", ["train", "test"])
def test_missing_folders(folder, split):
    for file in (folder / split).glob("all_data*"):
        file.unlink()
    with pytest.raises(FileNotFoundError, match=rf"no files all_data_\*\.json in .*{split}$"):
        load_leaf(folder)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_leaf(folder / "nowhere")


@pytest.mark.parametrize("head", [10, 3000, -1])
def test_a_file_cut_short_is_named(folder, head):
    file = sorted((folder / "train").glob("all_data_2*"))[0]
    file.write_bytes(file.read_bytes()[:head])
    with pytest.raises(ValueError, match=r"all_data_2_niid.*json is broken or cut short: parse error"):
        load_leaf(folder)


def broken(change):
    data = {"users": ["a"], "num_samples": [2], "user_data": {"a": entry(images(0, [1, 2]))}}
    change(data, data["user_data"]["a"])
    return data


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, a: d.pop("users"), 'json has no list "users": it is not one of LEAF'),
        (lambda d, a: d.update(num_samples=[2, 3]), "num_samples must hold 1 integers"),
        (lambda d, a: d.update(num_samples=[3]), "client 'a' is listed with 3 train images but has 2"),
        (lambda d, a: d.update(user_data={}), "client 'a' is listed with 2 train images but has none"),
        (lambda d, a: a.pop("y"), r"user 'a': expected \{\"x\""),
        (lambda d, a: a.update(y=[1]), r"user 'a': 1 labels need images of shape \(1, 784\), got \(2, 784\)"),
        (lambda d, a: a["x"][1].pop(), "user 'a': the images are not rows of 784 numbers"),
        (lambda d, a: a["x"][1].__setitem__(3, "ink"), "user 'a': the images are not rows of 784 numbers"),
        (lambda d, a: a["x"][1].__setitem__(3, None), r"user 'a': pixels must lie in \[0, 1\], got nan"),
        (
            lambda d, a: a["x"][1].__setitem__(3, 255),
            r"user 'a': pixels must lie in \[0, 1\], got 0.0.* 255.0",
        ),
        (lambda d, a: a.update(y=[1, 62]), "user 'a': labels must be whole numbers from 0 to 61"),
        (lambda d, a: a.update(y=["one", "two"]), "user 'a': labels must be whole numbers"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, change, message):
    write(tmp_path / "test" / "all_data_0.json", {"a": images(0, [1])})
    file = tmp_path / "train" / "all_data_0.json"
    file.parent.mkdir()
    file.write_text(json.dumps(broken(change)))
    with pytest.raises(ValueError, match=message):
        load_leaf(tmp_path)


def test_files_of_two_runs_are_refused(folder):
    write(folder / "test" / "all_data_0_niid_05_keep_0_test_9.json", {"f1_07": images(6, [1])})
    with pytest.raises(
        ValueError, match=r"user 'f1_07' is in two files of .*test.*mix the files of two runs"
    ):
        load_leaf(folder)


def test_a_split_by_user_is_refused(tmp_path):
    write(tmp_path / "train" / "all_data_0.json", {"a": images(0, [1])})
    write(tmp_path / "test" / "all_data_0.json", {"b": images(0, [1])})
    with pytest.raises(ValueError, match=r"no client has both training and test images: .*-t sample"):
        load_leaf(tmp_path)


def test_nothing_left_and_bad_arguments(folder):
    with pytest.raises(ValueError, match="none of the 4 clients has 5 train images with a label below 62"):
        load_leaf(folder, min_train=5)
    with pytest.raises(ValueError, match="none of the 1 clients has 1 test image with a label below 1"):
        load_leaf(folder, clients=["f0_33", "f1_07"], classes=1)
    with pytest.raises(ValueError, match="classes must lie between 1 and 62, got 63"):
        load_leaf(folder, classes=63)
    with pytest.raises(ValueError, match="min_train must be at least 1, got 0"):
        load_leaf(folder, min_train=0)


def test_without_ijson(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "ijson", None)
    with pytest.raises(ImportError, match=r"pip install 'unpooled\[data\]'"):
        load_leaf(folder)
