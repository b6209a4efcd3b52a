//! POP3 through the gateway.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::harness::dovecot::Dovecot;
use crate::harness::mailbox::Pop3;
use crate::harness::tls::Certificate;
use crate::harness::{Gateway, SinkTls, Wire, base64, eicar, found_at_its_end, mail_with};

const CLEAN: &[u8] = b"From: a\r\nSubject: clean\r\n\r\n.\r\nHello\r\n..\r\n";

fn infected() -> Vec<u8> {
    mail_with("base64", "eicar.com", &base64(&eicar()))
}

/// A mail with the virus behind `bytes` bytes of something else.
fn infected_late(bytes: usize) -> Vec<u8> {
    let filler = "Nothing to see here, and much of it.\r\n".repeat(bytes / 38);
    infected().splice_text("Hello.\r\n", &filler)
}

trait SpliceText {
    fn splice_text(self, old: &str, new: &str) -> Vec<u8>;
}

impl SpliceText for Vec<u8> {
    fn splice_text(self, old: &str, new: &str) -> Vec<u8> {
        String::from_utf8(self).unwrap().replacen(old, new, 1).into_bytes()
    }
}

/// An infected mail after overwriting: the part in Base64 decodes to a notice and NULs, and nothing else is changed.
fn blanked(mail: &[u8]) -> Vec<u8> {
    let body = base64(&eicar());
    let notice = base64(b"[Dangerous content was removed on its way to you.] ").replace("\r\n", "");
    let mut digits = notice.chars().chain(std::iter::repeat('A'));
    let mut digit = |c: char| if c.is_ascii_alphanumeric() || "+/".contains(c) { digits.next().unwrap() } else { c };
    let filler: String = body.chars().map(&mut digit).collect();
    mail.to_vec().splice_text(&body, &filler)
}

fn gateway(server: std::net::SocketAddr, settings: &str) -> Gateway {
    Gateway::start_with("", "pop3", &format!("pop3://localhost:{}", server.port()), settings)
}

/// A session that is logged in.
fn login(gateway: &Gateway) -> Wire {
    let mut wire = gateway.connect();
    wire.talk("S: +OK Ready <1896.697170952@mailbox.test>\nC: USER tim\nS: +OK\nC: PASS secret\nS: +OK");
    wire
}

fn retrieve(wire: &mut Wire, command: &str) -> Vec<u8> {
    wire.send(format!("{command}\r\n").as_bytes());
    let status = wire.line();
    assert!(status.starts_with("+OK"), "{status}");
    wire.lines_to_dot()
}

#[test]
fn a_session_passes_and_an_infected_message_is_blanked_in_place() {
    let (server, virus) = (Pop3::with(&[CLEAN, &infected()]), infected());
    let gateway = gateway(server.start(), "");
    let mut wire = login(&gateway);
    wire.talk("C: STAT\nS: +OK\nC: NOOP\nS: +OK");
    assert_eq!(retrieve(&mut wire, "LIST"), b"1 100\r\n");
    assert_eq!(retrieve(&mut wire, "RETR 1"), CLEAN);
    let received = retrieve(&mut wire, "RETR 2");
    assert_eq!(String::from_utf8_lossy(&received), String::from_utf8_lossy(&blanked(&virus)));
    assert_eq!(retrieve(&mut wire, "TOP 2 1000"), blanked(&virus));
    wire.talk("C: RETR 3\nS: -ERR no such message\nC: DELE 2\nS: +OK\nC: QUIT\nS: +OK");
    assert_eq!(wire.line(), "");
    let log = gateway.wait_for_log("uid=\"name-2\"");
    assert!(log.contains("action=\"blank\" found=\"Eicar-Test-Signature in eicar.com\""), "{log}");
    assert!(!log.contains("secret"));
}

