"""What a new user does on the first day, in a machine made for it: `ci/first-day.sh` starts this in it.

Each page is gone through in its own function. What differs from the page is said there: ids that a page can only give examples of,
names of hosts, and what there is no network for.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import time

from page import Page, fail, failures, finish, say, sh, wait_for, write

CONFIG = "/etc/sluice/sluice.toml"
EICAR = r"X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR-STANDARD-ANTIVIRUS-TEST-" + "FILE!$H+H*"
MAIN_CF, MASTER_CF = "/etc/postfix/main.cf", "/etc/postfix/master.cf"
CLEAN = "swaks --server 127.0.0.1 --from you@example.org --to me@example.test"
VIRUS = CLEAN + " --attach-body '" + EICAR.replace("-TEST-", "-TEST-''") + "'"


def quiet(command):
    return subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode()


def journal():
    return quiet("journalctl -u sluice -o cat --no-pager -n 60")


def mails():
    return sum(len(os.listdir(folder)) for folder in glob.glob("/home/me/Maildir/new"))


def prepare():
    """The machine of the user, before: a Postfix that takes mail for example.test, and its user."""
    quiet("""
        echo 'APT::Get::Assume-Yes "true";' >/etc/apt/apt.conf.d/99yes
        useradd -m -s /bin/bash me; useradd -m you; echo me:secret | chpasswd
        postconf -e 'mydestination = example.test, localhost' 'home_mailbox = Maildir/' 'inet_interfaces = all' \\
            'compatibility_level = 3.6' 'myhostname = mx.example.test' 'smtputf8_enable = no'
        ip addr add 192.0.2.1/32 dev lo; echo '127.0.0.1 mail.internal' >>/etc/hosts
        printf 'listen = 127.0.0.1\\nmail_location = maildir:~/Maildir\\ndisable_plaintext_auth = no\\nssl = no\\n' >/etc/dovecot/conf.d/99-day.conf
        systemctl restart postfix dovecot
    """)
    for path in (MAIN_CF, MASTER_CF):
        shutil.copy(path, path + ".before")
    with open("/srv/invoice.txt", "w") as file:
        file.write(EICAR)
    quiet("cd /srv && mkdir -p files && cp invoice.txt invoice.com && zip -q invoice.zip invoice.com && "
          "cp invoice.com files/eicar.com && echo nothing >files/ok.txt && chmod -R a+rX files")


def fresh(text, drop_in=None):
    """The service with this configuration in the place of its own, as whoever follows a page has it, and Postfix as before."""
    for path in (MAIN_CF, MASTER_CF):
        shutil.copy(path + ".before", path)
    shutil.rmtree("/etc/systemd/system/sluice.service.d", ignore_errors=True)
    quiet("rm -rf /etc/sluice/conf.d; postsuper -d ALL; rm -rf /home/me/Maildir/new/*")
    if drop_in:
        os.makedirs("/etc/systemd/system/sluice.service.d")
        write("/etc/systemd/system/sluice.service.d/override.conf", drop_in)
    write(CONFIG, text)


def restart(postfix=True):
    sh("systemctl daemon-reload; sluice check --quiet --no-signatures " + CONFIG)
    sh("systemctl restart sluice")
    if postfix:
        sh("systemctl restart postfix")
    if "active" != quiet("systemctl is-active sluice").strip():
        fail("the service does not run")
        say(journal())


def refuses_viruses(text="554 5.7.1"):
    before = mails()
    sh(CLEAN, quiet=True)
    wait_for("clean mail", lambda: mails() == before + 1)
    sh(VIRUS, status=None, shows=text, quiet=True)


def install(page):
    """The package, under the name that it has now."""
    text = page.take("apt install ./sluice")
    package = glob.glob("/day/*.deb")[0]
    say(f"-- the package is {os.path.basename(package)}; apt has no network, so what it may fetch is there already; it does not ask")
    sh(re.sub(r"\./sluice_\S+\.deb", package, text), quiet=True)
    if not os.path.exists("/usr/bin/sluice"):
        fail("the program is not there")
        finish()
    sh("systemctl is-enabled sluice; systemctl is-active sluice", status=None, shows=["disabled", "inactive"])
    quiet("rm -rf /etc/sluice.before; cp -a /etc/sluice /etc/sluice.before")


def getting_started():
    page = Page("docs/start/getting-started.md")
    install(page)
    write(MAIN_CF, page.take("smtpd_proxy_filter = 127.0.0.1:10025"), "a")
    write(MASTER_CF, page.take("127.0.0.1:10026 inet"), "a")
    sh(page.take("postfix reload"))
    time.sleep(1)
    sh(page.take("systemctl enable --now sluice"), shows=["no signature files", "OK", "ready"])
    sh("systemctl status sluice | grep Status", shows="test signatures only")
    sh("ss -ltn | grep -c 10025; pgrep -x sluice", quiet=True)
    first = page.take("swaks --server 127.0.0.1 --from")
    output = sh(first, status=None, shows=["250 2.0.0 Ok", "554 5.7.1 Message refused"], quiet=True)
    output = quiet(first.splitlines()[1] + "\n" + first.splitlines()[2])
    refused = re.search(r"\(id (\w+)\)", output)
    refused = refused.group(1) if refused else fail("no id in the refusal")
    page.skip("<** 554 5.7.1", "what was shown above")
    sh(page.take("sluice log --action reject"), shows=str(refused))
    page.skip("2026-11-21T20:41:20.847753Z", "what was shown above")
    say("-- the journal knows the fields; its own form of them is read too")
    sh(f"journalctl -u sluice SLUICE_MESSAGE=message SLUICE_ID={refused} -o verbose",
       shows=["SLUICE_ACTION=reject", "PRIORITY=6", "SYSLOG_IDENTIFIER=sluice", "MESSAGE=2"], quiet=True)
    sh(f"journalctl -u sluice SLUICE_ACTION=reject -o json --all | sluice log --id {refused}", shows="554 5.7.1")
    sh("""sed -i 's/^on_infected = "reject"/on_infected = "quarantine"/' """ + CONFIG)
    sh(page.take("--client 192.0.2.1 --from"), shows='on_infected = "quarantine"')
    time.sleep(1)
    output = sh(first.split("\n", 1)[1], quiet=True)
    kept = wait_for("message in the quarantine", lambda: re.search(r"^(\w+) ", quiet("sluice quarantine list")))
    page_id = "1m7zxf56a0001"
    before = mails()
    commands = page.take("sluice quarantine list")
    say(f"-- {page_id} of the page is {kept and kept.group(1)} here")
    sh(commands.replace(page_id, kept.group(1) if kept else "none"), shows=["held", "released to <me@example.test>"], quiet=True)
    wait_for("released mail", lambda: mails() == before + 1)
    page.skip("1m7zxf56a0001  2026", "what was shown above")
    sh(page.take("delete --state released"))
    sh("sluice quarantine list | wc -l", shows="0")
    say("-- there is no network: what freshclam would have downloaded is a file that a test has put there")
    sh(page.take("apt install clamav-freshclam").split("sed")[0], quiet=True)
    sh("echo 'Day.Test:0:*:6669727374206461792073616d706c65' >/var/lib/clamav/day.ndb && chmod 644 /var/lib/clamav/day.ndb")
    again = Page("docs/start/getting-started.md").take("apt install clamav-freshclam")
    sh("sed" + again.split("sed", 1)[1], seconds=60)
    sh("systemctl status sluice | grep Status", shows="8 signatures, ")
    sh(CLEAN + " --body 'first day sample'", quiet=True)
    sh("sluice quarantine list", shows="Day.Test")
    sh(page.take("sluice top").replace("sluice top", "sluice top --count 2 --every 1"), shows=["messages", "sluice: edge", "generation"])
    say("-- on a terminal of 24 rows and 80 columns, until q is pressed")
    sh("(sleep 3; printf q) | timeout 20 script -qec 'stty rows 24 cols 80; sluice top' /dev/null >/tmp/top; tail -25 /tmp/top | cut -c1-90", shows="signatures")
    sh("(sleep 3; printf q) | timeout 20 script -qec 'stty rows 24 cols 80; sluice top' /dev/null >/dev/null")
    page.skip("scrape_configs:", "there is no Prometheus here; a test of the program asks one for all numbers")
    page.done()


def readme():
    page = Page("README.md")
    page.skip("make run", "they build the program, which is what this machine is not for")
    page.skip("make deb", "the package is installed already, by getting-started")
    listener = page.take('forward = "maildir:/srv/mail"')
    write("/srv/readme.toml", listener)
    quiet("mkdir /srv/mail && chown you /srv/mail; chmod a+r /srv/*; chmod 755 /srv")
    say("-- by hand, as a user whose folder /srv/mail is")
    quiet("cd /srv; systemd-run --uid=you --unit=readme --working-directory=/srv sluice serve --config /srv/readme.toml")
    wait_for("listener", lambda: ":2525" in quiet("ss -ltn"))
    session = page.take("$ swaks --server 127.0.0.1:2525")
    command = session.splitlines()[0].lstrip("$ ")
    sh("cd /srv; " + command, status=None, quiet=True, shows="554 5.7.1 Message refused (id ")
    sh("journalctl -u readme -o cat | sluice log --action reject", shows="Eicar-Test-Signature in invoice.com")
    sh("swaks --server 127.0.0.1:2525 --from you@example.org --to me@example.test; ls /srv/mail/new | wc -l", shows="\n1", quiet=True)
    quiet("systemctl stop readme")
    page.skip("client ──►", "a picture")
    signatures = page.take("apt install clamav-freshclam")
    sh(signatures, quiet=True)
    commands = page.take("sluice serve --config").splitlines()
    say("-- each of these by itself")
    quiet("cp /srv/invoice.zip /root/mail.eml; chmod 644 /root/mail.eml")
    for command in commands:
        words = command.split("#")[0].strip()
        if words.startswith("sluice serve"):
            say(f"-- left out: {words}: the service does that" if "--config" in words else f"-- on the clamd page: {words}")
        elif words.startswith("sluice update"):
            sh(words, status=2)
        elif words.startswith("sluice scan"):
            say("-- a mailbox below /home has a virus since an earlier page")
            sh(words, status=None, quiet=True, shows="Infected files")
        elif words.startswith("sluice explain"):
            sh("cd /root; " + words, status=1, shows="Eicar-Test-Signature")
        elif words.startswith("sluice quarantine"):
            sh("sluice quarantine list; journalctl -u sluice -o cat | sluice log | tail -1; sluice top --count 1", quiet=True)
        else:
            sh(words, quiet=True)
    page.done()


def mail_server():
    page = Page("docs/start/mail-server.md")
    say("-- the machine of the page is a fresh one: the servers of the other pages are stopped, and the package is installed already")
    quiet("systemctl stop sluice postfix dovecot; rm -rf /etc/systemd/system/sluice.service.d /etc/sluice/*.pem /var/lib/private/sluice")
    package = glob.glob("/day/*.deb")[0]
    text = page.take("apt install --no-install-recommends ./sluice")
    sh("apt-get purge -y sluice", quiet=True)
    sh(re.sub(r"\./sluice_\S+\.deb", package, text), quiet=True)
    sh("test -e /usr/share/spamassassin; pgrep -l 'spamd|gcc' || echo neither a daemon nor a compiler", shows="neither")
    sh(page.take("openssl req -x509"), quiet=True)
    drop_in = page.take("LoadCredential=fullchain.pem")
    configuration = page.take('hostname = "mail.example.org"')
    os.makedirs("/etc/systemd/system/sluice.service.d")
    write("/etc/systemd/system/sluice.service.d/override.conf", drop_in)
    say("-- a file of 10 GiB is not for this machine")
    write(CONFIG, configuration.replace('size = "10G"', 'size = "64M"'))
    say("-- before the first start neither the credentials nor the folders are there")
    sh("systemctl daemon-reload; sluice check", shows=["a credential, which systemd hands to the service", "which would be made", "OK"])
    sh(page.take("systemctl enable --now sluice"))
    sh("systemctl is-active sluice; journalctl -u sluice -o cat -n 20", shows=["active", "ready"], quiet=True)
    wait_for("accounts", lambda: os.path.exists("/var/lib/private/sluice/store/accounts"))
    sh(page.take("sluice account add ann@example.org"))
    time.sleep(2)
    sh(page.take("--mail-rcpt bob@example.org -T -"))
    read = page.take("imaps://mail.example.org/Junk")
    sh(read, shows=["Subject: hello", "It works.", "XJS*C4JDBQADN1"], quiet=True)
    say("-- what the page does not show: a reload where credentials are loaded, and the store while the server runs")
    sh("systemctl reload sluice; systemctl is-active sluice", shows="active")
    sh("sed -i 's/^hostname.*/hostname = \"mx.example.org\"/' " + CONFIG + "; systemctl reload sluice", status=0)
    sh("sed -i 's/^hostname/hostnme/' " + CONFIG + "; systemctl reload sluice", status=1)
    sh("journalctl -u sluice -o cat -n 20 | grep hostnme", shows="unknown field", quiet=True)
    sh("sed -i 's/^hostnme/hostname/' " + CONFIG + "; systemctl reload sluice; sluice check", shows="OK", quiet=True)
    sh("journalctl -u sluice -o cat | grep delivery", shows=['mailbox="INBOX"', 'mailbox="Junk" score='], quiet=True)
    sh("sluice store stat; sluice store ls; sluice store ls ann@example.org", shows=["a server has it open", "Junk\t1 messages"])
    sh("sluice store cat ann@example.org INBOX 1; sluice store check", shows=["It works.", "2 messages, 0 damaged"])
    sh("sluice store export --incremental /root/backup; sluice store export --incremental /root/backup", shows=["3 written", "0 written"])
    sh("ls /root/backup; sluice who '<none@x>'; sluice account list", shows=["ann@example.org", "bob@example.org"])
    page.done()
    quiet("systemctl stop sluice; rm -rf /root/backup /var/lib/private/sluice/store; systemctl start postfix dovecot")


def recipes():
    page = Page("docs/start/recipes.md")
    before = page.take("received = false")
    fresh(before)
    cf = page.take("smtpd_proxy_filter = 127.0.0.1:10025")
    main, master = cf.split("# master.cf\n")
    write(MAIN_CF, main, "a")
    write(MASTER_CF, master, "a")
    restart()
    refuses_viruses()
    behind = page.take('on_infected = "quarantine"')
    fresh(behind)
    main, master = page.take("content_filter = smtp:").split("# master.cf\n")
    write(MAIN_CF, main, "a")
    write(MASTER_CF, master, "a")
    restart()
    before = mails()
    sh(CLEAN, quiet=True)
    wait_for("clean mail", lambda: mails() == before + 1)
    sh(VIRUS, shows="250 2.0.0 Ok", quiet=True)
    wait_for("quarantined mail", lambda: "Eicar" in quiet("sluice quarantine list"))
    why = "Exim cannot be beside Postfix; crates/sluice/tests/recipes.rs runs it with the real one"
    for beginning in ('address = "0.0.0.0:25"', 'on_infected = "quarantine"'):
        write("/srv/recipe.toml", page.take(beginning))
        sh("sluice check --no-signatures /srv/recipe.toml", shows="OK", quiet=True)
    page.skip("local_interfaces = 127.0.0.1.10026", why)
    page.skip("local_interfaces = 0.0.0.0.25", why)
    page.done()


def milter():
    page = Page("docs/doors/milter.md")
    listener = page.take('protocol = "milter"')
    fresh(listener)
    write(MAIN_CF, page.take("smtpd_milters = inet:127.0.0.1:7357"), "a")
    restart()
    refuses_viruses()
    sh("journalctl -u sluice -o cat | sluice log --action reject | tail -1", shows="Eicar")
    page.skip("INPUT_MAIL_FILTER", "Sendmail cannot be beside Postfix; crates/sluice/tests/milter.rs runs it with the real one")
    socket = page.take('address = "unix:/run/sluice/milter"')
    fresh('[[listener]]\nprotocol = "milter"\n' + socket, page.take("SupplementaryGroups=postfix"))
    write(MAIN_CF, "smtpd_milters = unix:/run/sluice/milter\nmilter_default_action = tempfail\n", "a")
    say("-- Debian's smtpd is chrooted: for a socket elsewhere it must not be, says the page")
    sh(page.take("postconf -F smtp/inet/chroot=n"))
    restart()
    sh("ls -l /run/sluice/milter", shows="postfix")
    refuses_viruses()
    chrooted = page.take('address = "unix:/var/spool/postfix/sluice/milter"')
    fresh('[[listener]]\nprotocol = "milter"\n' + chrooted, page.take("ReadWritePaths=/var/spool/postfix/sluice"))
    sh(page.take("install -d"))
    write(MAIN_CF, "smtpd_milters = unix:sluice/milter\nmilter_default_action = tempfail\n", "a")
    restart()
    refuses_viruses()
    write("/srv/opensmtpd.toml", page.take('forward_proxy = "v2"'))
    sh("sluice check --no-signatures /srv/opensmtpd.toml", shows="OK", quiet=True)
    page.skip("proxy-v2", "OpenSMTPD cannot be beside Postfix")
    page.done()


def clamd():
    page = Page("docs/doors/clamd.md")
    fresh(page.take("[clamd]"))
    restart(postfix=False)
    write("/srv/socket.conf", "LocalSocket /run/sluice/clamd.sock\n")
    write("/srv/tcp.conf", "TCPSocket 3310\nTCPAddr 127.0.0.1\n")
    sh("clamdscan -c /srv/tcp.conf --version; clamdscan -c /srv/tcp.conf --ping 1", shows="ClamAV 1.4.6 (Sluice")
    sh("clamdscan -c /srv/tcp.conf --stream /srv/files", status=1, shows="eicar.com: Eicar-Test-Signature FOUND", quiet=True)
    sh("clamdscan -c /srv/tcp.conf /srv/files", status=1, shows="eicar.com: Eicar-Test-Signature FOUND", quiet=True)
    sh("clamdscan -c /srv/tcp.conf --multiscan /srv/files", status=1, shows="eicar.com: Eicar-Test-Signature FOUND", quiet=True)
    say("-- by another user, over the UNIX socket")
    sh("runuser -u me -- clamdscan -c /srv/socket.conf --fdpass /srv/files", status=None, quiet=True)
    text = open(CONFIG).read()
    fresh(text.replace("[clamd]\n", '[clamd]\nsocket_mode = "666"\n'))
    restart(postfix=False)
    sh("runuser -u me -- clamdscan -c /srv/socket.conf --fdpass /srv/files", status=1, shows="eicar.com: Eicar-Test-Signature FOUND", quiet=True)
    sh("clamdscan -c /srv/socket.conf --reload", status=0)
    page.done()


def tls_imap_pop3():
    page = Page("docs/operate/tls.md")
    for name in ("mx.example.org", "mail.example.net"):
        folder = "/etc/letsencrypt/live/mx.example.org" if name.startswith("mx") else "/etc/sluice"
        chain, key = ("fullchain.pem", "privkey.pem") if name.startswith("mx") else (name + ".crt", name + ".key")
        quiet(f"mkdir -p {folder}; openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN={name} "
              f"-addext subjectAltName=DNS:{name} -out {folder}/{chain} -keyout {folder}/{key}")
    quiet("chmod 700 /etc/letsencrypt/live /etc/letsencrypt; chmod 600 /etc/letsencrypt/live/*/*; chmod 644 /etc/sluice/*.key")
    certificates = page.take("[tls]\nminimum")
    credentials = page.take("LoadCredential=fullchain.pem")
    imap, pop3 = Page("docs/doors/imap.md"), Page("docs/doors/pop3.md")
    fresh(certificates + "\n" + imap.take('protocol = "imap"') + "\n" + pop3.take('protocol = "pop3"'), credentials)
    say("-- check runs as root, but the credentials are there for the service alone")
    sh("systemctl daemon-reload; systemctl restart sluice")
    sh("systemctl status sluice | grep Status", shows="2 addresses")
    sh("openssl s_client -connect 192.0.2.1:143 -starttls imap -servername mx.example.org </dev/null 2>&1 | grep subject", shows="CN = mx.example.org")
    sh("openssl s_client -connect 192.0.2.1:110 -starttls pop3 -servername mail.example.net </dev/null 2>&1 | grep subject", shows="CN = mail.example.net")
    quiet("rm -rf /home/me/Maildir/new/*; runuser -u me -- mkdir -p /home/me/Maildir/new /home/me/Maildir/cur /home/me/Maildir/tmp")
    mail = "From: a@b.test\nSubject: x\nMIME-Version: 1.0\nContent-Type: application/octet-stream; name=a.com\n\n" + EICAR + "\n"
    with open("/home/me/Maildir/new/1.a", "w") as file:
        file.write(mail)
    with open("/home/me/Maildir/new/2.a", "w") as file:
        file.write("From: a@b.test\nSubject: clean\n\nHello\n")
    quiet("chown -R me: /home/me/Maildir")
    sh("curl -sk --ssl-reqd -u me:secret 'imap://192.0.2.1/INBOX;MAILINDEX=2'", shows="Hello")
    output = sh("curl -sk --ssl-reqd -u me:secret 'imap://192.0.2.1/INBOX;MAILINDEX=1' | tr '\\0' '0'", shows="Subject: x")
    if "EICAR" in output:
        fail("a virus has come through by IMAP")
    sh("curl -sk --ssl-reqd -u me:secret 'pop3://192.0.2.1/2'", shows="Hello")
    output = sh("curl -sk --ssl-reqd -u me:secret 'pop3://192.0.2.1/1' | tr '\\0' '0'", shows="Dangerous content was removed")
    if "EICAR" in output:
        fail("a virus has come through by POP3")
    imap.done()
    pop3.done()
    acme = page.take("accept_terms = true")
    write("/srv/acme.toml", acme + '\n[[listener]]\nprotocol = "smtp"\naddress = "127.0.0.1:10025"\nforward = "discard:"\ntls = "offer"\n')
    sh("sluice check --no-signatures /srv/acme.toml", shows=["none yet", "OK"], quiet=True)
    page.skip("proxy_pass", "a line for nginx; crates/sluice/tests/acme.rs has an authority and its challenges")
    page.done()


def quarantine():
    page = Page("docs/operate/quarantine.md")
    page.skip("nothing ────────► held", "a picture")
    train = page.take("[quarantine.train]")
    fresh(page.take('on_infected = "quarantine"').replace("[::]:25", "127.0.0.1:10025") + train)
    say("-- rspamc is not here: a program of that name reads the message and counts it")
    write("/usr/bin/rspamc", "#!/bin/sh\nexec wc -c >>/tmp/learnt\n")
    quiet("chmod 755 /usr/bin/rspamc; sluice quarantine delete --older 0s")
    write(MASTER_CF, "127.0.0.1:10026 inet n - n - - smtpd -o mynetworks=127.0.0.0/8\n", "a")
    restart()
    sh("swaks --server 127.0.0.1:10025 --from info@partner.example --to me@example.test --attach-body @/srv/invoice.txt", quiet=True)
    kept = wait_for("message in the quarantine", lambda: re.search(r"^(\w+) .*partner", quiet("sluice quarantine list"), re.M))
    commands = page.take("train ham --from partner.example")
    sh(commands.replace("1m7zxf56a0001", kept.group(1) if kept else "none"))
    sh("sluice quarantine list --json", shows='"trained"')
    for command in ("list --older 7d", "list --found Eicar --newer 1d", "list --state held --from '<>'"):
        sh("sluice quarantine " + command, status=None)
    if kept:
        sh(f"sluice quarantine show {kept.group(1)} | head -4; sluice quarantine show --raw {kept.group(1)} | wc -c")
    sh("sluice quarantine show nosuch", status=2)
    page.done()


CLAMD_CONF = """LocalSocket /var/run/clamav/clamd.ctl
FixStaleSocket true
LocalSocketGroup clamav
LocalSocketMode 666
User clamav
ScanMail true
ScanArchive true
ArchiveBlockEncrypted false
MaxDirectoryRecursion 15
FollowDirectorySymlinks false
FollowFileSymlinks false
ReadTimeout 180
MaxThreads 12
MaxConnectionQueueLength 15
LogSyslog false
LogRotate true
LogFacility LOG_LOCAL6
SelfCheck 3600
Foreground false
Debug false
DatabaseDirectory /var/lib/clamav
DetectPUA false
ScanPE true
MaxScanTime 120000
MaxScanSize 100M
MaxFileSize 25M
StreamMaxLength 25M
AlgorithmicDetection true
LogFile /var/log/clamav/clamav.log
LogTime true
"""


def migration():
    page = Page("docs/start/migration.md")
    say("-- clamd is not installed; its file is the one that Debian's package writes, shortened")
    quiet("mkdir -p /etc/clamav; getent group clamav || groupadd clamav; systemctl stop sluice")
    write("/etc/clamav/clamd.conf", CLAMD_CONF)
    page.skip("systemctl disable --now clamav-daemon", "the drop-in below does the same under the unit")
    fresh(open("/etc/sluice.before/sluice.toml").read(), page.take("RuntimeDirectory=clamav"))
    sh("systemctl daemon-reload; systemctl restart sluice; journalctl -u sluice -o cat -n 40 | grep unsupported", shows="unsupported option ignored")
    sh("runuser -u me -- clamdscan --fdpass /srv/files", status=1, shows="eicar.com: Eicar-Test-Signature FOUND", quiet=True)
    sh("clamdscan /srv/files", status=1, shows="eicar.com: Eicar-Test-Signature FOUND", quiet=True)
    page.skip('paths = ["/var/lib/clamav"]', "in force since getting-started")
    fresh(page.take("virus_scanned = true\n"), "[Service]\nSupplementaryGroups=postfix\n")
    sh("systemctl daemon-reload; systemctl restart sluice; ls -l /run/sluice/milter")
    fresh(page.take('address = "127.0.0.1:10024"'))
    write(MAIN_CF, "smtpd_proxy_filter = 127.0.0.1:10024\n", "a")
    write(MASTER_CF, "127.0.0.1:10025 inet n - n - - smtpd -o smtpd_proxy_filter= -o mynetworks=127.0.0.0/8"
          " -o smtpd_authorized_xforward_hosts=127.0.0.0/8\n", "a")
    restart()
    before = mails()
    sh(CLEAN, quiet=True)
    wait_for("clean mail", lambda: mails() == before + 1)
    sh("grep -rh X-Virus-Scanned /home/me/Maildir/new", shows="Sluice at mx.example.org")
    sh(CLEAN + " --attach-name a.exe --attach @/srv/files/ok.txt", shows="250 2.", quiet=True)
    wait_for("banned mail in the quarantine", lambda: "Policy.Forbidden.banned" in quiet("sluice quarantine list"))
    fresh(page.take('name = "bad-filename"'))
    write(MAIN_CF, "smtpd_milters = inet:127.0.0.1:7357\n", "a")
    restart()
    sh(CLEAN + " --attach-name a.js --attach @/srv/files/ok.txt", quiet=True)
    wait_for("mail with an overwritten part", lambda: "X-Sluice-Status" in quiet("cat /home/me/Maildir/new/*"))
    page.skip("smtpd_milters = inet:127.0.0.1:7357, inet:127.0.0.1:11332", "there is no Rspamd here")
    fresh(page.take('address = "127.0.0.1:11333"'))
    restart(postfix=False)
    sh("curl -s --data-binary @/srv/invoice.txt http://127.0.0.1:11333/checkv2", shows="action", quiet=True)
    school(page.take('config = "/etc/e2guardian"'))
    sh("cd /srv; " + page.take("sluice migrate postfix"), quiet=True)
    page.done()


def school(text):
    """Browsers whose lists are those of E2Guardian's package, and a site that the school has added."""
    quiet("systemctl disable --now e2guardian; mkdir -p /etc/squid; echo blocked.example >>/etc/e2guardian/lists/bannedsitelist")
    sh("echo child:$(openssl passwd -apr1 secret) >/etc/squid/passwd; sluice web lint /etc/e2guardian", status=None, quiet=True)
    fresh(text.replace("192.0.2.1:8080", "127.0.0.1:8080").replace("192.0.2.0/24", "127.0.0.0/8"))
    restart(postfix=False)
    curl = "curl -s -o /dev/null -w '%{http_code}\\n' -x http://127.0.0.1:8080 "
    sh(curl + "http://blocked.example/", shows="407")
    sh(curl + "-U child:secret http://blocked.example/", shows="403")
    sh("curl -s http://127.0.0.1:8080/proxy.pac", shows="proxy.example:8080")


