//! Processes that are killed (SIGKILL) at each stage of each door: what was acknowledged is there, nothing is there in part, and
//! the sessions that had nothing to do with it live.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use crate::harness::imap::{Imap, answer, ask};
use crate::harness::mailbox::Pop3;
use crate::harness::{Behaviour, Gateway, Sink, Wire, children_of, is_running, mail_with, wait_for};
use crate::milter::Server;

/// Process to kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Jail,
    Edge,
    Supervisor,
}

impl Victim {
    const ALL: [Victim; 3] = [Victim::Jail, Victim::Edge, Victim::Supervisor];

    fn kill(self, gateway: &Gateway) {
        let pids = match self {
            Victim::Jail => wait_for(|| Some(jails(gateway)).filter(|jails| !jails.is_empty()), "a jail"),
            Victim::Edge => vec![gateway.pid()],
            Victim::Supervisor => vec![gateway.supervisor()],
        };
        for pid in pids {
            assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
            wait_for(|| (!is_running(pid)).then_some(()), "its end");
        }
    }
}

fn jails(gateway: &Gateway) -> Vec<u32> {
    let is_jail = |(_, name): &(u32, String)| name.starts_with("sluice: jail ");
    children_of(gateway.supervisor()).into_iter().filter(is_jail).map(|(pid, _)| pid).collect()
}

/// Where a client of SMTP or LMTP is when it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    BeforeMail,
    AfterRcpt,
    InData,
    /// Large enough that its start has gone on.
    Streaming,
    AfterTheDot,
}

/// End of a session.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Accepted,
    Deferred,
    Closed,
}

fn mail(stage: Stage) -> Vec<u8> {
    let lines = if stage == Stage::Streaming { 20_000 } else { 2_000 };
    mail_with("7bit", "a.txt", &"A line of text, and one more word.\r\n".repeat(lines))
}

/// One that does not fit what the system holds for a reader who does not read (tcp(7): 4 MiB of `tcp_wmem`, and some).
fn long_mail() -> Vec<u8> {
    mail_with("7bit", "a.txt", &"A line of text.\r\n".repeat(600_000))
}

/// One mail, in the middle of which it happens.
fn deliver(gateway: &Gateway, hello: &str, stage: Stage, victim: Victim) -> End {
    let happens = |at: Stage| {
        if stage == at {
            victim.kill(gateway);
        }
    };
    let (mail, mut wire) = (mail(stage), gateway.connect());
    let ask = |wire: &mut Wire, line: &str| -> Option<String> {
        wire.try_send(format!("{line}\r\n").as_bytes()).ok()?;
        Some(wire.reply()).filter(|reply| !reply.is_empty())
    };
    let steps = |wire: &mut Wire| -> Option<String> {
        if !wire.reply().starts_with("220 ") {
            return None;
        }
        ask(wire, hello)?;
        happens(Stage::BeforeMail);
        ask(wire, "MAIL FROM:<a@client.test>")?;
        ask(wire, "RCPT TO:<b@mx.test>")?;
        happens(Stage::AfterRcpt);
        let go = ask(wire, "DATA")?;
        if !go.starts_with("354") {
            return Some(go);
        }
        let half = mail.len() / 2;
        wire.try_send(&mail[..half]).ok()?;
        // Time enough for it to be under way.
        std::thread::sleep(std::time::Duration::from_millis(50));
        happens(Stage::InData);
        happens(Stage::Streaming);
        wire.try_send(&mail[half..]).ok()?;
        wire.try_send(b".\r\n").ok()?;
        happens(Stage::AfterTheDot);
        Some(wire.reply()).filter(|reply| !reply.is_empty())
    };
    match steps(&mut wire) {
        Some(reply) if reply.starts_with("250") => End::Accepted,
        Some(reply) => {
            assert!(reply.starts_with('4'), "{stage:?} {victim:?}: {reply}");
            End::Deferred
        }
        None => End::Closed,
    }
}

