//! From commands to a [`Program`]: extensions, arguments, and what stands where it must not.
//!
//! Included scripts are read here (RFC 6609), so a script that runs needs no other.

mod arguments;
mod command;
mod extension;
mod test;

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::error::{Error, Place};
use crate::program::{Piece, Program, Script, Statement, Text};
use crate::syntax::{self, Node, Value};

pub use extension::EXTENSIONS;

/// The largest script, in bytes.
pub const SCRIPT_BYTES_MAX: usize = 1 << 20;
/// Scripts that one may include, directly or not.
pub const INCLUDED_MAX: usize = 64;
/// How deep scripts may include each other.
pub const INCLUDE_DEPTH_MAX: usize = 10;

/// Where an included script is (RFC 6609, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// Scripts of the user.
    Personal,
    /// Scripts of the site.
    Global,
}

/// The scripts that there are beside the one that is compiled.
pub trait Scripts {
    /// Returns the text of a script, if it exists.
    fn script(&self, location: Location, name: &str) -> Option<String>;
}

/// No other scripts.
impl Scripts for () {
    fn script(&self, _: Location, _: &str) -> Option<String> {
        None
    }
}

/// Checks a script and the scripts that it includes.
///
/// # Errors
/// The first error.
pub fn compile(source: &str, scripts: &dyn Scripts) -> Result<Program, Error> {
    let mut shared =
        Shared { scripts, done: Vec::new(), names: Vec::new(), stack: Vec::new(), required: BTreeSet::new() };
    shared.add(String::new(), source)?;
    let Shared { done, required, .. } = shared;
    let scripts = done.into_iter().map(Option::unwrap_or_default).collect();
    Ok(Program { scripts, required: required.into_iter().collect() })
}

/// State shared by all scripts of one program.
struct Shared<'a> {
    scripts: &'a dyn Scripts,
    done: Vec<Option<Script>>,
    /// Names of the scripts, by their place in `done`.
    names: Vec<(Option<Location>, String)>,
    /// Scripts in compilation.
    stack: Vec<usize>,
    required: BTreeSet<&'static str>,
}

impl Shared<'_> {
    fn add(&mut self, name: String, source: &str) -> Result<usize, Error> {
        self.compile(None, name.clone(), source).map_err(|mut error| {
            if error.script.is_none() && !name.is_empty() {
                error.script = Some(name);
            }
            error
        })
    }

    fn compile(&mut self, location: Option<Location>, name: String, source: &str) -> Result<usize, Error> {
        if source.len() > SCRIPT_BYTES_MAX {
            return Err(Error::new(Place::default(), format!("a script has at most {SCRIPT_BYTES_MAX} bytes")));
        }
        let nodes = syntax::parse(source)?;
        let number = self.done.len();
        self.done.push(None);
        self.names.push((location, name.clone()));
        self.stack.push(number);
        let mut compiler = Compiler {
            shared: self,
            required: BTreeSet::new(),
            globals: BTreeSet::new(),
            variables: BTreeSet::new(),
            lacks: false,
        };
        let commands = compiler.script(&nodes)?;
        self.stack.pop();
        if let Some(slot) = self.done.get_mut(number) {
            *slot = Some(Script { name, commands });
        }
        Ok(number)
    }

    /// The number of an included script; none if it is not there.
    fn include(&mut self, place: Place, location: Location, name: &str) -> Result<Option<usize>, Error> {
        if let Some(number) = self.names.iter().position(|(known, of)| *known == Some(location) && of == name) {
            return match self.stack.contains(&number) {
                true => Err(Error::new(place, format!("script {name:?} includes itself"))),
                false => Ok(Some(number)),
            };
        }
        if self.done.len() > INCLUDED_MAX || self.stack.len() >= INCLUDE_DEPTH_MAX {
            return Err(Error::new(place, "too many scripts are included, or too deep"));
        }
        let Some(source) = self.scripts.script(location, name) else { return Ok(None) };
        let compiled = self.compile(Some(location), name.to_string(), &source);
        compiled.map(Some).map_err(|mut error| {
            error.script.get_or_insert_with(|| name.to_string());
            error
        })
    }
}

/// One script.
struct Compiler<'a, 'b> {
    shared: &'a mut Shared<'b>,
    required: BTreeSet<&'static str>,
    /// Variables that the script shares with others.
    globals: BTreeSet<String>,
    /// Variables that it uses.
    variables: BTreeSet<String>,
    /// `ihave` has asked for a missing capability: later errors fail when they are reached.
    lacks: bool,
}

