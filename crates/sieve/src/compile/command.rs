//! Commands: what they take, and where they stand.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::arguments::Arguments;
use super::test::decided;
use super::{Compiler, Location};
use crate::address;
use crate::error::{Error, Place};
use crate::program::{Change, Command, Index, Modifier, Statement, Test, Text, Vacation};
use crate::syntax::Node;

/// Days of a vacation at most.
const DAYS_MAX: u64 = 30 * 12;
const SECONDS_OF_DAY: u64 = 86_400;

impl Compiler<'_, '_> {
    pub(super) fn block(&mut self, nodes: &[Node]) -> Result<Vec<Statement>, Error> {
        let mut statements: Vec<Statement> = Vec::new();
        // An `if` before, to which `elsif` and `else` belong.
        let mut is_open = false;
        // An earlier branch is always taken, since a capability exists: later ones are never run.
        let mut is_settled = false;
        for node in nodes {
            let line = node.place.line;
            match node.name.as_str() {
                "if" => {
                    let branch = self.branch(node, true)?;
                    is_settled = decided(&branch.0) == Some(true);
                    statements.push(Statement { line, command: Command::If(Vec::from([branch])) });
                    is_open = true;
                }
                name @ ("elsif" | "else") => {
                    if !is_open {
                        return Err(Error::new(node.place, format!("{name} is without its if")));
                    }
                    if is_settled {
                        is_open = name == "elsif";
                        continue;
                    }
                    let branch = self.branch(node, name == "elsif")?;
                    is_settled = decided(&branch.0) == Some(true);
                    if let Some(Statement { command: Command::If(branches), .. }) = statements.last_mut() {
                        branches.push(branch);
                    }
                    is_open = name == "elsif";
                }
                _ => {
                    is_open = false;
                    let command = match self.command(node) {
                        Err(error) if self.lacks => Some(Command::Unknown(error.text)),
                        command => command?,
                    };
                    statements.extend(command.map(|command| Statement { line, command }));
                }
            }
        }
        Ok(statements)
    }

    fn branch(&mut self, node: &Node, has_test: bool) -> Result<(Test, Vec<Statement>), Error> {
        let Some(block) = &node.block else {
            return Err(Error::new(node.place, format!("{} takes a block", node.name)));
        };
        if let Some(more) = node.arguments.first() {
            return Err(Error::new(more.place, format!("{} takes a test", node.name)));
        }
        let test = match node.tests.as_slice() {
            [] if !has_test => Test::Constant(true),
            [one] if has_test && !node.is_list => self.test(one)?,
            _ if has_test => return Err(Error::new(node.place, format!("{} takes one test", node.name))),
            _ => return Err(Error::new(node.place, "else takes no test")),
        };
        // The block is never run.
        let block = if decided(&test) == Some(false) { Vec::new() } else { self.block(block)? };
        Ok((test, block))
    }

    /// None: it was done while it was compiled.
    fn command(&mut self, node: &Node) -> Result<Option<Command>, Error> {
        if node.block.is_some() {
            return Err(Error::new(node.place, format!("{} takes no block", node.name)));
        }
        if !node.tests.is_empty() {
            return Err(Error::new(node.place, format!("{} takes no test", node.name)));
        }
        let extension = match node.name.as_str() {
            "keep" | "discard" | "redirect" | "stop" => "",
            "require" => return Err(Error::new(node.place, "require stands before all else")),
            "return" | "global" | "include" => "include",
            "setflag" | "addflag" | "removeflag" => "imap4flags",
            "addheader" | "deleteheader" => "editheader",
            "set" => "variables",
            "error" => "ihave",
            name @ ("fileinto" | "reject" | "ereject" | "vacation") => name,
            name => return Err(Error::new(node.place, format!("there is no command {name}"))),
        };
        self.need(node.place, extension, &node.name)?;
        let mut arguments = Arguments::new(self, node)?;
        let command = self.known(node, &mut arguments)?;
        arguments.end()?;
        Ok(command)
    }

    fn known(&mut self, node: &Node, arguments: &mut Arguments<'_>) -> Result<Option<Command>, Error> {
        Ok(Some(match node.name.as_str() {
            "keep" => Command::Keep { flags: arguments.tag_list(self, "flags")? },
            "discard" => Command::Discard,
            "stop" => Command::Stop,
            "error" => Command::Error(arguments.text(self)?),
            "return" => Command::Return,
            "redirect" => {
                let text = arguments.text(self)?;
                if text.literal().is_some_and(|address| address::plain(address).is_none()) {
                    return Err(Error::new(node.place, "redirect takes an address"));
                }
                Command::Redirect { address: text, copy: arguments.has("copy") }
            }
            "fileinto" => Command::FileInto {
                flags: arguments.tag_list(self, "flags")?,
                copy: arguments.has("copy"),
                create: arguments.has("create"),
                special_use: arguments.tag_text(self, "specialuse")?,
                mailbox: arguments.text(self)?,
            },
            name @ ("reject" | "ereject") => {
                Command::Reject { reason: arguments.text(self)?, extended: name == "ereject" }
            }
            "vacation" => self.vacation(arguments)?,
            "set" => self.set(arguments)?,
            name @ ("setflag" | "addflag" | "removeflag") => self.flags(name, arguments)?,
            "addheader" => {
                let last = arguments.has("last");
                let name = arguments.text(self)?;
                field_name(node.place, &name)?;
                Command::AddHeader { name, value: arguments.text(self)?, last }
            }
            "deleteheader" => self.delete_header(node, arguments)?,
            "include" => return self.include(node.place, arguments),
            _ => return self.global(arguments),
        }))
    }

