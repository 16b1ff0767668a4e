"""What the rows have to reach."""

from __future__ import annotations

from benchmarks.row import Target

AT_MOST = {"at_least": False}

# Times as fast as a contender on float32 data, by shape and contender.
SPEED = {
    ("lasso", "NumPy loop"): Target(5),
    ("low rank", "NumPy loop"): Target(3),
    ("EMNIST-10", "NumPy loop"): Target(6),
    ("EMNIST-10", "JAX"): Target(3.5),
    ("EMNIST-62", "NumPy loop"): Target(5),
    ("EMNIST-62", "JAX"): Target(3),
}
SHARE_OF_PEAK = {"EMNIST-62": Target(0.45)}  # of sgemm, full float32, all threads
EFFICIENCY = Target(0.85)  # of two threads
IDENTICAL = Target(1)
IMPORT = Target(0.5, **AT_MOST)  # seconds
WARM_FIT = Target(1, **AT_MOST)
COLD_FIT = Target(15, **AT_MOST)

# Times as fast as a peer on the pooled rows, by the number of features: a third of celer's speed.
EXACT = {(20_000, "celer"): Target(1 / 3)}

# Times as many rounds as without a guard; least squares, which then takes one round, misses it.
SMALL_SITES = Target(3, **AT_MOST)
