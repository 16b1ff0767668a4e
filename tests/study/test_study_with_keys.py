"""A whole study by the commands, with keys and TLS, in a network whose proxies are set in the environment."""

import socket

import pytest
from typer.testing import CliRunner

from tests.study.proxy import PROXIES, connecting
from tests.study.sites import settings, tables
from tests.study.terminals import Terminal
from unpooled.cli import app
from unpooled.engines.remote.messages import Direct
from unpooled.study import table, writing
from unpooled.study.config import load, parse
from unpooled.study.coordinator import run_study
from unpooled.study.desk import StudyDesk

pytestmark = pytest.mark.slow
SITES = ("basel", "bern")
NOBODY = "http://127.0.0.1:9"  # a proxy that does not answer


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_study_goes_through_a_proxy_where_there_is_one_and_never_for_loopback(tmp_path, monkeypatch):
    port = free_port()
    limits = {"join_timeout": 120, "round_timeout": 120, "grace": 30}
    given = settings("died", "logistic", 0.02, sites=list(SITES), address=f"127.0.0.1:{port}", limits=limits)
    writing.write(parse(given), tmp_path / "study.toml")
    monkeypatch.chdir(tmp_path)
    made = CliRunner().invoke(app, ["study", "keys", "study.toml", "--host", "study.example"])
    assert made.exit_code == 0, made.output
    for site in SITES:
        tables()[site].to_csv(f"{site}.csv", index=False)
    elsewhere = tmp_path / "keys" / "bern" / "study.toml"
    writing.write(parse(given | {"address": f"study.example:{port}"}), elsewhere)

    def terminal(name, proxy, *arguments):
        for variable in PROXIES:
            monkeypatch.setenv(variable, proxy)
        return Terminal(tmp_path, name, *arguments)

    with connecting() as (proxy, asked):
        terminals = [terminal("run", NOBODY, "study", "run", "study.toml")]
        for site, way in (("basel", NOBODY), ("bern", proxy)):
            given = ("--study", tmp_path / "keys" / site / "study.toml", "--data", f"{site}.csv")
            terminals.append(terminal(site, way, "site", "join", *given))
        try:
            statuses = [each.ends() for each in terminals]
        finally:
            for each in terminals:
                each.stop()
        assert statuses == [0, 0, 0], [each.words for each in terminals]
        assert set(asked) == {f"study.example:{port}"}
    study = load(tmp_path / "study.toml")
    desks = {site: StudyDesk(study, site, table.read(tmp_path / f"{site}.csv")) for site in SITES}
    run_study(study, Direct(desks), tmp_path / "known")
    known = (tmp_path / "known" / "coefficients.csv").read_bytes()
    assert (tmp_path / "results" / "coefficients.csv").read_bytes() == known
