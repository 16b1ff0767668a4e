"""Clipping: no upload moves the mean by more than its share of the clip."""

import numpy as np
import pytest

from tests.privacy.closed_forms import gaussian_delta
from unpooled import CentralDP, FedAvg
from unpooled.aggregation.privacy.clipping import ClippedMean


def clipped(uploads, clip):
    aggregate, mean = ClippedMean(clip), np.zeros(uploads.shape[1:])
    aggregate.combine(mean, np.full(len(uploads), 1 / len(uploads)), uploads.copy())
    return mean, aggregate


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_vectors_of_an_upload_are_clipped_together(dtype):
    uploads = np.random.default_rng(0).standard_normal((9, 2, 31)).astype(dtype)
    uploads *= np.geomspace(1e-3, 1e3, 9)[:, None, None].astype(dtype)
    norms = np.linalg.norm(uploads.reshape(9, -1).astype(float), axis=1)
    mean, aggregate = clipped(uploads, 4.0)
    wanted = (uploads * np.minimum(1, 4.0 / norms)[:, None, None]).mean(axis=0)
    np.testing.assert_allclose(mean, wanted, rtol=1e-6 if dtype is np.float32 else 1e-11, atol=1e-12)
    assert aggregate.clipped == np.sum(norms > 4.0)
    for upload in uploads:
        assert np.linalg.norm(clipped(upload[None], 4.0)[0]) <= 4.0


def test_what_is_within_the_clip_stays_as_it_is():
    uploads = np.random.default_rng(1).standard_normal((4, 1, 5))
    mean, aggregate = clipped(uploads, 1e6)
    np.testing.assert_allclose(mean, uploads.mean(axis=0), rtol=1e-14)
    assert aggregate.clipped == aggregate.not_finite == 0


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e200])
def test_what_is_not_finite_counts_as_zero(wrong):
    uploads = np.random.default_rng(2).standard_normal((4, 2, 5))
    uploads[2, 1, 3] = wrong
    mean, aggregate = clipped(uploads, 1e6)
    np.testing.assert_allclose(mean, uploads[[0, 1, 3]].sum(axis=0) / 4)
    assert (aggregate.clipped, aggregate.not_finite) == (0, 1)


def test_the_worst_replacement_is_hidden_as_promised():
    """One client turned around moves the mean by 2·clip/S: δ at the reported ε, from the definition."""
    private = CentralDP(clip=0.7, noise_multiplier=3.0, delta=1e-4).open(FedAvg(step=1.0), 8, None, 1, None)
    uploads = 5 * np.random.default_rng(3).standard_normal((8, 1, 6))
    turned = uploads.copy()
    turned[5] *= -1
    moved = np.linalg.norm(clipped(uploads, 0.7)[0] - clipped(turned, 0.7)[0])
    assert moved == pytest.approx(2 * 0.7 / 8, rel=1e-9)
    zero = {"increment": np.zeros(200_000)}
    deviation = private.noised(zero, 0)["increment"].std()
    assert deviation == pytest.approx(3.0 * 0.7 / 8, rel=0.01)
    spent = private.spent(1)
    assert gaussian_delta(spent.epsilon, moved, 3.0 * 0.7 / 8) == pytest.approx(1e-4, rel=1e-3)
