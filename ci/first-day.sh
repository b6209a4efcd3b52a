#!/usr/bin/env bash
# The first day of a user: a fresh Debian with systemd, Postfix, Dovecot and clamdscan, the package installed in it, and every
# command and block of the first pages gone through as pasted (ci/first-day/inside.py). Prints the transcript.
#
#   ci/first-day.sh [--earlier EARLIER.deb] [PACKAGE.deb [STEP...]]     default: the newest package in target/debian, and all steps
#
# With a package of an earlier version, that is upgraded to this one while mail is under way.
#
# The Debian is made once, with debootstrap, and kept in target/first-day; each run has a layer of its own above it and no
# network but the loopback interface. It takes root, systemd-nspawn and debootstrap; without them it says `skipped:` and ends with 0.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath "${CARGO_TARGET_DIR:-target}")
place=$target/first-day
base=$place/debian
mirror=${SLUICE_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' "Codename: bookworm" 2>/dev/null | head -1)}
# What the machine of the user has before; and what pages have it install, as they write it, which has no network then.
packages=(postfix dovecot-imapd dovecot-pop3d clamdscan e2guardian openssl zip python3 bsdutils)
fetched=(clamav-freshclam spamassassin)

skip() {
    echo "skipped: $*"
    exit 0
}
[ "$(id -u)" = 0 ] || skip "the first day of a user: it takes root"
command -v systemd-nspawn >/dev/null || skip "the first day of a user: systemd-nspawn is not installed"

# Makes the Debian, whole or not at all.
make_base() {
    command -v debootstrap >/dev/null || skip "the first day of a user: debootstrap is not installed"
    local new=$place/new
    rm -rf "$new"
    mkdir -p "$place"
    echo "making a Debian in $base"
    debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,ca-certificates,curl,swaks,procps,iproute2 \
        bookworm "$new" "$mirror" >"$place/debootstrap.log" 2>&1 || {
        tail -5 "$place/debootstrap.log"
        skip "the first day of a user: no Debian can be had here"
    }
    printf '#!/bin/sh\nexit 101\n' >"$new/usr/sbin/policy-rc.d"
    chmod 755 "$new/usr/sbin/policy-rc.d"
    printf '%s\n' "postfix postfix/main_mailer_type select Internet Site" "postfix postfix/mailname string example.test" |
        chroot "$new" debconf-set-selections
    export DEBIAN_FRONTEND=noninteractive
    systemd-nspawn -q --register=no --keep-unit -D "$new" --console=pipe bash -ec "
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -q
        apt-get install -y -q --no-install-recommends ${packages[*]}
        apt-get install -y -q --no-install-recommends --download-only ${fetched[*]}" \
        </dev/null >>"$place/debootstrap.log" 2>&1
    rm -f "$new/usr/sbin/policy-rc.d"
    mv "$new" "$base"
}

earlier=
if [ "${1:-}" = --earlier ]; then
    earlier=$2
    shift 2
fi
package=${1:-}
if [ -z "$package" ]; then
    package=$(ls -t "$target"/debian/sluice_*.deb 2>/dev/null | head -1 || true)
fi
[ -n "$package" ] || skip "the first day of a user: there is no package (make deb)"
[ -d "$base" ] || make_base

run=$(mktemp -d "$place/run.XXXXXX")
clean() {
    umount "$run/root" 2>/dev/null || true
    rm -rf "$run"
}
trap clean EXIT
mkdir -p "$run"/{up,work,root,day}
mount -t overlay overlay -o "lowerdir=$base,upperdir=$run/up,workdir=$run/work" "$run/root"
cp "$package" "$run/day/"
if [ -n "$earlier" ]; then
    mkdir "$run/day/earlier"
    cp "$earlier" "$run/day/earlier/"
fi
cp ci/first-day/*.py "$run/day/"
cp -r README.md docs "$run/day/"
echo "${@:2}" >"$run/day/steps"
cat >"$run/root/etc/systemd/system/first-day.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
WorkingDirectory=/day
ExecStart=/bin/bash -c 'python3 -u /day/inside.py $(cat /day/steps) >/day/transcript 2>&1; echo $? >/day/status; systemctl poweroff'
[Install]
WantedBy=multi-user.target
UNIT
ln -s ../first-day.service "$run/root/etc/systemd/system/multi-user.target.wants/first-day.service" 2>/dev/null || {
    mkdir -p "$run/root/etc/systemd/system/multi-user.target.wants"
    ln -s ../first-day.service "$run/root/etc/systemd/system/multi-user.target.wants/first-day.service"
}
timeout 600 systemd-nspawn -q --register=no --keep-unit --private-network --boot -D "$run/root" --machine=first-day \
    --system-call-filter="landlock_add_rule landlock_create_ruleset landlock_restrict_self" \
    --bind=/dev/fuse --bind="$run/day:/day" --console=pipe </dev/null >"$run/boot.log" 2>&1 || true
cp "$run/day/transcript" "$place/transcript.txt" 2>/dev/null || {
    tail -20 "$run/boot.log"
    skip "the first day of a user: the machine does not boot here"
}
cat "$place/transcript.txt"
exit "$(cat "$run/day/status" 2>/dev/null || echo 1)"
