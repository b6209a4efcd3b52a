#!/usr/bin/env bash
# boto3 1.42.1 and s3transfer 0.16.0 (PyPI): a download from a server that does not take ranges has each part whole, and no error is raised.
#
# A server may ignore Range and answer 200 with the whole object (RFC 9110, section 14.2), and so may a proxy that has to see the whole. From
# 8 MiB on s3transfer fetches parts, does not look at the status, and writes the whole object at the offset of each part.
# Seen: 12,000,000 bytes become 20388608, whose beginning is right and whose rest is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv tools
tools/bin/pip install --quiet boto3==1.42.1 botocore==1.42.1 s3transfer==0.16.0
cat >download.py <<'END'
import http.server, io, threading
import boto3
from botocore.config import Config

body = bytes(i % 251 for i in range(12_000_000))

class Whole(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"1"')
        self.end_headers()

    def do_GET(self):
        self.do_HEAD()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Whole)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{server.server_port}", region_name="us-east-1",
                      aws_access_key_id="a", aws_secret_access_key="b", config=Config(s3={"addressing_style": "path"}))
got = io.BytesIO()
client.download_fileobj("bucket", "object", got)
print(len(got.getvalue()), got.getvalue() == body)
END
seen=$(timeout 120 tools/bin/python download.py)
echo "boto3 1.42.1: $seen"
[ "$seen" = "20388608 False" ]
