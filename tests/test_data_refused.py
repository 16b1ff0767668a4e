"""Bad data is refused at the entrance, naming client, row and column."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tests.clients import Constructor, frame, pooled
from unpooled.data.federated import FederatedData


@pytest.fixture(params=["arrays", "clients", "frame"])
def build(request):
    return Constructor(request.param)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("i", range(8))
def test_values_that_are_not_finite_are_named(build, bad, i):
    X, y, clients = pooled()
    where = f"client '{clients[i]}', row {build.row(clients, i)}"
    broken = X.copy()
    broken[i, 1] = bad
    with pytest.raises(ValueError, match=f"X must be finite: {where}, column 'dose' holds {bad}"):
        build(broken, y, clients)
    broken = y.copy()
    broken[i] = bad
    with pytest.raises(ValueError, match=f"y must be finite: {where} holds {bad}"):
        build(X, broken, clients)
    with pytest.raises(ValueError, match=f"sample_weight must be finite: {where} holds {bad}"):
        build(X, y, clients, np.where(np.arange(8) == i, bad, 1.0))


def test_csr_value_that_is_not_finite_is_named():
    X, y, clients = pooled()
    X[0, :2], X[5, 2] = 0, np.nan
    with pytest.raises(ValueError, match=f"client '{clients[5]}', row 5, column 2 holds nan"):
        FederatedData.from_arrays(sparse.csr_array(X), y, clients)


def test_negative_and_vanishing_sample_weights_are_named(build):
    X, y, clients = pooled()
    where = f"client '{clients[6]}', row {build.row(clients, 6)}"
    with pytest.raises(ValueError, match=f"must not be negative: {where} holds -0.5"):
        build(X, y, clients, np.where(np.arange(8) == 6, -0.5, 1.0))
    with pytest.raises(ValueError, match="the sample weights of client 'b' sum to zero"):
        build(X, y, clients, np.where(clients == "b", 0.0, 1.0))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_a_missing_client_id_is_named(missing):
    clients = np.array(["a", "b", missing, "a"], dtype=object)
    with pytest.raises(ValueError, match=r"client id is missing .* at row 2"):
        FederatedData.from_arrays(np.zeros((4, 1)), np.zeros(4), clients)
    with pytest.raises(ValueError, match=r"client id is missing .* at client 2"):
        FederatedData.from_clients([(np.zeros((1, 1)), [0])] * 4, ids=["a", "b", missing, "c"])
    frame = pd.DataFrame({"x": np.zeros(4), "y": np.zeros(4), "site": clients})
    with pytest.raises(ValueError, match=r"client id is missing .* at row 2"):
        FederatedData.from_frame(frame, "y", "site")


def test_ids_that_cannot_be_sorted_are_refused():
    X, y = np.zeros((4, 1)), np.zeros(4)
    with pytest.raises(TypeError, match="row 0 has type int, row 2 has type str"):
        FederatedData.from_arrays(X, y, [1, 1, "a", 2])
    with pytest.raises(TypeError, match=r"must be integers or strings; row 1 has 0.5"):
        FederatedData.from_arrays(X, y, [1, 0.5, 2, 2])
    with pytest.raises(ValueError, match=r"one id per row, got an array of shape \(4, 1\)"):
        FederatedData.from_arrays(X, y, np.zeros((4, 1), dtype=int))


def test_lengths_shapes_and_empty_data_are_refused():
    X, y, clients = pooled()
    with pytest.raises(ValueError, match="X has 8 rows but y has 7"):
        FederatedData.from_arrays(X, y[:7], clients)
    with pytest.raises(ValueError, match="X has 8 rows but clients has 7"):
        FederatedData.from_arrays(X, y, clients[:7])
    with pytest.raises(ValueError, match="X has 8 rows but sample_weight has 1"):
        FederatedData.from_arrays(X, y, clients, [1.0])
    with pytest.raises(ValueError, match=r"y must have one dimension, got shape \(8, 2\)"):
        FederatedData.from_arrays(X, X[:, :2], clients)
    with pytest.raises(ValueError, match=r"X must have shape .* got \(8,\)"):
        FederatedData.from_arrays(y, y, clients)
    with pytest.raises(ValueError, match=r"X has no columns: its shape is \(8, 0\)"):
        FederatedData.from_arrays(X[:, :0], y, clients)
    with pytest.raises(ValueError, match="the data has no rows"):
        FederatedData.from_arrays(X[:0], y[:0], clients[:0])
    with pytest.raises(ValueError, match="2 feature names for 3 columns of X"):
        FederatedData.from_arrays(X, y, clients, feature_names=["a", "b"])
    with pytest.raises(ValueError, match=r"truth has shape \(4,\), but a row of X has shape \(3,\)"):
        FederatedData.from_arrays(X, y, clients, truth=np.ones(4))


def test_data_that_is_not_numeric_is_refused():
    X, y, clients = pooled()
    mixed = X.astype(object)
    mixed[4, 2] = "tall"
    with pytest.raises(TypeError, match="X must be numeric: column 2 holds 'tall'"):
        FederatedData.from_arrays(mixed, y, clients)
    with pytest.raises(TypeError, match="column 'size' holds 'tall'"):
        FederatedData.from_arrays(mixed, y, clients, feature_names=["age", "dose", "size"])
    with pytest.raises(TypeError, match="X of client 0 must be numeric: column 2 holds 'tall'"):
        FederatedData.from_clients([(mixed, y)])
    with pytest.raises(TypeError, match=r"dtype object: convert it with astype\(float\)"):
        FederatedData.from_arrays(X.astype(object), y, clients)
    with pytest.raises(TypeError, match="complex128"):
        FederatedData.from_arrays(X + 0j, y, clients)
    with pytest.raises(TypeError, match="masked"):
        FederatedData.from_arrays(np.ma.masked_less(X, 0), y, clients)
    first = clients[np.argmin(clients)]
    row = int(np.argmax(clients == first))
    with pytest.raises(TypeError, match=f"client '{first}', row {row} holds 'yes': encode classes"):
        FederatedData.from_arrays(X, np.repeat("yes", 8), clients)
    with pytest.raises(TypeError, match="client 7, row 1 holds None"):
        FederatedData.from_clients({7: (np.zeros((2, 1)), [1, None])})


def test_a_target_too_large_for_float32_is_refused():
    with pytest.raises(ValueError, match=r"y must be finite: client 0, row 1 holds 1e\+300"):
        FederatedData.from_arrays(np.zeros((2, 1), "f4"), [0, 1e300], [0, 0])
    data = FederatedData.from_arrays(np.array([[1.0], [1e300]]), [0, 0], ["a", "b"])
    with pytest.raises(ValueError, match="client 'b', row 0, column 0"):
        data.astype(np.float32)


def test_clients_that_do_not_fit_together_are_named():
    a, b = (np.zeros((2, 3)), np.zeros(2)), (np.zeros((2, 4)), np.zeros(2))
    with pytest.raises(ValueError, match="client 'p' has 3 columns but client 'q' has 4 columns"):
        FederatedData.from_clients({"q": b, "p": a})
    with pytest.raises(ValueError, match="client 'p': X has 2 rows but y has 3"):
        FederatedData.from_clients({"p": (np.zeros((2, 3)), np.zeros(3))})
    with pytest.raises(ValueError, match="client 'p': X has 2 rows but sample_weight has 1"):
        FederatedData.from_clients({"p": (*a, [1.0])})
    with pytest.raises(ValueError, match="client 'q' has no rows"):
        FederatedData.from_clients({"p": a, "q": (np.zeros((0, 3)), [])})
    with pytest.raises(ValueError, match="client 'p' has no sample weights but client 'q' has some"):
        FederatedData.from_clients({"p": a, "q": (*a, [1, 1])})
    with pytest.raises(TypeError, match="client 'p' has a dense X but client 'q' has a sparse X"):
        FederatedData.from_clients({"p": a, "q": (sparse.csr_array(a[0]), a[1])})
    with pytest.raises(ValueError, match="client id 'p' is given twice"):
        FederatedData.from_clients([a, a], ids=["p", "p"])
    with pytest.raises(ValueError, match="1 ids for 2 clients"):
        FederatedData.from_clients([a, a], ids=["p"])
    with pytest.raises(ValueError, match="no clients"):
        FederatedData.from_clients([])
    with pytest.raises(ValueError, match="keys of the mapping"):
        FederatedData.from_clients({"p": a}, ids=["p"])
    with pytest.raises(TypeError, match=r"client 0 must be \(X, y\) or"):
        FederatedData.from_clients([a[0]])
    frames = [(pd.DataFrame(np.zeros((2, 2)), columns=list(names)), [0, 1]) for names in ("uv", "vu")]
    with pytest.raises(ValueError, match="columns of X of client 1 are 'v', 'u'; expected 'u', 'v'"):
        FederatedData.from_clients(frames)


def test_frame_errors_name_columns():
    with pytest.raises(TypeError, match=r"encode or leave out 'sex' \(.*\), 'day' \(datetime64"):
        FederatedData.from_frame(frame(), "age", "site")
    with pytest.raises(ValueError, match="no column 'out'; it has 'age', 'dose', 'sex', 'day', 'site'"):
        FederatedData.from_frame(frame(), "out", "site")
    with pytest.raises(ValueError, match="no column 'clinic'; it has 'age'"):
        FederatedData.from_frame(frame(), "age", "clinic")
    with pytest.raises(ValueError, match="no feature 'does'; closest: 'dose'"):
        FederatedData.from_frame(frame(), "age", "site", features=["does"])
    with pytest.raises(ValueError, match="target 'age' is also among the features"):
        FederatedData.from_frame(frame(), "age", "site", features=["age", "dose"])
    with pytest.raises(TypeError, match="features must be a list of columns, got the single string 'dose'"):
        FederatedData.from_frame(frame(), "age", "site", features="dose")
    with pytest.raises(ValueError, match="feature 'dose' occurs twice"):
        FederatedData.from_frame(frame(), "age", "site", features=["dose", "dose"])
    with pytest.raises(ValueError, match="no features besides 'age', 'site'"):
        FederatedData.from_frame(frame()[["age", "site"]], "age", "site")


def test_unknown_client_is_answered_with_the_closest():
    data = FederatedData.from_arrays(np.zeros((3, 1)), np.zeros(3), ["north", "south", "east"])
    assert data.index("south") == 2
    with pytest.raises(ValueError, match="no client 'nort' among the 3; closest: 'north'"):
        data.client("nort")
    with pytest.raises(TypeError, match="ids must be a list of clients, got the single string 'south'"):
        data.subset("south")
    with pytest.raises(ValueError, match=r"no client 'zz' among the 3$"):
        data.index("zz")
    numbered = FederatedData.from_arrays(np.zeros((3, 1)), np.zeros(3), [5, 6, 7])
    assert numbered.index(np.int64(6)) == 1
    with pytest.raises(ValueError, match="no client '6' among the 3; closest: 6"):
        numbered.index("6")
