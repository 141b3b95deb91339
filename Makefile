# Python 3.11 or newer and make are all that is needed: each target fills .venv as its requirements file pins
# it, when that is missing or stale, and then does its job.
#
#   make up              everything in the foreground, at http://127.0.0.1:8000
#   make up ARGS=--help  what it can be told
#   make test            what a change must pass

PYTHON := .venv/bin/python
RUN := sh .ci/venv requirements.txt && exec $(PYTHON)
DEV := sh .ci/venv requirements-dev.txt && $(PYTHON)
COMPILE := -m uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url
LOCK := $(COMPILE) pyproject.toml
EXAMPLES := docs/examples/langchain
ARGS ?=

.PHONY: up down demo bench bench-load chaos test test-engines lint lock image

up:
	@$(RUN) manage.py up $(ARGS)

down:
	@$(RUN) manage.py down $(ARGS)

demo:
	@$(RUN) manage.py demo $(ARGS)

# How fast it is, then how soon it is there and what memory it holds.
bench:
	@$(DEV) manage.py evaluate $(ARGS)
	@$(PYTHON) -m tests.evals.footprint

# How much a server bears, and what becomes of it when things fail; ARGS=--help says what they can be told.
bench-load:
	@$(DEV) -m tests.evals.load $(ARGS)

chaos:
	@$(DEV) -m tests.chaos $(ARGS)

test:
	@sh .ci/venv $(EXAMPLES)/requirements.txt .venv-examples || echo "Its tests are skipped." >&2
	@sh .ci/npm tests/mcp/conformance
	@$(DEV) -m ruff check --quiet .
	@$(DEV) -m pytest -n auto --dist worksteal $(ARGS)

# The tests of vector engines with each that runs here as a program, in an environment of their own (1.4 GB).
test-engines:
	@sh .ci/venv .ci/requirements-engines.txt .venv-engines
	@.venv-engines/bin/python -m pytest tests/memories/test_vector_engines.py tests/memories/test_vector_index.py $(ARGS)

lint:
	@$(DEV) -m ruff check .
	@$(DEV) -m ruff format --check .
	@$(DEV) -m mypy .
	@.venv/bin/hadolint Dockerfile
	@.venv/bin/check-jsonschema --quiet --builtin-schema vendor.compose-spec docker-compose.yml
	@! docker compose version >/dev/null 2>&1 || docker compose config --quiet

# Builds and runs the image without a container engine; wants root on Linux, takes minutes.
image:
	@$(DEV) .ci/image

# Pins with hashes for every platform, without the address of a package index.
lock:
	@$(DEV) -m pip install -qq --disable-pip-version-check uv
	@$(PYTHON) $(LOCK) --output-file requirements.txt
	@$(PYTHON) $(LOCK) --group dev --output-file requirements-dev.txt
	@$(PYTHON) $(LOCK) --group dev --group engines --output-file .ci/requirements-engines.txt
	@$(PYTHON) $(COMPILE) --python-version 3.11 $(EXAMPLES)/requirements.in --output-file $(EXAMPLES)/requirements.txt
