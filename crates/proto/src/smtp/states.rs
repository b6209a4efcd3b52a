//! Commands allowed in each state: the table that the server half uses, and from which `docs/doors/states.md` is
//! made.
//!
//! It says nothing of what is offered, of who may do what, or of how many errors are too many: those are the server's
//! other reasons to refuse.

use super::reply::Reply;

/// State of a session between two commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before EHLO or HELO, or after a reset of the session.
    Fresh,
    /// The client has greeted; no mail is under way.
    Ready,
    /// A sender is given.
    Sender,
    /// Recipients are given.
    Recipients,
    /// Content has begun in chunks.
    Chunks,
    /// A chunk was refused.
    Refused,
    /// It is over.
    Closed,
}

impl Phase {
    /// Phases that accept commands, in the order of the table.
    pub const ALL: [Phase; 6] =
        [Phase::Fresh, Phase::Ready, Phase::Sender, Phase::Recipients, Phase::Chunks, Phase::Refused];
}

/// A command, as far as its order matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// EHLO, HELO or LHLO.
    Hello,
    /// MAIL.
    Mail,
    /// RCPT.
    Rcpt,
    /// DATA, with all of the content.
    Data,
    /// BDAT, a chunk.
    Bdat,
    /// BDAT, the last chunk.
    BdatLast,
    /// RSET.
    Rset,
    /// STARTTLS, with the handshake.
    StartTls,
    /// AUTH, with all of the exchange.
    Auth,
    /// XFORWARD.
    Xforward,
    /// XCLIENT.
    Xclient,
    /// NOOP, VRFY and HELP.
    Noop,
    /// QUIT.
    Quit,
}

/// Effect of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It may come; if all goes well it leads here.
    To(Phase),
    /// It stays where it was.
    Stay,
    /// It is refused: code, enhanced code, text.
    No(u16, (u8, u16, u16), &'static str),
}

use Phase::{Chunks, Closed, Fresh, Ready, Recipients, Sender};
use Turn::{No, Stay, To};

const HELLO_FIRST: Turn = No(503, (5, 5, 1), "Send EHLO first");
const MAIL_FIRST: Turn = No(503, (5, 5, 1), "Send MAIL first");
const ONE_SENDER: Turn = No(503, (5, 5, 1), "Nested MAIL command");
const NOBODY: Turn = No(554, (5, 5, 1), "No valid recipients");
const BEGUN: Turn = No(503, (5, 5, 1), "Not allowed after BDAT");
const EARLIER: Turn = No(503, (5, 5, 1), "An earlier chunk was refused");
const WITHIN: Turn = No(503, (5, 5, 1), "Not allowed during a mail transaction");

/// For each command what comes of it in each of [`Phase::ALL`].
pub const TABLE: [(Verb, &str, [Turn; 6]); 13] = [
    (Verb::Hello, "EHLO, HELO, LHLO", [To(Ready); 6]),
    (Verb::Mail, "MAIL", [HELLO_FIRST, To(Sender), ONE_SENDER, ONE_SENDER, ONE_SENDER, ONE_SENDER]),
    (Verb::Rcpt, "RCPT", [MAIL_FIRST, MAIL_FIRST, To(Recipients), Stay, BEGUN, BEGUN]),
    (Verb::Data, "DATA", [MAIL_FIRST, MAIL_FIRST, NOBODY, To(Ready), BEGUN, BEGUN]),
    (Verb::Bdat, "BDAT", [MAIL_FIRST, MAIL_FIRST, NOBODY, To(Chunks), Stay, EARLIER]),
    (Verb::BdatLast, "BDAT LAST", [MAIL_FIRST, MAIL_FIRST, NOBODY, To(Ready), To(Ready), EARLIER]),
    (Verb::Rset, "RSET", [Stay, Stay, To(Ready), To(Ready), To(Ready), To(Ready)]),
    (Verb::StartTls, "STARTTLS", [Stay, To(Fresh), WITHIN, WITHIN, WITHIN, WITHIN]),
    (Verb::Auth, "AUTH", [HELLO_FIRST, Stay, WITHIN, WITHIN, WITHIN, WITHIN]),
    (Verb::Xforward, "XFORWARD", [Stay, Stay, WITHIN, WITHIN, WITHIN, WITHIN]),
    (Verb::Xclient, "XCLIENT", [Stay, To(Fresh), WITHIN, WITHIN, WITHIN, WITHIN]),
    (Verb::Noop, "NOOP, VRFY, HELP", [Stay; 6]),
    (Verb::Quit, "QUIT", [To(Closed); 6]),
];

const _: () = {
    let mut row = 0;
    while row < TABLE.len() {
        assert!(TABLE[row].0 as usize == row, "the rows stand in the order of the commands");
        row += 1;
    }
};

/// Effect of a command in a phase. After QUIT it has none.
pub const fn turn(phase: Phase, verb: Verb) -> Turn {
    match phase {
        Closed => Stay,
        phase => TABLE[verb as usize].2[phase as usize],
    }
}

/// Whether a command may come.
pub(super) fn allowed(phase: Phase, verb: Verb) -> Result<(), Reply> {
    match turn(phase, verb) {
        To(_) | Stay => Ok(()),
        No(code, enhanced, text) => Err(Reply::new(code, enhanced, text)),
    }
}
