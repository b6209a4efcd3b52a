//! Tests: what they take.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::Compiler;
use super::arguments::Arguments;
use crate::error::Error;
use crate::program::{AddressPart, Duplicate, Source, Test, Text, Transform, Zone};
use crate::syntax::Node;

/// The parts of a date (RFC 5260, section 4.2).
const DATE_PARTS: [&str; 13] = [
    "year", "month", "day", "date", "julian", "hour", "minute", "second", "time", "iso8601", "std11", "zone", "weekday",
];

/// The fields that hold addresses, which `address` may ask for.
const ADDRESS_FIELDS: [&str; 33] = [
    "from",
    "to",
    "cc",
    "bcc",
    "sender",
    "reply-to",
    "resent-from",
    "resent-to",
    "resent-cc",
    "resent-bcc",
    "resent-sender",
    "resent-reply-to",
    "return-path",
    "errors-to",
    "delivered-to",
    "x-original-to",
    "mail-followup-to",
    "disposition-notification-to",
    "return-receipt-to",
    "return-receipt-requested",
    "apparently-to",
    "mail-reply-to",
    "abuse-reports-to",
    "x-complaints-to",
    "x-report-abuse-to",
    "x-admin",
    "for-approval",
    "for-handling",
    "for-comment",
    "read-receipt-to",
    "x-confirm-reading-to",
    "registered-mail-reply-requested-by",
    "x-beenthere",
];

/// How long a mail is remembered, in seconds, if the script says nothing, and at most (RFC 7352, section 3.3, leaves both to us).
const DUPLICATE_SECONDS: u64 = 7 * 86_400;
const DUPLICATE_SECONDS_MAX: u64 = 90 * 86_400;

impl Compiler<'_, '_> {
    /// A test. Where the script asked for a capability that is not there, one that is wrong fails when it is reached.
    pub(super) fn test(&mut self, node: &Node) -> Result<Test, Error> {
        match self.sound_test(node) {
            Err(error) if self.lacks => Ok(Test::Unknown(error.text)),
            test => test,
        }
    }

    fn sound_test(&mut self, node: &Node) -> Result<Test, Error> {
        if let name @ ("not" | "allof" | "anyof") = node.name.as_str() {
            if let Some(more) = node.arguments.first() {
                return Err(Error::new(more.place, format!("{name} takes tests")));
            }
            let mut tests: Vec<Test> = Vec::new();
            for test in &node.tests {
                let test = self.test(test)?;
                let decided = decided(&test);
                tests.push(test);
                // The rest is never looked at.
                if decided == Some(name == "anyof") && name != "not" {
                    break;
                }
            }
            return match (name, node.is_list, <[Test; 1]>::try_from(tests)) {
                ("not", false, Ok([test])) => Ok(Test::Not(Box::new(test))),
                ("not", ..) => Err(Error::new(node.place, "not takes one test")),
                (_, false, _) => Err(Error::new(node.place, format!("{name} takes a list of tests"))),
                ("allof", _, tests) => Ok(Test::All(listed(tests))),
                (_, _, tests) => Ok(Test::Any(listed(tests))),
            };
        }
        if let Some(more) = node.tests.first() {
            return Err(Error::new(more.place, format!("{} takes no test", node.name)));
        }
        if node.name == "ihave" {
            return self.has_capabilities(node);
        }
        let extension = match node.name.as_str() {
            "true" | "false" | "size" | "exists" | "header" | "address" => "",
            name @ ("envelope" | "body" | "spamtest" | "virustest" | "date" | "environment" | "duplicate") => name,
            "string" => "variables",
            "hasflag" => "imap4flags",
            "currentdate" => "date",
            "mailboxexists" => "mailbox",
            "specialuse_exists" => "special-use",
            name => return Err(Error::new(node.place, format!("there is no test {name}"))),
        };
        self.need(node.place, extension, &node.name)?;
        let mut arguments = Arguments::new(self, node)?;
        let test = self.known_test(node, &mut arguments)?;
        arguments.end()?;
        Ok(test)
    }

    /// Checks whether all capabilities exist (RFC 5463); then they need no `require`.
    fn has_capabilities(&mut self, node: &Node) -> Result<Test, Error> {
        self.need(node.place, "ihave", "ihave")?;
        let mut arguments = Arguments::new(self, node)?;
        let (_, names) = arguments.words()?;
        arguments.end()?;
        let all = names.iter().all(|name| super::EXTENSIONS.contains(&name.as_str()));
        if all {
            for name in &names {
                self.enable(name);
            }
        }
        self.lacks |= !all;
        Ok(Test::Has(all))
    }

    fn known_test(&mut self, node: &Node, arguments: &mut Arguments<'_>) -> Result<Test, Error> {
        let source = match node.name.as_str() {
            "true" => return Ok(Test::Constant(true)),
            "false" => return Ok(Test::Constant(false)),
            "size" => {
                let Some(bound) = arguments.of("bound") else {
                    return Err(Error::new(node.place, "size takes :over or :under"));
                };
                return Ok(Test::Size { over: bound == "over", bytes: arguments.number()? });
            }
            "exists" => return Ok(Test::Exists(arguments.texts(self)?)),
            "duplicate" => return self.duplicate(arguments).map(Test::Duplicate),
            "mailboxexists" => return Ok(Test::MailboxExists(arguments.texts(self)?)),
            "specialuse_exists" => {
                let mailbox = if arguments.len() > 1 { Some(arguments.text(self)?) } else { None };
                return Ok(Test::SpecialUseExists { mailbox, uses: arguments.texts(self)? });
            }
            _ => self.source(node, arguments)?,
        };
        let keys = match source {
            Source::Spam { .. } | Source::Virus => Vec::from([arguments.text(self)?]),
            _ => arguments.texts(self)?,
        };
        Ok(Test::Values { source, matching: arguments.matching(self, &keys)?, keys })
    }

