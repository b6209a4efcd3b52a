//! Two nodes on one store in PostgreSQL: mail and clients by each of them, and owners that are killed, paused, drained and moved.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::harness::databases::{Database, Kind};
use crate::harness::imap::ask;
use crate::harness::replicas::Replicas;
use crate::harness::{Gateway, Wire, children_of, free_port, stuffed, wait_for};

pub const SECRET: &str = "the secret of the test cluster";

pub struct Cluster {
    /// Lines of its table that say where the database is, and the file of authorities.
    database: String,
    authorities: String,
    pub server: Option<Database>,
}

impl Cluster {
    /// A cluster on one server, within TLS.
    pub fn start() -> Option<Cluster> {
        let server = Database::start(Kind::Postgresql)?;
        server.permit_schemas();
        let database = format!("database = \"{}\"\ntls = true\npassword_file = \"FOLDER/password\"", server.url());
        Some(Cluster { database, authorities: server.authorities(), server: Some(server) })
    }

    fn on(replicas: &Replicas) -> Cluster {
        let database = format!("database = \"{}\"", replicas.url());
        Cluster { database, authorities: "/etc/ssl/certs/ca-certificates.crt".into(), server: None }
    }

    pub fn text(&self, name: &str, more: &str) -> String {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let Cluster { database, authorities, .. } = self;
        format!(
            "hostname = \"mx.test\"\nthreads = 1\n[tls]\nauthorities = \"{authorities}\"\n\
             [store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\naccounts = \"FOLDER/accounts\"\nimap = [\"127.0.0.1:0\"]\n\
             [cluster]\nnode = \"{name}\"\naddress = \"{address}\"\n{database}\n\
             secret_file = \"FOLDER/secret\"\nlease_seconds = 2\n{more}\n\
             [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\ntrust = \"off\"\n"
        )
    }

    /// A node, of which one knows when it can be asked.
    fn node(&self, name: &str) -> Gateway {
        Gateway::with_files(&self.text(name, "synchronous = false"), &files(SECRET))
    }

    pub fn command(&self, node: &Gateway, words: &[&str]) -> (i32, String) {
        let config = node.folder.path().join("sluice.toml");
        let done = Command::new(env!("CARGO_BIN_EXE_sluice"))
            .arg("cluster")
            .args(words)
            .args(["--config", config.to_str().unwrap()])
            .output()
            .unwrap();
        let said = [done.stdout, done.stderr].concat();
        (done.status.code().unwrap(), String::from_utf8_lossy(&said).into_owned())
    }

