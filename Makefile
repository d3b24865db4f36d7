# Two commands set everything up on a fresh Debian machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

# Debian packages: the interpreter's venv module for everything; foreign SP peers for the tests;
# libnanomsg, nats-server, OpenSSL and a compiler for the comparison in `make bench`.
TEST_PACKAGES := nanomsg-utils nng-utils qemu-system-arm firmware-microbit-micropython linux-image-amd64 qemu-system-x86 busybox-static kmod iproute2 can-utils tshark socat
BENCH_PACKAGES := $(TEST_PACKAGES) libnanomsg5 nats-server gcc libc6-dev libssl-dev openssl

define install
	@missing=$$(for p in $(1); do dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
	if [ -n "$$missing" ]; then echo "installing Debian packages:" $$missing; \
	$(SUDO) apt-get update -qq && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; fi
endef

.PHONY: demo test fuzz chaos mutants check format bench clean

demo: .venv/demo
	$(BIN)/buscoupler demo

test: .venv/dev .venv/hermes/bin/python
	$(call install,$(TEST_PACKAGES))
	$(BIN)/python -m pytest -n 2 --dist loadgroup

fuzz: .venv/dev
	$(BIN)/python -m pytest --hypothesis-profile=fuzz $$(grep -rl '^from hypothesis' tests --include='test_*.py')

# Small changes to the modules without I/O: the tests must notice them (docs/mutants.md). COUNT of each, 0: all.
mutants: .venv/dev
	$(BIN)/python -m tests.mutants.hunt --count $(or $(COUNT),5) --seed $(or $(SEED),1)

# A plant in virtual time under faults (docs/chaos.md): `SEEDS=10000`, resumed where it stopped; `SEED=7`, that one.
SEEDS ?= 1000
PROCESSES ?= 2
chaos: .venv/dev
	$(BIN)/python -m tests.chaos $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --processes $(PROCESSES))

check: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_layering.py

format: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/bench
	$(call install,$(BENCH_PACKAGES))
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.channels
	$(BIN)/python -m benchmarks.bridges
	$(BIN)/python -m benchmarks.media
	$(BIN)/python -m benchmarks.tap
	$(BIN)/python -m benchmarks.queries
	$(BIN)/python -m benchmarks.syndication
	$(BIN)/python -m benchmarks.catalog

.venv/bin/python:
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
	echo "installing Debian package: python3-venv"; $(SUDO) apt-get update -qq && \
	$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null; }
	$(PYTHON) -m venv .venv

# The published package of Hermes, for tests, in an environment of its own: its client ends at newer pyzmq.
.venv/hermes/bin/python: tests/system/hermes.txt | .venv/bin/python
	$(PYTHON) -m venv .venv/hermes
	.venv/hermes/bin/pip install --quiet --disable-pip-version-check --no-deps -r tests/system/hermes.txt
	@touch $@

.venv/%: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*]'
	@touch $@

clean:
	rm -rf .venv build *.egg-info
