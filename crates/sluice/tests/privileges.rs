//! Tests of the privileges that `sluice serve` drops before it reads foreign input: root, core dumps, the rest of the
//! file system.

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

/// A folder of somebody else's below one that they cannot pass, and a file of root's beside it.
struct Theirs {
    place: tempfile::TempDir,
}

const THEM: u32 = 1_234;

impl Theirs {
    fn new() -> Theirs {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("theirs")).unwrap();
        fs::write(place.path().join("roots"), "root:x\n").unwrap();
        fs::set_permissions(place.path().join("roots"), fs::Permissions::from_mode(0o600)).unwrap();
        let theirs = Theirs { place };
        theirs.give("");
        theirs
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.place.path().join("theirs").join(name)
    }

    fn give(&self, name: &str) {
        std::os::unix::fs::lchown(self.at(name), Some(THEM), Some(THEM)).unwrap();
    }

    fn plant(&self, name: &str) {
        symlink(self.place.path().join("roots"), self.at(name)).unwrap();
        self.give(name);
    }

    /// Runs a command; whether it succeeded, and what it printed.
    fn run(&self, arguments: &[&str], input: &str) -> (bool, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.args(arguments).current_dir(self.place.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
    }

    fn succeed(&self, arguments: &[&str], input: &str) -> String {
        let (is_done, printed) = self.run(arguments, input);
        assert!(is_done, "{arguments:?}: {printed}");
        printed
    }

    /// All in the folder belongs to its owner, and root's file is as it was.
    fn check(&self) {
        let roots = self.place.path().join("roots");
        let facts = fs::metadata(&roots).unwrap();
        assert_eq!((facts.uid(), facts.gid(), facts.mode() & 0o777), (0, 0, 0o600));
        assert_eq!(fs::read_to_string(&roots).unwrap(), "root:x\n");
        for entry in fs::read_dir(self.at("")).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().uid(), THEM, "{:?}", entry.file_name());
        }
    }
}

#[test]
fn roots_commands_on_accounts_are_done_by_the_owner_of_the_folder() {
    if !is_root() {
        return;
    }
    let theirs = Theirs::new();
    let account = |command: &[&str]| {
        theirs.run(&[["account", "--accounts", "theirs/accounts"].as_slice(), command].concat(), "secret\n")
    };
    assert!(account(&["add", "ann@example.org"]).0 && account(&["passwd", "ann@example.org"]).0);
    assert!(account(&["list"]).1.contains("ann@example.org"));
    theirs.check();
    fs::remove_file(theirs.at("accounts")).unwrap();
    theirs.plant("accounts");
    let (is_done, printed) = account(&["add", "bob@example.org"]);
    assert!(!is_done && printed.contains("theirs/accounts: Permission denied"), "{printed}");
    theirs.check();
}

