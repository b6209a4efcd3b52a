#!/usr/bin/env bash
# github.com/emersion/go-message 0.18.2 (Go): with a comment after the charset, text is handed on in its own charset, without an error.
#
# RFC 2045 section 5.1 has the example `charset=us-ascii (Plain text)`. Without the comment the body is UTF-8.
# Seen: an ISO-8859-1 a-umlaut is c3 a4 without the comment, e4 with it, and the error is nil both times.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOPATH=$folder/go GOFLAGS=-modcacherw
cat >main.go <<'END'
package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset"
)

func body(value string) string {
	mail := "Content-Type: " + value + "\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=E4"
	entity, err := message.Read(strings.NewReader(mail))
	text, _ := io.ReadAll(entity.Body)
	return fmt.Sprintf("%x %v", text, err)
}

func main() {
	fmt.Println(body("text/plain; charset=iso-8859-1"), body("text/plain; charset=iso-8859-1 (Latin 1)"))
}
END
go mod init finding >/dev/null 2>&1
go get github.com/emersion/go-message@v0.18.2 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
seen=$(go run .)
echo "go-message 0.18.2: $seen"
[ "$seen" = "c3a4 <nil> e4 <nil>" ]
