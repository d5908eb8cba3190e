# The two commands to know: `make run` and `make test`. The first of either makes .venv; later ones find it made.

# Python 3.10 to 3.14, e.g. `make run PYTHON=python3.11`. MXNet itself runs on 3.10 to 3.12.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input --quiet --quiet
# Each stands for an install of what pyproject.toml asks for now.
INSTALLED := $(VENV)/installed
INSTALLED_DEV := $(VENV)/installed-dev
# Make .venv anew if it has another Python than the named one, or if its own Python was replaced by a newer one.
NAMED := $(if $(filter file,$(origin PYTHON)),$(BIN)/python,$(PYTHON))
VERSION := $(shell $(NAMED) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
ifeq ($(wildcard $(VENV)/lib/python$(VERSION)),)
CLEAR := --clear
.PHONY: $(INSTALLED)
endif
# Python keeps what it compiled: the tests start hundreds of processes, each of which would compile this package anew.
unexport PYTHONDONTWRITEBYTECODE
# Where `make tour` measures: what it prints is what it has just measured.
TOUR := build/tour
# What people wait for; the other benchmarks take longer, or ask for a quiet host.
BENCHMARKS := startup samples store_scale tui_workbench tui_tree tui_results report

.PHONY: run tour test check matrix soak samples bench accuracy docs reference screenshots format clean

run: $(INSTALLED)
	@if [ -t 0 ] && [ -t 1 ] && [ -t 2 ]; then $(BIN)/dlbricks; else $(MAKE) --no-print-directory tour; fi

# What can be shown without a terminal: what repeats, and two small models by their bricks and end to end, measured now.
tour: $(INSTALLED)
	$(BIN)/dlbricks models
	$(BIN)/dlbricks corpus resnet18_v1 resnet50_v1 mobilenetv2_1.0 squeezenet1.1 vgg16
	@rm -rf $(TOUR)
	$(BIN)/dlbricks --data-dir $(TOUR) run squeezenet1.1 mobilenet0.5 --method inside --time-budget 50

test: check
	$(BIN)/python -m pytest -q --numprocesses 2 --dist worksteal

check: $(INSTALLED_DEV)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --num-workers 2
	$(BIN)/codespell
	$(BIN)/proselint check --config docs/proselint.json README.md CHANGELOG.md docs

# The documentation as a site in build/site, which opens from disk: build/site/index.html. A broken link is an error.
docs: $(INSTALLED_DEV)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# `make test` on every installed Python from 3.10 to 3.14, in environments of their own, and a table of how they ended.
matrix:
	@$(PYTHON) -m tests.matrix

soak: $(INSTALLED_DEV)
	$(BIN)/python -m pytest -q --numprocesses 2 --dist worksteal -m "soak or hypothesis" --hypothesis-profile thorough

samples: $(INSTALLED)
	$(BIN)/python -m sample_models.builders

bench: $(INSTALLED)
	@broken=0; for name in $(BENCHMARKS); do \
		echo "== $$name"; $(BIN)/python -m benchmarks.$$name || broken=1; \
	done; exit $$broken

# Measures the fifty models, the Gluon zoo and ONNX models, end to end and by bricks, which takes an hour and more on a
# quiet host. Figures go to build/accuracy; `python -m benchmarks.accuracy --publish` puts them into docs/accuracy.md.
accuracy: $(INSTALLED)
	$(BIN)/python -m benchmarks.accuracy

# The pages of docs/reference that follow from the code; a test compares them with it.
reference: $(INSTALLED)
	$(BIN)/python -m docs.generators

# The pictures show the recorded results of `dlbricks demo`: they need no framework.
screenshots: reference
	$(BIN)/python -m docs.pictures

format: $(INSTALLED_DEV)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo 'Python 3.10 or newer is needed: name one, e.g. make $(MAKECMDGOALS) PYTHON=python3.11' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo 'Python cannot make virtual environments here: sudo apt install python3-venv' >&2; exit 1; }
	@echo 'Setting up $(VENV): this takes a minute or two, and only now.' >&2
	@$(PYTHON) -m venv $(CLEAR) $(VENV)
	@$(PIP) install --editable '.[openvino,scenarios,fleet,llm]'
	@touch $@

$(INSTALLED_DEV): $(INSTALLED)
	@$(PIP) install --editable '.[dev,fleet,llm,openvino,scenarios]'
	@touch $@
