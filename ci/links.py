#!/usr/bin/env python3
"""Whether every relative link in the tracked Markdown pages leads to a file, and its anchor to a heading; whether every page
of docs/ that a source, a script or a setting names is there; whether docs/README.md links to every page; and whether the rows of
each table have as many cells as its head.

Links to other sites are not followed. Fenced code is not read for links.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
NAMED = re.compile(r"\bdocs/[\w/-]+\.md\b")
INSTALLED = re.compile(r"/usr/share/doc/sluice/([\w/-]+\.md)\b")


def anchors(page):
    """The anchors that GitHub makes of the headings of a page."""
    with open(page, encoding="utf-8") as file:
        headings = re.findall(r"^#+ +(.*?) *$", without_code(file.read()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def links(page, text):
    """What is wrong with the links of one page."""
    for target, anchor in LINK.findall(re.sub(r"`[^`\n]*`", "", without_code(text))):
        if "://" in target or target.startswith("mailto:"):
            continue
        aim = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
        if not os.path.exists(aim):
            yield f"{page} links to {target}, which is not there"
        elif anchor and aim.endswith(".md") and anchor not in anchors(aim):
            yield f"{page} links to {target}#{anchor}, and no heading has this name"


def tables(page, text):
    """The rows of tables that have more or fewer cells than the first; a bar in code, or behind a backslash, ends none."""
    cells = fenced = None
    for number, line in enumerate(text.splitlines(), 1):
        fenced = not fenced if line.startswith("```") else fenced
        if fenced or not line.startswith("|"):
            cells = None
            continue
        found = re.sub(r"`[^`]*`|\\\|", "", line.rstrip()).count("|")
        if cells not in (None, found):
            yield f"{page}:{number}: a row of {found - 1} cells in a table of {cells - 1}"
        cells = cells or found


def main():
    os.chdir(ROOT)
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], stdout=subprocess.PIPE, check=True)
    wrong = []
    for path in listed.stdout.decode().splitlines():
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (UnicodeDecodeError, OSError):
            continue
        if path.endswith(".md"):
            wrong += [*links(path, text), *tables(path, text)]
        named = NAMED.findall(text) + ["docs/" + page for page in INSTALLED.findall(text)]
        # The changelog is installed beside the pages.
        missing = {page for page in named if not os.path.exists(page)} - {"docs/CHANGELOG.md"}
        wrong += [f"{path} names {page}, which is not there" for page in sorted(missing)]
        if re.fullmatch(r"docs/.+\.md", path) and path != "docs/README.md":
            with open("docs/README.md", encoding="utf-8") as index:
                if f"]({path[len('docs/'):]})" not in index.read():
                    wrong.append(f"docs/README.md does not link to {path}")
    for line in wrong:
        print("links: " + line, file=sys.stderr)
    return bool(wrong)


sys.exit(main())
