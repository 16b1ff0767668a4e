"""The page "From laptop to hospitals": all of its Python and all of its commands, with real processes."""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "from-laptop-to-hospitals.md"
SECONDS = 240.0


def blocks():
    return re.findall(r"```(python|sh)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Commands:
    """Runs commands in a folder; those that wait for others run beside each other until all have ended."""

    def __init__(self, folder):
        self.folder = folder
        self.unpooled = shutil.which("unpooled", path=str(Path(sys.executable).parent))
        self.waiting = []

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for _, process, _ in self.waiting:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + 20.0
        for _, process, _ in self.waiting:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0.1))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def run(self, line, port):
        arguments = shlex.split(line.replace(":9092", f":{port}"))
        assert arguments[0] == "unpooled"
        arguments[0] = self.unpooled
        if arguments[2] not in ("run", "join"):
            done = subprocess.run(arguments, cwd=self.folder, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout
        log = self.folder / f"terminal-{len(self.waiting)}.txt"
        with log.open("wb") as file:
            process = subprocess.Popen(
                arguments, cwd=self.folder, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.waiting.append((line, process, log))
        return ""

    def finish(self):
        deadline = time.monotonic() + SECONDS
        for line, process, log in self.waiting:
            try:
                process.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                pytest.fail(f"{line} did not end:\n{self.words()}")
            assert process.returncode == 0, (
                f"{line}:\n{log.read_text('utf-8')}\n\nall of them:\n{self.words()}"
            )
        words = [log.read_text("utf-8") for _, _, log in self.waiting]
        self.waiting = []
        return words

    def words(self):
        return "\n".join(f"$ {line}\n{log.read_text('utf-8')}" for line, _, log in self.waiting)


@pytest.mark.slow
def test_every_block_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, port, printed, words = {}, free_port(), io.StringIO(), []
    with Commands(tmp_path) as commands:
        for kind, text in blocks():
            if kind == "sh":
                words += [commands.run(line, port) for line in text.strip().splitlines()]
                continue
            ended = commands.finish()
            words += ended
            with contextlib.redirect_stdout(printed):
                exec(compile(text, str(PAGE), "exec"), names)
            if ended:
                coordinator, *sites = ended
    assert "tolerance 1e-08 reached" in printed.getvalue()
    assert "largest difference from the pooled lasso" in printed.getvalue()
    assert "4 of 4 sites joined: basel, bern, genf, zurich" in coordinator
    assert "coefficients.csv, result.json, summary.txt" in coordinator
    assert len(sites) == 4
    assert all("The study is over: pressure: lasso of pressure" in each for each in sites)
    assert any("Gram matrix" in each and "nothing was sent" in each for each in words)
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "bern.jsonl").read_text("utf-8").splitlines()]
    assert kinds == ["describe", "collect", "ask", "tell"]
    described = json.loads((tmp_path / "results" / "result.json").read_text("utf-8"))
    assert described["sites"] == {"basel": 400, "bern": 450, "genf": 500, "zurich": 550}
    assert described["ledger"]["rounds"] == 3
