"""Flower's simulation, started and stopped, without the warnings of what it is made of."""

import warnings

from tests.leftovers import leftovers_ignored
from unpooled.engines.flower.environment import be_quiet


def simulated(server, client, nodes):
    be_quiet()
    with warnings.catch_warnings(), leftovers_ignored():
        warnings.simplefilter("ignore")
        from flwr.simulation import run_simulation

        resources = {
            "client_resources": {"num_cpus": 1},
            "init_args": {"num_cpus": 2, "include_dashboard": False},
        }
        run_simulation(server, client, nodes, backend_config=resources)
