# Each target builds what it needs by itself: .venv, the package and its exact dependencies (constraints.txt).
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Another torch build, given as pip takes it: make demo TORCH=torch==2.6.0
TORCH  ?=
# Passed on to pytest: make test TESTS="tests/test_routing.py -x"
TESTS  ?= tests
# Some benchmarks only: make bench BENCH="routing encoder"
BENCH  ?=

.PHONY: demo serve test stress lint bench docs clean help

help:
	@echo "make demo   install and run the main job on built-in data (about a minute)"
	@echo "make serve  start the service with the starter classes and open http://127.0.0.1:8765"
	@echo "make stress all kills, load and fuzzing of the service (many minutes)"
	@echo "make test   install, lint, check types, run the tests"
	@echo "make lint   ruff, import layers, mypy"
	@echo "make bench  benchmarks, as ratios in one run (an hour with the peers; BENCH=routing runs one)"
	@echo "make docs   build the documentation into site/"
	@echo "make clean  remove what these targets made (.venv, caches, site/, runs/demo)"

CONSTRAINTS := $(if $(TORCH),$(VENV)/constraints.txt,constraints.txt)

$(VENV)/created:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dmin needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

# torch goes first and alone: its exact build must be there before a package asks for "some torch".
$(VENV)/installed: pyproject.toml constraints.txt $(VENV)/created
	@if [ -n "$(TORCH)" ]; then grep -v '^torch==' constraints.txt > $(VENV)/constraints.txt; fi
	$(BIN)/python -m pip install --quiet $(or $(TORCH),$(shell grep '^torch==' constraints.txt))
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) --editable '.[serve]'
	@touch $@

$(VENV)/developed: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) --editable '.[dev]'
	@touch $@

demo: $(VENV)/installed
	$(BIN)/dmin demo

serve: $(VENV)/installed
	$(BIN)/dmin serve --examples starter --per-class 5

# Everything that make test does a tenth of: kills, clients at once, fuzzing, examples of Schemathesis.
stress: $(VENV)/developed
	DMIN_STRESS=1 $(BIN)/python -m pytest tests/server

lint: $(VENV)/developed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile $(TESTS)

bench: $(VENV)/developed
	$(BIN)/python -m benchmarks $(BENCH)

docs: $(VENV)/developed
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) .venv-peers .venv-peers-fastfit site runs/demo .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
