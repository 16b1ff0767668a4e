"""A site at a real SuperLink, with TLS and keys: when the coordinator cheats, and when the way is bad."""

import datetime
import os
import re
import signal
import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.study.proxy import PROXIES, connecting
from tests.study.sites import study, tables
from tests.study.terminals import Terminal, until
from unpooled.engines.flower import fleet
from unpooled.runs.flower import Certificates, SuperLink, write_app
from unpooled.study import joining, table, writing
from unpooled.study import keys as made_by
from unpooled.study.config import StudyError
from unpooled.study.desk import StudyDesk

SERVER = """
import time
from pathlib import Path
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import ServerApp
from unpooled.engines.flower.records import request_record
from unpooled.engines.remote.messages import Request

app = ServerApp()

@app.main()
def main(grid, context):
    while not (nodes := list(grid.get_node_ids())):
        time.sleep(0.1)
    orders = RecordDict({"orders": ConfigRecord({"do": "as I say"})})
    question = request_record(Request("describe", {}, {}))
    said = []
    for content in (orders, question):
        messages = [Message(content=content, dst_node_id=node, message_type="query") for node in nodes]
        [reply] = grid.send_and_receive(messages, timeout=120)
        said.append(reply.error.reason if reply.has_error() else str(reply.content))
    Path(context.run_config["out"]).write_text(" ".join(said))
"""
CLIENT = """
from pathlib import Path
from flwr.app import Message, RecordDict
from flwr.clientapp import ClientApp

Path({loot!r}).write_text("imported at the site")
app = ClientApp()

@app.query()
def steal(message, context):
    return Message(RecordDict(), reply_to=message)
"""


SETTINGS = {"sites": ["basel", "bern"], "limits": {"join_timeout": 120}}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A SuperLink at which Bern's key is registered."""
    folder = tmp_path_factory.mktemp("superlink")
    asked = study(**SETTINGS)
    path = writing.write(asked, folder / "study.toml")
    keys = made_by.make(asked, path, folder / "keys", 1, ("study.example",))
    tables()["bern"].to_csv(folder / "bern.csv", index=False)
    with SuperLink(folder / "link", tls=Certificates(keys.ca, keys.certificate, keys.key), auth=True) as link:
        link.register(keys.public("bern"), "bern")
        yield SimpleNamespace(folder=folder, keys=keys, link=link)


@pytest.fixture(scope="module")
def attack(place):
    """Bern joins by the real command; the coordinator runs an app that brings code."""
    folder, link, here = place.folder, place.link, place.keys.site("bern")
    writing.write(study(address=link.address, **SETTINGS), here / "study.toml")
    site = Terminal(folder, "bern", "site", "join", "--study", here / "study.toml", "--data", "bern.csv")
    try:
        until(lambda: "connected to" in site.words, lambda: f"the site:\n{site.words}")
        names = "theirs_server:app", "theirs_client:app"
        app = write_app(folder / "app", *names, {"out": ""}, "unpooled-study")
        (app / "theirs_server.py").write_text(SERVER)
        (app / "theirs_client.py").write_text(CLIENT.format(loot=str(folder / "loot")))
        assert link.wait(link.run(app, {"out": str(folder / "said")}), 180.0).is_completed
        [pid] = site.running()
        return SimpleNamespace(
            folder=folder, words=site.words, said=(folder / "said").read_text(), listening=listening(pid)
        )
    finally:
        site.stop()


def listening(pid):
    """The TCP ports at which a process listens."""
    sockets = {os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink()}
    texts = [Path(f"/proc/{pid}/net/{file}").read_text() for file in ("tcp", "tcp6")]
    lines = [line.split() for text in texts for line in text.splitlines()[1:]]
    return [line[1] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in sockets]


def test_no_code_of_the_coordinators_runs_at_a_site(attack):
    assert not (attack.folder / "loot").exists()
    for words in (attack.said, " ".join(attack.words.split())):
        assert "refused: the app 'unpooled/unpooled-study'" in words
        assert "(a message has the records ['orders'], not those of unpooled)" in words
        assert "no code and no app of the coordinator's runs at a site" in words


def test_a_question_that_the_coordinator_has_not_signed_is_not_answered(attack):
    """By an account of the coordinator's machine, say, where Flower's own port takes anyone's app."""
    for words in (attack.said, " ".join(attack.words.split())):
        assert "sent a question that the coordinator's key has not signed" in words
    assert "agreement" not in attack.words


