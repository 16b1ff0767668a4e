"""The sites' files, written once for a module."""

import pytest

from tests.study.sites import tables
from unpooled.study import table as tables_of


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Every site's file, two in CSV and two in Parquet; and another set with missing values."""
    folder = tmp_path_factory.mktemp("tables")
    for name, missing in (("whole", False), ("holes", True)):
        for k, (site, frame) in enumerate(tables(missing=missing).items()):
            path = folder / f"{name}-{site}"
            if k % 2:
                frame.to_csv(f"{path}.csv", index=False)
            else:
                frame.to_parquet(f"{path}.parquet")
    return {
        name: {path.stem.split("-")[1]: tables_of.read(path) for path in sorted(folder.glob(f"{name}-*"))}
        for name in ("whole", "holes")
    }
