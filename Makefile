# Two commands set everything up on a fresh Debian machine: `make demo` and `make test`.
# Debian's interpreter, if it is new enough: it is built with profiles, and runs code in four fifths of the time of
# one that was built without, as those of pyenv are.
PYTHON ?= $(shell /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo /usr/bin/)python3
BIN := .venv/bin
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

# Debian packages: the interpreter's venv module for everything; foreign SP peers for the tests;
# libnanomsg, nats-server and OpenSSL for the comparison in `make bench`.
TEST_PACKAGES := nanomsg-utils nng-utils qemu-system-arm firmware-microbit-micropython linux-image-amd64 qemu-system-x86 busybox-static kmod iproute2 can-utils wpan-tools tshark socat ser2net gpsd python3-gps libmodbus-dev gcc g++ libc6-dev gcc-arm-none-eabi gcc-avr avr-libc arduino-core-avr gcc-riscv64-unknown-elf gcc-m68k-linux-gnu qemu-system-misc liblwip-dev libsimavr-dev libelf-dev cmake libssl-dev zsh fish man-db groff mandoc mosquitto mosquitto-clients openssh-client libwrap0 systemd chromium prometheus pipx cppcheck
CNODE_PACKAGES := gcc libc6-dev gcc-arm-none-eabi gcc-avr avr-libc gcc-riscv64-unknown-elf clang clang-tidy cppcheck
FUZZ_PACKAGES := clang libclang-rt-dev libc6-dev
BENCH_PACKAGES := $(TEST_PACKAGES) libnanomsg5 nats-server openssl keepalived

# A machine whose kernel is not from its own /boot, as a container, has no use for an initramfs, which takes a minute.
INITRD := $(if $(wildcard /boot/vmlinuz-$(shell uname -r)),,INITRD=No)

define install
	@missing=$$(for p in $(1); do dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
	if [ -n "$$missing" ]; then echo "installing Debian packages:" $$missing; \
	mkdir -p build && flock build/apt sh -c '$(SUDO) apt-get update -qq && $(SUDO) env \
	DEBIAN_FRONTEND=noninteractive $(INITRD) apt-get install -y -qq --no-install-recommends "$$@" >/dev/null' sh $$missing; fi
endef

# What `requirements.lock` holds beside the plain install: the media of a gateway, and nothing that is heavy.
LOCKED := can uart i2c dbc lines
TOOLS := .venv/tools/bin

.PHONY: demo quick test packages fuzz chaos mutants lint check format generated bench clean cnode lock sbom audit takeovers heard soak site deb deb-test image image-test

demo: .venv/demo
	$(BIN)/buscoupler demo

# Hundreds of processes import what one of them has compiled. tests/helpers/rooms.py says who runs what, and when.
test: packages .venv/dev .venv/hermes/bin/python .venv/yakut/bin/python build/sshd/usr/sbin/sshd
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 3 --no-loadscope-reorder

# Of Debian, what tests need, and with `ALL=1` what `make cnode` does: each installation reads all man pages again.
# One installs at a time: `.ci/run` makes this beside other targets.
packages: | .venv/bin/python
	$(call install,$(TEST_PACKAGES) $(if $(ALL),$(CNODE_PACKAGES)))

# Debian's server of SSH for the tests of roll-outs, unpacked only: installed, it would start.
build/sshd/usr/sbin/sshd: | packages
	@mkdir -p build/sshd
	@cd build/sshd && get='apt-get download -qq -o APT::Sandbox::User=root openssh-server' && \
	{ $$get 2>/dev/null || { $(SUDO) apt-get update -qq && $$get; }; } && dpkg -x openssh-server_*.deb .

# Most tests, in two minutes: tests/slow.txt names the others. Needs neither Java nor Debian packages.
quick: .venv/quick
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 3 --no-loadscope-reorder --quick

# Each parser gets INPUTS inputs (docs/testing.md), and each property others than in `make test`.
INPUTS ?= 1000000
fuzz: .venv/dev .venv/fuzz
	$(BIN)/python -m tests.fuzz --inputs $(INPUTS)
	$(call install,$(FUZZ_PACKAGES))
	@mkdir -p build
	clang -O1 -g -DBCN_FUZZER -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Ibus/embedded/c \
	tests/bus/embedded/cnode_driver.c bus/embedded/c/buscoupler_node.c -o build/cnode-fuzzer
	build/cnode-fuzzer -runs=$(INPUTS) -max_len=512 -verbosity=0
	$(BIN)/python -m pytest --hypothesis-profile=fuzz $$(grep -rl '^from hypothesis' tests --include='test_*.py')

# Small changes to the modules without I/O: the tests must notice them (docs/testing.md). COUNT of each, 0: all.
mutants: .venv/dev
	$(BIN)/python -m tests.mutants.hunt --count $(or $(COUNT),5) --seed $(or $(SEED),1)

# A plant in virtual time under faults (docs/testing.md): `SEEDS=10000`, resumed where it stopped; `SEED=7`, that one.
SEEDS ?= 1000
PROCESSES ?= 2
chaos: .venv/dev
	$(BIN)/python -m tests.chaos $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --processes $(PROCESSES))

FAULTS ?= 1000
takeovers: .venv/dev
	$(BIN)/python -m tests.chaos.drill --count $(FAULTS)
	$(BIN)/python -m tests.chaos.starts
	$(BIN)/python -m tests.chaos.oneway
	$(BIN)/python -m benchmarks.takeovers --setup raw --setup lines --count 64

