//! Tests of trust: the cost of a connection before it is trusted, and refusals before any work is done.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::tls::Certificate;
use crate::harness::{Behaviour, Gateway, Sink, Wire, base64, eicar, mail_with};

/// Connections that wait; each is also a descriptor or two of the test.
const CONNECTIONS: usize = 300;

/// Memory of the gateway that is in RAM and its own (proc_pid_smaps(5)).
fn resident_bytes(gateway: &Gateway) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", gateway.pid())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:")).expect("the kernel tells");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Memory of the gateway for each of many connections that have greeted and wait.
fn bytes_for_each<C>(gateway: &Gateway, mut wait: impl FnMut() -> C) -> u64 {
    // What comes with the first ones is not theirs.
    let _first: Vec<C> = (0..50).map(|_| wait()).collect();
    let before = resident_bytes(gateway);
    let _held: Vec<C> = (0..CONNECTIONS).map(|_| wait()).collect();
    let each = resident_bytes(gateway).saturating_sub(before) / CONNECTIONS as u64;
    println!("{each} bytes for each connection");
    each
}

#[test]
fn a_connection_that_waits_costs_little() {
    let gateway = Gateway::start("discard:", "");
    let each = bytes_for_each(&gateway, || {
        let mut wire = gateway.connect();
        wire.talk("S: 220 *\nC: EHLO client.test\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *");
        wire.stream
    });
    assert!(each <= 6 << 10, "{each} bytes");
}

#[test]
fn an_encrypted_connection_that_waits_costs_little() {
    let certificate = Certificate::of("mx.test");
    let folder = tempfile::tempdir().unwrap();
    certificate.store(folder.path(), "mx");
    let at = folder.path().display();
    let head = format!("[[tls.certificate]]\nchain = \"{at}/mx.crt\"\nkey = \"{at}/mx.key\"\n");
    let gateway = Gateway::start_with(&head, "smtp", "discard:", "tls = \"offer\"");
    let each = bytes_for_each(&gateway, || {
        let mut wire = gateway.connect();
        wire.talk("S: 220 *\nC: EHLO client.test\nS: 250-*\nC: STARTTLS\nS: 220 *");
        let mut wire = wire.secure(certificate.client("mx.test"));
        wire.talk("C: EHLO client.test\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *");
        wire
    });
    assert!(each <= 18 << 10, "{each} bytes");
}

/// A gateway that is told by a header of the PROXY protocol who connects, so that strangers come; `trust` is its table.
fn gateway(forward: &str, trust: &str, settings: &str) -> Gateway {
    let settings = format!("proxy_from = [\"127.0.0.1\"]\n{settings}");
    Gateway::start_with(&format!("[trust]\n{trust}"), "smtp", forward, &settings)
}

/// A connection that comes from there.
fn from(gateway: &Gateway, address: &str) -> Wire {
    let mut wire = gateway.connect();
    let family = if address.contains(':') { "TCP6" } else { "TCP4" };
    wire.send(format!("PROXY {family} {address} {address} 4000 25\r\n").as_bytes());
    wire
}

const TEASER: &str = "220-mx.test ESMTP Sluice";

#[test]
fn a_client_that_speaks_before_its_greeting_and_does_not_listen_is_deferred_at_no_cost() {
    let sink = Sink::start(Behaviour::default());
    let gateway = gateway(&sink.forward(), "greet_wait_ms = 30000", "");
    let mut bot = from(&gateway, "192.0.2.1");
    bot.send(b"EHLO bot\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nQUIT\r\n");
    assert_eq!(bot.line(), TEASER);
    bot.talk("S: 220 mx.test ESMTP Sluice\nS: 250-*\nS: 250 2.1.0 *\nS: 450 4.7.1 Try again later*\nS: 221 *");
    let log = gateway.wait_for_log("pregreet,pipelining");
    assert!(log.contains("deferred=1"), "{log}");
    assert!(!sink.commands().iter().any(|command| command.starts_with("MAIL")), "the next hop was not asked");
}

