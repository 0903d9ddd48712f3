# Every target writes only to this folder, except for the distribution's packages that set-up installs.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

PYTHON ?= python3
FAMILY ?= p4d
WORKLOAD ?= gpt2
NODES ?= 2
METRICS ?=
KEEP ?=
PROVE ?=
USERS ?=
CONTAINER ?=
SAMPLE ?= 0
SEED ?= 1
ALL ?=
ONLY ?=
FOLDER ?=
BASELINES ?=
TORCH_INDEX ?=
SERVE ?=

# A misspelled name would otherwise be ignored without a word.
ALLOWED := $(shell sed -nE 's/^(export )?([A-Za-z_]+) \?=.*/\2/p' $(firstword $(MAKEFILE_LIST)))
OTHERS := PIP_EXTRA_INDEX_URL SHELL MAKE
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name)))
ifneq ($(filter-out $(ALLOWED) $(OTHERS),$(GIVEN)),)
$(error $(filter-out $(ALLOWED) $(OTHERS),$(GIVEN)): not a variable of this Makefile. Allowed: $(strip $(ALLOWED)))
endif

# switch TARGET,NAME,VALUE: a variable of a target that is empty or VALUE. Refused before set-up, which takes minutes.
switch = $(if $(filter $(1),$(MAKECMDGOALS)),$(if $(filter-out $(3),$($(2))),$(error $(2)=$($(2)): not allowed. Type: make $(1) $(2)=$(3))))
$(call switch,rehearse,KEEP,1)
$(call switch,rehearse,CONTAINER,1)
$(call switch,rehearse,USERS,2)
$(call switch,rehearse,PROVE,1)
$(call switch,faults,ALL,1)
$(call switch,site,SERVE,1)
# Refused before set-up, too.
ifneq ($(filter test-root,$(MAKECMDGOALS)),)
ifneq ($(shell id -u),0)
$(error test-root: you are not root. Type: sudo make test-root, in a copy of this folder that belongs to root)
endif
endif

export PYTHON
export PIP_CACHE_DIR ?= $(CURDIR)/.cache/pip
export npm_config_cache ?= $(CURDIR)/.cache/npm
export XDG_CACHE_HOME := $(CURDIR)/.cache/xdg
# jsii unpacks aws-cdk-lib here once, whichever HOME a local AWS sets.
export JSII_RUNTIME_PACKAGE_CACHE_ROOT := $(CURDIR)/.cache/jsii
export TMPDIR := $(CURDIR)/.cache/tmp
export PYTHONPYCACHEPREFIX ?= $(CURDIR)/.cache/pycache
# Containers often set it. Each process would then compile all of its packages again.
unexport PYTHONDONTWRITEBYTECODE
# An index of PyTorch's CPU builds avoids the download of CUDA: see the README.
ifneq ($(TORCH_INDEX),)
export PIP_EXTRA_INDEX_URL := $(TORCH_INDEX)
endif

VENV := .venv/bin
NEEDS_VENV := [ -x .venv/bin/python ] || { printf '.venv does not exist; nothing was changed.\n  type: make setup\n' >&2; exit 1; }
# A slow test waits for more than half of its time: with 3 workers, two cores were idle for 38 % of it.
SLOW_WORKERS ?= 5
NODE_PATH_FIRST := PATH="$(CURDIR)/.venv/bin:$(CURDIR)/node_modules/.bin:$$PATH"

.PHONY: help
help: ## Show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: setup
setup: ## Install both Python environments, Node, the CDK CLI and Slurm (skips what is installed)
	@tools/setup.sh

.PHONY: rehearse
rehearse: setup ## Deploy to a local AWS, train on a local Slurm, report, tear down (FAMILY WORKLOAD NODES CONTAINER=1 METRICS=prometheus KEEP=1; or PROVE=1: lose a rank and a node; or USERS=2: two users share a Slurm)
	@if [ -n "$(USERS)" ]; then \
	  exec $(VENV)/python -m rehearsal.people .rehearsal/people; fi; \
	$(if $(PROVE),exec $(VENV)/trainctl prove "$(WORKLOAD)" kill node --nodes "$(NODES)";) \
	$(VENV)/trainctl rehearse --family "$(FAMILY)" --workload "$(WORKLOAD)" --nodes "$(NODES)" \
	  $(if $(METRICS),--metrics "$(METRICS)") \
	  $(if $(CONTAINER),--container) \
	  $(if $(KEEP),--keep)

.PHONY: stop
stop: ## Stop a rehearsal that was kept with KEEP=1, or killed
	@tools/rehearsal.sh stop

