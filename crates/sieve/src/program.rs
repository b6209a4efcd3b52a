//! A script that was checked: what the interpreter runs.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::expression::Regex;

/// A script with all that it includes, checked and ready to run.
#[derive(Debug, Clone)]
pub struct Program {
    /// The script, then the included ones.
    pub(crate) scripts: Vec<Script>,
    /// Extensions that are required by any of them.
    pub(crate) required: Vec<&'static str>,
}

impl Program {
    /// The extensions that it requires.
    pub fn required(&self) -> &[&'static str] {
        &self.required
    }

    /// Whether it looks into bodies: else a header will do.
    pub fn reads_body(&self) -> bool {
        self.required.contains(&"body")
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Script {
    /// Empty: the first.
    pub name: String,
    pub commands: Vec<Statement>,
}

#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub line: u32,
    pub command: Command,
}

/// A string, as it is when the script runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text(pub Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Literal(String),
    /// By its name in lower case; `global.` stands before those of all scripts.
    Variable(String),
    /// Text matched by a wildcard.
    Match(usize),
}

impl Text {
    pub fn literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// With its references as the script has them.
    pub fn source(&self) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Literal(text) => text.clone(),
            Piece::Variable(name) => format!("${{{name}}}"),
            Piece::Match(number) => format!("${{{number}}}"),
        };
        self.0.iter().map(piece).collect()
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Command {
    /// A command that cannot be run, in a script that asked for a capability which is not there.
    Unknown(String),
    /// `error` (RFC 5463).
    Error(Text),
    /// The branches of `if`, `elsif` and `else`.
    If(Vec<(Test, Vec<Statement>)>),
    Stop,
    Return,
    Keep {
        flags: Option<Vec<Text>>,
    },
    Discard,
    Redirect {
        address: Text,
        copy: bool,
    },
    FileInto {
        mailbox: Text,
        flags: Option<Vec<Text>>,
        copy: bool,
        create: bool,
        special_use: Option<Text>,
    },
    Reject {
        reason: Text,
        extended: bool,
    },
    Vacation(Box<Vacation>),
    Set {
        variable: String,
        value: Text,
        modifiers: Vec<Modifier>,
    },
    Flags {
        variable: Option<String>,
        change: Change,
        flags: Vec<Text>,
    },
    AddHeader {
        name: Text,
        value: Text,
        last: bool,
    },
    DeleteHeader {
        name: Text,
        index: Index,
        matching: Option<(Matching, Vec<Text>)>,
    },
    Include {
        script: usize,
        once: bool,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Vacation {
    pub reason: Text,
    pub seconds: Option<u64>,
    pub subject: Option<Text>,
    pub from: Option<Text>,
    pub addresses: Vec<Text>,
    pub mime: bool,
    pub handle: Option<Text>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Set,
    Add,
    Remove,
}

/// In the order in which they are applied (RFC 5229, section 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Modifier {
    Lower,
    Upper,
    LowerFirst,
    UpperFirst,
    QuoteWildcard,
    QuoteRegex,
    Length,
}

#[derive(Debug, Clone)]
pub(crate) enum Test {
    Constant(bool),
    /// Whether capabilities exist (RFC 5463).
    Has(bool),
    /// A test that cannot be run, in a script that asked for a capability which is not there.
    Unknown(String),
    Not(Box<Test>),
    All(Vec<Test>),
    Any(Vec<Test>),
    Size {
        over: bool,
        bytes: u64,
    },
    Exists(Vec<Text>),
    MailboxExists(Vec<Text>),
    SpecialUseExists {
        mailbox: Option<Text>,
        uses: Vec<Text>,
    },
    Duplicate(Duplicate),
    /// Whether an environment is as said.
    Values {
        source: Source,
        matching: Matching,
        keys: Vec<Text>,
    },
}

/// Whether a mail was seen before (RFC 7352): by a field, `Message-ID` if none is named, or by a string.
#[derive(Debug, Clone)]
pub(crate) struct Duplicate {
    pub handle: Option<Text>,
    pub header: Option<Text>,
    pub unique_id: Option<Text>,
    pub seconds: u64,
    pub last: bool,
}

/// Where the strings come from that are compared with keys.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Header {
        names: Vec<Text>,
        index: Index,
    },
    Address {
        names: Vec<Text>,
        part: AddressPart,
        index: Index,
    },
    Envelope {
        parts: Vec<Text>,
        part: AddressPart,
    },
    Body(Transform),
    Strings(Vec<Text>),
    /// Flags of the internal variable, or of variables.
    Flags(Vec<String>),
    Date {
        name: Text,
        zone: Zone,
        part: Text,
        index: Index,
    },
    CurrentDate {
        zone: Zone,
        part: Text,
    },
    Spam {
        percent: bool,
    },
    Virus,
    Environment(Text),
}

#[derive(Debug, Clone)]
pub(crate) enum Transform {
    Raw,
    Text,
    Content(Vec<Text>),
}

#[derive(Debug, Clone)]
pub(crate) enum Zone {
    /// That of the user.
    Local,
    /// That of the field.
    Original,
    /// `+hhmm`.
    Given(Text),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressPart {
    All,
    LocalPart,
    Domain,
    User,
    Detail,
}

/// Position among fields of one name (RFC 5260, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Index {
    /// From 1.
    pub number: Option<u64>,
    pub from_last: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Matching {
    pub kind: Match,
    pub comparator: Comparator,
}

#[derive(Debug, Clone)]
pub(crate) enum Match {
    Is,
    Contains,
    Matches,
    /// Keys that are known beforehand, by their place in the list.
    Regex(Vec<Option<Regex>>),
    Value(Relation),
    Count(Relation),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparator {
    Octet,
    AsciiCasemap,
    UnicodeCasemap,
    AsciiNumeric,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
}
