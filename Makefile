# The two commands are `make run` and `make test`; everything else serves them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NODE_TESTS := tests/browser tests/clients/typescript tests/conformance tests/identity_providers
LANGUAGES := $(notdir $(basename $(wildcard templates/languages/*.po)))
MESSAGES := $(VENV)/messages.pot
FIREBASE_SDK := templates/static/firebase
FIREBASE_VERSION := $(shell sed -n 's/^SDK_VERSION = "\(.*\)"/\1/p' connector/pages/firebase.py)
FIREBASE_SHA512 := 9305c22dc234972da5930ca091bb91c7a4ac5f70d23bdeb7e7962b5a1f52599e6772cc4aff2e5c8ab9f7b18ea76554a205513efb69cbe87721ceed4407cba885
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes

.PHONY: run test check setup lint types bench messages lock wheel clean firebase-sdk

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
pytest: $(VENV)/.installed-dev $(NODE_TESTS:%=%/node_modules/.installed) $(if $(shell command -v npm),firebase-sdk)
	$(BIN)/pytest -n auto --dist loadfile

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

# Two files of the npm package `firebase`, for sign-in with Firebase from our own origin; the wheel takes them along.
firebase-sdk: $(FIREBASE_SDK)/.$(FIREBASE_VERSION)

$(FIREBASE_SDK)/.$(FIREBASE_VERSION): | $(BIN)/python
	@command -v npm >/dev/null || { echo "install Node.js with npm, or set VADEMECUM_FIREBASE_SDK=cdn"; exit 1; }
	npm pack --silent --pack-destination $(VENV) firebase@$(FIREBASE_VERSION) >/dev/null
	$(BIN)/python -c 'import hashlib, sys; sys.exit(hashlib.sha512(open(sys.argv[1], "rb").read()).hexdigest() != sys.argv[2] and "not the package that was expected")' $(VENV)/firebase-$(FIREBASE_VERSION).tgz $(FIREBASE_SHA512)
	rm -rf $(FIREBASE_SDK) && mkdir -p $(FIREBASE_SDK)
	tar -xzf $(VENV)/firebase-$(FIREBASE_VERSION).tgz -C $(FIREBASE_SDK) --strip-components=1 package/firebase-app-compat.js package/firebase-auth-compat.js
	touch $@

# Node.js runs the official clients and the conformance suite; without it those tests say what they need.
%/node_modules/.installed: %/package-lock.json
	@if command -v npm >/dev/null; then \
	  cd $* && npm ci --silent --no-audit --no-fund && touch node_modules/.installed; \
	else echo "SKIPPING $*: install Node.js 20 or newer with npm"; fi

clean:
	rm -rf $(VENV) dist $(FIREBASE_SDK) $(NODE_TESTS:%=%/node_modules)
