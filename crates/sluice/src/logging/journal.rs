//! Log lines as records of the systemd journal, their fields as fields: `journalctl SLUICE_ACTION=reject`.
//!
//! `MESSAGE` is the line as it would have been written, so that whatever reads lines goes on reading them; beside it go `PRIORITY`,
//! `SYSLOG_IDENTIFIER` and each field of the line as `SLUICE_` and its name in capitals (`SLUICE_MESSAGE` is what happened). A record is
//! a datagram; one too large for that is a sealed file in memory whose descriptor is sent. What the journal does not take is written as
//! a line. As with lines, nothing is kept back: while the journal's socket is full, who logs waits.
//!
//! The protocol: "Native Journal Protocol", <https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, sendmsg_addr};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Where the journal of the system listens.
pub const SOCKET: &str = "/run/systemd/journal/socket";

/// The longest name of a field.
const NAME_BYTES_MAX: usize = 64;

/// Room for a line, which most fit into.
const LINE_BYTES: usize = 512;

/// The journal, for whoever writes to it.
#[derive(Debug)]
pub struct Journal {
    socket: UnixDatagram,
    address: SocketAddrUnix,
}

impl Journal {
    /// The journal that listens at a path; whether it does is seen with the first record.
    ///
    /// # Errors
    /// When there are no more descriptors, or the path is too long for a socket.
    pub fn at(path: &Path) -> io::Result<Journal> {
        Ok(Journal { socket: UnixDatagram::unbound()?, address: SocketAddrUnix::new(path)? })
    }

    fn send(&self, record: &[u8]) -> io::Result<()> {
        match self.send_with(record, &mut SendAncillaryBuffer::default()) {
            Err(Errno::MSGSIZE | Errno::NOBUFS) => self.send_file(record),
            outcome => Ok(outcome?),
        }
    }

    /// Sends a long record as a sealed file in memory: the journal accepts no other.
    fn send_file(&self, record: &[u8]) -> io::Result<()> {
        let mut file = File::from(memfd_create(c"sluice-journal", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        file.write_all(record)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
        let files: [BorrowedFd<'_>; 1] = [file.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut with = SendAncillaryBuffer::new(&mut space);
        with.push(SendAncillaryMessage::ScmRights(&files));
        Ok(self.send_with(&[], &mut with)?)
    }

    fn send_with(&self, bytes: &[u8], with: &mut SendAncillaryBuffer<'_, '_, '_>) -> Result<(), Errno> {
        loop {
            match sendmsg_addr(&self.socket, &self.address, &[IoSlice::new(bytes)], with, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                outcome => return outcome.map(drop),
            }
        }
    }
}

/// Formats as `inner` does, for the journal if there is one, else for whoever the line is written to.
pub struct Journaled<F> {
    /// Formatter of lines.
    pub inner: F,
    /// Where they go first.
    pub journal: Option<Journal>,
    /// How characters are written that nobody sees.
    pub written: fn(&str) -> Cow<'_, str>,
}

impl<S, N, F> FormatEvent<S, N> for Journaled<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = String::with_capacity(LINE_BYTES);
        self.inner.format_event(context, Writer::new(&mut line), event)?;
        let line = (self.written)(&line);
        let Some(journal) = &self.journal else { return out.write_str(&line) };
        let mut record = Record::new(*event.metadata().level(), line.trim_end());
        event.record(&mut record);
        match journal.send(&record.0) {
            Ok(()) => Ok(()),
            Err(_) => out.write_str(&line),
        }
    }
}

/// The fields of an entry, as the journal reads them.
struct Record(Vec<u8>);

impl Record {
    fn new(level: Level, line: &str) -> Record {
        let mut record = Record(Vec::with_capacity(2 * line.len() + 256));
        record.put("PRIORITY", priority(level).to_string().as_bytes());
        record.put("SYSLOG_IDENTIFIER", b"sluice");
        record.put("MESSAGE", line.as_bytes());
        record
    }

    /// `NAME=VALUE`; or where the value has line breaks, the name, and the value behind its length.
    fn put(&mut self, name: &str, value: &[u8]) {
        let Record(bytes) = self;
        bytes.extend_from_slice(name.as_bytes());
        if value.contains(&b'\n') {
            bytes.push(b'\n');
            bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        } else {
            bytes.push(b'=');
        }
        bytes.extend_from_slice(value);
        bytes.push(b'\n');
    }

    fn put_field(&mut self, field: &Field, value: &[u8]) {
        self.put(&name(field.name()), value);
    }
}

impl Visit for Record {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put_field(field, format!("{value:?}").as_bytes());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_field(field, value.as_bytes());
    }
}

/// The name of a field in the journal, which knows capitals, digits and `_`.
fn name(field: &str) -> String {
    let capital = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let mut name = String::from("SLUICE_");
    name.extend(field.chars().map(capital).take(NAME_BYTES_MAX - name.len()));
    name
}