    fn vacation(&mut self, arguments: &mut Arguments<'_>) -> Result<Command, Error> {
        let days = arguments.tag_number("days").map(|days| days.clamp(1, DAYS_MAX).saturating_mul(SECONDS_OF_DAY));
        let seconds =
            arguments.tag_number("seconds").map(|seconds| seconds.min(DAYS_MAX.saturating_mul(SECONDS_OF_DAY)));
        let from = arguments.tag_text(self, "from")?;
        let literal = from.as_ref().and_then(Text::literal);
        if literal.is_some_and(|from| address::plain(from).is_none()) {
            return Err(Error::new(arguments.place, ":from takes an address"));
        }
        Ok(Command::Vacation(Box::new(Vacation {
            seconds: seconds.or(days),
            subject: arguments.tag_text(self, "subject")?,
            from,
            addresses: arguments.tag_list(self, "addresses")?.unwrap_or_default(),
            mime: arguments.has("mime"),
            handle: arguments.tag_text(self, "handle")?,
            reason: arguments.text(self)?,
        })))
    }

    fn set(&mut self, arguments: &mut Arguments<'_>) -> Result<Command, Error> {
        let modifiers = [
            ("lower", Modifier::Lower),
            ("upper", Modifier::Upper),
            ("lowerfirst", Modifier::LowerFirst),
            ("upperfirst", Modifier::UpperFirst),
            ("quotewildcard", Modifier::QuoteWildcard),
            ("quoteregex", Modifier::QuoteRegex),
            ("length", Modifier::Length),
        ];
        let is_there = |(name, modifier)| arguments.has(name).then_some(modifier);
        let modifiers = modifiers.into_iter().filter_map(is_there).collect();
        let (place, name) = arguments.word()?;
        let variable = self.named(place, &name)?;
        Ok(Command::Set { variable, value: arguments.text(self)?, modifiers })
    }

    /// A variable by its name, which has to be one.
    pub(super) fn named(&mut self, place: Place, name: &str) -> Result<String, Error> {
        let is_name = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        match name.split('.').all(is_name) {
            true => self.variable(place, name),
            false => Err(Error::new(place, format!("{name:?} is not the name of a variable"))),
        }
    }

    fn flags(&mut self, name: &str, arguments: &mut Arguments<'_>) -> Result<Command, Error> {
        let change = match name {
            "setflag" => Change::Set,
            "addflag" => Change::Add,
            _ => Change::Remove,
        };
        let mut variable = None;
        if arguments.len() > 1 {
            let (place, name) = arguments.word()?;
            self.need(place, "variables", "a variable of flags")?;
            variable = Some(self.named(place, &name)?);
        }
        Ok(Command::Flags { variable, change, flags: arguments.texts(self)? })
    }

    fn delete_header(&mut self, node: &Node, arguments: &mut Arguments<'_>) -> Result<Command, Error> {
        let Index { number, from_last } = arguments.index()?;
        let name = arguments.text(self)?;
        field_name(node.place, &name)?;
        let mut matching = None;
        if arguments.len() > 0 {
            let values = arguments.texts(self)?;
            matching = Some((arguments.matching(self, &values)?, values));
        } else if arguments.of("match type").is_some() {
            return Err(Error::new(node.place, "deleteheader takes values to match"));
        }
        Ok(Command::DeleteHeader { name, index: Index { number, from_last }, matching })
    }

    fn include(&mut self, place: Place, arguments: &mut Arguments<'_>) -> Result<Option<Command>, Error> {
        let location = if arguments.has("global") { Location::Global } else { Location::Personal };
        let (at, name) = arguments.word()?;
        if name.is_empty() || name.contains(['/', '\0', '\r', '\n', '$']) {
            return Err(Error::new(at, format!("{name:?} is not the name of a script")));
        }
        match self.shared.include(place, location, &name)? {
            Some(script) => Ok(Some(Command::Include { script, once: arguments.has("once") })),
            None if arguments.has("optional") => Ok(None),
            None => Err(Error::new(at, format!("there is no script {name:?}"))),
        }
    }

    fn global(&mut self, arguments: &mut Arguments<'_>) -> Result<Option<Command>, Error> {
        self.need(arguments.place, "variables", "global")?;
        let (place, names) = arguments.words()?;
        for name in names {
            let name = name.to_ascii_lowercase();
            if name.contains('.') || self.variables.contains(&name) {
                return Err(Error::new(place, format!("{name:?} is used as a variable of this script")));
            }
            self.named(place, &name)?;
            self.variables.remove(&name);
            self.globals.insert(name);
        }
        Ok(None)
    }
}

fn field_name(place: Place, name: &Text) -> Result<(), Error> {
    match name.literal().is_none_or(address::is_field_name) {
        true => Ok(()),
        false => Err(Error::new(place, "not the name of a header field")),
    }
}
