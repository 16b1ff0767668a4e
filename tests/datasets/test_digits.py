import numpy as np
from sklearn.datasets import load_digits

from unpooled.data.datasets import digits_by_form


def test_digits_by_form():
    data, digits = digits_by_form(), load_digits()
    assert data.n_clients == 14
    assert (data.ids[0], data.ids[-1]) == ("form-00", "form-13")
    assert (data.sizes.min(), data.sizes.max()) == (122, 130)
    np.testing.assert_array_equal(data.X * 16, digits.data)
    np.testing.assert_array_equal(data.y, digits.target)
    assert data.feature_names[9] == "pixel_1_1"


def test_every_form_begins_with_the_same_run_of_digits():
    for client in digits_by_form():
        expected = (np.arange(10) + client.y[0]) % 10  # one form has lost its first 0
        np.testing.assert_array_equal(client.y[:10], expected)
        assert client.y[0] in (0, 1)
