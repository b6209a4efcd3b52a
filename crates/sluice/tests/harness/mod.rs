//! Harness of the program tests: a gateway under test, a sink behind it, and conversations as on the wire.
#![allow(dead_code, reason = "each test program uses its own part of the harness")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sha2::Digest as _;
use tempfile::TempDir;

pub mod acme;
pub mod authenticator;
pub mod browser;
pub mod clock;
pub mod databases;
pub mod dns;
pub mod dovecot;
pub mod exim;
pub mod imap;
pub mod mailbox;
pub mod namespaces;
pub mod nginx;
pub mod opensmtpd;
pub mod postfix;
pub mod replicas;
pub mod sendmail;
pub mod services;
pub mod squid;
pub mod tls;
pub mod web;

/// How long anything may take before a test fails: far more than it ever does, since other loads share the machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The 68 bytes of the EICAR test file, put together here so that this source does not hold them.
pub fn eicar() -> Vec<u8> {
    [r"X5O!P%@AP[4\PZX54(P^)7CC)7}", "$EICAR-STANDARD-", "ANTIVIRUS-TEST-FILE!$H+H*"].concat().into_bytes()
}

/// A running `sluice serve`.
pub struct Gateway {
    child: Child,
    /// Where its first listener is.
    pub address: SocketAddr,
    /// Where all of them are.
    pub addresses: Vec<SocketAddr>,
    /// The line that it has printed when it was ready.
    pub ready: String,
    /// A folder of its own.
    pub folder: TempDir,
    /// Folders removed with it.
    others: Vec<TempDir>,
    log: Arc<Mutex<String>>,
}

impl Gateway {
    /// Starts a gateway with one SMTP listener that forwards to `forward`; `settings` are more lines for it.
    pub fn start(forward: &str, settings: &str) -> Gateway {
        Gateway::start_with("", "smtp", forward, settings)
    }

    /// The same with lines before the listener, and its protocol. `FOLDER` stands for the gateway's folder.
    pub fn start_with(head: &str, protocol: &str, forward: &str, settings: &str) -> Gateway {
        Gateway::with(&format!(
            "hostname = \"mx.test\"\nthreads = 1\n{head}\n[[listener]]\nprotocol = \"{protocol}\"\n\
             address = \"127.0.0.1:0\"\nforward = \"{forward}\"\n{settings}\n"
        ))
    }

    /// The same with a whole configuration.
    pub fn with(text: &str) -> Gateway {
        Gateway::with_file("--config", text)
    }

    /// The same with a file for this option.
    pub fn with_file(option: &str, text: &str) -> Gateway {
        Gateway::started(&[env!("CARGO_BIN_EXE_sluice")], option, text)
    }

    /// The same, started by these words, such as `env` with variables.
    pub fn with_words(words: &[String], text: &str) -> Gateway {
        let words: Vec<&str> = words.iter().map(String::as_str).chain([env!("CARGO_BIN_EXE_sluice")]).collect();
        Gateway::started(&words, "--config", text)
    }

    /// One with a whole configuration, and files in its folder.
    pub fn with_files(text: &str, files: &[(&str, String)]) -> Gateway {
        Gateway::begun(&[env!("CARGO_BIN_EXE_sluice")], "--config", text, files)
    }

    /// One with an SMTP listener, of another program.
    pub fn of_program(program: &Path, forward: &str) -> Gateway {
        Gateway::started(&[program.to_str().unwrap()], "--config", &one_listener(forward))
    }

    /// The same, started by these words.
    pub fn within(words: &[&str], forward: &str) -> Gateway {
        let words = [words, &[env!("CARGO_BIN_EXE_sluice")]].concat();
        Gateway::started(&words, "--config", &one_listener(forward))
    }

    fn started(words: &[&str], option: &str, text: &str) -> Gateway {
        Gateway::begun(words, option, text, &[])
    }

