"""The app's folder is what Flower reads, with every kind of setting."""

import tomllib

import pytest

from unpooled.engines.flower.app_folder import write_app

CONFIG = {"out": 'C:\\a "b"\n', "rounds": 3, "lam": 0.1, "ball": float("inf"), "on": True}


def test_settings_are_read_back(tmp_path):
    folder = write_app(tmp_path / "app", "pkg.mod:server", "pkg.mod:client", CONFIG)
    told = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    assert told["components"] == {"serverapp": "pkg.mod:server", "clientapp": "pkg.mod:client"}
    assert told["config"] == CONFIG


def test_what_is_no_setting_is_refused(tmp_path):
    with pytest.raises(TypeError, match="setting sites must be a bool, a number or a string"):
        write_app(tmp_path, "m:server", "m:client", {"sites": ["a"]})
    with pytest.raises(ValueError, match="letters, digits"):
        write_app(tmp_path, "m:server", "m:client", {"a b": 1})
