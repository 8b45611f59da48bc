# Weir: what to run. `make run` serves, `make test` is what a change has to pass.
#
#   make run [PORT=4222] [DIR=./data] [ARGS="-m 8222"]   build and serve with JetStream in DIR
#   make cluster [NODES=3] [PORT=4222] [DIR=./data] [ARGS="-D"]  build and run a cluster of several servers on this machine;
#                                                        servers talk on PORT+2000, monitoring is on PORT+4000
#   make test [SEEDS=100]                                vet, staticcheck, all tests, simulated seeds
#   make check                                           vet, staticcheck and the architecture test alone
#   make sim [NODES=3] [SEEDS=500] [FROM=0]              simulate seeds
#   make torture [DURATION=10m] [NODES=3] [ARGS="--seed 1"]  break a real cluster under load and judge it
#   make crash [WORKLOADS=1000]                         crash the storage at every disk call of generated workloads;
#                                                        reports every 20 workloads, takes a quarter of an hour
#   make bench [ARGS="--quick"]                          measure beside the reference server
#   make fuzz [FUZZTIME=60s]                             fuzz every parser and decoder in turn

SHELL := /bin/bash
GO ?= go
PORT ?= 4222
NODES ?= 3
DIR ?= ./data
SEEDS ?= 100
FROM ?= 0
FUZZTIME ?= 60s
WORKLOADS ?= 1000
DURATION ?= 10m
ARGS ?=

.PHONY: run cluster build test check sim torture crash bench fuzz

build:
	$(GO) build -o bin/weir ./cmd/weir

run: build
	exec bin/weir serve -js -sd "$(DIR)" -p $(PORT) $(ARGS)

cluster: build
	exec bin/weir cluster --nodes $(NODES) --dir "$(DIR)/cluster" --port $(PORT) --cluster-port $$(($(PORT)+2000)) \
		--http-port $$(($(PORT)+4000)) $(if $(ARGS),-- $(ARGS))

check:
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) test -count=1 ./spec/arch/

test:
	SEEDS=$(SEEDS) .ci/test

sim: build
	bin/weir sim --nodes $(NODES) --seeds $(SEEDS) --from $(FROM) $(ARGS)

torture: build
	bin/weir torture --nodes $(NODES) --duration $(DURATION) $(ARGS)

crash:
	CRASH_WORKLOADS=$(WORKLOADS) CRASH_FROM=0 $(GO) test ./sim/crash -run Crashes -timeout 2h -v

bench: build
	bin/weir bench $(ARGS)

# One target at a time: the fuzzer of Go takes one function of one package.
fuzz:
	@set -euo pipefail; \
	grep -rl --include='*_test.go' '^func Fuzz' . | grep -v /testdata/ | xargs -n1 dirname | sort -u | while read -r dir; do \
		sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $$dir/*_test.go | sort -u | while read -r target; do \
			echo "== $$dir $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir"; \
		done; \
	done
