//! The law of ledgers over PostgreSQL, nodes that write at the same time, and a database that goes away.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ledger::{Ledger, Sqlite, law};
use tempfile::TempDir;

use super::*;

/// A server of PostgreSQL of its own.
struct Server {
    folder: TempDir,
    port: u16,
    child: Option<Child>,
}

impl Server {
    /// Starts one, if it is installed and we may.
    fn start() -> Option<Server> {
        let initdb = program("initdb");
        if !initdb.exists() || std::env::var_os("USER").is_some_and(|user| user == "nobody") || !is_root() {
            eprintln!("skipped: PostgreSQL is not installed, or we are not root");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display().to_string();
        run(&format!("chmod 755 {at} && install -d -o postgres {at}/data"));
        run(&format!("runuser -u postgres -- {} -D {at}/data -A trust -N", initdb.display()));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Server { folder, port, child: None };
        server.begin();
        Some(server)
    }

    fn begin(&mut self) {
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let child = Command::new("setpriv")
            .args(["--reuid", "postgres", "--regid", "postgres", "--init-groups"])
            .arg(program("postgres"))
            .arg("-D")
            .arg(self.folder.path().join("data"))
            .args(["-p", &self.port.to_string(), "-k", "", "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"])
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
        let end = Instant::now() + Duration::from_secs(60);
        while self.say("select 1") != "1" {
            assert!(Instant::now() < end, "PostgreSQL does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Kills it, as a machine dies.
    fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        let pids = Command::new("pgrep").args(["-P", &child.id().to_string()]).output().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // Its children hold the port until they have seen that.
        let pids = String::from_utf8_lossy(&pids.stdout).into_owned();
        let is_gone = |pid: &str| !PathBuf::from(format!("/proc/{pid}/stat")).exists();
        let end = Instant::now() + Duration::from_secs(60);
        while !pids.split_whitespace().all(is_gone) {
            assert!(Instant::now() < end, "PostgreSQL does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn say(&self, statement: &str) -> String {
        let done = Command::new("psql")
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", "postgres", "-AtXqc", statement])
            .stderr(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// An empty database, and its URL.
    fn database(&self, name: &str) -> Database {
        self.say(&format!("create database {name}"));
        Database::at(&format!("postgresql://postgres@127.0.0.1:{}/{name}", self.port))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = Command::new("kill").args(["-QUIT", &child.id().to_string()]).status();
            let _ = child.wait();
        }
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|facts| std::os::unix::fs::MetadataExt::uid(&facts) == 0)
}

/// A program of the newest PostgreSQL that is installed.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|version| version.path()).max().unwrap_or_default().join("bin").join(name)
}

fn run(line: &str) {
    let done = Command::new("sh").args(["-c", line]).current_dir("/").output().unwrap();
    assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
}

fn open(database: &Database) -> Box<dyn Ledger> {
    Box::new(Shared::open(database.clone(), Waits::COMMAND).unwrap())
}

#[test]
fn the_law_holds_over_postgresql() {
    let Some(server) = Server::start() else { return };
    for (number, (name, law)) in law::LAWS.into_iter().enumerate() {
        eprintln!("{name}");
        law(&mut *open(&server.database(&format!("law{number}"))));
    }
}

#[test]
fn nodes_that_take_turns_or_learn_at_once_end_with_the_right_counts() {
    let Some(server) = Server::start() else { return };
    let database = server.database("nodes");
    let node = || open(&database);
    for seed in 0..3 {
        law::follows_the_model(&mut [node(), node()], &format!("turns {seed}"), seed, 200);
        law::loses_nothing_at_once(&node, &format!("at once {seed}"), seed, 150);
    }
    law::counts_each_mail_at_once(&node, "counts");
    let (mut one, mut other) = (node(), node());
    law::waits_once(&mut *one, &mut *other);
}

#[test]
fn two_nodes_answer_as_one_file_does() {
    let Some(server) = Server::start() else { return };
    for seed in 0..4 {
        let database = server.database(&format!("alike{seed}"));
        let folder = tempfile::tempdir().unwrap();
        let mut file = Sqlite::open(&folder.path().join("learned.db")).unwrap();
        law::answers_alike(&mut [open(&database), open(&database)], &mut file, seed, 300);
    }
}

#[test]
fn of_marks_those_that_wait_longest_are_forgotten() {
    let Some(server) = Server::start() else { return };
    let mut ledger = Shared::open(server.database("marks"), Waits::COMMAND).unwrap();
    let greeting = |name: u8| Greeting { triplets: vec![[name; 16]], vouchers: Vec::new(), delay: 300 };
    for (name, at) in [(0, 0), (0, 300)].into_iter().chain((1..10).map(|name| (name, 360 + i64::from(name)))) {
        ledger.greet(&greeting(name), at).unwrap();
    }
    ledger.line.call(WRITE_WAIT, async |session| marks::forget(session, 4, 600).await).unwrap();
    let kept = server.say_in("marks", "select string_agg(get_byte(id, 0)::text, ' ' order by id) from sluice.mark");
    assert_eq!(kept, "0 7 8 9", "who has waited stays");
}

#[test]
fn a_database_that_is_killed_costs_a_bounded_wait_and_no_count() {
    let Some(mut server) = Server::start() else { return };
    let database = server.database("killed");
    let patience = Waits { connection: Duration::from_millis(300), answer: Duration::from_millis(500) };
    let mut ledger = Shared::open(database.clone(), patience).unwrap();
    let greeting = |name: u8| Greeting { triplets: vec![[name; 16]], vouchers: Vec::new(), delay: 300 };
    let lesson = |name: u64| Lesson {
        is_spam: true,
        ids: vec![name.to_string().into()],
        at: 1,
        tokens: Tokens::of(vec![[1; 5]]),
        corrects: true,
    };
    let mut acknowledged = 0;
    until(|| ledger.greet(&greeting(1), 0).ok());
    for name in 0..20 {
        acknowledged += u64::from(ledger.learn("", &[lesson(name)]).is_ok());
    }
    server.kill();
    assert!(ledger.recall("", &[[1; 5]]).is_err());
    // One call waits for the connection, all others for nothing.
    let begin = Instant::now();
    let failed = (0..200).filter(|_| ledger.recall("", &[[1; 5]]).is_err()).count();
    assert_eq!(failed, 200);
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    server.begin();
    let (corpus, words) = until(|| ledger.recall("", &[[1; 5]]).ok());
    // A second of lessons may be lost, and none counts twice.
    assert!(corpus.spam <= acknowledged && words.iter().all(|word| word.spam == corpus.spam), "{corpus:?} {words:?}");
    for name in 0..20 {
        ledger.learn("", &[lesson(name)]).unwrap();
    }
    assert_eq!(ledger.summary("").unwrap().corpus.spam, 20);
}

#[test]
fn a_database_that_stands_still_costs_an_answer_and_then_a_pause() {
    let Some(server) = Server::start() else { return };
    let waits = Waits { connection: Duration::from_secs(20), answer: Duration::from_secs(1) };
    let mut ledger = Shared::open(server.database("still"), waits).unwrap();
    let greeting = Greeting { triplets: vec![[1; 16]], vouchers: Vec::new(), delay: 300 };
    until(|| ledger.greet(&greeting, 0).ok());
    // Another transaction has the mark.
    let url = format!("postgresql://postgres@127.0.0.1:{}/still", server.port);
    let hold = "begin; update sluice.mark set last = 1; select pg_sleep(600)";
    let mut holder = Command::new("psql").args(["-AtXqc", hold, &url]).spawn().unwrap();
    until(|| ledger.greet(&greeting, 0).err());
    // They would wait for a second each.
    let begin = Instant::now();
    for _ in 0..100 {
        let _ = ledger.greet(&greeting, 0);
    }
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    holder.kill().unwrap();
    holder.wait().unwrap();
    server.say_in("still", "select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep%' and pid <> pg_backend_pid()");
    until(|| ledger.greet(&greeting, 0).ok());
}

#[test]
fn a_database_that_never_answers_costs_one_wait() {
    // It takes connections, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let database = Database::at(&format!("postgresql://postgres@{}/none", silent.local_addr().unwrap()));
    let patience = Waits { connection: Duration::from_millis(200), answer: Duration::from_millis(500) };
    let mut ledger = Shared::open(database, patience).unwrap();
    let begin = Instant::now();
    for _ in 0..300 {
        assert!(ledger.recall("", &[[1; 5]]).is_err());
    }
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

/// Asks until there is an answer.
fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "no answer");
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl Server {
    fn say_in(&self, database: &str, statement: &str) -> String {
        let url = format!("postgresql://postgres@127.0.0.1:{}/{database}", self.port);
        let done = Command::new("psql").args(["-AtXqc", statement, &url]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }
}
