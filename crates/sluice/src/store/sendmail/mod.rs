//! `sluice sendmail`, or the program under the names `sendmail`, `mailq` and `newaliases`: mail from commands.
//!
//! ```text
//!  a command ─► a file in the maildrop, synced ─► exit 0       the server, now or when it starts ─► the queue
//! ```
//!
//! Every user may make files in the maildrop, and nobody lists them: the folder has the mode 3733. Files take its group, by which the server
//! reads them; the kernel says whose they are, and so who sends. No program needs the rights of another user. A file is closed to the
//! server (mode 0600) until all of it is on stable storage. Exit statuses are those of `sysexits.h`.

mod draft;
pub mod envelope;
mod flags;
mod input;
mod session;

use std::ffi::OsString;
use std::io::{self, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use proto::smtp::Return;

use self::draft::Draft;
use self::envelope::Envelope;
use self::flags::{Flags, Mode};
use self::input::{Lines, RECIPIENTS_MAX, of_header, of_list, of_word};
use crate::cli;
use crate::config::StoreSettings;

/// The maildrop, unless the configuration names another.
const MAILDROP: &str = "/var/spool/sluice/maildrop";

/// Bytes that are collected before they are written.
const PIECE_BYTES: usize = 256 << 10;

/// Bytes of a session that are read, and of a mail, at a time.
const WINDOW_BYTES: usize = 64 << 10;

/// Why a mail was not taken, with an exit status of `sysexits.h`.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// The exit status.
    pub status: u8,
    /// The reason.
    pub why: String,
}

impl Fault {
    fn of(status: u8, why: impl Into<String>) -> Fault {
        Fault { status, why: why.into() }
    }

    /// EX_USAGE
    fn usage(why: impl Into<String>) -> Fault {
        Fault::of(64, why)
    }

    /// EX_DATAERR
    fn data(why: impl Into<String>) -> Fault {
        Fault::of(65, why)
    }

    /// EX_IOERR
    fn input(error: &io::Error) -> Fault {
        Fault::of(74, format!("standard input: {error}"))
    }

    /// EX_UNAVAILABLE where there is no maildrop, EX_NOPERM where it is closed, EX_TEMPFAIL for what may pass.
    fn output(folder: &Path, error: &io::Error) -> Fault {
        let status = match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => 69,
            ErrorKind::PermissionDenied => 77,
            _ => 75,
        };
        Fault::of(status, format!("{}: {error}", folder.display()))
    }
}

/// The arguments of `sluice sendmail`, if the program was started under another name of it.
pub fn is_called(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let name = Path::new(arguments.first()?).file_name()?.to_str()?;
    let front = match name {
        "sendmail" => &[][..],
        "mailq" => &["-bp"],
        "newaliases" => &["-bi"],
        _ => return None,
    };
    Some(front.iter().map(OsString::from).chain(arguments.iter().skip(1).cloned()).collect())
}

/// Does what the command line says; what is wrong is printed.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let words = arguments.iter().map(|word| word.to_str().map(str::to_owned));
    let words: Option<Vec<String>> = words.collect();
    let flags = words.ok_or_else(|| Fault::usage("an argument is not UTF-8")).and_then(Flags::parse);
    match flags.and_then(|flags| done(&flags)) {
        Ok(status) => status,
        Err(Fault { status, why }) => {
            eprintln!("sendmail: {why}");
            ExitCode::from(status)
        }
    }
}

fn done(flags: &Flags) -> Result<ExitCode, Fault> {
    match flags.mode {
        Mode::Mail => mail(flags, BufReader::new(io::stdin().lock())).map(|()| ExitCode::SUCCESS),
        Mode::Session => session(flags).map(|()| ExitCode::SUCCESS),
        Mode::Aliases => Ok(ExitCode::SUCCESS),
        Mode::Help => help(),
        Mode::Queue => queue(flags, "list"),
        Mode::Flush => queue(flags, "flush"),
    }
}

