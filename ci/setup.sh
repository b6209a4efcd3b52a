#!/usr/bin/env bash
# Installs what the machine lacks: for the tests real mail peers from Debian and cargo-deny; for a first run
# (`ci/setup.sh run`) a linker and the clients that it tells you to try.
set -euo pipefail

missing=()
need() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || missing+=("$2"); }
need cc gcc
need swaks swaks
need curl curl
if [ "${1:-}" != run ]; then
    need c++ g++
    need smtp-source postfix
    need openssl openssl
    [ -x /usr/lib/dovecot/pop3-login ] || missing+=(dovecot-pop3d)
    [ -x /usr/lib/dovecot/imap-login ] || missing+=(dovecot-imapd)
    [ -x /usr/lib/dovecot/submission-login ] || missing+=(dovecot-submissiond)
    need fetchmail fetchmail
    need mbsync isync
    need mutt mutt
    need offlineimap offlineimap3
    need script bsdutils
    need miltertest miltertest
    need amavisd amavisd-new
    perl -MNet::SSLeay -e 1 2>/dev/null || missing+=(libnet-ssleay-perl)
    perl -MMIME::Parser -e 1 2>/dev/null || missing+=(libmime-tools-perl)
    perl -MEmail::MIME -e 1 2>/dev/null || missing+=(libemail-mime-perl)
    need clamscan clamav
    need clamdscan clamdscan
    need clamd clamav-daemon
    need yara yara
    need nft nftables
    perl -MClamAV::Client -e 1 2>/dev/null || missing+=(libclamav-client-perl)
    /usr/bin/python3 -c 'import pyclamd' 2>/dev/null || missing+=(python3-pyclamd)
    /usr/bin/python3 -c 'import spf' 2>/dev/null || missing+=(python3-spf)
    /usr/bin/python3 -c 'import dkim' 2>/dev/null || missing+=(python3-dkim)
    perl -MMail::SPF -e 1 2>/dev/null || missing+=(libmail-spf-perl)
    perl -MMail::DMARC -e 1 2>/dev/null || missing+=(libmail-dmarc-perl)
    perl -MMail::DKIM::ARC::Verifier -e 1 2>/dev/null || missing+=(libmail-dkim-perl)
    need osslsigncode osslsigncode
    need zip zip
    need unzip unzip
    need bsdtar libarchive-tools
    need 7z p7zip-full
    need unar unar
    need xz xz-utils
    need zstd zstd
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
    # databases and directories
    [ -d /usr/lib/postgresql ] || missing+=(postgresql)
    need mariadbd mariadb-server
    need slapd slapd
    # for ci/first-day.sh
    need debootstrap debootstrap
    need systemd-nspawn systemd-container
fi

# Meanwhile, where there is a linker; what is not optimised is there sooner.
deny() { cargo deny --version >/dev/null 2>&1 || cargo install --locked --debug --quiet cargo-deny; }
denying=""
if [ "${1:-}" != run ] && command -v cc >/dev/null 2>&1; then
    deny &
    denying=$!
fi

as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo"

# Exim cannot be installed beside Postfix, since each would be the machine's mail system: its package is unpacked here, with
# the libraries that it needs.
exim=$(cd "$(dirname "$0")/.." && pwd)/target/peers/exim
[ "${1:-}" != run ] && [ ! -x /usr/sbin/exim4 ] && [ ! -x "$exim/usr/sbin/exim4" ] && fetch_exim=true

if [ ${#missing[@]} -gt 0 ] || ${fetch_exim:-false}; then
    $as_root apt-get update -q
fi
if ${fetch_exim:-false}; then
    echo "unpacking: exim4-daemon-heavy"
    mkdir -p "$exim"
    (cd "$exim" && apt-get download -q exim4-daemon-heavy && dpkg-deb -x exim4-daemon-heavy_*.deb . && chmod u-s usr/sbin/exim4)
    mapfile -t libraries < <(apt-cache depends exim4-daemon-heavy | sed -n 's/^ *Depends: \(lib.*\)/\1/p')
    missing+=("${libraries[@]}")
    id Debian-exim >/dev/null 2>&1 || $as_root useradd --system --user-group --no-create-home Debian-exim
fi
if [ ${#missing[@]} -gt 0 ]; then
    echo "installing: ${missing[*]}"
    DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -q --no-install-recommends "${missing[@]}"
fi
case $denying in
    "") [ "${1:-}" = run ] || deny ;;
    *) wait "$denying" ;;
esac
