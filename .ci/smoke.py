"""What must work on every system after ``pip install .``: an import, an exact answer, a compiled run."""

import sys

import unpooled as up


def main() -> None:
    """Fail where an answer is not what it has to be."""
    data = up.datasets.sparse_regression(seed=0, n_clients=4, n_rows=30, n_features=10, sparsity=3)
    problem = up.Problem(up.Squared(), up.L1(0.1))
    best = up.solve(problem, data)
    assert best.certificate.relative < 1e-6, best.certificate
    run = up.simulate(up.FastFedDA(), problem, data, rounds=50, progress=False)
    assert run.status == "completed", run.message
    reached, least = run.history["objective"][-1], best.certificate.objective
    assert reached < 1.05 * least, (reached, least)
    print(f"unpooled {up.__version__} on {sys.platform}: {reached:.6g}, {least:.6g} exactly")


if __name__ == "__main__":
    main()
