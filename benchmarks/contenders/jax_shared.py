"""JAX with the cohort shared out among host devices, which XLA has to be told to make: one for every core."""

from __future__ import annotations

from benchmarks.contenders import jax_scan


class Solver(jax_scan.Solver):
    """A share of the cohort for every core."""

    n_devices = jax_scan.DEVICES
