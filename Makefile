# Two commands are enough on a fresh Linux machine with Python 3.11 or newer:
#   make demo    reads the text of a page on the best device of this machine
#   make test    installs the rest and runs every test
# Both share one environment, .venv; it is brought up to date when pyproject.toml,
# constraints-cpu.txt or one of the scripts in tools/ change.

PYTHON ?= python3
PYTEST_ARGS ?=
DEMO_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
INSTALL := $(PIP) install --constraint constraints-cpu.txt
WHEEL_PIP := build/wheel/venv/bin/python -m pip --quiet --disable-pip-version-check
SETUP_FILES := pyproject.toml constraints-cpu.txt tests/models.txt tools/opencv_fallback.py \
  tools/swiftshader.py
FRAMEWORKS := build/frameworks/venv
FRAMEWORKS_PIP := $(FRAMEWORKS)/bin/python -m pip --quiet --disable-pip-version-check
TEST_EXTRAS := cli,demo,openvino,torch

.DEFAULT_GOAL := help
.PHONY: help demo setup test test-all lint types layers docs bench test-gpu test-frameworks test-opencv4 nightly check build clean

help: ## Say what each target does
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(VENV)/.stamp-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"devicecore needs Python 3.11 or newer, and {sys.executable} is {sys.version.split()[0]}; name another one: make PYTHON=python3.12 demo")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.stamp-demo: $(SETUP_FILES) | $(VENV)/.stamp-python
	@echo "Installing the demo: about 200 MB to download, no torch."
	$(INSTALL) --editable '.[demo]'
	@$(BIN)/python tools/opencv_fallback.py
	@touch $@

$(VENV)/.stamp-test: $(SETUP_FILES) | $(VENV)/.stamp-python
	@echo "Installing what the tests need: about 600 MB to download with the CPU build of torch;"
	@echo "where pip finds only the CUDA build of torch for this machine, about 3 GB."
	$(INSTALL) --editable '.[$(TEST_EXTRAS)]' --group dev
	$(INSTALL) --no-deps --requirement tests/models.txt
	@$(BIN)/python tools/opencv_fallback.py
	@$(BIN)/python tools/swiftshader.py
	@touch $(VENV)/.stamp-demo $@

demo: $(VENV)/.stamp-demo ## Read a page on the best device (DEMO_ARGS="--image FILE")
	$(BIN)/devicecore demo --out build/demo $(DEMO_ARGS)

setup: $(VENV)/.stamp-test ## Install everything that the other targets need

test: setup ## Run every test function, some cases of each, and the examples in the docs (PYTEST_ARGS="-k names")
	@echo "Running some cases of every test: 10 to 25 minutes on two cores; make test-all runs all of them."
	$(BIN)/pytest --short --numprocesses=auto --maxprocesses=8 $(PYTEST_ARGS)

test-all: setup ## Run all cases of all tests, about half an hour on two cores
	@echo "Running every test: about half an hour on two cores; make test runs some cases of each."
	$(BIN)/pytest --numprocesses=auto --maxprocesses=8 $(PYTEST_ARGS)

lint: setup ## Format, lint, spelling, length of files, changelog fragments
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/codespell
	@find conftest.py tools devicecore factories tests benchmarks -name '*.py' -exec awk \
	  'FNR == 400 { print FILENAME ": a file stays under 400 lines"; bad = 1 } END { exit bad }' {} +
	@out=$$($(BIN)/towncrier build --draft --version check 2>&1) || { echo "$$out"; exit 1; }

types: setup ## mypy --strict, then pyright as a second opinion
	$(BIN)/mypy
	$(BIN)/pyright
	PATH="$(CURDIR)/$(BIN):$$PATH" pyright --ignoreexternal --verifytypes devicecore

layers: setup ## Check that imports point inwards
	$(BIN)/lint-imports

docs: setup ## Build the docs offline; any warning fails
	$(BIN)/sphinx-build --nitpicky --fail-on-warning --keep-going -q docs build/docs

bench: setup ## Run the benchmarks and keep the numbers
	@mkdir -p build
	$(BIN)/pytest benchmarks --quiet --dist=no --benchmark-enable --benchmark-json=build/bench.json $(PYTEST_ARGS)
	@$(BIN)/python benchmarks/report.py build/bench.json

test-gpu: setup ## Run the tests that need an accelerator, and say why each other was skipped
	$(BIN)/pytest -m hardware -rs $(PYTEST_ARGS)

$(FRAMEWORKS)/.stamp: pyproject.toml constraints-frameworks.txt
	@echo "Installing JAX, TensorFlow, Paddle and transformers beside the ordinary environment: about 800 MB."
	$(PYTHON) -m venv $(FRAMEWORKS)
	$(FRAMEWORKS_PIP) install --constraint constraints-frameworks.txt --editable . \
	  jax tensorflow-cpu paddlepaddle torch transformers hypothesis pytest sybil
	@touch $@

# Each framework in a process of its own: they take each other's threads and libraries otherwise.
# The options of pyproject.toml need plug-ins that are not here; their warnings are not ours.
test-frameworks: $(FRAMEWORKS)/.stamp ## Run the tests of scopes and transfers with each framework
	for framework in jax tensorflow paddle transformers; do \
	  $(FRAMEWORKS)/bin/python -m pytest tests/scope tests/transfer/test_frameworks.py -q -k $$framework -o filterwarnings=default \
	    -o addopts=--import-mode=importlib $(PYTEST_ARGS) || exit 1; \
	done

build/opencv4/.stamp: Makefile
	rm -rf build/opencv4
	$(PIP) install --target build/opencv4 --no-deps 'opencv-python-headless==4.13.*'
	@touch $@

# OpenCV 4 lies in front of the newer one; what it answers itself is skipped. Kernels of Triton are
# planned by those of torch.
test-opencv4: setup build/opencv4/.stamp ## Run the tests of devicecore.cv beside OpenCV 4.13
	PYTHONPATH=build/opencv4 $(BIN)/pytest tests/cv --ignore tests/cv/test_promises.py --ignore-glob '*/test_triton*' $(PYTEST_ARGS)

check: lint types layers test-all docs ## Everything that CI runs, but for test-frameworks

build: setup ## Build the wheel and look into it
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/check-wheel-contents dist

nightly: build test-opencv4 ## Every test, the slow ones too, against the built wheel in an environment of its own
	rm -rf build/wheel
	mkdir -p build/wheel
	$(BIN)/python -m venv build/wheel/venv
	$(WHEEL_PIP) install --upgrade 'pip>=25.1'
	$(WHEEL_PIP) install --constraint constraints-cpu.txt "$$(ls dist/*.whl)[$(TEST_EXTRAS)]" --group test
	$(WHEEL_PIP) install --no-deps --requirement tests/models.txt
	build/wheel/venv/bin/python tools/opencv_fallback.py
	build/wheel/venv/bin/python tools/swiftshader.py
	cp -r README.md conftest.py pyproject.toml docs tests tools benchmarks build/wheel/
	cd build/wheel && venv/bin/pytest -m "" --hypothesis-profile=searching -o faulthandler_timeout=1200 $(PYTEST_ARGS)

clean: ## Remove everything that make made
	rm -rf $(VENV) build dist .benchmarks .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