#[test]
fn what_does_not_fit_the_protocol_never_reaches_the_server() {
    let server = Pop3::with(&[CLEAN]);
    let gateway = gateway(server.start(), "forward_tls = \"off\"");
    let mut wire = gateway.connect();
    wire.talk(
        "S: +OK *
         C: STLS
         S: -ERR Not available
         C: PASS secret
         S: -ERR USER first
         C: RETR 1
         S: -ERR Log in first
         C: USER tim
         S: +OK
         C: PASS secret
         S: +OK
         C: USER tim
         S: -ERR Logged in already
         C: XTND XLST
         S: -ERR Unknown command
         C: RETR 1 2
         S: -ERR Wrong arguments
         C: AUTH GSSAPI
         S: -ERR This mechanism cannot be used here
         C: STLS
         S: -ERR Logged in already
         C: NOOP
         S: +OK",
    );
    let long = "X".repeat(5_000);
    wire.talk(&format!("C: {long}\nS: -ERR Line too long\nC: NOOP\nS: +OK"));
    assert_eq!(server.commands(), ["CAPA", "USER tim", "PASS secret", "NOOP", "NOOP"]);
    for _ in 0..20 {
        let _ = wire.try_send(b"RUBBISH\r\n");
    }
    let rest = String::from_utf8(wire.rest()).unwrap();
    assert_eq!(rest.lines().count(), 16, "after 20 errors the session ends: {rest}");
}

#[test]
fn capabilities_are_those_that_can_pass() {
    let server = Pop3::with(&[]);
    let certificate = Certificate::of("mx.test");
    let folder = tempfile::tempdir().unwrap();
    certificate.store(folder.path(), "mx");
    let at = folder.path().display();
    let head = format!("[[tls.certificate]]\nchain = \"{at}/mx.crt\"\nkey = \"{at}/mx.key\"");
    let forward = format!("pop3://localhost:{}", server.start().port());
    let gateway = Gateway::start_with(&head, "pop3", &forward, "tls = \"require\"\nforward_tls = \"off\"");
    let mut wire = gateway.connect();
    wire.line();
    let before = String::from_utf8(retrieve(&mut wire, "CAPA")).unwrap();
    assert_eq!(before, "TOP\r\nUIDL\r\nPIPELINING\r\nSASL PLAIN\r\nSTLS\r\n");
    wire.talk("C: USER tim\nS: -ERR Say STLS first");
    // What is sent in the clear behind STLS is never obeyed.
    wire.send(b"STLS\r\nUSER evil\r\nPASS evil\r\n");
    assert_eq!(wire.line(), "+OK Begin TLS negotiation");
    let mut wire = wire.secure(certificate.client("mx.test"));
    wire.talk("C: NOOP\nS: +OK");
    let after = String::from_utf8(retrieve(&mut wire, "CAPA")).unwrap();
    assert_eq!(after, "TOP\r\nUIDL\r\nPIPELINING\r\nSASL PLAIN\r\n");
    wire.talk("C: USER tim\nS: +OK\nC: PASS secret\nS: +OK");
    assert!(!server.commands().iter().any(|command| command.contains("evil")), "{:?}", server.commands());
}

#[test]
fn pipelined_commands_are_answered_in_their_order() {
    for capabilities in [&["UIDL", "PIPELINING"][..], &["UIDL"]] {
        let virus = infected();
        let server = Pop3 { capabilities, ..Pop3::with(&[CLEAN, &virus]) };
        let gateway = gateway(server.start(), "");
        let mut wire = gateway.connect();
        wire.send(b"USER tim\r\nPASS secret\r\nRUBBISH\r\nRETR 2\r\nRETR 1\r\nNOOP\r\nRETR 9\r\nQUIT\r\n");
        wire.talk("S: +OK *\nS: +OK\nS: +OK\nS: -ERR Unknown command\nS: +OK *");
        assert_eq!(wire.lines_to_dot(), blanked(&virus));
        wire.talk("S: +OK *");
        assert_eq!(wire.lines_to_dot(), CLEAN);
        wire.talk("S: +OK\nS: -ERR no such message\nS: +OK");
    }
}

#[test]
fn a_large_message_streams_and_what_is_found_in_time_is_blanked() {
    let large = infected_late(3_000_000);
    let server = Pop3::with(&[&large]);
    let gateway = gateway(server.start(), "");
    let mut wire = login(&gateway);
    assert!(retrieve(&mut wire, "RETR 1") == blanked(&large));
    assert!(gateway.wait_for_log("streamed=true").contains("cut=false"));
}

