# Every target creates what it needs. Nothing outside this folder is touched.
PYTHON ?= python3
VENV := .venv
BENCH := .venv-bench
PEER := .venv-rlberry
PIP_FLAGS := --quiet --disable-pip-version-check

.PHONY: demo test lint bench bench-control compare docs clean

demo: $(VENV)/.installed
	$(VENV)/bin/python examples/swing_up.py --out demo.png

test: $(VENV)/.installed
	$(VENV)/bin/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/.installed
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

bench: $(BENCH)/.installed
	$(BENCH)/bin/python benchmarks/gp/run.py

bench-control: $(BENCH)/.installed
	$(BENCH)/bin/python benchmarks/control/sac.py

# A peer that cannot be installed is part of the result, and stops nothing.
compare: $(BENCH)/.installed
	$(MAKE) $(PEER)/.installed || true
	$(BENCH)/bin/python benchmarks/compare/run.py $(COMPARE)

docs: $(VENV)/.docs
	$(VENV)/bin/mkdocs build --strict

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(VENV)/bin/python -m pip install $(PIP_FLAGS) -c constraints.txt -e ".[dev]"
	touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(VENV)/bin/python -m pip install $(PIP_FLAGS) -c constraints.txt -e ".[docs]"
	touch $@

# PyTorch first and pinned: an open range would bring several gigabytes of accelerator libraries.
$(BENCH)/.installed: benchmarks/gp/requirements.txt benchmarks/control/requirements.txt pyproject.toml constraints.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install $(PIP_FLAGS) torch==2.13.0
	$(BENCH)/bin/python -m pip install $(PIP_FLAGS) -r benchmarks/gp/requirements.txt
	$(BENCH)/bin/python -m pip install $(PIP_FLAGS) -c constraints.txt -e .
	$(BENCH)/bin/python -m pip install $(PIP_FLAGS) --no-deps -r benchmarks/control/requirements.txt
	touch $@

# rlberry wants an older Gymnasium than ours.
$(PEER)/.installed: benchmarks/compare/requirements.txt
	$(PYTHON) -m venv $(PEER)
	$(PEER)/bin/python -m pip install $(PIP_FLAGS) -r benchmarks/compare/requirements.txt
	touch $@

clean:
	rm -rf $(VENV) $(BENCH) $(PEER) site demo.png