/// How syslog(3) calls a level.
pub fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use rustix::fs::fcntl_get_seals;
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    /// A journal of the test's own.
    struct Stand {
        folder: tempfile::TempDir,
        socket: UnixDatagram,
    }

    impl Stand {
        fn new() -> Stand {
            let folder = tempfile::tempdir().unwrap();
            let socket = UnixDatagram::bind(folder.path().join("socket")).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            Stand { folder, socket }
        }

        fn journal(&self) -> Journal {
            Journal::at(&self.folder.path().join("socket")).unwrap()
        }

        /// The next record, and whether it came as a file.
        fn record(&self) -> (Vec<(String, Vec<u8>)>, bool) {
            let mut bytes = vec![0; 1 << 20];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut with = RecvAncillaryBuffer::new(&mut space);
            let slices = &mut [io::IoSliceMut::new(&mut bytes)];
            let got = recvmsg(&self.socket, slices, &mut with, RecvFlags::CMSG_CLOEXEC).unwrap().bytes;
            bytes.truncate(got);
            let mut files = with.drain().filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut files) => files.next(),
                _ => None,
            });
            let Some(file) = files.next() else { return (fields(&bytes), false) };
            assert_eq!(got, 0, "nothing stands beside a file");
            let seals = fcntl_get_seals(&file).unwrap();
            assert!(seals.contains(SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL));
            let mut bytes = Vec::new();
            // As the journal, which maps it: wherever the writer has left off.
            rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0)).unwrap();
            File::from(file).read_to_end(&mut bytes).unwrap();
            (fields(&bytes), true)
        }
    }

    /// Reads a record as the page of the protocol says.
    fn fields(mut bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let end = bytes.iter().position(|&byte| byte == b'\n').expect("each field ends its line");
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            let (name, value, rest) = match line.iter().position(|&byte| byte == b'=') {
                Some(at) => (&line[..at], &line[at + 1..], rest),
                None => {
                    let len = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
                    assert_eq!(rest[8 + len], b'\n');
                    (line, &rest[8..8 + len], &rest[8 + len + 1..])
                }
            };
            fields.push((String::from_utf8(name.into()).unwrap(), value.to_vec()));
            bytes = rest;
        }
        fields
    }

    fn value<'a>(fields: &'a [(String, Vec<u8>)], name: &str) -> &'a str {
        let mut values = fields.iter().filter(|field| field.0 == name);
        let found = values.next().unwrap_or_else(|| panic!("{name} is missing"));
        assert!(values.next().is_none(), "{name} is there twice");
        std::str::from_utf8(&found.1).unwrap()
    }

    /// Lines that the journal has not taken.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Lines {
        type Writer = Lines;

        fn make_writer(&self) -> Lines {
            self.clone()
        }
    }

    /// Lines written while `act` logged to a journal.
    fn lines_of(journal: Journal, act: impl FnOnce()) -> String {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_target(false).with_writer(lines.clone());
        let subscriber = subscriber
            .map_event_format(|inner| Journaled { inner, journal: Some(journal), written: text::hazard::line })
            .finish();
        tracing::subscriber::with_default(subscriber, act);
        String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn fields_of_a_line_are_fields_of_the_journal() {
        let stand = Stand::new();
        let lines = lines_of(stand.journal(), || {
            tracing::warn!(id = "abc", bytes = 12, to = %"<a@b>", tls.version = "1.3", streamed = true, "message");
        });
        let (record, is_file) = stand.record();
        assert!(lines.is_empty() && !is_file, "{lines}");
        for (name, wanted) in [
            ("PRIORITY", "4"),
            ("SYSLOG_IDENTIFIER", "sluice"),
            ("SLUICE_MESSAGE", "message"),
            ("SLUICE_ID", "abc"),
            ("SLUICE_BYTES", "12"),
            ("SLUICE_TO", "<a@b>"),
            ("SLUICE_TLS_VERSION", "1.3"),
            ("SLUICE_STREAMED", "true"),
        ] {
            assert_eq!(value(&record, name), wanted, "{name}");
        }
        let line = value(&record, "MESSAGE");
        assert!(line.contains("  WARN message id=\"abc\" bytes=12") && !line.ends_with('\n'), "{line}");
    }

    #[test]
    fn a_value_with_line_breaks_makes_no_fields_of_its_own() {
        let stand = Stand::new();
        let from = "a\nPRIORITY=0\n\nSLUICE_ACTION=pass";
        lines_of(stand.journal(), || tracing::info!(from, action = "reject", "message"));
        let (record, _) = stand.record();
        assert_eq!(value(&record, "SLUICE_FROM"), from);
        assert_eq!((value(&record, "PRIORITY"), value(&record, "SLUICE_ACTION")), ("6", "reject"));
    }

    #[test]
    fn a_record_that_no_datagram_holds_is_sent_as_a_sealed_file() {
        let stand = Stand::new();
        let long = "x".repeat(1_400_000);
        let lines = lines_of(stand.journal(), || {
            tracing::info!(found = long.as_str(), "message");
            tracing::info!(id = "next", "message");
        });
        let (record, is_file) = stand.record();
        assert!(is_file && lines.is_empty());
        assert_eq!(value(&record, "SLUICE_FOUND"), long);
        let (record, is_file) = stand.record();
        assert_eq!((value(&record, "SLUICE_ID"), is_file), ("next", false));
    }

    #[test]
    fn lines_are_written_while_the_journal_is_away_and_go_to_it_when_it_is_back() {
        let stand = Stand::new();
        let path = stand.folder.path().join("socket");
        std::fs::remove_file(&path).unwrap();
        let mut back = None;
        let lines = lines_of(stand.journal(), || {
            tracing::info!(id = "away", "message");
            let socket = UnixDatagram::bind(&path).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            tracing::info!(id = "back", "message");
            back = Some(Stand { folder: tempfile::tempdir().unwrap(), socket });
        });
        assert!(lines.ends_with(" INFO message id=\"away\"\n") && lines.lines().count() == 1, "{lines}");
        assert_eq!(value(&back.unwrap().record().0, "SLUICE_ID"), "back");
    }

    #[test]
    fn names_are_such_as_the_journal_takes() {
        for (field, wanted) in [("id", "SLUICE_ID"), ("tls.version", "SLUICE_TLS_VERSION"), ("é-1", "SLUICE___1")] {
            assert_eq!(name(field), wanted);
        }
        assert_eq!(name(&"n".repeat(200)).len(), NAME_BYTES_MAX);
    }
}
