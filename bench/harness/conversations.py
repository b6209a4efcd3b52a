"""Random conversations of HTTP and SMTP as captures, and random rules about them.

Everything follows from a number: the same seed makes the same bytes. A conversation is a list of (side, bytes), and beside it stand
the texts of its buffers, from which rules are cut; those need not be exact, since both readers get the same rules.
"""

import base64
import gzip
import quopri
import random
import struct
import zlib

WORDS = ("alpha beta gamma delta Login admin index report invoice secret shell cmd.exe wp-content upload eval passwd token "
         "select union script iframe document.write MZ PK %PDF-1.4 base64 Mozilla curl update config setup").split()
AGENTS = ["Mozilla/5.0 (X11; Linux x86_64)", "curl/7.88.1", "Wget/1.21", "python-requests/2.31", "MSIE 6.0; Windows NT 5.1", "sqlmap/1.0"]
HOSTS = ["www.example.test", "Shop.Example.test", "a.b.c.test", "203.0.113.9", "xn--caf-dma.test", "update.test:8080"]
KINDS = ["text/html", "text/plain; charset=utf-8", "application/javascript", "application/json", "application/octet-stream"]

OF_SIDE = {f"http.{name}": side for side, names in {
    "to_server": "method uri uri.raw host host.raw request_line user_agent accept accept_enc accept_lang referer request_body",
    "to_client": "response_line stat_code stat_msg server location response_body"}.items() for name in names.split()}
OF_SIDE |= {"smtp.helo": "to_server", "smtp.mail_from": "to_server", "smtp.rcpt_to": "to_server"}


class Conversation:
    """Bytes of both sides in turn, and texts of buffers."""

    def __init__(self, port):
        self.port, self.turns, self.texts = port, [], {}

    def say(self, side, data):
        self.turns.append((side, data))

    def note(self, buffer, text):
        if text:
            self.texts.setdefault(buffer, []).append(text)


def words(rng, count):
    return " ".join(rng.choice(WORDS) + (str(rng.randrange(100)) if rng.random() < 0.3 else "") for _ in range(count))


def content(rng):
    """Some content of up to about 20 kB: words, numbers, bytes."""
    size = rng.choice([1, 3, 10, 40, 200, 1500])
    text = words(rng, rng.randrange(1, size + 1)).encode()
    if rng.random() < 0.2:
        text = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 60))) + text
    if rng.random() < 0.2:
        text = b"MZ" + struct.pack("<HH", rng.randrange(500), rng.randrange(9)) + text
    return text


def target(rng):
    segments = [rng.choice(WORDS) for _ in range(rng.randrange(1, 4))]
    path = "/" + "/".join(segments)
    if rng.random() < 0.2:
        path = path.replace("e", "%65", 1)
    if rng.random() < 0.1:
        path += "//x/../y"
    if rng.random() < 0.5:
        path += "?" + "&".join(f"{rng.choice(WORDS)}={rng.choice([words(rng, 1), str(rng.randrange(5000)), '%41b+c'])}"
                               for _ in range(rng.randrange(1, 4)))
    return path


def multipart(rng, texts):
    """A form with at most one file."""
    boundary = f"----b{rng.randrange(10**9)}"
    parts = []
    for at in range(rng.randrange(1, 4)):
        name, data = rng.choice(WORDS), content(rng)[:200]
        head = f'Content-Disposition: form-data; name="{name}"'
        if at == 0 and rng.random() < 0.6:
            file = rng.choice(WORDS) + ".txt"
            head += f'; filename="{file}"\r\nContent-Type: text/plain'
            texts.append(("file.name", file.encode()))
            texts.append(("file.data", data))
        parts.append(f"--{boundary}\r\n{head}\r\n\r\n".encode() + data + b"\r\n")
    return f"multipart/form-data; boundary={boundary}", b"".join(parts) + f"--{boundary}--\r\n".encode()


