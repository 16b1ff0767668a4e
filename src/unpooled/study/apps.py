"""The two apps that Flower starts for a study: the coordinator's, and a site's, which asks the desk."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

from unpooled.flower.client import answering
from unpooled.flower.installed import serverapp
from unpooled.flower.transport import GridTransport
from unpooled.study.config import StoppedError, StudyError, load
from unpooled.study.coordinator import run_study
from unpooled.study.events import EventFile
from unpooled.study.link import DeskLink


def desk_of(context: Any) -> DeskLink:
    """The desk of the ``site join`` that started this node."""
    return DeskLink(Path(str(context.node_config["desk"])))


def coordinate(grid: Any, context: Any) -> None:
    """Run the study; how it ends is an event, for ``study run`` to tell."""
    config = context.run_config
    watch = EventFile(Path(str(config["events"])), Path(str(config["spare"])))
    try:
        study = load(str(config["study"]))
        transport = GridTransport(
            grid,
            timeout=study.round_timeout,
            quorum=study.minimum_sites if study.is_federated else None,
            grace=study.grace,
            return_seconds=study.grace,
            tell=watch,
        )
        run_study(study, transport, Path(str(config["results"])), resume=bool(config["resume"]), watch=watch)
    except StudyError as error:
        can = isinstance(error, StoppedError)
        watch("failed", {"text": str(error), "resumable": can, "unexpected": False})
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        watch("failed", {"text": text, "resumable": True, "unexpected": True})
        traceback.print_exc()
        raise


server = serverapp().ServerApp()
server.main()(coordinate)
client = answering(desk_of)
