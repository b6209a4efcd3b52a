//! Runs a [`Program`] over a mail: what is to be done with it comes out as [`Action`]s, and nothing is done here.
//!
//! If something goes wrong, the mail is kept, and nothing else happens with it (RFC 5228, section 2.10.6). Every command, test
//! and comparison burns fuel, so a script ends. Bounds are fields of [`Limits`].

mod action;
mod matching;
mod tell;
mod test;
mod vacation;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::mail::{Field, Part, View};
use crate::program::{Command, Modifier, Piece, Program, Statement, Test, Text};

pub use vacation::Vacation;

/// Bounds of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Commands, tests, comparisons, and for each 64 bytes that they look at; a script without wit needs a few hundred.
    pub fuel: u64,
    /// Actions of one mail.
    pub actions_max: usize,
    /// Redirects of one mail.
    pub redirects_max: usize,
    /// The longest value of a variable, in bytes: the rest is cut off (RFC 5229, section 6, asks for 4,000).
    pub variable_bytes_max: usize,
    /// The longest string, in bytes: the rest is cut off.
    pub text_bytes_max: usize,
    /// Fields that are added to a header.
    pub added_fields_max: usize,
    /// Ids under which one mail is remembered.
    pub seen_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            fuel: 2_000_000,
            actions_max: 32,
            redirects_max: 4,
            variable_bytes_max: 4_000,
            text_bytes_max: 1 << 20,
            added_fields_max: 64,
            seen_max: 16,
        }
    }
}

/// Questions to the host by name.
pub trait Host {
    /// Whether there is a mailbox that mail can be filed into.
    fn has_mailbox(&self, name: &str) -> bool;
    /// Whether a mailbox, or any, has a special use such as `\Junk`.
    fn has_special_use(&self, mailbox: Option<&str>, special_use: &str) -> bool;
    /// Whether a mail was seen before under this handle, by this id, and is still remembered.
    fn has_seen(&self, handle: &str, id: &str) -> bool {
        let _ = (handle, id);
        false
    }
}

/// No mailboxes.
impl Host for () {
    fn has_mailbox(&self, _: &str) -> bool {
        false
    }
    fn has_special_use(&self, _: Option<&str>, _: &str) -> bool {
        false
    }
}

/// Facts about a mail besides its content.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// The sender of the envelope; empty for the null sender.
    pub from: &'a str,
    /// The recipient of the envelope.
    pub to: &'a str,
    /// Other addresses of the recipient.
    pub addresses: &'a [String],
    /// Seconds since 1970.
    pub now: i64,
    /// Time zone of the recipient, in minutes east of Greenwich.
    pub zone: i32,
    /// Probability of spam, in percent; `None` if the mail was not checked.
    pub spam_percent: Option<u8>,
    /// Result of the virus scan, as RFC 5235 counts: 0 without a scan, 1 for none, up to 5.
    pub virus: u8,
    /// The name of the machine.
    pub hostname: &'a str,
    /// Mailboxes.
    pub host: &'a dyn Host,
    /// Bounds.
    pub limits: Limits,
}

/// Something to be done with the mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It is stored in the INBOX, or where the host would have it without a script.
    Keep {
        /// Flags and keywords.
        flags: Vec<String>,
        /// The keep is implicit.
        is_implicit: bool,
        /// The header, if it was edited.
        header: Option<Arc<[u8]>>,
    },
    /// It is stored in a mailbox.
    FileInto {
        /// Its name, in UTF-8.
        mailbox: String,
        /// Flags and keywords.
        flags: Vec<String>,
        /// The mailbox is made if it is not there.
        create: bool,
        /// A mailbox with this use is taken instead, if there is one.
        special_use: Option<String>,
        /// The header, if it was edited.
        header: Option<Arc<[u8]>>,
    },
    /// It is sent on.
    Redirect {
        /// Whereto.
        address: String,
    },
    /// Nothing is stored.
    Discard,
    /// It is refused.
    Reject {
        /// Text for the sender.
        reason: String,
        /// By `ereject`: within the session, and by no mail.
        is_extended: bool,
    },
    /// The sender gets an answer.
    Vacation(Vacation),
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Actions to execute, in order.
    pub actions: Vec<Action>,
    /// Ids to remember, once the mail is stored.
    pub seen: Vec<Seen>,
    /// Failure of the run: then the mail is kept.
    pub failure: Option<Failure>,
}

