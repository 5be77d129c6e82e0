# The commands of the project. Each does the set-up it needs; nothing else has to be typed.

# Its jobs are its own, also below a make that has several.
CARGO   := env --unset=MAKEFLAGS cargo
TARE    := target/release/tare
BUILT   := measured/target/x86_64-unknown-linux-gnu/release
SERVED  := measured/target/x86_64-unknown-linux-gnu/service

# Where it is installed, and the images that belong to it.
PREFIX  ?= /usr/local
INTO     = $(DESTDIR)$(PREFIX)
IMAGES  := bench hello
SERVICES := dns echo http ping

# Two at a time: a build ends with a chain of crates. Tests run in turn: the loads of the one workspace starve the guests of
# the other.
PAIRED  := $(MAKE) --no-print-directory --jobs=2

# Clippy's driver compiles what it lints: with it, tests are linted by being built. What incremental
# compilation notes for the next time is work that a first build never uses.
LINTING := CARGO_INCREMENTAL=0 RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__

# Services and images are tested in calls of their own (measured/Cargo.toml), and each image in the
# profile in which it is used. Overflow checks and debug assertions are for what others send or hammer.
APART   := --workspace --exclude tare-service --exclude tare-images
ALONE   := $(patsubst measured/images/tests/%.rs,--test %,$(wildcard measured/images/tests/*.rs))

# An exported RUSTFLAGS would replace the flags in measured/.cargo/config.toml, and the agent would
# silently become a dynamic program.
unexport RUSTFLAGS
unexport CARGO_BUILD_RUSTFLAGS
unexport CARGO_TARGET_DIR
unexport CARGO_BUILD_TARGET_DIR

.PHONY: help quick test build install uninstall setup setup-test measuring measured small laboratory linted-measured \
	linted-laboratory test-measured test-laboratory test-kvm kernels style kvm bench acceptance attack fuzz screenshot clean

# A representative set: both series, each flavour, with and without compressed modules.
KERNELS := debian debian-cloud debian-rt debian-cloud-6.12

help:
	@echo 'make quick       install what is missing, build, take a first picture of this machine'
	@echo 'make test        install what is missing, check formatting and lints, run all tests'
	@echo 'make build       build tare and its agent'
	@echo 'make install     put what make build built below PREFIX=/usr/local, with completions and man pages; DESTDIR= stages it'
	@echo 'make uninstall   remove that again'
	@echo 'make kernels     fetch the kernels that the tests boot, if they are missing'
	@echo 'make kvm         a shell in a guest with a KVM that QEMU emulates, and tare in it'
	@echo 'make bench       measure what tare itself costs, against the bounds it promises; as root, for its networks'
	@echo 'make acceptance  the checks that take longer: bench, a hog, every target, cyclictest, landolfi-2018'
	@echo 'make attack      damage run folders, kill, stop, move, flood and fill at random for ten minutes'
	@echo 'make fuzz        feed the name server, a virtio queue and the reader of records, guided by coverage, for ten minutes each; it takes g++'
	@echo 'make screenshot  render the report of a fresh run to docs/report.png'
	@echo 'make clean       remove what was built'

quick: setup
	$(PAIRED) laboratory measuring
	$(TARE) quick

test: setup-test style
	$(PAIRED) kernels linted-measured
	$(MAKE) --no-print-directory test-laboratory
	$(MAKE) --no-print-directory test-measured

build: setup
	$(PAIRED) laboratory measured

# Builds nothing: root usually has no cargo.
install:
	@test -x $(TARE) -a -x $(BUILT)/tare-agent -a -x $(SERVED)/tare-service || { echo '$(TARE), its agent or its services are not built: make build comes first' >&2; exit 1; }
	install -D -m 755 $(TARE) $(INTO)/bin/tare
	install -D -m 755 $(BUILT)/tare-agent $(INTO)/lib/tare/tare-agent
	install -D -m 755 $(SERVED)/tare-service $(INTO)/lib/tare/tare-service
	install -D -m 644 -t $(INTO)/lib/tare/images $(IMAGES:%=$(BUILT)/%) $(SERVICES:%=$(SERVED)/%)
	$(TARE) share $(INTO)/share

uninstall:
	rm -f $(INTO)/bin/tare $(INTO)/share/bash-completion/completions/tare $(INTO)/share/zsh/site-functions/_tare \
		$(INTO)/share/fish/vendor_completions.d/tare.fish $(INTO)/share/man/man1/tare.1 $(INTO)/share/man/man1/tare-*.1
	rm -rf $(INTO)/lib/tare

laboratory:
	$(CARGO) build --release -p tare

# What `tare quick` needs; the services take as long again.
measuring:
	cd measured && $(CARGO) build --release -p tare-agent
	cd measured && $(CARGO) build --release -p tare-images $(IMAGES:%=--bin %)

measured: measuring
	cd measured && $(CARGO) build --profile service -p tare-images $(SERVICES:%=--bin %)
	cd measured && CARGO_PROFILE_SERVICE_OPT_LEVEL=3 $(CARGO) build --profile service -p tare-service

linted-laboratory:
	$(LINTING) $(CARGO) test --workspace --all-targets --no-run --quiet

# Tests of the laboratory use the services as they are built for use.
linted-measured: measured
	cd measured && $(LINTING) $(CARGO) test $(APART) --no-run --quiet
	cd measured && $(LINTING) $(CARGO) test $(APART) --bench recording --no-run --quiet
	cd measured && $(LINTING) $(CARGO) test -p tare-service --no-run --quiet
	cd measured && $(LINTING) $(CARGO) test -p tare-images --no-run --quiet
	cd measured && $(CARGO) test -p tare-images --release $(ALONE) --no-run --quiet
	cd measured && $(CARGO) test -p tare-images --profile service --test network --no-run --quiet

# One thread more than there are CPUs: many tests wait, for a guest, an engine or each other.
test-laboratory:
	$(LINTING) RUST_TEST_THREADS=$$(($$(nproc) + 1)) $(CARGO) test --workspace --all-targets --quiet

# In a guest with a KVM that QEMU emulates. It has the machine to itself.
test-kvm:
	$(LINTING) $(CARGO) test --workspace --test it --quiet kvm::guests -- --ignored

# Tests of the network wait for their peers most of the time.
WAITING := RUST_TEST_THREADS=$$(($$(nproc) + 2))
test-measured:
	cd measured && $(LINTING) $(CARGO) test $(APART) --quiet
	cd measured && $(LINTING) $(CARGO) test -p tare-service --quiet
	cd measured && $(LINTING) $(CARGO) test -p tare-images --test torture --quiet
	cd measured && $(LINTING) $(WAITING) $(CARGO) test -p tare-images --test network --quiet hostile::
	cd measured && $(CARGO) test -p tare-images --release $(ALONE) --quiet
	cd measured && $(WAITING) $(CARGO) test -p tare-images --profile service --test network --quiet

setup:
	@scripts/setup build

setup-test:
	@scripts/setup test

# Without the network, the tests that need a kernel say so.
kernels: setup-test linted-laboratory
	-target/debug/tare kernel fetch --if-missing $(KERNELS)
	-test "$$(id -u)" -ne 0 || target/debug/tare kernel fetch --if-missing debian-root

style: setup-test
	$(CARGO) fmt --all --check
	cd measured && $(CARGO) fmt --all --check
	cd measured/fuzz && $(CARGO) fmt --check
	shellcheck scripts/setup scripts/screenshot .ci/run crates/targets/src/ssh/monitor.sh crates/tare/tests/it/kvm/init.sh

# For people: what the tests of KVM run in.
kvm: kernels linted-measured
	$(LINTING) $(CARGO) test --quiet -p tare --test it kvm::a_shell -- --ignored --nocapture

# Images for acceptance: the floor of a start, the name server with a client inside, and with some of its features, for its
# size. Places of panics hold no folders of this machine.
SETS    := dhcp ipv6,tcp dhcp,ipv6,tcp dhcp,slaac,tcp dhcp,files,slaac,tcp console,dhcp,figures,files,slaac,tcp
SMALLER := $(foreach crate,tare-images=z tare-net=s tare-runtime=z smoltcp=s embassy-net=s,\
	--config 'profile.service.package.$(firstword $(subst =, ,$(crate))).opt-level="$(lastword $(subst =, ,$(crate)))"')
SOURCES = $(firstword $(wildcard $(or $(CARGO_HOME),$(HOME)/.cargo)/registry/src/*))
SHORTER = "-Crelocation-model=static","--remap-path-prefix=$(SOURCES)=","--remap-path-prefix=$(CURDIR)="

small: setup measured
	cd measured && $(CARGO) build --release -p tare-agent --example planted --example osnoise
	cd measured && $(CARGO) build --release -p tare-images --bin floor
	cd measured && $(CARGO) build --profile service -p tare-images --bin inside
	cd measured && CARGO_PROFILE_SERVICE_OPT_LEVEL=3 $(CARGO) build --profile service -p tare-service --example inside
	cd measured/target && for set in "" $(SETS); do $(CARGO) build --profile service -p tare-images --bin dns --quiet --target-dir small \
		--no-default-features --features "$$set" $(SMALLER) --config 'target.x86_64-unknown-linux-gnu.rustflags=[$(SHORTER)]' \
		&& strip -o "x86_64-unknown-linux-gnu/service/dns-$$set" small/x86_64-unknown-linux-gnu/service/dns || exit; done

# Not by `cargo run`: what the compiler used would count as memory of the checks' children.
bench: setup-test build small
	$(CARGO) build --release -p tare-acceptance
	target/release/tare-acceptance bench

acceptance: setup-test build small
	$(TARE) kernel fetch --if-missing --all
	$(TARE) kernel fetch --if-missing debian-root
	$(MAKE) --no-print-directory test-kvm
	$(CARGO) build --release -p tare-acceptance
	target/release/tare-acceptance all

attack: build
	$(CARGO) build --release -p tare-acceptance
	target/release/tare-acceptance attack 600

# Coverage as libFuzzer counts it, without a sanitizer, which stable Rust has not.
FUZZING := -Cpasses=sancov-module -Ccodegen-units=1 $(patsubst %,-Cllvm-args=-sanitizer-coverage-%,level=4 inline-8bit-counters pc-table)

# Each with the maximum length of its inputs, and folders of further ones.
FUZZ_SECONDS ?= 600
FUZZ = mkdir -p measured/fuzz/target/found/$(1) && measured/fuzz/target/x86_64-unknown-linux-gnu/release/$(1) \
	-max_total_time=$(FUZZ_SECONDS) -max_len=$(2) -artifact_prefix=measured/fuzz/target/$(1)- measured/fuzz/target/found/$(1) $(3)

fuzz:
	cd measured/fuzz && RUSTFLAGS="$(FUZZING)" $(CARGO) build --release
	$(call FUZZ,dns,600,measured/net/corpus)
	$(call FUZZ,queue,500)
	$(call FUZZ,records,4100)

screenshot: setup-test build
	scripts/screenshot

clean:
	$(CARGO) clean
	cd measured && $(CARGO) clean
	cd measured/fuzz && $(CARGO) clean
