# The two commands are `make run` and `make test`; everything else serves them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes

.PHONY: run test check setup lint types bench lock wheel clean

run: setup  ## Serve on http://127.0.0.1:8788 with the embedded defaults.
	$(BIN)/vademecum serve

setup: $(VENV)/.installed  ## Everything `vademecum serve` needs, in .venv.

test: check  ## Lint, types and every test whose engine is here.

check: lint types pytest

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

.PHONY: pytest
pytest: $(VENV)/.installed-dev tests/clients/typescript/node_modules/.installed
	$(BIN)/pytest

bench: $(VENV)/.installed-dev
	$(BIN)/python -m bench

wheel: $(VENV)/.installed-dev
	$(BIN)/python -m hatchling build -t wheel

lock:  ## Resolve again (needs uv): exact versions with hashes, no addresses.
	uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --upgrade --extra build pyproject.toml -o requirements.lock
	uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --extra build --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python requirements.lock pyproject.toml
	$(INSTALL) -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock
	$(INSTALL) -r requirements-dev.lock
	touch $@

# The TypeScript clients are tests only; without Node they are skipped with one loud line.
tests/clients/typescript/node_modules/.installed: tests/clients/typescript/package-lock.json
	@if command -v npm >/dev/null; then cd tests/clients/typescript && npm ci --silent --no-audit --no-fund && touch node_modules/.installed; \
	else echo "SKIPPED: the TypeScript client tests need Node.js 20 or newer with npm on the PATH"; fi

clean:
	rm -rf $(VENV) dist tests/clients/typescript/node_modules
