import numpy as np
import pytest

from unpooled.data.datasets import mnist_by_writer

RNG = np.random.default_rng(0)
N = 60
ARRAYS = {
    "X": RNG.integers(0, 256, (N, 784), dtype=np.uint8),
    "y": RNG.integers(0, 10, N, dtype=np.uint8),
    "writer": np.repeat(np.array([2599, 7, 12, 0, 300, 41], dtype=np.int16), 10)[RNG.permutation(N)],
    "hsf": np.zeros(N, np.uint8),
}
ARRAYS["mnist_test"] = np.isin(ARRAYS["writer"], [0, 7])
ARRAYS["part367"] = np.where(np.isin(ARRAYS["writer"], [12, 300, 2599]), np.arange(N) % 4 == 0, -1).astype(
    np.int8
)


@pytest.fixture
def path(tmp_path):
    np.savez_compressed(tmp_path / "mnist_by_writer.npz", **ARRAYS)
    return tmp_path


def assert_holds(data, rows):
    writer = ARRAYS["writer"]
    assert data.ids == tuple(np.unique(writer[rows]).tolist())
    assert (data.X.dtype, data.y.dtype) == (np.float32, np.float32)
    assert data.n_rows == rows.sum()
    for client in data:
        own = rows & (writer == client.id)
        np.testing.assert_array_equal(client.X, (ARRAYS["X"][own] / 255).astype(np.float32))
        np.testing.assert_array_equal(client.y, ARRAYS["y"][own])


def test_the_papers_size(path):
    train, test = mnist_by_writer(path)
    assert_holds(train, ARRAYS["part367"] == 0)
    assert_holds(test, ARRAYS["part367"] == 1)
    assert train.ids == test.ids == (12, 300, 2599)


def test_all_of_mnist(path):
    train, test = mnist_by_writer(str(path / "mnist_by_writer.npz"), part="all")
    assert_holds(train, ~ARRAYS["mnist_test"])
    assert_holds(test, ARRAYS["mnist_test"])
    assert (train.ids, test.ids) == ((12, 41, 300, 2599), (0, 7))


def test_missing_and_broken_files(tmp_path):
    for path in (tmp_path, tmp_path / "mnist.npz"):
        with pytest.raises(
            FileNotFoundError, match=r"there is no file .*\.npz: give the path of mnist_by_writer"
        ):
            mnist_by_writer(path)
    file = tmp_path / "mnist_by_writer.npz"
    np.savez(file, **ARRAYS)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(ValueError, match="is not an npz file, or is broken"):
        mnist_by_writer(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"writer": None, "part367": None}, "has no array writer, part367; it has X, y, hsf, mnist_test"),
        ({"X": ARRAYS["X"] / 255}, r"X in .* must be uint8 of shape \(n, 784\), got float64"),
        ({"X": ARRAYS["X"][:, :64]}, r"got uint8 of shape \(60, 64\)"),
        ({"y": ARRAYS["y"][:9]}, r"y in .* must hold 60 whole numbers, got uint8 of shape \(9,\)"),
        ({"writer": ARRAYS["writer"] + 0.5}, "writer in .* must hold 60 whole numbers, got float"),
        ({"part367": np.zeros(N, np.int8)}, "part367 marks 60 rows as train and 0 as test"),
    ],
)
def test_what_is_wrong_with_the_arrays(tmp_path, change, message):
    arrays = {name: array for name, array in (ARRAYS | change).items() if array is not None}
    np.savez(tmp_path / "mnist_by_writer.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        mnist_by_writer(tmp_path)


def test_bad_part(path):
    with pytest.raises(ValueError, match='part must be "paper" or "all", got \'test\''):
        mnist_by_writer(path, part="test")
