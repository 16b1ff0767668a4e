"""One study between real processes that goes through everything that can die, to the bits of a quiet one.

two sites join under one id, and one of them leaves
the SuperLink alone is killed with -9
the coordinator is killed with -9, with all of its processes, and resumed
a site is killed with -9 while it is asked, and joins again
"""

import contextlib
import itertools
import os
import re
import signal
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.study.sites import settings, tables
from tests.study.terminals import Terminal, until
from unpooled.engines.remote.messages import Direct
from unpooled.study import table, writing
from unpooled.study.config import load, parse
from unpooled.study.coordinator import run_study
from unpooled.study.desk import StudyDesk

pytestmark = pytest.mark.slow
SITES = ("basel", "bern")
RUN = ("study", "run", "study.toml", "--insecure")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The study's file and the sites' tables."""
    folder = tmp_path_factory.mktemp("faults")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    given = settings(
        "died",
        "logistic",
        0.02,
        sites=list(SITES),
        address=f"127.0.0.1:{port}",
        share_results=True,
        solver={"method": "fista", "tolerance": 1e-7},
        limits={"join_timeout": 300, "round_timeout": 300, "grace": 120},
    )
    writing.write(parse(given), folder / "study.toml")
    for site in SITES:
        tables()[site].to_csv(folder / f"{site}.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def known(folder):
    """The coefficients of a study that nothing happened to, and how many exchanges it takes."""
    asked = load(folder / "study.toml")
    desks = {site: StudyDesk(asked, site, table.read(folder / f"{site}.csv")) for site in SITES}
    seen = []
    run_study(asked, Direct(desks), folder / "known", watch=lambda event, data: seen.append(event))
    return (folder / "known" / "coefficients.csv").read_bytes(), seen.count("asked")


def site(folder, name, terminal=None):
    arguments = ["--study", "study.toml", "--data", f"{name}.csv", "--site", name, "--insecure"]
    terminal = terminal or name
    arguments += ["--audit", f"{terminal}.jsonl", "--logs", f"logs/{terminal}"]
    return Terminal(folder, terminal, "site", "join", *arguments)


def commands(folder):
    """The command lines of Flower's processes that belong to a study."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"FLWR_HOME={folder}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def answered(folder, number):
    """Wait until an exchange is in the checkpoint."""
    path = folder / "results" / "checkpoint" / f"{number:06}.npz"
    until(path.exists, f"the answers of exchange {number}")


@pytest.fixture(scope="module")
def drama(folder, known):
    """Everything happens; what was seen on the terminals."""
    seen = SimpleNamespace()
    with contextlib.ExitStack() as stack:

        def start(terminal):
            stack.callback(terminal.stop)
            return terminal

        first = start(Terminal(folder, "first", *RUN))
        bern, twin = start(site(folder, "bern")), start(site(folder, "bern", "twin"))
        until(lambda: "two have joined as bern" in first.words, lambda: f"the twins:\n{first.words}")
        twin.stop()
        seen.twin = twin.words
        basel = start(site(folder, "basel"))

        answered(folder, 2)
        superlink = int((folder / "results" / "logs" / ".superlink.pid").read_text())
        seen.commands = commands(folder)
        os.kill(superlink, signal.SIGKILL)
        answered(folder, 4)
        until(lambda: "exchange 4 " in first.words, "the terminal to say so")
        first.kill()
        seen.first = first.words
        seen.kept = len(list((folder / "results" / "checkpoint").glob("0*.npz")))

        impatient = start(Terminal(folder, "impatient", *RUN))
        seen.impatient = impatient.ends(), impatient.words
        resumed = start(Terminal(folder, "resumed", *RUN, "--resume"))
        answered(folder, seen.kept + 1)
        bern.kill()  # many exchanges before the end
        seen.killed = bern.words
        bern = start(site(folder, "bern", "again"))
        seen.statuses = [terminal.ends() for terminal in (resumed, basel, bern)]
        seen.resumed, seen.basel, seen.again = resumed.words, basel.words, bern.words
        seen.left = [terminal.running() for terminal in (first, basel, bern, twin, impatient, resumed)]
    return seen


def test_the_end_is_that_of_a_quiet_study(drama, folder, known):
    coefficients, exchanges = known
    assert exchanges > 15  # or else there was no middle to be killed in
    assert drama.statuses == [0, 0, 0]
    assert (folder / "results" / "coefficients.csv").read_bytes() == coefficients
    assert not (folder / "results" / "checkpoint").exists()


def test_the_sites_have_the_results_too(drama, folder, known):
    for site in SITES:
        assert (folder / "results" / site / "coefficients.csv").read_bytes() == known[0]
    assert "coefficients are not zero" in drama.basel
    assert "results/bern: coefficients.csv, result.json, summary.txt" in drama.again


def test_no_process_is_left(drama):
    assert drama.left == [set()] * 6


def test_no_command_line_has_a_token(drama):
    """With it, whoever reads command lines could speak for the run."""
    assert any("flwr-serverapp" in each and "--token-file" in each for each in drama.commands)
    assert not any("--token " in each for each in drama.commands)


def test_two_sites_under_one_id_are_told_apart_by_nobody(drama):
    assert "two have joined as bern: nothing begins until one of them leaves" in drama.first
    assert "2 of 2 sites joined: basel, bern" in drama.first
    assert "join again to come back" in drama.twin


def test_a_superlink_that_is_killed_is_started_again(drama):
    assert "the SuperLink ended (status 137); it is started again" in drama.first
    asked = [int(number) for number in re.findall(r"exchange (\d+) ", drama.first)]
    assert set(asked) >= set(range(1, 5))
    assert all(b - a in (0, 1) for a, b in itertools.pairwise(asked))  # nothing is done twice
    assert "Traceback" not in drama.first


def test_a_site_stays_when_the_coordinator_goes(drama):
    assert drama.basel.count("is lost; trying again") == 2
    assert drama.basel.count("connected to 127.0.0.1") == 3
    assert "The study is over: wards: logistic of died" in drama.basel
    assert "Traceback" not in drama.basel


def test_a_killed_coordinator_goes_on_from_the_last_answer(drama, folder):
    status, words = drama.impatient
    assert status == 2
    assert "holds a study that was not finished: --resume goes on with it" in " ".join(words.split())
    asked = [int(number) for number in re.findall(r"exchange (\d+) ", drama.resumed)]
    assert asked[0] == drama.kept + 1
    assert "Traceback" not in drama.resumed


def test_a_killed_site_that_joins_again_is_asked_again(drama, folder):
    assert "bern is not connected; waiting 120 s for it to reconnect" in drama.resumed
    assert "back: bern" in drama.resumed
    assert "The study is over" in drama.again
    assert "left out" not in drama.resumed


def test_the_table_of_faults_names_tests_that_exist():
    root = Path(__file__).parents[2]
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", (root / "docs" / "faults.md").read_text("utf-8"))
    assert len(named) > 15
    for path, test in named:
        assert f"def {test}(" in (root / path).read_text("utf-8"), f"{path}::{test}"
