//! IMAP through the gateway between real clients and Dovecot.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::dovecot::Dovecot;
use crate::harness::imap::{Answer, ask};
use crate::harness::{Gateway, Wire, base64, eicar, mail_with};

const CLEAN: &[u8] = b"From: a\r\nTo: b\r\nSubject: clean\r\nMessage-ID: <clean@a>\r\n\r\n.\r\nHello )\r\n..\r\n";

fn infected() -> Vec<u8> {
    mail_with("base64", "eicar.com", &base64(&eicar()))
}

/// The virus in a zip archive, stored.
fn zipped() -> Vec<u8> {
    let virus = eicar();
    let sum = !virus.iter().fold(!0u32, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 })
    });
    let len = virus.len() as u32;
    let facts = [&[20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0][..], &sum.to_le_bytes(), &len.to_le_bytes(), &len.to_le_bytes()];
    let facts = [facts.concat(), vec![9, 0, 0, 0]].concat();
    let local = [b"PK\x03\x04".as_slice(), &facts, b"eicar.com", &virus].concat();
    let central = [b"PK\x01\x02\x14\0".as_slice(), &facts, &[0; 14], b"eicar.com"].concat();
    let sizes = [(central.len() as u32).to_le_bytes(), (local.len() as u32).to_le_bytes()].concat();
    let end = [b"PK\x05\x06\0\0\0\0\x01\0\x01\0".as_slice(), &sizes, &[0, 0]].concat();
    mail_with("base64", "eicar.zip", &base64(&[local, central, end].concat()))
}

/// An infected mail within a mail, beside texts and a multipart.
fn nested() -> Vec<u8> {
    let inner = String::from_utf8(infected()).unwrap();
    format!(
        "From: a\r\nSubject: nested\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"outer\"\r\n\r\n\
         A preamble\r\n--outer\r\nContent-Type: multipart/alternative; boundary=\"inner\"\r\n\r\n\
         --inner\r\nContent-Type: text/plain\r\n\r\nplain\r\n--inner\r\nContent-Type: text/html\r\n\r\n<b>html</b>\r\n\
         --inner--\r\n\r\n--outer\r\n\r\nno header\r\n--outer\r\nContent-Type: message/rfc822\r\n\r\n{inner}\r\n\
         --outer\r\nContent-Type: message/rfc822\r\n\r\nSubject: bare\r\n\r\nbare body\r\n\r\n--outer--\r\nAn epilogue\r\n"
    )
    .into_bytes()
}

/// An infected mail with this content in Base64, after overwriting.
fn blanked(mail: &[u8], content: &[u8]) -> Vec<u8> {
    let body = base64(content);
    let filler: String =
        body.chars().map(|c| if c.is_ascii_alphanumeric() || "+/".contains(c) { 'A' } else { c }).collect();
    String::from_utf8(mail.to_vec()).unwrap().replacen(&body, &filler, 1).into_bytes()
}

fn gateway(dovecot: &Dovecot) -> Gateway {
    // STARTTLS with Dovecot, which offers it.
    Gateway::start_with("", "imap", &format!("imap://localhost:{}", dovecot.imap.port()), "")
}

fn select(address: std::net::SocketAddr) -> Wire {
    let mut wire = Wire::connect(address);
    assert!(wire.line().starts_with("* OK"));
    assert!(ask(&mut wire, "LOGIN tim secret").status.starts_with("OK"));
    assert!(ask(&mut wire, "SELECT INBOX").status.starts_with("OK"));
    wire
}