    pub fn owner(&self, node: &Gateway) -> Option<String> {
        let (_, said) = self.command(node, &["status", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&said).ok()?;
        Some(status["store"]["owner"].as_str()?.to_owned())
    }

    pub fn wait_for_owner(&self, node: &Gateway, name: &str) {
        wait_for(
            || self.owner(node).filter(|owner| owner == name),
            &format!("{name} to have the store: {}", node.log()),
        );
    }
}

/// Secret, password of the database, and an account `tim`, `secret`.
pub fn files(secret: &str) -> [(&'static str, String); 3] {
    let account = "tim:{PLAIN}secret:\n".to_owned();
    [("secret", secret.into()), ("password", "pw\n".into()), ("accounts", account)]
}

/// Sends a mail; whether it was acknowledged.
pub fn send(address: SocketAddr, subject: &str) -> bool {
    let Ok(stream) = std::net::TcpStream::connect(address) else { return false };
    stream.set_read_timeout(Some(std::time::Duration::from_secs(40))).unwrap();
    let mut wire = Wire::new(stream);
    let mail = format!("Subject: {subject}\r\nMessage-ID: <{subject}@client.test>\r\n\r\nhello\r\n");
    let said = |wire: &mut Wire, line: &str| {
        wire.try_send(format!("{line}\r\n").as_bytes()).ok()?;
        reply(wire)
    };
    let talk = |wire: &mut Wire| {
        reply(wire).filter(|line| line.starts_with("220"))?;
        for line in ["EHLO client.test", "MAIL FROM:<a@client.test>", "RCPT TO:<tim@a.test>"] {
            said(wire, line).filter(|reply| reply.starts_with("250"))?;
        }
        said(wire, "DATA").filter(|reply| reply.starts_with("354"))?;
        wire.try_send(&stuffed(mail.as_bytes())).ok()?;
        said(wire, ".").filter(|reply| reply.starts_with("250"))
    };
    talk(&mut wire).is_some()
}

/// A reply; none if the connection ends.
fn reply(wire: &mut Wire) -> Option<String> {
    loop {
        let line = wire.whole_line()?;
        if line.as_bytes().get(3) != Some(&b'-') {
            return Some(line);
        }
    }
}

/// Subjects of all mails, as a client of this node sees them.
pub fn subjects(address: SocketAddr) -> Vec<String> {
    let mut wire = Wire::connect(address);
    assert!(wire.line().starts_with("* OK"));
    assert!(ask(&mut wire, "LOGIN tim secret").status.starts_with("OK"));
    assert!(ask(&mut wire, "SELECT INBOX").status.starts_with("OK"));
    let all = ask(&mut wire, "UID FETCH 1:* BODY.PEEK[HEADER.FIELDS (Subject)]");
    let subject = |literal: &Vec<u8>| {
        let text = String::from_utf8_lossy(literal);
        text.trim().strip_prefix("Subject: ").map(str::to_owned)
    };
    all.literals.iter().filter_map(subject).collect()
}

/// Every acknowledged mail is there once; others may be there.
fn check(address: SocketAddr, acknowledged: &BTreeSet<String>) {
    let found = subjects(address);
    let once: BTreeSet<String> = found.iter().cloned().collect();
    let lost: Vec<_> = acknowledged.difference(&once).collect();
    assert!(lost.is_empty(), "lost: {lost:?} of {}", acknowledged.len());
    assert_eq!(once.len(), found.len(), "given twice");
}

#[test]
fn each_node_serves_and_an_owner_that_is_killed_is_followed() {
    let Some(cluster) = Cluster::start() else { return };
    let a = cluster.node("a");
    cluster.wait_for_owner(&a, "a");
    let b = cluster.node("b");
    let mut acknowledged = BTreeSet::new();
    for number in 0..6 {
        let node = if number % 2 == 0 { &a } else { &b };
        let subject = format!("quiet-{number}");
        assert!(send(node.addresses[0], &subject), "{}", node.log());
        acknowledged.insert(subject);
    }
    check(a.addresses[1], &acknowledged);
    check(b.addresses[1], &acknowledged);
    let (status, said) = cluster.command(&a, &["check"]);
    assert!(status == 0 && said.contains("ok     node b: "), "{said}");

    // Mail comes in by b while a is killed.
    let mut load = Load::start(b.addresses[0], acknowledged);
    load.wait(5);
    a.kill();
    cluster.wait_for_owner(&b, "b");
    load.wait(5);
    check(b.addresses[1], &load.end().0);
}

/// The process that has the store, or waits for it.
pub fn store_of(node: &Gateway) -> u32 {
    let children = children_of(node.supervisor()).into_iter();
    children.filter(|(_, name)| name == "sluice: keep").map(|(pid, _)| pid).max().expect("a process of the store")
}

/// Mails that come in, one after the other.
struct Load {
    ended: Arc<AtomicBool>,
    acknowledged: Arc<Mutex<BTreeSet<String>>>,
    sender: Option<JoinHandle<usize>>,
}

impl Load {
    fn start(address: SocketAddr, acknowledged: BTreeSet<String>) -> Load {
        let (ended, known) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(acknowledged)));
        let sender = std::thread::spawn({
            let (ended, known) = (ended.clone(), known.clone());
            move || {
                let mut refused = 0;
                for number in (0..).take_while(|_| !ended.load(SeqCst)) {
                    let subject = format!("busy-{number}");
                    match send(address, &subject) {
                        true => _ = known.lock().unwrap().insert(subject),
                        false => refused += 1,
                    }
                }
                refused
            }
        });
        Load { ended, acknowledged: known, sender: Some(sender) }
    }

    /// Waits until so many more are acknowledged.
    fn wait(&self, count: usize) {
        let now = || self.acknowledged.lock().unwrap().len();
        let before = now();
        wait_for(|| (now() >= before + count).then_some(()), "mails to be acknowledged");
    }

    /// The mails that were acknowledged, and how many were not.
    fn end(&mut self) -> (BTreeSet<String>, usize) {
        self.ended.store(true, SeqCst);
        let refused = self.sender.take().unwrap().join().unwrap();
        (self.acknowledged.lock().unwrap().clone(), refused)
    }
}

#[test]
fn a_failover_of_the_database_is_a_pause_for_senders() {
    let Some(mut replicas) = Replicas::start() else { return };
    let cluster = Cluster::on(&replicas);
    let a = Gateway::with_files(&cluster.text("a", ""), &files(SECRET));
    cluster.wait_for_owner(&a, "a");
    let mut load = Load::start(a.addresses[0], BTreeSet::new());
    load.wait(5);
    replicas.fail_over();
    load.wait(5);
    let (acknowledged, refused) = load.end();
    assert_eq!(refused, 0, "{}", a.log());
    wait_for(|| std::panic::catch_unwind(|| subjects(a.addresses[1])).ok(), "mailboxes");
    check(a.addresses[1], &acknowledged);
    assert_eq!(cluster.owner(&a).as_deref(), Some("a"));
}

