"""The bits of the local engine between real processes on loopback, with TLS and nodes that show keys."""

import contextlib
import pickle
import signal
import subprocess
from pathlib import Path

import pytest

import unpooled as up
from tests.flower.apps import DATA, FAST, OPTIONS, PROBLEM, SITES, same
from tests.flower.certificates import make_certificates, make_key
from tests.study.sites import study, tables
from unpooled.flower import SuperLink, SuperNode, write_app
from unpooled.flower.environment import command, environment
from unpooled.flower.guarded import ProcessError
from unpooled.remote.messages import Reply
from unpooled.study import joining, table
from unpooled.study.config import StudyError
from unpooled.study.desk import StudyDesk

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("deployment")


@pytest.fixture(scope="module")
def deployment(folder):
    """A SuperLink, its certificates and a SuperNode for every site."""
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("PYTHONPATH", f"{ROOT / 'src'}:{ROOT}")
        certificates = make_certificates(folder / "keys")
        link = stack.enter_context(SuperLink(folder / "link", tls=certificates, auth=True))
        nodes = {}
        for name in SITES:
            private, public = make_key(folder / "keys", name)
            link.register(public, name)
            config = {"client-id": name, "folder": str(folder)}
            keys = certificates.ca, private
            nodes[name] = SuperNode(folder / name, link.address, *keys, config, patience=150.0)
            stack.enter_context(nodes[name])
        yield link, certificates, nodes


@pytest.fixture(scope="module")
def seen(deployment, folder):
    link, _, _ = deployment
    app = write_app(folder / "app", "tests.flower.apps:server", "tests.flower.apps:client", {"out": ""})
    run = link.run(app, {"out": str(folder / "seen.pickle")})
    status = link.wait(run, 300.0)
    assert status.is_completed, (folder / "link" / f"run-{run}.log").read_text()
    return pickle.loads((folder / "seen.pickle").read_bytes())


def test_an_exact_solve_has_the_same_bits(seen):
    here = up.solve(PROBLEM, DATA)
    assert seen["sites"] == SITES
    assert same((seen["solve"].w, seen["solve"].intercept), (here.w, here.intercept))


def test_minibatches_of_a_cohort_have_the_same_bits(seen):
    here = up.simulate(FAST, PROBLEM, DATA, **OPTIONS)
    assert same(seen["fast"], (here.w, here.intercept))


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
    app = write_app(folder / "theirs", "tests.flower.apps:server", "tests.flower.apps:client", {"out": ""})
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
