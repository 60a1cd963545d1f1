# All tasks of developers and CI; see README.md.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help install train left-out results compare chaos chaos-checks soak dev demo tracing test test-fast test-parts test-long lint lock agent contracts metrics screenshots \
	zipkin kafka kubernetes certificates secrets compose-up compose-broker compose-checkpoint compose-load compose-test compose-down audit sbom fuzz clean \
	style types rules collected tests

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	"$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null \
	&& command -v "$$p" && break; done)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
# Programs that many tests start, and the tests themselves, are compiled once.
export PYTHONDONTWRITEBYTECODE :=
OURS := agent benchmarks cli client infra reporter services shared simulator training

help: ## List the targets.
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

install: .venv/installed ## Install into .venv, with the berth command.

dev: .venv/developed ## Add the dependencies of the tests.

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "Berth needs Python 3.11, 3.12 or 3.13" >&2; exit 1; }
	"$(PYTHON)" -m venv .venv

.venv/installed: .venv/bin/python requirements.lock pyproject.toml
	@echo "Installing Berth's packages into .venv (1.2 GB, once); it takes some minutes." >&2
	$(PIP) install --quiet --require-hashes -r requirements.lock
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q $(OURS)
	$(BIN)/python -m simulator.kernel
	touch $@

.venv/developed: .venv/installed requirements-dev.lock
	@echo "Installing the packages of the tests into .venv (0.7 GB, once); it takes some minutes." >&2
	$(PIP) install --quiet --require-hashes -r requirements-dev.lock
	touch $@

demo: install ## Start everything and replay a workload: TRACE= JOBS= SPEED= CHECK= BROKER= TLS= LLM=0
	@$(BIN)/berth demo $(if $(TRACE),--trace "$(TRACE)") $(if $(JOBS),--jobs "$(JOBS)") \
		$(if $(SPEED),--speed "$(SPEED)") $(if $(filter-out 0,$(CHECK)),--check) \
		$(if $(BROKER),--broker "$(BROKER)") $(if $(filter-out 0,$(TRACING)),--tracing) \
		$(if $(filter-out 0,$(TLS)),--tls) $(if $(filter 0,$(LLM)),--no-llm)

tracing: install ## The demo with Zipkin, which shows the traces of its jobs: as demo.
	@$(MAKE) --no-print-directory demo TRACING=1

lint: style ## Rules of style, types, imports and words.
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target types rules

style: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .

types: dev
	$(BIN)/mypy

rules: dev
	$(BIN)/lint-imports
	$(BIN)/python -m infra.lint

# The collection leaves the tests compiled: each worker of a whole run would compile all of them.
collected: dev
	$(BIN)/pytest --collect-only -qq > /dev/null

