//! The supervisor: sockets that outlive who uses them, processes that are followed by others, and the hand-over to another
//! program.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::harness::{Behaviour, Gateway, Sink, Wire, children_of, edge_of, mail_with, wait_for};

fn kill(name: &str, pid: u32) {
    assert!(Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status().unwrap().success());
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

/// A program of its own name, so that another can take its place.
fn with_program_of_its_own(forward: &str) -> (Gateway, std::path::PathBuf) {
    let folder = tempfile::tempdir_in(std::path::Path::new(env!("CARGO_BIN_EXE_sluice")).parent().unwrap()).unwrap();
    let program = folder.path().join("sluice");
    std::fs::hard_link(env!("CARGO_BIN_EXE_sluice"), &program).unwrap();
    (Gateway::of_program(&program, forward).owning(folder), program)
}

fn clean() -> Vec<u8> {
    mail_with("7bit", "a.txt", "clean")
}

#[test]
fn an_edge_that_is_killed_is_followed_by_another_and_nobody_is_refused() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start(&sink.forward(), "");
    let (supervisor, first) = (gateway.supervisor(), gateway.pid());
    for _ in 0..3 {
        let before = gateway.pid();
        kill("KILL", before);
        // The socket listens all the time; whoever comes meanwhile waits.
        let waiting: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(gateway.address).unwrap()).collect();
        for stream in waiting {
            assert!(Wire::new(stream).deliver(&clean()).starts_with("250 "));
        }
        assert_ne!(gateway.pid(), before);
    }
    assert!(gateway.supervisor() == supervisor && !is_alive(first));
    assert_eq!(sink.wait(15).len(), 15);
    gateway.wait_for_log("edge exited (signal 9)");
}

/// Delivers mails one after the other, each on a connection of its own, until it is told to stop; how many were accepted.
fn deliver_until(stop: Arc<AtomicBool>, address: SocketAddr) -> std::thread::JoinHandle<usize> {
    std::thread::spawn(move || {
        let mut accepted = 0;
        while !stop.load(Relaxed) {
            let mut wire = Wire::new(TcpStream::connect(address).expect("nobody is refused"));
            let reply = wire.deliver(&clean());
            assert!(reply.starts_with("250 "), "mail {accepted}: {reply:?}");
            accepted += 1;
        }
        accepted
    })
}

#[test]
fn a_hand_over_under_load_refuses_and_loses_nothing() {
    let sink = Sink::start(Behaviour::default());
    let (gateway, program) = with_program_of_its_own(&sink.forward());
    let supervisor = gateway.supervisor();
    let stop = Arc::new(AtomicBool::new(false));
    let senders: Vec<_> = (0..8).map(|_| deliver_until(stop.clone(), gateway.address)).collect();
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(300));
        let before = gateway.pid();
        // As a package does it: a new file under the old name.
        let next = program.with_extension("new");
        std::fs::hard_link(env!("CARGO_BIN_EXE_sluice"), &next).unwrap();
        std::fs::remove_file(&program).unwrap();
        std::fs::rename(&next, &program).unwrap();
        gateway.signal("USR2");
        wait_for(|| (!is_alive(before)).then_some(()), "the old one to end");
        let edges = || children_of(supervisor).iter().filter(|(_, name)| name == "sluice: edge").count();
        wait_for(|| (edges() == 1).then_some(()), "one edge to be left");
    }
    stop.store(true, Relaxed);
    let accepted: usize = senders.into_iter().map(|sender| sender.join().expect("nothing is refused")).sum();
    assert_eq!(sink.wait(accepted).len(), accepted, "what was accepted, and nothing twice");
    assert!(accepted > 20 && is_alive(supervisor), "{accepted}");
}

