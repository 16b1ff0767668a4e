"""Groups: how they are given, what is refused, how they print."""

import numpy as np
import pytest

from unpooled.penalties import GroupL2


def test_ways_to_give_the_same_groups():
    w = np.arange(1.0, 7.0)
    expected = np.hypot(1, 4) + np.hypot(2, 5) + np.hypot(3, 6)
    for groups in (
        [0, 1, 2, 0, 1, 2],
        np.array([7, 8, 9, 7, 8, 9]),
        ["x", "y", "z", "x", "y", "z"],
        [[0, 3], [1, 4], [2, 5]],
        (np.array([2, 5]), np.array([0, 3]), [4, 1]),
    ):
        assert GroupL2(1.0, groups).norm(w) == pytest.approx(expected)
        assert GroupL2(groups=groups, lam=1.0) == GroupL2(1.0, groups)


def test_labels_of_features_span_classes():
    W = np.arange(12.0).reshape(4, 3)
    rows, whole = GroupL2(1.0, [0, 1, 0, 1]), GroupL2(1.0, np.repeat([[0], [1], [0], [1]], 3, axis=1))
    expected = np.linalg.norm(W[::2]) + np.linalg.norm(W[1::2])
    assert rows.norm(W) == pytest.approx(expected)
    assert whole.norm(W) == pytest.approx(expected)
    assert whole.with_lam(2.0).norm(W) == pytest.approx(expected)
    np.testing.assert_allclose(rows.prox(W, 3.0), whole.prox(W, 3.0))
    out = np.empty(12)
    rows.record((4, 3), "F").prox(W.ravel("F"), 3.0, out)
    np.testing.assert_allclose(out.reshape((4, 3), order="F"), rows.prox(W, 3.0))


def test_weights_follow_the_sorted_labels():
    w = np.array([3.0, 4.0, 1.0])
    labels = ["b", "b", "a"]
    assert GroupL2(1.0, labels, [10.0, 1.0]).norm(w) == pytest.approx(10 * 1 + 5)
    assert GroupL2(1.0, labels, "sqrt").norm(w) == pytest.approx(1 + 5 * np.sqrt(2))
    assert GroupL2(1.0, labels, [10.0, 1.0]).dual_norm(w) == pytest.approx(5.0)
    assert GroupL2(1.0, [0, 0], "sqrt").norm(np.ones((2, 3))) == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        ([[0, 1], [1, 2]], "index 1 is in group 0 and in group 1"),
        ([[0, 1], [3]], "index 2 is in no group"),
        ([[0, 1], []], "group 1 is"),
        ([[0, 1], [-2]], "group 1 is"),
        ([[0, 0.5], [1]], "group 0 is"),
        ([], "groups is empty"),
        ([0.0, np.nan], "integers or strings"),
    ],
)
def test_refuses_groups(groups, match):
    with pytest.raises(ValueError, match=match):
        GroupL2(1.0, groups)


@pytest.mark.parametrize("weights", ["cube", [1.0], [1.0, 0.0], [1.0, -1.0], [1.0, np.nan]])
def test_refuses_weights(weights):
    with pytest.raises(ValueError, match="weights"):
        GroupL2(1.0, [0, 1, 1], weights)


def test_refuses_other_shapes():
    for shape in [(3,), (5,), (3, 4), (2, 2)]:
        with pytest.raises(ValueError, match=r"groups cover coefficients of shape \(4,\)"):
            GroupL2(1.0, [0, 1, 0, 1]).prox(np.ones(shape), 1.0)


def test_prints_short():
    assert repr(GroupL2(0.5, [0, 1, 1])) == "GroupL2(lam=0.5, groups=[0, 1, 1], weights=None)"
    assert (
        repr(GroupL2(0.5, [[0, 2], [1]], "sqrt")) == "GroupL2(lam=0.5, groups=[[0, 2], [1]], weights='sqrt')"
    )
    assert len(repr(GroupL2(0.5, np.arange(1000), np.ones(1000)))) < 100
