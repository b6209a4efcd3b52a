#!/usr/bin/env python3
"""Prints sluice.toml(5), as docs/operate/configuration.md and the tables of keys on other pages describe the file:
`packaging/page5.py DOCS`.

It knows the Markdown of that page: headings, paragraphs, lists, tables, fences, `code`, **strong**, links, and no more.
"""

import re
import sys

sys.dont_write_bytecode = True  # the folder is shipped
import keys

HEAD = """.ie \\n(.g .ds Aq \\(aq
.el .ds Aq '
.TH sluice.toml 5 "" "sluice" "File formats"
.SH NAME
sluice.toml \\- configuration of sluice(1)
.SH SYNOPSIS
.B /etc/sluice/sluice.toml
.SH DESCRIPTION
"""

TAIL = """.SH FILES
.TP
.I /etc/sluice/sluice.toml
The configuration that the service reads, with the defaults in comments.
.TP
.I /etc/sluice/conf.d/*.toml
More of it, in the order of the names.
.TP
.I /usr/share/doc/sluice
The pages that this one names.
.SH EXAMPLES
A gateway between two instances of Postfix's smtpd:
.PP
.EX
[database]
paths = ["/var/lib/clamav"]

[[listener]]
protocol = "smtp"
address = "127.0.0.1:10025"
forward = "smtp://127.0.0.1:10026"
xforward_from = ["127.0.0.1"]
.EE
.SH SEE ALSO
.BR sluice (1),
.BR sluice\\-check (1),
.BR sluice\\-serve (1)
"""


def text(markdown):
    """A line of roff: escaped, code and strong words in bold, links by their words."""
    markdown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    out = []
    for index, piece in enumerate(re.split(r"(`[^`]*`|\*\*[^*]+\*\*|(?<![\w*])\*[^*]+\*)", markdown)):
        bold = index % 2 == 1
        plain = piece[1:-1] if bold and piece[0] == "`" else piece.strip("*") if bold else piece
        plain = plain.replace("\\|", "|").replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
        out.append(f"\\fB{plain}\\fR" if bold else plain)
    line = "".join(out)
    return "\\&" + line if line.startswith(".") else line


def cells(line):
    """The cells of a row; a bar in code does not end one."""
    inner = re.sub(r"`[^`]*`", lambda code: code.group().replace("|", "\0"), line.strip().strip("|"))
    return [cell.replace("\0", "|").replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", inner)]


def table(rows):
    heads, *rest = [cells(row) for row in rows if not re.fullmatch(r"[|\s:-]+", row)]
    for row in rest:
        first, last = row[0], row[-1]
        middle = [f"{head}: {cell}" if head == "default" else cell for head, cell in zip(heads[1:-1], row[1:-1]) if cell]
        yield ".TP"
        yield text(first) + (f" ({text(', '.join(middle))})" if middle else "")
        yield text(last) or "\\&"


def page(lines):
    at = 0
    while at < len(lines):
        line = lines[at]
        end = at + 1
        if line.startswith("```"):
            end = next(i for i in range(at + 1, len(lines)) if lines[i].startswith("```")) + 1
            yield from [".PP", ".EX", *(text(code) or "" for code in lines[at + 1:end - 1]), ".EE"]
        elif line.startswith("# "):
            pass
        elif line.startswith("## "):
            # Names of tables are in small letters, as they are written.
            heading = text(line[3:]).replace("\\fB", "").replace("\\fR", "")
            yield ".SH " + (heading if "[" in heading else heading.upper().replace("\\E", "\\e"))
        elif line.startswith("### "):
            yield ".SS " + text(line[4:])
        elif line.startswith("|"):
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            yield from table(lines[at:end])
        elif line.startswith("- "):
            while end < len(lines) and lines[end].startswith("  "):
                end += 1
            yield from [".IP \\(bu 2", text(" ".join(part.strip() for part in [line[2:], *lines[at + 1:end]]))]
        elif line.strip():
            while end < len(lines) and lines[end].strip() and not lines[end].startswith(("|", "#", "- ", "```")):
                end += 1
            yield from [".PP", text(" ".join(part.strip() for part in lines[at:end]))]
        at = end


def with_tables(lines, tables):
    """The page with the tables of other pages at the ends of their sections."""
    section, sections = None, set()
    for line in [*lines, "## "]:
        if line.startswith("## "):
            for name, rows in tables:
                if re.split(r"[.\[]", name)[0] == section:
                    yield from [f"### `{titled(name)}`", "", *rows, ""]
            found = re.fullmatch(r"## `\[+(\w+)\]+`", line)
            section = found.group(1) if found else None
            sections.add(section)
        if line != "## ":
            yield line
    lost = [name for name, _ in tables if re.split(r"[.\[]", name)[0] not in sections]
    if lost:
        sys.exit(f"no section of the page has the tables {lost}")


def titled(name):
    """As a file names it: `[[listener.rule]]`."""
    plain = name.replace("[]", "")
    return f"[[{plain}]]" if name.endswith("[]") else f"[{plain}]"


def main():
    docs = sys.argv[1]
    with open(f"{docs}/operate/configuration.md", encoding="utf-8") as file:
        lines = list(with_tables(file.read().splitlines(), list(keys.elsewhere(docs))))
    sys.stdout.write(HEAD + "\n".join(page(lines)) + "\n" + TAIL)


main()
