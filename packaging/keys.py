#!/usr/bin/env python3
"""Prints all keys of the configuration with their defaults, as the tables of the pages describe them: `packaging/keys.py DOCS`.

A line each: the key with its tables (`listener[].tls` is one of a list of tables), the default as the page has it, the page. A test
of the program knows from the program itself which keys there are, and finds those that no page has.
"""

import re
import sys

# Where the keys of a table stand: the page, how the table of Markdown or the heading above it is known, the table of the configuration.
SOURCES = [
    ("operate/configuration.md", "## Top level", ""),
    *(("operate/configuration.md", f"## `[{name}]`", f"{name}.") for name in
      ("database", "limits", "archives", "resources", "metrics", "log")),
    ("operate/configuration.md", "## `[tls]`", "tls."),
    ("operate/tls.md", "| key of `[[tls.certificate]]`", "tls.certificate[]."),
    ("operate/tls.md", "| key of `[tls.acme]`", "tls.acme."),
    ("operate/configuration.md", "## `[update]`", "update."),
    ("operate/configuration.md", "## `[quarantine]`", "quarantine."),
    ("operate/configuration.md", "## `[admin]`", "admin."),
    ("operate/configuration.md", "## `[notices]`", "notices."),
    ("operate/configuration.md", "## `[[attachment]]`", "attachment[]."),
    ("operate/configuration.md", "## `[[recipients]]`", "recipients[]."),
    ("operate/recipients.md", "## Call-ahead", "recipients[].call_ahead."),
    ("operate/configuration.md", "## `[[lookup]]`", "lookup[]."),
    ("operate/configuration.md", "## `[store]`", "store."),
    ("operate/configuration.md", "## `[store.queue]`", "store.queue."),
    ("operate/cluster.md", "## Keys of `[cluster]`", "cluster."),
    ("operate/cluster.md", "## Blocks in S3", "cluster.objects."),
    ("operate/configuration.md", "## `[web]`", "web."),
    ("operate/configuration.md", "## `[ids]`", "ids."),
    ("operate/configuration.md", "| key of `[[ids.action]]`", "ids.action[]."),
    ("operate/trust.md", "## Settings", "trust."),
    ("operate/authentication.md", "## `[authentication]`", "authentication."),
    ("operate/authentication.md", "## `[dns]`", "dns."),
    ("operate/spam.md", "## `[spam]`", "spam."),
    *(("operate/spam.md", f"| `spam.{name}.", "") for name in ("bayes", "reputation", "fuzzy")),
    ("doors/clamd.md", "## Settings", "clamd."),
    ("doors/dnsbl.md", "## Settings", "dnsbl."),
    ("doors/interception.md", "| key of `[intercept]`", "intercept."),
    ("operate/configuration.md", "## `[[listener]]`", "listener[]."),
    ("doors/interception.md", "| key of `[[listener]]`", "listener[]."),
    ("doors/http.md", "| key of `[[listener]]`", "listener[]."),
    ("operate/policy.md", "| key of `[[listener.signature]]`", "listener[].signature[]."),
    ("operate/policy.md", "| key of `[[listener.rule]]`", "listener[].rule[]."),
]


def cells(line):
    """The cells of a row; a bar in code does not end one."""
    inner = re.sub(r"`[^`]*`", lambda code: code.group().replace("|", "\0"), line.strip().strip("|"))
    return [cell.replace("\0", "|").replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", inner)]


def table_of(lines, mark):
    """The lines of the first table behind a heading, of that with this head, or of that with a row that begins so."""
    at = next((at for at, line in enumerate(lines) if line.startswith(mark)), None)
    if at is None:
        sys.exit(f"no {mark}")
    while not lines[at].startswith("|"):
        at += 1
    while lines[at - 1].startswith("|"):
        at -= 1
    end = at
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    return lines[at:end]


def elsewhere(docs):
    """Tables of other pages than that of the configuration: the table of the configuration, and the lines."""
    for page, mark, table in SOURCES:
        if page != "operate/configuration.md":
            with open(f"{docs}/{page}", encoding="utf-8") as file:
                yield table.rstrip(".") or mark.strip("| `."), table_of(file.read().splitlines(), mark)


def keys(row):
    """The keys of a row with their defaults."""
    names = re.findall(r"`([^`]*)`", next(iter(row.values())))
    first, default = names[0], row.get("default", "")
    # `.step_ms` behind `tarpit.errors`.
    names = [first.rpartition(".")[0] + name if name.startswith(".") else name for name in names]
    # A table of keys that stand elsewhere, unless it has any keys.
    tables = {table.rstrip(".") for _, _, table in SOURCES}
    names = [name.strip("[]") for name in names if not name.startswith("[") or name.strip("[]") not in tables and name[1] != "["]
    defaults = default.split(", ")
    is_each = len(defaults) == len(names) > 1 and all(re.fullmatch(r"`[^`]*`|none", one) for one in defaults)
    each = defaults if is_each else [default] * len(names)
    return zip(names, (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", default) for default in each))


def main():
    done, tables = set(), {table.rstrip(".") for _, _, table in SOURCES}
    for page, mark, table in SOURCES:
        with open(f"{sys.argv[1]}/{page}", encoding="utf-8") as file:
            lines = file.read().splitlines()
        head, _, *rows = table_of(lines, mark)
        for row in rows:
            for name, default in keys(dict(zip(cells(head), cells(row)))):
                name = table + name.removeprefix(table)
                if name not in done and name not in tables:
                    print(f"{name}\t{default}\t{page}")
                done.add(name)


if __name__ == "__main__":
    main()
