"""Files of columns into a memory-mapped cache: the same data as in memory, converted once; clear errors."""

import json
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from tests.clients import pooled
from unpooled.data import parquet
from unpooled.data.column_files import SUFFIXES
from unpooled.data.federated import FederatedData


def table(seed=0):
    X, y, clients = pooled(seed, p=3)
    frame = pd.DataFrame(X, columns=["age", "dose", "size"])
    return frame.assign(out=y, site=clients, s=np.linspace(0.5, 2, len(y)))


def save(table, path, rows=1 << 16):
    """In the format that the suffix stands for; Feather is compressed, Arrow is not."""
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows)
    else:
        compression = "lz4" if path.suffix == ".feather" else "uncompressed"
        feather.write_feather(table, path, compression, chunksize=rows)


@pytest.fixture(params=SUFFIXES)
def suffix(request):
    return request.param


@pytest.fixture
def folder(tmp_path, suffix):
    """One file for each client."""
    (tmp_path / "data").mkdir()
    for name, part in table().groupby("site"):
        save(pa.Table.from_pandas(part.drop(columns="site")), tmp_path / "data" / f"{name}{suffix}")
    return tmp_path / "data"


def read(source, tmp_path, **options):
    return FederatedData.from_parquet(source, "out", cache=tmp_path / "cache", **options)


def write(path, **columns):
    save(pa.table(columns), path)


def same(data, other):
    assert data.ids == other.ids
    assert data.feature_names == other.feature_names
    assert data.fingerprint() == other.fingerprint()


def is_mapped(X):
    while isinstance(X, np.ndarray) and not isinstance(X, np.memmap):
        X = X.base
    return isinstance(X, np.memmap)


def test_one_file_a_client(folder, tmp_path):
    data = read(folder, tmp_path, sample_weight="s")
    same(data, FederatedData.from_frame(table(), "out", "site", sample_weight="s"))
    assert is_mapped(data.X)
    assert not data.X.flags.owndata
    files = sorted(folder.iterdir(), reverse=True)
    same(data, read(files, tmp_path, sample_weight="s"))


