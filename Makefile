.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/bash
export PATH := $(CURDIR)/.venv/bin:$(HOME)/.cargo/bin:$(PATH)
export VIRTUAL_ENV := $(CURDIR)/.venv
export PYSPARK_PYTHON := $(CURDIR)/.venv/bin/python

PY := .venv/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
BUILD := $(MAKE) --no-print-directory
# One profile for wheel and Rust tests, so that dependencies compile once.
PROFILE ?= ci
RUST := $(shell find rust protos -type f 2>/dev/null) Cargo.toml Cargo.lock
NATIVE := .venv/.native
SPARK = JAVA_HOME="$$(.ci/java)"
OUTPUT ?= demo-output
SIZE ?= small
ARGS ?=

.PHONY: help demo test check check-arm coverage interop bench bench-report bench-large bench-kernels bench-row-ids servers docs wheel fmt clean

help: ## print these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.demo $(NATIVE) ## run the tutorial: flights through Spark into a table and back (OUTPUT=folder)
	$(SPARK) $(PY) -m esker.demo --output $(OUTPUT) $(ARGS)

test: .venv/.dev $(NATIVE) ## run the Python tests (ARGS="-k name")
	$(SPARK) $(PY) -m pytest -n 3 --dist loadfile $(ARGS)

check: .venv/.dev $(NATIVE) ## run all that CI runs: formatting, lints, types, stubs, wheel, Rust and Python tests
	cargo fmt --all --check
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy --strict python/
	$(PY) -m mypy tests/ benches/ fuzz/ examples/
	$(PY) -m mypy.stubtest esker._native --mypy-config-file pyproject.toml
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	ESKER_FUZZ_FLIPS=2500 cargo test --profile $(PROFILE) --locked --workspace --exclude esker-python
	cargo clippy --profile $(PROFILE) --locked --workspace --all-targets -- -D warnings
	rm -rf dist/check && $(PY) -m maturin build --profile $(PROFILE) --out dist/check
	$(SPARK) ESKER_WHEEL="$$(realpath dist/check/*.whl)" $(PY) -m pytest -n 3 --dist loadfile --durations 30 $(ARGS)

ARM := aarch64-unknown-linux-gnu
ARM_GCC := aarch64-linux-gnu
check-arm: ## run the Rust tests of encodings on an emulated ARM (needs gcc-aarch64-linux-gnu, qemu-user, and rustup target add aarch64-unknown-linux-gnu)
	CC_aarch64_unknown_linux_gnu=$(ARM_GCC)-gcc AR_aarch64_unknown_linux_gnu=$(ARM_GCC)-ar \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$(ARM_GCC)-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/$(ARM_GCC)" \
	cargo test --profile $(PROFILE) --locked --target $(ARM) -p esker-codec -p esker-file $(ARGS)

coverage: .venv/.dev $(NATIVE) ## run the Python tests and print how much of each room of esker they reach (ARGS="-k name")
	rm -rf .coverage && mkdir .coverage
	$(SPARK) COVERAGE_FILE="$$PWD/.coverage/data" $(PY) -m coverage run -m pytest -n 3 --dist loadfile $(ARGS) || [ $$? -eq 1 ]
	COVERAGE_FILE="$$PWD/.coverage/data" $(PY) -m tests.coverage

interop: .venv/.dev $(NATIVE) ## compare with Pebble, RocksDB, lakeFS and Spark's Delta, which are built or fetched (ARGS=entries)
	$(PY) -m tests.interop $(ARGS)
	$(SPARK) $(PY) -m pytest -q tests/interop/tables.py tests/interop/server.py tests/interop/server_refs.py \
	  tests/interop/server_merges.py tests/interop/server_tables.py tests/interop/delta.py tests/interop/delta_rules.py

bench: .venv/.dev ## compare with the peers, side by side (SIZE=small|medium|large)
	rm -f $(NATIVE) && $(PY) -m maturin develop --release --skip-install
	$(PY) -m benches --size $(SIZE) $(ARGS)
	$(PY) -m benches.commits
	$(PY) -m benches.compaction
	$(SPARK) $(PY) -m benches.spark

bench-report: .venv/.dev ## write docs/performance.md: growth with rows, fragments, columns, over a network (an hour, 20 GB)
	rm -f $(NATIVE) && $(PY) -m maturin develop --release --skip-install
	$(PY) -m benches.growth $(if $(SCRATCH),--scratch $(SCRATCH)) $(ARGS)

bench-row-ids: ## look-ups by stable row id: the index alone, then beside pylance
	cargo bench --locked --quiet -p esker-table --bench row_ids
	$(PY) -m benches.row_ids $(ARGS)

servers: .venv/.dev ## install what tests of stores run against, MinIO too (5 minutes, once; needs Go)
	$(PY) -m tests.servers azurite mitmproxy minio

bench-large: .venv/.dev ## commits into a repository of a hundred million entries, of which most say little (4 GB below SCRATCH)
	$(PY) -m benches.repo --steps steps --entries 100000000 --synthetic --rounds 3 $(if $(SCRATCH),--scratch $(SCRATCH)) $(ARGS)

bench-kernels: ## measure the encoding kernels: GB/s beside memcpy and plain code (ARGS=name)
	cargo bench --locked --quiet -p esker-codec --bench kernels -- $(ARGS)

docs: .venv/.dev ## build the user's guide into site/
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	@echo "site/index.html"

wheel: .venv/.tools ## build the wheel for release into dist/
	$(PY) -m maturin build --release --out dist

fmt: .venv/.dev ## format Rust and Python
	cargo fmt --all
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

clean: ## delete everything that is built, .venv included
	rm -rf .venv .java .servers .coverage target dist site demo-output bench-results python/esker/*.so

.venv/.tools:
	@cargo --version 2>/dev/null | awk '{ split($$2, v, "."); if (v[1] > 1 || v[2] >= 94) ok = 1 } END { exit !ok }' || { \
	  echo "esker needs Rust 1.94 or newer: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y" >&2; exit 1; }
	@[ -x $(PY) ] || python3 -m venv .venv
	$(PIP) "maturin>=1.9,<2" "setuptools>=77" wheel
	@touch $@

$(NATIVE): $(RUST) | .venv/.tools
	@[ -e $@ ] || echo "building the Rust core, once: about 10 minutes on two cores; Cargo names each crate" >&2
	$(PY) -m maturin develop --profile $(PROFILE) --skip-install
	@touch $@

# Packages are fetched while Cargo compiles. What builds those that PyPI has as sources only, such as PySpark, is in the environment.
# The package itself is installed in place, so that a change of Python code needs no build; its extension is there already.
.venv/.demo .venv/.dev: pyproject.toml | .venv/.tools
	$(PY) .ci/requirements $(@:.venv/.%=%) > $@.txt
	$(PIP) --no-build-isolation --requirement $@.txt & packages=$$!; \
	  $(BUILD) $(NATIVE); built=$$?; wait $$packages && exit $$built
	$(PIP) --no-build-isolation --no-deps --config-settings build-args="--profile $(PROFILE)" --editable .
	@touch $@