#[test]
fn whoever_scores_enough_is_refused() {
    let scores = "greet_wait_ms = 30000\n[trust.scores]\ndefer = 4\nreject = 8";
    let gateway = gateway("discard:", scores, "");
    let mut bot = from(&gateway, "192.0.2.1");
    bot.send(b"EHLO bot\r\n");
    assert_eq!(bot.line(), TEASER);
    bot.talk("S: 220 mx.test *\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<c@d>\nS: 450 4.7.1 *");
    bot.send(b"EHLO bot\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n");
    bot.talk("S: 250-*\nS: 250 *\nS: 550 5.7.1 Refused: your address 192.0.2.1 (id *\nC: QUIT\nS: 221 *");
    gateway.wait_for_log("rejected=1");
}

#[test]
fn whoever_waits_goes_on_in_the_same_session_and_need_not_wait_again() {
    let sink = Sink::start(Behaviour::default());
    let gateway = gateway(&sink.forward(), "greet_wait_ms = 300", "");
    let start = Instant::now();
    let mut wire = from(&gateway, "192.0.2.1");
    assert_eq!(wire.line(), TEASER);
    assert_eq!(wire.deliver(b"From: a\r\n\r\nHello\r\n"), "250 2.0.0 Taken");
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert_eq!(from(&gateway, "192.0.2.1").line(), "220 mx.test ESMTP Sluice");
    assert_eq!(from(&gateway, "192.0.2.2").line(), TEASER, "the neighbour has not waited");
    let mut relay = gateway.connect();
    relay.send(b"PROXY UNKNOWN\r\n");
    assert_eq!(relay.line(), "220 mx.test ESMTP Sluice", "nobody waits on this machine");
}

#[test]
fn a_harvester_is_put_off_and_its_neighbour_is_not() {
    let sink = Sink::start(Behaviour { refuse: Some("nobody"), ..Behaviour::default() });
    let trust = "greet_wait_ms = 0\n[trust.tarpit]\nstep_ms = 0\n[trust.harvest]\nunknown_min = 5";
    let gateway = gateway(&sink.forward(), trust, "");
    let mut wire = from(&gateway, "192.0.2.1");
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *");
    for number in 0..5 {
        assert!(wire.command(&format!("RCPT TO:<nobody{number}@d>")).starts_with("550 5.1.1 "));
    }
    assert!(wire.command("RCPT TO:<somebody@d>").starts_with("450 4.7.1 Too many unknown recipients"));
    let asked = sink.commands().len();
    let mut wire = from(&gateway, "192.0.2.1");
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 450 4.7.1 Too many unknown recipients*");
    assert_eq!(sink.commands().len(), asked);
    let mut neighbour = from(&gateway, "192.0.2.2");
    assert_eq!(neighbour.deliver(b"From: a\r\n\r\nHello\r\n"), "250 2.0.0 Taken");
    gateway.wait_for_log("address harvesting suspected");
}

#[test]
fn errors_are_answered_later_and_later_and_nobody_else_waits() {
    let trust = "greet_wait_ms = 0\n[trust.tarpit]\nerrors = 1\nstep_ms = 400\nms_max = 800";
    let gateway = gateway("discard:", trust, "");
    let mut wire = from(&gateway, "192.0.2.1");
    wire.talk("S: 220 *");
    let start = Instant::now();
    wire.send(b"WHAT\r\nWHAT\r\nWHAT\r\nWHAT\r\n");
    let mut other = from(&gateway, "192.0.2.2");
    assert_eq!(other.deliver(b"From: a\r\n\r\nHello\r\n"), "250 2.0.0 Discarded");
    wire.talk("S: 500 *\nS: 500 *\nS: 500 *\nS: 500 *");
    // One is free, the others wait for 400, 800 and 800.
    assert!(start.elapsed() >= Duration::from_millis(2_000), "{:?}", start.elapsed());
    drop(wire);
    gateway.wait_for_log("slowed_ms=2000");
}