    fn duplicate(&mut self, arguments: &mut Arguments<'_>) -> Result<Duplicate, Error> {
        let header = arguments.tag_text(self, "header")?;
        Ok(Duplicate {
            handle: arguments.tag_text(self, "handle")?,
            header,
            unique_id: arguments.tag_text(self, "uniqueid")?,
            seconds: arguments.tag_number("seconds").unwrap_or(DUPLICATE_SECONDS).min(DUPLICATE_SECONDS_MAX),
            last: arguments.has("last"),
        })
    }

    fn source(&mut self, node: &Node, arguments: &mut Arguments<'_>) -> Result<Source, Error> {
        let part = match arguments.of("address part") {
            Some("localpart") => AddressPart::LocalPart,
            Some("domain") => AddressPart::Domain,
            Some("user") => AddressPart::User,
            Some("detail") => AddressPart::Detail,
            _ => AddressPart::All,
        };
        Ok(match node.name.as_str() {
            // No field has a name like `Subject:`, and that is no error (RFC 5228 section 2.4.2.2).
            "header" => Source::Header { index: arguments.index()?, names: arguments.texts(self)? },
            "address" => {
                let names = arguments.texts(self)?;
                let is_known = |name: &&Text| {
                    let known = |name: &str| ADDRESS_FIELDS.iter().any(|known| known.eq_ignore_ascii_case(name));
                    name.literal().is_none_or(known)
                };
                if let Some(other) = names.iter().find(|name| !is_known(name)) {
                    let other = other.literal().unwrap_or_default();
                    return Err(Error::new(node.place, format!("field {other:?} holds no addresses")));
                }
                Source::Address { names, part, index: arguments.index()? }
            }
            "envelope" => {
                let parts = arguments.texts(self)?;
                let is_known = |name: &str| name.eq_ignore_ascii_case("from") || name.eq_ignore_ascii_case("to");
                if parts.iter().any(|part| part.literal().is_some_and(|name| !is_known(name))) {
                    return Err(Error::new(node.place, "an envelope has \"from\" and \"to\""));
                }
                Source::Envelope { parts, part }
            }
            "body" => Source::Body(match arguments.of("transform") {
                Some("raw") => Transform::Raw,
                Some("content") => Transform::Content(arguments.tag_list(self, "content")?.unwrap_or_default()),
                _ => Transform::Text,
            }),
            "string" => Source::Strings(arguments.texts(self)?),
            "hasflag" => {
                let mut names = Vec::new();
                if arguments.len() > 1 {
                    let (place, words) = arguments.words()?;
                    self.need(place, "variables", "a variable of flags")?;
                    names = words.iter().map(|name| self.named(place, name)).collect::<Result<_, _>>()?;
                }
                Source::Flags(names)
            }
            "date" => {
                let (index, zone) = (arguments.index()?, self.zone(arguments)?);
                let name = arguments.text(self)?;
                Source::Date { name, zone, part: self.date_part(arguments)?, index }
            }
            "currentdate" => {
                let zone = self.zone(arguments)?;
                Source::CurrentDate { zone, part: self.date_part(arguments)? }
            }
            "spamtest" => Source::Spam { percent: arguments.has("percent") },
            "virustest" => Source::Virus,
            _ => Source::Environment(arguments.text(self)?),
        })
    }

    fn zone(&mut self, arguments: &mut Arguments<'_>) -> Result<Zone, Error> {
        if arguments.has("originalzone") {
            return Ok(Zone::Original);
        }
        let Some(text) = arguments.tag_text(self, "zone")? else { return Ok(Zone::Local) };
        if text.literal().is_some_and(|zone| crate::date::zone(zone).is_none()) {
            return Err(Error::new(arguments.place, ":zone takes +hhmm or -hhmm"));
        }
        Ok(Zone::Given(text))
    }

    fn date_part(&mut self, arguments: &mut Arguments<'_>) -> Result<Text, Error> {
        let text = arguments.text(self)?;
        match text.literal() {
            Some(word) if !DATE_PARTS.iter().any(|part| part.eq_ignore_ascii_case(word)) => {
                Err(Error::new(arguments.place, format!("a date has no part {word:?}")))
            }
            _ => Ok(text),
        }
    }
}

/// The value of a test that asks for capabilities alone; `None` if a mail decides it.
pub(super) fn decided(test: &Test) -> Option<bool> {
    match test {
        Test::Has(value) => Some(*value),
        Test::Not(test) => decided(test).map(|value| !value),
        Test::All(tests) | Test::Any(tests) => {
            let ends = matches!(test, Test::Any(_));
            let values: Vec<Option<bool>> = tests.iter().map(decided).collect();
            match values.contains(&Some(ends)) {
                true => Some(ends),
                false => values.iter().all(Option::is_some).then_some(!ends),
            }
        }
        _ => None,
    }
}

fn listed(tests: Result<[Test; 1], Vec<Test>>) -> Vec<Test> {
    tests.map_or_else(|tests| tests, Vec::from)
}
