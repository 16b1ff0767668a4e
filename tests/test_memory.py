"""Memory: a run needs little beside its data."""

import subprocess
import sys

import pytest

# The peak is the kernel's own count for a process of its own (VmHWM), data included.
CODE = """
import numpy as np, unpooled as up
data = up.datasets.sparse_regression(seed=0, n_clients=1000, n_rows=50, n_features=1000, sparsity=20)
problem = up.Problem(up.Squared(), up.L1(0.1))
algorithm = up.FastFedDA(mu=0.1, gamma=800.0, local_steps=5)
run = up.simulate(algorithm, problem, data, rounds=200, cohort=100, batch_size=10)
assert run.status == "completed", run.message
peak = [line for line in open("/proc/self/status") if line.startswith("VmHWM")][0].split()[1]
print(int(peak) * 1024 / data.X.nbytes)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_a_thousand_clients_in_less_than_twice_their_data():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 2.0