#[test]
fn the_errors_of_a_stranger_have_a_bound() {
    let gateway = gateway("discard:", "greet_wait_ms = 0\nerrors_max = 2\n[trust.tarpit]\nstep_ms = 0", "");
    from(&gateway, "192.0.2.1").talk("S: 220 *\nC: WHAT\nS: 500 *\nC: WHAT\nS: 500 *\nS: 421 4.7.0 Too many errors");
}

#[test]
fn lists_say_who_is_trusted_and_who_is_turned_away() {
    let folder = tempfile::tempdir().unwrap();
    let permitted = folder.path().join("permitted");
    std::fs::write(&permitted, "# friends\n192.0.2.7\n2001:db8:1::/48\n").unwrap();
    let trust = format!("reject = [\"192.0.2.0/24\", \"2001:db8::/32\"]\npermit = [\"{}\"]", permitted.display());
    let gateway = gateway("discard:", &trust, "");
    for (address, greeting) in [
        ("192.0.2.1", "554 5.7.1 Access denied"),
        ("192.0.2.7", "220 mx.test ESMTP Sluice"),
        ("198.51.100.1", TEASER),
        ("2001:db8::1", "554 5.7.1 Access denied"),
        ("2001:db8:1::1", "220 mx.test ESMTP Sluice"),
    ] {
        assert_eq!(from(&gateway, address).line(), greeting, "{address}");
    }
}

#[test]
fn a_prefix_has_so_many_sessions_and_its_clients_so_many_messages() {
    let trust = "greet_wait_ms = 0\n[trust.prefix]\nconnections_max = 2\n[trust.client]\nmessages_max = 1";
    let gateway = gateway("discard:", trust, "");
    let (mut one, mut two) = (from(&gateway, "192.0.2.1"), from(&gateway, "192.0.2.2"));
    one.talk("S: 220 *");
    two.talk("S: 220 *\nC: EHLO x\nS: 250-*");
    from(&gateway, "192.0.2.3").talk("S: 421 4.7.0 Too many sessions from your network");
    from(&gateway, "192.0.3.1").talk("S: 220 *");
    assert_eq!(two.transaction(b"From: a\r\n\r\nHello\r\n"), "250 2.0.0 Discarded");
    two.talk("C: MAIL FROM:<a@b>\nS: 450 4.7.1 Too many messages from you*");
}

#[test]
fn whoever_has_no_recipient_holds_no_connection_to_the_next_hop() {
    let sink = Sink::start(Behaviour { refuse: Some("nobody"), ..Behaviour::default() });
    let gateway = Gateway::start(&sink.forward(), "");
    let mut waiting: Vec<Wire> = (0..5)
        .map(|_| {
            let mut wire = gateway.connect();
            wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<nobody@d>\nS: 550 *");
            wire
        })
        .collect();
    // One may have asked what the hop offers when the listener opened.
    assert!(sink.clients().len() <= 2, "they have one connection by turns, and not {:?}", sink.clients());
    // It does not matter to them: the next recipient is asked for as ever.
    for wire in &mut waiting {
        wire.talk("C: RCPT TO:<b@mx.test>\nS: 250 *\nC: DATA\nS: 354 *\nC: From: a\nC: .\nS: 250 2.0.0 Taken");
    }
}

#[test]
fn another_protocol_and_a_bare_newline_are_noticed() {
    let gateway = gateway("discard:", "greet_wait_ms = 0", "");
    from(&gateway, "192.0.2.1").talk("S: 220 *\nC: GET / HTTP/1.1\nS: 421 4.7.0 Not SMTP, closing connection");
    gateway.wait_for_log("failed=non_smtp");
    let mut wire = from(&gateway, "192.0.2.2");
    wire.talk("S: 220 *");
    wire.send(b"QUIT\n");
    wire.talk("S: 221 *");
    gateway.wait_for_log("failed=bare_newline");
}

