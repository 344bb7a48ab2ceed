# One verb for each thing; CI calls the same ones.
#   make        build the release binary and run the demonstration on this machine (make build: only build it)
#   make errors, make performance, make kill
#               print failed messages and remove them, measure the running fleet, stop it
#   make soak   kill, pause and cut off the nodes of a fleet for a while, then prove that nothing was lost
#   make test   install what the tests need (a browser only by apt-get), run all of them
#   make golden write golden/ from the programs: all that users can see of them, which tests compare
#   make lint   formatting, clippy, each set of features by itself, documentation and the paths in it, licences and sources
#               of dependencies
#   make bench  count the instructions a message costs, then measure Baton and other job queues side by side on this
#               machine (bench/README.md); what is missing is installed with npm, pip and apt-get, or left out by name
#   make fuzz   the long run: 2,000 random fleets in simulated time, 50 in processes and a million random operations
#               on each real store, a minute of fuzzing the codecs
#   make mutants
#               put faults back that once were there, one at a time, and prove that random fleets find each of them
#   make fuzz-http
#               try to break the gateway: schemathesis by its description (installed with pip), then peers that mean harm

# STORE=redis://127.0.0.1:6379/0 names another store than the default, ARGS="--interval 10ms" adds flags.

CARGO ?= cargo
STORE ?=
ARGS ?=
# Where cargo builds; what `make build` has built is named at its end.
TARGET := $(or $(CARGO_TARGET_DIR),$(CARGO_BUILD_TARGET_DIR),target)
BATON := $(TARGET)/release/baton
WITH_STORE := $(if $(STORE),--store '$(STORE)')
# What `make soak` runs on (redis, sqlite or both, always on servers of its own) and for how long; SEED replays a run.
SOAK_STORE ?= $(or $(patsubst rediss,redis,$(firstword $(subst :, ,$(STORE)))),both)
SOAK_SECONDS ?= 120
# Operations of the state machine on each real store in `make fuzz`; a seed replays a run.
OPS ?= 1000000
FLEETS ?= 2000
REAL_FLEETS ?= 50
MUTANT_FLEETS ?= 300
SEED ?=
FUZZ_SECONDS ?= 60
# Flags of bench/run.py: BENCH_ARGS="--quick" for a glance, "--help" for the rest.
BENCH_ARGS ?=
# What the library is built with by `make lint`, a set at a time; the first one is empty.
FEATURE_SETS := "" memory sqlite redis redis-tls builtin cron admin cache settings testing sqlite,builtin,cache \
	sqlite,redis,redis-tls,cron,admin,cache,settings,testing

.PHONY: up build errors performance kill soak test golden lint bench fuzz mutants fuzz-http tools

up: build
	@exec $(BATON) $(WITH_STORE) up --demo $(ARGS)

build:
	$(CARGO) build --release --locked -p baton-cli
	@echo "built $(BATON)"

errors: $(BATON)
	@exec $(BATON) $(WITH_STORE) errors --remove $(ARGS)

performance: $(BATON)
	@exec $(BATON) $(WITH_STORE) stats $(ARGS)

kill: $(BATON)
	@exec $(BATON) $(WITH_STORE) stop --yes $(ARGS)

$(BATON):
	$(CARGO) build --release --locked -p baton-cli

soak: tools
	$(CARGO) build --release --locked -p baton-cli -p baton-testkit
	$(TARGET)/release/soak --baton $(BATON) --store $(SOAK_STORE) --seconds $(SOAK_SECONDS) $(if $(SEED),--seed $(SEED)) $(ARGS)

test: tools
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		echo $(CARGO) nextest run --locked --workspace; $(CARGO) nextest run --locked --workspace; \
	else \
		echo $(CARGO) test --locked --workspace --lib --bins --tests; $(CARGO) test --locked --workspace --lib --bins --tests; \
	fi
	$(CARGO) test --locked --workspace --doc