/// A mail that is to be known when it comes again (RFC 7352).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Ids of one handle have nothing to do with those of another.
    pub handle: String,
    /// Id of the mail.
    pub id: String,
    /// For how long.
    pub seconds: u64,
}

/// A failure of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Name of the included script; empty in the main one.
    pub script: String,
    /// The line of the command.
    pub line: u32,
    /// Description of the failure.
    pub text: String,
}

/// Runs a script over a mail.
pub fn run(program: &Program, mail: &dyn View, setting: &Setting<'_>) -> Outcome {
    let mut machine = Machine {
        program,
        mail,
        setting,
        fuel: setting.limits.fuel,
        fields: mail.fields().to_vec(),
        added: 0,
        header: None,
        parts: None,
        flags: Vec::new(),
        globals: BTreeMap::new(),
        locals: BTreeMap::new(),
        matches: Vec::new(),
        once: BTreeSet::new(),
        actions: Vec::new(),
        seen: Vec::new(),
        is_kept: true,
        place: (0, 0),
    };
    let ended = machine.script(0);
    let kept = |flags, header| Action::Keep { flags, is_implicit: true, header };
    match ended {
        Ok(_) => {
            if machine.is_kept {
                let (flags, header) = (machine.flags.clone(), machine.header());
                machine.store(kept(flags, header));
            }
            Outcome { actions: machine.actions, seen: machine.seen, failure: None }
        }
        Err(text) => {
            let (script, line) = machine.place;
            let script = program.scripts.get(script).map_or(String::new(), |script| script.name.clone());
            let failure = Some(Failure { script, line, text });
            Outcome { actions: Vec::from([kept(Vec::new(), None)]), seen: Vec::new(), failure }
        }
    }
}

/// How it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    /// Out of an included script.
    Return,
    Stop,
}

type Variables = BTreeMap<String, String>;

struct Machine<'a> {
    program: &'a Program,
    mail: &'a dyn View,
    setting: &'a Setting<'a>,
    fuel: u64,
    /// The header as it was edited.
    fields: Vec<Field>,
    added: usize,
    /// None: as it came.
    header: Option<Option<Arc<[u8]>>>,
    parts: Option<Vec<Part>>,
    flags: Vec<String>,
    globals: Variables,
    locals: Variables,
    matches: Vec<String>,
    /// Scripts that were included.
    once: BTreeSet<usize>,
    actions: Vec<Action>,
    seen: Vec<Seen>,
    /// The implicit keep still holds.
    is_kept: bool,
    /// Script and line of the command that runs.
    place: (usize, u32),
}

impl<'a> Machine<'a> {
    fn burn(&mut self, fuel: u64) -> Result<(), String> {
        self.fuel = self.fuel.checked_sub(fuel).ok_or("the script takes too long")?;
        Ok(())
    }

    fn burn_bytes(&mut self, bytes: usize) -> Result<(), String> {
        self.burn(u64::try_from(bytes / 64).unwrap_or(u64::MAX).saturating_add(1))
    }

    fn script(&mut self, number: usize) -> Result<Flow, String> {
        self.once.insert(number);
        let program = self.program;
        let commands = program.scripts.get(number).map_or(&[][..], |script| &script.commands);
        self.block(number, commands)
    }

