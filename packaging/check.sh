#!/bin/sh
# Build what has changed, as run.sh does, and run the whole test suite. Arguments go to prove: packaging/check.sh -v
set -eu

ROOT=$(cd "$(dirname "$0")/.." && pwd -P)
. "$ROOT/packaging/setup.sh"

build "$PACKAGES"
need_packages "perl curl"
unset ABX_SERVER_TOKEN
step make -j "$(nproc)" -C "$BUILD" check-build
exec make -s --no-print-directory -C "$BUILD" check PROVE_FLAGS="$*"
