# Every command of the project. `make` alone lists them; people, pre-commit and CI call the same ones.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:

PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
	$$name -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)
BIN := .venv/bin
READY := .venv/ready
PYTEST := $(BIN)/pytest -q
COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --custom-compile-command "make lock"
ARGS ?=
T ?=

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup: $(READY) ## make .venv from requirements.lock and build the console; every other command does this when it is needed
	@$(BIN)/python services/console/build.py --if-possible

$(READY): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with venv and ensurepip is needed (Debian: python3-venv)" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: console
console: $(READY) ## build the console into the server, unless it is of these sources already
	@$(BIN)/python services/console/build.py

.PHONY: demo
demo: setup ## everything on this machine; prints an address and a command, Ctrl-C stops it (ARGS=--check tries it and ends)
	@$(BIN)/python -m bothy_kit.demo $(ARGS)

.PHONY: test
test: setup ## all suites; T="PATH -k NAME" passes arguments to pytest instead
ifeq ($(strip $(T)),)
	@$(MAKE) --no-print-directory check multinode answers edge package demo-test chaos-quick
else
	@$(PYTEST) $(T)
endif

.PHONY: check
check: static unit ## format, lint, types, architecture, documents, unit and contract tests

.PHONY: static
static: setup ## the part of check that runs no product code
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	MYPYPATH=tools $(BIN)/mypy tools/*.py
	$(BIN)/mypy services/console/build.py
	$(BIN)/python services/console/build.py types --if-possible
	MYPYPATH=test/chaos $(BIN)/mypy test/chaos/*.py
	MYPYPATH=bench/survive $(BIN)/mypy bench/survive/*.py
	$(BIN)/lint-imports
	$(BIN)/deptry services
	$(BIN)/python tools/text_check.py
	$(BIN)/python tools/tests_mirror.py
	$(BIN)/python tools/adr_index.py --check
	$(BIN)/python tools/asyncapi.py --check
	$(BIN)/python tools/openapi.py --check
	$(BIN)/python tools/console_wire.py --check

.PHONY: unit
unit: setup ## unit and contract tests
	BOTHY_TEST_ANSWERS=.venv/answers-unit $(PYTEST) services test/kit tools
	$(BIN)/python services/console/build.py test --if-possible

.PHONY: multinode
multinode: setup ## several nodes in one process
	BOTHY_TEST_ANSWERS=.venv/answers-multinode PYTHONASYNCIODEBUG=1 $(PYTEST) test/multinode

.PHONY: fuzz
fuzz: setup ## REST on two nodes with many more requests than multinode has time for (EXAMPLES=500)
	BOTHY_FUZZ_EXAMPLES=$(or $(EXAMPLES),200) $(PYTEST) test/multinode/test_api_fuzz.py

.PHONY: answers
answers: setup ## whether the last unit and multinode saw every answer that a REST operation declares
	@$(BIN)/python tools/answers.py .venv/answers-unit .venv/answers-multinode

.PHONY: edge
edge: setup ## the example edge with a real nginx
	$(PYTEST) test/edge

.PHONY: browser
browser: setup ## the console and its passkeys in a real Chromium; installs one as root when there is none, and fails when that cannot be
	@command -v chromium >/dev/null || test "$$(id -u)" != 0 || { apt-get -qq update && apt-get -qq install --no-install-recommends -y chromium; } >/dev/null
	$(PYTEST) test/browser

.PHONY: package
package: setup ## the wheel alone in an empty environment, as a stranger installs it
	$(PYTEST) test/package

.PHONY: demo-test
demo-test: setup ## the demo: its check, and that it leaves nothing however it ends
	$(PYTEST) test/demo

.PHONY: chaos
chaos: setup ## everything breaks around a terminal; what it loses, into docs/performance.md (half an hour; ARGS=--quick)
	@$(BIN)/python test/chaos $(ARGS)

.PHONY: chaos-quick
chaos-quick: setup ## each of these faults once, with short time limits
	@$(BIN)/python test/chaos --quick

.PHONY: survive
survive: setup ## a rolling restart under 500 sessions; what they lose, into docs/performance.md (ARGS="--sessions 50")
	@$(BIN)/python bench/survive $(ARGS)

.PHONY: docker
docker: setup ## the shipped containers with a real engine, two nodes and a session (ARGS=--keep waits before taking them down)
	@$(BIN)/python -m bothy_kit.docker_stage $(ARGS)

.PHONY: docker-ci
docker-ci: setup ## the same; installs an engine as root when there is none, and says so when that cannot be
	@$(BIN)/python -m bothy_kit.docker_stage --install

.PHONY: coverage
coverage: setup ## what the tests of services and test/multinode reach, by package; fails below the thresholds
	@$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q services test/multinode
	@$(BIN)/coverage combine --quiet
	@$(BIN)/python tools/coverage_check.py

.PHONY: repeat
repeat: setup ## several nodes ten times in a row on busy processors; counts what failed (ARGS="--rounds 3 PATH")
	@PYTHONASYNCIODEBUG=1 $(BIN)/python tools/repeat.py $(ARGS)

.PHONY: audit
audit: setup ## known weaknesses of the locked dependencies; says so when the advisory service does not answer
	@$(BIN)/python tools/audit.py $(ARGS)

.PHONY: ci
ci: setup ## what .ci/run calls: every suite, with the minutes each took
	@$(BIN)/python tools/suites.py

.PHONY: format
format: setup ## format the code and fix what the linter can fix
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

.PHONY: lock
lock: setup ## choose dependencies anew and write requirements.lock, and from it the two of the image
	$(COMPILE) --upgrade --extra dev --output-file requirements.lock pyproject.toml
	$(COMPILE) --constraint requirements.lock --extra server --output-file infra/compose/server.lock pyproject.toml
	printf 'hatchling\nnodejs-wheel-binaries\n' | $(COMPILE) --constraint requirements.lock --output-file infra/compose/build.lock -

.PHONY: adr
adr: setup ## write the list of decisions
	@$(BIN)/python tools/adr_index.py

.PHONY: api
api: setup ## write the documents of the sockets from the wire, of REST from the table of operations, and the table of the wire for the console
	@$(BIN)/python tools/asyncapi.py
	@$(BIN)/python tools/openapi.py
	@$(BIN)/python tools/console_wire.py

.PHONY: hooks
hooks: setup ## run the fast checks before each commit of this checkout
	$(BIN)/pre-commit install
