//! Three servers of PostgreSQL: a primary, and two standbys of which one has to have each commit.

use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::databases::{postgresql, run};
use super::{free_port, wait_for};

pub struct Replicas {
    folder: TempDir,
    ports: [u16; 3],
    children: [Option<Child>; 3],
}

impl Replicas {
    /// Starts them, if PostgreSQL is installed and we may.
    pub fn start() -> Option<Replicas> {
        if !rustix::process::geteuid().is_root() || !postgresql("initdb").exists() {
            eprintln!("skipped: PostgreSQL is not installed, or we are not root");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let ports = [free_port(), free_port(), free_port()];
        let mut replicas = Replicas { folder, ports, children: [None, None, None] };
        let at = replicas.folder.path().display().to_string();
        run(&format!("chmod 755 {at} && install -d -o postgres {at}/0"));
        run(&format!("runuser -u postgres -- {} -D {at}/0 -A trust -N", postgresql("initdb").display()));
        replicas.begin(0);
        replicas.ask(0, "create user sluice superuser");
        for standby in [1, 2] {
            let copy = postgresql("pg_basebackup");
            run(&format!("install -d -m 700 -o postgres {at}/{standby}"));
            run(&format!(
                "runuser -u postgres -- {} -h 127.0.0.1 -p {} -D {at}/{standby} -R -X stream -c fast",
                copy.display(),
                ports[0]
            ));
            replicas.begin(standby);
        }
        let count = "select count(*) from pg_stat_replication where state = 'streaming'";
        wait_for(|| (replicas.ask(0, count) == "2").then_some(()), "two standbys");
        replicas.ask(0, "alter system set synchronous_standby_names = 'ANY 1 (*)'");
        replicas.ask(0, "select pg_reload_conf()");
        Some(replicas)
    }

    /// The URL with all of them.
    pub fn url(&self) -> String {
        let [a, b, c] = self.ports;
        format!("postgresql://sluice@127.0.0.1:{a},127.0.0.1:{b},127.0.0.1:{c}/postgres")
    }

    /// Kills the primary, makes the first standby one, and lets the second follow it.
    pub fn fail_over(&mut self) {
        let mut child = self.children[0].take().unwrap();
        // Its children end when it has.
        run(&format!("kill -KILL {}", child.id()));
        child.wait().unwrap();
        // Of the standbys the one that has most becomes the primary, so that nothing acknowledged is lost.
        let position = |at| self.ask(at, "select coalesce(pg_last_wal_receive_lsn(), '0/0') - '0/0'::pg_lsn");
        let position = |at| position(at).parse::<f64>().unwrap_or(0.0);
        let (first, second) = if position(1) >= position(2) { (1, 2) } else { (2, 1) };
        // In ALTER SYSTEM it stands on the primary alone.
        let names = "alter system set synchronous_standby_names = 'ANY 1 (*)'";
        self.ask(first, "select pg_promote()");
        self.ask(first, names);
        self.ask(first, "select pg_reload_conf()");
        let primary = format!("host=127.0.0.1 port={} user=postgres", self.ports[first]);
        self.ask(second, &format!("alter system set primary_conninfo = '{primary}'"));
        self.ask(second, "select pg_reload_conf()");
    }

    fn begin(&mut self, at: usize) {
        let (folder, port) = (self.folder.path().join(at.to_string()), self.ports[at]);
        let log = std::fs::File::create(self.folder.path().join(format!("{at}.log"))).unwrap();
        let child = Command::new("setpriv")
            .args(["--reuid", "postgres", "--regid", "postgres", "--init-groups"])
            .arg(postgresql("postgres"))
            .arg("-D")
            .arg(&folder)
            .args(["-p", &port.to_string(), "-k", "", "-c", "listen_addresses=127.0.0.1"])
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.children[at] = Some(child);
        wait_for(|| (self.ask(at, "select 1") == "1").then_some(()), "PostgreSQL");
    }

    /// The one value of a query; empty if there is no answer.
    fn ask(&self, at: usize, query: &str) -> String {
        let port = self.ports[at].to_string();
        let done = Command::new("psql")
            .args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-AtXqc", query])
            .stderr(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }
}

impl Drop for Replicas {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            let _ = Command::new("kill").args(["-QUIT", &child.id().to_string()]).status();
            let _ = child.wait();
        }
    }
}
