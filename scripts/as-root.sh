#!/usr/bin/env bash
# Runs a program as root, through sudo unless it is root already, with the variables that tests look at: also cargo's "runner" for
# `make test` of a user.
[ "$(id -u)" != 0 ] || exec "$@"
exec sudo env "PATH=$PATH" "SYSTAPE_REQUIRE_BPF=${SYSTAPE_REQUIRE_BPF:-}" "SYSTAPE_BIN_DIR=${SYSTAPE_BIN_DIR:-}" "$@"
