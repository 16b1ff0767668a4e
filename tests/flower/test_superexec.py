"""Tokens of Flower's processes stand in files, which only their owner reads."""

import stat
import subprocess
import sys
from pathlib import Path

from unpooled.engines.flower.environment import environment
from unpooled.engines.flower.superexec import hidden, without_tokens


def test_a_token_goes_to_a_file(tmp_path):
    asked = ["flwr-serverapp", "--token", "c0ffee", "--insecure"]
    command = hidden(asked, tmp_path)
    assert (command[:2], command[3:]) == (["flwr-serverapp", "--token-file"], ["--insecure"])
    path = Path(command[2])
    assert path.read_text() == "c0ffee"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert hidden(["flwr-serverapp", "--insecure"], tmp_path) == ["flwr-serverapp", "--insecure"]


def test_flowers_executor_starts_commands_by_way_of_it(tmp_path):
    """With Flower's own class; the command that it starts writes down how it was called."""
    called = tmp_path / "flwr-serverapp"
    called.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/called; cat "$4" > {tmp_path}/token\n')
    called.chmod(0o700)
    code = f"""
import sys, importlib
sys.path.insert(0, {str(Path(__file__).parents[2] / "src" / "unpooled" / "engines" / "flower")!r})
import superexec
from flwr.supercore.constant import TaskType
import flwr.supercore.cli as cli
from flwr.supercore.superexec.executor.types import ExecutionSpec
def flower_superexec():
    executor = importlib.import_module(superexec.EXECUTOR)
    started = []
    popen = executor.subprocess.Popen
    executor.subprocess.Popen = lambda *a, **k: started.append(popen(*a, **k))
    executor.SubprocessExecutor().launch(ExecutionSpec(
        task_type=TaskType.SERVER_APP, runtime_api_address="x:1", token="c0ffee", insecure=True,
        root_certificates_path=None, runtime_dependency_install=False, parent_pid=None,
        suppress_output=False, task_id=1, fab_hash=None,
    ))
    started[0].wait()
cli.flower_superexec = flower_superexec
superexec.main()
"""
    own = {**environment(tmp_path), "PATH": f"{tmp_path}:{environment(tmp_path)['PATH']}"}
    subprocess.run([sys.executable, "-c", code], env=own, check=True)
    assert "c0ffee" not in (tmp_path / "called").read_text()
    assert "--token-file" in (tmp_path / "called").read_text()
    assert (tmp_path / "token").read_text() == "c0ffee"


def test_the_superlink_finds_it_by_name(tmp_path):
    own = without_tokens(environment(tmp_path), tmp_path / "commands")
    done = subprocess.run(
        ["flower-superexec", "--help"], env=own, capture_output=True, text=True, check=True, timeout=120
    )
    assert "--runtime-api-address" in done.stdout
    assert own["PATH"].startswith(str(tmp_path / "commands"))
