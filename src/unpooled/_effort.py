"""How much is tried, where several parts of the library must know the same number."""

AT_ONCE = 10  # λ of a path that are solved in the same rounds
RESTARTS = 12  # of a run whose step was chosen for it, each with half the step