#[test]
fn a_session_under_way_ends_where_it_began() {
    let sink = Sink::start(Behaviour::default());
    let (gateway, _) = with_program_of_its_own(&sink.forward());
    let (before, mut wire) = (gateway.pid(), gateway.connect());
    wire.begin_data();
    wire.send(b"Subject: half\r\n\r\n");
    gateway.signal("USR2");
    wait_for(|| (gateway.pid() != before).then_some(()), "the next edge");
    gateway.wait_for_log("draining");
    assert!(gateway.connect().deliver(&clean()).starts_with("250 "), "the next one serves");
    wire.send(b"done\r\n.\r\n");
    assert!(wire.reply().starts_with("250 "));
    assert!(is_alive(before));
    assert!(wire.command("QUIT").starts_with("221 "));
    wait_for(|| (!is_alive(before)).then_some(()), "the old one to end");
    assert_eq!(sink.wait(2).len(), 2);
}

#[test]
fn what_cannot_take_over_leaves_everything_as_it_is() {
    let sink = Sink::start(Behaviour::default());
    let (gateway, program) = with_program_of_its_own(&sink.forward());
    let before = gateway.pid();
    let mut wire = gateway.connect();
    wire.begin_data();
    // A program that does not run.
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&program, "no program").unwrap();
    gateway.signal("USR2");
    gateway.wait_for_log("upgrade failed, the old program continues");
    // One that does not serve.
    std::fs::remove_file(&program).unwrap();
    std::fs::hard_link(env!("CARGO_BIN_EXE_sluice"), &program).unwrap();
    let config = gateway.folder.path().join("sluice.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, "nonsense = true\n").unwrap();
    gateway.signal("USR2");
    gateway.wait_for_log("the new edge did not start");
    std::fs::write(&config, text).unwrap();
    assert_eq!(gateway.pid(), before);
    wire.send(b"Subject: x\r\n\r\nx\r\n.\r\n");
    assert!(wire.reply().starts_with("250 "));
    assert!(gateway.connect().deliver(&clean()).starts_with("250 "));
    // And one that does.
    gateway.signal("USR2");
    wait_for(|| (gateway.pid() != before).then_some(()), "the next edge");
}

#[test]
fn without_its_supervisor_an_edge_ends_what_it_has_begun() {
    let sink = Sink::start(Behaviour::default());
    let mut gateway = Gateway::start(&sink.forward(), "");
    let edge = gateway.pid();
    let mut wire = gateway.connect();
    wire.begin_data();
    kill("KILL", gateway.supervisor());
    gateway.wait();
    gateway.wait_for_log("draining");
    wait_for(|| TcpStream::connect(gateway.address).is_err().then_some(()), "nobody to listen any more");
    wire.send(b"Subject: x\r\n\r\nx\r\n.\r\n");
    assert!(wire.reply().starts_with("250 "));
    assert!(wire.command("QUIT").starts_with("221 "));
    wait_for(|| (!is_alive(edge)).then_some(()), "the edge to end");
    assert_eq!(sink.wait(1).len(), 1);
}

#[test]
fn the_same_signal_twice_at_once_is_one() {
    let sink = Sink::start(Behaviour::default());
    let mut gateway = Gateway::start(&sink.forward(), "");
    let mut wire = gateway.connect();
    wire.begin_data();
    gateway.signal("TERM");
    gateway.signal("TERM");
    gateway.wait_for_log("stopping");
    wire.send(b"Subject: x\r\n\r\nx\r\n.\r\n");
    assert!(wire.reply().starts_with("250 "));
    assert_eq!(gateway.wait().code(), Some(0));
    assert_eq!(sink.wait(1).len(), 1);
    assert!(!gateway.log().contains("second signal"), "{}", gateway.log());
}

