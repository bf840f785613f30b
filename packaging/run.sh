#!/bin/sh
# Build the server if anything has changed, installing what that needs, and run it in the foreground with the caller's ABX_* settings.
#
#   packaging/run.sh [--build-only] [arguments of abxd: --port N, …]
#
# Standard output carries one line, once the server answers; everything else goes to standard error. SIGTERM ends the server.
set -eu

ROOT=$(cd "$(dirname "$0")/.." && pwd -P)
. "$ROOT/packaging/setup.sh"

build_only=
n=$#
while [ "$n" -gt 0 ]; do
	if [ "$1" = --build-only ]; then
		build_only=yes
	else
		set -- "$@" "$1"
	fi
	shift
	n=$((n - 1))
done

build "$PACKAGES"
[ -z "$build_only" ] || exit 0
exec "$PREFIX/bin/abxd" --foreground "$@"
