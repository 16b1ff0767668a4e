"""What Ray leaves to Python's garbage collector: processes not waited for, files not closed."""

import contextlib
import gc
import warnings


@contextlib.contextmanager
def leftovers_ignored():
    """Collects them here, so that no warning of them falls on a later test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()