def request(rng, talk):
    method = rng.choice(["GET", "GET", "GET", "POST", "POST", "HEAD", "PUT", "OPTIONS"])
    uri, host, agent = target(rng), rng.choice(HOSTS), rng.choice(AGENTS)
    fields = [("Host", host), ("User-Agent", agent), ("Accept", "*/*")]
    optional = [("Accept-Encoding", "gzip, deflate"), ("Accept-Language", "en-US"), ("Referer", f"http://{rng.choice(HOSTS)}{target(rng)}"),
                ("Cookie", f"{rng.choice(WORDS)}={rng.randrange(9999)}; a=b"), ("Connection", "keep-alive"), ("X-Test", words(rng, 2))]
    fields += [field for field in optional if rng.random() < 0.4]
    rng.shuffle(fields)
    body, texts = b"", []
    if method in ("POST", "PUT"):
        body = content(rng)
        kind = rng.choice(["application/x-www-form-urlencoded", "text/plain", "application/json"])
        if method == "POST" and rng.random() < 0.3:
            kind, body = multipart(rng, texts)
        fields += [("Content-Type", kind), ("Content-Length", str(len(body)))]
        talk.note("http.content_type", kind.encode())
        talk.note("http.request_body", body)
    line = f"{method} {uri} HTTP/1.1"
    raw = "".join(f"{name}: {value}\r\n" for name, value in fields)
    for buffer, text in [("http.method", method), ("http.uri", uri), ("http.uri.raw", uri), ("http.host.raw", host),
                         ("http.host", host.split(":")[0].lower()), ("http.request_line", line), ("http.protocol", "HTTP/1.1"),
                         ("http.header", raw), ("http.header.raw", raw), ("http.start", f"{line}\r\n{raw}\r\n"),
                         ("http.header_names", "\r\n" + "".join(f"{name}\r\n" for name, _ in fields) + "\r\n")]:
        talk.note(buffer, text.encode())
    named = {"User-Agent": "http.user_agent", "Accept": "http.accept", "Accept-Encoding": "http.accept_enc", "Cookie": "http.cookie",
             "Accept-Language": "http.accept_lang", "Referer": "http.referer", "Connection": "http.connection"}
    for name, value in fields:
        if name in named:
            talk.note(named[name], value.encode())
    for buffer, text in texts:
        talk.note(buffer, text)
    talk.note("payload", f"{line}\r\n{raw}\r\n".encode() + body[:400])
    talk.say(0, f"{line}\r\n{raw}\r\n".encode() + body)
    return method


def response(rng, talk, method, is_last):
    status = rng.choice(["200 OK", "200 OK", "404 Not Found", "302 Found", "500 Internal Server Error", "204 No Content", "304 Not Modified"])
    kind, server = rng.choice(KINDS), rng.choice(["nginx", "Apache/2.4.1 (Unix)", "IIS"])
    fields = [("Server", server), ("Content-Type", kind)]
    if status.startswith("302"):
        fields.append(("Location", f"http://{rng.choice(HOSTS)}{target(rng)}"))
    if rng.random() < 0.3:
        fields.append(("Set-Cookie", f"id={rng.randrange(9999)}; path=/"))
    has_body = method != "HEAD" and status[:3] not in ("204", "304")
    body = content(rng) if has_body else b""
    wire, framed = body, b""
    if has_body:
        coding = rng.choice(["", "", "", "gzip", "deflate"])
        if coding == "gzip":
            wire = gzip.compress(body, mtime=0)
        elif coding == "deflate":
            wire = zlib.compress(body)
        if coding:
            fields.append(("Content-Encoding", coding))
        framing = rng.choice(["length", "length", "chunked"] + (["close"] if is_last else []))
        framed = wire
        if framing == "length":
            fields.append(("Content-Length", str(len(wire))))
        elif framing == "chunked":
            fields.append(("Transfer-Encoding", "chunked"))
            cuts = sorted(rng.randrange(len(wire) + 1) for _ in range(rng.randrange(4)) if not coding) + [len(wire)]
            pieces, at = [], 0
            for cut in cuts:
                if cut > at:
                    pieces.append(f"{cut - at:x}\r\n".encode() + wire[at:cut] + b"\r\n")
                at = cut
            framed = b"".join(pieces) + b"0\r\n\r\n"
    elif status[:3] == "200":
        fields.append(("Content-Length", "77"))
    line = f"HTTP/1.1 {status}"
    raw = "".join(f"{name}: {value}\r\n" for name, value in fields)
    for buffer, text in [("http.response_line", line), ("http.stat_code", status[:3]), ("http.stat_msg", status[4:]), ("http.header", raw),
                         ("http.server", server), ("http.content_type", kind), ("http.header.raw", raw), ("http.protocol", "HTTP/1.1")]:
        talk.note(buffer, text.encode())
    for name, value in fields:
        if name in ("Location", "Content-Length"):
            talk.note({"Location": "http.location", "Content-Length": "http.content_len"}[name], value.encode())
    talk.note("http.response_body", body)
    talk.note("file.data", body)
    talk.note("payload", f"{line}\r\n{raw}\r\n".encode() + framed[:200])
    talk.say(1, f"{line}\r\n{raw}\r\n".encode() + framed)


