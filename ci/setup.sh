#!/usr/bin/env bash
# Installs what the machine lacks: for the tests real mail peers from Debian; for a first run
# (`ci/setup.sh run`) a linker and the clients that it tells you to try; for the bare machine (`ci/setup.sh bare`) QEMU besides.
#
# It says beforehand what it installs and how much that is. Nothing is removed or replaced (apt-get --no-remove), no daemon is
# started or enabled: policy-rc.d forbids the one while packages are installed, and is taken away again; links that packages have
# made for the next start of the machine are taken back.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-test}

fail() { printf 'setup: %s\n' "$@" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ]; }

missing=()
need() { has "$1" || missing+=("$2"); }
need_file() { [ -e "$1" ] || missing+=("$2"); }
need_perl() { perl "-M$1" -e 1 2>/dev/null || missing+=("$2"); }
need_python() { /usr/bin/python3 -c "import $1" 2>/dev/null || missing+=("$2"); }
need cc gcc
[ -n "$(find /usr/lib /usr/lib64 -name crt1.o -print -quit 2>/dev/null)" ] || missing+=(libc6-dev)
need swaks swaks
need curl curl
[ "$kind" = run ] || need qemu-system-x86_64 qemu-system-x86
if [ "$kind" = test ]; then
    need c++ g++
    need openssl openssl
    need_file /usr/lib/dovecot/pop3-login dovecot-pop3d
    need_file /usr/lib/dovecot/imap-login dovecot-imapd
    need_file /usr/lib/dovecot/submission-login dovecot-submissiond
    need fetchmail fetchmail
    need mbsync isync
    need mutt mutt
    need offlineimap offlineimap3
    need script bsdutils
    need miltertest miltertest
    need amavisd amavisd-new
    need_perl Net::SSLeay libnet-ssleay-perl
    need_perl MIME::Parser libmime-tools-perl
    need_perl Email::MIME libemail-mime-perl
    need clamscan clamav
    need clamdscan clamdscan
    need clamd clamav-daemon
    need yara yara
    need nft nftables
    need_perl ClamAV::Client libclamav-client-perl
    need_python pyclamd python3-pyclamd
    need_python spf python3-spf
    need_python dkim python3-dkim
    need_perl Mail::SPF libmail-spf-perl
    need_perl Mail::DMARC libmail-dmarc-perl
    need_perl Mail::DKIM::ARC::Verifier libmail-dkim-perl
    need osslsigncode osslsigncode
    need zip zip
    need unzip unzip
    need bsdtar libarchive-tools
    need 7z p7zip-full
    need unar unar
    need xz xz-utils
    need zstd zstd
    need brotli brotli
    need strace strace
    need python3 python3
    need ip iproute2
    need prometheus prometheus
    need rbldnsd rbldnsd
    need spamassassin spamassassin
    need spamc spamc
    need sieve-test dovecot-sieve
    need sieve-connect sieve-connect
    need gsasl gsasl
    need mpop mpop
    need rspamc rspamd
    need squid squid
    need nginx nginx-light
    need c-icap-client c-icap
    need_file /usr/lib/x86_64-linux-gnu/c_icap/virus_scan.so libc-icap-mod-virus-scan
    need e2guardian e2guardian
    need squidGuard squidguard
    # databases and directories
    need_file /usr/lib/postgresql postgresql
    need mariadbd mariadb-server
    need slapd slapd
    # for ci/first-day.sh
    need debootstrap debootstrap
    need systemd-nspawn systemd-container

    # A machine has one mail system, and keeps the one that it has.
    if ! has smtp-source; then
        dpkg-query -W -f '${db:Status-Status}\n' exim4-daemon-light exim4-daemon-heavy sendmail-bin opensmtpd 2>/dev/null |
            grep -q '^installed$' &&
            fail "the tests run Postfix, and this machine has another mail system, which Debian would remove for it." \
                "Run \`make test\` in a machine or container without it. Nothing was changed."
        missing+=(postfix)
    fi
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
    has sudo || fail "packages are installed by root: run this as root, or install sudo (a minimal Debian has none)"
    as_root=(sudo)
fi
root() { "${as_root[@]}" "$@"; }

# Exim and OpenSMTPD cannot be installed beside Postfix, and OpenDKIM's tools come with a filter: their packages are unpacked in
# target/peers, and the libraries installed that the last of each line depends on.
peers=$PWD/target/peers
unpacked=()
unpack() { [ "$kind" != test ] || [ -x "/usr/sbin/$2" ] || [ -x "$peers/$1/usr/sbin/$2" ] || unpacked+=("$1 ${*:3}"); }
unpack exim exim4 exim4-daemon-heavy
unpack opensmtpd smtpd opensmtpd
unpack opendkim opendkim-testmsg opendkim-tools libopendkim11

