//! Processes that are killed at random while mail comes in by submission and by the maildrop, and goes out to servers that defer, refuse, hang,
//! reset connections and cut TLS: every mail that was accepted arrives or comes back, and twice only where an answer may have been lost.
//!
//! Eight kills in the gate; `SLUICE_KILLS=300` for more of them, `SLUICE_SEED` to repeat a run's choices.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::harness::imap::ask;
use crate::harness::tls::Certificate;
use crate::harness::{Gateway, Wire, base64, children_of, free_port, is_running, wait_for};

/// How servers behave in every other session; in the others they take mail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    Takes,
    Defers,
    /// In every session: a refusal stands.
    Refuses,
    Hangs,
    Resets,
    CutsTls,
}

const MANNERS: [(&str, Manner); 6] = [
    ("takes.test", Manner::Takes),
    ("defers.test", Manner::Defers),
    ("refuses.test", Manner::Refuses),
    ("hangs.test", Manner::Hangs),
    ("resets.test", Manner::Resets),
    ("cuts.test", Manner::CutsTls),
];

/// Commands at which a session may end.
const STAGES: [&str; 6] = ["EHLO", "MAIL", "RCPT", "DATA", "content", "dot"];

/// How long a server that hangs says nothing before it is gone.
const HANGS: Duration = Duration::from_millis(700);

/// How long the queue may take to run empty at the end.
const DRAIN_WAIT: Duration = Duration::from_secs(600);

/// Numbers in an order that a seed repeats (xorshift).
#[derive(Clone)]
struct Random(Arc<AtomicU64>);

impl Random {
    fn new() -> Random {
        let seed = std::env::var("SLUICE_SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) << 20 | 1);
        eprintln!("SLUICE_SEED={seed}");
        Random(Arc::new(AtomicU64::new(seed)))
    }

    fn below(&self, count: usize) -> usize {
        let step = |mut state: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^ state << 17
        };
        let before = self.0.fetch_update(SeqCst, SeqCst, |state| Some(step(state))).unwrap();
        (step(before) >> 33) as usize % count
    }
}

/// A mail for one recipient.
type Key = (String, String);

/// When the end of a mail had come, and whether that was answered.
type Arrival = (Instant, bool);

/// Mails received by the servers.
#[derive(Clone)]
struct World {
    arrivals: Arc<Mutex<HashMap<Key, Vec<Arrival>>>>,
    certificate: Arc<Certificate>,
    random: Random,
}

impl World {
    fn start(random: &Random) -> (World, Vec<(String, SocketAddr)>) {
        let certificate = Arc::new(Certificate::of("cuts.test"));
        let world = World { arrivals: Arc::default(), certificate, random: random.clone() };
        let serve = |(domain, manner): (&str, Manner)| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let (address, world) = (listener.local_addr().unwrap(), world.clone());
            std::thread::spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    let world = world.clone();
                    // Its client may be killed at any time.
                    std::thread::spawn(move || _ = world.session(stream, manner));
                }
            });
            (domain.to_owned(), address)
        };
        let routes = MANNERS.map(serve).into();
        (world, routes)
    }

    fn session(&self, stream: TcpStream, manner: Manner) -> io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let misbehaves = self.random.below(2) == 0;
        let stage = STAGES[self.random.below(STAGES.len())];
        let ends_at = |at: &str| misbehaves && at == stage && matches!(manner, Manner::Hangs | Manner::Resets);
        let end = || match manner {
            Manner::Hangs => std::thread::sleep(HANGS),
            _ => _ = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)),
        };
        let mut wire: Box<dyn Conversation> = Box::new(Clear::new(&stream)?);
        wire.say("220 world.test ESMTP\r\n")?;
        let mut to = Vec::new();
        loop {
            let line = wire.line()?;
            let verb = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
            if ends_at(&verb) {
                end();
                return Ok(());
            }
            match verb.as_str() {
                "EHLO" if manner == Manner::CutsTls => {
                    wire.say("250-world.test\r\n250-PIPELINING\r\n250 STARTTLS\r\n")?
                }
                "EHLO" => wire.say("250-world.test\r\n250-PIPELINING\r\n250 8BITMIME\r\n")?,
                "STARTTLS" => {
                    wire.say("220 go\r\n")?;
                    if misbehaves {
                        // What it hears of the handshake is in vain.
                        let mut some = [0; 5];
                        return (&stream).read_exact(&mut some).map(|()| end());
                    }
                    wire = Box::new(Encrypted(BufReader::new(self.certificate.server()(stream.try_clone()?))));
                }
                "MAIL" | "RSET" => {
                    to.clear();
                    wire.say("250 2.0.0 Ok\r\n")?;
                }
                "RCPT" if manner == Manner::Refuses => wire.say("550 5.1.1 Nobody here\r\n")?,
                "RCPT" if manner == Manner::Defers && misbehaves => wire.say("450 4.2.0 Later\r\n")?,
                "RCPT" => {
                    to.push(line.split(['<', '>']).nth(1).unwrap_or_default().to_owned());
                    wire.say("250 2.1.5 Ok\r\n")?;
                }
                "DATA" => {
                    wire.say("354 go\r\n")?;
                    let mut name = String::new();
                    loop {
                        let line = wire.line()?;
                        if line == "." {
                            break;
                        }
                        if ends_at("content") {
                            end();
                            return Ok(());
                        }
                        name = line.strip_prefix("Subject: ").map_or(name, str::to_owned);
                    }
                    let is_lost = ends_at("dot");
                    let now = Instant::now();
                    let is_answered = !is_lost && wire.say("250 2.0.0 Taken\r\n").is_ok();
                    let mut arrivals = self.arrivals.lock().unwrap();
                    to.drain(..)
                        .for_each(|to| arrivals.entry((name.clone(), to)).or_default().push((now, is_answered)));
                    drop(arrivals);
                    if is_lost {
                        end();
                        return Ok(());
                    }
                }
                "QUIT" => return wire.say("221 2.0.0 Bye\r\n"),
                _ => wire.say("250 2.0.0 Ok\r\n")?,
            }
        }
    }
}

