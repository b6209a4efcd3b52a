"""What pyspf comes to: cases on standard input, each `Z NAME TYPE DATA` lines and one `Q CLIENT HELO SENDER`."""
import sys
import spf

zone = {}


def look_up(name, kind, *_, **__):
    entries = zone.get(name.lower().rstrip('.'), [])
    if any(entry[0] == 'SERVFAIL' for entry in entries):
        raise spf.TempError('DNS timeout')
    found = []
    for entry in entries:
        if entry[0] != kind:
            continue
        data = entry[1]
        if kind == 'MX':
            data = (10, data)
        elif kind == 'TXT':
            data = [data.encode()]
        found.append(((name, kind), data))
    return found


spf.DNSLookup = look_up
for line in sys.stdin:
    parts = line.rstrip('\n').split(' ', 3)
    if parts[0] == 'Z':
        zone.setdefault(parts[1], []).append((parts[2], parts[3] if len(parts) > 3 else ''))
    else:
        print(*spf.check2(i=parts[1], s=parts[3], h=parts[2], querytime=0), flush=True)
        zone = {}
