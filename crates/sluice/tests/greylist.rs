//! Greylisting: who has to come again, and who need not.

use std::fs;
use std::io::Write as _;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::{io, thread};

use crate::harness::postfix::Postfix;
use crate::harness::{Behaviour, Gateway, Sink, Wire, stuffed, wait_for};
use crate::milter::Server;

const RULES: &str = "body MONEY /money/\nscore MONEY 3\nbody MUCH /much/\nscore MUCH 20\nheader RCVD_IN_DNSWL_MED Subject =~ /known/\n\
                     score RCVD_IN_DNSWL_MED -0.1\nclear_headers\n";
const BEHIND_PROXY: &str = "proxy_from = [\"127.0.0.1\"]\ntrust = \"off\"";

fn site() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("rules")).unwrap();
    fs::write(folder.path().join("rules/a.cf"), RULES).unwrap();
    folder
}

fn head(site: &Path, isolation: &str, spam: &str) -> String {
    format!(
        "isolation = \"{isolation}\"\n[spam]\nrules = [\"{0}/rules\"]\n{spam}\n[spam.bayes]\nledger = \"{0}/ledger\"\nwait_ms = 30000\n",
        site.display()
    )
}

/// Reply to a client of this address at the end of a mail.
fn send(gateway: &Gateway, client: &str, to: &[&str], mail: &str) -> String {
    let mut wire = gateway.connect();
    wire.send(format!("PROXY TCP4 {client} 127.0.0.1 1 25\r\n").as_bytes());
    wire.talk("S: 220 *\nC: EHLO mail.client.test\nS: 250-*\nC: MAIL FROM:<a@client.test>\nS: 250 *");
    to.iter().for_each(|to| assert!(wire.command(&format!("RCPT TO:<{to}>")).starts_with("250 ")));
    wire.talk("C: DATA\nS: 354 *");
    wire.send(&stuffed(mail.as_bytes()));
    wire.send(b".\r\n");
    wire.reply()
}

fn mail(words: &str) -> String {
    format!("From: a@client.test\r\nSubject: {words}\r\n\r\n{words}\r\n")
}

const GREY: &str = "451 4.7.1 Greylisted, try again in a few minutes (id ";

#[test]
fn a_doubtful_mail_of_a_stranger_has_to_come_again() {
    for isolation in ["process", "none"] {
        let (site, sink) = (site(), Sink::start(Behaviour::default()));
        let head = head(site.path(), isolation, "greylist = 3\ngreylist_seconds = 1\nreject = 20");
        let rule = "[[listener.rule]]\nrecipient = [\"abuse@*\"]\nspam = { greylist = 10 }\n";
        let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), &format!("{BEHIND_PROXY}\n{rule}"));
        let (to, money) = (&["c@d.example"][..], mail("money"));
        assert!(send(&gateway, "192.0.2.7", to, &money).starts_with(GREY), "{isolation}");
        gateway.wait_for_log("Greylisted");
        // The next server of the same prefix brings it once it may.
        let again = || {
            std::thread::sleep(std::time::Duration::from_millis(200));
            (send(&gateway, "192.0.2.8", to, &money) == "250 2.0.0 Taken").then_some(())
        };
        wait_for(again, "its time");
        assert_eq!(send(&gateway, "192.0.2.9", to, &money), "250 2.0.0 Taken", "it is known from now on");
        let others = &["c@d.example", "e@d.example"];
        assert!(send(&gateway, "192.0.2.7", others, &money).starts_with(GREY), "one of them is not");
        assert!(send(&gateway, "192.0.3.7", to, &money).starts_with(GREY), "nor is another prefix");
        assert_eq!(send(&gateway, "192.0.4.7", &["abuse@d.example"], &money), "250 2.0.0 Taken", "as its rule says");
        assert_eq!(send(&gateway, "192.0.4.7", to, &mail("news")), "250 2.0.0 Taken", "nothing is wrong with it");
    }
}