#[test]
fn a_tester_by_hand_passes() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start_with("[trust]\ngreet_wait_ms = 500", "smtp", &sink.forward(), "trust = \"all\"");
    let swaks = Command::new("swaks")
        .args(["--server", &gateway.address.to_string(), "--from", "a@client.test", "--to", "b@mx.test"])
        .output();
    let Ok(swaks) = swaks else {
        eprintln!("skipped: no swaks");
        return;
    };
    let said = String::from_utf8_lossy(&swaks.stdout);
    assert!(swaks.status.success() && said.contains("<-  220-mx.test ESMTP Sluice"), "{said}");
    sink.wait(1);
    assert!(!gateway.log().contains("failed="), "{}", gateway.log());
}

/// A server of block lists that lists 192.0.2.1, and the test point.
fn block_lists(folder: &Path) -> (Child, SocketAddr) {
    let path = folder.join("zone");
    let head = "$SOA 3600 ns.bl.test a.bl.test 5 1h 1h 1w 1h\n$NS 1h ns.bl.test\n";
    std::fs::write(&path, format!("{head}127.0.0.2 :2:Test\n192.0.2.1 :2:Bot\n")).unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_sluice"))
        .args(["dnsbl", "serve", "--listen", "127.0.0.1:0", "--zone"])
        .arg(format!("bl.test:ip4set:{}", path.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit_once(' ').unwrap().1.parse().unwrap();
    (server, address)
}

#[test]
fn lists_are_asked_at_the_beginning_and_count_at_the_first_recipient() {
    let folder = tempfile::tempdir().unwrap();
    let (mut server, address) = block_lists(folder.path());
    let trust = format!(
        "greet_wait_ms = 0\n[trust.dnsbl]\nlists = [\"bl.test=127.0.0.2*12\"]\nresolvers = [\"{address}\"]\nwait_ms = 30000"
    );
    let gateway = gateway("discard:", &trust, "");
    let script = "S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<c@d>\nS: ";
    from(&gateway, "192.0.2.2").talk(&format!("{script}250 *"));
    from(&gateway, "192.0.2.1").talk(&format!("{script}550 5.7.1 Refused: your address 192.0.2.1*"));
    let log = gateway.wait_for_log("lists=\"bl.test\"");
    assert!(log.contains("failed=listed") && log.contains("score=12"), "{log}");
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn a_resolver_that_is_silent_lists_nobody_and_holds_nobody_up_for_long() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let trust = format!(
        "greet_wait_ms = 0\n[trust.dnsbl]\nlists = [\"bl.test*12\"]\nresolvers = [\"{}\"]\nwait_ms = 500",
        silent.local_addr().unwrap()
    );
    let gateway = gateway("discard:", &trust, "");
    let mut wire = from(&gateway, "192.0.2.1");
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *");
    let start = Instant::now();
    wire.talk("C: RCPT TO:<c@d>\nS: 250 *");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let mut packet = [0; 512];
    silent.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert!(silent.recv(&mut packet).is_ok(), "it was asked");
}

#[test]
fn what_was_seen_here_counts() {
    let trust = "greet_wait_ms = 0\n[trust.scores]\nown = 12";
    let gateway = gateway("discard:", trust, "");
    let virus = mail_with("base64", "e.com", &base64(&eicar()));
    let mut wire = from(&gateway, "192.0.2.1");
    assert!(wire.deliver(&virus).starts_with("554 5.7.1 "));
    assert!(wire.transaction(&virus).starts_with("554 5.7.1 "));
    let mut wire = from(&gateway, "192.0.2.1");
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<c@d>\nS: 550 5.7.1 *\nC: QUIT\nS: 221 *");
    from(&gateway, "192.0.2.2").deliver(b"From: a\r\n\r\nHello\r\n");
    gateway.wait_for_log("lists=\"own\"");
}

#[test]
fn lists_at_hand_are_asked_of_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list");
    std::fs::write(&list, "192.0.2.1 :2:Bot\n").unwrap();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let trust = format!(
        "greet_wait_ms = 0\n[trust.dnsbl]\nlists = [\"bl.test=127.0.0.2*12\"]\nlocal = [\"bl.test:ip4set:{}\"]\n\
         resolvers = [\"{}\"]\nwait_ms = 30000",
        list.display(),
        silent.local_addr().unwrap()
    );
    let gateway = gateway("discard:", &trust, "");
    let script = "S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<c@d>\nS: ";
    from(&gateway, "192.0.2.2").talk(&format!("{script}250 *"));
    from(&gateway, "192.0.2.1").talk(&format!("{script}550 5.7.1 Refused: your address 192.0.2.1*"));
    silent.set_nonblocking(true).unwrap();
    assert!(silent.recv(&mut [0; 512]).is_err(), "somebody was asked");
}

#[test]
fn what_was_seen_is_shown_served_and_forgiven() {
    let folder = tempfile::tempdir().unwrap();
    // Which the gateway makes.
    let path = folder.path().join("made/reputation");
    let path = path.to_str().unwrap();
    let rules = tempfile::tempdir().unwrap();
    std::fs::write(rules.path().join("a.cf"), "body FREE /free money/\nscore FREE 6\n").unwrap();
    let trust = format!(
        "greet_wait_ms = 0\nreputation = \"{path}\"\nreputation_seconds = 1\n[trust.scores]\nown = 12\n\
         [spam]\nrules = [\"{}\"]",
        rules.path().display()
    );
    let gateway = gateway("discard:", &trust, "");
    let virus = mail_with("base64", "e.com", &base64(&eicar()));
    assert!(from(&gateway, "192.0.2.1").deliver(&virus).starts_with("554 5.7.1 "));
    let spam = b"Subject: x\r\n\r\nfree money\r\n";
    assert!(from(&gateway, "192.0.2.3").deliver(spam).starts_with("250 "));
    let reputation_of = |command: &str, client: &str| {
        let mut sluice = Command::new(env!("CARGO_BIN_EXE_sluice"));
        let output = sluice.args(["dnsbl", "reputation", "--folder", path, command, client]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let reputation = |command: &str| reputation_of(command, "192.0.2.1");
    let soon = |is_done: &dyn Fn() -> bool| {
        (0..600).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            is_done()
        })
    };
    assert!(soon(&|| reputation("why").1.contains("infected 1")), "{:?}", reputation("why"));
    assert!(
        soon(&|| reputation_of("why", "192.0.2.3").1.contains("spam 1")),
        "{:?}",
        reputation_of("why", "192.0.2.3")
    );
    assert_eq!(reputation("note").0, Some(2), "an event is missing");
    let mut sluice = Command::new(env!("CARGO_BIN_EXE_sluice"));
    let noted = sluice.args(["dnsbl", "reputation", "--folder", path, "note", "192.0.2.1", "spam"]).status().unwrap();
    assert!(noted.success());
    assert_eq!(reputation("why").0, Some(0));
    assert!(std::fs::read_to_string(Path::new(path).join("ip4")).unwrap().contains("192.0.2.1 :4:Seen here: infected"));
    // The gateway hears of both, and of forgiveness.
    let script = "S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<c@d>";
    let refused = || {
        let mut wire = from(&gateway, "192.0.2.1");
        wire.talk(script);
        wire.line().starts_with("550 5.7.1 ")
    };
    assert!(soon(&refused));
    assert_eq!(reputation("forgive"), (Some(0), "192.0.2.1: forgiven\n".into()));
    assert!(soon(&|| !refused()), "it is not forgiven");
}

#[test]
fn a_load_generator_that_keeps_the_rules_passes() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start_with("[trust]\ngreet_wait_ms = 200", "smtp", &sink.forward(), "trust = \"all\"");
    let sent = Command::new("smtp-source")
        .args(["-m", "20", "-s", "4", "-f", "a@client.test", "-t", "b@mx.test", &gateway.address.to_string()])
        .output();
    let Ok(sent) = sent else {
        eprintln!("skipped: no smtp-source");
        return;
    };
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    sink.wait(20);
    assert!(!gateway.log().contains("failed="), "{}", gateway.log());
}
