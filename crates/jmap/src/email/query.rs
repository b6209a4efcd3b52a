//! `Email/query` and `Email/queryChanges` (RFC 8621, sections 4.4 and 4.5).
//!
//! Conditions on text are asked of the host, which has an index; all others are answered from the snapshot. Bounds:
//! [`CONDITIONS_MAX`] conditions, [`COMPARATORS_MAX`] comparators, [`READ_MAX`] messages whose header is read for a condition or for the order.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Ordering;

use text::normal::composed;
use text::subject;

use super::get::has_attachment;
use crate::arguments::Arguments;
use crate::changes::{self, Page};
use crate::date::Date;
use crate::engine::Engine;
use crate::error::Error;
use crate::header::{Header, Property};
use crate::host::Field;
use crate::index::{Email, Index};
use crate::limits::{COMPARATORS_MAX, CONDITIONS_MAX, HEADER_BYTES_MAX, SORTS};
use crate::part::Part;
use crate::source::Source;
use crate::thread::threads;
use crate::{Map, Value};

/// Messages whose header is read in one query.
const READ_MAX: usize = 20_000;

/// Characters of a subject that are compared.
const SUBJECT_MAX: usize = 1_000;

/// Words of one condition on text.
const TERMS_MAX: usize = 20;

pub(crate) fn query(engine: &mut Engine<'_>, mut arguments: Arguments) -> Result<Value, Error> {
    let account = engine.account(&mut arguments)?;
    let page = Page::read(&mut arguments)?;
    let collapses = arguments.0.get("collapseThreads") == Some(&Value::Bool(true));
    let index = engine.index();
    let (ids, is_exact) = evaluate(engine, &index, &mut arguments)?;
    arguments.end()?;
    let state = engine.state();
    let mut reply = page.reply(account, state, ids, is_exact)?;
    if let Some(reply) = reply.as_object_mut() {
        reply.insert("collapseThreads".into(), collapses.into());
    }
    Ok(reply)
}

pub(crate) fn query_changes(engine: &mut Engine<'_>, arguments: Arguments) -> Result<Value, Error> {
    changes::query_changes(engine, arguments, evaluate)
}

/// The ids that a filter matches, sorted, and whether the same query on an older snapshot is answered from that.
fn evaluate(engine: &mut Engine<'_>, index: &Index, arguments: &mut Arguments) -> Result<(Vec<String>, bool), Error> {
    let (filter, sort) = (arguments.take("filter"), arguments.array("sort")?);
    let collapses = arguments.boolean("collapseThreads", false)?;
    let mut search =
        Search { engine, index, threads: None, left: CONDITIONS_MAX, reads_left: READ_MAX, is_exact: true };
    let filter = filter.map(|filter| search.compile(filter)).transpose()?;
    if sort.len() > COMPARATORS_MAX {
        return Err(Error::new("unsupportedSort"));
    }
    let sort = sort.into_iter().map(|by| search.comparator(by)).collect::<Result<Vec<_>, _>>()?;
    let mut found = Vec::new();
    for message in index.messages() {
        let Some(email) = index.email(message) else { continue };
        if filter.as_ref().map_or(Ok(true), |filter| search.matches(filter, &email))? {
            found.push(email);
        }
    }
    search.sort(&mut found, &sort)?;
    let is_exact = search.is_exact;
    if collapses {
        let mut seen = BTreeSet::new();
        found.retain(|email| seen.insert(email.thread.clone()));
    }
    Ok((found.into_iter().map(|email| email.id).collect(), is_exact))
}

/// A filter that was read.
enum Filter {
    And(Vec<Filter>),
    Or(Vec<Filter>),
    Not(Vec<Filter>),
    Within(BTreeSet<u32>),
    Outside(BTreeSet<u32>),
    Before(i64),
    After(i64),
    Least(u64),
    Below(u64),
    Keyword(String, bool),
    /// A keyword in a thread: of all, of some, of none.
    Thread(String, Quantity),
    Attachment(bool),
    Messages(BTreeSet<u64>),
    Header(String, Option<String>),
}

