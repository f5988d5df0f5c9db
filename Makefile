# make demo: evaluate the bundled questions with three simulated models. make test: all checks and tests.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
MODULE := eval_pipeline.definitions
QUIET := --quiet --disable-pip-version-check

.PHONY: setup toolchains packages browser demo dev test soak cluster-test inspect-test validate check bench docs lock clean

setup: $(READY)

$(READY): requirements.lock pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' \
	  || { echo "Python 3.11, 3.12 or 3.13 is needed: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
	  || { echo "No virtual environment could be made; on Debian: apt-get install python3-venv"; exit 1; }
	@# First uv, which the lock has too; where it can not reach a package index as pip can, pip.
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > $(VENV)/uv.lock
	$(BIN)/python -m pip install $(QUIET) --require-hashes -r $(VENV)/uv.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --compile-bytecode -r requirements.lock \
	  || $(BIN)/python -m pip install $(QUIET) --require-hashes -r requirements.lock
	$(BIN)/python -m pip install $(QUIET) --no-deps --no-build-isolation --editable .
	@# `dagster asset materialize` looks for its code in DAGSTER_MODULE_NAME, `dagster dev` in
	@# pyproject.toml, and the latter fails if the former is set: so the command itself sees to it,
	@# and keeps still about Dagster's plans to rename its commands. Schedules and sensors are found
	@# through DAGSTER_HOME alone, which is the project root.
	@printf '%s\n' '#!/bin/sh' \
	  'case "$$1" in schedule|sensor|run|instance) test -e dagster.yaml && export DAGSTER_HOME="$${DAGSTER_HOME:-$$PWD}";; esac' \
	  'test "$$1" = dev || export DAGSTER_MODULE_NAME="$${DAGSTER_MODULE_NAME:-$(MODULE)}"' \
	  'exec "$$(dirname "$$0")/python" -W ignore:Function -m dagster "$$@"' > $(BIN)/dagster
	@touch $@

# What code is graded with: system packages (the sandbox, npm), and tools that are fetched once.
toolchains: $(READY) packages
	@$(BIN)/evals toolchain prepare

MISSING = $(if $(shell command -v bwrap),,bubblewrap) $(if $(shell command -v npm),,npm)
packages:
	@test -z "$(strip $(MISSING))" || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null \
	  && apt-get update -qq && apt-get install -y -qq --no-install-recommends $(MISSING); } \
	  || { echo "Code can not be graded without $(strip $(MISSING)); on Debian: apt-get install $(strip $(MISSING))"; exit 1; }

demo: toolchains
	@$(BIN)/evals run
	@$(BIN)/evals leaderboard

dev: $(READY)
	$(BIN)/dagster dev

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

# Of the coding tasks, those that have changed; where nobody can tell, one of each category.
BASE := $(shell git rev-parse --quiet --verify HEAD~1 2>/dev/null)

# The UI is tested in a browser; where none can be had, these tests are skipped and say so.
browser: packages
	@command -v chromium > /dev/null || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null \
	  && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } \
	  || echo "Without chromium, the tests in a browser are skipped; on Debian: apt-get install chromium"

# Types are checked while toolchains and the browser are fetched: whichever fails, fails the tests.
# Four at a time on two cores: many tests wait for processes, dozens of which would otherwise
# compile all modules anew where the environment forbids to keep that. Left to itself, xdist begins
# with the files that have most tests and not, as conftest.py says, with those that take longest.
test soak cluster-test: export PYTHONDONTWRITEBYTECODE =
test: $(READY)
	@$(MAKE) --no-print-directory -j 2 check toolchains browser
	$(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder
	$(BIN)/evals validate-answers $(if $(BASE),--changed $(BASE),--filter /001-)

# What takes longest of the tests, and what only shows in many rounds: CI runs it after `make test`.
soak: $(READY) toolchains browser
	$(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder -m slow

# PostgreSQL, Redis, workers, one of them killed: minutes, so not part of the tests (docs/scale.md).
# Dagster's processes have an environment of their own, as in a deployment.
CLUSTER := .venv-cluster
SERVERS = $(if $(wildcard /usr/lib/postgresql/*/bin/postgres),,postgresql) $(if $(shell command -v redis-server),,redis-server)
cluster-test: $(READY) $(CLUSTER)/.ready
	@test -z "$(strip $(SERVERS))" || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null \
	  && apt-get update -qq && apt-get install -y -qq --no-install-recommends $(SERVERS); } \
	  || { echo "A cluster needs $(strip $(SERVERS)); on Debian: apt-get install $(strip $(SERVERS))"; exit 1; }
	$(BIN)/pytest -m cluster -s eval_pipeline_tests/test_cluster.py

$(CLUSTER)/.ready: $(READY) deploy/requirements.lock
	@test -x $(CLUSTER)/bin/python || $(PYTHON) -m venv --without-pip $(CLUSTER)
	$(BIN)/uv pip install --quiet --python $(CLUSTER)/bin/python --require-hashes --compile-bytecode -r deploy/requirements.lock
	@touch $@

# What `evals export inspect` writes, read by Inspect itself and looked at in its viewer. It brings some 80
# packages, which stay apart: nothing here needs them to run.
INSPECT := .venv-inspect
inspect-test: $(READY) browser
	@test -x $(INSPECT)/bin/python || $(PYTHON) -m venv --without-pip $(INSPECT)
	$(BIN)/uv pip install --quiet --python $(INSPECT)/bin/python inspect-ai
	$(BIN)/pytest -m inspect eval_pipeline_tests/test_inspect_view.py

# Every answer of every coding task: minutes, so not part of the tests.
validate: toolchains
	$(BIN)/evals validate-answers

# For example: make bench BENCH_ARGS="asking crash --repetitions 5"; docs/benchmarks.md explains it.
bench: $(READY)
	$(BIN)/python -m bench $(BENCH_ARGS)

docs: $(READY)
	$(BIN)/evals schema > docs/schema.md

# Renews the lock; hashes only, so that it installs from whatever index the machine uses.
lock: $(READY)
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --no-strip-extras \
	  --no-emit-index-url --no-header --upgrade --output-file requirements.lock
	$(BIN)/uv pip compile pyproject.toml --extra postgres --extra celery --extra k8s --extra docker --universal --python-version 3.11 \
	  --generate-hashes --no-strip-extras --no-emit-index-url --no-header --upgrade -c requirements.lock --output-file deploy/requirements.lock

clean:
	rm -rf $(VENV) $(CLUSTER) $(INSPECT) .mypy_cache .pytest_cache .ruff_cache
