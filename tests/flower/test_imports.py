"""Flower is imported when it is asked for, and missed in words."""

import subprocess
import sys


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_the_library_does_not_import_flower():
    done = python(
        "import sys, unpooled.flower, unpooled.engines.flower.superlink; print('flwr' in sys.modules)"
    )
    assert done.stdout == "False\n", done.stderr


def test_without_flower_it_says_what_to_install():
    blocked = "import sys; sys.modules['flwr'] = None\nfrom unpooled.runs.flower import client_app\n"
    done = python(blocked + "client_app(lambda context: 0)")
    assert "ModuleNotFoundError: Flower is not installed: pip install 'unpooled[flower]'" in done.stderr


def test_every_public_name_is_there():
    done = python("import unpooled.runs.flower as f; [getattr(f, name) for name in f.__all__]; f.no_such")
    assert "module 'unpooled.runs.flower' has no attribute 'no_such'" in done.stderr
