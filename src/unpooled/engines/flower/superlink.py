"""Flower's process at the coordinator, the SuperLink, behind a gateway. POSIX systems.

    with SuperLink(folder, tls=certificates, auth=True) as link:
        link.register(Path("hospital-a.pub"), "hospital-a")
        run = link.run(write_app(folder / "app", server, client, settings), settings)
        status = link.wait(run, timeout=3600)

A watchdog ends it, and everything it started, when this process ends, however that happens. It listens on
loopback; sites reach it through a ``gateway``, through which nobody can register keys or run apps.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import math
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from unpooled.engines.flower.app_folder import Setting, settings
from unpooled.engines.flower.environment import POLL_SECONDS, command, environment, is_loopback
from unpooled.engines.flower.processes import (
    ATTEMPTS,
    START_SECONDS,
    ChildProcess,
    ProcessError,
    free_port,
    is_open,
)
from unpooled.engines.flower.superexec import without_tokens
from unpooled.engines.retry import Retry

if TYPE_CHECKING:
    from unpooled.engines.flower.gateway import Gateway
    from unpooled.engines.flower.keyring import Keyring

CONNECTION = "unpooled"  # the name of the SuperLink in the Flower home that we write
INSIDE = "127.0.0.1"  # where it listens itself


@dataclass(frozen=True)
class Certificates:
    """PEM files by which sites know a SuperLink; they need only the first one."""

    ca: Path
    certificate: Path
    key: Path


class RunStatus(NamedTuple):
    """How a run stands, as ``flwr list`` tells it: "running", "finished:completed", "finished:failed" …"""

    status: str
    details: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether it has ended, well or not."""
        return self.status.startswith("finished")

    @property
    def is_completed(self) -> bool:
        """Whether it has ended well."""
        return self.status == "finished:completed"