def reload_and_restart():
    say("\n" + "=" * 100 + "\nreload, restart and upgrade of the service\n" + "=" * 100)
    good = '[metrics]\naddress = "127.0.0.1:9425"\n[[listener]]\nprotocol = "smtp"\naddress = "127.0.0.1:10025"\nforward = "discard:"\n'
    fresh(good)
    restart(postfix=False)
    with open(CONFIG, "a") as file:
        file.write('on_infcted = "pass"\n')
    sh("systemctl reload sluice", status=1)
    sh("journalctl -u sluice -o cat -n 20 | grep -A2 infcted", shows="unknown field")
    sh("kill -HUP $(systemctl show -p MainPID --value sluice); sleep 1; curl -s http://127.0.0.1:9425/metrics | grep ^sluice_reload_failures", shows="sluice_reload_failures_total 2")
    write(CONFIG, good)
    sh("systemctl reload sluice")
    package = glob.glob("/day/*.deb")[0]
    upgrade = f"apt-get install --reinstall -y {package}"
    cases = [(None, "systemctl restart sluice"), (None, upgrade), (None, "systemctl kill --kill-whom=main -s USR2 sluice; sleep 2")]
    for earlier in glob.glob("/day/earlier/*.deb"):
        say(f"-- {os.path.basename(earlier)} is an earlier version, which is upgraded in the last case")
        cases.append((f"apt-get install --reinstall --allow-downgrades -y {earlier}; sha256sum /usr/bin/sluice", upgrade + "; sha256sum /usr/bin/sluice"))
    for before, what in cases:
        if before:
            sh(before, quiet=True)
            sh("systemctl restart sluice; systemctl is-active sluice", shows="active")
        quiet("rm -f /tmp/under-way.*")
        sender = subprocess.Popen([sys.executable, "/day/sender.py", "127.0.0.1", "10025"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        time.sleep(1)
        sh(what, quiet=True)
        time.sleep(1)
        out = sender.communicate(b"end\n", timeout=120)[0].decode().strip()
        say(f"    while mail was under way: {out}")
        if "refused 0" not in out or "lost 0" not in out:
            fail(f"not everybody was served during: {what}")
    sh("systemctl is-active sluice", shows="active")
    page_free = quiet("systemctl --failed --no-legend")
    if "sluice" in page_free:
        fail(page_free)


def update():
    say("\n" + "=" * 100 + "\nupdate by timer\n" + "=" * 100)
    quiet("mkdir -p /srv/mirror; cp /var/lib/clamav/day.ndb /srv/mirror/local.ndb; "
          "systemd-run --unit=mirror --working-directory=/srv/mirror python3 -m http.server 8402 --bind 127.0.0.1")
    wait_for("mirror", lambda: ":8402" in quiet("ss -ltn"))
    fresh('[database]\npaths = ["/var/lib/sluice/signatures"]\n[update]\nfolder = "/var/lib/sluice/signatures"\n'
          'urls = ["http://127.0.0.1:8402/local.ndb"]\n[[listener]]\nprotocol = "smtp"\naddress = "127.0.0.1:10025"\nforward = "discard:"\n')
    sh("systemctl daemon-reload; systemctl enable --now sluice-update.timer; systemctl list-timers --no-pager | grep sluice", shows="sluice-update")
    sh("systemctl start sluice-update; systemctl show -p Result sluice-update; journalctl -u sluice-update -o cat | tail -3", shows=["Result=success", "local.ndb: new"])
    sh("systemctl restart sluice; systemctl status sluice | grep Status", shows="8 signatures")
    sh("echo 'Day.Second:0:*:7365636f6e64206461792073616d706c65' >>/srv/mirror/local.ndb; sleep 1; systemctl start sluice-update; sleep 2; journalctl -u sluice-update -u sluice -o cat -n 12")
    wait_for("new signatures in the running service", lambda: "generation 2" in quiet("systemctl status sluice"))


def folders():
    """The units of the pages about the file system and about watching."""
    say("\n" + "=" * 100 + "\nfolders\n" + "=" * 100)
    if not os.path.exists("/dev/fuse"):
        return say("skipped: no /dev/fuse here")
    page = Page("docs/operate/file-system.md")
    sh("mkdir -p /srv/files")
    sh(page.take("systemctl enable --now sluice-mount@"))
    sh("findmnt -no FSTYPE /srv/files", shows="fuse")
    sh("echo text >/srv/files/text; cat /srv/files/text", shows="text")
    sh("cp /srv/invoice.com /srv/files/new.com", status=1)
    sh("test ! -s /srv/files/new.com; journalctl -u 'sluice-mount@*' -o cat | grep infected", shows="new.com")
    # Killed, it is there again, and as strict.
    sh("systemctl kill -s KILL 'sluice-mount@*'")
    wait_for("the mount after a crash", lambda: quiet("cat /srv/files/text").strip() == "text")
    sh("cp /srv/invoice.com /srv/files/new.com", status=1)
    sh("systemctl stop 'sluice-mount@*'; findmnt /srv/files || echo gone", shows="gone")


def removal():
    say("\n" + "=" * 100 + "\nremoval\n" + "=" * 100)
    sh("apt-get purge -y sluice", quiet=True)
    say("-- of /etc/sluice stays what the site has put there: keys, if the pages of TLS and of the mail server were gone through")
    sh("find /etc/sluice; true")
    if quiet("(find /etc/sluice -mindepth 1 ! -name 'mail.example.net.*' ! -name '*.pem'; find /etc/sluice -empty) 2>/dev/null"):
        fail("purge leaves something of the package in /etc/sluice")
    sh("ls -d /var/lib/sluice /var/lib/private/sluice /var/cache/private/sluice /run/sluice 2>&1 | grep -v 'No such'; true")


os.chdir("/day")
os.environ["DEBIAN_FRONTEND"] = "noninteractive"
os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
started = time.monotonic()
steps = [prepare, getting_started, readme, mail_server, recipes, milter, clamd, tls_imap_pop3, quarantine, migration, reload_and_restart, update, folders, removal]
wanted = sys.argv[1:]
for step in [step for step in steps if not wanted or step.__name__ in wanted or step in (prepare, getting_started)]:
    began = time.monotonic()
    try:
        step()
    except Exception as error:  # the next page does not depend on this one
        fail(f"{step.__name__}: {type(error).__name__}: {error}")
    say(f"-- {step.__name__}: {time.monotonic() - began:.0f} s")
say(f"-- in all {time.monotonic() - started:.0f} s")
finish()
