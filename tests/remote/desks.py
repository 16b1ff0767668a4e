"""Federations whose rows are at desks in this process, and a transport on which things go wrong."""

import unpooled as up
from unpooled.engines.ray.shares import shares
from unpooled.engines.remote.client_server import ClientServer
from unpooled.engines.remote.data import RemoteData
from unpooled.engines.remote.messages import Direct, Failure


def apart(data, **options):
    """Each client at a desk of its own."""
    return RemoteData.of(desks(data), weights=options.pop("weights", data.weights), **options)


def desks(data, **options):
    parts = shares(data, data.n_clients) if len(set(data.sizes.tolist())) == 1 else _one_each(data)
    return Direct({f"site {part.ids[0]}": ClientServer(part, **options) for part in parts})


def scattered(data, count=3):
    """Several clients at each desk, no two of them neighbours."""
    groups = [data.ids[first::count] for first in range(count)]
    return Direct({f"desk {i}": ClientServer(data.subset(group)) for i, group in enumerate(groups)})


def _one_each(data):
    return [up.FederatedData.from_clients({client.id: _rows(client)}) for client in data]


def _rows(client):
    return (
        (client.X, client.y) if client.sample_weight is None else (client.X, client.y, client.sample_weight)
    )


class Faulty:
    """Passes requests on to another transport; ``fault(holder, request, reply)`` may change the reply."""

    def __init__(self, transport, fault):
        self.transport = transport
        self.fault = fault
        self.asked = []

    def holders(self):
        return self.transport.holders()

    def exchange(self, requests):
        self.asked += [(holder, request.kind) for holder, request in requests.items()]
        replies = self.transport.exchange(requests)
        return {h: self.fault(h, requests[h], reply) for h, reply in replies.items()}

    def close(self):
        self.transport.close()


def silent(name, kind="train", first=0, times=10**9):
    """A fault: from its request number ``first`` on, ``times`` times, a holder does not answer."""
    count = {"seen": 0}

    def fault(holder, request, reply):
        if holder != name or request.kind != kind:
            return reply
        count["seen"] += 1
        return Failure("its line is dead") if first < count["seen"] <= first + times else reply

    return fault
