# What a person types. Everything a target needs it makes first: the tools of infra/requirements.txt go into
# .venv, once for each change of that file; cargo compiles what changed. Nothing is installed elsewhere.

SHELL := /bin/sh
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

# May be given on the command line: make run PORT=4600 (else 4566), make guards ONLY=lease,
# make deploy ARCHITECTURE=x86_64
PYTHON ?= python3
PORT ?=
ONCE ?=
LOCALSTRIPE ?=
ONLY ?=
# The processor to compile for: the one answered at the last deploy.
ARCHITECTURE ?= $(or $(shell sed -n 's/.*Architecture=[\\"]*\([a-z0-9_]*\).*/\1/p' samconfig.toml 2>/dev/null),arm64)
# The size of make faults: deliveries, less than ten minutes of them, and a seed to repeat; none is a new one.
FAULTS_SIZE ?= 3000
FAULTS_SEED ?=

VENV := .venv
INSTALLED := $(VENV)/installed
VENV_PYTHON := $(VENV)/bin/python
TARGET := $(or $(CARGO_TARGET_DIR),target)
LOCAL := $(VENV_PYTHON) infra/local.py
UP := $(LOCAL) up $(if $(PORT),--port $(PORT)) --binaries $(TARGET)/debug

# Where tests find what they start.
export ONCEHOOK_PYTHON := $(CURDIR)/$(VENV_PYTHON)
export ONCEHOOK_BINARIES := $(abspath $(TARGET))/debug
# sam sends no usage data, and does not ask for newer versions of itself (see the rule for .venv).
export SAM_CLI_TELEMETRY := 0
export __SAM_CLI_APP_DIR := $(CURDIR)/$(VENV)/sam

.PHONY: help run up down test faults check guards guards-table deploy clean build install tools

help: ## show this table
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## start everything, deliver the samples, stay up until Ctrl-C (ONCE=1: check, stop and exit; LOCALSTRIPE=1: with a Stripe)
	@trap '$(LOCAL) down' EXIT; trap 'exit $(if $(ONCE),130,0)' INT TERM; \
	$(UP) --fresh && . ./.local/env && ONCE='$(ONCE)' $(TARGET)/debug/demo $(if $(LOCALSTRIPE),--local-stripe 8420)

up: build ## start the local stack in the background and write .local/env
	@$(UP)

down: ## stop it and remove its files
	@if [ -x $(VENV_PYTHON) ]; then $(LOCAL) down; else echo "nothing is up"; fi

test: build ## run every test
	cargo test --workspace

faults: build ## kill processes and break calls to AWS in thousands of deliveries (FAULTS_SEED=N repeats a plan)
	FAULTS_SIZE='$(FAULTS_SIZE)' FAULTS_SEED='$(FAULTS_SEED)' cargo test --workspace --test faults

check: tools $(INSTALLED) ## check format, lints, documentation, template and layering
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked
	$(VENV)/bin/cfn-lint template.yaml
	@AWS_DEFAULT_REGION=us-east-1 $(VENV)/bin/sam validate --lint
	@$(VENV_PYTHON) infra/template_rules.py
	@$(VENV_PYTHON) infra/layering.py
	@$(VENV_PYTHON) infra/guards.py check
	@if command -v cargo-deny >/dev/null; then cargo deny --locked --config infra/deny.toml check bans licenses sources; \
	  else echo "cargo-deny is not installed: licences, versions and origins of crates were not checked"; fi

guards: tools $(INSTALLED) ## switch off every guard in turn and see its test fail (ONLY=name: one guard or rule)
	@$(VENV_PYTHON) infra/guards.py run $(if $(ONLY),--only '$(ONLY)')

guards-table: $(INSTALLED)
	@$(VENV_PYTHON) infra/guards.py table

deploy: tools $(INSTALLED) ## build for Lambda and deploy to AWS, asking what it needs to know
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/sam build --parameter-overrides 'Architecture=$(ARCHITECTURE)'
	@echo "compiled for $(ARCHITECTURE): let Architecture be that below"
	$(VENV)/bin/sam deploy --guided --capabilities CAPABILITY_IAM

clean: ## stop the local stack and remove everything that was built or installed
	@if [ -x $(VENV_PYTHON) ]; then $(LOCAL) down; fi
	rm -rf $(VENV) .aws-sam $(TARGET)

build: tools $(INSTALLED)
	@cargo build --workspace --bins

# The stamp is a copy of the list, so that a file that was only touched installs nothing. A half-made
# environment is not kept: without its stamp it is made again from nothing.
$(INSTALLED): infra/requirements.txt | tools
	@if cmp -s $< $@; then touch $@; else $(MAKE) --no-print-directory install; fi

install: tools
	@echo "installing the Python tools into $(VENV) (about a minute, once)"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "make: Python cannot make an environment; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check -r infra/requirements.txt
	@mkdir -p $(VENV)/sam && echo '{"lastVersionCheck": 4102444800.0}' > $(VENV)/sam/metadata.json
	@cp infra/requirements.txt $(INSTALLED)

tools:
	@command -v cargo >/dev/null || { \
	  echo "make: cargo is missing; install Rust with rustup" >&2; exit 1; }
	@rustc --version | awk '{ split($$2, is, "."); exit !(is[1] > 1 || is[2] >= 95) }' || { \
	  echo "make: $$(rustc --version) is too old, 1.95 or later is needed: rustup update" >&2; exit 1; }
	@command -v $${CC:-cc} >/dev/null || { \
	  echo "make: there is no C compiler ($${CC:-cc}); on Debian and Ubuntu: apt install gcc" >&2; exit 1; }
	@command -v $(PYTHON) >/dev/null || { \
	  echo "make: $(PYTHON) is missing; install Python 3.10 or later, or name one: make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "make: $$($(PYTHON) --version) is too old, 3.10 or later is needed; name one: make PYTHON=python3.12" >&2; exit 1; }
