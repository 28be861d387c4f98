# The two commands are `make run` and `make test`; everything else serves them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NODE_TESTS := tests/browser tests/clients/typescript tests/conformance
LANGUAGES := $(notdir $(basename $(wildcard templates/languages/*.po)))
MESSAGES := $(VENV)/messages.pot
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes

.PHONY: run test check setup lint types bench messages lock wheel clean

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
pytest: $(VENV)/.installed-dev $(NODE_TESTS:%=%/node_modules/.installed)
	$(BIN)/pytest

bench: $(VENV)/.installed-dev
	$(BIN)/python -m bench

wheel: $(VENV)/.installed-dev
	$(BIN)/python -m hatchling build -t wheel

messages: $(VENV)/.installed-dev  ## Collect the pages' words; what is new waits in templates/languages/*.po.
	$(BIN)/pybabel -q extract --mapping-file babel.cfg --add-location file --omit-header --no-wrap -o $(MESSAGES) templates
	@for language in $(LANGUAGES); do \
	  $(BIN)/pybabel -q update --no-fuzzy-matching --ignore-obsolete --omit-header --no-wrap --locale $$language \
	    --input-file $(MESSAGES) --output-file templates/languages/$$language.po; \
	done
	@rm $(MESSAGES)

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

# Node.js runs the official clients and the conformance suite; without it those tests say what they need.
%/node_modules/.installed: %/package-lock.json
	@if command -v npm >/dev/null; then \
	  cd $* && npm ci --silent --no-audit --no-fund && touch node_modules/.installed; \
	else echo "SKIPPING $*: install Node.js 20 or newer with npm"; fi

clean:
	rm -rf $(VENV) dist $(NODE_TESTS:%=%/node_modules)
