"""JAX with the cohort shared out among as many host devices as there are cores, as no library does."""

from __future__ import annotations

from benchmarks.contenders import jax_scan


class Solver(jax_scan.Solver):
    """A share of the cohort for every core."""

    n_devices = jax_scan.DEVICES
