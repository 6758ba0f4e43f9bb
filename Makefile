# Two commands do everything: `make demo` and `make test`. Both keep their environment in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The versions that were tested, or, where one is not to be had, the newest that fit.
INSTALL = @$(PIP) -c requirements.lock -e '$(1)' 2>/dev/null || { \
	echo "not all versions of requirements.lock are to be had here: taking the newest that fit"; $(PIP) -e '$(1)'; }

# The dashboard: Node is needed to build and to test it, not to run it.
STATIC := src/boa/server/static
WEB := $(wildcard web/*.html web/*.js web/*.json web/*.ts) $(shell find web/src web/public -type f)
MODULES := web/node_modules/.stamp
NPM := cd web && npm
NODE := node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 22 || (a == 22 && b >= 12) || (a == 20 && b >= 19) ? 0 : 1)' && command -v npm >/dev/null
# One more than processors: some tests always wait.
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1)
BROWSERS := chromium chromium-browser google-chrome google-chrome-stable

# Programs of ours start hundreds of times in the tests: each is compiled once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo web test lint lint-python lint-web test-web test-ray test-kubernetes tables docs matrix audit screenshots clean node chromium kubernetes
.DEFAULT_GOAL := demo

$(VENV)/.base: pyproject.toml requirements.lock hatch_build.py $(wildcard src/boa/*/_*.[ch] src/boa/*/*/_*.[ch])
	@$(PYTHON) -c 'import sys; sys.exit("BOA needs Python 3.11 or newer; try: make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	@echo "setting up $(VENV) (once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(call INSTALL,.)
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	@echo "adding the test tools to $(VENV) (once)"
	$(call INSTALL,.[dev])
	@touch $@

demo: $(VENV)/.base
	@if { $(NODE); } 2>/dev/null; then \
	  $(MAKE) --no-print-directory web || echo "the demo goes on without a new dashboard"; \
	elif [ ! -f $(STATIC)/index.html ]; then \
	  echo "no Node 20.19, 22.12 or newer here: the demo goes on without the dashboard"; fi
	@$(BIN)/boa demo -o demo

web: $(STATIC)/index.html

$(STATIC)/index.html: $(MODULES) $(WEB)
	@echo "building the dashboard"
	@$(NPM) run --silent build -- --logLevel warn
	@touch $@

$(MODULES): web/package-lock.json | node
	@echo "fetching what the dashboard is built with (once)"
	@$(NPM) ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

node:
	@{ $(NODE); } 2>/dev/null || { echo "make $(or $(MAKECMDGOALS),demo) needs Node 20.19, 22.12 or newer for the dashboard's own tests and build: from nodejs.org, or your system's packages" >&2; exit 1; }

chromium:
	@for name in $(BROWSERS) "$$BOA_CHROMIUM"; do command -v "$$name" >/dev/null && exit 0; done; \
	if ! command -v apt-get >/dev/null; then \
	  echo "make test needs Chromium on the PATH, or its path in BOA_CHROMIUM: dnf install chromium, or brew install --cask chromium" >&2; exit 1; fi; \
	if [ "$$(id -u)" = 0 ]; then as=; elif command -v sudo >/dev/null; then as=sudo; else \
	  echo "make test needs Chromium: ask whoever may to run apt-get install chromium" >&2; exit 1; fi; \
	echo "installing Chromium from the system's packages (once)"; \
	get="$$as env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -qq chromium fonts-liberation"; \
	$$get >/dev/null 2>&1 || { $$as apt-get -o APT::Sandbox::User=root update -qq; $$get >/dev/null; }

kubernetes:  # a control plane and a kubelet, from Debian's source, once
	@$(PYTHON) tests/kube/build.py --or-skip

lint: lint-python lint-web

lint-python: $(VENV)/.dev $(MODULES)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(NPM) run --silent types:check  # the page's types are the service's
	$(BIN)/mypy

lint-web: $(MODULES)
	$(NPM) run --silent lint
	$(NPM) run --silent format:check
	$(NPM) run --silent typecheck

test-web: $(MODULES)
	$(NPM) run --silent test

matrix: $(VENV)/.dev
	$(BIN)/python tests/matrix.py --strict  # every other Python that is here, and a few tests

audit: $(VENV)/.dev
	$(BIN)/python tests/supply_chain.py --strict  # what is known of the versions that are locked

test: node chromium
	@$(MAKE) --no-print-directory -j3 kubernetes lint-web $(VENV)/.dev  # what builds and what installs: together
	@$(MAKE) --no-print-directory -j2 lint-python test-web web
	$(BIN)/python tests/supply_chain.py
	$(BIN)/python tests/matrix.py
	$(BIN)/python -m pytest -m "not ray and not browser and not kubernetes" -n $(WORKERS) --dist loadfile --no-loadscope-reorder
	$(BIN)/python -m pytest tests/browser -m browser -n 2 --dist loadfile  # alone: a page that waits for a processor looks broken
	@$(MAKE) --no-print-directory -j2 --output-sync=target test-ray test-kubernetes  # both mostly wait

# With little beside them: Ray gives its processes 30 s to come up, and a node that is silent for long is taken for dead.
test-ray: $(VENV)/.dev
	$(BIN)/python -m pytest tests/integration/test_*ray*.py -m ray

test-kubernetes: $(VENV)/.dev
	$(BIN)/python -m pytest tests/integration/test_kube*.py -m kubernetes -n 2

tables: $(VENV)/.dev  # the field tables in docs/, as the formats declare them, the gallery's, and docs/reference/
	$(BIN)/python tests/field_tables.py
	$(BIN)/python tests/changed_lines.py
	$(BIN)/python tests/reference_pages.py

docs: $(VENV)/.docs  # the documentation as a site: site/index.html
	@$(BIN)/python tests/doc_site.py

$(VENV)/.docs: $(VENV)/.base
	@echo "adding what builds the documentation to $(VENV) (once)"
	$(call INSTALL,.[docs])
	@touch $@

screenshots: node chromium $(VENV)/.dev web
	$(BIN)/python -m pytest tests/browser/test_screenshots.py tests/browser/test_teams.py --screenshots docs/dashboard

clean:
	rm -rf $(VENV) .venv-* demo site build bench/out $(STATIC) web/node_modules
