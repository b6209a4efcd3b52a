#!/usr/bin/env bash
# Random questions about random zones of all types, to rbldnsd and to us: equal answers but for explained ones.
#   bench/dnsbl/differential.sh [QUERIES [SEED]]
# A million take about three minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."
SLUICE_DNSBL_QUERIES=${1:-1000000} SLUICE_DNSBL_SEED=${2:-$(date +%s)} \
    cargo test -p sluice-dnsbl --test all rbldnsd:: --locked -- --nocapture
