PYTHON ?= python3
BIN := .venv/bin
SET_UP := .venv/.set-up

.PHONY: help setup audit serve test lint check bench lock clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: $(SET_UP) ## make the environment (needs the package index once)

$(SET_UP): requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else "voirdire needs Python 3.11, 3.12 or 3.13; set PYTHON=python3.12, say")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

audit: setup ## audit the simulated judges on the bundled questions: offline, no keys
	$(BIN)/voirdire audit

serve: setup ## offer every study in the Prefect UI
	$(BIN)/voirdire serve

test: setup ## run the tests
	$(BIN)/python -m pytest --numprocesses 2

lint: setup ## style, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test ## all that CI checks

bench: setup ## measure start-up, a cold and a second audit, and coverage of the intervals
	$(BIN)/python benchmarks/audit.py
	$(BIN)/python benchmarks/coverage.py

lock: ## write requirements.txt anew, with hashes and without index addresses
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --output-file requirements.txt

clean: ## remove the environment
	rm -rf .venv
