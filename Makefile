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

.PHONY: demo serve test test-fast stress lint bench docs release-check lock clean help

help:
	@echo "make demo           install and run the main job on built-in data (about a minute)"
	@echo "make serve          start the service with the starter classes; the page is at http://127.0.0.1:8765"
	@echo "make test           install, lint, check types, run all tests, doctests and notebooks"
	@echo "make test-fast      the tests that are not marked slow, without lint"
	@echo "make stress         all kills, races, load and mutations (CI does a tenth)"
	@echo "make lint           ruff, import layers, mypy"
	@echo "make bench          benchmarks, as ratios in one run (an hour with the peers; BENCH=routing runs one)"
	@echo "make docs           build the documentation into site/"
	@echo "make release-check  build sdist and wheel, install the wheel into a clean environment, run the README's example"
	@echo "make lock           write requirements*.lock anew after a change of constraints.txt"
	@echo "make clean          remove what these targets made (.venv, caches, site/, dist/, runs/demo)"

$(VENV)/created:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dmin needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

# torch goes first and by its version alone, because its build depends on the machine (CPU, CUDA). All the rest are exact
# files, known by their SHA-256. With TORCH= the digests cannot hold: versions only.
$(VENV)/installed: pyproject.toml requirements.lock $(VENV)/created
ifeq ($(TORCH),)
	$(BIN)/python -m pip install --quiet $(shell grep '^torch==' constraints.txt)
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
else
	@echo "TORCH=$(TORCH): installing by version, without digests"
	@grep -v '^torch==' constraints.txt > $(VENV)/constraints.txt
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet --constraint $(VENV)/constraints.txt --editable '.[serve,train]'
endif
	@touch $@

$(VENV)/developed: $(VENV)/installed requirements-dev.lock
ifeq ($(TORCH),)
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps --requirement requirements-dev.lock
else
	$(BIN)/python -m pip install --quiet --constraint $(VENV)/constraints.txt --editable '.[dev]'
endif
	@touch $@

lock: $(VENV)/developed
	$(BIN)/python -m tools.lock

demo: $(VENV)/installed
	$(BIN)/dmin demo

serve: $(VENV)/installed
	$(BIN)/dmin serve --examples starter --per-class 5

# Everything that make test does a tenth of: kills, clients at once, fuzzing, examples of Schemathesis.
stress: $(VENV)/developed
	DMIN_STRESS=1 $(BIN)/python -m pytest tests/fuzz tests/files tests/classifier tests/test_crashes.py tests/encoder tests/server

lint: $(VENV)/developed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile $(TESTS)

test-fast: $(VENV)/developed
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow" $(TESTS)

bench: $(VENV)/developed
	$(BIN)/python -m benchmarks $(BENCH)

docs: $(VENV)/developed
	$(BIN)/mkdocs build --strict

release-check: $(VENV)/developed
	$(BIN)/python -m tools.release_check

clean:
	rm -rf $(VENV) .venv-peers .venv-peers-fastfit .venv-peers-bertopic .venv-peers-fastembed site dist runs/demo .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} +