.PHONY: test
test: test-fast test-slow ## Run the tests, including a rehearsal

.PHONY: test-slow
test-slow: setup environment ## Run the tests that start a local AWS, a local Slurm or a training, and those that need root
	@$(NODE_PATH_FIRST) TRAINING_VENVS="$(CURDIR)/.rehearsal/venvs" $(VENV)/pytest -m "(slow or root) and not nightly" -n $(SLOW_WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: environment
environment: setup ## Make the Python environment of gpt2, which rehearsals and the slow tests train with (minutes, once)
	@$(NODE_PATH_FIRST) TRAINING_REHEARSAL=1 bash -euc 'source assets/training/environment.sh; make_environment "$$PWD/assets/training/gpt2" "$$PWD/.rehearsal/venvs/gpt2"'

.PHONY: test-root
test-root: setup ## Run only the tests that need root's rights, as root: for a user they are skipped
	@$(NODE_PATH_FIRST) TRAINING_VENVS="$(CURDIR)/.rehearsal/venvs" $(VENV)/pytest -m "root and not nightly" -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: test-all
test-all: test ## Also run the nightly tests, of all workloads: hours more, and gigabytes of Python environments
	@$(NODE_PATH_FIRST) TRAINING_VENVS="$(CURDIR)/.rehearsal/venvs" $(VENV)/pytest -m nightly -n 2 --dist loadfile

.PHONY: test-fast
test-fast: setup ## Run the tests that start no local AWS, no local Slurm and no training, and need no root
	@$(NODE_PATH_FIRST) $(VENV)/pytest -m "not slow and not root" -n 2

.PHONY: test-changed
test-changed: ## Run the fast tests of what changed since main, or in the last commit: seconds
	@$(NEEDS_VENV)
	@$(NODE_PATH_FIRST) $(VENV)/python -m tests.changed

.PHONY: check
check: setup ## Run every static check that CI runs: ruff, mypy, shellcheck, shfmt, words, cdk-nag, cfn-lint
	@tools/check.sh

.PHONY: validate
validate: setup ## Check every family x capacity x OS with the real ParallelCluster library; prints the matrix
	@$(VENV)/python -m rehearsal validate

.PHONY: faults
faults: setup ## Deploy while AWS, head nodes and functions fail, one at a time; continues where it stopped (ALL=1 SAMPLE SEED ONLY FOLDER)
	@$(VENV)/python -m rehearsal $(if $(FOLDER),--folder "$(FOLDER)") faults --sample "$(SAMPLE)" --seed "$(SEED)" $(if $(ALL),--all) $(ONLY)

.PHONY: bench
bench: setup ## Compare with what people use instead; writes docs/benchmarks.md (ONLY="synth scale" BASELINES=dir)
	@$(NODE_PATH_FIRST) BASELINES="$(BASELINES)" $(VENV)/python -m bench --only $(ONLY)

.PHONY: permissions
permissions: setup ## Write the table of the provider's permissions, from calls that rehearsals judged and the registry's types
	@$(VENV)/python -m tools.pcluster.permissions_table calls
	@$(VENV)/python -m tools.pcluster.permissions_table types

.PHONY: docs
docs: setup ## Write the generated pages: flags, families, changes, first-deploy, execution-role; reserved.tsv
	@$(VENV)/python -m tools.docs

.PHONY: site
site: setup ## Build the docs site into .cache/site/html, and check its links (SERVE=1 serves it)
	@SERVE=$(SERVE) tools/site.sh

.PHONY: schema
schema: setup ## Export the schema of cluster configs from the ParallelCluster library
	@.venv-pcluster/bin/python -m tools.pcluster.export_config_schema > .cache/tmp/schema.json
	@mv .cache/tmp/schema.json constructs/training_cluster/pcluster/pcluster_config.schema.json

.PHONY: layer
layer: ## Build the Lambda layer of -c layer=build from locked packages, without Docker
	@$(NEEDS_VENV)
	@$(VENV)/python -m tools.build_layer

.PHONY: lock
lock: ## Pin all packages, with hashes, after a change of requirements*.txt
	@$(NEEDS_VENV)
	@tools/lock.sh

.PHONY: clean
clean: ## Remove everything that set-up, synth and rehearsals made here; never anything in AWS
	@tools/rehearsal.sh stop
	@rm -rf .venv .venv.* .venv-pcluster .venv-pcluster.* .venv-docs node_modules node_modules.* .cache .rehearsal cdk.out
