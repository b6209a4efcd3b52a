//! A cluster whose blocks are objects of an S3 server: of one in this process with faults, and of versitygw 1.8.0, if `SLUICE_VERSITYGW` names it.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};

use crate::cluster::{Cluster, SECRET, files, send, store_of, subjects};
use crate::harness::imap::ask;
use crate::harness::{Gateway, Wire, free_port, wait_for};

#[path = "../src/cluster/objects/fake.rs"]
#[allow(dead_code, reason = "the tests of the module use the rest")]
mod fake;

use fake::{FAULTS, Fault, Server};

const MAIL_BYTES: usize = 12 << 20;

/// A node, with `[cluster.objects]` unless `objects` is empty.
fn node(cluster: &Cluster, name: &str, objects: &str) -> Gateway {
    let text = cluster.text(name, &format!("synchronous = false\n{objects}")).replace("\"64M\"", "\"512M\"");
    let files: Vec<_> = files(SECRET).into_iter().chain([("key", "secret of the key\n".replace(' ', "-"))]).collect();
    Gateway::with_files(&text, &files)
}

fn table(port: u16, more: &str) -> String {
    format!(
        "[cluster.objects]\nendpoint = \"http://127.0.0.1:{port}\"\nbucket = \"mail\"\naccess_key = \"id\"\n\
         access_secret_file = \"FOLDER/key\"\n{more}"
    )
}

fn body() -> Vec<u8> {
    b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd\r\n".repeat(MAIL_BYTES / 64)
}

fn login(node: &Gateway) -> Wire {
    let mut wire = Wire::connect(node.addresses[1]);
    assert!(wire.line().starts_with("* OK"));
    assert!(ask(&mut wire, "LOGIN tim secret").status.starts_with("OK"));
    wire
}

/// Puts so much into a store that it is folded.
fn fill(node: &Gateway, round: u32) {
    let mut wire = login(node);
    for number in 0..6 {
        append(&mut wire, round, number);
        appended(&mut wire);
    }
}

fn append(wire: &mut Wire, round: u32, number: u32) {
    let (head, body) = (format!("Subject: large-{round}-{number}\r\n\r\n"), body());
    wire.send(format!("x APPEND INBOX {{{}}}\r\n", head.len() + body.len()).as_bytes());
    assert!(wire.line().starts_with('+'));
    wire.send(head.as_bytes());
    wire.send(&body);
    wire.send(b"\r\n");
}

fn appended(wire: &mut Wire) {
    let done = wait_for(|| Some(wire.line()).filter(|line| line.starts_with("x ")), "APPEND");
    assert!(done.starts_with("x OK"), "{done}");
}

/// All mails are there, and a large one is as it was.
fn check(node: &Gateway, rounds: u32, more: &[&str]) {
    let mut wanted: Vec<String> = more.iter().map(|&subject| subject.to_owned()).collect();
    wanted.extend((0..rounds).flat_map(|round| (0..6).map(move |number| format!("large-{round}-{number}"))));
    let found: BTreeSet<String> = subjects(node.addresses[1]).into_iter().collect();
    assert_eq!(found, wanted.into_iter().collect());
    let mut wire = login(node);
    assert!(ask(&mut wire, "SELECT INBOX").status.starts_with("OK"));
    let whole = ask(&mut wire, "UID FETCH 3 BODY.PEEK[TEXT]");
    assert!(whole.literals[0] == body(), "a mail is other than it was");
}

#[derive(Debug)]
struct Status {
    blocks: u64,
    objects: u64,
    former: u64,
    tail_bytes: u64,
    error: Option<String>,
}

fn status(cluster: &Cluster, node: &Gateway) -> Status {
    let (_, said) = cluster.command(node, &["status", "--json"]);
    let all: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    let number = |name: &str| all["store"][name].as_u64().unwrap();
    Status {
        blocks: number("blocks"),
        objects: number("objects"),
        former: number("former_objects"),
        tail_bytes: number("tail_bytes"),
        error: all["store"]["fold_error"].as_str().map(str::to_owned),
    }
}

