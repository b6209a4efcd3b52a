//! What `sluice serve` gives up before it looks at anything of others: root, core dumps, the rest of the file system.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::harness::{Gateway, Wire, mail_with, wait_for};

const NOBODY: u32 = 65_534;

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: only root has something to give up");
    }
    is_root
}

fn serve(config: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.args(["serve", "--config"]).arg(config).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn listener(address: &str, hop: &str) -> String {
    format!("[[listener]]\nprotocol = \"smtp\"\naddress = \"{address}\"\nforward = \"{hop}\"\n")
}

/// A service that ends with its test.
struct Service(Child);

impl Service {
    fn ready(mut command: Command) -> (Service, String) {
        let mut service = Service(command.spawn().unwrap());
        let mut ready = String::new();
        BufReader::new(service.0.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        if ready.is_empty() {
            service.0.stderr.take().unwrap().read_to_string(&mut ready).unwrap();
        }
        assert!(ready.starts_with("sluice: ready: "), "{ready}");
        (service, ready)
    }

    fn pid(&self) -> u32 {
        crate::harness::edge_of(self.0.id())
    }

    fn status(&self, key: &str) -> String {
        status(self.pid(), key)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn status(pid: u32, key: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{key}: {text}")).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn root_is_refused_without_somebody_to_become() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("sluice.toml");
    for user in ["", "user = \"root\"\n"] {
        fs::write(&config, format!("{user}{}", listener("127.0.0.1:0", "discard:"))).unwrap();
        let output = serve(&config).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        for way in ["user = ", "User=", "--allow-root"] {
            assert!(text.contains(way), "{text}");
        }
    }
    let conf = folder.path().join("clamd.conf");
    fs::write(&conf, "TCPSocket 0\nTCPAddr 127.0.0.1\n").unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_sluice")).args(["serve", "--clamd-conf"]).arg(&conf).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn root_is_given_up_for_good_and_a_reload_has_low_ports_still() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (config, maildir) = (folder.path().join("sluice.toml"), folder.path().join("maildir"));
    fs::create_dir(&maildir).unwrap();
    chown(&maildir, Some(NOBODY), Some(NOBODY)).unwrap();
    let socket = folder.path().join("milter");
    let text = format!(
        "user = \"nobody\"\n{}[[listener]]\nprotocol = \"milter\"\naddress = \"unix:{}\"\n",
        listener("127.0.0.1:0", &format!("maildir:{}", maildir.display())),
        socket.display()
    );
    fs::write(&config, &text).unwrap();
    let (service, ready) = Service::ready(serve(&config));
    assert_eq!(service.status("Uid"), "65534 65534 65534 65534");
    assert_eq!(service.status("Gid"), "65534 65534 65534 65534");
    assert_eq!(service.status("Groups"), "65534");
    assert_eq!(service.status("NoNewPrivs"), "1");
    for (kind, rights) in
        [("CapEff", "0000000000000400"), ("CapPrm", "0000000000000400"), ("CapInh", "0000000000000000")]
    {
        assert_eq!(service.status(kind), rights, "{kind}");
    }
    let pid = service.pid();
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let core: Vec<&str> =
        limits.lines().find(|line| line.starts_with("Max core")).unwrap().split_whitespace().collect();
    assert_eq!(core[4..6], ["0", "0"]);
    assert_eq!(fs::metadata(format!("/proc/{pid}/mem")).unwrap().uid(), 0, "nobody else of this user may look in");
    assert_eq!(fs::metadata(&socket).unwrap().uid(), NOBODY);
    for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let task = task.unwrap().file_name().into_string().unwrap();
        let text = fs::read_to_string(format!("/proc/{pid}/task/{task}/status")).unwrap();
        assert!(text.contains("Uid:\t65534\t65534\t65534\t65534"), "{text}");
    }

    let address = ready.split_whitespace().find_map(|word| word.parse().ok()).unwrap();
    assert!(Wire::connect(address).deliver(&mail_with("7bit", "a.txt", "clean")).starts_with("250 "));
    assert_eq!(fs::metadata(&crate::harness::files(&maildir.join("new"))[0]).unwrap().uid(), NOBODY);

    let low = (1..1_024).rev().find(|&port| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok()).unwrap();
    fs::write(&config, format!("{text}{}", listener(&format!("127.0.0.1:{low}"), "discard:"))).unwrap();
    Command::new("kill").args(["-HUP", &pid.to_string()]).status().unwrap();
    wait_for(|| TcpStream::connect(("127.0.0.1", low)).ok(), "the listener on a port of root's");
}

#[test]
fn the_first_steps_are_nobody_s() {
    if !is_root() {
        return;
    }
    // As in a folder below root's own, which nobody can enter by its path.
    let closed = tempfile::tempdir().unwrap();
    let folder = closed.path().join("here");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    // Its port is always the same one, so it is on a machine of its own.
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", "ip link set lo up && exec \"$0\" serve", env!("CARGO_BIN_EXE_sluice")]);
    command.current_dir(&folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    if !Command::new("unshare")
        .args(["--net", "ip", "link", "set", "lo", "up"])
        .status()
        .is_ok_and(|done| done.success())
    {
        return eprintln!("skipped: no network namespaces for us");
    }
    let (service, ready) = Service::ready(command);
    assert!(ready.contains("127.0.0.1:2525 -> store:"), "{ready}");
    assert_eq!(service.status("Uid"), "65534 65534 65534 65534");
    let store = folder.join("store");
    for (path, mode) in [(store.clone(), 0o700), (store.join("mail"), 0o600), (store.join("accounts"), 0o600)] {
        let facts = fs::metadata(&path).unwrap();
        assert_eq!((facts.uid(), facts.mode() & 0o777), (NOBODY, mode), "{}", path.display());
    }
    let pid = service.pid().to_string();
    let mail = "import smtplib; smtplib.SMTP('127.0.0.1', 2525).sendmail('a@b', 'me@example.org', 'Subject: x\\n\\nx')";
    let said = Command::new("nsenter").args(["--net", "--target", &pid, "python3", "-c", mail]).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

#[test]
fn the_process_is_called_by_its_name() {
    let gateway = Gateway::start("discard:", "");
    let supervisor = gateway.supervisor();
    assert_eq!(fs::read_to_string(format!("/proc/{supervisor}/comm")).unwrap(), "sluice\n");
    let names: Vec<String> = crate::harness::children_of(supervisor).into_iter().map(|(_, name)| name).collect();
    assert!(["sluice: edge", "sluice: jail 1"].iter().all(|name| names.iter().any(|has| has == name)), "{names:?}");
    let command = fs::read_to_string(format!("/proc/{supervisor}/cmdline")).unwrap();
    assert!(command.split('\0').next().unwrap().ends_with("/sluice"), "{command}");
    let found = Command::new("pgrep").args(["-x", "sluice"]).output().unwrap();
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(found.lines().any(|pid| pid == supervisor.to_string()), "{found}");
}

/// Whether the kernel confines.
fn is_confined(gateway: &Gateway) -> bool {
    let log = gateway.wait_for_log("privileges dropped");
    let confined = log.contains("confined=\"fully\"") || log.contains("confined=fully");
    if !confined {
        eprintln!("skipped: the kernel does not know all of Landlock: {log}");
    }
    confined
}

#[test]
fn what_lies_outside_is_not_read_and_not_written_even_by_root() {
    let outside = tempfile::tempdir().unwrap();
    let signature = outside.path().join("a.ndb");
    fs::write(&signature, "Test.Outside:0:*:6f757473696465\n").unwrap();
    // The folder is made by hand: the gateway's own is only known once it runs.
    let signatures = tempfile::tempdir().unwrap();
    let folder = signatures.path().join("signatures");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("b.ndb"), "Test.Inside:0:*:696e73696465\n").unwrap();
    let head = format!("[database]\npaths = [\"{}\"]", folder.display());
    let gateway = Gateway::start_with(&head, "smtp", "discard:", "");
    if !is_confined(&gateway) {
        return;
    }
    symlink(&signature, folder.join("c.ndb")).unwrap();
    gateway.signal("HUP");
    gateway.wait_for_log("c.ndb: Permission denied");
    fs::remove_file(folder.join("c.ndb")).unwrap();
    // A folder that takes the place of the other is another matter.
    let other = signatures.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("d.ndb"), "Test.Other:0:*:6f74686572\n").unwrap();
    fs::rename(&folder, signatures.path().join("old")).unwrap();
    fs::rename(&other, &folder).unwrap();
    let found = mail_with("7bit", "a.txt", "other");
    wait_for(|| gateway.connect().deliver(&found).contains("Test.Other").then_some(()), "the other signatures");
}

#[test]
fn a_reload_that_wants_more_is_taken_over_by_a_new_process() {
    let outside = tempfile::tempdir().unwrap();
    let settings = "on_infected = \"quarantine\"\nquarantine = \"FOLDER/quarantine\"";
    let gateway = Gateway::start("discard:", settings);
    if !is_confined(&gateway) {
        return;
    }
    let config = gateway.folder.path().join("sluice.toml");
    let text = fs::read_to_string(&config).unwrap();
    let inside = gateway.folder.path().join("quarantine").display().to_string();
    let further = outside.path().join("quarantine");
    fs::write(&config, text.replace(&inside, &format!("{inside}/below"))).unwrap();
    gateway.signal("HUP");
    gateway.wait_for_log("reloaded generation=2");
    let before = gateway.pid();
    fs::write(&config, text.replace(&inside, &further.display().to_string())).unwrap();
    gateway.signal("HUP");
    let log = gateway.wait_for_log("a new process takes over");
    assert!(log.contains(&*further.display().to_string()), "{log}");
    wait_for(|| (gateway.pid() != before).then_some(()), "the new process");
    wait_for(|| further.exists().then_some(()), "the folder of the new configuration");
}