/// Variables of one script.
pub const VARIABLES_MAX: usize = 128;
/// Number of the last match variable that can be named.
pub const MATCH_VARIABLES_MAX: usize = 32;

impl Compiler<'_, '_> {
    fn script(&mut self, nodes: &[Node]) -> Result<Vec<Statement>, Error> {
        let is_require = |node: &&Node| node.name == "require";
        let (first, rest) = nodes.split_at(nodes.iter().take_while(is_require).count());
        first.iter().try_for_each(|node| self.require(node))?;
        self.block(rest)
    }

    fn require(&mut self, node: &Node) -> Result<(), Error> {
        let names = match node.arguments.as_slice() {
            [only] if node.tests.is_empty() && node.block.is_none() => match &only.value {
                Value::Text(name) => core::slice::from_ref(name),
                Value::List(names) => names,
                _ => return Err(Error::new(only.place, "require takes strings")),
            },
            _ => return Err(Error::new(node.place, "require takes strings, and nothing else")),
        };
        for name in names {
            if !self.enable(name) {
                return Err(Error::new(node.place, format!("extension {name:?} is not known")));
            }
        }
        Ok(())
    }

    /// Enables an extension, with those that it implies. Returns whether it is known.
    fn enable(&mut self, name: &str) -> bool {
        let Some(known) = EXTENSIONS.iter().find(|known| **known == name) else { return false };
        self.required.insert(known);
        self.shared.required.insert(known);
        self.required.extend(extension::implied(known));
        true
    }

    fn has(&self, extension: &str) -> bool {
        extension.is_empty() || self.required.contains(extension)
    }

    fn need(&self, place: Place, extension: &str, what: &str) -> Result<(), Error> {
        // Several can have the same: one of them will do.
        match extension.split('|').any(|one| self.has(one)) {
            true => Ok(()),
            false => {
                let names = extension.replace('|', "\" or \"");
                Err(Error::new(place, format!("{what} takes require \"{names}\"")))
            }
        }
    }

    /// A string with its encoded characters and variables.
    fn text(&mut self, place: Place, source: &str) -> Result<Text, Error> {
        let decoded;
        let source = match self.has("encoded-character") {
            true => {
                decoded = extension::decode_characters(source).map_err(|why| Error::new(place, why))?;
                &decoded
            }
            false => source,
        };
        if !self.has("variables") {
            return Ok(literal(source));
        }
        let mut pieces: Vec<Piece> = Vec::new();
        let mut plain = String::new();
        let mut rest = source;
        while let Some(at) = rest.find("${") {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            let inner = from.get(2..).unwrap_or_default();
            let name = inner.find('}').and_then(|end| inner.get(..end));
            match name.map(|name| (name, self.reference(place, name))) {
                Some((name, Some(piece))) => {
                    if !plain.is_empty() {
                        pieces.push(Piece::Literal(core::mem::take(&mut plain)));
                    }
                    pieces.push(piece?);
                    rest = inner.get(name.len().saturating_add(1)..).unwrap_or_default();
                }
                _ => {
                    plain.push_str("${");
                    rest = inner;
                }
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Literal(plain));
        }
        Ok(Text(pieces))
    }

    /// The text between `${` and `}`, if it is a reference.
    fn reference(&mut self, place: Place, name: &str) -> Option<Result<Piece, Error>> {
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = name.parse::<usize>().ok().filter(|number| *number <= MATCH_VARIABLES_MAX);
            let too_high = || Error::new(place, format!("match variables end at {MATCH_VARIABLES_MAX}"));
            return Some(number.map(Piece::Match).ok_or_else(too_high));
        }
        let is_name = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if !name.split('.').all(is_name) {
            return None;
        }
        Some(self.variable(place, name).map(Piece::Variable))
    }

    /// The name of a variable as the program has it.
    fn variable(&mut self, place: Place, name: &str) -> Result<String, Error> {
        let name = name.to_ascii_lowercase();
        if let Some((space, rest)) = name.split_once('.') {
            if space != "global" || !self.has("include") || rest.contains('.') {
                return Err(Error::new(place, format!("there is no name space {space:?} of variables")));
            }
            return Ok(name);
        }
        if self.globals.contains(&name) {
            return Ok(format!("global.{name}"));
        }
        self.variables.insert(name.clone());
        match self.variables.len() > VARIABLES_MAX {
            true => Err(Error::new(place, format!("more than {VARIABLES_MAX} variables"))),
            false => Ok(name),
        }
    }
}

fn literal(text: &str) -> Text {
    match text.is_empty() {
        true => Text::default(),
        false => Text(Vec::from([Piece::Literal(text.to_string())])),
    }
}