    fn begun(words: &[&str], option: &str, text: &str, files: &[(&str, String)]) -> Gateway {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).and_then(|()| std::fs::write(path, text)).unwrap();
        }
        let config = folder.path().join("sluice.toml");
        let mut text = text.replace("FOLDER", &folder.path().display().to_string());
        if !text.contains("refusal =") {
            // Tests are to see what was found.
            text = text.replace("[[listener]]\n", "[[listener]]\nrefusal = \"name\"\n");
        }
        std::fs::write(&config, text).unwrap();
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .arg("serve")
            // Tests are run as root where everything is thrown away afterwards.
            .arg("--allow-root")
            .arg(option)
            .arg(&config)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (mut errors, copy) = (child.stderr.take().unwrap(), log.clone());
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = errors.read(&mut piece) {
                copy.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..count]));
            }
        });
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let addresses: Vec<SocketAddr> = ready.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        assert!(!addresses.is_empty(), "not ready: {ready:?} {}", log.lock().unwrap());
        Gateway { child, address: addresses[0], addresses, ready, folder, others: Vec::new(), log }
    }

    /// The same, whose files are in this folder, too.
    pub fn owning(mut self, folder: TempDir) -> Gateway {
        self.others.push(folder);
        self
    }

    /// The process that serves clients.
    pub fn pid(&self) -> u32 {
        edge_of(self.child.id())
    }

    /// The process that was started.
    pub fn supervisor(&self) -> u32 {
        self.child.id()
    }

    /// Its log.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until the log holds `text`.
    pub fn wait_for_log(&self, text: &str) -> String {
        wait_for(
            || Some(self.log()).filter(|log| log.contains(text)),
            &format!("the log to hold {text:?}: {}", self.log()),
        )
    }

    /// Sends it a signal.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.supervisor().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// Kills all of its processes, so that none starts another.
    pub fn kill(&self) {
        let below = children_of(self.supervisor()).into_iter().map(|(pid, _)| pid);
        for pid in std::iter::once(self.supervisor()).chain(below) {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
        }
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> std::process::ExitStatus {
        let child = &mut self.child;
        wait_for(|| child.try_wait().unwrap(), "the gateway to end")
    }

    /// A new connection to it.
    pub fn connect(&self) -> Wire {
        Wire::connect(self.address)
    }

    /// The files below its folder.
    pub fn files(&self, below: &str) -> Vec<PathBuf> {
        files(&self.folder.path().join(below))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn one_listener(forward: &str) -> String {
    format!(
        "hostname = \"mx.test\"\nthreads = 1\n[[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\n\
         forward = \"{forward}\"\n"
    )
}

/// Whether a process is there that has not ended: one that was killed and that nobody has asked for yet has.
pub fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z") && !rest.starts_with(" X"))
}

/// The processes that a process has started and that run, each with its name.
pub fn children_of(pid: u32) -> Vec<(u32, String)> {
    let all = own_children_of(pid).into_iter();
    // Jails are copies of a process that is started for them.
    let with_copies = |(pid, name): (u32, String)| {
        let copies = if name == "sluice: jails" { own_children_of(pid) } else { Vec::new() };
        [vec![(pid, name)], copies].concat()
    };
    all.flat_map(with_copies).collect()
}

fn own_children_of(pid: u32) -> Vec<(u32, String)> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let pids: Vec<u32> =
        lists.flat_map(|list| list.split_whitespace().flat_map(str::parse).collect::<Vec<_>>()).collect();
    let name =
        |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned();
    pids.into_iter().filter(|&pid| is_running(pid)).map(|pid| (pid, name(pid))).collect()
}

/// The process that serves clients, of those that a supervisor has started: the youngest.
pub fn edge_of(supervisor: u32) -> u32 {
    let find =
        || children_of(supervisor).into_iter().filter(|(_, name)| name == "sluice: edge").map(|(pid, _)| pid).max();
    wait_for(find, "a process that serves clients")
}

