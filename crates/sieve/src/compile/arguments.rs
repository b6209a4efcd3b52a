//! Arguments of commands and tests: tags in any order, then strings and numbers in theirs.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Compiler;
use crate::error::{Error, Place};
use crate::expression::Regex;
use crate::program::{Comparator, Index, Match, Matching, Relation, Text};
use crate::syntax::{Argument, Node, Value};

/// Kind of value that follows a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Number,
    Text,
    List,
}

/// A tag: its name, its argument, its extension, its exclusive group, and its commands.
type Tag = (&'static str, Takes, &'static str, &'static str, &'static [&'static str]);

const MATCHED: &[&str] = &[
    "header",
    "address",
    "envelope",
    "body",
    "string",
    "hasflag",
    "date",
    "currentdate",
    "spamtest",
    "virustest",
    "deleteheader",
    "environment",
];
const ADDRESSES: &[&str] = &["address", "envelope"];
const INDEXED: &[&str] = &["header", "address", "date"];
const EDITING: &[&str] = &["deleteheader"];
const STORING: &[&str] = &["fileinto", "keep"];

const TAGS: &[Tag] = &[
    ("is", Takes::Nothing, "", "match type", MATCHED),
    ("contains", Takes::Nothing, "", "match type", MATCHED),
    ("matches", Takes::Nothing, "", "match type", MATCHED),
    ("regex", Takes::Nothing, "regex", "match type", MATCHED),
    ("value", Takes::Text, "relational", "match type", MATCHED),
    ("count", Takes::Text, "relational", "match type", MATCHED),
    ("comparator", Takes::Text, "", "comparator", MATCHED),
    ("all", Takes::Nothing, "", "address part", ADDRESSES),
    ("localpart", Takes::Nothing, "", "address part", ADDRESSES),
    ("domain", Takes::Nothing, "", "address part", ADDRESSES),
    ("user", Takes::Nothing, "subaddress", "address part", ADDRESSES),
    ("detail", Takes::Nothing, "subaddress", "address part", ADDRESSES),
    ("index", Takes::Number, "index", "index", INDEXED),
    ("last", Takes::Nothing, "index", "last", INDEXED),
    ("index", Takes::Number, "", "index", EDITING),
    ("last", Takes::Nothing, "", "last", EDITING),
    ("last", Takes::Nothing, "", "last", &["addheader"]),
    ("over", Takes::Nothing, "", "bound", &["size"]),
    ("under", Takes::Nothing, "", "bound", &["size"]),
    ("raw", Takes::Nothing, "", "transform", &["body"]),
    ("text", Takes::Nothing, "", "transform", &["body"]),
    ("content", Takes::List, "", "transform", &["body"]),
    ("zone", Takes::Text, "", "zone", &["date", "currentdate"]),
    ("originalzone", Takes::Nothing, "", "zone", &["date"]),
    ("percent", Takes::Nothing, "spamtestplus", "percent", &["spamtest"]),
    ("copy", Takes::Nothing, "copy", "copy", &["fileinto", "redirect"]),
    ("create", Takes::Nothing, "mailbox", "create", &["fileinto"]),
    ("specialuse", Takes::Text, "special-use", "special use", &["fileinto"]),
    ("flags", Takes::List, "imap4flags", "flags", STORING),
    ("days", Takes::Number, "", "time", &["vacation"]),
    ("seconds", Takes::Number, "vacation-seconds", "time", &["vacation"]),
    ("subject", Takes::Text, "", "subject", &["vacation"]),
    ("from", Takes::Text, "", "from", &["vacation"]),
    ("addresses", Takes::List, "", "addresses", &["vacation"]),
    ("mime", Takes::Nothing, "", "mime", &["vacation"]),
    ("handle", Takes::Text, "", "handle", &["vacation", "duplicate"]),
    ("header", Takes::Text, "", "identity", &["duplicate"]),
    ("uniqueid", Takes::Text, "", "identity", &["duplicate"]),
    ("seconds", Takes::Number, "", "time", &["duplicate"]),
    ("last", Takes::Nothing, "", "last", &["duplicate"]),
    ("lower", Takes::Nothing, "", "case", &["set"]),
    ("upper", Takes::Nothing, "", "case", &["set"]),
    ("lowerfirst", Takes::Nothing, "", "case of the first", &["set"]),
    ("upperfirst", Takes::Nothing, "", "case of the first", &["set"]),
    ("quotewildcard", Takes::Nothing, "", "quoting", &["set"]),
    ("quoteregex", Takes::Nothing, "regex", "quoting", &["set"]),
    ("length", Takes::Nothing, "", "length", &["set"]),
    ("personal", Takes::Nothing, "", "location", &["include"]),
    ("global", Takes::Nothing, "", "location", &["include"]),
    ("once", Takes::Nothing, "", "once", &["include"]),
    ("optional", Takes::Nothing, "", "optional", &["include"]),
];

/// The arguments of one command or test.
pub(super) struct Arguments<'a> {
    pub place: Place,
    name: &'a str,
    tags: Vec<(&'static Tag, Option<&'a Argument>)>,
    rest: &'a [Argument],
}

impl<'a> Arguments<'a> {
    /// Takes the tags off.
    pub fn new(compiler: &Compiler<'_, '_>, node: &'a Node) -> Result<Arguments<'a>, Error> {
        let mut tags: Vec<(&Tag, Option<&Argument>)> = Vec::new();
        let mut rest = node.arguments.as_slice();
        while let Some((Argument { place, value: Value::Tag(name) }, after)) = rest.split_first() {
            let known = TAGS.iter().find(|tag| tag.0 == name && tag.4.contains(&node.name.as_str()));
            let Some(tag) = known else {
                return Err(Error::new(*place, format!("{} takes no :{name}", node.name)));
            };
            let &(_, takes, extension, group, _) = tag;
            compiler.need(*place, extension, &format!(":{name}"))?;
            if tags.iter().any(|(other, _)| other.3 == group) {
                return Err(Error::new(*place, format!("{} has its {group} already", node.name)));
            }
            rest = after;
            let mut value = None;
            if takes != Takes::Nothing {
                let Some((found, after)) = rest.split_first().filter(|(found, _)| fits(&found.value, takes)) else {
                    return Err(Error::new(*place, format!(":{name} takes {}", described(takes))));
                };
                (value, rest) = (Some(found), after);
            }
            tags.push((tag, value));
        }
        Ok(Arguments { place: node.place, name: &node.name, tags, rest })
    }

    pub fn has(&self, name: &str) -> bool {
        self.tags.iter().any(|(tag, _)| tag.0 == name)
    }

    fn value(&self, name: &str) -> Option<&'a Argument> {
        self.tags.iter().find(|(tag, _)| tag.0 == name).and_then(|(_, value)| *value)
    }

    /// Returns the tag of a group, if the command has one.
    pub fn of(&self, group: &str) -> Option<&'static str> {
        self.tags.iter().find(|(tag, _)| tag.3 == group).map(|(tag, _)| tag.0)
    }

    pub fn tag_number(&self, name: &str) -> Option<u64> {
        self.value(name).and_then(|value| match value.value {
            Value::Number(number) => Some(number),
            _ => None,
        })
    }

    pub fn tag_text(&self, compiler: &mut Compiler<'_, '_>, name: &str) -> Result<Option<Text>, Error> {
        Ok(self.tag_list(compiler, name)?.and_then(|texts| texts.into_iter().next()))
    }

    pub fn tag_list(&self, compiler: &mut Compiler<'_, '_>, name: &str) -> Result<Option<Vec<Text>>, Error> {
        self.value(name).map(|value| texts(compiler, value)).transpose()
    }

    /// How many there are that are no tags.
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    fn next(&mut self, takes: Takes) -> Result<&'a Argument, Error> {
        let Some((first, after)) = self.rest.split_first() else {
            return Err(Error::new(self.place, format!("{} takes {} more", self.name, described(takes))));
        };
        if !fits(&first.value, takes) {
            return Err(Error::new(first.place, format!("{} takes {} here", self.name, described(takes))));
        }
        self.rest = after;
        Ok(first)
    }

    pub fn number(&mut self) -> Result<u64, Error> {
        match self.next(Takes::Number)?.value {
            Value::Number(number) => Ok(number),
            _ => Ok(0),
        }
    }

    pub fn text(&mut self, compiler: &mut Compiler<'_, '_>) -> Result<Text, Error> {
        let found = texts(compiler, self.next(Takes::Text)?)?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// A string that has to be known beforehand.
    pub fn word(&mut self) -> Result<(Place, String), Error> {
        let found = self.next(Takes::Text)?;
        match &found.value {
            Value::Text(text) => Ok((found.place, text.clone())),
            _ => Ok((found.place, String::new())),
        }
    }

    pub fn texts(&mut self, compiler: &mut Compiler<'_, '_>) -> Result<Vec<Text>, Error> {
        texts(compiler, self.next(Takes::List)?)
    }

    /// Strings that have to be known beforehand.
    pub fn words(&mut self) -> Result<(Place, Vec<String>), Error> {
        let found = self.next(Takes::List)?;
        match &found.value {
            Value::Text(text) => Ok((found.place, Vec::from([text.clone()]))),
            Value::List(texts) => Ok((found.place, texts.clone())),
            _ => Ok((found.place, Vec::new())),
        }
    }

    /// Checks that no argument is left.
    pub fn end(&self) -> Result<(), Error> {
        match self.rest.first() {
            Some(more) => Err(Error::new(more.place, format!("{} takes no more arguments", self.name))),
            None => Ok(()),
        }
    }

    /// Match type and comparator, for keys that are known by now.
    pub fn matching(&self, compiler: &mut Compiler<'_, '_>, keys: &[Text]) -> Result<Matching, Error> {
        let comparator = match self.value("comparator") {
            Some(Argument { place, value: Value::Text(name) }) => match name.as_str() {
                "i;octet" => Comparator::Octet,
                "i;ascii-casemap" => Comparator::AsciiCasemap,
                "i;ascii-numeric" => {
                    compiler.need(*place, "comparator-i;ascii-numeric", name)?;
                    Comparator::AsciiNumeric
                }
                "i;unicode-casemap" => {
                    compiler.need(*place, "comparator-i;unicode-casemap", name)?;
                    Comparator::UnicodeCasemap
                }
                _ => return Err(Error::new(*place, format!("comparator {name:?} is not known"))),
            },
            _ => Comparator::AsciiCasemap,
        };
        let kind = match self.of("match type") {
            Some("contains") => Match::Contains,
            Some("matches") => Match::Matches,
            Some("regex") => Match::Regex(self.expressions(keys, comparator)?),
            Some("value") => Match::Value(self.relation("value")?),
            Some("count") => Match::Count(self.relation("count")?),
            _ => Match::Is,
        };
        let is_partial = matches!(kind, Match::Contains | Match::Matches | Match::Regex(_));
        if is_partial && comparator == Comparator::AsciiNumeric {
            return Err(Error::new(self.place, "i;ascii-numeric compares whole numbers"));
        }
        Ok(Matching { kind, comparator })
    }

    fn relation(&self, name: &str) -> Result<Relation, Error> {
        let Some(Argument { place, value: Value::Text(word) }) = self.value(name) else {
            return Err(Error::new(self.place, format!(":{name} takes a relation")));
        };
        Ok(match word.to_ascii_lowercase().as_str() {
            "gt" => Relation::Greater,
            "ge" => Relation::GreaterOrEqual,
            "lt" => Relation::Less,
            "le" => Relation::LessOrEqual,
            "eq" => Relation::Equal,
            "ne" => Relation::NotEqual,
            _ => return Err(Error::new(*place, format!("{word:?} is not a relation (gt ge lt le eq ne)"))),
        })
    }

    fn expressions(&self, keys: &[Text], comparator: Comparator) -> Result<Vec<Option<Regex>>, Error> {
        let ignore_case = comparator.folds();
        let compiled = |key: &Text| key.literal().map(|key| Regex::new(key, ignore_case)).transpose();
        keys.iter().map(compiled).collect::<Result<_, _>>().map_err(|why| Error::new(self.place, why))
    }

    /// Reads `:index` and `:last`: the position among fields of one name.
    pub fn index(&self) -> Result<Index, Error> {
        let (number, from_last) = (self.tag_number("index"), self.has("last"));
        if from_last && number.is_none() && self.name != "addheader" {
            return Err(Error::new(self.place, ":last takes :index"));
        }
        if number == Some(0) {
            return Err(Error::new(self.place, ":index counts from 1"));
        }
        Ok(Index { number, from_last })
    }
}

fn texts(compiler: &mut Compiler<'_, '_>, argument: &Argument) -> Result<Vec<Text>, Error> {
    match &argument.value {
        Value::Text(text) => Ok(Vec::from([compiler.text(argument.place, text)?])),
        Value::List(texts) => texts.iter().map(|text| compiler.text(argument.place, text)).collect(),
        _ => Ok(Vec::new()),
    }
}

fn fits(value: &Value, takes: Takes) -> bool {
    match takes {
        Takes::Nothing => false,
        Takes::Number => matches!(value, Value::Number(_)),
        Takes::Text => matches!(value, Value::Text(_)),
        Takes::List => matches!(value, Value::Text(_) | Value::List(_)),
    }
}

fn described(takes: Takes) -> &'static str {
    match takes {
        Takes::Nothing => "nothing",
        Takes::Number => "a number",
        Takes::Text => "a string",
        Takes::List => "strings",
    }
}