#[test]
fn what_is_found_too_late_is_cut_off_and_blanked_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let (mail, head) = found_at_its_end(folder.path());
    let server = Pop3::with(&[&mail]).start();
    let door = |settings: &str| {
        let forward = format!("pop3://localhost:{}", server.port());
        format!("[[listener]]\nprotocol = \"pop3\"\naddress = \"127.0.0.1:0\"\nforward = \"{forward}\"\n{settings}\n")
    };
    let doors = door("") + &door("on_infected = \"reject\"");
    let gateway = Gateway::with(&format!("hostname = \"mx.test\"\nthreads = 1\n{head}{doors}"));
    let mut wire = login(&gateway);
    wire.send(b"RETR 1\r\n");
    let cut = wire.rest();
    assert!(cut.len() > 100_000 && !cut.ends_with(b"\r\n.\r\n"), "not cut off: {} bytes", cut.len());
    gateway.wait_for_log("cut=true");
    let mut wire = login(&gateway);
    // A clean top is no word about the rest.
    assert!(retrieve(&mut wire, "TOP 1 0").starts_with(b"From: "));
    let again = retrieve(&mut wire, "RETR 1");
    assert_eq!(again.len(), mail.len());
    assert!(!String::from_utf8_lossy(&again).contains("repeated very often"), "the part is still there");
    // What one listener knows another has to find out: it may look for other things.
    let mut wire = Wire::connect(gateway.addresses[1]);
    wire.talk("S: +OK *\nC: USER tim\nS: +OK\nC: PASS secret\nS: +OK\nC: RETR 1\nS: +OK *");
    assert!(String::from_utf8_lossy(&wire.rest()).contains("repeated very often"));
    let mut wire = Wire::connect(gateway.addresses[1]);
    wire.talk("S: +OK *\nC: USER tim\nS: +OK\nC: PASS secret\nS: +OK\nC: RETR 1\nS: -ERR [SYS/PERM] *");
    // Another mailbox has other messages by the same names.
    let mut wire = gateway.connect();
    wire.talk("S: +OK *\nC: USER ann\nS: +OK\nC: PASS x\nS: +OK\nC: RETR 1\nS: +OK *");
    assert!(String::from_utf8_lossy(&wire.rest()).contains("repeated very often"));
}

#[test]
fn reject_and_quarantine_do_what_they_say() {
    let server = Pop3::with(&[&infected(), CLEAN]);
    let address = server.start();
    let gateway_rejecting = gateway(address, "on_infected = \"reject\"");
    let mut wire = login(&gateway_rejecting);
    for _ in 0..2 {
        wire.talk("C: RETR 1\nS: -ERR [SYS/PERM] Message refused: Eicar-Test-Signature in eicar.com*");
        assert_eq!(retrieve(&mut wire, "RETR 2"), CLEAN);
    }
    let keeping = gateway(address, "on_infected = \"quarantine\"\nquarantine = \"FOLDER/q\"");
    let received = retrieve(&mut login(&keeping), "RETR 1");
    assert_eq!(received.len(), infected().len());
    assert!(received.starts_with(b"From: a@client.test\r\n"));
    let kept = keeping.files("q");
    assert_eq!(kept.len(), 2);
    assert_eq!(std::fs::read(&kept[0]).unwrap(), infected());
}

#[test]
fn a_message_of_any_size_is_kept_and_comes_without_its_body_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let (late, head) = found_at_its_end(folder.path());
    let more = "Much of it, behind the end.\r\n".repeat(10_000);
    let early = [infected(), more.clone().into_bytes()].concat();
    let clean = [CLEAN, more.as_bytes()].concat();
    let address = Pop3::with(&[&late, &early, &clean]).start();
    let forward = format!("pop3://localhost:{}", address.port());
    let settings = "on_infected = \"quarantine\"\nquarantine = \"FOLDER/q\"";
    let gateway = Gateway::start_with(&head, "pop3", &forward, settings);
    for (number, mail) in [(1, &late), (2, &early)] {
        let mut wire = login(&gateway);
        wire.send(format!("RETR {number}\r\n").as_bytes());
        let cut = wire.rest();
        assert!(!cut.ends_with(b"\r\n.\r\n"), "not cut off: {} bytes", cut.len());
        let kept = gateway.files("q").into_iter().filter(|path| path.extension().is_some_and(|name| name == "eml"));
        assert!(kept.map(|path| std::fs::read(path).unwrap()).any(|kept| kept == *mail), "message {number}");
        // It comes, overwritten, and is not kept again.
        let again = retrieve(&mut login(&gateway), &format!("RETR {number}"));
        let body = mail.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        assert!(again.len() == mail.len() && again[..body] == mail[..body]);
        assert!(again[body + 60..].iter().all(|byte| b"\0 \r\n".contains(byte)), "message {number}");
        assert_eq!(gateway.files("q").len(), 2 * number, "{:?}", gateway.files("q"));
    }
    assert!(retrieve(&mut login(&gateway), "RETR 3") == clean);
    assert_eq!(gateway.files("q").len(), 4);
}

