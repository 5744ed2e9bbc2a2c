# Every target creates what it needs. Nothing outside this folder is touched.
PYTHON ?= python3
VENV := .venv
BENCH := .venv-bench
PEER := .venv-rlberry
SHELF_VENVS := .venv-shelf .venv-dmc .venv-pcgym
SHELF_OUT := runs/shelf
PIP_FLAGS := --quiet --disable-pip-version-check

.PHONY: demo test check types lint bench bench-control compare shelf docs figures wheel clean

demo: $(VENV)/.installed
	$(VENV)/bin/python examples/swing_up.py --out demo.png

test: $(VENV)/.installed
	$(VENV)/bin/python -m pytest -n 2 --dist loadfile

# Before every commit, in less than two minutes: rules on the source, bad input, and the lower
# layers, whose tests compile little. The other tests train agents or compile large programs.
FAST := $(addprefix tests/,test_shape.py test_layers.py test_docstrings.py test_docstring_rules.py \
    test_interface.py test_domains.py test_fast.py test_programs.py agents/test_bad_input.py \
    $(addprefix kernels/test_,algebra.py bad_input.py finite_rank.py outputs.py text.py)) \
    $(addprefix src/kernelmdp/,domains kernels numerics registry.py settings.py)
check: lint
	$(VENV)/bin/python -m pytest -n 2 --dist loadfile $(FAST)

lint: types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/codespell
	$(VENV)/bin/codespell --dictionary docs/theme/american.txt *.md docs/*.md  # British throughout
	$(VENV)/bin/python -m tools.prose src tools

types: $(VENV)/.installed
	$(VENV)/bin/mypy

bench: $(BENCH)/.installed
	$(BENCH)/bin/python benchmarks/gp/run.py

bench-control: $(BENCH)/.installed
	$(BENCH)/bin/python benchmarks/control/sac.py

# A peer that cannot be installed is part of the result, and stops nothing.
compare: $(BENCH)/.installed
	$(MAKE) $(PEER)/.installed || true
	$(BENCH)/bin/python benchmarks/compare/run.py $(COMPARE)
	$(BENCH)/bin/python docs/figures/shrink.py docs/figures/compare-*.png

# Tasks of an environment that cannot be installed are skipped. SHELF="--tasks Reacher-v5 --seeds 1"
# plays less. "make shelf-sac SAC=..." plays the peer.
.PHONY: shelf-sac
shelf: .venv-shelf/.installed
	$(MAKE) .venv-dmc/.installed || true
	$(MAKE) .venv-pcgym/.installed || true
	.venv-shelf/bin/python benchmarks/shelf/run.py --out $(SHELF_OUT) $(SHELF)
	.venv-shelf/bin/python benchmarks/shelf/table.py $(SHELF_OUT)

shelf-sac: .venv-shelf/.installed
	$(MAKE) .venv-dmc/.installed || true
	.venv-shelf/bin/python benchmarks/shelf/sac.py --out $(SHELF_OUT) $(SAC)
	.venv-shelf/bin/python benchmarks/shelf/table.py $(SHELF_OUT)

# SafeOpt beside GP-UCRL with constraints, H = 1.
.PHONY: safeopt
safeopt: .venv-safeopt/.installed
	.venv-safeopt/bin/python benchmarks/safety/safeopt_study.py

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict
	! grep -rlE '<(script|img|link)[^>]+(src|href)="https?:' site  # nothing comes from the network

# The pictures of README and site are committed, small; this draws them again, in some ten minutes.
EXAMPLES := regret table lqr bandit pendulum_v1 pricing ask_tell safe_oven data_logger \
    reference_tracking
figures: $(VENV)/.installed
	for name in point kernels inside; do $(VENV)/bin/python docs/figures/$$name.py || exit 1; done
	for name in $(EXAMPLES); do \
	    $(VENV)/bin/python examples/$$name.py --out docs/figures/example-$$name.png || exit 1; done
	$(VENV)/bin/python docs/figures/shrink.py docs/figures/example-*.png

# Builds the wheel, installs it where nothing else is, and runs a command far from the checkout.
wheel:
	rm -rf dist && $(PYTHON) -m pip wheel $(PIP_FLAGS) --no-deps -w dist .
	set -e; place=$$(mktemp -d); trap 'rm -rf "$$place"' EXIT; \
	$(PYTHON) -m venv "$$place/venv"; \
	"$$place/venv/bin/python" -m pip install $(PIP_FLAGS) -c constraints.txt dist/*.whl; \
	cd "$$place"; venv/bin/kmdp run riverswim --agent psrl --episodes 3 --seed 0 --out runs/river; \
	test -s runs/river/episodes.csv; venv/bin/kmdp report runs/river --no-maps; \
	venv/bin/python -c "import kernelmdp as km; print(km.__file__, km.__version__)"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(VENV)/bin/python -m pip install $(PIP_FLAGS) -c constraints.txt -e ".[dev]"
	touch $@

$(VENV)/.docs: $(VENV)/.installed pyproject.toml constraints.txt
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

# PyTorch first and pinned, as above. dm-control needs an older MuJoCo than Gymnasium's tasks have.
.venv-shelf/.installed: benchmarks/shelf/requirements-mujoco.txt benchmarks/shelf/requirements-sac.txt pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-shelf
	.venv-shelf/bin/python -m pip install $(PIP_FLAGS) torch==2.13.0
	.venv-shelf/bin/python -m pip install $(PIP_FLAGS) -c constraints.txt -e . -r benchmarks/shelf/requirements-mujoco.txt
	.venv-shelf/bin/python -m pip install $(PIP_FLAGS) --no-deps -r benchmarks/shelf/requirements-sac.txt
	touch $@

.venv-dmc/.installed: benchmarks/shelf/requirements-dmc.txt benchmarks/shelf/requirements-sac.txt pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-dmc
	.venv-dmc/bin/python -m pip install $(PIP_FLAGS) torch==2.13.0
	.venv-dmc/bin/python -m pip install $(PIP_FLAGS) -c constraints.txt -e . -r benchmarks/shelf/requirements-dmc.txt
	.venv-dmc/bin/python -m pip install $(PIP_FLAGS) --no-deps -r benchmarks/shelf/requirements-sac.txt
	touch $@

# pc-gym and do-mpc come without their dependencies, which the environments do not import.
.venv-pcgym/.installed: benchmarks/shelf/requirements-pcgym.txt benchmarks/shelf/requirements-pcgym-only.txt pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-pcgym
	.venv-pcgym/bin/python -m pip install $(PIP_FLAGS) -c constraints.txt -e . -r benchmarks/shelf/requirements-pcgym.txt
	.venv-pcgym/bin/python -m pip install $(PIP_FLAGS) --no-deps -r benchmarks/shelf/requirements-pcgym-only.txt
	touch $@

# SafeOpt comes without its dependencies: its own choice of versions does not install.
.venv-safeopt/.installed: benchmarks/safety/requirements-safeopt.txt pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-safeopt
	.venv-safeopt/bin/python -m pip install $(PIP_FLAGS) -c constraints.txt -e .
	.venv-safeopt/bin/python -m pip install $(PIP_FLAGS) --no-deps -r benchmarks/safety/requirements-safeopt.txt
	touch $@

clean:
	rm -rf $(VENV) $(BENCH) $(PEER) $(SHELF_VENVS) .venv-safeopt dist site demo.png