def test_a_column_names_the_client(monkeypatch, tmp_path, suffix):
    monkeypatch.setattr(parquet, "BATCH", 7)  # batches of one or two rows
    frame = table()
    save(pa.Table.from_pandas(frame), tmp_path / f"all{suffix}", rows=3)
    data = read(tmp_path / f"all{suffix}", tmp_path, client="site", features=["size", "age"])
    same(data, FederatedData.from_frame(frame, "out", "site", features=["size", "age"]))
    halves = [tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"]
    for path, part in zip(halves, (frame[:4], frame[4:]), strict=True):
        save(pa.Table.from_pandas(part), path)
    same(data, read(halves, tmp_path, client="site", features=["size", "age"]))


def test_categories_without_rows_are_no_clients(tmp_path, suffix):
    frame = table()
    sites = pd.Categorical(frame.site, categories=["z", "c", "b", "a"])
    save(pa.Table.from_pandas(frame.assign(site=sites)), tmp_path / f"all{suffix}")
    same(
        read(tmp_path / f"all{suffix}", tmp_path, client="site"),
        FederatedData.from_frame(frame, "out", "site"),
    )


def test_precision_follows_the_columns(tmp_path, suffix):
    file, x = tmp_path / f"a{suffix}", np.array([1, 2], "f4")
    write(file, x=x, z=np.array([1.5, 2.5], "f2"), out=[0, 1])
    assert read(file, tmp_path).dtype == np.float32
    write(file, x=x, z=[True, False], out=[0, 1])
    data = read(file, tmp_path)
    assert data.dtype == np.float64
    assert np.array_equal(data.X, [[1, 1], [2, 0]])
    assert read(file, tmp_path, dtype="float32").dtype == np.float32
    with pytest.raises(TypeError, match="dtype must be float32 or float64, got int32"):
        read(file, tmp_path, dtype="int32")


def test_files_are_converted_once_and_again_when_they_change(folder, suffix, tmp_path, monkeypatch):
    first = read(folder, tmp_path)
    convert = parquet._convert
    monkeypatch.setattr(parquet, "_convert", lambda *arguments: pytest.fail("converted again"))
    same(first, read(folder, tmp_path))
    monkeypatch.setattr(parquet, "_convert", convert)
    path, changed = folder / f"b{suffix}", table().query("site == 'b'").drop(columns="site")
    save(pa.Table.from_pandas(changed.assign(dose=changed.dose + 1)), path)
    os.utime(path, ns=(1, 1))
    assert read(folder, tmp_path).fingerprint() != first.fingerprint()


def test_a_conversion_that_fails_leaves_nothing(folder, suffix, tmp_path):
    write(folder / f"d{suffix}", age=[1.0, None], dose=[1.0, 2], size=[1.0, 2], out=[1.0, 2], s=[1.0, 1])
    with pytest.raises(ValueError, match="X must be finite: client 'd', row 1, column 'age' holds nan"):
        read(folder, tmp_path)
    assert list((tmp_path / "cache").iterdir()) == []


def test_values_that_do_not_fit_are_named(folder, suffix, tmp_path):
    write(folder / f"d{suffix}", age=[1e300], dose=[1.0], size=[1.0], out=[1.0], s=[1.0])
    with pytest.raises(ValueError, match="client 'd', row 0, column 'age' holds inf"):
        read(folder, tmp_path, dtype="float32")
    write(folder / f"d{suffix}", age=[1.0], dose=[1.0], size=[1.0], out=[np.nan], s=[1.0])
    with pytest.raises(ValueError, match="y must be finite: client 'd', row 0 holds nan"):
        read(folder, tmp_path)


def test_columns_that_differ_are_named(folder, suffix, tmp_path):
    rest = {"dose": [1.0], "size": [1.0], "s": [1.0]}
    write(folder / f"d{suffix}", age=[1.0], **rest)
    with pytest.raises(
        ValueError, match=rf"d\{suffix} has no column 'out'; it has 'age', 'dose', 'size', 's'"
    ):
        read(folder, tmp_path)
    write(folder / f"d{suffix}", ages=[1.0], out=[1.0], **rest)
    with pytest.raises(
        ValueError,
        match=rf"d\{suffix} has other columns than .*a\{suffix}: it lacks 'age' and also has 'ages'",
    ):
        read(folder, tmp_path)
    with pytest.raises(ValueError, match="than the 2 features asked for: it lacks 'age'"):
        read(folder, tmp_path, features=["dose", "age"])
    write(folder / f"d{suffix}", age=["old"], out=[1.0], **rest)
    with pytest.raises(TypeError, match=rf"d\{suffix}: column 'age' must be numeric, got (large_)?string"):
        read(folder, tmp_path)
    with pytest.raises(ValueError, match="'out' is among the features and has another role"):
        read(folder, tmp_path, features=["out"])
    with pytest.raises(TypeError, match="features must be a list of columns, got the single string 'dose'"):
        read(folder, tmp_path, features="dose")
    with pytest.raises(ValueError, match="the feature 'dose' occurs twice"):
        read(folder, tmp_path, features=["dose", "dose"])
    (folder / f"d{suffix}").unlink()
    write(tmp_path / f"bare{suffix}", out=[1.0])
    with pytest.raises(ValueError, match=rf"bare\{suffix} has no features besides 'out'"):
        read(tmp_path / f"bare{suffix}", tmp_path)


def test_files_that_are_not_there_or_hold_no_columns(folder, suffix, tmp_path):
    (tmp_path / "cache").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no \.parquet, \.arrow or \.feather file in .*cache"):
        read(tmp_path / "cache", tmp_path)
    with pytest.raises(FileNotFoundError, match=rf"there is no file .*gone\{suffix}"):
        read([folder / f"gone{suffix}"], tmp_path)
    with pytest.raises(ValueError, match="no files were given"):
        read([], tmp_path)
    for content in (json.dumps({}), "ARROW1 and no more"):
        (folder / f"d{suffix}").write_text(content)
        with pytest.raises(ValueError, match=rf"d\{suffix} is neither a Parquet nor an Arrow file, or it is"):
            read(folder, tmp_path)


def test_clients_without_rows_or_twice_or_unnamed(folder, suffix, tmp_path):
    write(folder / f"d{suffix}", **dict.fromkeys(["age", "dose", "size", "out", "s"], np.empty(0)))
    with pytest.raises(ValueError, match="client 'd' has no rows"):
        read(folder, tmp_path)
    with pytest.raises(ValueError, match="client id 'a' is given twice: 2 files"):
        read([folder / f"a{suffix}", folder / f"a{suffix}"], tmp_path)
    write(tmp_path / f"all{suffix}", x=[1.0, 2, 3], out=[1.0, 2, 3], site=["p", "q", None])
    with pytest.raises(ValueError, match=rf"all\{suffix}: the client id 'site' is missing at row 2"):
        read(tmp_path / f"all{suffix}", tmp_path, client="site")
