# Two commands work from a clean clone, with Python 3.11 or later and nothing else installed:
#   make demo   installs into .venv, runs two experiments of the paper, says where their reports are
#   make test   installs into .venv and runs linters, type checker and the whole test suite
# and one for the inner loop, which is the first half of the tests of make test:
#   make quick  runs every test that is not marked slow; a new test file is in it unless it is marked
# and one that measures, with its peers (2 GB) in an environment of their own:
#   make bench  installs into .venv-bench, prints a table of ratios and writes it to out/bench
#               (BENCH="--quick", BENCH="--only speed", BENCH="--data …", see docs/performance.md)
# and one that checks what confidence intervals promise, on 500 data sets each:
#   make check-statistics  prints coverage, false discoveries and rejections of the tests of sites
PYTHON ?= python3
BIN := .venv/bin
# On Linux, PyPI's PyTorch brings CUDA along (gigabytes); TORCH=--extra-index-url=… the one for CPUs only.
TORCH ?=
BENCH ?=

.PHONY: demo test lint quick rest bench check-statistics clean

demo: .venv/installed
	$(BIN)/unpooled reproduce lasso --quick
	$(BIN)/unpooled reproduce digits --seeds 1

test: lint quick rest  # each test once: quick and rest share no test

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

PYTEST = $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

quick: .venv/installed
	$(PYTEST) -m "not slow and not statistics"

rest: .venv/installed
	$(PYTEST) -m "slow and not statistics"

check-statistics: .venv/installed
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -s -m statistics tests/inference/test_statistics.py

bench: .venv-bench/installed
	.venv-bench/bin/python -m pytest -q -W default::DeprecationWarning tests/benchmarks  # of the peers' pins
	.venv-bench/bin/python -m benchmarks $(BENCH)

.venv/installed: EXTRA = dev
.venv-bench/installed: EXTRA = bench
.venv/installed .venv-bench/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "unpooled needs Python 3.11 or later; set PYTHON=..., e.g. make demo PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH) --editable '.[$(EXTRA)]'
	@touch $@

clean:
	rm -rf .venv .venv-bench out .pytest_cache .mypy_cache .ruff_cache