fn wait_for_status(cluster: &Cluster, node: &Gateway, wanted: &str, is_it: impl Fn(&Status) -> bool) -> Status {
    wait_for(|| Some(status(cluster, node)).filter(&is_it), &format!("{wanted}: {}", node.log()))
}

/// Each row names an object that is there, and no other has its name.
fn named(cluster: &Cluster) -> BTreeSet<String> {
    let server = cluster.server.as_ref().unwrap();
    server.say("select object from sluice.block where object is not null").lines().map(str::to_owned).collect()
}

#[test]
fn blocks_are_objects_whatever_the_server_does() {
    let Some(cluster) = Cluster::start() else { return };
    let s3 = Server::start();
    let database = || cluster.server.as_ref().unwrap();
    s3.weather(|_, _| Some(Fault::Status(503, "SlowDown")));
    let a = node(&cluster, "a", &table(s3.port, "prefix = \"p/\"\n"));
    cluster.wait_for_owner(&a, "a");
    // Mail is taken while it is down.
    fill(&a, 0);
    let down = wait_for_status(&cluster, &a, "the failed fold", |status| status.error.is_some());
    let error = down.error.unwrap();
    assert!(error.contains("503 SlowDown") && down.objects == 0 && down.tail_bytes > 64 << 20, "{error}");
    let (_, said) = cluster.command(&a, &["status"]);
    assert!(said.contains("wrong: changes stay behind the blocks: object "), "{said}");
    assert!(send(a.addresses[0], "meanwhile"), "{}", a.log());

    // It is back, and bad: each fault now and then.
    let mut count = 0;
    s3.weather(move |_, _| {
        count += 1;
        (count % 5 == 0).then(|| FAULTS[count / 5 % FAULTS.len()])
    });
    wait_for_status(&cluster, &a, "a fold", |status| status.error.is_none() && status.objects >= 64);
    assert_eq!(database().say("select count(*) from sluice.block where bytes is not null").trim(), "0");
    let names = named(&cluster);
    assert!(names.iter().all(|name| s3.lock().objects.contains_key(&format!("p/{name}"))));
    assert!(s3.lock().overwritten.is_empty());
    a.kill();

    // One is missing, then damaged: nobody has the store, and nothing is taken for zeroes.
    let lacking = format!("p/{}", names.iter().nth(7).unwrap());
    let (bytes, sum) = s3.lock().objects.remove(&lacking).unwrap();
    let b = node(&cluster, "b", &table(s3.port, "prefix = \"p/\"\n"));
    b.wait_for_log("the object is not there");
    assert!(b.log().contains(lacking.trim_start_matches("p/")), "{}", b.log());
    s3.lock().objects.insert(lacking.clone(), (vec![0; bytes.len()], sum.clone()));
    b.wait_for_log("the object is damaged");
    assert_ne!(cluster.owner(&b).as_deref(), Some("b"));
    s3.lock().objects.insert(lacking, (bytes, sum));
    cluster.wait_for_owner(&b, "b");
    check(&b, 1, &["meanwhile"]);
    assert!(!b.log().contains("secret-of-the-key"));
}

