"""What leaves a site has a name that people read."""

import numpy as np

import unpooled as up
from unpooled._ledger import WORDS, in_words


def test_each_once_and_unknown_ones_as_they_are():
    assert in_words(["offset", "mean_x", "gram", "class labels"]) == "class labels, column means, Gram matrix"


def test_every_statistic_of_a_fit_has_words():
    rng = np.random.default_rng(0)
    X, site = rng.normal(size=(120, 4)), np.arange(120) % 3
    y = X[:, 0] + rng.normal(size=120)
    fits = [
        up.FederatedLasso(0.1, standardise=True, site_intercepts=True).fit(X, y, clients=site),
        up.FederatedLassoCV(second_order=False, n_alphas=3, tol=1e-5).fit(X, y, clients=site),
        up.FederatedLogisticRegression().fit(X, y > 0, clients=site),
    ]
    kinds = {kind for fit in fits for kind in fit.ledger_.kinds}
    assert kinds - {"class labels", "class weights"} <= WORDS.keys()
    assert "left the sites: class labels" in fits[2].summary()
