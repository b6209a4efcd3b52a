#!/usr/bin/python3
"""Roundcube as Debian has it, in a headless Chromium, before a gateway with a mail store: what people do with webmail.

    ci/roundcube.py [STEP...]       all steps, unless some are named; they build on each other. A minute

SLUICE names the program, else target/release/sluice is taken. Needs the packages of PACKAGES; without them it says `skipped:` and
ends with 0. It runs as any user, on the loopback, and leaves nothing behind. Where a step fails the logs are printed, and what both
browsers showed is in target/roundcube-*.png.
"""

import contextlib
import imaplib
import logging
import os
import pathlib
import re
import smtplib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import warnings
from email import message_from_bytes, policy
from email.message import EmailMessage

ROOT = pathlib.Path(__file__).resolve().parent.parent
SLUICE = os.environ.get("SLUICE", str(ROOT / "target/release/sluice"))
PACKAGES = "roundcube-core roundcube-sqlite3 roundcube-plugins php-cli php-sqlite3 chromium-driver python3-selenium python3-aiosmtpd"
ROUNDCUBE = pathlib.Path("/usr/share/roundcube")

try:
    from aiosmtpd.controller import Controller
    from aiosmtpd.handlers import Proxy
    from aiosmtpd.smtp import AuthResult
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
except ImportError:
    ROUNDCUBE = None
if not ROUNDCUBE or not (ROUNDCUBE / "plugins/acl").is_dir() or not os.path.exists("/usr/bin/chromedriver"):
    sys.exit(print(f"skipped: Roundcube in a browser: apt-get install --no-install-recommends {PACKAGES}"))

GATEWAY = """hostname = "mail.example.org"
[store]
folder = "{at}/store"
size = "256M"
accounts = "{at}/accounts"
imap = ["127.0.0.1:{imap}"]
sieve = ["127.0.0.1:{sieve}"]
[[listener]]
protocol = "smtp"
address = "127.0.0.1:{smtp}"
forward = "store:"
[[listener]]
protocol = "smtp"
address = "127.0.0.1:{submission}"
auth = "any"
refusal = "name"
forward = "smtp://127.0.0.1:{hop}"
"""

WEBMAIL = """<?php
$config['db_dsnw'] = 'sqlite:///{at}/roundcube.db?mode=0600';
$config['temp_dir'] = $config['log_dir'] = '{at}/log';
$config['imap_host'] = '127.0.0.1:{imap}';
$config['smtp_host'] = '127.0.0.1:{submission}';
$config['managesieve_host'] = '127.0.0.1:{sieve}';
$config['des_key'] = 'four-and-twenty-letters!';
$config['plugins'] = ['managesieve', 'acl', 'markasjunk', 'archive', 'zipdownload'];
$config['imap_cache'] = 'db';
$config['messages_cache'] = true;
$config['imap_debug'] = $config['smtp_debug'] = true;
$config['language'] = 'en_US';
$config['username_domain'] = 'example.org';
$config['draft_autosave'] = 0;
"""

ANN, BOB, PASSWORD = "ann@example.org", "bob@example.org", "secret"
EICAR = rb"X5O!P%@AP[4\PZX54(P^)7CC)7}$" + rb"EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"
FOLDER = "#subscription-table li a"
OTHERS = "Other Users/ann@example.org/Grüße an alle"


