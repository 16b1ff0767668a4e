import json

import h5py
import numpy as np
import pytest

from unpooled.data.datasets import femnist

NAMES = [f"f{k:04d}_{k % 50:02d}" for k in range(40)]


def client(k, n, label):
    """n images of writer k, the digits and letters in turn; a pixel says which image it is."""
    x = np.full((n, 784), 1.0)
    x[:, 0], x[:, 1] = k / 255, np.arange(n) / 255
    return x, [(label + i) % 10 if i % 2 == 0 else 10 + i for i in range(n)]


CLIENTS = {
    split: {name: client(k, (8 + k % 16) if split == "train" else 2, k) for k, name in enumerate(NAMES)}
    for split in ("train", "test")
}


def leaf(folder, n_parts=3, names=NAMES):
    for split, clients in CLIENTS.items():
        (folder / split).mkdir(parents=True)
        for part in range(n_parts):
            own = names[part::n_parts]
            data = {name: {"x": clients[name][0].tolist(), "y": clients[name][1]} for name in own}
            sizes = [len(clients[name][1]) for name in own]
            text = json.dumps({"users": own, "num_samples": sizes, "user_data": data})
            (folder / split / f"all_data_{part}_niid_0_keep_0_{split}_9.json").write_text(text)
    return folder


def tff(folder, stem="fed_emnist", names=NAMES):
    folder.mkdir(exist_ok=True)
    for split, clients in CLIENTS.items():
        with h5py.File(folder / f"{stem}_{split}.h5", "w") as file:
            for name in names:
                x, y = clients[name]
                keep = [i for i, label in enumerate(y) if label < 10 or stem == "fed_emnist"]
                file[f"examples/{name}/pixels"] = x[keep].reshape(-1, 28, 28).astype("f4")
                file[f"examples/{name}/label"] = np.array(y, dtype="i4")[keep]
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return leaf(tmp_path_factory.mktemp("leaf") / "data")


def assert_holds(data, split, names, classes):
    assert data.ids == tuple(sorted(names))
    for held in data:
        x, y = CLIENTS[split][held.id]
        keep = [i for i, label in enumerate(y) if label < classes]
        np.testing.assert_array_equal(held.X, x[keep].astype(np.float32))
        np.testing.assert_array_equal(held.y, np.array(y)[keep])


@pytest.mark.parametrize("classes", [10, 62])
def test_all_clients_with_enough_training_images(folder, classes):
    train, test = femnist(folder, classes=classes, fraction=1.0)
    n_kept = {name: sum(label < classes for label in CLIENTS["train"][name][1]) for name in NAMES}
    enough = [name for name in NAMES if n_kept[name] >= 10]
    assert 0 < len(enough) < 40
    assert_holds(train, "train", enough, classes)
    assert_holds(test, "test", enough, classes)


def test_a_fraction_of_the_clients_with_all_their_images(folder):
    train, test = femnist(folder, classes=62, fraction=0.3, min_train=1)
    assert train.n_clients == 12
    assert_holds(train, "train", train.ids, 62)
    assert_holds(test, "test", train.ids, 62)
    assert femnist(folder, min_train=1)[0].n_clients == 4  # the default is a tenth
    assert femnist(folder, min_train=1, fraction=1e-6)[0].n_clients == 1


def test_the_draw_depends_on_the_seed_and_the_names_alone(folder, tmp_path):
    train, test = femnist(folder, fraction=0.3, min_train=1)
    other = leaf(tmp_path / "other", n_parts=1, names=NAMES[::-1])
    for again in (femnist(other, fraction=0.3, min_train=1), femnist(folder, fraction=0.3, min_train=1)):
        assert [data.fingerprint() for data in again] == [train.fingerprint(), test.fingerprint()]
    drawn = {femnist(folder, fraction=0.3, min_train=1, seed=seed)[0].ids for seed in range(5)}
    assert len(drawn) == 5
    assert train.ids in drawn


def test_draws_are_nested(folder):
    ids = [set(femnist(folder, fraction=f, min_train=1, classes=62)[0].ids) for f in (0.1, 0.3, 0.6)]
    assert ids[0] < ids[1] < ids[2]
    digits = set(femnist(folder, fraction=0.6, classes=10, min_train=10)[0].ids)
    assert digits < ids[2]


def test_every_client_is_as_likely_as_any_other():
    from unpooled.data.datasets.femnist import _draw

    drawn = np.zeros(40)
    for seed in range(2000):
        drawn[[NAMES.index(name) for name in _draw(NAMES, 0.25, seed)]] += 1
    assert drawn.sum() == 2000 * 10
    np.testing.assert_allclose(drawn / 2000, 0.25, atol=4.5 * np.sqrt(0.25 * 0.75 / 2000))


@pytest.mark.parametrize("classes", [10, 62])
def test_tff_gives_the_same_data_as_leaf(folder, tmp_path, classes):
    expected = femnist(folder, classes=classes, fraction=0.5, min_train=6)
    found = femnist(tff(tmp_path / "tff"), classes=classes, fraction=0.5, min_train=6)
    assert [data.fingerprint() for data in found] == [data.fingerprint() for data in expected]


def test_digits_only_files_serve_ten_classes_only(folder, tmp_path):
    path = tff(tmp_path / "tff", "fed_emnist_digitsonly")
    expected = femnist(folder, fraction=0.5, min_train=6)
    assert [a.fingerprint() for a in femnist(path, fraction=0.5, min_train=6)] == [
        b.fingerprint() for b in expected
    ]
    with pytest.raises(
        FileNotFoundError, match=r"of 62 classes, only fed_emnist_digitsonly_test\.h5, fed_emn"
    ):
        femnist(path, classes=62)


def test_leaf_comes_before_tff(tmp_path):
    path = tff(leaf(tmp_path / "both", names=NAMES[:20]), names=NAMES[20:])
    assert set(femnist(path, fraction=1.0, min_train=1)[0].ids) == set(NAMES[:20])


def test_an_error_says_where_the_data_is_to_be_had(tmp_path):
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(FileNotFoundError) as error:
            femnist(path)
        for text in (
            str(path),
            "https://leaf.cmu.edu",
            "https://github.com/TalwalkarLab/leaf",
            "./preprocess.sh -s niid --sf 1.0 -k 0 -t sample",
            "train/all_data_0",
            "tff.simulation.datasets.emnist.load_data",
            "fed_emnist_train.h5",
        ):
            assert text in str(error.value)


@pytest.mark.parametrize(("there", "missing"), [("train", "test"), ("test", "train")])
def test_half_of_leaf(tmp_path, there, missing):
    (tmp_path / there).mkdir()
    (tmp_path / there / "all_data_0.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match=rf"has {there}/all_data_\*\.json but no {missing}/all_data"):
        femnist(tmp_path)


def test_bad_arguments(folder):
    for options, message in (
        ({"classes": 47}, "classes must be 10 or 62, got 47"),
        ({"fraction": 0.0}, "fraction must lie above 0 and not above 1, got 0.0"),
        ({"fraction": 1.5}, "got 1.5"),
        ({"fraction": float("nan")}, "got nan"),
        ({"min_train": 0}, "min_train must be at least 1"),
        ({"min_train": 1000}, "none of the 4 clients has 1000 train images with a label below 10"),
    ):
        with pytest.raises(ValueError, match=message):
            femnist(folder, **options)
