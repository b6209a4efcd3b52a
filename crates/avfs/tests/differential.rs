//! The mount beside a bare folder: random sequences of operations have the same results, errors and attributes.
//!
//! `SLUICE_SEQUENCES` is how many sequences are run (some thousand operations without it); a failure prints the seed and
//! what was done.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use avfs::Mode;
use rustix::fs::{self, AtFlags, FallocateFlags, FileType, Gid, OFlags, RenameFlags, Uid, XattrFlags};
use rustix::io::Errno;
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};

use crate::harness::{How, Mount};

/// Numbers that are the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }

    fn one<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.next(all.len() as u64) as usize]
    }
}

const NAMES: [&str; 8] = ["a", "b", "c", "d0", "d1", "d0/a", "d0/b", "d1/a"];
const USERS: [u32; 4] = [0, 0, 0, 1001];

#[derive(Debug, Clone, Copy)]
enum Act {
    Open(&'static str, u32, u32),
    Close(usize),
    Read(usize, u64, usize),
    Write(usize, u64, u8, usize),
    Append(&'static str, u8, usize),
    SetLength(usize, u64),
    Truncate(&'static str, u64),
    Allocate(usize, u32, u64, u64),
    Sync(usize),
    Seek(usize, u8, u64),
    Copy(usize, usize, u64, u64, usize),
    Make(&'static str, u32),
    Remove(&'static str, bool),
    Rename(&'static str, &'static str, u32),
    Link(&'static str, &'static str),
    Symlink(&'static str, &'static str),
    Node(&'static str, bool),
    Chmod(&'static str, u32),
    Chown(&'static str, u32, u32),
    Times(&'static str, i64),
    SetAttribute(&'static str, u8, u32),
    GetAttribute(&'static str, u8),
    RemoveAttribute(&'static str, u8),
    Stat(&'static str),
    StatOpen(usize),
    List(&'static str),
    Load(&'static str),
}

fn act(numbers: &mut Numbers) -> Act {
    let (name, other, slot) = (numbers.one(&NAMES), numbers.one(&NAMES), numbers.next(4) as usize);
    let at = numbers.one(&[0, 1, 100, 4095, 4096, 8192, 10_000, 70_000]) + numbers.next(3);
    let length = numbers.one(&[0, 1, 10, 100, 4096, 5000, 20_000]);
    let (byte, mode) =
        (numbers.next(256) as u8, numbers.one(&[0o644, 0o600, 0o755, 0o000, 0o4755, 0o2775, 0o1777, 0o444]));
    let access = numbers.one(&[OFlags::RDONLY, OFlags::WRONLY, OFlags::RDWR, OFlags::RDWR]);
    let mut flags = access;
    for more in [OFlags::CREATE, OFlags::CREATE, OFlags::TRUNC, OFlags::EXCL, OFlags::APPEND, OFlags::NOFOLLOW] {
        flags |= if numbers.next(3) == 0 { more } else { OFlags::empty() };
    }
    if !flags.contains(OFlags::CREATE) {
        // What it means alone is not defined.
        flags -= OFlags::EXCL;
    }
    match numbers.next(40) {
        0..=6 => Act::Open(name, flags.bits(), mode),
        7 => Act::Close(slot),
        8..=10 => Act::Read(slot, at, length as usize),
        11..=15 => Act::Write(slot, at, byte, length as usize),
        16 => Act::Append(name, byte, length as usize),
        17 => Act::SetLength(slot, at),
        18 => Act::Truncate(name, at),
        19 => Act::Allocate(slot, numbers.one(&[0, 1, 3, 0x10, 0x11, 2]), at, length),
        20 => Act::Sync(slot),
        21 => Act::Seek(slot, numbers.next(3) as u8, at),
        22 => Act::Copy(slot, numbers.next(4) as usize, at, numbers.one(&[0, 50, 30_000]), length as usize),
        23..=24 => Act::Make(name, mode),
        25..=26 => Act::Remove(name, numbers.next(3) == 0),
        27..=28 => Act::Rename(name, other, numbers.one(&[0, 0, 0, 1, 2])),
        29 => Act::Link(name, other),
        30 => Act::Symlink(numbers.one(&["a", "d0", "../b", "nowhere"]), other),
        31 => Act::Node(name, byte & 1 == 0),
        32 => Act::Chmod(name, mode),
        33 => Act::Chown(name, numbers.one(&[0, 1001, u32::MAX]), numbers.one(&[0, 1002, u32::MAX])),
        34 => Act::Times(name, numbers.next(1_000_000) as i64),
        35 => Act::SetAttribute(name, byte & 3, numbers.one(&[0, 1, 2])),
        36 => match byte & 1 {
            0 => Act::GetAttribute(name, byte >> 6),
            _ => Act::RemoveAttribute(name, byte >> 6),
        },
        37 => {
            if byte & 1 == 0 {
                Act::Stat(name)
            } else {
                Act::StatOpen(slot)
            }
        }
        38 => Act::List(numbers.one(&["", "d0", "d1"])),
        _ => Act::Load(name),
    }
}

/// Result of an operation.
type Outcome = Result<String, Errno>;

/// One of the two folders, and what is open there.
struct Side {
    folder: std::path::PathBuf,
    open: [Option<File>; 4],
    is_exact: bool,
}

/// A time that was set; `now` for others.
fn time(seconds: i64) -> String {
    if seconds < 2_000_000 { seconds.to_string() } else { "now".into() }
}

fn told(facts: &std::fs::Metadata) -> String {
    let kind = FileType::from_raw_mode(facts.mode());
    let size = if kind == FileType::RegularFile || kind == FileType::Symlink { facts.len() } else { 0 };
    let (mode, links, time) = (facts.mode(), facts.nlink(), time(facts.mtime()));
    format!("{mode:o} {links} {}:{} {size} {} {time}", facts.uid(), facts.gid(), facts.rdev())
}

fn done<T>(result: rustix::io::Result<T>) -> Outcome {
    result.map(|_| String::new())
}

fn std_error(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

impl Side {
    fn new(folder: &Path, is_exact: bool) -> Side {
        Side { folder: folder.into(), open: Default::default(), is_exact }
    }

    fn file(&self, slot: usize) -> Result<&File, Errno> {
        self.open[slot].as_ref().ok_or(Errno::BADF)
    }

    fn run(&mut self, act: Act) -> Outcome {
        let at = |name: &str| self.folder.join(name);
        match act {
            Act::Open(name, flags, mode) => {
                let flags = OFlags::from_bits_retain(flags) | OFlags::CLOEXEC | OFlags::NONBLOCK;
                let file = File::from(fs::open(at(name), flags, fs::Mode::from_raw_mode(mode))?);
                let kind = FileType::from_raw_mode(file.metadata().map_err(std_error)?.mode());
                if kind == FileType::RegularFile {
                    let free = self.open.iter().position(Option::is_none).unwrap_or(0);
                    self.open[free] = Some(file);
                }
                Ok(format!("{kind:?}"))
            }
            Act::Close(slot) => {
                self.open[slot] = None;
                Ok(String::new())
            }
            Act::Read(slot, offset, length) => {
                let mut buffer = vec![0; length];
                let count = self.file(slot)?.read_at(&mut buffer, offset).map_err(std_error)?;
                Ok(format!("{:?}", shortened(&buffer[..count])))
            }
            Act::Write(slot, offset, byte, length) => {
                let count = self.file(slot)?.write_at(&vec![byte; length], offset).map_err(std_error)?;
                Ok(count.to_string())
            }
            Act::Append(name, byte, length) => {
                let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = File::from(fs::open(at(name), flags, fs::Mode::empty())?);
                if !file.metadata().map_err(std_error)?.is_file() {
                    return Ok("special".into());
                }
                let count = rustix::io::write(&file, &vec![byte; length])?;
                Ok(count.to_string())
            }
            Act::SetLength(slot, length) => done(fs::ftruncate(self.file(slot)?, length)),
            Act::Truncate(name, length) => {
                // std has no truncate by name; a file that is opened for it and nothing else is as near.
                let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = fs::open(at(name), flags, fs::Mode::empty())?;
                done(fs::ftruncate(file, length))
            }
            Act::Allocate(slot, mode, offset, length) => {
                done(fs::fallocate(self.file(slot)?, FallocateFlags::from_bits_retain(mode), offset, length))
            }
            Act::Sync(slot) => done(fs::fsync(self.file(slot)?)),
            Act::Seek(slot, kind, offset) => {
                let file = self.file(slot)?;
                let from = match kind {
                    0 => fs::SeekFrom::End(0),
                    1 if self.is_exact => fs::SeekFrom::Data(offset),
                    2 if self.is_exact => fs::SeekFrom::Hole(offset),
                    _ => return Ok(String::new()),
                };
                Ok(fs::seek(file, from)?.to_string())
            }
            Act::Copy(from, to, mut read, mut write, length) => {
                let (from, to) = (self.file(from)?, self.file(to)?);
                let mut all = 0;
                while all < length {
                    match fs::copy_file_range(from, Some(&mut read), to, Some(&mut write), length - all)? {
                        0 => break,
                        count => all += count,
                    }
                }
                Ok(all.to_string())
            }
            Act::Make(name, mode) => done(fs::mkdir(at(name), fs::Mode::from_raw_mode(mode))),
            Act::Remove(name, is_folder) => {
                let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                done(fs::unlinkat(fs::CWD, at(name), flags))
            }
            Act::Rename(from, to, flags) => {
                done(fs::renameat_with(fs::CWD, at(from), fs::CWD, at(to), RenameFlags::from_bits_retain(flags)))
            }
            Act::Link(from, to) => done(fs::link(at(from), at(to))),
            Act::Symlink(target, name) => {
                fs::symlink(target, at(name))?;
                let target = fs::readlink(at(name), Vec::new())?;
                Ok(format!("{target:?}"))
            }
            Act::Node(name, is_pipe) => {
                let (kind, device) =
                    if is_pipe { (FileType::Fifo, 0) } else { (FileType::CharacterDevice, fs::makedev(1, 3)) };
                done(fs::mknodat(fs::CWD, at(name), kind, fs::Mode::from_raw_mode(0o640), device))
            }
            Act::Chmod(name, mode) => done(fs::chmod(at(name), fs::Mode::from_raw_mode(mode))),
            // To change neither is a question of rights alone, which the kernel answers for FUSE without asking.
            Act::Chown(_, u32::MAX, u32::MAX) => Ok(String::new()),
            Act::Chown(name, user, group) => {
                let number = |number| if number == u32::MAX { None } else { Some(number) };
                let (user, group) = (number(user).map(Uid::from_raw), number(group).map(Gid::from_raw));
                done(fs::chownat(fs::CWD, at(name), user, group, AtFlags::SYMLINK_NOFOLLOW))
            }
            Act::Times(name, seconds) => {
                let spec = fs::Timespec { tv_sec: seconds, tv_nsec: 7 };
                let times = fs::Timestamps { last_access: spec, last_modification: spec };
                done(fs::utimensat(fs::CWD, at(name), &times, AtFlags::SYMLINK_NOFOLLOW))
            }
            Act::SetAttribute(name, number, flags) => {
                let value = vec![number; 10 * usize::from(number)];
                done(fs::setxattr(at(name), format!("user.{number}"), &value, XattrFlags::from_bits_retain(flags)))
            }
            Act::GetAttribute(name, number) => {
                let mut value = [0; 64];
                let count = fs::getxattr(at(name), format!("user.{number}"), &mut value[..])?;
                Ok(format!("{:?}", &value[..count]))
            }
            Act::RemoveAttribute(name, number) => done(fs::removexattr(at(name), format!("user.{number}"))),
            Act::Stat(name) => std::fs::symlink_metadata(at(name)).map(|facts| told(&facts)).map_err(std_error),
            Act::StatOpen(slot) => self.file(slot)?.metadata().map(|facts| told(&facts)).map_err(std_error),
            Act::List(name) => list(&at(name)),
            Act::Load(name) => {
                if !std::fs::metadata(at(name)).map_err(std_error)?.is_file() {
                    return Ok("special".into());
                }
                let content = std::fs::read(at(name)).map_err(std_error)?;
                Ok(format!("{} {:?}", content.len(), shortened(&content)))
            }
        }
    }

    /// Everything that is there.
    fn tree(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        let mut folders = vec![String::new()];
        while let Some(inner) = folders.pop() {
            for entry in std::fs::read_dir(self.folder.join(&inner)).expect("a folder") {
                let entry = entry.expect("an entry");
                let name =
                    format!("{inner}/{}", entry.file_name().to_string_lossy()).trim_start_matches('/').to_owned();
                let facts = std::fs::symlink_metadata(entry.path()).expect("facts");
                let mut text = told(&facts);
                if facts.is_dir() {
                    folders.push(name.clone());
                } else if facts.is_symlink() {
                    text += &format!(" {:?}", std::fs::read_link(entry.path()).expect("a link"));
                } else if facts.is_file() {
                    text += &format!(" {:?}", shortened(&std::fs::read(entry.path()).expect("content")));
                }
                let mut names = [0; 512];
                let count = fs::llistxattr(entry.path(), &mut names[..]).unwrap_or(0);
                let mut names: Vec<_> = names[..count].split(|&byte| byte == 0).collect();
                names.sort_unstable();
                all.insert(name, text + &format!(" {names:?}"));
            }
        }
        all
    }
}

/// Runs of the same byte as their lengths.
fn shortened(content: &[u8]) -> Vec<(u8, usize)> {
    content.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect()
}

fn list(folder: &Path) -> Outcome {
    let entries = std::fs::read_dir(folder).map_err(std_error)?;
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect();
    names.sort_unstable();
    Ok(names.join(" "))
}

fn become_user(user: u32) {
    set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).expect("root again");
    let group = Gid::from_raw(user);
    set_thread_res_gid(Gid::ROOT, group, Gid::ROOT).expect("a group");
    set_thread_res_uid(Uid::ROOT, Uid::from_raw(user), Uid::ROOT).expect("a user");
}

fn lines(history: &[(Act, u32)]) -> String {
    history.iter().map(|(act, user)| format!("\n  {user}: {act:?}")).collect()
}

fn sequences() -> u64 {
    std::env::var("SLUICE_SEQUENCES").ok().and_then(|text| text.parse().ok()).unwrap_or(250)
}

fn compare(how: How, first_seed: u64) {
    let Some(mount) = Mount::new(how) else { return };
    let bare = tempfile::tempdir_in(mount.folder.path()).expect("a folder");
    for seed in first_seed..first_seed + sequences() {
        let (here, there) = (mount.at(&seed.to_string()), bare.path().join(seed.to_string()));
        for folder in [&here, &there] {
            std::fs::create_dir(folder).expect("a folder");
            fs::chmod(folder, fs::Mode::from_raw_mode(0o777)).expect("a mode");
        }
        let (mut mounted, mut bare) = (Side::new(&here, how.passes_all), Side::new(&there, how.passes_all));
        let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut history = Vec::new();
        for _ in 0..40 {
            let (act, user) = (act(&mut numbers), numbers.one(&USERS));
            history.push((act, user));
            become_user(user);
            let outcomes = (mounted.run(act), bare.run(act));
            become_user(0);
            assert_eq!(outcomes.0, outcomes.1, "seed {seed}: mounted and bare, after {}", lines(&history));
        }
        (mounted.open, bare.open) = Default::default();
        // FUSE tells the mount of a close after it has returned, and a listing may miss a file that takes its place meanwhile.
        let deadline = Instant::now() + Duration::from_secs(5);
        let trees = loop {
            let trees = (mounted.tree(), bare.tree());
            if trees.0 == trees.1 || Instant::now() > deadline {
                break trees;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(trees.0, trees.1, "seed {seed}: mounted and bare, after {}", lines(&history));
        let below = Side::new(&mount.below(&seed.to_string()), true).tree();
        assert_eq!(below, trees.1, "seed {seed}: below and bare, after {}", lines(&history));
        for folder in [&here, &there] {
            std::fs::remove_dir_all(folder).expect("it goes");
        }
    }
}

#[test]
fn a_mount_that_inspects_nothing_is_as_the_folder() {
    compare(How { passes_all: true, ..How::default() }, 1);
}

#[test]
fn a_mount_that_inspects_is_as_the_folder_for_what_is_clean() {
    compare(How::default(), 100_001);
}

#[test]
fn a_mount_that_inspects_whole_files_is_as_the_folder_for_what_is_clean() {
    compare(How { mode: Mode::Full, ..How::default() }, 200_001);
}

#[test]
fn a_mount_that_holds_few_files_is_as_the_folder() {
    compare(How { held_max: Some(2), ..How::default() }, 300_001);
}