class Site:
    """The gateway, the submission server behind it, and the webmail."""

    def __init__(self, at):
        self.at, self.running = at, []
        self.port = {name: free_port() for name in ("imap", "sieve", "smtp", "submission", "hop", "http")}
        (at / "log").mkdir()
        for name, text in (("sluice.toml", GATEWAY), ("config.inc.php", WEBMAIL)):
            filled = re.sub(r"\{(\w+)\}", lambda found: str({"at": at, **self.port}[found[1]]), text)
            (at / name).write_text(filled)
        (at / "defaults.inc.php").write_bytes(pathlib.Path("/etc/roundcube/defaults.inc.php").read_bytes())
        for name, quota in ((ANN, "20M"), (BOB, "2M")):
            command = [SLUICE, "account", "--accounts", at / "accounts", "add", "--quota", quota, name]
            subprocess.run(command, input=PASSWORD.encode(), check=True, stdout=subprocess.DEVNULL)

    def __enter__(self):
        # Who logs in there is the site's to know; mail for accounts comes back to the gateway.
        def known(server, session, envelope, mechanism, data):
            return AuthResult(success=data.login.decode() in (ANN, BOB) and data.password == PASSWORD.encode())
        # That there is no TLS, on the loopback.
        warnings.simplefilter("ignore", UserWarning)
        logging.getLogger("mail.log").setLevel(logging.ERROR)
        self.hop = Controller(Proxy("127.0.0.1", self.port["smtp"]), "127.0.0.1", self.port["hop"], authenticator=known,
                              auth_require_tls=False, auth_required=True)
        self.hop.start()
        as_root = ["--allow-root"] if os.geteuid() == 0 else []
        self.start("gateway", [SLUICE, "serve", "--config", self.at / "sluice.toml", *as_root], self.port["imap"])
        # One request at a time, as it is by default: Roundcube loses the form of a mail where two change its session.
        surroundings = {**os.environ, "ROUNDCUBE_CONFIG_DIR": str(self.at)}
        self.start("webmail", ["php", "-q", "-d", "upload_max_filesize=20M", "-d", "post_max_size=30M", "-d", "display_errors=0", "-S",
                               f"127.0.0.1:{self.port['http']}", "-t", ROUNDCUBE], self.port["http"], env=surroundings)
        return self

    def start(self, name, command, port, **more):
        log = open(self.at / "log" / name, "wb")
        self.running.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, process_group=0, **more))
        wait(lambda: listens(port), f"{name} listens", (self.at / "log" / name).read_text)

    def __exit__(self, *_):
        for process in reversed(self.running):
            os.killpg(process.pid, 15)
            process.wait(20)
        self.hop.stop()

    def imap(self, name):
        session = imaplib.IMAP4("127.0.0.1", self.port["imap"])
        session.login(name, PASSWORD)
        return session

    def mails(self, name, mailbox="INBOX"):
        """Flags and mails of what is in a mailbox."""
        session = self.imap(name)
        assert session.select(f'"{utf7(mailbox)}"', readonly=True)[0] == "OK", mailbox
        found = session.fetch("1:*", "(FLAGS BODY.PEEK[])")[1] if session.search(None, "ALL")[1][0] else []
        session.logout()
        return [({flag.decode() for flag in imaplib.ParseFlags(one[0])}, message_from_bytes(one[1], policy=policy.default))
                for one in found if isinstance(one, tuple)]

    def mail(self, name, subject, mailbox="INBOX"):
        """Flags and mail of the one with this subject, which comes within a moment."""
        found = lambda: [one for one in self.mails(name, mailbox) if one[1]["Subject"] == subject]
        flags, mail = wait(found, f"{subject!r} in {mailbox} of {name}", lambda: [mail["Subject"] for _, mail in self.mails(name, mailbox)])[0]
        return flags, mail

    def has(self, name, mailbox, *subjects):
        """Waits until these are in a mailbox, and nothing else."""
        seen = lambda: sorted(mail["Subject"] for _, mail in self.mails(name, mailbox))
        wait(lambda: seen() == sorted(subjects), f"{subjects} in {mailbox}", seen)

    def deliver(self, mail, to):
        with smtplib.SMTP("127.0.0.1", self.port["smtp"]) as session:
            session.sendmail("eve@example.net", to, mail.as_bytes())


