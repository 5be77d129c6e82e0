# The commands of the project. Each does the set-up it needs; nothing else has to be typed.

CARGO   := cargo
TARE    := target/release/tare

# An exported RUSTFLAGS would replace the flags in measured/.cargo/config.toml, and the agent would
# silently become a dynamic program.
unexport RUSTFLAGS
unexport CARGO_BUILD_RUSTFLAGS
unexport CARGO_TARGET_DIR
unexport CARGO_BUILD_TARGET_DIR

.PHONY: help quick test build setup setup-test kernels lint bench acceptance screenshot clean

# A representative set: both series, each flavour, with and without compressed modules.
KERNELS := debian debian-cloud debian-rt debian-cloud-6.12

help:
	@echo 'make quick       install what is missing, build, take a first picture of this machine'
	@echo 'make test        install what is missing, check formatting and lints, run all tests'
	@echo 'make build       build tare and its agent'
	@echo 'make kernels     fetch the kernels that the tests boot, if they are missing'
	@echo 'make bench       measure what tare itself costs, against the bounds it promises'
	@echo 'make acceptance  the checks that take longer: bench, a hog, every load and place, cyclictest, landolfi-2018'
	@echo 'make screenshot  render the report of a fresh run to docs/report.png'
	@echo 'make clean       remove what was built'

quick: build
	$(TARE) quick

test: setup-test build kernels lint
	cd measured && $(CARGO) test --workspace --quiet
	cd measured && $(CARGO) test -p tare-images --release --quiet
	$(CARGO) test --workspace --quiet

build: setup
	cd measured && $(CARGO) build --release -p tare-agent
	cd measured && $(CARGO) build --release -p tare-images
	$(CARGO) build --release -p tare

setup:
	@scripts/setup build

setup-test:
	@scripts/setup test

# Without the network, the tests that need a kernel say so.
kernels: setup-test build
	-$(TARE) kernel fetch --if-missing $(KERNELS)
	-test "$$(id -u)" -ne 0 || $(TARE) kernel fetch --if-missing debian-root

lint: setup-test
	$(CARGO) fmt --all --check
	cd measured && $(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	cd measured && $(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	shellcheck scripts/setup scripts/screenshot .ci/run crates/targets/src/ssh/keeper.sh

# Not by `cargo run`: what the compiler used would count as memory of the checks' children.
bench: build
	$(CARGO) build --release -p tare-acceptance
	target/release/tare-acceptance bench

acceptance: setup-test build
	$(TARE) kernel fetch --if-missing --all
	$(TARE) kernel fetch --if-missing debian-root
	$(CARGO) build --release -p tare-acceptance
	target/release/tare-acceptance all

screenshot: setup-test build
	scripts/screenshot

clean:
	$(CARGO) clean
	cd measured && $(CARGO) clean
