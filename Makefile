# Two commands work from a clean clone, with Python 3.11 or later and nothing else installed:
#   make demo   installs into .venv, runs two experiments of the paper, says where their reports are
#   make test   installs into .venv and runs linters, type checker and the whole test suite
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint tests clean

demo: .venv/installed
	$(BIN)/unpooled reproduce lasso --quick
	$(BIN)/unpooled reproduce digits --seeds 1

test: lint tests

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

tests: .venv/installed
	$(BIN)/python -m pytest

.venv/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "unpooled needs Python 3.11 or later; set PYTHON=..., e.g. make demo PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

clean:
	rm -rf .venv out .pytest_cache .mypy_cache .ruff_cache