/// Runs a program; none if it is not there.
fn run(program: &str, arguments: &[&str], input: &str) -> Option<String> {
    let child = Command::new("timeout")
        .args(["30", program])
        .args(arguments)
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    if output.status.code() == Some(127) {
        eprintln!("skipped: {program} is not installed");
        return None;
    }
    Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

fn private(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn parts_are_those_of_the_server_and_dangerous_ones_are_overwritten() {
    let Some(dovecot) = Dovecot::start() else { return };
    for (name, mail) in [("1", CLEAN.to_vec()), ("2", infected()), ("3", zipped()), ("4", nested())] {
        dovecot.deliver("tim", name, &mail);
    }
    let gateway = gateway(&dovecot);
    let (mut wire, mut direct) = (select(gateway.address), select(dovecot.imap));
    let paths = [
        "", "1", "2", "1.1", "1.2", "2.1", "3", "3.1", "3.2", "4", "4.1", "TEXT", "1.MIME", "2.MIME", "3.MIME",
        "3.HEADER", "3.TEXT", "3.1.MIME", "3.2.MIME", "4.HEADER", "4.TEXT", "1.1.MIME", "1.2.MIME",
    ];
    let mut dangerous = 0;
    for message in 1..=4 {
        for path in paths {
            for by in ["", "UID "] {
                let command = format!("{by}FETCH {message} (BODY.PEEK[{path}])");
                let (seen, sent) = (ask(&mut wire, &command), ask(&mut direct, &command));
                let (Some(mut wanted), known) = (sent.literals.first().cloned(), seen.literals.first()) else {
                    continue;
                };
                if wanted.is_empty() {
                    continue;
                }
                for virus in [eicar(), zip_content()] {
                    let (body, name) = (base64(&virus), String::from_utf8_lossy(&wanted).into_owned());
                    if name.contains(&body) {
                        let filler: String = body
                            .chars()
                            .map(|c| if c.is_ascii_alphanumeric() || "+/".contains(c) { 'A' } else { c })
                            .collect();
                        wanted = name.replace(&body, &filler).into_bytes();
                        dangerous += 1;
                    }
                }
                let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                assert_eq!(known.map(|known| shown(known)), Some(shown(&wanted)), "{command} {seen:?}");
            }
        }
    }
    assert!(dangerous >= 10, "{dangerous}");
    // Ranges of parts, of several messages at a time.
    let ranges = ask(&mut wire, "FETCH 1:4 (FLAGS BODY.PEEK[1]<0.4> RFC822.SIZE BODY.PEEK[2]<2.6>)");
    assert!(ranges.status.starts_with("OK"), "{ranges:?}");
    let texts: Vec<_> = ranges.literals.iter().map(|literal| String::from_utf8_lossy(literal).into_owned()).collect();
    for wanted in [".\r\nH", "Hell", "AAAAAA", " heade"] {
        assert!(texts.iter().any(|text| text == wanted), "{wanted} {ranges:?}");
    }
    assert!(!texts.iter().any(|text| base64(&eicar()).contains(text) && text.len() > 4), "{texts:?}");
}

fn zip_content() -> Vec<u8> {
    let mail = String::from_utf8(zipped()).unwrap();
    let body = mail.split("eicar.zip\"\r\n\r\n").nth(1).unwrap().split("\r\n--frontier--").next().unwrap();
    decode(body)
}

fn decode(text: &str) -> Vec<u8> {
    let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let values: Vec<u32> = text.chars().filter_map(|c| digits.find(c)).map(|at| at as u32).collect();
    let mut out = Vec::new();
    for group in values.chunks(4) {
        let word = group.iter().fold(0, |word, value| word << 6 | value) << (6 * (4 - group.len()));
        out.extend_from_slice(&word.to_be_bytes()[1..group.len()]);
    }
    out
}

#[test]
fn curl_and_imaplib_get_their_mail() {
    let Some(dovecot) = Dovecot::start() else { return };
    let filler = "Nothing to see here, and much of it.\r\n".repeat(50_000);
    let large = String::from_utf8(infected()).unwrap().replacen("Hello.\r\n", &filler, 1).into_bytes();
    for (name, mail) in [("1", CLEAN), ("2", &infected()), ("3", &zipped()), ("4", &large)] {
        dovecot.deliver("tim", name, mail);
    }
    let gateway = gateway(&dovecot);
    let port = gateway.address.port();
    for options in [&["--sasl-ir"][..], &["--login-options", "AUTH=CRAM-MD5"], &["--login-options", "AUTH=LOGIN"]] {
        for (what, wanted) in [
            ("UID=1", CLEAN.to_vec()),
            ("UID=2", blanked(&infected(), &eicar())),
            ("UID=3", blanked(&zipped(), &zip_content())),
            ("UID=2;SECTION=1", b"Hello.".to_vec()),
        ] {
            let url = format!("imap://127.0.0.1:{port}/INBOX;{what}");
            let Some(text) = run("curl", &[&["-sS", "-u", "tim:secret", &url], options].concat(), "") else { break };
            assert_eq!(text, String::from_utf8(wanted).unwrap(), "{options:?} {what}");
        }
    }
    let script = format!(
        "import imaplib\n\
         box = imaplib.IMAP4('127.0.0.1', {port})\n\
         print(box.capabilities)\n\
         box.login('tim', 'secret'); box.enable('UTF8=ACCEPT') if 'UTF8=ACCEPT' in box.capabilities else None\n\
         box.select('INBOX')\n\
         ids = box.search(None, 'ALL')[1][0].split()\n\
         sizes = [int(box.fetch(i, '(RFC822.SIZE)')[1][0].split()[-1].rstrip(b')')) for i in ids]\n\
         for i, size in zip(ids, sizes):\n\
         \x20   for item in ('RFC822', 'BODY.PEEK[]', 'BODY[]'):\n\
         \x20       mail = box.fetch(i, item)[1][0][1]\n\
         \x20       assert len(mail) == size, (len(mail), size)\n\
         \x20   pieces, at = [], 0\n\
         \x20   while at < size:\n\
         \x20       pieces.append(box.uid('FETCH', i, '(BODY.PEEK[]<%d.50000>)' % at)[1][0][1]); at += 50000\n\
         \x20   assert b''.join(pieces) == mail, i\n\
         \x20   text = box.fetch(i, '(RFC822.HEADER BODY.PEEK[TEXT])')[1]\n\
         \x20   assert text[0][1] + text[1][1] == mail, i\n\
         clean, virus = {CLEAN:?}, {:?}\n\
         print(box.append('INBOX', None, None, bytes(clean)))\n\
         print(box.append('INBOX', None, None, bytes(virus)))\n\
         print(box.select('INBOX'), len(ids)); box.logout()\n",
        infected()
    );
    if let Some(text) = run("python3", &["-"], &script) {
        assert!(text.contains("('OK', [b'5']) 4") && text.contains("('NO', [b'Message refused: Eicar"), "{text}");
        assert!(!text.contains("COMPRESS") && !text.contains("STARTTLS"), "{text}");
    }
    assert!(!dovecot.log().contains("rror"), "{}", dovecot.log());
}

#[test]
fn mbsync_fetchmail_mutt_and_offlineimap_get_their_mail() {
    let Some(dovecot) = Dovecot::start() else { return };
    for (name, mail) in [("1", CLEAN), ("2", &infected()), ("3", &zipped()), ("4", &nested())] {
        dovecot.deliver("tim", name, mail);
    }
    let gateway = gateway(&dovecot);
    let port = gateway.address.port();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display().to_string();
    let clean = || {
        let all: Vec<Vec<u8>> = crate::harness::files(folder.path())
            .iter()
            .filter(|path| !path.ends_with("rc"))
            .map(|path| std::fs::read(path).unwrap())
            .collect();
        let text = String::from_utf8_lossy(&all.concat()).into_owned();
        let virus = base64(&eicar());
        !text.contains(virus.lines().next().unwrap()) && text.contains("Subject: clean")
    };
    std::fs::create_dir(folder.path().join("mbsync-more")).unwrap();
    private(
        &folder.path().join("rc"),
        &format!(
            "IMAPAccount a\nHost 127.0.0.1\nPort {port}\nUser tim\nPass secret\nSSLType None\nAuthMechs LOGIN\n\n\
             IMAPStore far\nAccount a\n\nMaildirStore near\nInbox {at}/mbsync\nPath {at}/mbsync-more/\n\n\
             Channel c\nFar :far:\nNear :near:\nPatterns INBOX\nCreate Near\nSync All\nSyncState {at}/state-\n"
        ),
    );
    if let Some(text) = run("mbsync", &["-c", &format!("{at}/rc"), "-a"], "") {
        assert_eq!(crate::harness::files(&folder.path().join("mbsync")).len(), 4 + 1, "{text} {}", gateway.log());
        assert!(clean(), "mbsync {text}");
        // What it puts into the mailbox is inspected too.
        std::fs::write(folder.path().join("mbsync/cur/1700000009.9.x:2,"), infected()).unwrap();
        run("mbsync", &["-c", &format!("{at}/rc"), "-a"], "");
        assert!(gateway.wait_for_log("message appended").contains("action=\"reject\""));
        std::fs::remove_dir_all(folder.path().join("mbsync")).unwrap();
    }
    private(
        &folder.path().join("rc"),
        &format!(
            "poll 127.0.0.1 port {port} protocol imap user tim password secret keep fetchall sslproto '' \
             mda \"cat >> {at}/fetchmail\"\n"
        ),
    );
    if let Some(text) =
        run("fetchmail", &["-f", &format!("{at}/rc"), "--nosyslog", "--pidfile", &format!("{at}/pid")], "")
    {
        let mails = std::fs::read_to_string(folder.path().join("fetchmail")).unwrap_or_default();
        assert!(mails.matches("frontier").count() > 6 && clean(), "fetchmail {text} {}", dovecot.log());
    }
    private(
        &folder.path().join("rc"),
        &format!(
            "set imap_user=tim imap_pass=secret ssl_starttls=no ssl_force_tls=no copy=no confirmappend=no confirmcreate=no\n\
             set folder={at} header_cache=\"\" mbox_type=mbox\n\
             push \"<tag-pattern>~A<enter><tag-prefix><copy-message><kill-line>{at}/mutt<enter><exit><exit>\"\n"
        ),
    );
    let mutt = format!("mutt -n -F {at}/rc -f imap://127.0.0.1:{port}/INBOX");
    if run("mutt", &["-v"], "").is_some() && run("script", &["-qec", &mutt, "/dev/null"], "").is_some() {
        let mails = std::fs::read_to_string(folder.path().join("mutt")).unwrap_or_default();
        assert!(mails.matches("frontier").count() > 6 && clean(), "mutt: {} bytes", mails.len());
    }
    private(
        &folder.path().join("rc"),
        &format!(
            "[general]\naccounts = a\nmetadata = {at}/offlineimap-state\nui = quiet\n[Account a]\nlocalrepository = l\n\
             remoterepository = r\n[Repository l]\ntype = Maildir\nlocalfolders = {at}/offlineimap\n[Repository r]\n\
             type = IMAP\nremotehost = 127.0.0.1\nremoteport = {port}\nremoteuser = tim\nremotepass = secret\nssl = no\n\
             starttls = no\n"
        ),
    );
    if let Some(text) = run("offlineimap", &["-c", &format!("{at}/rc"), "-o"], "") {
        assert!(crate::harness::files(&folder.path().join("offlineimap")).len() >= 4 && clean(), "offlineimap {text}");
    }
}

/// An answer without what differs from one mailbox and one moment to the next.
fn comparable(answer: &Answer) -> Vec<String> {
    let lines = answer.lines.iter().chain([&answer.status]);
    let known = |line: &String| {
        let line = line.split(" (0.").next().unwrap();
        let mut masked = String::new();
        for word in line.split_inclusive(|c: char| !c.is_ascii_digit()) {
            let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
            masked += if digits.len() > 6 { "#" } else { digits };
            masked += &word[digits.len()..];
        }
        masked
    };
    lines.map(known).chain(answer.literals.iter().map(|text| String::from_utf8_lossy(text).into_owned())).collect()
}

fn number_after(answer: &Answer, word: &str) -> String {
    let line = answer.lines.iter().find_map(|line| line.split_once(word)).unwrap().1;
    line.chars().take_while(char::is_ascii_digit).collect()
}

#[test]
fn extensions_are_answered_as_dovecot_answers_them() {
    let Some(dovecot) = Dovecot::start() else { return };
    for user in ["tim", "ann"] {
        for name in ["1", "2", "3", "4"] {
            dovecot.deliver(user, name, &[b"Subject: number ", name.as_bytes(), b"\r\n\r\nHello\r\n"].concat());
        }
    }
    let gateway = gateway(&dovecot);
    let mut wires = [Wire::connect(gateway.address), Wire::connect(dovecot.imap)];
    for (wire, user) in wires.iter_mut().zip(["tim", "ann"]) {
        assert!(wire.line().starts_with("* OK"));
        assert!(ask(wire, &format!("LOGIN {user} secret")).status.starts_with("OK"));
        // The whole messages: what is known to be clean may be had in parts.
        assert!(ask(wire, "SELECT INBOX").status.starts_with("OK"));
        assert_eq!(ask(wire, "FETCH 1:4 BODY.PEEK[]").literals.len(), 4);
        assert!(ask(wire, "UNSELECT").status.starts_with("OK"));
    }
    let mut same = |command: &str, shows: &str| {
        let [seen, sent] = wires.each_mut().map(|wire| ask(wire, command));
        let text = comparable(&seen).join("\n");
        assert_eq!(text, comparable(&sent).join("\n"), "{command}");
        assert!(text.contains(shows), "{command}: {text}");
        [seen, sent]
    };
    same("ID NIL", "* ID (");
    same("NAMESPACE", "* NAMESPACE (");
    same("ENABLE CONDSTORE QRESYNC", "* ENABLED CONDSTORE QRESYNC");
    let selected = same("SELECT INBOX (CONDSTORE)", "HIGHESTMODSEQ");
    same("FETCH 1:* (UID FLAGS MODSEQ)", "MODSEQ (");
    same("STORE 1 +FLAGS (\\Flagged)", "MODSEQ (");
    same("STORE 1 (UNCHANGEDSINCE 1) +FLAGS (\\Seen)", "[MODIFIED 1]");
    same("STORE 2 +FLAGS.SILENT (\\Deleted)", "OK");
    same("EXPUNGE", "* VANISHED 2");
    same("UID FETCH 1:* (FLAGS) (CHANGEDSINCE 1 VANISHED)", "* VANISHED (EARLIER) 2");
    same("UID SEARCH RETURN (MIN MAX COUNT) ALL", "MIN 1 MAX 4 COUNT 3");
    same("SEARCH MODSEQ 1 ALL", "(MODSEQ ");
    same("SEARCH HEADER SUBJECT {6+}\r\nnumber", "* SEARCH 1 2 3");
    same("SORT (REVERSE SUBJECT) UTF-8 ALL", "* SORT 3 2 1");
    same("THREAD REFERENCES UTF-8 ALL", "* THREAD (");
    same("FETCH 1 (UID PREVIEW BINARY.SIZE[1] BINARY.PEEK[1])", "Hello");
    same("UID FETCH 1 (BODY.PEEK[TEXT]<0.3>)", "Hel");
    same("CREATE \"Entw&APw-rfe\"", "OK");
    same("COPY 1 \"Entw&APw-rfe\"", "[COPYUID # 1 1]");
    same("MOVE 1 \"Entw&APw-rfe\"", "* VANISHED 1");
    same("STATUS \"Entw&APw-rfe\" (MESSAGES UIDNEXT HIGHESTMODSEQ)", "MESSAGES 2");
    same("LIST \"\" \"*\" RETURN (SUBSCRIBED CHILDREN STATUS (MESSAGES))", "* STATUS");
    same("UNSELECT", "OK");
    let again = wires.iter_mut().zip(&selected).map(|(wire, selected)| {
        let validity = number_after(selected, "[UIDVALIDITY ");
        comparable(&ask(wire, &format!("SELECT INBOX (QRESYNC ({validity} 1 1:4))"))).join("\n")
    });
    let again: Vec<String> = again.collect();
    assert!(again[0].contains("* VANISHED (EARLIER) 1:2") && again[0] == again[1], "{again:#?}");
}