#[test]
fn owners_that_are_killed_and_paused_at_random_lose_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let rounds = std::env::var("SLUICE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let front = cluster.node("front");
    wait_for(|| (cluster.command(&front, &["drain", "front"]).0 == 0).then_some(()), "the node to be known");
    let mut nodes = vec![("a", cluster.node("a")), ("b", cluster.node("b"))];
    wait_for(|| cluster.owner(&front).filter(|owner| owner != "front"), "another owner");
    let mut load = Load::start(front.addresses[0], BTreeSet::new());
    for round in 0..rounds {
        load.wait(3 + round % 7);
        let owner = wait_for(|| cluster.owner(&front), "an owner");
        let Some(at) = nodes.iter().position(|(name, _)| *name == owner) else { continue };
        let (name, node) = nodes.remove(at);
        match round % 3 {
            0 | 1 => node.kill(),
            _ => {
                assert!(Command::new("kill").args(["-STOP", &store_of(&node).to_string()]).status().unwrap().success())
            }
        }
        let other = nodes[0].0;
        cluster.wait_for_owner(&front, other);
        load.wait(2);
        if round % 3 == 2 {
            let _ = Command::new("kill").args(["-CONT", &store_of(&node).to_string()]).status();
            node.wait_for_log("another node has the store");
            nodes.push((name, node));
        } else {
            nodes.push((name, cluster.node(name)));
        }
    }
    let (acknowledged, refused) = load.end();
    eprintln!("{rounds} owners ended: {} mails acknowledged, {refused} refused for now", acknowledged.len());
    check(nodes[0].1.addresses[1], &acknowledged);
}

#[test]
fn a_store_moves_and_a_drained_node_has_none() {
    let Some(cluster) = Cluster::start() else { return };
    let (a, b) = (cluster.node("a"), cluster.node("b"));
    wait_for(|| cluster.owner(&a), "an owner");
    for name in ["b", "a", "b"] {
        wait_for(|| (cluster.command(&a, &["move", name]).0 == 0).then_some(()), "the node to be known");
        cluster.wait_for_owner(&a, name);
        assert!(send(a.addresses[0], &format!("on-{name}")), "{}", a.log());
    }
    assert_eq!(cluster.command(&a, &["drain", "b"]).0, 0);
    cluster.wait_for_owner(&a, "a");
    assert_eq!(cluster.command(&a, &["drain", "b", "--undo"]).0, 0);
    assert_eq!(cluster.command(&a, &["move", "nobody"]).0, 2);
    assert_eq!(subjects(b.addresses[1]), ["on-b", "on-a", "on-b"]);
}

#[test]
fn two_machines_of_one_name_do_not_take_the_store_from_each_other() {
    let Some(cluster) = Cluster::start() else { return };
    let first = cluster.node("a");
    cluster.wait_for_owner(&first, "a");
    let second = cluster.node("a");
    second.wait_for_log("another node is called a");
    assert!(send(second.addresses[0], "handed over"), "{}", second.log());
    assert!(!first.log().contains("another node has the store"));
    first.kill();
    second.wait_for_log("this node has the store");
    assert_eq!(subjects(second.addresses[1]), ["handed over"]);
}

#[test]
fn an_owner_that_was_paused_writes_no_more_and_ends() {
    let Some(cluster) = Cluster::start() else { return };
    let a = cluster.node("a");
    cluster.wait_for_owner(&a, "a");
    let b = cluster.node("b");
    assert!(send(b.addresses[0], "before"));
    let store = store_of(&a).to_string();
    assert!(Command::new("kill").args(["-STOP", &store]).status().unwrap().success());
    cluster.wait_for_owner(&b, "b");
    assert!(send(b.addresses[0], "after"), "{}", b.log());
    assert!(Command::new("kill").args(["-CONT", &store]).status().unwrap().success());
    a.wait_for_log("another node has the store");
    // Another process of the store takes its place, which hands over to b.
    let found = wait_for(|| std::panic::catch_unwind(|| subjects(a.addresses[1])).ok(), "a to hand over");
    assert_eq!(found, ["before", "after"]);
    assert_eq!(cluster.owner(&b).as_deref(), Some("b"));
}