def test_a_site_is_one_process_without_a_port(attack):
    """Through which another account of its machine could answer for it, or ask it."""
    assert attack.listening == []


class Joining:
    """Bern in a thread of this process: what it says, and how it ends."""

    def __init__(self, place, address, name):
        self.said, self.error = [], None
        asked, here = study(address=address, **SETTINGS), place.keys.site("bern")
        self.desk = StudyDesk(asked, "bern", table.read(place.folder / "bern.csv"))
        self.arguments = (
            asked,
            self.desk,
            here / "bern.key",
            here / "ca.crt",
            place.folder / name,
            self.said.append,
        )
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            joining.join(*self.arguments)
        except StudyError as error:
            self.error = str(error)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self.desk.told.append({"done": "the test is over"})
        self.thread.join(60.0)
        assert not self.thread.is_alive()

    def until(self, words, times=1):
        def is_so():
            return sum(words in each for each in self.said) >= times or self.error is not None

        until(is_so, lambda: f"{words!r}: {self.said}", 120.0)
        assert self.error is None


@pytest.fixture
def quick(monkeypatch):
    """Little patience."""
    monkeypatch.setattr(joining, "LINGER", 0.0)
    monkeypatch.setattr(joining, "PAUSE", 0.2)
    monkeypatch.setattr(fleet, "SECONDS", 1.0)
    monkeypatch.setattr(fleet, "CONNECT_SECONDS", 1.0)


def test_a_site_outlasts_a_coordinator_that_is_frozen(place, attack, quick):
    """It takes connections, and nobody answers: neither the handshake nor a request."""
    with Joining(place, place.link.address, "frozen") as site:
        site.until("connected to")
        os.kill(place.link.process.pid, signal.SIGSTOP)
        try:
            site.until("is lost; trying again")
            site.until("no coordinator answers")
        finally:
            os.kill(place.link.process.pid, signal.SIGCONT)
        site.until("connected to", 2)


def test_a_hole_in_the_network_is_not_waited_for_in_silence(place, quick):
    """TCP is open, and no byte comes."""
    with socket.create_server(("127.0.0.1", 0)) as hole:
        address = f"127.0.0.1:{hole.getsockname()[1]}"
        with Joining(place, address, "hole") as site:
            site.until(f"no coordinator answers at {address} yet; trying again")


@pytest.fixture
def proxy(monkeypatch):
    with connecting() as (address, asked):
        for name in PROXIES:
            monkeypatch.setenv(name, address)
        yield asked


def test_a_proxy_is_used_on_the_way_to_the_coordinator(place, attack, proxy, quick):
    address = f"study.example:{place.link.port}"
    with Joining(place, address, "proxy") as site:
        site.until(f"connected to {address}")
    assert set(proxy) == {address}


def test_a_proxy_is_not_used_for_loopback(place, attack, proxy, quick):
    with Joining(place, place.link.address, "direct") as site:
        site.until("connected to")
    assert proxy == []


def test_a_proxy_that_refuses_is_named_without_its_password(place, monkeypatch, quick):
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@127.0.0.1:{port}")
    monkeypatch.setitem(SETTINGS, "limits", {"join_timeout": 1})
    with Joining(place, "study.example:9092", "refused") as site:
        until(lambda: site.error is not None, "the end")
    assert f"within 1 s (limits.join_timeout): the proxy http://127.0.0.1:{port} (HTTPS_PROXY)" in site.error
    assert "secret" not in site.error


@pytest.mark.parametrize(("seconds", "way"), [(30, "ahead of"), (-400, "behind")])
def test_a_clock_that_is_wrong_is_named(place, attack, monkeypatch, quick, seconds, way):
    monkeypatch.setattr(fleet, "SECONDS", 10.0)
    monkeypatch.setattr(fleet, "CONNECT_SECONDS", 10.0)
    right = fleet.now
    monkeypatch.setattr(fleet, "now", lambda: right() + datetime.timedelta(seconds=seconds))
    with Joining(place, place.link.address, "clock") as site:
        until(lambda: site.error is not None, "the end")
    found = re.search(r"this machine's clock is (\d+) s (ahead of|behind) the clock of 127.0.0.1", site.error)
    assert found, site.error
    assert abs(int(found[1]) - abs(seconds)) <= 10  # a busy machine takes its time
    assert found[2] == way
