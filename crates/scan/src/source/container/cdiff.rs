//! Incremental updates of containers (`.cdiff`): a signed script that changes the lines of the members.
//!
//! ```text
//!  ClamAV-Diff:version:length:   the head, and the length of the script
//!  script, in gzip
//!  :signature                    of all before it, like that of an info file, with a key of its own
//! ```
//! The script's commands are lines: `OPEN member`, and then for that member, by the numbers that its lines had when it was
//! opened, `ADD line`, `DEL number beginning`, `XCHG number beginning line`; `CLOSE`; `MOVE from to first beginning last
//! beginning`, which takes lines out of a member and puts them at the end of another; `UNLINK member`. Beginnings are
//! those of the lines that are there, so that a script that does not fit is noticed.
//!
//! What comes out is a `.cld`, whose info file has to be signed as well: that is verified when it is read, as always.
//!
//! Bounds: those of containers, for the script too.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::archive;
use super::{ContainerKind, HEADER_BYTES, Header, Members, read, signature};
use crate::syntax::line::number;

/// The longest script.
const SCRIPT_BYTES_MAX: u64 = 256 << 20;
/// The longest head.
const HEAD_BYTES_MAX: usize = 64;

/// The members of a container, in their order.
type Files = Vec<(String, Vec<u8>)>;

/// The container with an update put in force: a `.cld`. The container's signatures are verified, and that of the update;
/// the result has to be read to be.
///
/// # Errors
/// If the container or the update is not as it was signed, or they do not fit together.
pub fn patched(file_name: &str, container: &[u8], cdiff: &[u8]) -> Result<Vec<u8>, String> {
    let kind = ContainerKind::of(file_name).ok_or("no container")?;
    let before = read(kind, file_name, container, &mut Nobody)?.version;
    let (version, script) = script(cdiff)?;
    if version != before.saturating_add(1) {
        return Err(format!("an update to version {version}, and version {before} is there"));
    }
    let body = container.get(HEADER_BYTES..).unwrap_or(&[]);
    let mut files = archive::members(body, archive::UNPACKED_BYTES_MAX)?;
    Script::default().run(&script, &mut files)?;
    let info = files.iter().find(|(name, _)| name.ends_with(".info")).ok_or("no info file")?;
    let head = info.1.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let head = String::from_utf8_lossy(head).trim_end().to_owned();
    let after = Header::parse(head.as_bytes())?.version;
    if after != version || head.len() > HEADER_BYTES {
        return Err(format!("the info file is of version {after}, not {version}"));
    }
    let mut out = format!("{head:<HEADER_BYTES$}").into_bytes();
    files.iter().try_for_each(|(name, bytes)| put(&mut out, name, bytes))?;
    out.resize(out.len() + 1024, 0);
    Ok(out)
}

/// The version that an update leads to, and its script, if it is signed.
fn script(cdiff: &[u8]) -> Result<(u32, Vec<u8>), String> {
    let end = cdiff.iter().rposition(|&byte| byte == b':').ok_or("no signature")?;
    let (signed, signature) = (&cdiff[..end], &cdiff[end + 1..]);
    let signature = std::str::from_utf8(signature).map_err(|_| "no signature")?.trim_end();
    if !signature::signs_update(signature, &Sha256::digest(signed).into()) {
        return Err("the signature of the update is wrong".to_owned());
    }
    let colons = signed.iter().take(HEAD_BYTES_MAX).enumerate().filter(|(_, byte)| **byte == b':').map(|(at, _)| at);
    let at = colons.take(3).last().ok_or("no head")?;
    let head = std::str::from_utf8(&signed[..at]).map_err(|_| "the head is no text")?;
    let fields: Vec<&str> = head.split(':').collect();
    let ["ClamAV-Diff", version, length] = fields.as_slice() else {
        return Err("no update of ClamAV".to_owned());
    };
    let (version, length): (u32, u64) = (number(version)?, number(length)?);
    let script = archive::gunzip(&signed[at + 1..], SCRIPT_BYTES_MAX.min(length))?;
    if script.len() as u64 != length {
        return Err(format!("a script of {} bytes, not {length}", script.len()));
    }
    Ok((version, script))
}

/// Members that nobody wants to see.
struct Nobody;

impl Members for Nobody {
    fn open(&mut self, _name: &str) -> Result<(), String> {
        Ok(())
    }