def http(rng):
    talk = Conversation(rng.choice([80, 80, 8080]))
    count = rng.randrange(1, 4)
    for at in range(count):
        response(rng, talk, request(rng, talk), at + 1 == count)
    return talk


def mail(rng, talk):
    """A mail with an attachment. Parts without a name are no files to Suricata, and it does not look into all of several files."""
    sender, recipient = f"{rng.choice(WORDS).lower()}@example.test", f"{rng.choice(WORDS).lower()}@mail.test"
    subject = words(rng, 3)
    head = f"From: <{sender}>\r\nTo: <{recipient}>\r\nSubject: {subject}\r\nMessage-ID: <{rng.randrange(10**6)}@x.test>\r\n"
    boundary = f"=_{rng.randrange(10**9)}"
    out = [f"{head}MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"{boundary}\"\r\n\r\n".encode()]
    data, name = content(rng), rng.choice(WORDS) + ".bin"
    coding = rng.choice(["base64", "base64", "quoted-printable"])
    coded = (base64.encodebytes(data) if coding == "base64" else quopri.encodestring(data) + b"\n").replace(b"\n", b"\r\n")
    part = f"--{boundary}\r\nContent-Type: application/octet-stream; name=\"{name}\"\r\n" \
           f"Content-Disposition: attachment; filename=\"{name}\"\r\nContent-Transfer-Encoding: {coding}\r\n\r\n"
    talk.note("file.name", name.encode())
    talk.note("file.data", data)
    out.append(part.encode() + coded)
    return b"".join(out) + f"--{boundary}--\r\n".encode()


def smtp(rng):
    talk = Conversation(25)
    hello = rng.choice(["mx.example.test", "client", "[203.0.113.5]"])
    talk.say(1, b"220 mail.test ESMTP\r\n")
    talk.say(0, f"{rng.choice(['EHLO', 'HELO'])} {hello}\r\n".encode())
    talk.say(1, b"250 mail.test\r\n")
    talk.note("smtp.helo", hello.encode())
    sender = f"{rng.choice(WORDS).lower()}@example.test"
    talk.say(0, f"MAIL FROM:<{sender}>\r\n".encode())
    talk.say(1, b"250 ok\r\n")
    talk.note("smtp.mail_from", sender.encode())
    for _ in range(rng.randrange(1, 3)):
        recipient = f"{rng.choice(WORDS).lower()}{rng.randrange(9)}@mail.test"
        talk.say(0, f"RCPT TO:<{recipient}>\r\n".encode())
        talk.say(1, b"250 ok\r\n")
        talk.note("smtp.rcpt_to", recipient.encode())
    talk.say(0, b"DATA\r\n")
    talk.say(1, b"354 go on\r\n")
    data = mail(rng, talk)
    lines = data.split(b"\r\n")
    wire = b"\r\n".join(b"." + line if line.startswith(b".") else line for line in lines)
    talk.note("payload", wire[:600])
    talk.say(0, wire + (b"" if wire.endswith(b"\r\n") else b"\r\n") + b".\r\n")
    talk.say(1, b"250 taken\r\n")
    talk.say(0, b"QUIT\r\n")
    talk.say(1, b"221 bye\r\n")
    return talk


