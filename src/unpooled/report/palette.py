"""Colours and dashes: those of the figures, with a counterpart for dark screens."""

from __future__ import annotations

from unpooled.report.plot import STYLES

LINE_WIDTH = 1.8  # px; matplotlib gives dashes in multiples of it
DARK = {
    "#555555": "#B9BDC4",
    "#0072B2": "#4AA3E8",
    "#D55E00": "#F2793B",
    "#009E73": "#2BBF93",
    "#56B4E9": "#A5DAF7",
    "#000000": "#F0E442",
}

COLOURS = [str(style["color"]) for style in STYLES]


def _dash(linestyle: object) -> str:
    if not isinstance(linestyle, tuple):
        return ""
    _, pattern = linestyle
    return " ".join(f"{LINE_WIDTH * length:.3g}" for length in pattern)


DASHES = [_dash(style["linestyle"]) for style in STYLES]


def style(index: int) -> dict[str, object]:
    """Colour and dash of a method. Each pair of the two comes once before any comes again."""
    cycle = index // len(COLOURS)
    return {"colour": index % len(COLOURS), "dash": DASHES[(index + cycle) % len(DASHES)]}


def css() -> str:
    """The colours as custom properties; the dark ones on screens only, so that paper stays white."""
    light = "".join(f"--m{i}:{colour};" for i, colour in enumerate(COLOURS))
    dark = "".join(f"--m{i}:{DARK.get(colour, colour)};" for i, colour in enumerate(COLOURS))
    classes = "".join(f".m{i}{{--method:var(--m{i})}}" for i in range(len(COLOURS)))
    return f":root{{{light}}}@media not print{{:root[data-theme=dark]{{{dark}}}}}{classes}\n"
