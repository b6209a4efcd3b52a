//! Commands allowed in each state (RFC 9051, section 3): the table that the server half uses, and from which
//! `docs/doors/states.md` is made.
//!
//! It says nothing of what is offered, or of who may do what: those are the host's reasons to refuse. IDLE, AUTHENTICATE,
//! STARTTLS and APPEND go on before the next command may come: how, is told with the half.

use super::command::Verb;

/// State of a session between two commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before login.
    NotAuthenticated,
    /// A user has logged in, or need not.
    Authenticated,
    /// A mailbox is selected.
    Selected,
    /// It is over.
    Logout,
}

impl Phase {
    /// Phases that accept commands, in the order of the table.
    pub const ALL: [Phase; 3] = [Phase::NotAuthenticated, Phase::Authenticated, Phase::Selected];
}

/// Effect of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It may come; if it is answered by OK it leads here.
    To(Phase),
    /// It stays where it was.
    Stay,
    /// It is refused by BAD, with this text.
    No(&'static str),
}

use Phase::{Authenticated, Logout, Selected};
use Turn::{No, Stay, To};

const LOGIN_FIRST: Turn = No("Log in first");
const ALREADY: Turn = No("Logged in already");
const SELECT_FIRST: Turn = No("Select a mailbox first");

/// For each command what comes of it in each of [`Phase::ALL`].
pub const TABLE: [(Verb, [Turn; 3]); 14] = [
    (Verb::Authenticate, [To(Authenticated), ALREADY, ALREADY]),
    (Verb::Capability, [Stay; 3]),
    (Verb::Append, [LOGIN_FIRST, Stay, Stay]),
    (Verb::Close, [LOGIN_FIRST, SELECT_FIRST, To(Authenticated)]),
    (Verb::Fetch, [LOGIN_FIRST, SELECT_FIRST, Stay]),
    (Verb::Idle, [LOGIN_FIRST, Stay, Stay]),
    (Verb::Login, [To(Authenticated), ALREADY, ALREADY]),
    (Verb::Logout, [To(Logout); 3]),
    (Verb::Select, [LOGIN_FIRST, To(Selected), Stay]),
    (Verb::Starttls, [Stay, ALREADY, ALREADY]),
    (Verb::Replace, [LOGIN_FIRST, SELECT_FIRST, Stay]),
    (Verb::Always, [Stay; 3]),
    (Verb::OfAccount, [LOGIN_FIRST, Stay, Stay]),
    (Verb::OfMailbox, [LOGIN_FIRST, SELECT_FIRST, Stay]),
];

const _: () = {
    let mut row = 0;
    while row < TABLE.len() {
        assert!(TABLE[row].0 as usize == row, "the rows stand in the order of the commands");
        row += 1;
    }
};

/// Effect of a command in a phase. After LOGOUT it has none.
pub const fn turn(phase: Phase, verb: Verb) -> Turn {
    match phase {
        Logout => Stay,
        phase => TABLE[verb as usize].1[phase as usize],
    }
}
