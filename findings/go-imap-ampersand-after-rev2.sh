#!/usr/bin/env bash
# github.com/emersion/go-imap/v2 2.0.0-beta.8 (Go): after ENABLE IMAP4rev2 an ampersand in the name of a mailbox is still written as `&-`.
#
# IMAP4rev2 has names in UTF-8, where `&` stands for itself (RFC 9051, section 5.1; the coding of RFC 3501 is gone). The client writes letters in
# UTF-8 and keeps that one escape, so the mailbox that a user calls R&D is R&-D for every other program.
# Seen: CREATE "R&-D/gö"
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOPATH=$folder/go GOFLAGS=-modcacherw
cat >main.go <<'END'
package main

import (
	"bufio"
	"fmt"
	"net"
	"strings"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
)

// Takes every command, and tells the last one.
func serve(conn net.Conn, told chan string) {
	fmt.Fprint(conn, "* PREAUTH [CAPABILITY IMAP4rev1 IMAP4rev2 ENABLE] ready\r\n")
	lines := bufio.NewReader(conn)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		tag, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(command, "ENABLE") {
			fmt.Fprint(conn, "* ENABLED IMAP4rev2\r\n")
		}
		if strings.HasPrefix(command, "CREATE") {
			told <- command
		}
		fmt.Fprintf(conn, "%s OK done\r\n", tag)
	}
}

func main() {
	ours, theirs := net.Pipe()
	told := make(chan string, 1)
	go serve(theirs, told)
	client := imapclient.New(ours, nil)
	if err := client.WaitGreeting(); err != nil {
		panic(err)
	}
	if _, err := client.Enable(imap.CapIMAP4rev2).Wait(); err != nil {
		panic(err)
	}
	if err := client.Create("R&D/gö", nil).Wait(); err != nil {
		panic(err)
	}
	fmt.Println(<-told)
}
END
go mod init finding >/dev/null 2>&1
go get github.com/emersion/go-imap/v2@v2.0.0-beta.8 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
seen=$(timeout 120 go run .)
echo "go-imap 2.0.0-beta.8: $seen"
[ "$seen" = 'CREATE "R&-D/gö"' ]