#[test]
fn a_store_goes_into_a_cluster_and_out_of_it() {
    let Some(cluster) = Cluster::start() else { return };
    let alone = Gateway::with_files(
        "hostname = \"mx.test\"\nthreads = 1\nisolation = \"none\"\n\
         [store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\naccounts = \"FOLDER/accounts\"\nimap = [\"127.0.0.1:0\"]\n\
         [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\ntrust = \"off\"\n",
        &files(SECRET),
    );
    assert!(send(alone.addresses[0], "alone"));
    let volume = alone.folder.path().join("store/mail");
    let mut alone = alone;
    alone.signal("TERM");
    alone.wait();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("sluice.toml");
    let text = cluster.text("a", "synchronous = false").replace("FOLDER", folder.path().to_str().unwrap());
    std::fs::write(&config, text).unwrap();
    for (name, text) in files(SECRET) {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let sluice = |words: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_sluice")).args(words).output().unwrap();
        let said = [done.stdout, done.stderr].concat();
        (done.status.code().unwrap(), String::from_utf8_lossy(&said).into_owned())
    };
    let words = ["cluster", "import", volume.to_str().unwrap(), "--config", config.to_str().unwrap()];
    let (status, said) = sluice(&words);
    assert!(status == 0 && said.contains("are in the cluster"), "{said}");
    let (status, said) = sluice(&words);
    assert!(status == 2 && said.contains("has a store already"), "{said}");
    let a = cluster.node("a");
    cluster.wait_for_owner(&a, "a");
    assert!(send(a.addresses[0], "together"), "{}", a.log());
    assert_eq!(subjects(a.addresses[1]), ["alone", "together"]);
    let out = folder.path().join("out");
    let (status, said) = cluster.command(&a, &["export", out.to_str().unwrap()]);
    assert_eq!(status, 0, "{said}");
    let (status, said) = sluice(&["store", "ls", out.to_str().unwrap(), "tim", "INBOX"]);
    assert!(status == 0 && said.lines().count() >= 2, "{said}");
}

#[test]
fn a_long_tail_becomes_blocks_which_a_new_node_reads() {
    const MAIL_BYTES: usize = 12 << 20;
    let Some(cluster) = Cluster::start() else { return };
    let server = cluster.server.as_ref().unwrap();
    let node = |name| {
        let text = cluster.text(name, "synchronous = false").replace("\"64M\"", "\"256M\"");
        Gateway::with_files(&text, &files(SECRET))
    };
    // What a former owner wrote, and no fold has, is in the blocks of the next one.
    let former = node("former");
    cluster.wait_for_owner(&former, "former");
    let early: Vec<String> = (0..3).map(|number| format!("early-{number}")).collect();
    early.iter().for_each(|subject| assert!(send(former.addresses[0], subject), "{}", former.log()));
    former.kill();
    let a = node("a");
    cluster.wait_for_owner(&a, "a");
    // A fold that a former owner did not finish, and one that a later owner has begun.
    server.say("insert into sluice.block values (1, 0, 1, 0, '\\x00'), (1, 0, 1000000, 1000, '\\x00')");
    let mut wire = Wire::connect(a.addresses[1]);
    assert!(wire.line().starts_with("* OK"));
    assert!(ask(&mut wire, "LOGIN tim secret").status.starts_with("OK"));
    let body = b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd\r\n".repeat(MAIL_BYTES / 64);
    for number in 0..6 {
        let head = format!("Subject: large-{number}\r\n\r\n");
        wire.send(format!("x APPEND INBOX {{{}}}\r\n", head.len() + body.len()).as_bytes());
        assert!(wire.line().starts_with('+'));
        wire.send(head.as_bytes());
        wire.send(&body);
        wire.send(b"\r\n");
        let done = wait_for(|| Some(wire.line()).filter(|line| line.starts_with("x ")), "APPEND");
        assert!(done.starts_with("x OK"), "{done}");
    }
    let stray = || server.say("select string_agg(epoch::text, ' ') from sluice.block where octet_length(bytes) = 1");
    let tail = || {
        let (_, said) = cluster.command(&a, &["status", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&said).unwrap();
        (status["store"]["tail_bytes"].as_u64().unwrap(), status["store"]["blocks"].as_u64().unwrap())
    };
    wait_for(|| Some(tail()).filter(|&(tail, blocks)| tail < 32 << 20 && blocks >= 64), "a fold");
    assert_eq!(stray().trim(), "1000");
    assert!(send(a.addresses[0], "behind the blocks"), "{}", a.log());
    a.kill();
    let b = node("b");
    cluster.wait_for_owner(&b, "b");
    let wanted: Vec<String> = (0..6).map(|number| format!("large-{number}")).collect();
    assert_eq!(subjects(b.addresses[1]), [early, wanted, vec!["behind the blocks".into()]].concat());
    let out = b.folder.path().join("store/mail.bak");
    let (status, said) = cluster.command(&b, &["export", out.to_str().unwrap()]);
    assert_eq!(status, 0, "{said}");
    let checked = Command::new(env!("CARGO_BIN_EXE_sluice")).args(["store", "check"]).arg(&out).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    assert!(b.folder.path().join("store/mail.marks").exists());
    let mut wire = Wire::connect(b.addresses[1]);
    assert!(wire.line().starts_with("* OK"));
    assert!(ask(&mut wire, "LOGIN tim secret").status.starts_with("OK"));
    assert!(ask(&mut wire, "SELECT INBOX").status.starts_with("OK"));
    let whole = ask(&mut wire, "UID FETCH 6 BODY.PEEK[TEXT]");
    assert!(whole.literals[0] == body, "a mail is other than it was");
}

#[test]
fn a_node_keeps_its_copy_when_the_database_is_another_one() {
    let Some(cluster) = Cluster::start() else { return };
    let a = cluster.node("a");
    cluster.wait_for_owner(&a, "a");
    assert!(send(a.addresses[0], "kept"));
    let marks = a.folder.path().join("store/mail.marks");
    a.kill();
    // As if the marks were those of a store that this database does not know.
    let text = std::fs::read_to_string(&marks).unwrap();
    let known = text.lines().find_map(|line| line.strip_prefix("volume ")).unwrap();
    let text = text.replace(known, &"0".repeat(known.len()));
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("store")).unwrap();
    std::fs::copy(a.folder.path().join("store/mail"), place.path().join("store/mail")).unwrap();
    std::fs::write(place.path().join("store/mail.marks"), &text).unwrap();
    let before = std::fs::read(place.path().join("store/mail")).unwrap();
    let store = format!("folder = \"{}/store\"", place.path().display());
    let config = cluster.text("a", "synchronous = false").replace("folder = \"FOLDER/store\"", &store);
    let again = Gateway::with_files(&config, &files(SECRET));
    again.wait_for_log("a copy of another cluster's store");
    assert!(std::fs::read(place.path().join("store/mail")).unwrap() == before);
}