# Most tests wait half of the time, for processes or for time to pass: more workers than cores.
WORKERS ?= $(shell expr $$(nproc) + 2)
# CI sets RETRY=1: the few tests that failed are tried once more, alone.
RUN_TESTS = $(BIN)/$(if $(RETRY),python -m tests.retry,pytest)
ALONE := not (parts or long or slow or process or kafka or stack or browser or compose)
# Each worker imports all that it collects, which takes longer than these tests: a worker per core.
INNER := $(wildcard tests/services/*/core) tests/agent/core tests/contracts tests/infra/lint \
	$(addprefix tests/shared/,contracts ledger pipeline verify) tests/test_shells.py

# The first tests wait for stacks to start, and leave the time of a core to the types.
test: style ## Run lint and the tests that a commit must pass, in about 11 minutes on two cores: PYTEST= WORKERS=
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target rules collected
	@$(MAKE) --no-print-directory --jobs=2 types tests

tests: dev
	$(RUN_TESTS) -m "not (parts or long)" -n $(WORKERS) --durations=10 $(PYTEST)

test-fast: lint ## Run lint and the tests of pure cores and contracts, in 90 s: PYTEST= more folders
	EXAMPLES=20 $(BIN)/pytest -m "$(ALONE)" -n $$(nproc) $(INNER) $(PYTEST)

test-parts: dev ## Run the tests of upgrades, kills, several brokers and access rights: PYTEST= WORKERS=
	$(RUN_TESTS) -m "parts and not long" -n $(WORKERS) --durations=10 $(PYTEST)

# A worker per core: the nodes of a Ray that wait long for each other give up.
test-long: dev ## Run the tests on a real Ray, which is installed into the cache once (half a GiB): PYTEST=
	$(RUN_TESTS) -m long -n 1 --durations=10 $(PYTEST)

lock: dev ## Resolve the dependencies again, with hashes.
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
		--no-header --no-emit-index-url --no-emit-find-links --extra server --extra build --extra simulation \
		-o requirements.lock pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-header --no-emit-index-url --no-emit-find-links --extra server --extra build \
		-c requirements.lock -o infra/image/requirements.lock pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
		--no-header --no-emit-index-url --no-emit-find-links --extra server --extra build --extra simulation --extra dev \
		-c requirements.lock -o requirements-dev.lock pyproject.toml

train: install ## Train the learned policies again on real traces, see docs/workloads.md (an hour or two: see their manifests).
	$(BIN)/python -m training

left-out: install ## Train networks on all traces but those of one cluster, evaluate them there (half an hour): FOLDS= SEEDS=
	$(BIN)/python -m training.left_out $(FOLDS) $(if $(SEEDS),--seeds $(SEEDS))
	$(BIN)/berth bench left_out --out docs/results --json > /dev/null

results: install ## Generate the pages of docs/results on policies, prediction, LLM endpoints and growth.
	$(BIN)/berth bench policies --out docs/results --json > /dev/null
	$(BIN)/berth bench preemption --out docs/results --json > /dev/null
	$(BIN)/berth bench protection --out docs/results --json > /dev/null
	$(BIN)/berth bench left_out --out docs/results --json > /dev/null
	$(BIN)/berth bench live_day --out docs/results --json > /dev/null
	$(BIN)/berth bench prediction --out docs/results --json > /dev/null
	$(BIN)/berth bench progress --out docs/results --json > /dev/null
	$(BIN)/berth bench placement --json > docs/results/placement.json
	$(BIN)/berth bench simulator --json > docs/results/simulator.json
	$(BIN)/berth bench ablation --json > docs/results/ablation.json
	$(BIN)/berth bench ranking --json > docs/results/ranking.json
	$(BIN)/berth bench throttle --out docs/results --json > /dev/null
	$(BIN)/berth bench adapters --out docs/results --json > /dev/null
	$(BIN)/berth bench retraining --out docs/results --json > /dev/null
	$(BIN)/berth bench league --out docs/results --json > /dev/null
	$(BIN)/berth bench fragmentation --out docs/results --json > /dev/null
	$(BIN)/berth bench spot --ablations --out docs/results --json > /dev/null
	$(BIN)/berth bench year --out docs/results --json > /dev/null
	$(BIN)/berth bench flood --out docs/results --json > /dev/null

compare: install ## Compare benchmarks with those of a commit, in turn: BASE= BENCH= ROUNDS= OPTIONS=
	@mkdir -p build
	$(BIN)/berth bench compare --base "$(BASE)" $(if $(BENCH),--benches "$(BENCH)") \
		$(if $(ROUNDS),--rounds "$(ROUNDS)") $(if $(OPTIONS),--options="$(OPTIONS)") > build/compare.json

CHAOS_TESTS := tests/replay tests/operations/test_upgrade.py tests/infra/security/on_kafka tests/e2e/test_observed.py \
	tests/chaos/test_three_brokers.py
CHAOS_LONG := --only kills --jobs 100000 --kills 100 --killers 3 --pools 3 --per-s 60 --minutes 46

chaos: dev ## Kill every part, in virtual time and on real processes (a quarter of an hour): SEEDS= LONG=1 ONLY= JOBS= KILLS=
	mkdir -p build
ifeq ($(ONLY)$(LONG),)
	$(BIN)/python -m tests.chaos --seeds $(or $(SEEDS),200) > build/chaos-simulation.json
endif
	$(BIN)/berth bench chaos --out docs/results $(if $(ONLY)$(LONG),,--simulation build/chaos-simulation.json) \
		$(if $(LONG),$(CHAOS_LONG)) $(if $(ONLY),--only $(ONLY)) $(if $(JOBS),--jobs $(JOBS)) \
		$(if $(KILLS),--kills $(KILLS) --alone $(KILLS)) $(if $(ZOMBIES),--zombies $(ZOMBIES)) \
		$(if $(SOAK),--soak-minutes $(SOAK) --per-s 20) \
		$(if $(MALFORMED),--malformed $(MALFORMED)) > build/chaos-run.json

soak: install ## One more slice of a soak over the data of the last one (50 minutes): MINUTES= DATA=
	$(BIN)/berth bench soak --minutes "$(or $(MINUTES),40)" --data "$(or $(DATA),build/soak)" \
		--out docs/results --json > /dev/null

chaos-checks: dev ## Run the tests whose figures belong to the page of `make chaos`, and add them to it.
	mkdir -p build
	-BERTH_TRACED_JOBS=300 BERTH_BROKER_KILLS=20 $(BIN)/python -m pytest -q $(CHAOS_TESTS) --junitxml build/chaos-checks.xml
	$(BIN)/berth bench chaos --only none --checks build/chaos-checks.xml --out docs/results > build/chaos-run.json

agent: install ## Build dist/berth-agent.pyz and the wheels of agent and reporter.
	$(BIN)/python -m infra.packages --out dist

contracts: dev ## Generate schemas, AsyncAPI and the event table from the contracts.
	$(BIN)/python -m shared.contracts.generate

metrics: dev ## Generate docs/metrics.md and the dashboards from their lists.
	$(BIN)/python -m shared.telemetry.document
	$(BIN)/python -m infra.grafana.build

screenshots: dev ## Take the screenshots of the docs again (needs Chromium, Java and Maven).
	BERTH_SCREENSHOTS=1 $(BIN)/pytest tests/e2e/test_browser.py

zipkin: install ## Fetch Zipkin into the cache (needs Java and Maven).
	$(BIN)/python -m infra.tracing --fetch

kafka: install ## Fetch Apache Kafka into the cache (needs Java and Maven).
	$(BIN)/python -m infra.broker.kafka --fetch

kubernetes: install ## Build a Kubernetes for the tests into the cache (11 minutes of CPU time; needs Go 1.26).
	$(BIN)/python -m infra.kubernetes.build

certificates: install ## Make or renew the private CA and the certificates of its servers: OUT= HOST=
	$(BIN)/python -m infra.security.certificates --out "$(or $(OUT),.berth/certificates)" \
		$(foreach host,$(HOST),--host "$(host)")

audit: dev ## Query the advisory service for every locked package; a package without an answer fails.
	@$(BIN)/python -m infra.security.supply_chain audit

sbom: dev ## Write build/sbom.cdx.json (CycloneDX): every locked package with its hashes.
	@$(BIN)/python -m infra.security.supply_chain sbom

secrets: install ## Make the secrets of docker-compose.yml, once.
	$(BIN)/python -m infra.compose.secrets .berth/secrets

compose-up: install ## Start docker-compose.yml, with stand-ins where no image registry responds.
	@$(BIN)/python -m infra.compose up

compose-checkpoint: install ## Before compose-up with new code: build its image and fold the ledgers beside the running services.
	@$(BIN)/python -m infra.compose checkpoint

compose-broker: install ## Start the broker and its topics alone, for berth restore --into .berth/compose.
	@$(BIN)/python -m infra.compose broker

compose-load: install ## Submit LOAD_JOBS= synthetic jobs by event to the containers of compose-up.
	@$(BIN)/python -m infra.compose load

compose-test: dev ## Test the containers of compose-up from outside; it kills some of them.
	BERTH_COMPOSE=1 $(BIN)/pytest -m compose tests/compose $(PYTEST)

compose-down: install ## Stop the containers; VOLUMES=1 deletes their data and secrets.
	@$(BIN)/python -m infra.compose down $(if $(filter-out 0,$(VOLUMES)),--volumes)

fuzz: dev ## Fuzz for longer: SECONDS= of each target of bytes, SEED=; OUT= keeps the JSON.
	$(BIN)/python -m tests.fuzz --seconds "$(or $(SECONDS),10)" --seed "$(or $(SEED),1)" \
		$(if $(OUT),| tee "$(OUT)")

clean: ## Remove build outputs; data of a running stack in .berth stays.
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find $(OURS) tests -name __pycache__ -prune -exec rm -rf {} +
