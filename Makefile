# Python 3.11 or newer and make are all that is needed: each target fills .venv as its requirements file pins
# it, when that is missing or stale, and then does its job.
#
#   make up              everything in the foreground, at http://127.0.0.1:8000
#   make up ARGS=--help  what it can be told
#   make test            what a change must pass

PYTHON := .venv/bin/python
RUN := sh .ci/venv requirements.txt && exec $(PYTHON)
DEV := sh .ci/venv requirements-dev.txt && $(PYTHON)
LOCK := -m uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url pyproject.toml
ARGS ?=

.PHONY: up down demo bench test lint lock image

up:
	@$(RUN) manage.py up $(ARGS)

down:
	@$(RUN) manage.py down $(ARGS)

demo:
	@$(RUN) manage.py demo $(ARGS)

bench:
	@$(RUN) manage.py evaluate $(ARGS)

test:
	@$(DEV) -m ruff check --quiet .
	@$(DEV) -m pytest -n auto --dist worksteal $(ARGS)

lint:
	@$(DEV) -m ruff check .
	@$(DEV) -m ruff format --check .
	@$(DEV) -m mypy .

# Builds and runs the image without a container engine; wants root on Linux, takes minutes.
image:
	@$(DEV) .ci/image

# Pins with hashes for every platform, without the address of a package index.
lock:
	@$(DEV) -m pip install -qq --disable-pip-version-check uv
	@$(PYTHON) $(LOCK) --output-file requirements.txt
	@$(PYTHON) $(LOCK) --group dev --output-file requirements-dev.txt
