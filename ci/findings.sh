#!/usr/bin/env bash
# Whether docs/engine/findings.md names each finding that the sources can tell, and none that they cannot.
set -euo pipefail
cd "$(dirname "$0")/.."

# Names stand in the sources as whole string literals; the page has them between backticks.
told=$(git ls-files -co --exclude-standard 'crates/*/src/*.rs' | xargs grep -ohE '"Heuristics\.[A-Za-z0-9.-]+"' | tr -d '"' | sort -u)
described=$(grep -oE '`Heuristics\.[A-Za-z0-9.-]+[A-Za-z0-9]`' docs/engine/findings.md | tr -d '`' | sort -u)

status=0
for name in $(comm -23 <(echo "$told") <(echo "$described")); do
    echo "findings: $name is not described in docs/engine/findings.md" >&2
    status=1
done
for name in $(comm -13 <(echo "$told") <(echo "$described")); do
    echo "findings: $name is described and nothing tells it" >&2
    status=1
done
exit $status
