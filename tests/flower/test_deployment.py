"""The bits of the local engine between real processes on loopback, with TLS and nodes that show keys.

What runs there are the programs of docs/engines.md, with other numbers in them.
"""

import contextlib
import pickle
import re
import signal
import subprocess
import uuid
from pathlib import Path

import numpy as np
import pytest

import unpooled as up
from tests.flower.apps import DATA, FAST, OPTIONS, PROBLEM, SCAFFOLD, SITES, STAGES, same
from tests.flower.certificates import make_certificates, make_key
from tests.processes import commands, watched
from tests.study.sites import study, tables
from unpooled.engines.flower.environment import QUIET, command, environment
from unpooled.engines.flower.processes import ProcessError
from unpooled.engines.remote.messages import Reply
from unpooled.runs.flower import SuperLink, SuperNode, write_app
from unpooled.study import joining, table
from unpooled.study.config import StudyError
from unpooled.study.desk import StudyDesk

ROOT = Path(__file__).parents[2]
MARK = uuid.uuid4().hex  # in the environment of all that is started here


def documented(name, numbers, algorithm=None):
    """A program of docs/engines.md, with other numbers in it, and another algorithm."""
    page = (ROOT / "docs" / "engines.md").read_text("utf-8")
    [program] = re.findall(rf"```python\n(# {name}\.py: .*?)```", page, re.DOTALL)
    if algorithm is not None:
        numbers = {**numbers, "up.FastFedDA()": f"up.{algorithm}".replace("inf", "float('inf')")}
    for old, new in numbers.items():
        assert old in program
        program = program.replace(old, new)
    return program


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("deployment")


@pytest.fixture(scope="module")
def deployment(folder):
    """A SuperLink, its certificates and a SuperNode for every site."""
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("PYTHONPATH", f"{ROOT / 'src'}:{ROOT}:{folder / 'programs'}")
        patch.setenv("UNPOOLED_TEST_DEPLOYMENT", MARK)
        patch.setenv("FLWR_TELEMETRY_ENABLED", "1")  # whatever is set here
        certificates = make_certificates(folder / "keys")
        link = stack.enter_context(SuperLink(folder / "link", tls=certificates, auth=True))
        nodes = {}
        for client in DATA:
            private, public = make_key(folder / "keys", client.id)
            link.register(public, client.id)
            np.savez(folder / f"{client.id}.npz", X=client.X, y=client.y)
            config = {"client-id": client.id, "folder": str(folder), "path": str(folder / f"{client.id}.npz")}
            keys = certificates.ca, private
            nodes[client.id] = SuperNode(folder / client.id, link.address, *keys, config, patience=150.0)
            stack.enter_context(nodes[client.id])
        yield link, certificates, nodes
    assert commands(MARK) == []  # is left of all that was started, with every run


@pytest.fixture(scope="module")
def programs(folder):
    """The programs of the page: those of the sites, and one for each run."""
    here, few = {"/srv": str(folder)}, {'"rounds": 100, "cohort": 2': f"**{OPTIONS}"}
    everyone = {"fraction_train=0.5": "fraction_train=1.0", "num_rounds=20": "num_rounds=2"}
    texts = {
        "client": documented("client", {}),
        "exact": documented("exact", here),
        "rounds": documented("rounds", here | few, FAST),
        "scaffold": documented("strategy", {"/srv/model": f"{folder}/scaffold"} | everyone, SCAFFOLD),
        "stages": documented("strategy", {"/srv/model": f"{folder}/stages"} | everyone, STAGES),
    }
    (folder / "programs").mkdir()
    for name, text in texts.items():
        (folder / "programs" / f"documented_{name}.py").write_text(text)
    return [name for name in texts if name != "client"]


@pytest.fixture(scope="module")
def started(programs, deployment, folder):
    """The processes that were there while all programs ran, side by side."""
    link, _, _ = deployment
    with watched(MARK) as seen:
        runs = [
            link.run(write_app(folder / f"app-{name}", f"documented_{name}:app", "documented_client:app"))
            for name in programs
        ]
        for run in runs:
            assert link.wait(run, 400.0).is_completed, (folder / "link" / f"run-{run}.log").read_text()
    return list(seen.values())


def model(file):
    with np.load(file) as arrays:
        return arrays["w"], arrays["intercept"]


def test_an_exact_solve_has_the_same_bits(started, folder):
    here = up.solve(PROBLEM, DATA)
    assert same(model(folder / "exact" / "model.npz"), (here.w, here.intercept))


def test_minibatches_of_a_cohort_have_the_same_bits(started, folder):
    here = up.simulate(FAST, PROBLEM, DATA, **OPTIONS)
    assert same(model(folder / "rounds" / "model.npz"), (here.w, here.intercept))
    kept = up.load(folder / "rounds" / "checkpoint.run")
    assert kept.status == "completed"
    assert kept.ledger == here.ledger


