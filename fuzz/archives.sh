#!/usr/bin/env bash
# Archives by a grammar of oddities, for a night: `fuzz/archives.sh [BATCHES]`, each of 2,000 with a seed of its own. Each that
# a reader opens and Sluice lets pass is printed with its seed; the archives of a batch with such stay where the last line says.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0
for batch in $(seq "${1:-10}"); do
    seed="$(date +%s)$batch"
    SLUICE_ARCHIVES="$seed 2000" cargo test -q -p sluice-inspect --test all archives:: || failed=$((failed + 1))
done
echo "$failed batches with archives that pass"
exit $((failed > 0))