    fn block(&mut self, script: usize, statements: &'a [Statement]) -> Result<Flow, String> {
        for statement in statements {
            self.burn(1)?;
            self.place = (script, statement.line);
            let flow = match &statement.command {
                Command::If(branches) => self.branches(script, branches)?,
                command => self.command(command)?,
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn branches(&mut self, script: usize, branches: &'a [(Test, Vec<Statement>)]) -> Result<Flow, String> {
        for (test, block) in branches {
            if self.test(test)? {
                return self.block(script, block);
            }
        }
        Ok(Flow::Next)
    }

    fn include(&mut self, script: usize, once: bool) -> Result<Flow, String> {
        if once && self.once.contains(&script) {
            return Ok(Flow::Next);
        }
        let (locals, matches) = (core::mem::take(&mut self.locals), core::mem::take(&mut self.matches));
        let flow = self.script(script)?;
        (self.locals, self.matches) = (locals, matches);
        Ok(if flow == Flow::Return { Flow::Next } else { flow })
    }

    /// A string as it is now.
    fn text(&mut self, text: &Text) -> Result<String, String> {
        let mut out = String::new();
        for piece in &text.0 {
            match piece {
                Piece::Literal(literal) => out.push_str(literal),
                Piece::Variable(name) => out.push_str(self.get(name)),
                Piece::Match(number) => out.push_str(self.matches.get(*number).map_or("", String::as_str)),
            }
            self.burn(1)?;
            if out.len() > self.setting.limits.text_bytes_max {
                cut(&mut out, self.setting.limits.text_bytes_max);
                break;
            }
        }
        self.burn_bytes(out.len())?;
        Ok(out)
    }

    fn texts(&mut self, texts: &[Text]) -> Result<Vec<String>, String> {
        texts.iter().map(|text| self.text(text)).collect()
    }

    fn get(&self, name: &str) -> &str {
        let found = match name.strip_prefix("global.") {
            Some(name) => self.globals.get(name),
            None => self.locals.get(name),
        };
        found.map_or("", String::as_str)
    }

    fn put(&mut self, name: &str, mut value: String) {
        cut(&mut value, self.setting.limits.variable_bytes_max);
        match name.strip_prefix("global.") {
            Some(name) => self.globals.insert(name.to_string(), value),
            None => self.locals.insert(name.to_string(), value),
        };
    }

    fn set(&mut self, variable: &str, value: &Text, modifiers: &[Modifier]) -> Result<(), String> {
        let mut value = self.text(value)?;
        cut(&mut value, self.setting.limits.variable_bytes_max);
        for modifier in modifiers {
            value = modified(value, *modifier);
        }
        self.put(variable, value);
        Ok(())
    }

    /// The header, if it was edited.
    fn header(&mut self) -> Option<Arc<[u8]>> {
        let fields = &self.fields;
        self.header.as_mut().map(|written| written.get_or_insert_with(|| Arc::from(action::written(fields))).clone())
    }
}

fn modified(value: String, modifier: Modifier) -> String {
    let first = |change: fn(&char) -> char| {
        let mut characters = value.chars();
        characters.next().map(|first| change(&first)).into_iter().chain(characters).collect()
    };
    let quoted = |special: &str| {
        let mut out = String::new();
        for character in value.chars() {
            if special.contains(character) {
                out.push('\\');
            }
            out.push(character);
        }
        out
    };
    match modifier {
        Modifier::Lower => value.to_ascii_lowercase(),
        Modifier::Upper => value.to_ascii_uppercase(),
        Modifier::LowerFirst => first(char::to_ascii_lowercase),
        Modifier::UpperFirst => first(char::to_ascii_uppercase),
        Modifier::QuoteWildcard => quoted("*?\\"),
        Modifier::QuoteRegex => quoted("\\^$.[]|()?*+{}"),
        Modifier::Length => value.chars().count().to_string(),
    }
}

/// Cuts a text between two characters.
fn cut(text: &mut String, bytes_max: usize) {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.truncate(end);
}