/// All files below a folder, sorted.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut all: Vec<PathBuf> = entries
        .flat_map(|entry| {
            let path = entry.unwrap().path();
            if path.is_dir() { files(&path) } else { vec![path] }
        })
        .collect();
    all.sort();
    all
}

/// A port that nobody has, and that the system gives to nobody who asks for any: those lie above.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const FIRST: u16 = 12_000;
    const COUNT: u16 = 20_000;
    let start = std::process::id() % u32::from(COUNT);
    loop {
        let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + ((start + step) % u32::from(COUNT)) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Asks until there is an answer.
pub fn wait_for<T>(mut ask: impl FnMut() -> Option<T>, what: &str) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// One end of a conversation.
pub struct Wire {
    pub stream: TcpStream,
    reader: BufReader<Box<dyn Read + Send>>,
    writer: Box<dyn Write + Send>,
}

impl Wire {
    pub fn connect(address: SocketAddr) -> Wire {
        Wire::new(TcpStream::connect(address).unwrap())
    }

    pub fn new(stream: TcpStream) -> Wire {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let (reader, writer) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
        Wire { stream, reader: BufReader::new(Box::new(reader)), writer: Box::new(writer) }
    }

    /// The same connection after a handshake as a client, or as a server.
    pub fn secure(self, role: impl FnOnce(TcpStream) -> tls::Secured) -> Wire {
        let secured = role(self.stream.try_clone().unwrap());
        let reader = BufReader::new(Box::new(secured.clone()) as Box<dyn Read + Send>);
        Wire { stream: self.stream, reader, writer: Box::new(secured) }
    }

    /// A line without its end; empty at the end of the stream.
    pub fn line(&mut self) -> String {
        let mut line = Vec::new();
        let _ = self.reader.read_until(b'\n', &mut line);
        String::from_utf8_lossy(&line).trim_end().to_string()
    }

    /// A reply, all its lines joined by a space.
    pub fn reply(&mut self) -> String {
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            let more = line.as_bytes().get(3) == Some(&b'-');
            lines.push(line);
            if !more {
                return lines.join(" ");
            }
        }
    }

    /// All that comes until the other side closes.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = self.reader.read_to_end(&mut bytes);
        bytes
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).unwrap();
        self.writer.flush().unwrap();
    }

    /// Sends, if the other side is still there.
    pub fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.writer.write_all(bytes)?;
        self.writer.flush()
    }

    /// Lines up to the one that ends a reply of POP3, all with their line ends.
    pub fn lines_to_dot(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let mut line = Vec::new();
            self.reader.read_until(b'\n', &mut line).unwrap();
            match line.as_slice() {
                b".\r\n" => return all,
                b"" => panic!("cut off after {:?}", String::from_utf8_lossy(&all)),
                line => all.extend_from_slice(line.strip_prefix(b".").unwrap_or(line)),
            }
        }
    }

    /// Sends a command and returns the reply.
    pub fn command(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes());
        self.reply()
    }

    /// Exactly `count` bytes.
    pub fn exactly(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.reader.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// The same, if as many come.
    pub fn try_exactly(&mut self, bytes: &mut [u8]) -> std::io::Result<()> {
        self.reader.read_exact(bytes)
    }

    /// A line without its end, if it has one.
    pub fn whole_line(&mut self) -> Option<String> {
        let mut line = String::new();
        let _ = self.reader.read_line(&mut line);
        Some(line.strip_suffix("\r\n")?.to_string())
    }

    /// Plays a script: `C: ` lines are sent, `S: ` lines are expected; `*` at the end of an expectation stands for
    /// anything.
    pub fn talk(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.split_at(2) {
                ("C:", text) => self.send(format!("{}\r\n", text.strip_prefix(' ').unwrap_or(text)).as_bytes()),
                ("S:", text) => self.expect(text.trim_start()),
                _ => panic!("a script's line begins with C: or S:, not {line:?}"),
            }
        }
    }

    pub fn expect(&mut self, wanted: &str) {
        let reply = self.reply();
        let matches = match wanted.strip_suffix('*') {
            Some(start) => reply.starts_with(start),
            None => reply == wanted,
        };
        assert!(matches, "expected {wanted:?}, got {reply:?}");
    }

    /// From the greeting to the go-ahead for the content.
    pub fn begin_data(&mut self) {
        self.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<c@d>\nS: 250 *");
        self.talk("C: DATA\nS: 354 *");
    }

    /// Sends a mail from the greeting on and returns the reply to its end.
    pub fn deliver(&mut self, mail: &[u8]) -> String {
        self.talk("S: 220 *\nC: EHLO client.test\nS: 250-*");
        self.transaction(mail)
    }

    /// Sends a mail in an open session.
    pub fn transaction(&mut self, mail: &[u8]) -> String {
        self.talk("C: MAIL FROM:<a@client.test>\nS: 250 *\nC: RCPT TO:<b@mx.test>\nS: 250 *\nC: DATA\nS: 354 *");
        self.send(&stuffed(mail));
        self.send(b".\r\n");
        self.reply()
    }
}