class Webmail:
    """A browser in which somebody has logged in."""

    def __init__(self, site, name, password=PASSWORD):
        self.site, self.at = site, site.at / name
        self.at.mkdir(exist_ok=True)
        options = webdriver.ChromeOptions()
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1400,1000", f"--user-data-dir={self.at}/profile"):
            options.add_argument(argument)
        options.add_experimental_option("prefs", {"download.default_directory": str(self.at), "download.prompt_for_download": False})
        self.browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.log_in(name, password)

    def log_in(self, name, password):
        self.go("")
        self.type("#rcmloginuser", name)
        self.type("#rcmloginpwd", password)
        self.click("#rcmloginsubmit")

    def go(self, query):
        self.browser.switch_to.default_content()
        self.browser.get(f"http://127.0.0.1:{self.site.port['http']}/?{query}")
        self.settle()

    def mail(self, mailbox="INBOX", **more):
        self.go(urllib.parse.urlencode({"_task": "mail", "_mbox": utf7(mailbox), **more}))

    def settle(self):
        """Waits until the page has come and no request is under way."""
        wait(lambda: self.run("return document.readyState == 'complete' && (!window.rcmail || !rcmail.busy)"), "the page settles")
        if self.run("return !!window.jQuery"):
            wait(lambda: self.run("return jQuery.active == 0"), "requests end")

    def run(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def all(self, what):
        return self.browser.find_elements(By.CSS_SELECTOR, what)

    def one(self, what):
        return wait(lambda: next((found for found in self.all(what) if found.is_displayed()), None), what)

    def type(self, what, text):
        field = self.one(what)
        field.clear()
        field.send_keys(text)

    def click(self, what, text=""):
        """What is shown, and has this text if there is one."""
        fits = lambda one: one.is_displayed() and text in one.text
        wait(lambda: next(filter(fits, self.all(what)), None), f"{what} {text}").click()
        self.settle()

    def command(self, *words):
        """What a button does, by its name within Roundcube."""
        self.run("rcmail.command(arguments[0], arguments[1])", *words, *[""] * (2 - len(words)))
        self.settle()

    def confirm(self):
        self.click(".ui-dialog .ui-dialog-buttonset button.mainaction")

    def told(self, text):
        """Waits for a message of Roundcube."""
        shown = lambda: " ".join(one.text for one in self.all("#messagestack > div"))
        return wait(lambda: shown() if re.search(text, shown()) else None, f"message {text!r}", lambda: shown())

    def subjects(self):
        return [one.text for one in self.all("#messagelist tbody tr span.subject a") if one.is_displayed()]

    def listed(self, *subjects):
        wait(lambda: sorted(self.subjects()) == sorted(subjects), f"the list {subjects}", self.subjects)

    def uid(self, subject):
        """The message of the list with this subject."""
        for row in self.all("#messagelist tbody tr"):
            if row.is_displayed() and row.find_element(By.CSS_SELECTOR, "span.subject a").text == subject:
                return self.run("return $(arguments[0]).data('uid') || arguments[0].uid", row)
        raise Failed(f"{subject!r} is not among {self.subjects()}")

    def choose(self, *subjects):
        uids = [self.uid(subject) for subject in subjects]
        self.run("const list = rcmail.message_list; list.clear_selection(); arguments[0].forEach(uid => list.highlight_row(uid, true));"
                 "list.triggerEvent('select')", uids)

    def open(self, subject, mailbox="INBOX"):
        self.mail(mailbox)
        self.mail(mailbox, _uid=self.uid(subject), _action="show")

    @contextlib.contextmanager
    def within(self, frame):
        """In a frame of the page."""
        wait(lambda: self.run("const one = $(arguments[0])[0]; return one && one.contentWindow.rcmail && one.contentDocument.readyState == 'complete'", frame), frame)
        self.browser.switch_to.frame(self.one(frame))
        self.settle()
        yield
        self.browser.switch_to.default_content()
        self.settle()

    def search(self, text, where, scope="base"):
        self.run("rcmail.set_searchmods(arguments[0]); rcmail.set_searchscope(arguments[1])", {one: 1 for one in where}, scope)
        self.run("$('#mailsearchform').val(arguments[0])", text)
        self.command("search")

    def folders(self):
        return self.run("return Object.keys(rcmail.env.mailboxes)")

    def write(self, to, subject, text, *files):
        self.go("_task=mail&_action=compose")
        self.fill(to, subject, text, *files)

    def fill(self, to, subject, text, *files):
        self.run("$('#_to').val(arguments[0]).change()", to)
        self.type("#compose-subject", subject)
        self.run("$('#composebody').val(arguments[0])", text)
        for file in files:
            before = len(self.all("#attachment-list li"))
            self.browser.find_element(By.CSS_SELECTOR, "input[type=file][name='_attachments[]']").send_keys(str(file))
            wait(lambda: len(self.all("#attachment-list li:not(.uploading)")) > before, f"{file} is there")
        self.settle()

    def send(self):
        self.one(".formbuttons .send").click()


class Failed(Exception):
    """Something did not come."""


def wait(reached, what, seen=lambda: "", seconds=15):
    end = time.monotonic() + seconds
    while True:
        try:
            if found := reached():
                return found
        except (OSError, WebDriverException):
            pass
        if time.monotonic() > end:
            raise Failed(f"{what} did not come; {seen()}")
        time.sleep(0.05)


def listens(port):
    """Whether somebody does; who connects to a free port may meet himself."""
    with socket.create_connection(("127.0.0.1", port)) as one:
        return one.getsockname() != one.getpeername()


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def utf7(name):
    """The name of a mailbox as IMAP has it (RFC 3501, section 5.1.3)."""
    encode = lambda found: "&" + found[0].encode("utf-7").decode()[1:].rstrip("-").replace("/", ",") + "-"
    return re.sub("[^ -~]+", encode, name.replace("&", "&-"))


def made(subject, text="It works.\r\n", html=None, attached=None, **more):
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Eve <eve@example.net>", ANN, subject
    mail["Message-ID"] = f"<{more.get('id', subject.replace(' ', '.').encode().hex())}@example.net>"
    if reference := more.get("reference"):
        mail["In-Reply-To"] = mail["References"] = f"<{reference}@example.net>"
    mail.set_content(text)
    if html:
        mail.add_alternative(html, subtype="html")
    if attached:
        mail.add_attachment(attached[1], maintype="application", subtype="octet-stream", filename=attached[0])
    return mail


BYTES = bytes(range(256)) * 400


def log_in(site, ann, bob):
    """Log in: a wrong password, then the right one."""
    ann.told("Login failed")
    ann.log_in(ANN, PASSWORD)
    wait(lambda: {"INBOX", "Drafts", "Sent", "Trash", "Junk", "Archive"} <= set(ann.folders()), "folders", ann.folders)


def read(site, ann, bob):
    """List and read: text, HTML, an attachment byte for byte."""
    site.deliver(made("plain text", "Grüße, € 5\r\n"), ANN)
    site.deliver(made("with HTML", html="<p>This is <b id=x>bold</b><script>document.title='bad'</script></p>"), ANN)
    site.deliver(made("with a file", attached=("bär.bin", BYTES)), ANN)
    ann.mail()
    ann.listed("plain text", "with HTML", "with a file")
    ann.open("plain text")
    assert "Grüße, € 5" in ann.one("#messagebody").text
    ann.open("with HTML")
    assert ann.one("#messagebody b").text == "bold" and ann.browser.title != "bad"
    ann.open("with a file")
    assert "bär.bin" in ann.one("#attachment-list").text
    ann.run("rcmail.command('download-attachment', '2')")
    file = ann.at / "bär.bin"
    wait(file.exists, "the file")
    assert file.read_bytes() == BYTES
    assert all("\\Seen" in flags for flags, _ in site.mails(ANN)), "what was read is seen"


def send(site, ann, bob):
    """Send to another account, with a file; a virus is refused, and it is said why."""
    for name, content in (("file.bin", BYTES), ("eicar.com", EICAR)):
        (ann.at / name).write_bytes(content)
    ann.write(BOB, "to bob", "With a file.", ann.at / "file.bin")
    ann.send()
    ann.told("Message sent")
    _, mail = site.mail(BOB, "to bob")
    assert next(mail.iter_attachments()).get_content() == BYTES
    assert next(site.mail(ANN, "to bob", "Sent")[1].iter_attachments()).get_content() == BYTES
    bob.mail()
    bob.listed("to bob")
    ann.write(BOB, "a virus", "See there.", ann.at / "eicar.com")
    ann.send()
    ann.told(r"554.*(?i:eicar)")
    site.has(BOB, "INBOX", "to bob")
    site.has(ANN, "Sent", "to bob")


def reply(site, ann, bob):
    """Reply: it comes, and what it answers has \\Answered."""
    bob.open("to bob")
    bob.command("reply")
    wait(lambda: bob.all("#composebody"), "the form")
    bob.settle()
    bob.send()
    bob.told("Message sent")
    _, mail = site.mail(ANN, "Re: to bob")
    assert mail["In-Reply-To"] == site.mail(BOB, "to bob")[1]["Message-ID"]
    assert "\\Answered" in site.mail(BOB, "to bob")[0]


def draft(site, ann, bob):
    """A draft is kept, kept again, and sent; then it is gone."""
    ann.write(BOB, "a draft", "First.")
    ann.command("savedraft")
    ann.told("saved to Drafts")
    ann.fill(BOB, "a draft", "Second.")
    ann.command("savedraft")
    wait(lambda: site.mail(ANN, "a draft", "Drafts")[1].get_content().startswith("Second."), "the second draft")
    site.has(ANN, "Drafts", "a draft")
    ann.mail("Drafts")
    ann.go(f"_task=mail&_action=compose&_mbox=Drafts&_draft_uid={ann.uid('a draft')}")
    assert ann.run("return $('#composebody').val()").startswith("Second.")
    ann.send()
    ann.told("Message sent")
    assert site.mail(BOB, "a draft")[1].get_content().startswith("Second.")
    site.has(ANN, "Drafts")


def arrange(site, ann, bob):
    """Move, copy, archive, delete, and empty the trash."""
    ann.mail()
    ann.choose("plain text")
    ann.command("copy", "Archive")
    site.has(ANN, "Archive", "plain text")
    ann.choose("plain text")
    ann.command("move", "Trash")
    ann.choose("with HTML")
    ann.command("delete")
    site.has(ANN, "Trash", "plain text", "with HTML")
    ann.listed("with a file", "Re: to bob")
    ann.mail("Trash")
    ann.listed("plain text", "with HTML")
    ann.choose("with HTML")
    ann.command("move", "INBOX")
    ann.listed("plain text")
    ann.mail()
    ann.choose("with HTML")
    ann.command("plugin.archive")
    site.has(ANN, "Archive", "plain text", "with HTML")
    ann.mail("Archive")
    ann.choose("with HTML")
    ann.command("move", "INBOX")
    ann.mail("Trash")
    ann.command("purge", "Trash")
    ann.confirm()
    site.has(ANN, "Trash")
    site.has(ANN, "INBOX", "with HTML", "with a file", "Re: to bob")


def search(site, ann, bob):
    """Search by subject, by text, and in all folders."""
    site.deliver(made("unlike others", "In the text stands Straßenbahn.\r\n"), ANN)
    ann.mail()
    ann.search("UNLIKE", ["subject"])
    ann.listed("unlike others")
    ann.search("straßenbahn", ["text"])
    ann.listed("unlike others")
    ann.search("straßenbahn", ["subject"])
    ann.listed()
    ann.search("plain", ["subject"], "all")
    ann.listed("plain text")
    ann.open("unlike others")


def folders(site, ann, bob):
    """A folder is made, renamed, subscribed and not, and removed; its name is not ASCII."""
    def edit(name, folder=None):
        ann.go("_task=settings&_action=folders")
        ann.click(FOLDER, folder) if folder else ann.click("a.create")
        with ann.within("#preferences-frame"):
            ann.type("input[name=_name]", name)
            ann.run("rcmail.command('save')")
            time.sleep(0.3)
    listed = lambda command="list": [line.decode().rsplit('"/" ')[1].strip('"') for line in getattr(site.imap(ANN), command)()[1]]
    shows = lambda name, command="list": wait(lambda: utf7(name) in listed(command), name, lambda: listed(command))
    edit("Grüße & Küsse")
    shows("Grüße & Küsse", "lsub")
    edit("Grüße an alle", "Grüße & Küsse")
    shows("Grüße an alle", "lsub")
    assert utf7("Grüße & Küsse") not in listed()
    edit("日本語")
    ann.go("_task=settings&_action=folders")
    ann.run("rcmail.unsubscribe(arguments[0])", utf7("日本語"))
    wait(lambda: utf7("日本語") not in listed("lsub"), "no subscription")
    shows("日本語")
    ann.click(FOLDER, "日本語")
    ann.command("delete-folder")
    ann.confirm()
    wait(lambda: utf7("日本語") not in listed(), "no folder")
    ann.mail()
    ann.choose("with HTML")
    ann.command("move", utf7("Grüße an alle"))
    site.has(ANN, "Grüße an alle", "with HTML")
    ann.mail("Grüße an alle")
    ann.listed("with HTML")


def flags(site, ann, bob):
    """Flagged, unread, and junk."""
    ann.mail()
    ann.choose("with a file")
    ann.command("mark", "flagged")
    ann.choose("with a file")
    ann.command("mark", "unread")
    wait(lambda: site.mail(ANN, "with a file")[0] >= {"\\Flagged"}, "the flag")
    wait(lambda: "\\Seen" not in site.mail(ANN, "with a file")[0], "unread")
    ann.choose("unlike others")
    ann.command("plugin.markasjunk.junk")
    assert "$Junk" in site.mail(ANN, "unlike others", "Junk")[0] or "Junk" in site.mail(ANN, "unlike others", "Junk")[0]


def threads(site, ann, bob):
    """Threads are listed as such."""
    site.deliver(made("a question", id="t1"), ANN)
    site.deliver(made("Re: a question", id="t2", reference="t1"), ANN)
    site.deliver(made("another", id="t3"), ANN)
    site.deliver(made("Re: Re: a question", id="t4", reference="t2"), ANN)
    ann.mail()
    ann.run("rcmail.set_list_options(null, 'date', 'DESC', 1)")
    ann.settle()
    depths = lambda: {row["s"]: row["d"] for row in ann.run(
        "return Object.values(rcmail.message_list.rows).map(row => ({s: $(row.obj).find('span.subject a').first().text().trim(), d: row.depth || 0}))")}
    wait(lambda: depths().get("Re: Re: a question") == 2 and depths().get("Re: a question") == 1 and depths().get("another") == 0, "threads", depths)
    ann.run("rcmail.set_list_options(null, 'date', 'DESC', 0)")
    ann.settle()


def quota(site, ann, bob):
    """The quota is shown; a copy that does not fit is refused, and it is said why."""
    bob.mail()
    wait(lambda: re.search(r"\d+%", bob.one("#quotadisplay").text), "the quota", lambda: bob.one("#quotadisplay").text)
    (bob.at / "large.bin").write_bytes(os.urandom(1_500_000))
    bob.write(ANN, "large", "See there.", bob.at / "large.bin")
    bob.command("savedraft")
    bob.told("No free disk space")


def filters(site, ann, bob):
    """A filter that the form has made sorts mail."""
    ann.go("_task=settings&_action=plugin.managesieve")
    ann.run("rcmail.command('plugin.managesieve-add')")
    with ann.within("#filter-box"):
        ann.type("input[name=_name]", "lists")
        ann.run("$('select[name^=_header]').first().val('subject').change(); $('select[name^=_rule_op]').first().val('contains').change()")
        ann.type(".multi-input .content input, .multi-input input", "[list]")
        ann.run("$('select[name^=_action_type]').first().val('fileinto').change(); $('select[name^=_action_mailbox]').first().val(arguments[0]).change()",
                "Archive")
        ann.run("rcmail.command('plugin.managesieve-save')")
        time.sleep(0.5)
    wait(lambda: "lists" in ann.one("#filterslist").text, "the filter", lambda: ann.one("#filterslist").text)
    site.deliver(made("[list] news"), ANN)
    site.has(ANN, "Archive", "plain text", "[list] news")
    ann.mail("Archive")
    ann.listed("plain text", "[list] news")


def share(site, ann, bob):
    """A folder is shared with another account, who sees and reads it; he may not write to it."""
    ann.go("_task=settings&_action=folders")
    ann.click(FOLDER, "Grüße an alle")
    with ann.within("#preferences-frame"):
        ann.run("rcmail.command('acl-create')")
    ann.type("#acluser", BOB)
    for right in ("write", "delete", "other"):
        ann.run("$('#acl' + arguments[0]).prop('checked', false)", right)
    ann.confirm()
    granted = lambda: site.imap(ANN).getacl(f'"{utf7("Grüße an alle")}"')[1][0].decode()
    wait(lambda: f'"{BOB}" "lrs"' in granted(), "the right", granted)
    bob.go("_task=settings&_action=folders")
    bob.run("rcmail.subscribe(arguments[0])", utf7(OTHERS))
    bob.settle()
    bob.mail()
    wait(lambda: utf7(OTHERS) in bob.folders(), "the folder", bob.folders)
    bob.mail(OTHERS)
    bob.listed("with HTML")
    bob.mail(OTHERS, _uid=bob.uid("with HTML"), _action="show")
    assert bob.one("#messagebody b").text == "bold"
    bob.mail()
    bob.choose("to bob")
    bob.command("copy", utf7(OTHERS))
    bob.told("Permission denied")
    site.has(ANN, "Grüße an alle", "with HTML")


def refused(site, ann, bob):
    """Of all that Roundcube has asked by IMAP nothing was refused but what had to be."""
    lines = (site.at / "log/imap.log").read_text(errors="replace")
    found = set(re.findall(r"S: (?:\w+|\*|\+) ((?:NO|BAD) \[?\w*)", lines))
    assert found == {"NO [AUTHENTICATIONFAILED", "NO [NOPERM", "NO [OVERQUOTA"}, found


STEPS = [log_in, read, send, reply, draft, arrange, search, folders, flags, threads, quota, filters, share, refused]


def main():
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="sluice-roundcube-") as at, Site(pathlib.Path(at)) as site:
        ann, bob = Webmail(site, ANN, "wrong"), Webmail(site, BOB)
        try:
            for step in STEPS:
                if not wanted or step.__name__ in wanted or step is log_in:
                    began = time.monotonic()
                    step(site, ann, bob)
                    print(f"ok {time.monotonic() - began:5.1f} s  {step.__doc__}", flush=True)
        except BaseException:
            for name, one in (("ann", ann), ("bob", bob)):
                one.browser.save_screenshot(str(ROOT / f"target/roundcube-{name}.png"))
            for name in ("gateway", "errors.log", "smtp.log", "imap.log"):
                log = site.at / "log" / name
                if log.is_file():
                    print(f"--- {log.name}", *log.read_text(errors="replace").splitlines()[-40:], sep="\n", file=sys.stderr)
            raise
        finally:
            ann.browser.quit()
            bob.browser.quit()


main()
