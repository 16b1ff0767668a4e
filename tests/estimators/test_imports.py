"""Importing unpooled stays light; the estimators come when they are asked for."""

import subprocess
import sys

import pytest

import unpooled as up


def test_neither_sklearn_nor_numba_comes_with_the_library():
    code = (
        "import sys, unpooled; heavy = ('sklearn', 'numba'); print([m for m in heavy if m in sys.modules]);"
        "from unpooled import FederatedLasso; print(FederatedLasso.__module__, 'sklearn' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:2] == ["[]", "unpooled.estimators.lasso True"]


def test_every_name_can_be_reached():
    for name in up.__all__:
        assert getattr(up, name) is not None
        assert name in dir(up)
    assert set(up.estimators.__all__) - {"FederatedEstimator"} <= set(up.__all__)
    with pytest.raises(AttributeError, match="no attribute 'FederatedRidge'"):
        _ = up.FederatedRidge
