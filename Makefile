# Two commands: `make run` starts a mail server that inspects mail, `make test` passes the tests.
# Both install what a fresh Debian machine with Rust lacks.

.PHONY: run test setup build bench deb first-day bare bare-run clean

# A profile of its own, since link-time optimisation takes far longer than a first look may: see Cargo.toml.
run:
	ci/setup.sh run
	cargo build --profile quick --locked --bin sluice
	target/quick/sluice serve

test: setup
	SLUICE_REQUIRE_PEERS=1 ci/gate.sh

build:
	cargo build --release --locked --bin sluice

setup:
	ci/setup.sh

bench: build
	bench/mail

deb: build
	cargo deb --version >/dev/null 2>&1 || { echo "installing cargo-deb, once (several minutes)"; cargo install --locked --debug cargo-deb; }
	packaging/notices.py >target/NOTICES
	cargo deb -p sluice --no-build

# The package in a fresh Debian, and all that the first pages show: beside the gate, since it takes a release build.
first-day: deb
	ci/first-day.sh

# The image without an operating system, and the same under QEMU: docs/start/bare-machine.md.
bare:
	cd bare && cargo build --release --locked --target-dir ../target/bare
	bare/pack.py target/bare/x86_64-unknown-linux-gnu/release/sluice-bare target/bare/sluice-bare

bare-run: bare
	ci/setup.sh bare
	bare/run

clean:
	cargo clean
