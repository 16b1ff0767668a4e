"""Several ledgers as one."""

from __future__ import annotations

from unpooled.ledger import Ledger


def together(*ledgers: Ledger) -> Ledger:
    """What crossed the network in all of them."""
    names = ("rounds", "setup_rounds", "client_updates", "floats_up", "floats_down", "bytes_up", "bytes_down")
    sums = {name: sum(getattr(ledger, name) for ledger in ledgers) for name in names}
    return Ledger(**sums, kinds=tuple(sorted({kind for ledger in ledgers for kind in ledger.kinds})))