    fn bytes(&mut self, _bytes: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// A script that is run.
#[derive(Default)]
struct Script {
    /// The member that is open.
    name: Option<String>,
    /// Changes of its lines, by their numbers from 1.
    changed: BTreeMap<usize, Change>,
    added: Vec<u8>,
}

/// A line that begins so, and what stands in its place, if anything does.
struct Change {
    beginning: Vec<u8>,
    line: Option<Vec<u8>>,
}

impl Script {
    fn run(mut self, script: &[u8], files: &mut Files) -> Result<(), String> {
        for (number, line) in script.split(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.is_empty() && !line.starts_with(b"#") {
                self.command(line, files).map_err(|reason| format!("line {} of the script: {reason}", number + 1))?;
            }
        }
        if self.name.is_some() { Err("the script breaks off".to_owned()) } else { Ok(()) }
    }

    fn command(&mut self, line: &[u8], files: &mut Files) -> Result<(), String> {
        let (command, rest) = word(line);
        match (command, &self.name) {
            (b"OPEN", None) => {
                self.name = Some(name_of(rest)?);
                Ok(())
            }
            (b"ADD", Some(_)) => {
                self.added.extend_from_slice(rest);
                self.added.push(b'\n');
                Ok(())
            }
            (b"DEL", Some(_)) => {
                let (at, beginning) = numbered(rest)?;
                self.change(at, Change { beginning: beginning.to_vec(), line: None })
            }
            (b"XCHG", Some(_)) => {
                let (at, rest) = numbered(rest)?;
                let (beginning, line) = word(rest);
                self.change(at, Change { beginning: beginning.to_vec(), line: Some(line.to_vec()) })
            }
            (b"CLOSE", Some(_)) => self.close(files),
            (b"MOVE", None) => moved(rest, files),
            (b"UNLINK", None) => {
                let name = name_of(rest)?;
                let before = files.len();
                files.retain(|(known, _)| *known != name);
                if files.len() < before { Ok(()) } else { Err(format!("{name} is not there")) }
            }
            _ => Err("no command that could stand here".to_owned()),
        }
    }

    fn change(&mut self, at: usize, change: Change) -> Result<(), String> {
        match self.changed.insert(at, change) {
            None => Ok(()),
            Some(_) => Err(format!("line {at} is changed twice")),
        }
    }

    fn close(&mut self, files: &mut Files) -> Result<(), String> {
        let Script { name, mut changed, added } = std::mem::take(self);
        let name = name.ok_or("no member is open")?;
        let bytes = match files.iter_mut().find(|(known, _)| *known == name) {
            Some((_, bytes)) => bytes,
            None => {
                files.push((name, Vec::new()));
                &mut files.last_mut().ok_or("no members")?.1
            }
        };
        let mut out = Vec::with_capacity(bytes.len() + added.len());
        for (index, line) in lines(bytes).enumerate() {
            let line = match changed.remove(&(index + 1)) {
                None => line,
                Some(change) if !line.starts_with(&change.beginning) => {
                    return Err(format!("line {} is another one", index + 1));
                }
                Some(Change { line: None, .. }) => continue,
                Some(Change { line: Some(other), .. }) => {
                    out.extend_from_slice(&other);
                    out.push(b'\n');
                    continue;
                }
            };
            out.extend_from_slice(line);
            out.push(b'\n');
        }
        if let Some(at) = changed.keys().next() {
            return Err(format!("there is no line {at}"));
        }
        out.extend_from_slice(&added);
        *bytes = out;
        Ok(())
    }
}

/// The lines of a member; the last need not end.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line))
}

fn word(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b' ', line) {
        Some(at) => (&line[..at], &line[at + 1..]),
        None => (line, &[]),
    }
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| "no text".to_owned())
}

fn numbered(rest: &[u8]) -> Result<(usize, &[u8]), String> {
    let (at, rest) = word(rest);
    Ok((number(text(at)?)?, rest))
}

/// The name of a member: no path.
fn name_of(bytes: &[u8]) -> Result<String, String> {
    let name = text(bytes)?;
    let fits = !name.is_empty()
        && name.len() < 100
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if fits { Ok(name.to_owned()) } else { Err(format!("{name:?} is no name of a member")) }
}

/// Whether that line of a member begins so.
fn check(files: &Files, name: &str, at: usize, beginning: &[u8]) -> Result<(), String> {
    let file = files.iter().find(|(known, _)| known == name).ok_or_else(|| format!("{name} is not there"))?;
    let line =
        at.checked_sub(1).and_then(|at| lines(&file.1).nth(at)).ok_or_else(|| format!("{name} has no line {at}"))?;
    if line.starts_with(beginning) { Ok(()) } else { Err(format!("line {at} of {name} is another one")) }
}