class Capture:
    """A pcap of connections one after the other; clients are at home, or the servers."""

    def __init__(self, rng, clients_at_home=False):
        self.rng, self.clients_at_home, self.micros = rng, clients_at_home, 1_700_000_000_000_000
        self.out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
        self.count = 0

    def packet(self, ends, side, sequences, flags, data):
        source, target = ends[side], ends[1 - side]
        segment = struct.pack("!HHIIBBHHH", source[1], target[1], sequences[side] & 0xFFFFFFFF, sequences[1 - side] & 0xFFFFFFFF,
                              0x50, flags, 65535, 0, 0) + data
        header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(segment), 1, 0, 64, 6, 0, source[0], target[0])
        frame = b"\x02" * 12 + b"\x08\x00" + header + segment
        self.out.append(struct.pack("<IIII", self.micros // 1_000_000, self.micros % 1_000_000, len(frame), len(frame)) + frame)
        self.micros += 200
        sequences[side] += len(data) + (1 if flags & 3 else 0)

    def add(self, talk):
        """Adds a connection, and says the client's address and port."""
        self.count += 1
        away, home = bytes([203, 0, 113, 1 + self.count % 200]), bytes([10, 1, self.count // 250 % 250, 1 + self.count % 250])
        client = (home if self.clients_at_home else away), 1025 + self.count % 60000
        server = (away if self.clients_at_home else home), talk.port
        sequences = [self.rng.randrange(1 << 32), self.rng.randrange(1 << 32)]
        ends = [client, server]
        self.packet(ends, 0, sequences, 2, b"")
        self.packet(ends, 1, sequences, 0x12, b"")
        self.packet(ends, 0, sequences, 0x10, b"")
        size = self.rng.choice([1400, 1400, 700])
        for side, data in talk.turns:
            for at in range(0, len(data), size):
                self.packet(ends, side, sequences, 0x18, data[at:at + size])
                self.packet(ends, 1 - side, sequences, 0x10, b"")
        self.packet(ends, 0, sequences, 0x11, b"")
        self.packet(ends, 1, sequences, 0x11, b"")
        self.packet(ends, 0, sequences, 0x10, b"")
        self.micros += 100_000
        return f"{'.'.join(map(str, client[0]))}:{client[1]}"

    def bytes(self):
        return b"".join(self.out)


def quoted(text):
    """A text as rules write it."""
    def one(byte):
        plain = 32 <= byte < 127 and byte not in b'"\\;:|'
        return chr(byte) if plain else f"|{byte:02x}|"
    return "".join(map(one, text)).replace("||", " ")


def noise(rng, text):
    """The text, or one that differs from it."""
    kind = rng.random()
    if kind < 0.75:
        return text
    if kind < 0.9:
        return text.swapcase()
    return text[:-1] + bytes([(text[-1] + 1) % 256])


def near(rng, value, low=0):
    return max(low, value + rng.choice([0, 0, 0, 0, -1, 1, 5, 50]))


def contents(rng, text, is_stream, has_negated):
    """Options with contents that stand in a text, mostly. Ends and beginnings of pieces of a stream are no matter of rules. Suricata does
    not negate a content at the end, but the first place of its text, and finds none that is relative to a negated one."""
    options, end, was_negated = [], 0, False
    for at in range(1 if is_stream else rng.choice([1, 1, 1, 2, 2, 3])):
        if end >= len(text):
            break
        start = rng.randrange(end, len(text)) if at == 0 else rng.randrange(end, min(len(text), end + 60))
        piece = text[start:start + rng.randrange(1, 13)]
        is_negated = has_negated and at > 0 and rng.random() < 0.12
        option = f'content:{"!" if is_negated else ""}"{quoted(noise(rng, piece))}"; '
        if rng.random() < 0.4:
            option += "nocase; "
        if at > 0 and rng.random() < 0.7 and not was_negated:
            distance = start - end
            if rng.random() < 0.6:
                option += f"distance:{near(rng, distance)}; "
                if rng.random() < 0.4:
                    option += f"within:{near(rng, len(piece), len(piece)) + rng.choice([0, 2])}; "
            else:
                option += f"within:{near(rng, distance + len(piece), len(piece))}; "
        elif not is_stream and rng.random() < 0.25:
            if rng.random() < 0.5:
                option += f"offset:{near(rng, start)}; "
                if rng.random() < 0.5:
                    option += f"depth:{near(rng, len(piece), len(piece))}; "
            else:
                option += f"depth:{near(rng, start + len(piece), len(piece))}; "
        elif at == 0 and start == 0 and not is_stream and rng.random() < 0.5:
            option += "startswith; "
        elif start + len(piece) == len(text) and not is_stream and not is_negated and rng.random() < 0.5:
            option += "endswith; "
        options.append(option)
        was_negated = is_negated
        if not is_negated:
            end = start + len(piece)
    return options, None if was_negated else end


def pcre(rng, text):
    start = rng.randrange(len(text))
    piece = text[start:start + rng.randrange(2, 9)]
    def one(byte):
        if chr(byte).isalnum() and byte < 128:
            return rng.choice([chr(byte)] * 4 + [r"\w", ".", f"[{chr(byte)}x]"])
        return f"\\x{byte:02x}"
    return f'pcre:"/{"".join(map(one, piece))}{rng.choice(["", "", "+", "?", ".{0,9}"])}/{rng.choice(["", "i", "s"])}"; '


def section(rng, buffer, text):
    """Options about one buffer."""
    is_stream = buffer == "payload"
    transform = ""
    if rng.random() < 0.06 and buffer not in ("payload", "file.data", "http.request_body", "http.response_body"):
        transform = rng.choice(["dotprefix", "to_lowercase", "to_uppercase", "strip_whitespace", "compress_whitespace", "url_decode"]) + "; "
    options, end = contents(rng, text, is_stream, not is_stream and not transform)
    if rng.random() < 0.15 and end is not None and not is_stream:
        count = near(rng, len(text) - end, 1)
        options.append(f'isdataat:{rng.choice(["", "!"])}{count},relative; ')
    if rng.random() < 0.1:
        options.append(pcre(rng, text))
    if rng.random() < 0.08 and buffer != "payload":
        size = near(rng, len(text))
        options.append(rng.choice([f"bsize:{size}; ", f"bsize:<{size + 1}; ", f"bsize:>{size}; "]))
    if rng.random() < 0.08 and end is not None:
        options.append(rng.choice([f"byte_test:1,{rng.choice('<>=')},{rng.randrange(256)},{rng.randrange(6)},relative; ",
                                   f"byte_jump:1,{rng.randrange(3)},relative; isdataat:{rng.randrange(1, 9)},relative; ",
                                   f"byte_test:2,>,{rng.randrange(99)},0,relative,string,dec; ",
                                   f"byte_extract:1,0,n,relative; isdataat:n,relative; "]))
    return ("" if buffer == "payload" else f"{buffer}; {transform}") + "".join(options)


def rule(rng, sid, talk):
    """A rule about a conversation."""
    first = rng.choice(sorted(talk.texts))
    side = rng.choice([side for side in ("to_server", "to_client") if OF_SIDE.get(first, side) == side])
    options = ["", "flow:established; ", f"flow:established,{side}; "]
    is_mail = talk.port == 25
    others = [buffer for buffer in sorted(talk.texts) if buffer not in (first, "payload") and OF_SIDE.get(buffer, side) == side]
    chosen = [first] + (rng.sample(others, 1) if first != "payload" and rng.random() < 0.3 and others else [])
    text = "".join(section(rng, buffer, rng.choice(talk.texts[buffer])) for buffer in chosen)
    protocol = "tcp" if chosen == ["payload"] else "smtp" if is_mail else "http"
    return f'alert {protocol} any any -> any any (msg:"r{sid}"; {rng.choice(options)}{text}sid:{sid}; rev:1;)'