# Each shipped topology as processes: what the audit says of killed and of frozen gateways is what was heard.
heard: .venv/dev
	$(BIN)/python -m benchmarks.audited --fault kill
	$(BIN)/python -m benchmarks.audited --fault freeze

# For a long time (docs/testing.md): `HOURS=24` of virtual time, or `REAL=2` hours with real processes.
HOURS ?= 24
soak: .venv/dev
	$(BIN)/python -m $(if $(REAL),benchmarks.soak --hours $(REAL),tests.chaos.soak --hours $(HOURS))

lint: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

check: lint
	$(BIN)/python -m pytest tests/test_layering.py

format: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# All files that are made from the code. A test of each compares it.
generated: .venv/dev
	@mkdir -p build
	$(BIN)/python -m topologies.writing.schema > build/generated && cp build/generated topologies/topology.schema.json
	$(BIN)/python -m appliance.status.schema > build/generated && cp build/generated appliance/status/schema.json
	$(BIN)/python -m topologies.writing.reference > build/generated && cp build/generated docs/topology.md
	$(BIN)/python -m appliance.commandline.command_page > build/generated && cp build/generated docs/commands.md

bench: .venv/bench
	$(call install,$(BENCH_PACKAGES))
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.channels
	$(BIN)/python -m benchmarks.bridges
	$(BIN)/python -m benchmarks.media
	$(BIN)/python -m benchmarks.relayed
	$(BIN)/python -m benchmarks.tap
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.idle
	$(BIN)/python -m benchmarks.queries
	$(BIN)/python -m benchmarks.syndication
	$(BIN)/python -m benchmarks.catalog
	$(BIN)/python -m benchmarks.round_trips
	$(BIN)/python -m benchmarks.can_cost

# The node in C on every core that Debian has a compiler for: sizes and their bounds, and checkers of its source.
cnode: .venv/dev
	$(call install,$(CNODE_PACKAGES))
	$(BIN)/python -m benchmarks.cnode

# The pages of docs/ with a search, in build/site.
site: .venv/docs
	$(BIN)/mkdocs build --strict --quiet

# A Debian package with an environment of its own (docs/install.md): `ARCH=arm64`, `PYTHON_VERSION=3.13`.
deb: .venv/bin/python
	@sh packaging/deb.sh

# In a clean Debian with systemd, which namespaces keep apart; without a network.
deb-test: .venv/dev deb
	$(call install,debootstrap)
	BUSCOUPLER_DEB=$$(ls -t build/buscoupler_*_$$(dpkg --print-architecture).deb | head -n 1) \
	$(if $(SUDO),sudo --preserve-env=BUSCOUPLER_DEB) $(BIN)/python -m pytest -n 0 tests/system/test_deb.py

# A container image of that package, by podman, buildah or docker. `BASE=scratch`: no image is pulled.
image: deb
	@sh packaging/image.sh

image-test: .venv/dev image
	BUSCOUPLER_IMAGE=buscoupler:$$(ls -t build/buscoupler_*.deb | head -n 1 | cut -d_ -f2) \
	$(BIN)/python -m pytest -n 0 tests/system/test_image.py

lock: $(TOOLS)/pip-compile
	CUSTOM_COMPILE_COMMAND="make lock" $(TOOLS)/pip-compile --quiet --upgrade --generate-hashes --strip-extras \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host $(LOCKED:%=--extra %) -o requirements.lock pyproject.toml

sbom: $(TOOLS)/pip-compile
	@mkdir -p build
	$(TOOLS)/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml --output-reproducible -o build/sbom.json

# `--strict`: without it pip-audit finds nothing in packages that its database does not answer for.
audit: $(TOOLS)/pip-compile
	@mkdir -p build && rm -f build/audit.json
	@$(TOOLS)/pip-audit --strict --disable-pip --require-hashes -r requirements.lock --progress-spinner off \
	-f json -o build/audit.json 2>build/audit.log; status=$$?; \
	[ -s build/audit.json ] || { echo "no database of vulnerabilities can be reached, so nothing was audited: build/audit.log says why"; exit 1; }; \
	tail -n 1 build/audit.log; exit $$status

.venv/bin/python:
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
	echo "installing Debian package: python3-venv"; $(SUDO) apt-get update -qq && \
	$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null; }
	$(PYTHON) -m venv --upgrade-deps .venv # a pip of before 23.1, as Debian 12 has, knows no settings of a requirement

# Published programs that tests speak with, in environments of their own: the client of Hermes ends at newer pyzmq, and
# yakut at newer psutil.
.venv/hermes/bin/python .venv/yakut/bin/python: .venv/%/bin/python: tests/system/%.txt | .venv/bin/python
	$(PYTHON) -m venv --without-pip .venv/$*
	$(BIN)/python -m pip --python .venv/$* install --quiet --disable-pip-version-check --no-compile --no-deps -r $<
	@touch $@

$(TOOLS)/pip-compile: | .venv/bin/python
	$(PYTHON) -m venv .venv/tools
	$(TOOLS)/pip install --quiet --disable-pip-version-check pip-tools cyclonedx-bom pip-audit

.venv/%: pyproject.toml | .venv/bin/python
	@[ ! -L .venv ] || { echo ".venv is a link, and pip would let $$(readlink -f .venv) run the code of this tree:" \
	"remove the link, or type what the target runs"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(filter demo,$*),,--no-compile) -e '.[$*]' \
	$(if $(filter dev,$*),-r packaging/pyspark.txt)
	@$(BIN)/python -m appliance.commandline.manual .venv/share/man
	@touch $@

clean:
	rm -rf .venv build *.egg-info
