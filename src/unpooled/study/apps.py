"""The app that Flower starts for a study: the coordinator's. A site runs none (see ``flower.node``)."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from unpooled.engines.flower.environment import clientapp, serverapp
from unpooled.engines.flower.keyring import read_public
from unpooled.engines.flower.signing import Signatures, Signer
from unpooled.engines.flower.transport import GridTransport
from unpooled.study.config import StoppedError, Study, StudyError, load
from unpooled.study.coordinator import run_study
from unpooled.study.events import EventFile
from unpooled.study.keys import Keys


def signatures(study: Study, keys: str) -> Signatures | None:
    """With which questions are signed and the sites' answers checked; None for a study without keys."""
    if not keys:
        return None
    own = Keys(Path(keys))
    key = serialization.load_pem_private_key(own.key.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)  # see ``keys.check_server``
    public = {site: read_public(own.public(site).read_bytes()) for site in study.sites}
    return Signatures(public, Signer(key, own.certificate.read_bytes()))


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
            signatures=signatures(study, str(config["keys"])),
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
client = clientapp().ClientApp()  # Flower wants one to be named; it answers nothing
