//! `sluice dnsbl`: the program answers by UDP and TCP, gives whole zones to whom it may, and reloads without losing a query.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proto::dns::{Data, Frames, Message, Request, class, flag, frame, kind};

const HEAD: &str = "$SOA 3600 ns.bl.test a.bl.test 5 1h 1h 1w 1h\n$NS 1h ns.bl.test\n";

/// The program, until it is dropped.
struct Server {
    child: Child,
    addresses: Vec<SocketAddr>,
}

impl Server {
    fn start(arguments: &[&str]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sluice"))
            .args(["dnsbl", "serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let listeners = 1 + arguments.iter().filter(|argument| **argument == "--listen").count();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let addresses =
            lines.take(listeners).map(|line| line.unwrap().rsplit_once(' ').unwrap().1.parse().unwrap()).collect();
        Server { child, addresses }
    }

    fn udp(&self, at: usize) -> UdpSocket {
        let any = if self.addresses[at].is_ipv6() { "[::1]:0" } else { "127.0.0.1:0" };
        let socket = UdpSocket::bind(any).unwrap();
        socket.connect(self.addresses[at]).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ask(socket: &UdpSocket, name: &str, kind: u16) -> Message {
    let request = Request::new(7, name.parse().unwrap(), kind, class::IN);
    socket.send(&request.packet()).unwrap();
    let mut bytes = [0; 4_096];
    let len = socket.recv(&mut bytes).unwrap();
    request.read(&bytes[..len]).unwrap()
}

/// All messages that answer a question by TCP: one, but for whole zones.
fn ask_by_tcp(address: SocketAddr, name: &str, kind: u16) -> Vec<Message> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let request = Request::new(7, name.parse().unwrap(), kind, class::IN);
    stream.write_all(&frame(&request.packet()).unwrap()).unwrap();
    let mut frames = Frames::new(65_535);
    let mut messages: Vec<Message> = Vec::new();
    let mut bytes = [0; 4_096];
    loop {
        let len = stream.read(&mut bytes).unwrap();
        assert!(len > 0, "closed");
        frames.feed(&bytes[..len]);
        while let Some(message) = frames.next() {
            messages.push(Message::parse(&message).unwrap());
        }
        let is_soa =
            |message: &Message| message.answers.last().is_some_and(|record| matches!(record.data, Data::Soa(_)));
        let records: usize = messages.iter().map(|message| message.answers.len()).sum();
        let is_done = kind != kind::AXFR || records == 0 || (records > 1 && messages.last().is_some_and(is_soa));
        if !messages.is_empty() && is_done {
            return messages;
        }
    }
}

fn spec(kind: &str, path: &Path) -> String {
    format!("bl.test:{kind}:{}", path.display())
}

#[test]
fn queries_are_answered_by_udp_and_tcp() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list");
    let many: String = (1..60).map(|index| format!("192.0.2.9 :{index}:{index} {}\n", "x".repeat(100))).collect();
    std::fs::write(&file, format!("{HEAD}:2:Listed $\n127.0.0.2\n192.0.2.0/29\n!192.0.2.3\n{many}")).unwrap();
    let mut arguments = vec!["--zone".to_owned(), spec("ip4set", &file), "--transfer-to".into(), "127.0.0.0/8".into()];
    let has_ip6 = UdpSocket::bind("[::1]:0").is_ok();
    if has_ip6 {
        arguments.extend(["--listen".into(), "[::1]:0".into()]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let server = Server::start(&arguments);
    for at in 0..server.addresses.len() {
        let socket = server.udp(at);
        let message = ask(&socket, "2.0.0.127.bl.test", kind::A);
        assert_eq!(message.answers[0].data, Data::A([127, 0, 0, 2].into()));
        assert_eq!(message.flags, flag::QR | flag::AA | flag::RD);
        assert_eq!(ask(&socket, "3.2.0.192.bl.test", kind::A).rcode(), 3);
        assert_eq!(ask(&socket, "2.2.0.192.bl.test", kind::TXT).answers[0].text().unwrap(), b"Listed 192.0.2.2");
        assert_eq!(ask(&socket, "other.test", kind::A).rcode(), 5);
        assert_eq!(ask(&socket, "2.0.192.p4.bl.test", kind::TXT).answers.len(), 1);
        let cut_off = ask(&socket, "9.2.0.192.bl.test", kind::TXT);
        assert_eq!(cut_off.flags & flag::TC, flag::TC);
        assert!(cut_off.answers.len() < 59);
        let whole = ask_by_tcp(server.addresses[at], "9.2.0.192.bl.test", kind::TXT);
        assert_eq!((whole.len(), whole[0].answers.len(), whole[0].flags & flag::TC), (1, 59, 0));
    }
    let zone = ask_by_tcp(server.addresses[0], "bl.test", kind::AXFR);
    let records: usize = zone.iter().map(|message| message.answers.len()).sum();
    assert!(records > 70, "{records} records");
    if has_ip6 {
        let refused = ask_by_tcp(server.addresses[1], "bl.test", kind::AXFR);
        assert_eq!((refused[0].rcode(), refused[0].answers.len()), (5, 0), "not of ::1");
    }
}

#[test]
fn a_reload_loses_no_query() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list");
    let write = |round: u8| {
        let more: String = (0..20_000).map(|index: u32| format!("10.{}.{}.1\n", index >> 8, index & 255)).collect();
        let text = format!("{HEAD}127.0.0.2 :{round}\n{more}");
        std::fs::write(folder.path().join("new"), text).unwrap();
        std::fs::rename(folder.path().join("new"), &file).unwrap();
    };
    write(1);
    let server = Server::start(&["--zone", &spec("ip4set", &file), "--check", "0"]);
    let stop = Arc::new(AtomicBool::new(false));
    let (socket, stopping) = (server.udp(0), stop.clone());
    let asking = std::thread::spawn(move || {
        let (mut asked, mut last) = (0_u32, 0);
        while !stopping.load(Ordering::Relaxed) {
            // Every query is answered, or this fails after ten seconds.
            let message = ask(&socket, "2.0.0.127.bl.test", kind::A);
            let Data::A(address) = message.answers[0].data else { panic!("{message:?}") };
            last = address.octets()[3];
            asked += 1;
        }
        (asked, last)
    });
    let socket = server.udp(0);
    for round in 2..8 {
        write(round);
        let signalled = Command::new("kill").args(["-HUP", &server.child.id().to_string()]).status().unwrap();
        assert!(signalled.success());
        let is_new = |message: Message| message.answers[0].data == Data::A([127, 0, 0, round].into());
        let waited = (0..600).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            is_new(ask(&socket, "2.0.0.127.bl.test", kind::A))
        });
        assert!(waited, "round {round} is not in force");
    }
    // Data that cannot be read leaves the old in force.
    std::fs::remove_file(&file).unwrap();
    Command::new("kill").args(["-HUP", &server.child.id().to_string()]).status().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    stop.store(true, Ordering::Relaxed);
    let (asked, last) = asking.join().unwrap();
    assert!(asked > 100, "{asked} queries");
    assert_eq!(last, 7);
}

#[test]
fn zones_are_looked_into() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list");
    std::fs::write(&file, ":4:Listed $\n192.0.2.0/24\nnonsense here\n").unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_sluice")).arg("dnsbl").args(arguments).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code(), text)
    };
    let zone = spec("ip4set", &file);
    let (status, text) = run(&["check", "--zone", &zone]);
    assert_eq!(status, Some(1));
    assert!(text.contains("1 listings") && text.contains(":3: not an address"), "{text}");
    assert_eq!(
        run(&["why", "192.0.2.7", "--zone", &zone]),
        (Some(0), "bl.test: 127.0.0.4\nbl.test: \"Listed 192.0.2.7\"\n".into())
    );
    assert_eq!(run(&["why", "192.0.3.7", "--zone", &zone]), (Some(1), "bl.test: not listed\n".into()));
    let (status, text) = run(&["serve", "--listen", "127.0.0.1:0", "--zone", "bl.test:ip4set:/nowhere/list"]);
    assert_eq!(status, Some(2));
    assert!(text.contains("/nowhere/list"), "{text}");
    assert_eq!(run(&["check", "--zone", "bl.test:ip5set:x"]).0, Some(2));
}

