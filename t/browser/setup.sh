#!/bin/sh
# Fetches what the browser test needs from npm into the directory $1: the terminal for web pages, and what drives the browser. Chromium itself is the
# system's package.
set -eu
cd "$1"
echo '{"private": true}' > package.json
exec npm install --no-audit --no-fund --no-package-lock --ignore-scripts --loglevel=error '@xterm/xterm@6' 'playwright-core@1'