impl Filter {
    /// Whether it reads the header or the parts of a mail.
    fn reads(&self) -> bool {
        match self {
            Filter::And(all) | Filter::Or(all) | Filter::Not(all) => all.iter().any(Filter::reads),
            Filter::Attachment(_) | Filter::Header(..) => true,
            _ => false,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quantity {
    All,
    Some,
    None,
}

/// The conditions of a filter.
pub(super) const CONDITIONS: [&str; 20] = [
    "inMailbox",
    "inMailboxOtherThan",
    "before",
    "after",
    "minSize",
    "maxSize",
    "hasKeyword",
    "notKeyword",
    "allInThreadHaveKeyword",
    "someInThreadHaveKeyword",
    "noneInThreadHaveKeyword",
    "hasAttachment",
    "text",
    "from",
    "to",
    "cc",
    "bcc",
    "subject",
    "body",
    "header",
];

struct Comparator {
    property: String,
    keyword: String,
    is_ascending: bool,
}

struct Search<'a, 'b> {
    engine: &'a mut Engine<'b>,
    index: &'a Index,
    threads: Option<BTreeMap<String, Vec<BTreeSet<String>>>>,
    left: usize,
    reads_left: usize,
    is_exact: bool,
}

impl Search<'_, '_> {
    fn compile(&mut self, filter: Value) -> Result<Filter, Error> {
        self.left = self.left.checked_sub(1).ok_or_else(|| Error::new("unsupportedFilter"))?;
        let Value::Object(mut filter) = filter else { return Err(Error::arguments("filter")) };
        let Some(operator) = filter.remove("operator") else {
            let mut all =
                filter.into_iter().map(|(name, value)| self.condition(&name, value)).collect::<Result<Vec<_>, _>>()?;
            all.sort_by_key(Filter::reads);
            return Ok(Filter::And(all));
        };
        let Some(Value::Array(conditions)) = filter.remove("conditions") else {
            return Err(Error::arguments("conditions"));
        };
        let mut all = conditions.into_iter().map(|condition| self.compile(condition)).collect::<Result<Vec<_>, _>>()?;
        // Mails are read for what the others leave open.
        all.sort_by_key(Filter::reads);
        match operator.as_str() {
            Some("AND") => Ok(Filter::And(all)),
            Some("OR") => Ok(Filter::Or(all)),
            Some("NOT") => Ok(Filter::Not(all)),
            _ => Err(Error::arguments("operator")),
        }
    }

    fn condition(&mut self, name: &str, value: Value) -> Result<Filter, Error> {
        let wrong = || Error::arguments(name);
        let text = || value.as_str().map(String::from).ok_or_else(wrong);
        let date = || value.as_str().and_then(Date::read_utc).ok_or_else(wrong);
        let mailboxes = |ids: Vec<String>| -> BTreeSet<u32> {
            ids.iter().filter_map(|id| self.index.mailbox(id)).map(|(number, _)| *number).collect()
        };
        Ok(match name {
            "inMailbox" => Filter::Within(mailboxes([text()?].into())),
            "inMailboxOtherThan" => {
                Filter::Outside(mailboxes(crate::arguments::strings(value.clone()).ok_or_else(wrong)?))
            }
            "before" => Filter::Before(date()?),
            "after" => Filter::After(date()?),
            "minSize" => Filter::Least(value.as_u64().ok_or_else(wrong)?),
            "maxSize" => Filter::Below(value.as_u64().ok_or_else(wrong)?),
            "hasKeyword" => Filter::Keyword(text()?.to_ascii_lowercase(), true),
            "notKeyword" => Filter::Keyword(text()?.to_ascii_lowercase(), false),
            "allInThreadHaveKeyword" => Filter::Thread(text()?.to_ascii_lowercase(), Quantity::All),
            "someInThreadHaveKeyword" => Filter::Thread(text()?.to_ascii_lowercase(), Quantity::Some),
            "noneInThreadHaveKeyword" => Filter::Thread(text()?.to_ascii_lowercase(), Quantity::None),
            "hasAttachment" => Filter::Attachment(value.as_bool().ok_or_else(wrong)?),
            "text" => self.texts(Field::Anywhere, &text()?),
            "from" => self.texts(Field::From, &text()?),
            "to" => self.texts(Field::To, &text()?),
            "cc" => self.texts(Field::Cc, &text()?),
            "bcc" => self.texts(Field::Bcc, &text()?),
            "subject" => self.texts(Field::Subject, &text()?),
            "body" => self.texts(Field::Body, &text()?),
            "header" => {
                let parts = crate::arguments::strings(value.clone()).ok_or_else(wrong)?;
                match &parts[..] {
                    [name] => Filter::Header(name.clone(), None),
                    [name, text] => Filter::Header(name.clone(), Some(composed(text).to_lowercase())),
                    _ => return Err(wrong()),
                }
            }
            _ => return Err(Error::new("unsupportedFilter")),
        })
    }

    /// The messages that contain each term of a text.
    fn texts(&mut self, field: Field, text: &str) -> Filter {
        self.is_exact = false;
        let mut all: Option<BTreeSet<u64>> = None;
        for term in terms(text) {
            let found = self.engine.host.find(&self.index.mailboxes, field, &term);
            let message = |&(number, uid): &(u32, u32)| {
                let at = self.index.mailboxes.binary_search_by_key(&number, |(known, _)| *known).ok()?;
                Some(self.index.mailboxes.get(at)?.1.entry(uid)?.message.get())
            };
            let found: BTreeSet<u64> = found.iter().filter_map(message).collect();
            all = Some(match all {
                Some(before) => before.intersection(&found).copied().collect(),
                None => found,
            });
        }
        all.map_or(Filter::And(Vec::new()), Filter::Messages)
    }

    fn matches(&mut self, filter: &Filter, email: &Email) -> Result<bool, Error> {
        Ok(match filter {
            Filter::And(all) => {
                for filter in all {
                    if !self.matches(filter, email)? {
                        return Ok(false);
                    }
                }
                true
            }
            Filter::Or(all) => {
                for filter in all {
                    if self.matches(filter, email)? {
                        return Ok(true);
                    }
                }
                false
            }
            Filter::Not(all) => {
                for filter in all {
                    if self.matches(filter, email)? {
                        return Ok(false);
                    }
                }
                true
            }
            Filter::Within(mailboxes) => email.mailboxes.iter().any(|number| mailboxes.contains(number)),
            Filter::Outside(mailboxes) => email.mailboxes.iter().any(|number| !mailboxes.contains(number)),
            Filter::Before(date) => email.received < *date,
            Filter::After(date) => email.received >= *date,
            Filter::Least(size) => email.size >= *size,
            Filter::Below(size) => email.size < *size,
            Filter::Keyword(keyword, is_set) => email.keywords.contains(keyword) == *is_set,
            Filter::Thread(keyword, quantity) => self.in_thread(&email.thread, keyword, *quantity),
            Filter::Messages(messages) => messages.contains(&email.message),
            Filter::Attachment(wanted) => {
                self.read(1)?;
                let Some(layout) = self.engine.host.layout(email.message) else { return Ok(false) };
                has_attachment(&Part::read(self.engine.host, &Source::Stored(email.message), &layout)) == *wanted
            }
            Filter::Header(name, wanted) => {
                let header = self.header(email)?;
                let is_it = |value: &[u8]| match wanted {
                    Some(wanted) => crate::header::text(&mime::unfolded(value)).to_lowercase().contains(wanted),
                    None => true,
                };
                header.all(name).any(is_it)
            }
        })
    }

    /// The keywords of the messages of each thread.
    fn in_thread(&mut self, thread: &str, keyword: &str, quantity: Quantity) -> bool {
        let index = self.index;
        let keywords = |message: &u64| index.email(*message).map(|email| email.keywords).unwrap_or_default();
        let all = self.threads.get_or_insert_with(|| {
            threads(index).into_iter().map(|(thread, all)| (thread, all.iter().map(keywords).collect())).collect()
        });
        let Some(all) = all.get(thread) else { return false };
        match quantity {
            Quantity::All => all.iter().all(|keywords| keywords.contains(keyword)),
            Quantity::Some => all.iter().any(|keywords| keywords.contains(keyword)),
            Quantity::None => !all.iter().any(|keywords| keywords.contains(keyword)),
        }
    }

    fn read(&mut self, count: usize) -> Result<(), Error> {
        self.reads_left = self.reads_left.checked_sub(count).ok_or_else(|| Error::new("unsupportedFilter"))?;
        Ok(())
    }

    fn header(&mut self, email: &Email) -> Result<Header, Error> {
        self.read(1)?;
        let Some(layout) = self.engine.host.layout(email.message) else { return Ok(Header::default()) };
        let end = layout.body.min(layout.header.saturating_add(HEADER_BYTES_MAX));
        Ok(Header::read(&Source::Stored(email.message).range(self.engine.host, layout.header, end)))
    }

    fn comparator(&mut self, value: Value) -> Result<Comparator, Error> {
        let object: Map<String, Value> = match value {
            Value::Object(object) => object,
            _ => return Err(Error::arguments("sort")),
        };
        let mut object = Arguments(object);
        let property = object.string("property")?.ok_or_else(|| Error::arguments("sort"))?;
        let (is_ascending, keyword) = (object.boolean("isAscending", true)?, object.string("keyword")?);
        if object.string("collation")?.is_some_and(|collation| collation != "i;unicode-casemap")
            || !SORTS.contains(&property.as_str())
        {
            return Err(Error::new("unsupportedSort"));
        }
        if keyword.is_none() && property.ends_with("Keyword") {
            return Err(Error::arguments("keyword"));
        }
        Ok(Comparator { property, keyword: keyword.unwrap_or_default().to_ascii_lowercase(), is_ascending })
    }

    /// Sorts by the comparators, then by the id: an order that stays the same.
    fn sort(&mut self, found: &mut Vec<Email>, sort: &[Comparator]) -> Result<(), Error> {
        let default = [Comparator { property: "receivedAt".into(), keyword: String::new(), is_ascending: false }];
        let sort = if sort.is_empty() { &default[..] } else { sort };
        let mut keyed = Vec::with_capacity(found.len());
        for email in found.drain(..) {
            let keys = sort.iter().map(|by| self.key(&email, by)).collect::<Result<Vec<_>, _>>()?;
            keyed.push((keys, email));
        }
        keyed.sort_by(|(one, a), (other, b)| {
            let by = one.iter().zip(other).zip(sort).map(|((one, other), by)| {
                let order = one.cmp(other);
                if by.is_ascending { order } else { order.reverse() }
            });
            by.into_iter()
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
                .then_with(|| a.message.cmp(&b.message))
        });
        found.extend(keyed.into_iter().map(|(_, email)| email));
        Ok(())
    }

    fn key(&mut self, email: &Email, by: &Comparator) -> Result<Sorted, Error> {
        Ok(match by.property.as_str() {
            "receivedAt" => Sorted::Number(email.received),
            "size" => Sorted::Number(i64::try_from(email.size).unwrap_or(i64::MAX)),
            "hasKeyword" => Sorted::Number(email.keywords.contains(&by.keyword).into()),
            "allInThreadHaveKeyword" => {
                Sorted::Number(self.in_thread(&email.thread, &by.keyword, Quantity::All).into())
            }
            "someInThreadHaveKeyword" => {
                Sorted::Number(self.in_thread(&email.thread, &by.keyword, Quantity::Some).into())
            }
            name => {
                let header = self.header(email).map_err(|_| Error::new("unsupportedSort"))?;
                let value = Property::convenience(name).map_or(Value::Null, |property| header.property(&property));
                match name {
                    "sentAt" => {
                        let date = value.as_str().and_then(Date::read);
                        Sorted::Number(date.map_or(email.received, |date| date.seconds))
                    }
                    "subject" => {
                        let subject: String = value.as_str().unwrap_or_default().chars().take(SUBJECT_MAX).collect();
                        Sorted::Text(subject::base(&subject).0.to_lowercase().into())
                    }
                    _ => {
                        let first = &value[0];
                        let shown = first["name"].as_str().or_else(|| first["email"].as_str()).unwrap_or_default();
                        Sorted::Text(shown.to_lowercase().into())
                    }
                }
            }
        })
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sorted {
    Number(i64),
    Text(Box<str>),
}

/// The words of a condition, and its phrases in quotes.
pub(super) fn terms(text: &str) -> Vec<String> {
    let (mut terms, mut rest) = (Vec::new(), text.trim());
    while !rest.is_empty() && terms.len() < TERMS_MAX {
        let quote = rest.chars().next().filter(|first| matches!(first, '"' | '\''));
        let (term, behind) = match quote.and_then(|quote| rest.get(1..)?.split_once(quote)) {
            Some(found) => found,
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        if !term.is_empty() {
            terms.push(term.to_string());
        }
        rest = behind.trim_start();
    }
    terms
}