#[test]
fn tagging_is_refused_in_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("sluice.toml");
    let text = "[[listener]]\nprotocol='pop3'\naddress='127.0.0.1:1'\nforward='pop3://a'\non_infected='tag'";
    std::fs::write(&config, text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_sluice")).arg("check").arg(&config).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot add to a message"));
}

#[test]
fn a_hostile_server_is_not_believed() {
    // A reply that nobody asked for, at once or later.
    let server =
        Pop3 { injected: Some(("NOOP", b"+OK injected\r\n+OK 20 octets\r\nFrom: evil\r\n")), ..Pop3::with(&[CLEAN]) };
    let odd = gateway(server.start(), "");
    let mut wire = login(&odd);
    wire.talk("C: NOOP\nS: +OK\nS: -ERR [SYS/TEMP] Upstream protocol error");
    assert_eq!(wire.line(), "");
    // Lines that are no status, and lines without an end.
    for injected in [&b"* OK IMAP\r\n"[..], &[b'x'; 100_000]] {
        let server = Pop3 { injected: Some(("USER", injected)), ..Pop3::with(&[]) };
        let odd = gateway(server.start(), "");
        let mut wire = odd.connect();
        wire.talk("S: +OK *\nC: USER tim\nS: +OK\nS: -ERR [SYS/TEMP] Upstream protocol error");
    }
    // A dot that ends the message for lenient clients only.
    let smuggled = b"From: a\r\n\r\none\n.\n+OK 1 octets\r\nFrom: evil\r\n";
    let server = Pop3::with(&[smuggled]);
    let lenient = gateway(server.start(), "");
    let mut wire = login(&lenient);
    wire.send(b"RETR 1\r\nQUIT\r\n");
    let all = wire.rest();
    assert!(!all.windows(3).any(|three| three == b"\n.\n"), "{}", String::from_utf8_lossy(&all));
    assert!(all.windows(7).any(|seven| seven == b"\r\n...\r\n"), "the server had doubled it, and so do we");
}

#[test]
fn no_content_comes_by_as_a_listing() {
    let evil = "From: evil\nContent-Type: text/html\n\n<p>\n";
    let listing: &'static str = format!("+OK\n1 100 and more\n{evil}..\n2 200\n.\n").leak();
    let names: &'static str = format!("+OK\n1 name-1 and more\n{evil}2 name-2\n.\n").leak();
    let languages: &'static str = format!("+OK\nen English\n{evil}.\n").leak();
    let instead = vec![
        ("LIST", listing),
        ("UIDL", names),
        ("LANG", languages),
        ("AUTH", languages),
        ("LIST 1", "+OK 1 100 From: evil\n"),
        ("UIDL 1", "+OK 1 name-1 From: evil\n"),
        ("STAT", "+OK 2 300 From: evil\n"),
    ];
    let server = Pop3 { instead, ..Pop3::with(&[CLEAN]) };
    let odd = gateway(server.start(), "");
    let mut wire = odd.connect();
    wire.talk("S: +OK *");
    assert_eq!(retrieve(&mut wire, "AUTH"), b"");
    let mut wire = login(&odd);
    for (command, shown) in
        [("LIST", "1 100\r\n2 200\r\n"), ("UIDL", "1 name-1_and_more\r\n2 name-2\r\n"), ("LANG", "en English\r\n")]
    {
        assert_eq!(String::from_utf8(retrieve(&mut wire, command)).unwrap(), shown, "{command}");
    }
    wire.talk("C: LIST 1\nS: +OK 1 100\nC: UIDL 1\nS: +OK 1 name-1_From:_evil\nC: STAT\nS: +OK 2 300");
    assert_eq!(retrieve(&mut wire, "RETR 1"), CLEAN);
    assert_eq!(odd.wait_for_log("excess lines in a listing").matches("excess lines in a listing").count(), 1);
}