#[test]
fn who_is_known_otherwise_need_not_come_again_and_spam_is_refused_at_once() {
    let (site, sink) = (site(), Sink::start(Behaviour::default()));
    let head = head(site.path(), "process", "greylist = 2.5\nreject = 20");
    let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), BEHIND_PROXY);
    let to = &["c@d.example"][..];
    assert_eq!(send(&gateway, "127.0.0.1", to, &mail("money")), "250 2.0.0 Taken", "this machine");
    assert_eq!(send(&gateway, "192.0.2.7", to, &mail("known money")), "250 2.0.0 Taken", "a list has it");
    assert!(send(&gateway, "192.0.2.7", to, &mail("much")).starts_with("554 5.7.1"));
    assert!(send(&gateway, "192.0.2.7", to, &mail("money")).starts_with(GREY));
    // Where nobody can say who has waited, nobody has to.
    let broken = self::site();
    fs::create_dir(broken.path().join("ledger")).unwrap();
    fs::write(broken.path().join("ledger/learned.db"), "no database, whatever else it is").unwrap();
    let head = self::head(broken.path(), "process", "greylist = 2.5\nreject = 20");
    let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), BEHIND_PROXY);
    assert_eq!(send(&gateway, "192.0.2.7", to, &mail("money")), "250 2.0.0 Taken");
}

#[test]
fn a_mail_server_is_told_by_milter() {
    let site = site();
    let head = head(site.path(), "process", "greylist = 3\ngreylist_seconds = 1");
    let gateway =
        Gateway::with(&format!("threads = 1\n{head}[[listener]]\nprotocol = \"milter\"\naddress = \"127.0.0.1:0\"\n"));
    let mut server = Server::new(&gateway, true);
    let mut told = |words: &str| server.message(mail(words).as_bytes(), 1_000);
    let (letter, text) = told("money").pop().unwrap();
    assert!(letter == 'y' && text.starts_with(GREY), "{letter} {text}");
    assert_eq!(told("news").pop().unwrap().0, 'a');
    let again = || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        (told("money").pop().unwrap().0 == 'a').then_some(())
    };
    wait_for(again, "its time");
}

/// A real Postfix keeps what has to come again and brings it; its next mail goes at once.
#[test]
fn postfix_comes_again_and_need_not_the_next_time() {
    let is_root = fs::metadata("/proc/self").is_ok_and(|facts| facts.uid() == 0);
    if !Path::new("/usr/sbin/postfix").exists() || !is_root {
        eprintln!("skipped: postfix is not installed, or we are not root");
        return;
    }
    let (site, sink) = (site(), Sink::start(Behaviour::default()));
    let head = head(site.path(), "process", "greylist = 3\ngreylist_seconds = 3\nreject = 20");
    let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), BEHIND_PROXY);
    let front = in_front_of(gateway.address, "PROXY TCP4 192.0.2.7 127.0.0.1 1 25\r\n");
    // Its queue manager counts whole seconds: after one it may come back while the attempt before still has the file, and
    // then lets it lie for longer than anybody waits here.
    let postfix = Postfix::start(&format!(
        "relayhost = [127.0.0.1]:{}\nvirtual_mailbox_domains =\nqueue_run_delay = 1s\nminimal_backoff_time = 4s\n\
         maximal_backoff_time = 4s\n",
        front.port()
    ));
    let send = |mail: &str| {
        let reply = Wire::connect(([127, 0, 0, 1], postfix.port).into()).deliver(mail.as_bytes());
        reply.rsplit_once("queued as ").expect("Postfix takes it").1.to_string()
    };
    // What Postfix has logged of its attempts at a mail.
    let attempts = |id: &str| {
        let log = fs::read_to_string(postfix.folder.path().join("log")).unwrap_or_default();
        let of_it = log.lines().filter(|line| line.contains(id) && line.contains("status="));
        of_it.map(str::to_string).collect::<Vec<_>>()
    };
    let sent = |id: &str| {
        let is_sent = || attempts(id).last().is_some_and(|line| line.contains("status=sent")).then_some(());
        wait_for(is_sent, "Postfix to have sent it");
        attempts(id)
    };

    let first = send(&mail("money"));
    let told = sent(&first);
    let (last, before) = told.split_last().unwrap();
    assert!(!before.is_empty(), "the first attempt is not taken: {last}");
    let is_put_off = |line: &String| line.contains("status=deferred") && line.contains("451 4.7.1 Greylisted");
    assert!(before.iter().all(is_put_off), "{before:?}");
    let second = send(&mail("money again"));
    assert_eq!(sent(&second).len(), 1, "the second mail goes at once");
    assert_eq!(sink.wait(2).len(), 2, "each once");
}

/// Where what connects reaches `address` behind a line, as a proxy puts it in front: this machine is never a stranger.
fn in_front_of(address: SocketAddr, line: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let front = listener.local_addr().unwrap();
    let pump = |mut from: TcpStream, mut to: TcpStream| {
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    };
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let mut server = TcpStream::connect(address).unwrap();
            server.write_all(line.as_bytes()).unwrap();
            pump(client.try_clone().unwrap(), server.try_clone().unwrap());
            pump(server, client);
        }
    });
    front
}