/// Takes lines out of a member and puts them at the end of another.
fn moved(rest: &[u8], files: &mut Files) -> Result<(), String> {
    let (from, rest) = word(rest);
    let (to, rest) = word(rest);
    let (from, to) = (name_of(from)?, name_of(to)?);
    let (first, rest) = numbered(rest)?;
    let (first_line, rest) = word(rest);
    let (last, last_line) = numbered(rest)?;
    check(files, &from, first, first_line)?;
    check(files, &from, last, last_line)?;
    let place = |name: &str, files: &Files| files.iter().position(|(known, _)| known == name);
    let source = place(&from, files).ok_or_else(|| format!("{from} is not there"))?;
    let (mut kept, mut taken) = (Vec::new(), Vec::new());
    for (index, line) in lines(&files[source].1).enumerate() {
        let out = if (first..=last).contains(&(index + 1)) { &mut taken } else { &mut kept };
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    files[source].1 = kept;
    match place(&to, files) {
        Some(target) => files[target].1.extend(taken),
        None => files.push((to, taken)),
    }
    Ok(())
}

/// Puts a member into a tar archive (POSIX.1-1988, `ustar`).
fn put(out: &mut Vec<u8>, name: &str, bytes: &[u8]) -> Result<(), String> {
    const BLOCK: usize = 512;
    let mut head = [0u8; BLOCK];
    let mut field = |at: usize, text: &str| head[at..at + text.len()].copy_from_slice(text.as_bytes());
    if name.len() >= 100 {
        return Err(format!("{name:?} is too long"));
    }
    field(0, name);
    field(100, "0000644\0");
    field(108, "0000000\0");
    field(116, "0000000\0");
    field(124, &format!("{:011o}\0", bytes.len()));
    field(136, "00000000000\0");
    field(148, "        ");
    field(156, "0");
    field(257, "ustar\0");
    field(263, "00");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(bytes);
    out.resize(out.len().next_multiple_of(BLOCK), 0);
    Ok(())
}

/// Fuzz body: up to the first NUL a script, which is run over two members, the rest an update.
pub fn fuzz_cdiff(data: &[u8]) {
    let (commands, update) = data.split_at(memchr::memchr(0, data).unwrap_or(data.len()));
    let mut files: Files = vec![("a.ndb".to_owned(), b"one\ntwo\nthree".to_vec()), ("b.ndb".to_owned(), Vec::new())];
    let _ = Script::default().run(commands, &mut files);
    let mut out = Vec::new();
    for (name, bytes) in &files {
        put(&mut out, name, bytes).expect("names of members are short");
    }
    out.resize(out.len() + 1024, 0);
    assert_eq!(archive::members(&out, 1 << 20), Ok(files));
    let _ = script(update);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> Result<Vec<(String, String)>, String> {
        let mut files: Files = vec![("a.ndb".to_owned(), b"one\ntwo\nthree\n".to_vec())];
        Script::default().run(script.as_bytes(), &mut files)?;
        Ok(files.into_iter().map(|(name, bytes)| (name, String::from_utf8(bytes).expect("text"))).collect())
    }

    fn one(text: &str) -> Vec<(String, String)> {
        vec![("a.ndb".to_owned(), text.to_owned())]
    }

    #[test]
    fn lines_are_added_deleted_exchanged_and_moved() {
        let script = "OPEN a.ndb\nADD four 4\nDEL 1 on\nXCHG 3 thr drei 3\nADD five\nCLOSE\n";
        assert_eq!(run(script), Ok(one("two\ndrei 3\nfour 4\nfive\n")));
        let moved = run("MOVE a.ndb b.ndb 1 one 2 tw\n").expect("a script");
        assert_eq!(moved, [("a.ndb".into(), "three\n".into()), ("b.ndb".into(), "one\ntwo\n".into())]);
        assert_eq!(run("OPEN b.ndb\nADD x\nCLOSE\nUNLINK a.ndb\n"), Ok(vec![("b.ndb".into(), "x\n".into())]));
    }

    #[test]
    fn a_script_that_does_not_fit_is_refused() {
        for script in [
            "OPEN a.ndb\nDEL 1 two\nCLOSE",
            "OPEN a.ndb\nDEL 9 x\nCLOSE",
            "OPEN a.ndb\nDEL 0 x\nCLOSE",
            "OPEN a.ndb\nDEL 1 one\nDEL 1 one\nCLOSE",
            "OPEN a.ndb\nADD x",
            "ADD x",
            "CLOSE",
            "OPEN ../x\nCLOSE",
            "UNLINK b.ndb",
            "MOVE a.ndb b.ndb 1 x 2 y",
            "NONE",
        ] {
            assert!(run(script).is_err(), "{script}");
        }
    }
}
