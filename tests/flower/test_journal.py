"""What was answered before a coordinator was killed is not asked again, and the end is the same."""

import errno
import os

import numpy as np
import pytest

import unpooled as up
from tests.flower.apps import DATA, same
from unpooled.engines.flower import journal
from unpooled.engines.remote.client_server import ClientServer
from unpooled.engines.remote.messages import Direct
from unpooled.runs.flower.server import fit

PROBLEM = up.Problem(up.Logistic(), up.L1(0.01), intercept=True)
SICK = up.FederatedData.from_clients({c.id: (c.X, (c.y > 0).astype(float)) for c in DATA})


class Killed(BaseException):
    """The coordinator's end, as no handler of errors sees it."""


class Counting(Direct):
    """Desks in this process that count what they are asked, and a coordinator that dies at some count."""

    def __init__(self, data=SICK, last=None):
        super().__init__(
            {c.id: ClientServer(up.FederatedData.from_clients({c.id: (c.X, c.y)})) for c in data}
        )
        self.kinds, self.last = [], last

    def exchange(self, requests):
        if len(self.kinds) == self.last:
            raise Killed
        self.kinds.append(next(iter(requests.values())).kind)
        return super().exchange(requests)


def solved(data):
    return up.solve(PROBLEM, data, min_rows=0)


@pytest.fixture(scope="module")
def whole():
    transport = Counting()
    return fit(transport, solved), len(transport.kinds)


@pytest.mark.parametrize("last", [1, 2, 4])
def test_a_killed_coordinator_goes_on_to_the_same_bits(whole, last, tmp_path):
    here, exchanges = whole
    with pytest.raises(Killed):
        fit(Counting(last=last), solved, tmp_path)
    resumed = Counting()
    again = fit(resumed, solved, tmp_path)
    assert same((again.w, again.intercept), (here.w, here.intercept))
    assert again.rounds == here.rounds
    assert len(resumed.kinds) == exchanges - last + 1  # what the rows are is asked anew


def test_other_rows_are_noticed(tmp_path):
    fit(Counting(), solved, tmp_path)
    other = up.FederatedData.from_clients({c.id: (c.X + 1.0, c.y) for c in SICK})
    with pytest.raises(ValueError, match="the rows of site 'north' are not those of the run"):
        fit(Counting(other), solved, tmp_path)


def test_a_damaged_file_is_asked_for_again(whole, tmp_path, caplog):
    fit(Counting(), solved, tmp_path)
    for file in (tmp_path / "journal").iterdir():
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 0xFF
        file.write_bytes(content)
    again = fit(Counting(), solved, tmp_path)
    assert same((again.w,), (whole[0].w,))
    assert "is damaged" in caplog.text


def test_a_full_disk_does_not_stop_the_run(whole, tmp_path, monkeypatch, caplog):
    def full(number):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    there = fit(Counting(), solved, tmp_path)
    assert same((there.w,), (whole[0].w,))
    assert "No space left on device" in caplog.text
    assert list((tmp_path / "journal").iterdir()) == []


def test_replies_are_read_as_they_were(tmp_path):
    transport = journal.Journal(Counting(), tmp_path)
    first = fit(transport, solved)
    assert transport.read == 0
    before = journal.Journal(Counting(), tmp_path)
    again = fit(before, solved)
    assert before.read > 0
    np.testing.assert_array_equal(first.w, again.w)