#[test]
fn roots_commands_on_a_store_are_done_by_the_owner_of_the_folder() {
    if !is_root() {
        return;
    }
    let theirs = Theirs::new();
    let mail = "From: a@b.test\r\nMessage-ID: <one@x>\r\nSubject: x\r\n\r\nhello\r\n";
    fs::write(theirs.place.path().join("mail.eml"), mail).unwrap();
    theirs.succeed(&["store", "create", "--size", "64M", "theirs/mail"], "");
    theirs.succeed(&["store", "deliver", "--to", "ann", "theirs/mail", "mail.eml"], "");
    theirs.check();
    theirs.plant("mail.audit");
    let (is_done, printed) = theirs.run(&["recall", "--store", "theirs/mail", "--yes", "one@x"], "");
    assert!(!is_done && printed.contains("mail.audit: Permission denied"), "{printed}");
    theirs.check();
    fs::remove_file(theirs.at("mail.audit")).unwrap();
    theirs.succeed(&["sieve", "put", "--store", "theirs/mail", "ann", "one", "-"], "keep;");
    theirs.succeed(&["store", "acl", "theirs/mail", "ann", "INBOX", "bob", "lr"], "");
    theirs.succeed(&["store", "export", "--account", "ann", "theirs/mail", "exported"], "");
    theirs.succeed(&["store", "import", "--account", "bob", "theirs/mail", "exported"], "");
    assert_eq!(fs::metadata(theirs.place.path().join("exported/cur")).unwrap().uid(), 0);
    let recalled = theirs.succeed(&["recall", "--store", "theirs/mail", "--yes", "one@x"], "");
    assert!(recalled.contains("2 places: recalled"), "{recalled}");
    assert!(fs::read_to_string(theirs.at("mail.audit")).unwrap().contains("one@x"));
    theirs.check();
    // A volume of root's behind a link of theirs is not root's to be written to.
    theirs.plant("link");
    let (is_done, printed) = theirs.run(&["store", "deliver", "--to", "ann", "theirs/link", "mail.eml"], "");
    assert!(!is_done && printed.contains("a symbolic link, not followed"), "{printed}");
    // A Maildir of theirs is read with their rights.
    fs::create_dir_all(theirs.at("box/cur")).unwrap();
    theirs.give("box");
    theirs.give("box/cur");
    theirs.plant("box/cur/1");
    symlink(theirs.place.path(), theirs.at("box/.Up")).unwrap();
    let (_, printed) = theirs.run(&["store", "import", "--account", "eve", "theirs/mail", "theirs/box"], "");
    assert!(printed.contains("0 messages") || printed.contains("Permission denied"), "{printed}");
    theirs.check();
}

#[test]
fn commands_find_accounts_and_store_by_the_configuration() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("store")).unwrap();
    fs::write(place.path().join("password"), "secret\n").unwrap();
    let text = format!("[store]\nfolder = \"store\"\nsize = \"64M\"\n{}", listener("127.0.0.1:2525", "store:"));
    fs::write(place.path().join("sluice.toml"), text).unwrap();
    let run = |arguments: &[&str], wanted: i32| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.args(arguments).current_dir(place.path()).stdin(fs::File::open(place.path().join("password")).unwrap());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(wanted), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["store", "create", "--size", "64M", "store/mail"], 0);
    run(&["account", "-c", "sluice.toml", "add", "ann"], 0);
    assert!(run(&["account", "-c", "sluice.toml", "list"], 0).contains("ann"));
    for command in [["mail", "who"].as_slice(), &["who"], &["mail", "recall"], &["recall"]] {
        run(&[command, &["-c", "sluice.toml", "one@x"]].concat(), 1);
    }
    assert!(run(&["check", "-c", "sluice.toml", "--no-signatures"], 0).contains("store/mail, which is there"));
}

#[test]
fn root_learns_in_a_ledger_whose_owner_cannot_pass_the_way_to_it() {
    if !is_root() {
        return;
    }
    let theirs = Theirs::new();
    fs::create_dir(theirs.at("ledger")).unwrap();
    theirs.give("ledger");
    let mail = theirs.place.path().join("mail.eml");
    fs::write(&mail, "From: a@b.test\r\nSubject: x\r\n\r\nhello there\r\n").unwrap();
    fs::set_permissions(&mail, fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(theirs.place.path().join("rules")).unwrap();
    fs::write(theirs.place.path().join("rules/site.cf"), "use_bayes 1\n").unwrap();
    let learned = theirs.succeed(&["learn", "spam", "--ledger", "theirs/ledger", "--rules", "rules", "mail.eml"], "");
    assert!(learned.contains("1 learned"), "{learned}");
    assert!(theirs.succeed(&["learn", "stat", "--ledger", "theirs/ledger"], "").contains('1'));
    let (_, checked) =
        theirs.run(&["spam", "check", "--local", "--ledger", "theirs/ledger", "--rules", "rules", "mail.eml"], "");
    assert!(!checked.contains("sluice:"), "{checked}");
    assert_eq!(fs::metadata(theirs.at("ledger/learned.db")).unwrap().uid(), THEM);
    theirs.check();
}
