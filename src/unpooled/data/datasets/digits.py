"""Handwritten digits that scikit-learn ships, cut by the form they were written on: real clients."""

from __future__ import annotations

import numpy as np

from unpooled.data.federated import FederatedData

# The first row of each form. The digits are stored in the order of the forms, and each form repeats the
# same sequence of digits.
FORM_STARTS = (0, 130, 256, 386, 516, 646, 776, 906, 1029, 1157, 1287, 1415, 1545, 1667)


def digits_by_form() -> FederatedData:
    """1797 images of 8×8 pixels, X (1797, 64) in [0, 1] and y in 0 … 9; 14 clients "form-00" … "form-13"."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    sizes = np.diff([*FORM_STARTS, len(digits.target)])
    clients = np.repeat([f"form-{k:02d}" for k in range(len(FORM_STARTS))], sizes)
    return FederatedData.from_arrays(
        digits.data / 16, digits.target, clients, feature_names=digits.feature_names
    )
