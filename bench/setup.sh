# shellcheck shell=bash disable=SC2154 # here: the folder of the bench that sources this
# Sourced by the benches: installs the Debian packages that they lack, and builds the load generator and Sluice.
# It starts no service: packages are told that the machine is in run level 1 while they install.

root=$(cd "$here/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}

has() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ]; }

# Pairs of a program and the package it comes in.
need() {
    local missing=()
    while [ $# -gt 0 ]; do
        has "$1" || missing+=("$2")
        shift 2
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    local as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    echo "installing: ${missing[*]}" >&2
    "${as_root[@]}" apt-get update -q >&2
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
}

need_for_peers() {
    local wanted=(python3 python3)
    case ",$1," in *,relay,* | *,amavis,* | *,amavis-milter,* | *,rspamd,* | *,milter,*) wanted+=(postfix postfix) ;; esac
    case ",$1," in *,amavis,* | *,amavis-milter,* | *,rspamd,*) wanted+=(clamd clamav-daemon) ;; esac
    case ",$1," in *,amavis,* | *,amavis-milter,*) wanted+=(amavisd amavisd-new) ;; esac
    case ",$1," in *,amavis-milter,*) wanted+=(amavisd-milter amavisd-milter) ;; esac
    case ",$1," in *,rspamd,*) wanted+=(rspamd rspamd) ;; esac
    need "${wanted[@]}"
}

# SLUICE and LOAD may name finished programs; cargo is quick when there is nothing to do.
build() {
    if [ -z "${LOAD:-}" ]; then
        "${CARGO:-cargo}" build --release --quiet --locked --manifest-path "$here/load/Cargo.toml" \
            --target-dir "$target/bench-load"
    fi
    if [ -z "${SLUICE:-}" ]; then
        "${CARGO:-cargo}" build --release --quiet --locked --manifest-path "$root/Cargo.toml" \
            --target-dir "$target" --bin sluice
    fi
    export LOAD=${LOAD:-$target/bench-load/release/sluice-bench-load}
    export SLUICE=${SLUICE:-$target/release/sluice}
}
