"""``unpooled site …``: what a site that takes part in a study types."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table as Shown

from unpooled.study.commands import complaints

if TYPE_CHECKING:
    from unpooled.study.config import Study
    from unpooled.study.table import Table

app = typer.Typer(help="Take part in a study with this site's table.", no_args_is_help=True)
out = Console(highlight=False)

StudyFile = Annotated[Path, typer.Option("--study", help="The study's file.")]
DataFile = Annotated[Path, typer.Option("--data", help="This site's rows: CSV or Parquet.")]
Refuse = Annotated[str, typer.Option(help="Kinds of statistics not to send, such as gram,hessian.")]
