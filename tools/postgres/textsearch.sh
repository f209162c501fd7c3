#!/usr/bin/env bash
# Install PostgreSQL 18 with pgvector and pg_textsearch, and PgBouncer, from Debian forky into a folder, for tests and benchmarks.
#
#     bash tools/postgres/textsearch.sh [FOLDER]     default: WAYLORE_TEXTSEARCH, else .cache/postgres-textsearch
#
# Run it as root on a Debian machine of any release. It uses the mirror of the machine's own apt, or
# WAYLORE_DEBIAN_MIRROR. A complete installation is left unchanged. The script starts no service and changes nothing
# outside of the folder, except that it installs debootstrap if it is missing. `tools/postgres/server.py` starts servers.
set -euo pipefail
folder=${1:-${WAYLORE_TEXTSEARCH:-$(dirname "$0")/../../.cache/postgres-textsearch}}
oldest=1.5.1 # in older versions WHERE with ORDER BY and LIMIT returns some rows twice and others never

fail() {
  printf '%s\n' "$1" >&2
  exit 1
}

[ -e "$folder/complete" ] && [ -e "$folder/usr/sbin/pgbouncer" ] && { printf '%s\n' "$folder"; exit 0; }
[ "$(id -u)" = 0 ] || fail "installing needs root: run this as root, once"
[ ! -e "$folder" ] || fail "$folder exists but is not complete: inspect and remove it"

command -v debootstrap >/dev/null || { apt-get -qq update && apt-get -qq install --yes debootstrap >/dev/null 2>&1; }
mirror() { apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' | sed -n 's/^Debian //p' | head -1; }
from=${WAYLORE_DEBIAN_MIRROR:-$(mirror)}
from=${from:-$(apt-get -qq update && mirror)}
[ -n "$from" ] || fail "apt has no Debian mirror: set WAYLORE_DEBIAN_MIRROR"

mkdir -p "$(dirname "$folder")"
made=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$made"' EXIT
chmod 755 "$made"
recipe=/usr/share/debootstrap/scripts/sid # older versions do not know forky; all suites use the script of sid
debootstrap --variant=minbase forky "$made" "$from" $recipe >"$made.log" 2>&1 || fail "debootstrap failed: see $made.log"

# Start no services, unpack no manuals or translations, and do not sync: a broken installation can be repeated.
printf '#!/bin/sh\nexit 101\n' >"$made/usr/sbin/policy-rc.d"
chmod 755 "$made/usr/sbin/policy-rc.d"
printf 'force-unsafe-io\npath-exclude=/usr/share/man/*\npath-exclude=/usr/share/locale/*\n' >"$made/etc/dpkg/dpkg.cfg.d/small"
mkdir -p "$made/etc/postgresql-common"
printf 'create_main_cluster = false\n' >"$made/etc/postgresql-common/createcluster.conf"
unshare --mount sh -c "
  mount -t proc proc '$made/proc' &&
  exec env DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot '$made' apt-get -qq install --yes --no-install-recommends \
    postgresql-18 postgresql-18-pgvector postgresql-18-pg-textsearch pgbouncer" >>"$made.log" 2>&1 ||
  fail "installing PostgreSQL failed: see $made.log"
rm -rf "$made"/var/cache/apt/* "$made"/var/lib/apt/lists/* "$made/usr/share/doc"

version=$(dpkg-query --admindir="$made/var/lib/dpkg" --show --showformat '${Version}' postgresql-18-pg-textsearch)
dpkg --compare-versions "$version" ge "$oldest" ||
  fail "pg_textsearch $version is older than $oldest and returns wrong rows: use a newer mirror"
printf '%s\n' "$version" >"$made/complete"
mv "$made" "$folder"
rm -f "$made.log"
printf '%s\n' "$folder"