/// A mail as it stands in DATA: dots doubled, a line end at its end.
pub fn stuffed(mail: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(mail.len() + 64);
    for line in mail.split_inclusive(|&byte| byte == b'\n') {
        if line.starts_with(b".") {
            out.push(b'.');
        }
        out.extend_from_slice(line);
    }
    if !out.ends_with(b"\r\n") {
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// A mail with one attachment in this transfer coding, which is already applied to `body`.
pub fn mail_with(coding: &str, name: &str, body: &str) -> Vec<u8> {
    format!(
        "From: a@client.test\r\nTo: b@mx.test\r\nSubject: test\r\n\
         Date: Sat, 21 Nov 2026 12:00:00 +0000\r\nMessage-ID: <test@client.test>\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=\"frontier\"\r\n\r\n\
         --frontier\r\nContent-Type: text/plain\r\n\r\nHello.\r\n\
         --frontier\r\nContent-Type: application/octet-stream; name=\"{name}\"\r\n\
         Content-Transfer-Encoding: {coding}\r\nContent-Disposition: attachment; filename=\"{name}\"\r\n\r\n\
         {body}\r\n--frontier--\r\n"
    )
    .into_bytes()
}

/// Base64 in lines of 76.
pub fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for line in bytes.chunks(57) {
        for group in line.chunks(3) {
            let word = group.iter().enumerate().fold(0u32, |word, (at, &byte)| word | u32::from(byte) << (16 - 8 * at));
            for at in 0..4 {
                let digit = ALPHABET[(word >> (18 - 6 * at) & 63) as usize];
                text.push(if at <= group.len() { digit.into() } else { '=' });
            }
        }
        text.push_str("\r\n");
    }
    text
}

/// A mail with one long part that is known by its digest only, so that its start goes out before it is found; and the
/// settings that look for it. The second line of the part stands for all of it.
pub fn found_at_its_end(folder: &Path) -> (Vec<u8>, String) {
    let body = "A line that is repeated very often.\r\n".repeat(10_000);
    let mail = String::from_utf8(mail_with("7bit", "big.txt", &body)).unwrap();
    let mail = mail.replacen("Content-Type: application/octet-stream", "Content-Type: text/plain", 1);
    let digest: String = sha2::Sha256::digest(body.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let signature = folder.join("late.hsb");
    std::fs::write(&signature, format!("{digest}:{}:Test.Whole\n", body.len())).unwrap();
    let head = format!("[resources]\nhead_window_bytes = 32768\n[database]\npaths = [\"{}\"]\n", signature.display());
    (mail.into_bytes(), head)
}

/// A mail that arrived at the sink.
#[derive(Debug, Clone)]
pub struct Arrived {
    pub from: String,
    pub to: Vec<String>,
    /// As it was sent, dots undoubled.
    pub content: Vec<u8>,
}

impl Arrived {
    /// The content after the fields that the gateway adds.
    pub fn original(&self) -> &[u8] {
        let at = self.content.windows(5).position(|five| five == b"From:").expect("a From field");
        &self.content[at..]
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.content).into()
    }
}

/// How a sink behaves.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    /// Extensions besides PIPELINING and 8BITMIME.
    pub extensions: &'static [&'static str],
    /// Speaks LMTP.
    pub lmtp: bool,
    /// Recipients that contain this are refused.
    pub refuse: Option<&'static str>,
    /// Recipients that contain this are deferred.
    pub defer: Option<&'static str>,
    /// How long the answer to a recipient takes.
    pub thinks: Duration,
    /// Recipients that are refused before the connection is closed.
    pub refusals: Option<usize>,
    /// Mails of a connection before it is closed by 421.
    pub mails_max: Option<usize>,
    /// Closes the connection at this command.
    pub close_at: Option<&'static str>,
    /// Closes the connection after this many bytes of content.
    pub close_after_bytes: Option<usize>,
    /// Stops reading content after this many bytes.
    pub stall_after_bytes: Option<usize>,
    /// Gives so many replies to the end of the content, says nothing for so long, and closes the connection.
    pub replies: Option<(usize, Duration)>,
    /// The reply to the end of the content.
    pub final_reply: Option<&'static str>,
    /// Has a certificate.
    pub tls: Option<SinkTls>,
    /// Waits for a line of the PROXY protocol in front of everything.
    pub proxy: bool,
    /// Takes mail only from whoever has logged in: by PLAIN or LOGIN, as tim with the password `secret`.
    pub login: bool,
}