fn each_stage(protocol: &str, hello: &str, lmtp: bool) {
    for victim in Victim::ALL {
        let sink = Sink::start(Behaviour { lmtp, ..Behaviour::default() });
        let forward = sink.forward().replace("smtp:", &format!("{protocol}:"));
        let gateway = Gateway::start_with("[resources]\nhead_window_bytes = 65536", protocol, &forward, "");
        let mut accepted = 0;
        let stages = [Stage::BeforeMail, Stage::AfterRcpt, Stage::InData, Stage::Streaming, Stage::AfterTheDot];
        // There is no second supervisor to be killed.
        let stages = if victim == Victim::Supervisor { &stages[2..3] } else { &stages[..] };
        for &stage in stages {
            let mut other = gateway.connect();
            assert!(other.reply().starts_with("220 "));
            let end = deliver(&gateway, hello, stage, victim);
            accepted += usize::from(end == End::Accepted);
            let what = format!("{protocol}, {victim:?} killed {stage:?}: {end:?}");
            eprintln!("{what}");
            match victim {
                // What it works on is lost, and what has not begun goes to the next.
                Victim::Jail => {
                    assert_ne!(end, End::Closed, "{what}");
                    assert!(other.command("NOOP").starts_with("250 "), "{what}");
                }
                Victim::Edge if stage == Stage::AfterTheDot => {}
                Victim::Edge => assert_eq!(end, End::Closed, "{what}"),
                Victim::Supervisor => {
                    assert_eq!(end, End::Accepted, "{what}");
                    assert!(other.command("NOOP").starts_with("250 "), "{what}");
                    break;
                }
            }
            let mut again = gateway.connect();
            assert!(again.reply().starts_with("220 ") && again.command(hello).starts_with("250"), "{what}");
            // One that began before anybody had noticed is deferred, and comes again.
            let is_taken = |reply: String| {
                (!reply.starts_with("451 ")).then(|| assert!(reply.starts_with("250 "), "{what}: {reply}"))
            };
            wait_for(|| is_taken(again.transaction(&mail(Stage::InData))), "the mail to be taken");
            accepted += 1;
        }
        let whole = [mail(Stage::InData), mail(Stage::Streaming)];
        let arrived = sink.wait(accepted);
        for mail in &arrived {
            assert!(whole.iter().any(|whole| mail.original() == whole), "{protocol} {victim:?}: in part");
        }
        assert!(arrived.len() >= accepted, "what was acknowledged is there");
    }
}

#[test]
fn killed_at_each_stage_of_smtp() {
    each_stage("smtp", "EHLO client.test", false);
}

#[test]
fn killed_at_each_stage_of_lmtp() {
    each_stage("lmtp", "LHLO client.test", true);
}

#[test]
fn killed_while_a_message_is_fetched_by_pop3() {
    let message = long_mail();
    let server = Pop3::with(&[&message]);
    for victim in [Victim::Jail, Victim::Edge] {
        let gateway = Gateway::start_with("", "pop3", &format!("pop3://localhost:{}", server.start().port()), "");
        let login = || {
            let mut wire = gateway.connect();
            assert!(wire.line().starts_with("+OK"));
            wire.talk("C: USER tim\nS: +OK\nC: PASS secret\nS: +OK");
            wire
        };
        let (mut wire, mut other) = (login(), login());
        wire.send(b"RETR 1\r\n");
        // The first line of the message has passed the jail, and the rest cannot: nobody reads what comes.
        assert!(wire.line().starts_with("+OK"));
        wire.line();
        victim.kill(&gateway);
        let rest = wire.rest();
        assert!(!rest.ends_with(b"\r\n.\r\n"), "{victim:?}: no end is feigned, of {} bytes", rest.len());
        if victim == Victim::Jail {
            other.send(b"NOOP\r\n");
            assert!(other.line().starts_with("+OK"));
        }
        let mut again = login();
        again.send(b"RETR 1\r\n");
        assert!(again.line().starts_with("+OK"), "{victim:?}");
        assert_eq!(again.lines_to_dot().len(), message.len());
    }
}

