"""Ports for Flower's processes, chosen free and tried again where somebody was faster; and hosts."""

from __future__ import annotations

import ipaddress
import socket

START_SECONDS = 60.0  # that a process may take to open its port
ATTEMPTS = 5  # at a port that was free when it was chosen


def free_port(host: str) -> int:
    """A port that is free now."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def is_loopback(host: str) -> bool:
    """Whether a host is this machine and nothing else."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