#[test]
fn a_reputation_is_noted_listed_and_forgiven() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        let output =
            command.args(["dnsbl", "reputation", "--folder"]).arg(folder.path()).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(run(&["standing", "192.0.2.7"]).0, Some(1));
    assert_eq!(run(&["note", "192.0.2.7", "infected"]).0, Some(0));
    assert_eq!(run(&["note", "192.0.2.7", "spam"]).0, Some(0));
    let (status, text) = run(&["why", "192.0.2.7"]);
    assert_eq!(status, Some(0));
    assert!(text.contains("listed, score 8.0, seen: spam 1, infected 1") || text.contains("score 7.9"), "{text}");
    let zone = spec("ip4set", &folder.path().join("ip4"));
    let server = Server::start(&["--zone", &zone, "--check", "1"]);
    let socket = server.udp(0);
    assert_eq!(ask(&socket, "7.2.0.192.bl.test", kind::A).answers[0].data, Data::A([127, 0, 0, 4].into()));
    assert_eq!(run(&["forgive", "192.0.2.7"]).0, Some(0));
    assert_eq!(run(&["forgive", "192.0.2.7"]).0, Some(1));
    let is_gone = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        ask(&socket, "7.2.0.192.bl.test", kind::A).rcode() == 3
    });
    assert!(is_gone, "it is still listed");
    assert_eq!(run(&["note", "192.0.2.7", "nonsense"]).0, Some(2));
}