/// How a sink encrypts.
#[derive(Clone)]
pub struct SinkTls {
    /// Certificate shown.
    pub certificate: Arc<tls::Certificate>,
    /// From the first byte on; otherwise at STARTTLS.
    pub implicit: bool,
    /// Text that an attacker inserts after the reply to STARTTLS.
    pub injected: &'static str,
}

impl std::fmt::Debug for SinkTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SinkTls")
    }
}

/// A server that takes mail and keeps it.
#[derive(Clone)]
pub struct Sink {
    pub address: SocketAddr,
    state: Arc<Mutex<SinkState>>,
}

#[derive(Default)]
struct SinkState {
    mails: Vec<Arrived>,
    unfinished: Vec<Arrived>,
    commands: Vec<String>,
    clients: Vec<SocketAddr>,
    content_bytes: usize,
}

impl Sink {
    pub fn start(behaviour: Behaviour) -> Sink {
        Sink::at("127.0.0.1:0", behaviour)
    }

    /// The same at an address.
    pub fn at(address: &str, behaviour: Behaviour) -> Sink {
        let listener = TcpListener::bind(address).unwrap();
        let sink = Sink { address: listener.local_addr().unwrap(), state: Arc::default() };
        let shared = sink.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (sink, behaviour, stream) = (shared.clone(), behaviour.clone(), stream.unwrap());
                sink.state.lock().unwrap().clients.push(stream.peer_addr().unwrap());
                std::thread::spawn(move || sink.session(Wire::new(stream), &behaviour));
            }
        });
        sink
    }

    /// The next hop's name in a configuration.
    pub fn forward(&self) -> String {
        format!("smtp://{}", self.address)
    }

    /// Mails that arrived whole.
    pub fn mails(&self) -> Vec<Arrived> {
        self.state.lock().unwrap().mails.clone()
    }

    /// The oldest mail that arrived, which is forgotten.
    pub fn take(&self) -> Option<Arrived> {
        let mails = &mut self.state.lock().unwrap().mails;
        (!mails.is_empty()).then(|| mails.remove(0))
    }

    /// Mails whose end never came.
    pub fn unfinished(&self) -> Vec<Arrived> {
        self.state.lock().unwrap().unfinished.clone()
    }

    /// Bytes of content that have come by DATA, of mails under way too.
    pub fn content_bytes(&self) -> usize {
        self.state.lock().unwrap().content_bytes
    }

    /// All commands that were given.
    pub fn commands(&self) -> Vec<String> {
        self.state.lock().unwrap().commands.clone()
    }

    /// Where connections came from.
    pub fn clients(&self) -> Vec<SocketAddr> {
        self.state.lock().unwrap().clients.clone()
    }

    /// Waits for this many mails.
    pub fn wait(&self, count: usize) -> Vec<Arrived> {
        wait_for(|| Some(self.mails()).filter(|mails| mails.len() >= count), &format!("{count} mails"))
    }

    fn session(&self, mut wire: Wire, behaviour: &Behaviour) {
        if let Some(tls) = behaviour.tls.as_ref().filter(|tls| tls.implicit) {
            wire = wire.secure(tls.certificate.server());
        }
        if behaviour.proxy {
            let line = wire.line();
            self.state.lock().unwrap().commands.push(line);
        }
        let _ = wire.writer.write_all(b"220 sink.test ESMTP\r\n");
        let mut mail = Arrived { from: String::new(), to: Vec::new(), content: Vec::new() };
        let (mut logged_in, mut refused, mut begun) = (!behaviour.login, 0, 0);
        loop {
            let line = wire.line();
            if line.is_empty() {
                break;
            }
            self.state.lock().unwrap().commands.push(line.clone());
            let verb = line.split([' ', ':']).next().unwrap().to_ascii_uppercase();
            if behaviour.close_at == Some(verb.as_str()) {
                return;
            }
            let reply = match verb.as_str() {
                "EHLO" | "LHLO" => {
                    let more: String = behaviour.extensions.iter().map(|name| format!("250-{name}\r\n")).collect();
                    format!("250-sink.test\r\n{more}250-PIPELINING\r\n250 8BITMIME\r\n")
                }
                "STARTTLS" => {
                    let tls = behaviour.tls.as_ref().unwrap();
                    let _ = wire.writer.write_all(format!("220 go\r\n{}", tls.injected).as_bytes());
                    wire = wire.secure(tls.certificate.server());
                    continue;
                }
                "AUTH" => {
                    let (said, reply) = log_in(&mut wire, &line);
                    self.state.lock().unwrap().commands.extend(said);
                    logged_in |= reply.starts_with("235");
                    reply.into()
                }
                "MAIL" if !logged_in => "530 5.7.0 Log in first\r\n".into(),
                "RCPT" if !logged_in => "503 5.5.1 No sender\r\n".into(),
                "MAIL" if behaviour.mails_max == Some(begun) => {
                    let _ = wire.writer.write_all(b"421 4.7.0 Enough of you\r\n");
                    return;
                }
                "MAIL" => {
                    begun += 1;
                    mail = Arrived { from: path(&line), to: Vec::new(), content: Vec::new() };
                    "250 2.1.0 Ok\r\n".into()
                }
                "RCPT" if behaviour.defer.is_some_and(|name| line.contains(name)) => "450 4.2.0 Later\r\n".into(),
                "RCPT" if behaviour.refuse.is_some_and(|name| line.contains(name)) => {
                    std::thread::sleep(behaviour.thinks);
                    refused += 1;
                    if behaviour.refusals.is_some_and(|most| refused > most) {
                        let _ = wire.writer.write_all(b"421 4.7.0 Too many errors\r\n");
                        return;
                    }
                    "550 5.1.1 No such user\r\n".into()
                }
                "RCPT" => {
                    mail.to.push(path(&line));
                    "250 2.1.5 Ok\r\n".into()
                }
                "DATA" => {
                    let _ = wire.writer.write_all(b"354 Go ahead\r\n");
                    match self.content(&mut wire, &mut mail, behaviour) {
                        true => self.done(&mut mail, behaviour),
                        // Also where nothing of it has come yet.
                        false => return self.state.lock().unwrap().unfinished.push(mail),
                    }
                }
                "BDAT" => {
                    let words: Vec<&str> = line.split(' ').collect();
                    mail.content.extend(wire.exactly(words[1].parse().unwrap()));
                    if words.len() > 2 { self.done(&mut mail, behaviour) } else { "250 2.0.0 Ok\r\n".into() }
                }
                "QUIT" => {
                    let _ = wire.writer.write_all(b"221 2.0.0 Bye\r\n");
                    return;
                }
                "RSET" => {
                    mail.content.clear();
                    "250 2.0.0 Ok\r\n".into()
                }
                _ => "250 2.0.0 Ok\r\n".into(),
            };
            if wire.writer.write_all(reply.as_bytes()).is_err() {
                break;
            }
            if let Some((_, silence)) = behaviour.replies.filter(|_| reply.contains("Taken")) {
                std::thread::sleep(silence);
                break;
            }
        }
        if !mail.content.is_empty() {
            self.state.lock().unwrap().unfinished.push(mail);
        }
    }

    /// Reads content up to its end; whether that came.
    fn content(&self, wire: &mut Wire, mail: &mut Arrived, behaviour: &Behaviour) -> bool {
        loop {
            let mut line = Vec::new();
            if !matches!(wire.reader.read_until(b'\n', &mut line), Ok(1..)) || !line.ends_with(b"\n") {
                mail.content.extend(line);
                return false;
            }
            if line == b".\r\n" {
                return true;
            }
            self.state.lock().unwrap().content_bytes += line.len();
            mail.content.extend_from_slice(line.strip_prefix(b".").unwrap_or(&line));
            if behaviour.close_after_bytes.is_some_and(|most| mail.content.len() > most) {
                return false;
            }
            if behaviour.stall_after_bytes.is_some_and(|most| mail.content.len() > most) {
                std::thread::sleep(PATIENCE);
            }
        }
    }

    fn done(&self, mail: &mut Arrived, behaviour: &Behaviour) -> String {
        let reply = behaviour.final_reply.unwrap_or("250 2.0.0 Taken");
        if reply.starts_with('2') {
            self.state.lock().unwrap().mails.push(mail.clone());
        }
        mail.content.clear();
        let count = if behaviour.lmtp { mail.to.len() } else { 1 };
        format!("{reply}\r\n").repeat(behaviour.replies.map_or(count, |(replies, _)| replies))
    }
}