# The list of old words shrinks by what the new files no longer have.
golden:
	BATON_GOLDEN=write $(CARGO) test --locked -p baton-cli --bin baton --test golden -- golden_
	BATON_GOLDEN=write $(CARGO) test --locked -p baton-cli --test golden -- old_words_are_gone

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	@for package in baton-cli baton-gateway baton-bench baton-servers baton-testkit; do \
		echo "$(CARGO) clippy -p $$package --all-targets"; \
		$(CARGO) clippy --locked -p $$package --all-targets -- -D warnings || exit 1; \
	done
	@for features in $(FEATURE_SETS); do \
		echo "$(CARGO) clippy -p baton-fleet --no-default-features --features '$$features'"; \
		$(CARGO) clippy --locked -p baton-fleet --no-default-features --features "$$features" -- -D warnings || exit 1; \
	done
	@for path in $$(grep -o '`[a-z_.-][a-z_.-]*/[a-z_./-]*`' ARCHITECTURE.md | tr -d '`' | sort -u); do \
		for root in . crates/baton/src crates/baton/src/store crates/baton/src/fleet crates/baton-testkit/src; do \
			[ -e "$$root/$$path" ] && continue 2; \
		done; \
		echo "ARCHITECTURE.md names $$path, which is not there"; exit 1; \
	done
	@$(CARGO) metadata --locked --manifest-path fuzz/Cargo.toml --format-version 1 >/dev/null
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps -p baton-fleet --all-features
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
		echo $(CARGO) deny check bans licenses sources; $(CARGO) deny --locked check bans licenses sources; \
	else \
		echo "cargo-deny is not installed: licences and sources were not checked (cargo install --locked cargo-deny)"; \
	fi

# The harness is tested before it measures. Python's standard library is all it needs itself. Instructions are counted
# first: a message that costs more than recorded is found in seconds.
bench: tools build
	python3 -m unittest discover -q -s bench/tests -t bench
	python3 bench/instructions/check.py --cargo '$(CARGO)'
	python3 bench/install.py
	python3 bench/run.py --baton $(BATON) $(BENCH_ARGS)

# Fleets of the simulator in `make fuzz`, and fleets of processes; FLEETS=1 REAL_FLEETS=1 SEED=n replays one. The long form, a thousand nodes for an hour:
# BATON_NODES=1000 BATON_SECONDS=3600 cargo test --release -p baton-testkit --test simulator large -- --nocapture
fuzz: tools
	BATON_FLEETS=$(FLEETS) $(if $(SEED),BATON_SEED=$(SEED)) $(CARGO) test --release --locked -p baton-testkit --test simulator random -- --nocapture --test-threads 2
	BATON_FLEETS=$(REAL_FLEETS) $(if $(SEED),BATON_SEED=$(SEED)) $(CARGO) test --release --locked -p baton-testkit --test real_fleets drawn -- --nocapture --test-threads 2
	BATON_OPS=$(OPS) $(if $(SEED),BATON_SEED=$(SEED)) $(CARGO) test --release --locked -p baton-testkit --test state_machine -- --nocapture --test-threads 2
	@$(CARGO) fuzz --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-fuzz
	for target in parcel span; do \
		RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run -s none $$target -- -max_total_time=$$(($(FUZZ_SECONDS) / 2)) -max_len=4096 || exit 1; \
	done

# Each fault is a patch in fuzz/mutations and meets MUTANT_FLEETS of the simulator, from the first seed on; ARGS="--only 3"
# takes those that begin so.
mutants:
	CARGO='$(CARGO)' python3 fuzz/mutations/run.py --fleets $(MUTANT_FLEETS) $(if $(SEED),--seed $(SEED)) $(ARGS)

fuzz-http: build
	python3 fuzz/http/run.py --baton $(BATON) $(if $(SEED),--seed $(SEED)) $(ARGS)

# The tests start their own servers, and handlers in several languages; this only sees to it that there are some to start.
tools:
	@missing=; \
	command -v redis-server >/dev/null 2>&1 || missing="$$missing redis-server"; \
	command -v python3 >/dev/null 2>&1 || missing="$$missing python3"; \
	command -v node >/dev/null 2>&1 || missing="$$missing nodejs"; \
	command -v perl >/dev/null 2>&1 || missing="$$missing perl"; \
	[ -z "$$missing" ] || { \
		if command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ]; then \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing; \
		elif command -v apt-get >/dev/null 2>&1 && command -v sudo >/dev/null 2>&1; then \
			sudo apt-get update -qq && sudo apt-get install -y -qq $$missing; \
		else \
			echo "the tests need$$missing (redis-server 7.0 or newer): install with your package manager, such as brew or dnf"; exit 1; \
		fi; }
	@for browser in chromium chromium-browser google-chrome; do command -v $$browser >/dev/null 2>&1 && exit 0; done; \
	if command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ]; then \
		apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium && exit 0; \
	fi; \
	echo "there is no chromium: the one test with a browser is left out"
