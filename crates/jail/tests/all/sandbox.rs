//! Rights of jails, and what a hostile one can reach.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::{Command, ExitCode, Stdio};

use crate::Test;
use crate::site::{inspects_again, jails, site, templates, wait_for_their_end};

pub const TESTS: &[Test] =
    tests![a_jail_and_its_template_have_no_capability_and_few_calls, a_hostile_jail_reaches_nothing,];

/// Attempts of an attacker who has taken over a jail, and whether they succeeded.
pub fn hostile() -> ExitCode {
    let host = std::process::id();
    let parent = rustix::process::getppid();
    let stdin = std::io::stdin().as_raw_fd();
    let secret = File::open("/etc/passwd").map(|file| file.as_raw_fd());
    let confined = jail::confine();
    let try_to = |what: &str, came: bool| println!("{what}: {}", if came { "DONE" } else { "refused" });
    try_to("confined", confined.as_ref().is_ok_and(|confined| !confined.seccomp));
    try_to("read a file", std::fs::read("/etc/passwd").is_ok());
    try_to("write a file", std::fs::write("/tmp/sluice-hostile", b"x").is_ok());
    try_to("list a folder", std::fs::read_dir("/").is_ok());
    try_to("read its own maps", std::fs::read("/proc/self/maps").is_ok());
    try_to("read the parent's memory", File::open(format!("/proc/{host}/mem")).is_ok());
    try_to("connect", std::net::TcpStream::connect("127.0.0.1:9").is_ok_and(|_| true));
    try_to("make a socket", std::net::UdpSocket::bind("127.0.0.1:0").is_ok());
    try_to("make a pair of sockets", std::os::unix::net::UnixStream::pair().is_ok());
    try_to("start a program", Command::new("/bin/true").stdin(Stdio::null()).spawn().is_ok());
    try_to("start a thread", std::thread::Builder::new().spawn(|| ()).is_ok());
    let killed = parent.map(|parent| rustix::process::test_kill_process(parent).is_ok());
    try_to("signal the parent", killed == Some(true));
    try_to("another descriptor", rustix::io::dup(std::io::stdout()).is_ok());
    try_to("look at a descriptor's file", rustix::fs::fstat(std::io::stdout()).is_ok());
    let _ = (secret, stdin);
    ExitCode::SUCCESS
}

/// Rights of a process, by the kernel.
fn rights(pid: u32) -> Vec<(String, String)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let fields = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"];
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        fields.contains(&name).then(|| (name.to_owned(), value.trim().trim_start_matches('0').to_owned()))
    };
    status.lines().filter_map(field).collect()
}

fn a_jail_and_its_template_have_no_capability_and_few_calls() {
    wait_for_their_end();
    let site = site(1);
    inspects_again(&site);
    let is_root = rustix::process::geteuid().is_root();
    for pid in templates().into_iter().chain(jails()) {
        let is_template = templates().contains(&pid);
        for (name, value) in rights(pid.cast_unsigned()) {
            let wanted = match name.as_str() {
                "NoNewPrivs" => "1",
                "Seccomp" => "2",
                // The bounding set is root's to change, of its own namespace.
                "CapBnd" if !is_root && (is_template || !site.confined.namespaces) => continue,
                _ => "",
            };
            assert_eq!(value, wanted, "{name} of {pid}, a template: {is_template}");
        }
    }
}

fn a_hostile_jail_reaches_nothing() {
    let output = Command::new("/proc/self/exe").arg("hostile").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    assert!(said.lines().count() >= 14, "{said} {}", String::from_utf8_lossy(&output.stderr));
    assert!(said.lines().all(|line| line.ends_with("refused")), "{said}");
}
