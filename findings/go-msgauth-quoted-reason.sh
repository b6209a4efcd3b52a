#!/usr/bin/env bash
# github.com/emersion/go-msgauth 0.7.0 (Go), package authres: a semicolon within a quoted reason ends the result.
#
# RFC 8601 section 2.2: the reason is a value, which may be a quoted string.
# Seen: reason="bad; expired" gives an error, and a result with the reason `"bad`; reason=bad is read.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOPATH=$folder/go GOFLAGS=-modcacherw
cat >main.go <<'END'
package main

import (
	"fmt"

	"github.com/emersion/go-msgauth/authres"
)

func reason(value string) string {
	_, results, err := authres.Parse("example.com; dkim=fail reason=" + value + " header.d=example.org")
	return fmt.Sprintf("%s %v", results[0].(*authres.DKIMResult).Reason, err != nil)
}

func main() {
	fmt.Println(reason("bad"), reason(`"bad; expired"`))
}
END
go mod init finding >/dev/null 2>&1
go get github.com/emersion/go-msgauth@v0.7.0 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
seen=$(go run .)
echo "go-msgauth 0.7.0: reasons, and whether there was an error: $seen"
[ "$seen" = 'bad false "bad true' ]