/// Prints the help that the command line of the program has.
fn help() -> Result<ExitCode, Fault> {
    use clap::CommandFactory as _;
    let mut whole = cli::Cli::command();
    whole.build();
    let printed = whole.find_subcommand_mut("sendmail").map(|command| command.print_long_help());
    printed.transpose().map_err(|error| Fault::of(74, error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

/// As `sluice queue` does it. That nothing waits is no error.
fn queue(flags: &Flags, action: &str) -> Result<ExitCode, Fault> {
    use clap::Parser as _;
    let config = flags.config.clone().unwrap_or_else(|| cli::CONFIG.into());
    let words = ["sluice".into(), "queue".into(), action.into(), "--config".into(), config.into_os_string()];
    let cli::Command::Queue(queue) = cli::Cli::parse_from(words).command else { return Ok(ExitCode::FAILURE) };
    super::queue::run(&queue).map_err(|error| Fault::of(69, error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

/// The maildrop, and the bytes that a mail may have.
fn place(flags: &Flags) -> (PathBuf, u64) {
    let settings = StoreSettings::read(flags.config.as_deref().unwrap_or(Path::new(cli::CONFIG)));
    // A configuration that is closed to users says nothing to them.
    let settings = settings.ok().flatten().unwrap_or_default();
    (settings.maildrop.unwrap_or_else(|| MAILDROP.into()), settings.message_bytes_max)
}

/// Takes the mails of an SMTP session.
fn session(flags: &Flags) -> Result<(), Fault> {
    let (folder, bytes_max) = place(flags);
    let from = flags.from.as_deref().map(sender).transpose()?;
    session::serve((&folder, bytes_max), from.as_deref(), io::stdin().lock(), io::stdout().lock())
}

/// Puts a mail into the maildrop.
fn mail(flags: &Flags, input: impl io::BufRead) -> Result<(), Fault> {
    let (folder, bytes_max) = place(flags);
    let from = flags.from.as_deref().map(sender).transpose()?;
    let mut recipients = Vec::new();
    for word in &flags.recipients {
        recipients.extend(of_word(word)?);
    }
    if recipients.is_empty() && !flags.reads_header {
        return Err(Fault::usage("no recipients: name them, or have them read from the header with -t"));
    }
    let mut lines = Lines::new(input, flags.keeps_dots);
    let header = lines.header()?;
    if flags.reads_header {
        recipients.extend(of_header(&header)?);
    }
    recipients.sort_unstable();
    recipients.dedup();
    if recipients.is_empty() || recipients.len() > RECIPIENTS_MAX {
        return Err(Fault::usage(format!("{} recipients in the header", recipients.len())));
    }
    let ret = flags.returns_all.map(|all| if all { Return::Full } else { Return::Headers });
    let (name, notify, envid) = (flags.name.clone(), flags.notify.clone(), xtext(&flags.envid));
    let envelope = Envelope { from, name, notify, ret, envid, recipients }.write();
    if envelope.len() > envelope::BYTES_MAX {
        return Err(Fault::data("the recipients are too long"));
    }
    put(&folder, &envelope, &header, &mut lines, bytes_max)
}

/// Writes a file of the maildrop.
fn put<R: io::BufRead>(
    folder: &Path,
    envelope: &str,
    header: &[u8],
    lines: &mut Lines<R>,
    bytes_max: u64,
) -> Result<(), Fault> {
    let mut draft = Draft::begin(folder, envelope, bytes_max)?;
    let (mut piece, mut goes_on) = (header.to_vec(), true);
    while goes_on || !piece.is_empty() {
        while goes_on && piece.len() < PIECE_BYTES {
            goes_on = lines.read(&mut piece).map_err(|error| Fault::input(&error))?;
        }
        draft.add(&piece)?;
        piece.clear();
    }
    draft.finish()
}

/// The sender that is asked for, with angle brackets or without.
fn sender(text: &str) -> Result<String, Fault> {
    match of_list(text.as_bytes())?.as_slice() {
        [] if matches!(text.trim(), "" | "<>") => Ok(String::new()),
        [one] => Ok(one.clone()),
        _ => Err(Fault::usage(format!("-f {text:?}: one sender is wanted"))),
    }
}

/// As `ENVID=` has it (RFC 3461, section 4).
fn xtext(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'+' | b'=' | ..=b' ' | 0x7f.. => out.push_str(&format!("+{byte:02X}")),
            byte => out.push(byte as char),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::draft::WHOLE;
    use super::*;

    #[test]
    fn other_names_of_the_program_are_those_of_sendmail() {
        let called = |words: &[&str]| is_called(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(called(&["/usr/sbin/sendmail", "-t"]), Some(vec!["-t".into()]));
        assert_eq!(called(&["mailq"]), Some(vec!["-bp".into()]));
        assert_eq!((called(&["/usr/bin/sluice", "sendmail"]), called(&[])), (None, None));
    }

    #[test]
    fn senders_and_ids_are_made_what_an_envelope_has() {
        assert_eq!(sender("").unwrap(), "");
        assert_eq!(sender("<>").unwrap(), "");
        assert_eq!(sender("Ann <ann@example.org>").unwrap(), "ann@example.org");
        assert_eq!(sender("a b").unwrap_err().status, 64);
        assert_eq!((sender("a@b, c@d").unwrap_err().status, xtext("a b+c=")), (64, "a+20b+2Bc+3D".into()));
    }

    #[test]
    fn a_file_is_whole_or_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let put = |text: &str, most| {
            put(folder.path(), "envelope\n\n", b"A: b\n\n", &mut Lines::new(text.as_bytes(), true), most)
        };
        put("body\n", 100).unwrap();
        assert_eq!(put("body\n", 5).unwrap_err().status, 65);
        let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap()).collect();
        assert_eq!(files.len(), 1);
        assert_eq!(std::fs::read(files[0].path()).unwrap(), b"envelope\n\nA: b\n\nbody\n");
        assert_eq!(files[0].metadata().unwrap().permissions().mode() & 0o777, WHOLE);
        let missing = super::put(Path::new("/no/such"), "", b"", &mut Lines::new(&b""[..], true), 9);
        assert_eq!(missing.unwrap_err().status, 69);
    }
}