class SuperLink:
    """A ``flower-superlink`` of ours, started on entering and stopped on leaving.

    Parameters
    ----------
    folder : for its log, its Flower home and the logs of its runs.
    host, port : where sites reach it; a free port where None.
    tls : its certificates, for 127.0.0.1 too; None talks in clear, which is for loopback only.
    auth : whether only sites whose key was registered may join; needs ``tls``.
    database : a file to keep registrations and runs in, so that a SuperLink that is started again knows them;
        in memory where None.
    """

    def __init__(
        self,
        folder: Path,
        host: str = "127.0.0.1",
        port: int | None = None,
        tls: Certificates | None = None,
        auth: bool = False,
        *,
        database: Path | None = None,
        poll_seconds: float = POLL_SECONDS,
    ):
        if auth and tls is None:
            raise ValueError("sites can be authenticated over TLS only: give tls, or auth=False")
        if tls is None and not is_loopback(host):
            raise ValueError(f"without tls a SuperLink is for loopback only, such as 127.0.0.1, not {host!r}")
        self.folder, self.host, self.tls, self.auth = Path(folder), host, tls, auth
        self.port, self.database = port or 0, database
        self.home = self.folder / "flower"
        self._environment = environment(self.home.absolute(), poll_seconds)
        self._inside = ""  # host:port, once started
        self._process: ChildProcess | None = None
        self._gateway: Gateway | None = None
        self._keyring: Keyring | None = None

    @property
    def address(self) -> str:
        """``host:port`` for sites on this machine; others use its public name with ``port``."""
        host = {"0.0.0.0": INSIDE, "::": "::1"}.get(self.host, self.host)
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    @property
    def process(self) -> ChildProcess:
        """The process, once started."""
        if self._process is None:
            raise RuntimeError("the SuperLink is not started")
        return self._process

    def start(self) -> Self:
        """Start it and wait until it takes connections."""
        from unpooled.engines.flower.gateway import Gateway  # which imports what Flower brings along
        from unpooled.engines.flower.keyring import Keyring, read_public

        if self.auth:
            self._keyring = Keyring()
            for line in self._registered.read_bytes().splitlines() if self._registered.exists() else ():
                self._keyring.admit(read_public(line))
        try:
            self._gateway = gateway = Gateway(self.host, self.port, self.tls, self._keyring)
        except OSError as error:
            raise ProcessError(f"cannot listen on {self.host}:{self.port}: {error.strerror}") from None
        self.port = gateway.port
        try:
            self._process = self._started()
            gateway.start(self._inside)
        except BaseException:
            self.stop()
            raise
        return self

    def _started(self) -> ChildProcess:
        """The process, at a free port."""
        for attempt in Retry(tries=ATTEMPTS):
            port = free_port(INSIDE)
            self._inside = f"{INSIDE}:{port}"
            self._write_home()
            commands = without_tokens(self._environment, self.home / "commands")
            process = ChildProcess("superlink", self._command(port), self.folder, commands)
            try:
                process.until(functools.partial(is_open, INSIDE, port), START_SECONDS, "take connections")
                return process
            except ProcessError as error:
                process.stop()
                if "address already in use" not in str(error) or attempt.is_last:
                    raise
            except BaseException:
                process.stop()
                raise
        raise AssertionError("the last attempt returns or raises")

    def stop(self) -> None:
        """Stop it, with the server app of a run that is under way."""
        if self._gateway is not None:
            self._gateway.stop()
        if self._process is not None:
            self._process.stop()

    def register(self, public_key: Path, name: str) -> int:
        """Admit the site that holds the private key to this public key (``flwr supernode register``)."""
        told = self._flwr(
            "supernode", "register", str(Path(public_key).absolute()), CONNECTION, "--name", name
        )
        if self._keyring is not None:
            from unpooled.engines.flower.keyring import read_public

            line = Path(public_key).read_bytes().strip()
            self._keyring.admit(read_public(line))
            if self.database is not None:
                with self._registered.open("ab") as file:
                    file.write(line + b"\n")
        return int(told["node-id"])

    @property
    def _registered(self) -> Path:
        """The keys that a database knows, for the gateway of a SuperLink that is started again with it."""
        return Path(f"{self.database}.keys") if self.database is not None else self.folder / "no-keys"

    def run(self, app: Path, config: Mapping[str, Setting] | None = None) -> int:
        """Submit a run (``flwr run``); its number. ``config`` overrides keys of the app's config."""
        arguments = ["run", str(Path(app).absolute()), CONNECTION]
        if config:
            overrides = self.folder / "run-config.toml"
            overrides.write_text(settings(config), encoding="utf-8")
            arguments += ["--run-config", str(overrides.absolute())]
        return int(self._flwr(*arguments)["run-id"])

    def status(self, run: int) -> RunStatus:
        """How a run stands."""
        told = self._flwr("list", CONNECTION, "--run-id", str(run))["runs"][0]
        return RunStatus(told["status"], told.get("status-details") or "")

    def wait(self, run: int, timeout: float | None = None) -> RunStatus:
        """How the run ended, once it has; ``TimeoutError`` where it has not in time, and it goes on.

        What the run says is streamed into ``run-<number>.log`` meanwhile.
        """
        seconds = math.inf if timeout is None else timeout
        stream = [command("flwr"), "log", str(run), CONNECTION, "--stream"]
        for attempt in Retry(seconds=seconds, pause=1.0):
            left = max(0.0, seconds - attempt.seconds)
            with (
                ChildProcess(f"run-{run}", stream, self.folder, self._environment) as log,
                contextlib.suppress(subprocess.TimeoutExpired),
            ):
                log.wait(None if math.isinf(left) else left)
            if self.process.returncode is not None:
                raise ProcessError(f"the SuperLink ended while run {run} was on; see {self.process.log}")
            status = self.status(run)
            if status.is_finished:
                return status
        raise TimeoutError(f"run {run} has not ended within {seconds:g} s: it is {status.status}")

    def cancel(self, run: int) -> None:
        """End a run (``flwr stop``)."""
        self._flwr("stop", str(run), CONNECTION)

    def nodes(self) -> list[dict[str, Any]]:
        """Flower's own list of the nodes it knows, with ``node-id``, ``name`` and ``status``."""
        return list(self._flwr("supernode", "list", CONNECTION)["nodes"])

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _command(self, port: int) -> list[str]:
        link = [command("flower-superlink"), "--host", INSIDE, "--port", str(port)]
        link += ["--disable-runtime-dependency-installation"]
        if self.database is not None:
            link += ["--database", str(self.database)]
        if self.auth:
            link += ["--enable-supernode-auth"]
        if self.tls is None:
            return [*link, "--insecure"]
        link += ["--ssl-ca-certfile", str(self.tls.ca), "--ssl-certfile", str(self.tls.certificate)]
        return [*link, "--ssl-keyfile", str(self.tls.key)]

    def _write_home(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        trust = "insecure = true"
        if self.tls is not None:
            trust = f"root-certificates = {json.dumps(str(Path(self.tls.ca).absolute()))}"
        text = (
            f'[superlink]\ndefault = "{CONNECTION}"\n\n'
            f'[superlink.{CONNECTION}]\naddress = "{self._inside}"\n{trust}\n'
        )
        (self.home / "config.toml").write_text(text, encoding="utf-8")

    def _flwr(self, *arguments: str) -> dict[str, Any]:
        """What one of Flower's commands answers."""
        done = subprocess.run(
            [command("flwr"), *arguments, "--format", "json"],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            stdin=subprocess.DEVNULL,
        )
        what = f"flwr {' '.join(itertools.takewhile(str.isalpha, arguments))}"
        try:
            told: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
        except ValueError:
            raise ProcessError(f"{what} failed: {plain(done.stderr or done.stdout)}") from None
        if not told.get("success"):
            raise ProcessError(f"{what} failed: {plain(str(told.get('error-message') or told))}")
        return told


def plain(words: str) -> str:
    """What a command says, without the box that it draws around it."""
    return " ".join(re.sub(r"[╭╮╰╯│─]+( Error )?", " ", words).split())
