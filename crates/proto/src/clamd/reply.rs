//! The replies, in clamd's words.

use alloc::vec::Vec;

/// Request that a reply belongs to, and the end of its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// The number of the command within its session, from 1 on; 0 outside of one.
    pub(super) id: u32,
    /// Line end of the reply.
    pub(super) end: u8,
}

/// One line of an answer. Subjects are paths as the client or the folder gave them, `stream`, or `fd[n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply<'a> {
    /// Nothing was found in it.
    Clean(&'a [u8]),
    /// Something was.
    Found(&'a [u8], &'a str),
    /// It could not be scanned, for this reason.
    Failed(&'a [u8], &'a str),
    /// The file was excluded by the settings.
    Excluded(&'a [u8]),
    /// A text of its own.
    Text(&'a str),
}

impl Reply<'_> {
    /// `RELOAD` was heard.
    pub const RELOADING: Reply<'static> = Reply::Text("RELOADING");
    /// The command is switched off.
    pub const UNAVAILABLE: Reply<'static> = Reply::Text("COMMAND UNAVAILABLE");
    /// `FILDES` was not followed by a descriptor.
    pub const NO_DESCRIPTOR: Reply<'static> = Reply::Text("No file descriptor received. ERROR");
    pub(super) const PONG: Reply<'static> = Reply::Text("PONG");
    pub(super) const UNKNOWN: Reply<'static> = Reply::Text("UNKNOWN COMMAND");
    pub(super) const INVALID: Reply<'static> = Reply::Text("Command invalid inside IDSESSION. ERROR");
    pub(super) const TOO_LARGE: Reply<'static> = Reply::Text("INSTREAM size limit exceeded. ERROR");
    pub(super) const TIMED_OUT: Reply<'static> = Reply::Text("COMMAND READ TIMED OUT");

    /// Appends the line. A byte of a subject that would end it becomes a question mark: a file's name cannot speak for
    /// another file.
    pub(super) fn write(&self, tag: Tag, outbox: &mut Vec<u8>) {
        if tag.id > 0 {
            outbox.extend_from_slice(alloc::format!("{}: ", tag.id).as_bytes());
        }
        let (subject, verdict) = match self {
            Reply::Clean(subject) => (*subject, ["OK", ""]),
            Reply::Found(subject, name) => (*subject, [*name, " FOUND"]),
            Reply::Failed(subject, reason) => (*subject, [*reason, " ERROR"]),
            Reply::Excluded(subject) => (*subject, ["Excluded", ""]),
            Reply::Text(text) => (&[][..], [*text, ""]),
        };
        if !matches!(self, Reply::Text(_)) {
            outbox.extend(subject.iter().map(|&byte| if byte == tag.end { b'?' } else { byte }));
            outbox.extend_from_slice(b": ");
        }
        verdict.iter().for_each(|word| outbox.extend_from_slice(word.as_bytes()));
        outbox.push(tag.end);
    }
}