@pytest.mark.parametrize(("name", "algorithm"), [("scaffold", SCAFFOLD), ("stages", STAGES)])
def test_memory_and_stages_have_the_same_bits_in_flowers_loop(started, folder, name, algorithm):
    here = up.simulate(algorithm, PROBLEM, DATA, rounds=2)
    assert same(model(folder / f"{name}.npz"), (here.w, here.intercept))


@pytest.mark.parametrize("kind", ["flower-superlink", "flower-supernode", "serverapp", "clientapp"])
def test_no_process_tells_anybody_anything(started, kind):
    own = [variables for line, variables in started if kind in line]
    assert own
    for variables in own:
        assert {name: variables.get(name) for name in QUIET} == QUIET


@pytest.mark.slow
def test_a_site_killed_in_a_round_and_started_again_is_asked_again(deployment, folder):
    link, _, nodes = deployment
    app = write_app(folder / "asking", "tests.flower.apps:asking", "tests.flower.apps:waiting", {"out": ""})
    run = link.run(app, {"out": str(folder / "asked.pickle")})
    asked = [folder / f"{name}.asked" for name in SITES]
    nodes["north"].process.until(lambda: all(file.exists() for file in asked), 120.0, "be asked")
    nodes["north"].process.kill()
    assert nodes["north"].returncode == 128 + signal.SIGKILL
    nodes["north"].start()
    nodes["north"].until_connected(180.0)  # the SuperLink misses the dead one within a minute
    (folder / "go").touch()
    assert link.wait(run, 240.0).is_completed
    answers = pickle.loads((folder / "asked.pickle").read_bytes())
    assert answers == {name: Reply({"name": name}, {}) for name in SITES}


def test_nobody_gives_orders_at_the_address_of_the_sites(deployment, folder):
    """Flower's own commands, by someone who knows the address and the authority."""
    link, certificates, _ = deployment
    home, (_, public) = folder / "stranger-home", make_key(folder / "keys", "intruder")
    home.mkdir()
    trusted = f'address = "{link.address}"\nroot-certificates = "{certificates.ca}"\n'
    (home / "config.toml").write_text(f'[superlink]\ndefault = "it"\n\n[superlink.it]\n{trusted}')
    app = write_app(folder / "theirs", "unpooled.study.apps:server", "unpooled.study.apps:client")
    for orders in (("supernode", "register", public), ("run", app)):
        done = subprocess.run(
            [command("flwr"), *map(str, orders), "it", "--format", "json"],
            env=environment(home),
            capture_output=True,
            text=True,
            timeout=60.0,
        )
        assert "404 Not Found" in done.stdout, done.stdout + done.stderr
        assert '"success": false' in done.stdout
    assert len(link.nodes()) == len(SITES)


def test_an_unregistered_key_is_refused(deployment, folder):
    link, certificates, _ = deployment
    private, _ = make_key(folder / "keys", "stranger")
    stranger = SuperNode(folder / "stranger", link.address, certificates.ca, private, {"client-id": "north"})
    with stranger, pytest.raises(ProcessError, match="supernode ended with exit status"):
        stranger.until_connected(60.0)


def test_a_site_whose_key_is_not_taken_says_so(deployment, folder, monkeypatch):
    """As `unpooled site join` does, without the minutes in which a coordinator may still be starting."""
    link, certificates, _ = deployment
    monkeypatch.setattr(joining, "REGISTERING", 0.0)
    private, _ = make_key(folder / "keys", "nobody")
    asked = study(address=link.address, sites=["bern"], limits={"join_timeout": 60})
    tables()["bern"].to_csv(folder / "bern.csv", index=False)
    desk = StudyDesk(asked, "bern", table.read(folder / "bern.csv"))
    said = []
    with pytest.raises(StudyError, match="does not take this site's key: it was not made for this study, or"):
        joining.join(asked, desk, private, certificates.ca, folder / "nobody", said.append)
    assert "does not take this site in yet" in said[0]
    assert desk.answers == 0


def test_a_run_that_fails_is_seen_to_fail(deployment, folder):
    link, _, _ = deployment
    app = write_app(folder / "bad", "tests.flower.apps:failing", "tests.flower.apps:client")
    status = link.wait(link.run(app), 120.0)
    assert status.is_finished
    assert not status.is_completed


def test_what_flower_refuses_is_said(deployment, folder):
    link, _, _ = deployment
    app = write_app(folder / "none", "tests.flower.no_such:server", "tests.flower.apps:client")
    with pytest.raises(ProcessError, match=r"flwr run failed: .*load module tests.flower.no_such"):
        link.run(app)
    with pytest.raises(ProcessError, match=r"flwr supernode register failed: Public key .* does not exist"):
        link.register(folder / "no-such.pub", "nobody")


def test_authentication_needs_tls(folder):
    with pytest.raises(ValueError, match="over TLS only"):
        SuperLink(folder, auth=True)
    with pytest.raises(ValueError, match=r"without tls a SuperLink is for loopback only.* not '0.0.0.0'"):
        SuperLink(folder, "0.0.0.0")
    with pytest.raises(ValueError, match="over TLS only"):
        SuperNode(folder, "127.0.0.1:1", private_key=folder / "key")
