"""What the coordinator sees while a study runs: who has joined, and what is being asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from rich.box import SIMPLE
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from unpooled._wording import counted, printable

WORDS = {
    "describe": "columns, types and levels",
    "collect": "means and spreads of columns",
    "ask": "sums over rows, for the fit",
    "train": "local steps",
    "value": "the objective",
    "spectra": "bounds of the curvature",
    "curve": "bounds of the curvature",
}


class Board:
    """A live table on a terminal; elsewhere a line for each event."""

    def __init__(self, console: Console, sites: tuple[str, ...]):
        self.console = console
        self.states: dict[str, str] = dict.fromkeys(sites, "[dim]waiting[/]")
        self.rows: dict[str, int] = {}
        self.now = "waiting for the sites"
        self.live: Live | None = None

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self.live = Live(self._view(), console=self.console, refresh_per_second=8, transient=False)
            self.live.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self.live is not None:
            self.now = ""
            self.live.update(self._view())
            self.live.__exit__(*exception)

    def see(self, event: str, data: Mapping[str, Any]) -> None:
        """Take in an event."""
        if event == "starting":
            self._line("starting Flower's SuperLink")
        elif event == "joined":
            for site in self.states:
                self.states[site] = "[green]joined[/]" if site in data["sites"] else "[dim]waiting[/]"
            here, wanted = len(data["sites"]), len(data["wanted"])
            self._line(f"{here} of {counted(wanted, 'site')} joined: {', '.join(data['sites']) or 'none'}")
        elif event == "agreed":
            self.rows = dict(data["sites"])
            for site in self.rows:
                self.states[site] = "[green]agreed[/]"
            self._line(f"the sites agree: {counted(sum(self.rows.values()), 'row')}")
        elif event == "asked":
            words = WORDS.get(data["kind"], data["kind"])
            asked = f"{words}, of {counted(data['sites'], 'site')}"
            self._line(f"exchange {data['number']}{_forecast(data)}: {asked}{_times(data)}")
        elif event == "waiting":
            who = ", ".join(data["sites"])
            self._keep(f"no answer from {who} so far, after {data['seconds']:.0f} s")
        elif event == "gone":
            self._all(data["sites"], "[yellow]not connected[/]")
            who, (are, it) = (
                ", ".join(data["sites"]),
                ("is", "it") if len(data["sites"]) == 1 else ("are", "them"),
            )
            self._keep(f"{who} {are} not connected; waiting {data['seconds']:.0f} s for {it} to reconnect")
        elif event == "back":
            self._all(data["sites"], "[green]back[/]")
            self._keep(f"back: {', '.join(data['sites'])}")
        elif event == "lost":
            for site, reason in data["sites"].items():
                self.states[site] = f"[yellow]no answer[/] [dim]{_plain(reason)}[/]"
            who = "; ".join(f"{site} {reason}" for site, reason in data["sites"].items())
            then = f"asking again for {data['seconds']:.0f} s" if data["seconds"] else "going on"
            self._keep(f"{who}; {then}")
        elif event == "left out":
            for site, reason in data["sites"].items():
                self.states[site] = f"[red]left out[/] [dim]{_plain(reason)}[/]"
            self._keep(f"{', '.join(data['sites'])} left out; beginning again with {', '.join(data['left'])}")
        elif event == "note":
            self._keep(str(data["text"]))
        if self.live is not None:
            self.live.update(self._view())

    def _all(self, sites: Iterable[str], state: str) -> None:
        for site in sites:
            self.states[site] = state

    def _line(self, text: str) -> None:
        self.now = printable(text)
        if self.live is None:
            self._keep(text)

    def _keep(self, text: str) -> None:
        """What is to stay on a terminal too, above the table: whatever is not as usual."""
        plain = Text(f"  {printable(text)}")
        self.console.print(plain, soft_wrap=self.live is None)  # the table follows the options

    def _view(self) -> Group:
        table = Table("site", "rows", "", box=SIMPLE, pad_edge=False)
        for site, state in self.states.items():
            table.add_row(f"[bold]{site}[/]", str(self.rows.get(site, "")), state)
        return Group(table, Spinner("dots", Text(self.now)) if self.now else Text(""))


def _plain(reason: Any) -> str:
    return escape(printable(str(reason)))


def _forecast(asked: Mapping[str, Any]) -> str:
    if "expected" not in asked:
        return ""
    is_late = asked["number"] > asked["expected"]
    return f" (about {asked['expected']} were expected)" if is_late else f" of about {asked['expected']}"


def _times(asked: Mapping[str, Any]) -> str:
    """How long the exchanges took so far, and what that makes for those to come."""
    if not asked.get("seconds"):
        return ""
    more = f", about {_lasting(asked['left'])} more" if "left" in asked else ""
    return f"; {_lasting(asked['seconds'])} so far{more}"


def _lasting(seconds: float) -> str:
    for size, unit in ((1.0, "s"), (60.0, "min"), (3600.0, "h")):
        if seconds < 100 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds / 86400:.2g} days"
