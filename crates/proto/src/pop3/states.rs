//! Commands allowed in each state (RFC 1939): the table that the server half uses, and from which
//! `docs/doors/states.md` is made.
//!
//! It says nothing of what is offered, or of who may log in: those are the host's reasons to refuse. NOOP, which the
//! standard has for who is logged in, may come at any time.

use super::command::Verb;

/// State of a session between two commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before login.
    Authorization,
    /// Nor yet, but there is a name.
    Named,
    /// Somebody has.
    Transaction,
    /// They have said QUIT: what they deleted goes.
    Update,
    /// It is over.
    Closed,
}

impl Phase {
    /// Phases that accept commands, in the order of the table.
    pub const ALL: [Phase; 3] = [Phase::Authorization, Phase::Named, Phase::Transaction];
}

/// Effect of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It may come; if all goes well it leads here.
    To(Phase),
    /// It stays where it was.
    Stay,
    /// It is refused, with this text.
    No(&'static str),
}

use Phase::{Authorization, Closed, Named, Transaction, Update};
use Turn::{No, Stay, To};

const NAME_FIRST: Turn = No("USER first");
const LOGIN_FIRST: Turn = No("Log in first");
const ALREADY: Turn = No("Logged in already");

/// For each command what comes of it in each of [`Phase::ALL`].
pub const TABLE: [(Verb, [Turn; 3]); 17] = [
    (Verb::User, [To(Named), Stay, ALREADY]),
    (Verb::Pass, [NAME_FIRST, To(Transaction), ALREADY]),
    (Verb::Apop, [To(Transaction), To(Transaction), ALREADY]),
    (Verb::Auth, [To(Transaction), To(Transaction), ALREADY]),
    (Verb::Capa, [Stay; 3]),
    (Verb::Stls, [To(Authorization), To(Authorization), ALREADY]),
    (Verb::Quit, [To(Closed), To(Closed), To(Update)]),
    (Verb::Stat, [LOGIN_FIRST, LOGIN_FIRST, Stay]),
    (Verb::List, [LOGIN_FIRST, LOGIN_FIRST, Stay]),
    (Verb::Retr, [LOGIN_FIRST, LOGIN_FIRST, Stay]),
    (Verb::Dele, [LOGIN_FIRST, LOGIN_FIRST, Stay]),
    (Verb::Noop, [Stay; 3]),
    (Verb::Rset, [LOGIN_FIRST, LOGIN_FIRST, Stay]),
    (Verb::Top, [LOGIN_FIRST, LOGIN_FIRST, Stay]),
    (Verb::Uidl, [LOGIN_FIRST, LOGIN_FIRST, Stay]),
    (Verb::Utf8, [Stay; 3]),
    (Verb::Lang, [Stay; 3]),
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
        Update | Closed => Stay,
        phase => TABLE[verb as usize].1[phase as usize],
    }
}
