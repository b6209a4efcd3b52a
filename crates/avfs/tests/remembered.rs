//! Memory of the kernel about the mount, and of the mount.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Command, Stdio};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::harness::{How, Mount, until};

/// More than are held.
const OTHERS: usize = 60;

/// Many others are looked at, so that what nobody uses is let go.
fn look_at_others(mount: &Mount) {
    for n in 0..OTHERS {
        let name = format!("other{n}");
        fs::write(mount.below(&name), b"").expect("a file below");
        fs::metadata(mount.at(&name)).expect("its facts");
    }
}

#[test]
fn what_is_not_where_it_was_is_looked_up_once_more_or_stale() {
    let Some(mount) = Mount::new(How { held_max: Some(2), ..How::default() }) else { return };
    fs::write(mount.at("a"), b"old").expect("a file");
    let held = OpenOptions::new().read(true).custom_flags(OFlags::PATH.bits().cast_signed()).open(mount.at("a"));
    let held = held.expect("it is held, and not opened");
    look_at_others(&mount);
    // The kernel goes by the names that it has, for a second.
    fs::rename(mount.below("a"), mount.below("b")).expect("another name, behind the mount");
    fs::write(mount.below("a"), b"new").expect("another file in its place");
    assert_eq!(fs::read(mount.at("a")).expect("the kernel asks for the name once more"), b"new");
    look_at_others(&mount);
    until("its facts are older than they may be", || {
        rustix::fs::fstat(&held).is_err_and(|error| error == Errno::STALE)
    });
    // By the name that it has it is the same file.
    assert_eq!(fs::read(mount.at("b")).expect("the old one"), b"old");
    rustix::fs::fstat(&held).expect("it is found again");
}

/// Whether the kernel can be asked to forget what it does not use.
fn kernel_prunes() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel's release");
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 18)
}

#[test]
fn the_kernel_forgets_folders_too_but_for_those_that_are_used() {
    const FOLDERS: usize = 500;
    if !kernel_prunes() {
        return eprintln!("skipped: before Linux 6.18 the kernel cannot be asked");
    }
    let Some(mount) = Mount::new(How { known_max: Some(50), held_max: Some(20), ..How::default() }) else { return };
    fs::create_dir_all(mount.at("used/inner")).expect("folders");
    let mut inside = Command::new("sh")
        .args(["-c", "echo here; read line; pwd -P; echo x > file; cat file"])
        .current_dir(mount.at("used/inner"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sh runs");
    let mut said = BufReader::new(inside.stdout.take().expect("its output")).lines();
    assert_eq!(said.next().expect("a line").expect("text"), "here");
    let open = File::create(mount.at("open")).expect("a file");
    for n in 0..FOLDERS {
        fs::create_dir_all(mount.at(&format!("folder{n}/inner"))).expect("folders");
        fs::write(mount.at(&format!("folder{n}/inner/file")), n.to_string()).expect("a file");
    }
    // Each new one has the kernel forget two.
    let name = std::cell::Cell::new(0);
    until("most are forgotten", || {
        name.set(name.get() + 1);
        let _ = fs::metadata(mount.at(&format!("folder{}", name.get() % FOLDERS)));
        mount.known() < 150
    });
    inside.stdin.take().expect("its input").write_all(b"go\n").expect("it is heard");
    let rest: Vec<String> = said.map(|line| line.expect("text")).collect();
    assert_eq!(rest, [mount.at("used/inner").canonicalize().expect("a path").to_str().expect("text"), "x"]);
    assert!(inside.wait().expect("it ends").success());
    (&open).write_all(b"still").and_then(|()| open.sync_all()).expect("still open");
    for n in 0..FOLDERS {
        let read = fs::read_to_string(mount.at(&format!("folder{n}/inner/file")));
        assert_eq!(read.expect("it is found again"), n.to_string());
    }
}
