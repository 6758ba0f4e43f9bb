# Two commands do everything: `make demo` and `make test`. Both keep their environment in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint clean
.DEFAULT_GOAL := demo

$(VENV)/.base: pyproject.toml hatch_build.py $(wildcard src/boa/*/_*.c)
	@$(PYTHON) -c 'import sys; sys.exit("BOA needs Python 3.11 or newer; try: make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	@echo "setting up $(VENV) (once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	@echo "adding the test tools to $(VENV) (once)"
	@$(PIP) -e '.[dev]'
	@touch $@

demo: $(VENV)/.base
	@$(BIN)/boa demo -o demo

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest -m "not ray" -n auto --dist loadfile --no-loadscope-reorder
	$(BIN)/python -m pytest -m ray  # alone: Ray gives its processes 30 s to come up

clean:
	rm -rf $(VENV) demo bench/out
