# make run: from a fresh clone to the service in the browser.  make test: from a fresh clone to all tests passed.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python

.PHONY: run test lint screenshots clean

run: $(VENV)/runtime
	@exec $(PY) manage.py serve

test: $(VENV)/runtime $(VENV)/tests
	@exec $(PY) -m tests.everything

lint: $(VENV)/tests
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(VENV)/bin/lint-imports

screenshots: $(VENV)/tests
	$(PY) -m tests.browser.screenshots

clean:
	rm -rf $(VENV)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=…"; exit 2; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq python3-venv; } >/dev/null 2>&1 || { echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 2; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/runtime: requirements.txt $(wildcard advisor/locale/*/LC_MESSAGES/django.po) | $(VENV)/bin/python
	@echo "Installing the pinned requirements (about a minute, once) …"
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@$(PY) -m babel.messages.frontend --quiet compile --domain django --directory advisor/locale
	@touch $@

$(VENV)/tests: tests/requirements.txt | $(VENV)/runtime
	@echo "Installing the pinned test tools …"
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r tests/requirements.txt
	@touch $@