#[test]
fn a_start_that_fails_ends_with_its_status() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("sluice.toml");
    std::fs::write(&config, "nonsense = true\n").unwrap();
    let began = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_sluice")).args(["serve", "-c"]).arg(&config).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("nonsense") && text.matches("sluice:").count() == 1, "{text}");
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn as_the_first_process_of_a_container_it_leaves_no_dead() {
    let unshare = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    if !Command::new("unshare").args(unshare).arg("true").status().is_ok_and(|done| done.success()) {
        return eprintln!("skipped: no namespaces for us");
    }
    let gateway = Gateway::within(&["unshare", unshare[0], unshare[1], unshare[2], unshare[3]], "discard:");
    let first = wait_for(|| children_of(gateway.supervisor()).first().map(|(pid, _)| *pid), "the first process");
    let orphan = ["-p", "-m", "sh", "-c", "(sleep 0.3 &) ; exit 0"];
    assert!(Command::new("nsenter").arg("-t").arg(first.to_string()).args(orphan).status().unwrap().success());
    let listed = || {
        let first = first.to_string();
        let words = ["-t", &first, "-p", "-m", "ps", "-eo", "stat,comm"];
        String::from_utf8(Command::new("nsenter").args(words).output().unwrap().stdout).unwrap()
    };
    wait_for(|| (!listed().contains("sleep")).then_some(()), "the orphan to be buried");
    assert!(gateway.connect().deliver(&clean()).starts_with("250 "));
    kill("KILL", edge_of(first));
    assert!(gateway.connect().deliver(&clean()).starts_with("250 "));
    kill("TERM", first);
    wait_for(|| (!is_alive(first)).then_some(()), "the container to end");
}

/// `sluice reload`: its exit status, and all that it prints.
fn reload(gateway: &Gateway) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    let output = command.args(["reload", "--timeout", "60"]).env("MAINPID", gateway.supervisor().to_string()).output();
    let output = output.unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(said).unwrap())
}

#[test]
fn a_reload_is_answered_with_its_outcome() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start(&sink.forward(), "");
    let config = gateway.folder.path().join("sluice.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let with = |more: &str| std::fs::write(&config, format!("{more}\n{text}")).unwrap();
    let first = gateway.pid();

    with("");
    let (status, said) = reload(&gateway);
    assert!((status, said.starts_with("reloaded, 1 addresses")) == (0, true), "{status} {said}");

    with("nonsense = 1");
    let (status, said) = reload(&gateway);
    assert!(status == 2 && said.contains("old configuration stays in force") && said.contains("nonsense"), "{said}");
    assert_eq!(gateway.pid(), first);

    // What a process settles when it starts is taken over by another one.
    std::fs::write(&config, text.replace("threads = 1", "threads = 2")).unwrap();
    let (status, said) = reload(&gateway);
    assert!((status, &*said) == (0, "reloaded by a new process\n"), "{status} {said}");
    let second = gateway.pid();
    assert_ne!(second, first);
    assert!(gateway.connect().deliver(&clean()).starts_with("250 "));

    // One that does not start leaves the old one in its place, and says why.
    let broken = "[database]\npaths = [\"/nowhere/at/all\"]\n[[listener]]";
    std::fs::write(&config, text.replace("[[listener]]", broken)).unwrap();
    let (status, said) = reload(&gateway);
    assert!(status == 2 && said.contains("/nowhere/at/all"), "{status} {said}");
    gateway.wait_for_log("the old one continues");
    assert_eq!(gateway.pid(), second);
    assert!(gateway.connect().deliver(&clean()).starts_with("250 "));
    std::fs::write(&config, text.replace("threads = 1", "threads = 2")).unwrap();
    assert_eq!(reload(&gateway).0, 0);
}

#[test]
fn a_reload_says_why_the_store_of_a_new_process_does_not_open() {
    let gateway = Gateway::start_with("[store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"", "smtp", "discard:", "");
    let config = gateway.folder.path().join("sluice.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::create_dir_all(gateway.folder.path().join("other/accounts")).unwrap();
    std::fs::write(&config, text.replace("/store\"", "/other\"")).unwrap();
    let (status, said) = reload(&gateway);
    assert!(status == 2 && said.contains("/other/accounts: Is a directory"), "{status} {said}");
}

#[test]
fn a_reload_that_fails_changes_no_bound() {
    let gateway = Gateway::start("discard:", "");
    let config = gateway.folder.path().join("sluice.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    // The certificate is read after the bounds.
    let broken = "[resources]\nsessions_max = 1\n[tls]\n[[tls.certificate]]\nchain = \"/none.pem\"\nkey = \"/none.pem\"\n[[listener]]";
    std::fs::write(&config, text.replace("[[listener]]", broken)).unwrap();
    assert_eq!(reload(&gateway).0, 2);
    let mut wires = [gateway.connect(), gateway.connect()];
    wires.iter_mut().for_each(|wire| assert!(wire.reply().starts_with("220 ")));
}