/// A side of a conversation in lines.
trait Conversation {
    /// The next line, without its end; an error at the end of the connection.
    fn line(&mut self) -> io::Result<String>;
    fn say(&mut self, text: &str) -> io::Result<()>;

    /// The last line of the reply to a command.
    fn ask(&mut self, command: &str) -> io::Result<String> {
        self.say(&format!("{command}\r\n"))?;
        loop {
            let line = self.line()?;
            if line.as_bytes().get(3) != Some(&b'-') {
                return Ok(line);
            }
        }
    }
}

fn line_of(reader: &mut impl io::BufRead) -> io::Result<String> {
    let mut line = String::new();
    match reader.read_line(&mut line)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line.trim_end().to_owned()),
    }
}

struct Clear(BufReader<TcpStream>);

impl Clear {
    fn new(stream: &TcpStream) -> io::Result<Clear> {
        stream.set_nodelay(true)?;
        Ok(Clear(BufReader::new(stream.try_clone()?)))
    }
}

impl Conversation for Clear {
    fn line(&mut self) -> io::Result<String> {
        line_of(&mut self.0)
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.0.get_mut().write_all(text.as_bytes())
    }
}

struct Encrypted<S: Read + Write>(BufReader<S>);

impl<S: Read + Write> Conversation for Encrypted<S> {
    fn line(&mut self) -> io::Result<String> {
        line_of(&mut self.0)
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.0.get_mut().write_all(text.as_bytes())?;
        self.0.get_mut().flush()
    }
}

/// A site whose files outlive its processes.
struct Site {
    folder: tempfile::TempDir,
    smtp: SocketAddr,
    imap: SocketAddr,
    settings: String,
}

impl Site {
    fn new(routes: &[(String, SocketAddr)]) -> Site {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display().to_string();
        let mut add = Command::new(env!("CARGO_BIN_EXE_sluice"));
        add.args(["account", "--accounts", &format!("{at}/accounts"), "add", "ann@here.test"]);
        let mut child = add.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"secret\n").unwrap();
        assert!(child.wait().unwrap().success());
        let [smtp, imap] = [free_port(), free_port()].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let routes: String = routes.iter().map(|(domain, at)| format!("\"{domain}\" = \"smtp://{at}\"\n")).collect();
        let settings = format!(
            "hostname = \"mx.test\"\nthreads = 1\n[store]\nfolder = \"{at}/store\"\nsize = \"512M\"\naccounts = \"{at}/accounts\"\n\
             imap = [\"{imap}\"]\nrelay = \"mx\"\nmaildrop = \"{at}/maildrop\"\n\
             maildrop_trusted = [\"{}\"]\n\
             [store.queue]\nretry_first_seconds = 1\nretry_longest_seconds = 2\nwarning_seconds = 0\nrecipients_hour_max = 0\n\
             [store.queue.routes]\n{routes}\
             [[listener]]\nprotocol = \"smtp\"\naddress = \"{smtp}\"\nforward = \"store:\"\nauth = \"any\"\n",
            String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap().trim()
        );
        std::fs::write(folder.path().join("sluice.toml"), &settings).unwrap();
        Site { folder, smtp, imap, settings }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn queue(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        let output = command.arg("queue").args(arguments).arg("--store").arg(self.path("store/mail")).output().unwrap();
        // Without an answer it is not known whether something waits.
        let said = if output.status.code() < Some(2) { output.stdout } else { output.stderr };
        String::from_utf8_lossy(&said).into_owned()
    }

