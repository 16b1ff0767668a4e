"""The socket between Flower's processes and a site's desk."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pytest

from unpooled.remote.messages import Reply, Request
from unpooled.study import link

HOLD = """
import sys, time
from unpooled.study.link import DeskServer
print(DeskServer(None).folder, flush=True)
time.sleep(600)
"""


class Echo:
    def handle(self, request):
        return Reply({"kind": request.kind, **request.spec}, request.arrays)


class Slow(Echo):
    def __init__(self):
        self.asked, self.done = threading.Event(), threading.Event()

    def handle(self, request):
        self.asked.set()
        self.done.wait(60.0)
        return super().handle(request)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def ask(server):
    request = Request("train", {"round": 3}, {"h": np.arange(4.0)})
    reply = link.DeskLink(server.folder).handle(request)
    assert reply.spec == {"kind": "train", "round": 3}
    np.testing.assert_array_equal(reply.arrays["h"], request.arrays["h"])


def test_strangers_do_not_stop_the_desk():
    with link.DeskServer(Echo()) as server:
        for farewell in (b"", b"no key"):
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(str(server.folder / link.SOCKET))
                stranger.sendall(farewell)
        ask(server)
    server.thread.join(5.0)
    assert not server.thread.is_alive()
    assert not server.folder.exists()


def test_what_a_killed_site_left_behind_is_deleted_by_the_next_one(tmp_path):
    other = tmp_path / "unpooled-of-something-else"
    other.mkdir()
    with link.DeskServer(Echo()) as alive:
        site = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
        left = tmp_path / site.stdout.readline().strip()
        site.send_signal(signal.SIGKILL)
        site.wait()
        site.stdout.close()
        assert (left / link.KEY).exists()
        long_ago = time.time() - 2 * link.YOUNG
        for folder in (left, alive.folder, other):
            os.utime(folder, (long_ago, long_ago))
        with link.DeskServer(Echo()) as server:
            assert not left.exists()
            assert other.exists()
            ask(server)
            ask(alive)


def test_a_folder_that_may_just_be_made_is_left_alone(tmp_path):
    young = tmp_path / "unpooled-young"
    young.mkdir()
    with socket.socket(socket.AF_UNIX) as bound:  # and does not listen yet
        bound.bind(str(young / link.SOCKET))
        link.DeskServer(Echo()).close()
        assert young.exists()


def waiting_callers(server, count):
    """So many that are connected, or want to be, and have not been heard."""
    callers = [socket.socket(socket.AF_UNIX) for _ in range(count)]
    for caller in callers:
        caller.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            caller.connect(str(server.folder / link.SOCKET))
    return callers


def test_a_busy_desk_with_a_full_queue_is_closed_and_holds_up_no_other_site(monkeypatch):
    desk = Slow()
    server = link.DeskServer(desk)
    first = threading.Thread(target=lambda: ask(server))
    first.start()
    assert desk.asked.wait(60.0)
    callers = waiting_callers(server, 5)
    long_ago = time.time() - 2 * link.YOUNG
    os.utime(server.folder, (long_ago, long_ago))
    link.sweep()  # as another site does when it starts
    assert server.folder.exists()
    desk.done.set()
    first.join(60.0)
    closing = threading.Thread(target=server.close)
    closing.start()
    closing.join(60.0)
    assert not closing.is_alive()
    assert not server.folder.exists()
    for caller in callers:
        caller.close()


def test_a_desk_whose_folder_was_cleared_away_is_closed():
    server = link.DeskServer(Echo())
    shutil.rmtree(server.folder)
    server.close()
