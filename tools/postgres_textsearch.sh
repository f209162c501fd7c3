#!/usr/bin/env bash
# PostgreSQL 18 with pgvector and pg_textsearch, from Debian forky, in a folder of its own; for tests and benchmarks.
#
#     bash tools/postgres_textsearch.sh [FOLDER]     default: WAYLORE_TEXTSEARCH, else .cache/postgres-textsearch
#
# Runs as root on a Debian machine with any release. The mirror is the one that the machine's own apt uses, or
# WAYLORE_DEBIAN_MIRROR. What is there already and whole is left alone. Nothing is started and nothing outside of
# the folder is changed, but for debootstrap, which is installed where it is missing. `tools/postgres.py` starts it.
set -euo pipefail
folder=${1:-${WAYLORE_TEXTSEARCH:-$(dirname "$0")/../.cache/postgres-textsearch}}
oldest=1.5.1 # before it, WHERE with ORDER BY and LIMIT returned some rows twice and others never

refuse() {
  printf '%s\n' "$1" >&2
  exit 1
}

[ -e "$folder/complete" ] && { printf '%s\n' "$folder"; exit 0; }
[ "$(id -u)" = 0 ] || refuse "installing needs root: run this as root, once"
[ ! -e "$folder" ] || refuse "$folder is there but not complete: look at it and remove it"

command -v debootstrap >/dev/null || { apt-get -qq update && apt-get -qq install --yes debootstrap >/dev/null 2>&1; }
mirror() { apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' | sed -n 's/^Debian //p' | head -1; }
from=${WAYLORE_DEBIAN_MIRROR:-$(mirror)}
from=${from:-$(apt-get -qq update && mirror)}
[ -n "$from" ] || refuse "apt knows no Debian mirror here: name one in WAYLORE_DEBIAN_MIRROR"

mkdir -p "$(dirname "$folder")"
made=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$made"' EXIT
chmod 755 "$made"
recipe=/usr/share/debootstrap/scripts/sid # older ones know no forky by name, but all suites are made like this one
debootstrap --variant=minbase forky "$made" "$from" $recipe >"$made.log" 2>&1 || refuse "debootstrap failed: see $made.log"

# Services are not started, manuals and translations not unpacked, and nothing is synced: it can be made again.
printf '#!/bin/sh\nexit 101\n' >"$made/usr/sbin/policy-rc.d"
chmod 755 "$made/usr/sbin/policy-rc.d"
printf 'force-unsafe-io\npath-exclude=/usr/share/man/*\npath-exclude=/usr/share/locale/*\n' >"$made/etc/dpkg/dpkg.cfg.d/small"
mkdir -p "$made/etc/postgresql-common"
printf 'create_main_cluster = false\n' >"$made/etc/postgresql-common/createcluster.conf"
unshare --mount sh -c "
  mount -t proc proc '$made/proc' &&
  exec env DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot '$made' apt-get -qq install --yes --no-install-recommends \
    postgresql-18 postgresql-18-pgvector postgresql-18-pg-textsearch" >>"$made.log" 2>&1 ||
  refuse "installing PostgreSQL failed: see $made.log"
rm -rf "$made"/var/cache/apt/* "$made"/var/lib/apt/lists/* "$made/usr/share/doc"

version=$(dpkg-query --admindir="$made/var/lib/dpkg" --show --showformat '${Version}' postgresql-18-pg-textsearch)
dpkg --compare-versions "$version" ge "$oldest" ||
  refuse "pg_textsearch $version is older than $oldest and gives wrong answers: use a newer mirror"
printf '%s\n' "$version" >"$made/complete"
mv "$made" "$folder"
rm -f "$made.log"
printf '%s\n' "$folder"
