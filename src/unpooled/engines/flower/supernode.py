"""Flower's process at a site, a SuperNode. POSIX systems.

    with SuperNode(folder, "coordinator.org:9092", ca, key, {"client-id": "hospital-a"}) as node:
        node.until_connected(60)
        node.wait()

A watchdog ends it, and everything it started, when this process ends, however that happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from unpooled.engines.flower.app_folder import Setting, settings
from unpooled.engines.flower.environment import POLL_SECONDS, command, environment
from unpooled.engines.flower.processes import (
    ATTEMPTS,
    START_SECONDS,
    ChildProcess,
    ProcessError,
    free_port,
    is_open,
)
from unpooled.engines.retry import Retry

REFUSED = "Failed to activate SuperNode"  # in the log of a node whose key the SuperLink does not take
AGAIN_SECONDS = 5.0  # until such a node tries again


class SuperNode:
    """A ``flower-supernode`` of ours, started on entering and stopped on leaving.

    Parameters
    ----------
    folder : for its log, its Flower home and its settings.
    superlink : ``host:port`` of the SuperLink.
    root_certificate : the authority that signed the SuperLink's certificate; None talks in clear.
    private_key : the site's key, where the SuperLink wants one.
    node_config : what the client app finds in ``context.node_config``; it must have "client-id".
    patience : seconds for which ``until_connected`` tries again where the SuperLink refuses the key. It does
        so for about a minute after a node was killed, until it has missed it: the key still counts as in
        use. A key that it does not know is refused in the same words.
    """

    def __init__(
        self,
        folder: Path,
        superlink: str,
        root_certificate: Path | None = None,
        private_key: Path | None = None,
        node_config: Mapping[str, Setting] | None = None,
        *,
        patience: float = 0.0,
        poll_seconds: float = POLL_SECONDS,
    ):
        if private_key is not None and root_certificate is None:
            raise ValueError("a site can be authenticated over TLS only: give root_certificate too")
        self.folder, self.superlink = Path(folder), superlink
        self.root_certificate, self.private_key = root_certificate, private_key
        self.node_config, self.patience = dict(node_config or {}), patience
        self.port = 0
        self._environment = environment((self.folder / "flower").absolute(), poll_seconds)
        self._process: ChildProcess | None = None

    @property
    def process(self) -> ChildProcess:
        """The process, once started."""
        if self._process is None:
            raise RuntimeError("the SuperNode is not started")
        return self._process

    def start(self) -> Self:
        """Start it; it goes on trying to connect for as long as it takes (see ``until_connected``)."""
        (self.folder / "flower").mkdir(parents=True, exist_ok=True)
        (self.folder / "node.toml").write_text(settings(self.node_config), encoding="utf-8")
        for _ in Retry(tries=ATTEMPTS):
            self.port = free_port("127.0.0.1")
            self._process = process = ChildProcess(
                "supernode", self._command(), self.folder, self._environment
            )
            try:
                process.until(self._is_up_or_over, START_SECONDS, "start")
            except BaseException:
                process.stop()
                raise
            if process.returncode is None or "address already in use" not in process.words():
                break
            process.stop()
        return self

    def until_connected(self, timeout: float = START_SECONDS) -> None:
        """Wait until the SuperLink has taken the node in; a ``ProcessError`` says why it was refused."""
        limit = max(0.0, min(timeout, self.patience) - AGAIN_SECONDS)
        for attempt in Retry(seconds=limit, pause=AGAIN_SECONDS):
            if attempt.number > 1:
                self.start()
            try:
                left = max(0.0, timeout - attempt.seconds)
                return self.process.until(self._is_connected, left, f"connect to {self.superlink}")
            except ProcessError:
                if REFUSED not in self.process.words() or attempt.is_last:
                    raise
            self.stop()
        raise AssertionError("the last attempt returns or raises")

    @property
    def returncode(self) -> int | None:
        """The exit status; None while it runs."""
        return self.process.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, once it ends."""
        return self.process.wait(timeout)

    def stop(self) -> None:
        """Stop it, with the message it is at work on."""
        if self._process is not None:
            self._process.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _command(self) -> list[str]:
        node = [command("flower-supernode"), "--superlink", self.superlink]
        node += ["--host", "127.0.0.1", "--port", str(self.port)]
        node += ["--node-config", str((self.folder / "node.toml").absolute())]
        if self.private_key is not None:
            node += ["--auth-supernode-private-key", str(self.private_key)]
        if self.root_certificate is None:
            return [*node, "--insecure"]
        return [*node, "--root-certificates", str(self.root_certificate)]

    def _is_up_or_over(self) -> bool:
        if self.returncode is not None:
            return True
        return is_open("127.0.0.1", self.port)

    def _is_connected(self) -> bool:
        return "SuperNode ID: " in self.process.words(1 << 20)
