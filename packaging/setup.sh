# Shared by run.sh and check.sh: find out what is missing, and build the tree in build/. To be sourced; the caller has set ROOT (the
# top of the tree) and uses "set -eu". Nothing here prints to standard output.

BUILD=$ROOT/build
PREFIX=$BUILD/root
STAMP=$BUILD/.stamp

# What a build needs on Debian 12, and lighttpd. Of names with a bar between them any one will do.
PACKAGES="gcc libc6-dev make autoconf automake pkg-config|pkgconf lighttpd libfcgi-dev libjansson-dev nettle-dev libseccomp-dev
	libarchive-dev libyaml-dev libsqlite3-dev libcurl4-gnutls-dev|libcurl4-openssl-dev|libcurl4-nss-dev"

say() {
	echo "${0##*/}: $*" >&2
}

is_installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Print the names of the list "$1" that are missing.
missing_packages() {
	for wanted in $1; do
		found=
		for name in $(echo "$wanted" | tr '|' ' '); do
			if is_installed "$name"; then
				found=yes
				break
			fi
		done
		[ "$found" ] || echo "${wanted%%|*}"
	done
}

# Debian starts a service when its package is installed, unless this file says no. Ours is removed again.
forbid_services() {
	POLICY=/usr/sbin/policy-rc.d
	[ ! -e "$POLICY" ] || { POLICY=; return 0; }
	printf '#!/bin/sh\nexit 101\n' >"$POLICY"
	chmod 755 "$POLICY"
}

allow_services() {
	[ -z "${POLICY:-}" ] || rm -f "$POLICY"
	POLICY=
}

# Install what is missing of the list "$1".
need_packages() {
	if ! command -v dpkg-query >/dev/null 2>&1; then
		say "this is not Debian: what $1 stand for must be there already"
		return 0
	fi
	missing=$(missing_packages "$1" | tr '\n' ' ')
	[ "$missing" ] || return 0
	if [ "$(id -u)" -ne 0 ]; then
		say "these Debian packages are missing: $missing"
		say "install them as root (apt-get install $missing), then run this again"
		exit 1
	fi
	say "installing $missing"
	trap allow_services EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	forbid_services
	export DEBIAN_FRONTEND=noninteractive
	{
		apt-get update -q &&
			# shellcheck disable=SC2086
			apt-get install -q -y --no-install-recommends $missing
	} </dev/null >&2 || {
		say "the packages could not be installed"
		exit 1
	}
	allow_services
	trap - EXIT INT TERM
}

# Whether anything that is built or installed is newer than the last build. Python leaves directories of its own beside its modules.
is_changed() {
	cd "$ROOT"
	[ "$(find common policy handlers include m4 configure.ac Makefile.am lighttpd.conf.in -newer "$STAMP" -print -quit)" ] ||
		[ "$(find packaging -type f ! -path '*/__pycache__/*' -newer "$STAMP" -print -quit)" ]
}

# Whether build/ holds this tree as it is now. A tree that was moved has other paths inside.
is_built() {
	[ -e "$STAMP" ] && [ "$(cat "$STAMP")" = "$ROOT" ] && [ -x "$PREFIX/bin/abxd" ] && ! (is_changed)
}

# Run a step of the build; what it says goes to a file, the end of which is shown when it fails.
step() {
	if ! "$@" </dev/null >>"$BUILD/build.log" 2>&1; then
		say "failed: $*"
		tail -n 40 "$BUILD/build.log" >&2
		exit 1
	fi
}

build_locked() {
	[ ! -e "$STAMP" ] || [ "$(cat "$STAMP")" = "$ROOT" ] ||
		find "$BUILD" -mindepth 1 -maxdepth 1 ! -name .lock -exec rm -rf {} +
	say "building (log: $BUILD/build.log)"
	: >"$BUILD/build.log"
	# What is changed while the build runs is newer than this.
	echo "$ROOT" >"$STAMP.new"
	cd "$ROOT"
	[ -x configure ] || step autoreconf -fi
	cd "$BUILD"
	[ -e Makefile ] || step "$ROOT/configure" --prefix="$PREFIX"
	step make -j "$(nproc)" all
	step make install
	mv "$STAMP.new" "$STAMP"
}

# Make build/root what the tree says. Several at once wait for the first. The list "$1" is what it takes.
build() {
	! is_built || return 0
	if [ -x "$PREFIX/bin/abxd" ] && [ ! -w "$BUILD" ]; then
		say "the tree is newer than build/, which is not yours to write: running what is there"
		return 0
	fi
	mkdir -p "$BUILD" 2>/dev/null && [ -w "$BUILD" ] || {
		say "cannot write to $BUILD: build as the owner of the tree (packaging/run.sh --build-only)"
		exit 1
	}
	# A build has no use for the server's settings, the token least of all. The lock ends with this subshell.
	(
		unset ABX_SERVER_TOKEN
		exec 9>"$BUILD/.lock"
		flock 9
		! is_built || exit 0
		need_packages "$1" 9>&-
		build_locked 9>&-
	) || exit $?
}