#[test]
fn tls_towards_the_server_hears_nothing_from_before_the_handshake() {
    let certificate = Arc::new(Certificate::of("localhost"));
    let tls = Some(SinkTls { certificate, implicit: false, injected: "" });
    for (injected, settings, greeting) in [
        (None, "", "+OK Ready *"),
        (
            Some(("STLS", &b"+OK injected\r\n"[..])),
            "forward_tls = \"require\"\nforward_verify = \"nothing\"",
            "-ERR [SYS/TEMP] *",
        ),
    ] {
        let server = Pop3 { tls: tls.clone(), injected, ..Pop3::with(&[CLEAN]) };
        let gateway = gateway(server.start(), settings);
        gateway.connect().talk(&format!("S: {greeting}"));
        assert_eq!(&server.commands()[..2], ["CAPA", "STLS"]);
    }
}

#[test]
fn an_unreachable_server_is_said_to_be_so() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gateway = gateway(gone, "");
    gateway.connect().talk("S: -ERR [SYS/TEMP] The server cannot be reached now");
}

#[test]
fn sasl_passes_through_and_tells_the_mailbox() {
    let server = Pop3::with(&[CLEAN]);
    let gateway = gateway(server.start(), "");
    let mut wire = gateway.connect();
    wire.talk("S: +OK *\nC: AUTH PLAIN\nS: +\nC: AHRpbQB0YW5zdGFhZnRhbnN0YWFm\nS: +OK");
    assert_eq!(retrieve(&mut wire, "RETR 1"), CLEAN);
    assert!(gateway.wait_for_log("message retrieved").contains("user=\"tim\""));
}

/// Runs a program; none if it is not there.
fn run(program: &str, arguments: &[&str], input: &str) -> Option<String> {
    let child = Command::new("timeout")
        .args(["20", program])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("skipped: {program} is not installed");
        return None;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn real_clients_get_their_mail_from_dovecot() {
    let Some(dovecot) = Dovecot::start() else { return };
    let large = infected_late(2_000_000);
    dovecot.deliver("tim", "1", CLEAN);
    dovecot.deliver("tim", "2", &infected());
    dovecot.deliver("tim", "3", &large);
    // STLS with Dovecot, which offers it.
    let gateway = gateway(dovecot.pop3, "");
    let port = gateway.address.port();
    let url = |path: &str| format!("pop3://127.0.0.1:{port}/{path}");
    for options in [&["--sasl-ir"][..], &["--login-options", "AUTH=CRAM-MD5"], &["--login-options", "AUTH=+APOP"]] {
        let second = url("2");
        let arguments = [&["-sS", "-u", "tim:secret", &second], options].concat();
        let Some(text) = run("curl", &arguments, "") else { break };
        assert_eq!(text, String::from_utf8(blanked(&infected())).unwrap(), "{options:?} {}", dovecot.log());
    }
    let script = format!(
        "import poplib\n\
         box = poplib.POP3('127.0.0.1', {port})\n\
         print(sorted(box.capa()))\n\
         box.user('tim'); box.pass_('secret')\n\
         sizes = [int(line.split()[1]) for line in box.list()[1]]\n\
         for index, size in enumerate(sizes):\n\
         \x20   status, lines, octets = box.retr(index + 1)\n\
         \x20   assert octets == size, (octets, size)\n\
         \x20   assert b'EICAR' not in b''.join(lines)\n\
         print(len(sizes), box.uidl()[0], len(box.top(1, 1)[1]))\n\
         box.dele(1); box.quit()\n"
    );
    if let Some(text) = run("python3", &["-"], &script) {
        assert!(text.contains("3 b'+OK") && !text.contains("STLS"), "{text} {}", dovecot.log());
    }
    let folder = tempfile::tempdir().unwrap();
    let rc = folder.path().join("rc");
    let arrived = folder.path().join("arrived");
    let settings = format!(
        "poll 127.0.0.1 port {port} protocol pop3 user tim password secret keep fetchall sslproto '' mda \"cat >> {}\"\n",
        arrived.display()
    );
    std::fs::write(&rc, settings).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&rc, std::fs::Permissions::from_mode(0o600)).unwrap();
    if let Some(text) = run(
        "fetchmail",
        &["-f", rc.to_str().unwrap(), "--nosyslog", "--pidfile", &format!("{}/pid", folder.path().display())],
        "",
    ) {
        let mails = std::fs::read_to_string(&arrived).unwrap_or_default();
        assert!(mails.contains("frontier") && mails.len() > 1_500_000, "{text} {}", dovecot.log());
        assert!(!mails.contains(&base64(&eicar())[..60]), "the virus came through");
    }
    gateway.wait_for_log("message retrieved");
}