#[test]
fn killed_while_messages_are_fetched_and_appended_by_imap() {
    let stored = long_mail();
    // Other content: what two jails died of is refused for an hour.
    let message = [b"X-Appended: yes\r\n", stored.as_slice()].concat();
    for victim in [Victim::Jail, Victim::Edge] {
        let server = Imap::with(&[&stored]);
        let gateway = Gateway::start_with("", "imap", &format!("imap://localhost:{}", server.start().port()), "");
        let select = || {
            let mut wire = gateway.connect();
            wire.talk("S: * OK *");
            assert!(ask(&mut wire, "LOGIN tim secret").status.starts_with("OK"));
            assert!(ask(&mut wire, "SELECT INBOX").status.starts_with("OK"));
            wire
        };
        let (mut wire, mut other) = (select(), select());
        wire.send(b"f FETCH 1 BODY[]\r\n");
        // The first line of the message has passed the jail, and the rest cannot: nobody reads what comes.
        assert!(wire.line().starts_with("* 1 FETCH"));
        wire.line();
        victim.kill(&gateway);
        let rest = wire.rest();
        assert!(rest.len() < stored.len(), "{victim:?}: {} bytes", rest.len());
        if victim == Victim::Jail {
            assert!(ask(&mut other, "NOOP").status.starts_with("OK"));
        }
        // An APPEND of which half has come.
        let mut wire = select();
        wire.send(format!("a APPEND INBOX {{{}+}}\r\n", message.len()).as_bytes());
        wire.send(&message[..message.len() / 2]);
        std::thread::sleep(std::time::Duration::from_millis(100));
        victim.kill(&gateway);
        let _ = wire.try_send(&message[message.len() / 2..]).and_then(|()| wire.try_send(b"\r\n"));
        if victim == Victim::Jail {
            let status = answer(&mut wire, "a").status;
            assert!(status.is_empty() || status.starts_with("NO"), "{status}");
        }
        assert!(server.appended.lock().unwrap().is_empty(), "nothing in part");
        let mut wire = select();
        let mut append = || {
            wire.send(&[format!("b APPEND INBOX {{{}+}}\r\n", message.len()).as_bytes(), &message, b"\r\n"].concat());
            let status = answer(&mut wire, "b").status;
            // One that began before anybody had noticed is refused for now, and comes again.
            (!status.starts_with("NO ")).then(|| assert!(status.starts_with("OK"), "{victim:?}: {status}"))
        };
        wait_for(&mut append, "the message to be taken");
        assert_eq!(server.appended.lock().unwrap().as_slice(), std::slice::from_ref(&message));
    }
}

#[test]
fn killed_while_a_mail_server_asks() {
    let text = "hostname = \"mx.test\"\nthreads = 1\n[[listener]]\nprotocol = \"milter\"\naddress = \"127.0.0.1:0\"\n";
    for victim in [Victim::Jail, Victim::Edge] {
        let gateway = Gateway::with(text);
        let begin = || {
            let mut server = Server::new(&gateway, false);
            server.tell_and_hear('C', b"client.test\x004\x00\x19192.0.2.7\0");
            server.tell_and_hear('H', b"client.test\0");
            server.tell_and_hear('M', b"<a@client.test>\0");
            server.tell_and_hear('R', b"<b@mx.test>\0");
            server.tell_and_hear('L', b"Subject\0x\0");
            server.tell_and_hear('N', b"");
            server.tell_and_hear('B', &[b'a'; 60_000]);
            server
        };
        let mut server = begin();
        victim.kill(&gateway);
        if victim == Victim::Jail {
            server.tell_and_hear('B', &[b'a'; 60_000]);
            server.tell('E', b"");
            let (letter, text) = server.packet();
            assert!(letter == 't' || (letter == 'y' && text.starts_with(b"451 ")), "{letter} {text:?}");
        }
        let mut again = begin();
        again.tell('E', b"");
        assert!(matches!(again.packet().0, 'a' | 'c' | 'h'), "{victim:?}");
    }
}

#[test]
fn killed_while_a_stream_is_scanned_for_clamd_s_client() {
    for victim in [Victim::Jail, Victim::Edge] {
        let gateway = Gateway::with("threads = 1\n[clamd]\naddresses = [\"127.0.0.1:0\"]\n");
        let begin = || {
            let mut stream = TcpStream::connect(gateway.address).unwrap();
            stream.write_all(b"zINSTREAM\0").unwrap();
            stream.write_all(&[&60_000_u32.to_be_bytes()[..], &[b'a'; 60_000]].concat()).unwrap();
            stream
        };
        let end = |mut stream: TcpStream| {
            let _ = stream.write_all(&[0; 4]);
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            answer
        };
        let stream = begin();
        std::thread::sleep(std::time::Duration::from_millis(100));
        victim.kill(&gateway);
        let answer = end(stream);
        match victim {
            Victim::Jail => assert_eq!(answer, "stream: Unspecified error ERROR\0"),
            _ => assert_eq!(answer, "", "{victim:?}"),
        }
        assert_eq!(end(begin()), "stream: OK\0", "{victim:?}");
    }
}