    /// The mails and recipients that have come back to ann.
    fn returned(&self) -> Vec<Key> {
        let mut wire = Wire::connect(self.imap);
        wire.line();
        assert!(ask(&mut wire, "LOGIN ann@here.test secret").status.starts_with("OK"));
        ask(&mut wire, "SELECT INBOX");
        let notices = ask(&mut wire, "UID FETCH 1:* BODY.PEEK[]").literals;
        let key = |notice: &Vec<u8>| {
            let text = String::from_utf8_lossy(notice);
            let to = text.split("\r\nFinal-Recipient: rfc822; ").nth(1)?.split("\r\n").next()?;
            let name = text.rsplit("\r\nSubject: ").next()?.split("\r\n").next()?;
            Some((name.to_owned(), to.to_owned()))
        };
        notices.iter().filter_map(key).collect()
    }
}

/// Mails that are handed in until it ends.
struct Load {
    ended: Arc<AtomicBool>,
    accepted: Arc<Mutex<HashSet<Key>>>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Load {
    fn start(site: &Arc<Site>, random: &Random) -> Load {
        let mut load = Load { ended: Arc::default(), accepted: Arc::default(), threads: Vec::new() };
        for at in 0..3 {
            let (site, ended, accepted, random) =
                (site.clone(), load.ended.clone(), load.accepted.clone(), random.clone());
            let mut count = 0;
            load.threads.push(std::thread::spawn(move || {
                while !ended.load(SeqCst) {
                    // A connection that is lost is followed by another: a mail without an answer may have been taken or not.
                    if session(&site, &format!("s{at}"), &mut count, &ended, &accepted, &random).is_err() {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
            }));
        }
        let (site, ended, accepted, random) = (site.clone(), load.ended.clone(), load.accepted.clone(), random.clone());
        load.threads.push(std::thread::spawn(move || {
            for count in 0.. {
                if ended.load(SeqCst) {
                    break;
                }
                command(&site, &format!("c{count}"), &accepted, &random);
            }
        }));
        load
    }

    fn count(&self) -> usize {
        self.accepted.lock().unwrap().len()
    }

    /// Waits until so many more were accepted.
    fn wait(&self, more: usize) {
        let wanted = self.count() + more;
        wait_for(|| (self.count() >= wanted).then_some(()), "mails to be accepted");
    }

    fn end(self) -> HashSet<Key> {
        self.ended.store(true, SeqCst);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        Arc::try_unwrap(self.accepted).unwrap().into_inner().unwrap()
    }
}

/// One or two recipients, in different domains.
fn recipients(random: &Random) -> Vec<String> {
    let first = random.below(MANNERS.len());
    let second = (first + 1 + random.below(MANNERS.len() - 1)) % MANNERS.len();
    let all = [first, second].map(|at| format!("u@{}", MANNERS[at].0));
    all[..1 + random.below(2)].to_vec()
}

/// Hands in mails over one connection.
fn session(
    site: &Site,
    name: &str,
    count: &mut usize,
    ended: &AtomicBool,
    accepted: &Mutex<HashSet<Key>>,
    random: &Random,
) -> io::Result<()> {
    let stream = TcpStream::connect(site.smtp)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut wire = Clear::new(&stream)?;
    wire.line()?;
    wire.ask("EHLO client.test")?;
    if !wire.ask(&format!("AUTH PLAIN {}", base64(b"\0ann@here.test\0secret").trim_end()))?.starts_with("235") {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    while !ended.load(SeqCst) {
        *count += 1;
        let (name, to) = (format!("{name}-{count}"), recipients(random));
        wire.ask("MAIL FROM:<ann@here.test>")?;
        for to in &to {
            wire.ask(&format!("RCPT TO:<{to}>"))?;
        }
        if !wire.ask("DATA")?.starts_with("354") {
            wire.ask("RSET")?;
            continue;
        }
        wire.say(&format!("Subject: {name}\r\n\r\n{}", "a line of the body\r\n".repeat(50)))?;
        if wire.ask(".")?.starts_with("250") {
            accepted.lock().unwrap().extend(to.into_iter().map(|to| (name.clone(), to)));
        }
    }
    Ok(())
}

/// Hands in a mail by a command, which may be killed, too.
fn command(site: &Site, name: &str, accepted: &Mutex<HashSet<Key>>, random: &Random) {
    let to = recipients(random);
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.arg("sendmail").arg("-C").arg(site.path("sluice.toml")).args(["-i", "-f", "ann@here.test"]).args(&to);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let _ = input.write_all(format!("Subject: {name}\n\nbody\n").as_bytes());
    if random.below(8) == 0 {
        let _ = child.kill();
    }
    drop(input);
    if child.wait().unwrap().success() {
        accepted.lock().unwrap().extend(to.into_iter().map(|to| (name.to_owned(), to)));
    }
}

/// Kills the edge, another process below the supervisor, or all of them; the gateway afterwards.
fn kill(gateway: Gateway, site: &Site, random: &Random) -> Gateway {
    let supervisor = gateway.supervisor();
    let below = children_of(supervisor);
    let (victim, is_edge) = match random.below(5) {
        0 => {
            gateway.kill();
            drop(gateway);
            below.iter().for_each(|&(pid, _)| wait_for(|| (!is_running(pid)).then_some(()), "the end of all"));
            // One that was just started has the sockets, too, until it finds nobody there.
            let are_free = || [site.smtp, site.imap].iter().all(|address| TcpListener::bind(address).is_ok());
            wait_for(|| are_free().then_some(()), "the sockets");
            return Gateway::with(&site.settings);
        }
        1 if !below.is_empty() => {
            let (pid, name) = &below[random.below(below.len())];
            (*pid, name == "sluice: edge")
        }
        _ => (gateway.pid(), true),
    };
    let killed = Command::new("kill").args(["-KILL", &victim.to_string()]).stderr(Stdio::null()).status();
    assert!(killed.is_ok());
    wait_for(|| (!is_running(victim)).then_some(()), "its end");
    if is_edge {
        wait_for(|| (gateway.pid() != victim).then_some(()), "another edge");
    }
    gateway
}

#[test]
fn what_was_accepted_arrives_or_comes_back_whoever_is_killed() {
    let rounds: usize = std::env::var("SLUICE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let random = Random::new();
    let (world, routes) = World::start(&random);
    let site = Arc::new(Site::new(&routes));
    let mut gateway = Gateway::with(&site.settings);
    let load = Load::start(&site, &random);
    let mut kills = Vec::new();
    for _ in 0..rounds {
        load.wait(3 + random.below(20));
        let begins = Instant::now();
        gateway = kill(gateway, &site, &random);
        kills.push((begins, Instant::now()));
    }
    load.wait(1);
    let accepted = load.end();
    let began = Instant::now();
    let maildrop = || std::fs::read_dir(site.path("maildrop")).unwrap();
    // A file whose command was killed stays for a day.
    let is_whole = |entry: io::Result<std::fs::DirEntry>| {
        use std::os::unix::fs::MetadataExt as _;
        entry.and_then(|entry| entry.metadata()).is_ok_and(|facts| facts.mode() & 0o040 != 0)
    };
    while maildrop().any(is_whole) || !site.queue(&["list"]).is_empty() {
        assert!(began.elapsed() < DRAIN_WAIT, "{}\n{}", site.queue(&["why"]), gateway.log());
        site.queue(&["flush"]);
        std::thread::sleep(Duration::from_millis(300));
    }
    let returned = site.returned();
    let came_back: HashSet<&Key> = returned.iter().collect();
    let arrivals = world.arrivals.lock().unwrap();
    let (mut lost_answers, mut lost_to_kills) = (0, 0);
    for key in &accepted {
        let arrived = arrivals.get(key).map_or(&[][..], Vec::as_slice);
        assert!(!arrived.is_empty() || came_back.contains(key), "{key:?} is lost");
        assert!(arrived.is_empty() || !came_back.contains(key), "{key:?} has arrived and come back");
    }
    for (key, arrived) in arrivals.iter() {
        for pair in arrived.windows(2) {
            let ((before, is_answered), (after, _)) = (pair[0], pair[1]);
            let was_killed = kills.iter().any(|&(begins, ends)| before <= ends && begins <= after);
            assert!(!is_answered || was_killed, "{key:?} has arrived twice, and no answer was lost");
            (lost_answers, lost_to_kills) =
                (lost_answers + usize::from(!is_answered), lost_to_kills + usize::from(is_answered));
        }
    }
    eprintln!(
        "{rounds} kills: {} recipients accepted, {} arrived, {} came back; twice: {lost_answers} whose answer was lost, {lost_to_kills} where the \
         process was killed before it had noted the answer, {} notices",
        accepted.len(),
        arrivals.len(),
        came_back.len(),
        returned.len() - came_back.len(),
    );
    // What is under way when a process is killed, at the most.
    assert!(lost_to_kills <= rounds * 100, "{lost_to_kills}");
}
