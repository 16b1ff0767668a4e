"""Files that a study and the compiler write: nobody else's links are followed, nobody else reads them."""

import os
import stat
import tempfile

import numpy as np
import pytest

from tests.study.sites import study
from unpooled._files import whole_file
from unpooled.engines.remote.messages import Reply, Request
from unpooled.kernels.compile import _cache_directory
from unpooled.study.audit import Audit


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_hands():
    """A umask with which everybody could read and write new files."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_an_audit_file_is_its_owners(tmp_path, open_hands):
    audit = Audit(tmp_path / "bern.jsonl", study().name, "bern", values=True)
    audit.write(1, Request("ask", {}, {}), Reply({}, {"gram": np.ones(3)}))
    assert mode(tmp_path / "bern.jsonl") == 0o600
    (tmp_path / "old.jsonl").write_text("{}\n")
    assert mode(tmp_path / "old.jsonl") == 0o666
    Audit(tmp_path / "old.jsonl", study().name, "bern").write(1, Request("ask", {}, {}), Reply({}, {}))
    assert mode(tmp_path / "old.jsonl") == 0o600
    assert len((tmp_path / "old.jsonl").read_text("utf-8").splitlines()) == 2


def test_a_link_in_place_of_a_temporary_file_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".run.{os.getpid()}").symlink_to(victim)
    with whole_file(tmp_path / "run") as file:
        file.write(b"mine")
    assert victim.read_text() == "precious"
    assert (tmp_path / "run").read_bytes() == b"mine"


@pytest.mark.parametrize("planted", ["link", "writable", "file", None])
def test_compiled_code_is_kept_in_no_folder_of_others(tmp_path, monkeypatch, planted):
    """Where the home cannot be written, a folder among everybody's is used, if it is this user's own."""
    monkeypatch.delenv("UNPOOLED_CACHE_DIR", raising=False)
    (tmp_path / "no home").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    theirs, spare = tmp_path / "theirs", tmp_path / f"unpooled-{os.getuid()}"
    theirs.mkdir()
    if planted == "link":
        spare.symlink_to(theirs)
    elif planted == "writable":
        spare.mkdir()
        spare.chmod(0o777)
    elif planted == "file":
        spare.write_text("")
    found = _cache_directory.__wrapped__("digest")
    if planted is not None:
        assert found is None
        assert not list(theirs.iterdir())
    else:
        assert found.is_relative_to(spare)
        assert mode(spare) == 0o700