/// Response of tim for PLAIN: `\0tim\0secret`.
pub const PLAIN: &str = "AHRpbQBzZWNyZXQ=";

/// Responses of tim for LOGIN: `tim` and `secret`.
pub const LOGIN: [&str; 2] = ["dGlt", "c2VjcmV0"];

/// Lines of an exchange, and the reply to it.
fn log_in(wire: &mut Wire, line: &str) -> (Vec<String>, &'static str) {
    let words: Vec<String> = line.split(' ').skip(1).map(String::from).collect();
    let questions: &[&str] = if words[0] == "PLAIN" { &[""] } else { &["VXNlcm5hbWU6", "UGFzc3dvcmQ6"] };
    let mut said = words[1..].to_vec();
    for question in &questions[said.len()..] {
        let _ = wire.writer.write_all(format!("334 {question}\r\n").as_bytes());
        let _ = wire.writer.flush();
        said.push(wire.line());
        if said.last().unwrap() == "*" {
            return (said, "501 5.7.0 Given up\r\n");
        }
    }
    let right = if words[0] == "PLAIN" { said == [PLAIN] } else { said == LOGIN };
    (said, if right { "235 2.7.0 Welcome\r\n" } else { "535 5.7.8 Wrong\r\n" })
}

fn path(line: &str) -> String {
    let start = line.find('<').map_or(0, |at| at + 1);
    line[start..].split('>').next().unwrap_or_default().to_string()
}