# The names of all packages that would be installed. (Without a question to answer `--assume-no` would install them.)
plan() {
    local simulated
    simulated=$(apt-get install --simulate --no-remove --no-install-recommends "${missing[@]}" 2>&1) ||
        fail "apt-get would not install them:" "$(tail -5 <<<"$simulated")"
    sed -n 's/^Inst \([^ ]*\).*/\1/p' <<<"$simulated" | sort -u
}

# What is fetched and what is taken of the disk by packages whose names come in, in MB.
size() {
    local fetched
    fetched=$(apt-get install --print-uris -qq --no-remove --no-install-recommends "${missing[@]}" |
        awk '{ bytes += $3 } END { print int(bytes / 1e6 + 1) }')
    xargs -r apt-cache show --no-all-versions |
        awk -v fetched="$fetched" '/^Installed-Size:/ { kib += $2 } END { print fetched " MB are fetched, " int(kib / 1e3 + 1) " MB of disk taken" }'
}

# While this holds no daemon is started.
policy=/usr/sbin/policy-rc.d
made_policy=false
forbid_daemons() {
    [ ! -e "$policy" ] || return 0
    printf '#!/bin/sh\nexit 101\n' | root tee "$policy" >/dev/null
    made_policy=true
    root chmod 755 "$policy"
}
allow_daemons() {
    ! $made_policy || root rm -f "$policy"
    made_policy=false
}

# Links by which services and sockets start with the machine: those of systemd, and those of init scripts. (procps sets kernel
# parameters, and is no daemon.)
starts() {
    find /etc/systemd/system -path '*.wants/*' \( -name '*.service' -o -name '*.socket' \) -type l 2>/dev/null || true
    find /etc/rc?.d -name 'S*' ! -name '*procps' 2>/dev/null || true
}

# Takes back each that is new.
disable_new() {
    local new
    new=$(starts | sort | comm -13 "$1" -)
    [ -n "$new" ] || return 0
    echo "setup: these do not start with the machine:"
    # shellcheck disable=SC2001
    echo $(sed 's|.*/||; s/^S[0-9]*//; s/\.service$//' <<<"$new" | sort -u) | fold -s -w 100 | sed 's/^/  /'
    local link
    while read -r link; do
        case $link in
            /etc/rc*) root update-rc.d "$(basename "$link" | sed 's/^S[0-9]*//')" disable >/dev/null 2>&1 ;;
            *) root rm -f "$link" ;;
        esac
    done <<<"$new"
}

# An installation that was interrupted earlier is brought to its end: apt-get does nothing before that.
finish_interrupted() {
    [ -n "$(find /var/lib/dpkg/updates -name '[0-9]*' -print -quit 2>/dev/null)" ] || return 0
    echo "setup: ends an installation that was interrupted (dpkg --configure -a)"
    root env DEBIAN_FRONTEND=noninteractive dpkg --configure -a
}

started_before=
install() {
    local all
    all=$(plan)
    [ -n "$all" ] || return 0
    echo "setup: installs ${#missing[@]} Debian packages, $(wc -w <<<"$all") with all that they need, and starts none of their daemons:"
    printf '%s\n' "${missing[*]}" | fold -s -w 100 | sed 's/^/  /'
    size <<<"$all" | sed 's/^/  /'
    started_before=$(mktemp)
    starts | sort >"$started_before"
    trap 'allow_daemons; disable_new "$started_before"' EXIT
    forbid_daemons
    finish_interrupted
    root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-remove --no-install-recommends "${missing[@]}"
    trap - EXIT
    allow_daemons
    disable_new "$started_before"
    rm -f "$started_before"
}

if [ ${#missing[@]} -gt 0 ] || [ ${#unpacked[@]} -gt 0 ]; then
    echo "setup: asks the archives of Debian (apt-get update)"
    root apt-get update
fi
for peer in "${unpacked[@]}"; do
    read -ra packages <<<"$peer"
    folder=$peers/${packages[0]}
    packages=("${packages[@]:1}")
    echo "setup: unpacks ${packages[*]} in $folder, and installs the libraries"
    mkdir -p "$folder"
    (cd "$folder" && apt-get download "${packages[@]}" && for package in *.deb; do dpkg-deb -x "$package" .; done)
    find "$folder" -type f -perm /6000 -exec chmod ug-s {} +
    mapfile -t libraries < <(apt-cache depends "${packages[-1]}" | sed -n 's/^ *Depends: \(lib.*\)/\1/p')
    missing+=("${libraries[@]}")
done
[ ${#missing[@]} -eq 0 ] || install
if [[ "${unpacked[*]}" == *exim4* ]] && ! id Debian-exim >/dev/null 2>&1; then
    root useradd --system --user-group --no-create-home Debian-exim
fi