#[test]
fn blocks_move_out_and_back_and_former_objects_are_deleted() {
    let Some(cluster) = Cluster::start() else { return };
    let s3 = Server::start();
    let database = || cluster.server.as_ref().unwrap();
    let a = node(&cluster, "a", "");
    cluster.wait_for_owner(&a, "a");
    fill(&a, 0);
    let folded = |status: &Status| status.blocks >= 64 && status.tail_bytes < 32 << 20;
    assert_eq!(wait_for_status(&cluster, &a, "a fold", folded).objects, 0);
    a.kill();

    // As an earlier version has made the tables.
    database().say(
        "drop table sluice.former; alter table sluice.volume drop column trouble;
        alter table sluice.block drop column object, drop column length, drop column sha256, alter bytes set not null",
    );
    // There is a bucket: blocks move there. An object that a killed owner left is found.
    let volume = database().say("select name from sluice.volume").trim().to_owned();
    let stray = format!("{volume}/00000000-1-1-0000000000000001");
    let others = [format!("{volume}/00000000-9999-1-0000000000000001"), "other/00000000-1-1-0000000000000001".into()];
    for name in others.iter().chain([&stray]) {
        s3.lock().objects.insert(name.clone(), (vec![1], String::new()));
    }
    let b = node(&cluster, "b", &table(s3.port, ""));
    cluster.wait_for_owner(&b, "b");
    let moved = |status: &Status| status.objects == status.blocks && status.former == 1;
    let all = wait_for_status(&cluster, &b, "blocks in S3", moved);
    assert_eq!(database().say("select object from sluice.former").trim(), stray);
    check(&b, 1, &[]);
    let out = b.folder.path().join("out");
    let (code, said) = cluster.command(&b, &["export", out.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
    let checked = Command::new(env!("CARGO_BIN_EXE_sluice")).args(["store", "check"]).arg(&out).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    assert!(s3.lock().objects.contains_key(&stray));
    b.kill();

    // A node that does not know the bucket has no store.
    let none = node(&cluster, "none", "");
    none.wait_for_log("blocks are objects");
    none.kill();

    // The time of the stray object is over, and all others go back.
    database().say("update sluice.former set since = now() - interval '8 days'");
    let c = node(&cluster, "c", &table(s3.port, "write = false\n"));
    cluster.wait_for_owner(&c, "c");
    let back = |status: &Status| status.objects == 0 && status.former == all.blocks;
    wait_for_status(&cluster, &c, "blocks in PostgreSQL", back);
    wait_for(|| (!s3.lock().objects.contains_key(&stray)).then_some(()), "the stray object to be deleted");
    check(&c, 1, &[]);
    c.kill();
    database().say("update sluice.former set since = now() - interval '8 days'");
    let d = node(&cluster, "d", &table(s3.port, "write = false\n"));
    cluster.wait_for_owner(&d, "d");
    wait_for_status(&cluster, &d, "no former objects", |status| status.former == 0);
    assert!(s3.lock().objects.keys().eq(others.iter()), "{:?}", s3.lock().objects.keys());
    d.kill();
    let e = node(&cluster, "e", "");
    cluster.wait_for_owner(&e, "e");
    check(&e, 1, &[]);
}

#[test]
fn a_store_goes_into_s3_and_out_of_it() {
    let Some(cluster) = Cluster::start() else { return };
    let s3 = Server::start();
    let sluice = |words: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_sluice")).args(words).output().unwrap();
        let said = [done.stdout, done.stderr].concat();
        (done.status.code().unwrap(), String::from_utf8_lossy(&said).into_owned())
    };
    let folder = tempfile::tempdir().unwrap();
    let [store, config, out] =
        ["alone", "sluice.toml", "out"].map(|name| folder.path().join(name).display().to_string());
    let (code, said) = sluice(&["store", "create", &store, "--size", "64M"]);
    assert_eq!(code, 0, "{said}");
    let text = cluster.text("a", &format!("synchronous = false\n{}", table(s3.port, "")));
    std::fs::write(&config, text.replace("FOLDER", &folder.path().display().to_string())).unwrap();
    for (name, text) in files(SECRET).into_iter().chain([("key", "secret-of-the-key".to_owned())]) {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    // It fails in the middle, and begins anew under the same name.
    s3.weather(|method, _| (method == "HEAD").then_some(Fault::Status(403, "AccessDenied")));
    let import = ["cluster", "import", &store, "--config", &config];
    let (code, said) = sluice(&import);
    assert!(code == 2 && said.contains("access_key may not do this in the bucket"), "{said}");
    assert_eq!(s3.lock().objects.len(), 1);
    s3.weather(|_, _| None);
    let (code, said) = sluice(&import);
    assert!(code == 0 && said.contains("are in the cluster"), "{said}");
    let volumes: BTreeSet<String> =
        s3.lock().objects.keys().map(|name| name.split_once('/').unwrap().0.to_owned()).collect();
    assert_eq!(volumes.len(), 1);
    let a = node(&cluster, "a", &table(s3.port, ""));
    cluster.wait_for_owner(&a, "a");
    assert!(send(a.addresses[0], "together"), "{}", a.log());
    assert_eq!(subjects(a.addresses[1]), ["together"]);
    let status = wait_for_status(&cluster, &a, "the object of the first attempt", |status| status.former == 1);
    assert!(status.objects == status.blocks && status.blocks > 0, "{status:?}");
    let (code, said) = sluice(&["cluster", "export", &out, "--config", &config]);
    assert_eq!(code, 0, "{said}");
    let (code, said) = sluice(&["store", "check", &out]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_fold_that_is_not_decided_keeps_its_blocks() {
    let Some(cluster) = Cluster::start() else { return };
    let s3 = Server::start();
    s3.weather(|_, _| Some(Fault::Status(503, "SlowDown")));
    let a = node(&cluster, "a", &table(s3.port, ""));
    cluster.wait_for_owner(&a, "a");
    fill(&a, 0);
    wait_for_status(&cluster, &a, "a failed fold", |status| status.error.is_some());
    // As if the answer to its commit was lost, while the commit waits for a standby.
    let database = cluster.server.as_ref().unwrap();
    let failures = || a.log().matches("recent changes cannot be folded").count();
    database.say("insert into sluice.block select 1, 400, flush, epoch, 'x' from sluice.volume");
    let before = failures();
    database.say(
        "begin; update sluice.volume set folded = folded;
        insert into sluice.fold select 1, flush, epoch from sluice.volume; select pg_sleep(12); commit",
    );
    wait_for(|| (failures() > before + 1).then_some(()), "two more folds");
    assert_eq!(database.say("select count(*) from sluice.block where block = 400").trim(), "1");
}

#[test]
fn an_owner_that_is_paused_in_a_fold_is_followed() {
    let Some(cluster) = Cluster::start() else { return };
    let (a, b) = (node(&cluster, "a", ""), node(&cluster, "b", ""));
    let database = cluster.server.as_ref().unwrap();
    let owner = wait_for(|| cluster.owner(&a), "an owner");
    let (owner, other, name) = if owner == "a" { (&a, &b, "b") } else { (&b, &a, "a") };
    std::thread::scope(|scope| {
        // Its fold stops in the middle.
        scope.spawn(|| {
            database.say(
                "begin; lock table sluice.fold in exclusive mode;
                do $$ begin for i in 1..900 loop exit when to_regclass('go') is not null; perform pg_sleep(0.1); end loop; end $$;
                commit",
            )
        });
        let mut wire = login(owner);
        for number in 0..5 {
            append(&mut wire, 0, number);
            appended(&mut wire);
        }
        // Perhaps it is acknowledged before the fold begins.
        append(&mut wire, 0, 5);
        let waits = "select count(*) from pg_locks where not granted and relation = 'sluice.fold'::regclass";
        wait_for(|| (database.say(waits).trim() == "1").then_some(()), "the fold to begin");
        let status = Command::new("kill").args(["-STOP", &store_of(owner).to_string()]).status();
        assert!(status.unwrap().success());
        database.say("create table go ()");
    });
    cluster.wait_for_owner(other, name);
    let found = subjects(other.addresses[1]);
    assert!((0..5).all(|number| found.contains(&format!("large-0-{number}"))), "{found:?}");
    let _ = Command::new("kill").args(["-KILL", &store_of(owner).to_string()]).status();
}

/// versitygw on a folder.
struct Versity {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Versity {
    /// With TLS, by the certificate of the database.
    fn start(authorities: &str) -> Option<Versity> {
        let Some(program) = std::env::var_os("SLUICE_VERSITYGW") else {
            eprintln!("skipped: no S3 server of others (SLUICE_VERSITYGW)");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        ["root/mail", "beside"].iter().for_each(|name| std::fs::create_dir_all(folder.path().join(name)).unwrap());
        let port = free_port();
        let child = Command::new(program)
            .args([
                "--port",
                &format!("127.0.0.1:{port}"),
                "--access",
                "id",
                "--secret",
                "secret-of-the-key",
                "--quiet",
            ])
            .args(["--cert", authorities, "--key", &authorities.replace(".crt", ".key")])
            .args(["--keep-alive", "posix", "--sidecar"])
            .args([folder.path().join("beside"), folder.path().join("root")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for(|| std::net::TcpStream::connect(("127.0.0.1", port)).ok(), "versitygw");
        Some(Versity { child, port, folder })
    }
}

impl Drop for Versity {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_cluster_on_a_server_of_others() {
    let Some(cluster) = Cluster::start() else { return };
    let Some(s3) = Versity::start(&cluster.server.as_ref().unwrap().authorities()) else { return };
    let table = || table(s3.port, "prefix = \"p/\"\n").replace("http://127.0.0.1", "https://localhost");
    let a = node(&cluster, "a", &table());
    let (code, said) = cluster.command(&a, &["check"]);
    assert!(code == 0 && said.contains("ok     objects: bucket mail is written and read"), "{said}");
    let says = |from: &str, to: &str, wanted: &str| {
        let config = a.folder.path().join("sluice.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        assert!(text.contains(from));
        std::fs::write(&config, text.replace(from, to)).unwrap();
        let (code, said) = cluster.command(&a, &["check"]);
        assert!(code == 1 && said.contains(&format!("wrong  objects: writing: {wanted}")), "{said}");
        assert!(!said.contains("secret-of-the-key"), "{said}");
        std::fs::write(&config, text).unwrap();
    };
    says("access_key = \"id\"", "access_key = \"other\"", "access_key is not known there: ");
    says("bucket = \"mail\"", "bucket = \"none\"", "there is no such bucket: 404");
    says("access_key = \"id\"", "access_key = \"id\"\nregion = \"moon\"", "region or endpoint are not those");
    says("https://localhost", "https://127.0.0.1", "");
    let key = a.folder.path().join("key");
    std::fs::write(&key, "another").unwrap();
    says("bucket", "bucket", "the secret in access_secret_file is not that of access_key: 403");
    std::fs::write(&key, "secret-of-the-key").unwrap();

    cluster.wait_for_owner(&a, "a");
    fill(&a, 0);
    wait_for_status(&cluster, &a, "a fold", |status| status.objects >= 64);
    fill(&a, 1);
    wait_for_status(&cluster, &a, "another", |status| status.objects >= 128 && status.former > 0);
    let root = s3.folder.path().join("root/mail/p");
    assert!(named(&cluster).iter().all(|name| root.join(name).is_file()));
    a.kill();
    let b = node(&cluster, "b", &table());
    cluster.wait_for_owner(&b, "b");
    check(&b, 2, &[]);
    // Orphans, and the time of those that were replaced is over.
    let volume = root.read_dir().unwrap().next().unwrap().unwrap().path();
    std::fs::write(volume.join("00000000-1-1-0000000000000001"), "x").unwrap();
    b.kill();
    let database = cluster.server.as_ref().unwrap();
    database.say("update sluice.former set since = now() - interval '8 days'");
    let c = node(&cluster, "c", &table());
    cluster.wait_for_owner(&c, "c");
    wait_for_status(&cluster, &c, "the orphan alone", |status| status.former == 1);
    let files = |status: &Status| volume.read_dir().unwrap().count() as u64 == status.objects + status.former;
    wait_for_status(&cluster, &c, "former objects to be deleted", files);
    check(&c, 2, &[]);
}
