"""A coordinator that cheats, with real processes, TLS and keys: no code of its own runs at a site."""

import contextlib
import os
from pathlib import Path

import pytest

from tests.study.sites import study, tables
from tests.study.terminals import Terminal, until
from unpooled.flower import Certificates, SuperLink, write_app
from unpooled.study import keys as made_by
from unpooled.study import writing

SERVER = """
import time
from pathlib import Path
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import ServerApp

app = ServerApp()

@app.main()
def main(grid, context):
    while not (nodes := list(grid.get_node_ids())):
        time.sleep(0.1)
    content = RecordDict({"orders": ConfigRecord({"do": "as I say"})})
    messages = [Message(content=content, dst_node_id=node, message_type="query") for node in nodes]
    [reply] = grid.send_and_receive(messages, timeout=120)
    said = reply.error.reason if reply.has_error() else str(reply.content)
    Path(context.run_config["out"]).write_text(said)
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


@pytest.fixture(scope="module")
def attack(tmp_path_factory):
    """A SuperLink with keys, a site that has joined by the real command, and an app that brings code."""
    folder = tmp_path_factory.mktemp("hostile")
    asked = study(sites=["basel", "bern"], limits={"join_timeout": 120})
    keys = made_by.make(asked, writing.write(asked, folder / "study.toml"), folder / "keys", 1)
    tls = Certificates(keys.ca, keys.certificate, keys.key)
    tables()["bern"].to_csv(folder / "bern.csv", index=False)
    with contextlib.ExitStack() as stack:
        link = stack.enter_context(SuperLink(folder / "link", tls=tls, auth=True))
        link.register(keys.public("bern"), "bern")
        writing.write(
            study(address=link.address, sites=["basel", "bern"], limits={"join_timeout": 120}),
            keys.site("bern") / "study.toml",
        )
        given = ("--study", keys.site("bern") / "study.toml", "--data", "bern.csv")
        site = Terminal(folder, "bern", "site", "join", *given)
        stack.callback(site.stop)
        until(lambda: "connected to" in site.words, lambda: f"the site:\n{site.words}")
        app = write_app(
            folder / "app", "theirs_server:app", "theirs_client:app", {"out": ""}, "unpooled-study"
        )
        (app / "theirs_server.py").write_text(SERVER)
        (app / "theirs_client.py").write_text(CLIENT.format(loot=str(folder / "loot")))
        assert link.wait(link.run(app, {"out": str(folder / "said")}), 180.0).is_completed
        yield folder, site, (folder / "said").read_text()


def test_no_code_of_the_coordinators_runs_at_a_site(attack):
    folder, site, said = attack
    assert not (folder / "loot").exists()
    for words in (said, " ".join(site.words.split())):
        assert "refused: the app 'unpooled/unpooled-study'" in words
        assert "(a message has the records ['orders'], not those of unpooled)" in words
        assert "no code and no app of the coordinator's runs at a site" in words


def test_a_site_is_one_process_without_a_port(attack):
    """Through which another account of its machine could answer for it, or ask it."""
    _, site, _ = attack
    [pid] = site.running()
    sockets = {os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink()}
    lines = [line.split() for file in ("tcp", "tcp6") for line in _lines(f"/proc/{pid}/net/{file}")]
    assert not [line for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in sockets]


def _lines(path):
    return Path(path).read_text().splitlines()[1:]
