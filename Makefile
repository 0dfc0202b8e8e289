# Every target does its own set-up: on a fresh clone `make test` alone installs everything and runs.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
# What one process has compiled the next ones load, whatever the environment says: the suite starts hundreds.
export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/pycache
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test coverage lint types bench control-plane requirements generate clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/installed ## make .venv in the checkout, with pinned and hash-checked dependencies

.venv/installed: requirements/uv.txt requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/uv.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

demo: setup ## the PodManager example at work; REAL=1 on the real control plane, HEADLESS=1 to check it without waiting
	@$(if $(REAL),$(BIN)/python -m kubewright.controlplane.binaries)
	@$(BIN)/python -m examples.demo $(if $(REAL),--real) $(if $(HEADLESS),--headless)

# Several workers, each with a real control plane of its own, since many tests wait for servers. One that has nothing left
# takes over tests of another: some files take minutes. Real servers collect their garbage less often: a fifth less CPU.
test: export GOGC ?= 400
test: setup ## everything, on every supported Python there is; builds the real control plane when Go is there
	@$(BIN)/python -m kubewright.controlplane.binaries --if-possible
	$(BIN)/python -m pytest -n 4 --dist worksteal $(ARGS)
	@$(if $(ARGS),,$(BIN)/python -m tools.pythons -- -n 4 --dist worksteal)

# Apart from `test`, which it makes a third longer.
coverage: ## the same, and which lines no test reaches
	@$(MAKE) test ARGS="--cov --cov-report=term:skip-covered $(ARGS)"

lint: setup ## ruff (lint and format) and import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: setup ## mypy --strict
	$(BIN)/mypy

bench: setup control-plane ## the benchmarks, with the Go peers beside us
	$(BIN)/python -m bench $(ARGS)

control-plane: setup ## build kube-apiserver, kube-controller-manager, kubectl and etcd once, into the user's cache
	$(BIN)/python -m kubewright.controlplane.binaries

requirements: setup ## pin the newest allowed dependencies again
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header requirements/uv.in -o requirements/uv.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --extra controlplane --extra testing --group dev pyproject.toml -o requirements/dev.txt

generate: setup control-plane ## make again what comes from Kubernetes: src/kubewright/api/<group>/<version>.py, and what tests compare with
	$(BIN)/python -m tools.generate_api
	$(BIN)/python -m tools.generate_protobuf
	$(BIN)/python -m tools.generate_bootstrap
	cd tools/quantity_vectors && go run . > ../../tests/api/quantity_vectors.json
	$(BIN)/python -m tools.controller_gen

clean: ## remove .venv and what tools left behind
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .import_linter_cache build dist
