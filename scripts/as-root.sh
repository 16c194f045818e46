#!/usr/bin/env bash
# Runs a test binary through sudo with the variables that tests look at: cargo's "runner" for `make test` of a user.
exec sudo env "PATH=$PATH" "SYSTAPE_REQUIRE_BPF=${SYSTAPE_REQUIRE_BPF:-}" "$@"
