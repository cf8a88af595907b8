# `make` lists the targets. All of them but help and clean first see to .venv, which is rebuilt only when
# pyproject.toml or constraints.txt change.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
TESTARGS ?=
BENCHARGS ?=

# The .venv is ours: let Python keep its bytecode there, whatever the shell says. Imports are three times slower without.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow lab lint bench pins clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

setup: $(READY) ## make .venv with the pinned packages (PYTHON=python3.12 picks the interpreter)
	@echo '.venv is ready'

$(READY): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "setup: $(PYTHON) not found: install Python >= 3.11, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) .ci/setup.py

demo: $(READY) ## run a short batch on the embedded model; results in runs/demo
	$(BIN)/loopkit batch experiments/knights/demo.yaml --out runs/demo

test: $(READY) ## run the tests (TESTARGS="-k store -x" narrows them)
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow" tests $(TESTARGS)

test-slow: $(READY) ## run the others: JupyterLab in a browser, a cluster, processes killed again and again
	$(BIN)/pytest -n 2 --dist loadfile -m slow tests $(TESTARGS)

lab: $(READY) ## open the notebooks in JupyterLab
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) notebooks # root is the usual user in a container

lint: $(READY) ## check style, formatting, and that notebooks are clean
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/loopkit notebooks check

bench: $(READY) ## compare with LangGraph, papermill and plain use (installs the bench extra)
	@$(BIN)/python .ci/setup.py bench
	$(BIN)/python tests/benchmarks/bench_durable.py $(BENCHARGS)
	$(BIN)/python tests/benchmarks/bench_clauses.py
	$(BIN)/python tests/benchmarks/bench_sandbox.py
	$(BIN)/python tests/benchmarks/bench_batch.py

pins: $(READY) ## write constraints.txt anew from pyproject.toml (PINS_FLAGS=--upgrade for newer versions)
	@$(BIN)/python .ci/setup.py pins

clean: ## remove .venv and caches; runs/ is kept, it holds the records
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis *.egg-info build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name .ipynb_checkpoints -type d -prune -exec rm -rf {} +