#[test]
fn nothing_is_taken_where_one_server_alone_acknowledges() {
    let Some(cluster) = Cluster::start() else { return };
    let a = Gateway::with_files(&cluster.text("a", ""), &files(SECRET));
    a.wait_for_log("no synchronous standbys");
    let (status, said) = cluster.command(&a, &["check"]);
    assert!(status == 1 && said.contains("wrong  database: no synchronous standbys"), "{said}");
}

/// Runs `sluice sendmail` at a node.
fn command_sends(node: &Gateway, subject: &str) {
    use std::io::Write as _;
    let config = node.folder.path().join("sluice.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.arg("sendmail").arg("-C").arg(config).args(["-i", "tim@mx.test"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("Subject: {subject}\n\nbody\n").as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn mail_of_commands_and_commands_at_any_node_reach_the_owner() {
    let Some(cluster) = Cluster::start() else { return };
    let node = |name: &str| {
        let text = cluster.text(name, "synchronous = false");
        let text =
            text.replace("[store]\n", "[store]\nrelay = \"smtp://127.0.0.1:9\"\nmaildrop = \"FOLDER/maildrop\"\n");
        Gateway::with_files(&text, &files(SECRET))
    };
    let a = node("a");
    cluster.wait_for_owner(&a, "a");
    let b = node("b");
    command_sends(&a, "at the owner");
    wait_for(|| (subjects(a.addresses[1]).len() == 1).then_some(()), "mail of the owner's commands");
    command_sends(&b, "at the other");
    wait_for(|| (subjects(a.addresses[1]).len() == 2).then_some(()), &format!("mail of commands: {}", b.log()));
    let is_empty = || std::fs::read_dir(b.folder.path().join("maildrop")).unwrap().next().is_none();
    wait_for(|| is_empty().then_some(()), "the file to be removed");
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    let listed = command.args(["queue", "list", "--store"]).arg(b.folder.path().join("store/mail")).output().unwrap();
    assert_eq!((listed.status.code(), &*listed.stderr), (Some(1), &b""[..]), "the owner says that nothing waits");
    a.kill();
    cluster.wait_for_owner(&b, "b");
    command_sends(&b, "after it");
    let all = ["at the owner", "at the other", "after it"];
    wait_for(|| (subjects(b.addresses[1]) == all).then_some(()), &format!("each mail once: {}", b.log()));
}
