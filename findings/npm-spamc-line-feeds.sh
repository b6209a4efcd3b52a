#!/usr/bin/env bash
# spamc 0.0.5 (npm): a processed message with bare line feeds, as spamd returns it for a message that had them, is one header and has
# another end.
#
# spamd writes lines as the message has them, and Content-length counts its bytes. This client parts the whole answer at CRLF and joins
# it again: of a message with LF `headers` has one element with all fields, and `process` gives a CRLF more than was sent; of one with
# CRLF it gives one less. The length is not looked at.
# Seen: 2 and 1 headers; 31 bytes sent and 29 given with CRLF, 28 sent and 30 given with LF.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent spamc@0.0.5 >/dev/null
cat >ask.js <<'END'
const net = require('net')
const Spamc = require('spamc')

function ask (end, command, read) {
  const message = ['X-Spam-Flag: NO', 'Subject: x', '', ''].join(end)
  const answer = `SPAMD/1.1 0 EX_OK\r\nContent-length: ${message.length}\r\nSpam: False ; 0.1 / 5.0\r\n\r\n${message}`
  return new Promise(resolve => {
    const server = net.createServer(socket => socket.once('data', () => socket.end(answer)))
    server.listen(0, '127.0.0.1', () => {
      new Spamc('127.0.0.1', server.address().port)[command]('Subject: x\n\nx\n', (error, result) => {
        server.close()
        resolve(error ? String(error) : read(result, message))
      })
    })
  })
}

(async () => {
  const said = []
  for (const end of ['\r\n', '\n']) said.push(await ask(end, 'headers', result => result.headers.length))
  for (const end of ['\r\n', '\n']) said.push(await ask(end, 'process', (result, message) => `${message.length}:${result.message.length}`))
  console.log(said.join(' '))
})()
END
seen=$(node ask.js)
echo "spamc 0.0.5: headers with CRLF and LF, bytes sent and given with CRLF and LF: $seen"
[ "$seen" = "2 1 31:29 28:30" ]
