//! Grammar of SEARCH (RFC 9051, section 6.4.4; RFC 5032; RFC 7162, section 3.1.5).

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use text::encoding::Encoding;

use super::date;
use super::syntax::{Cursor, Flags, Set, Wrong, is_atom};

/// Keys within each other.
const DEPTH_MAX: usize = 32;

/// Keys of one search.
const KEYS_MAX: usize = 1_000;

/// A search key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of the standard")]
pub enum Key {
    /// All of these.
    And(Vec<Key>),
    Or(Box<(Key, Key)>),
    Not(Box<Key>),
    /// By number.
    Messages(Set),
    Uids(Set),
    /// With this system flag, a bit of [`Flags::system`].
    Flag(u64),
    Keyword(String),
    Recent,
    /// Arrival: from the first day on, before the second; days since 1970.
    Arrived(i64, i64),
    /// The day on which it came into the mailbox, as [`Key::Arrived`].
    Saved(i64, i64),
    /// The day in the field `Date`.
    Sent(i64, i64),
    /// Arrival within so many seconds.
    Younger(u64),
    Larger(u64),
    Smaller(u64),
    /// A field whose value holds this; any value if empty.
    Header(Vec<u8>, Vec<u8>),
    Body(Vec<u8>),
    Text(Vec<u8>),
    /// Changed by this transaction or later.
    Modseq(u64),
    /// As FETCH tells the id of the message (RFC 8474, section 7).
    EmailId(Vec<u8>),
    ThreadId(Vec<u8>),
}

/// Result options of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of RFC 4731")]
pub struct Returns {
    pub min: bool,
    pub max: bool,
    pub all: bool,
    pub count: bool,
    /// It is kept, as `$` (RFC 5182).
    pub save: bool,
    /// Only those between these places, counted from 1 (RFC 5267, section 4.4).
    pub partial: Option<(u32, u32)>,
    /// UPDATE: later changes of the result are sent too (RFC 5267, section 4.3).
    pub update: bool,
}

/// A search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// None: as SEARCH answers that has no RETURN.
    pub returns: Option<Returns>,
    /// A charset is named, as a client that has enabled UTF-8 must not (RFC 6855, section 3).
    pub has_charset: bool,
    /// The strings are in an unknown charset. Those in a known one are UTF-8 here.
    pub is_foreign: bool,
    /// Criteria that messages have to match.
    pub key: Key,
}

/// By what SORT puts messages in order (RFC 5256).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of the standard")]
pub enum By {
    Arrival,
    Cc,
    Date,
    From,
    Size,
    Subject,
    To,
}

/// One criterion of SORT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Criterion {
    /// By what.
    pub by: By,
    /// The last first.
    pub reverse: bool,
}

/// How THREAD finds conversations (RFC 5256).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of the standard")]
pub enum Threading {
    OrderedSubject,
    References,
}

/// Criteria of one SORT.
const CRITERIA_MAX: usize = 16;

const CRITERIA: [(&str, By); 7] = [
    ("ARRIVAL", By::Arrival),
    ("CC", By::Cc),
    ("DATE", By::Date),
    ("FROM", By::From),
    ("SIZE", By::Size),
    ("SUBJECT", By::Subject),
    ("TO", By::To),
];

/// Reads the arguments of SORT.
pub(super) fn read_sort(cursor: &mut Cursor<'_>) -> Result<(Vec<Criterion>, Search), Wrong> {
    let returns = returns(cursor)?;
    let criteria = cursor.list(false, |cursor| {
        let mut word = cursor.atom()?;
        let reverse = word == "REVERSE";
        if reverse {
            cursor.blank()?;
            word = cursor.atom()?;
        }
        let by = CRITERIA.iter().find(|(name, _)| *name == word).map(|(_, by)| *by);
        Ok(Criterion { by: by.ok_or("Unknown criterion")?, reverse })
    })?;
    if criteria.len() > CRITERIA_MAX {
        return Err("Too many criteria");
    }
    cursor.blank()?;
    Ok((criteria, Search { returns, ..with_charset(cursor)? }))
}

/// `RETURN (...)`, if it stands here.
fn returns(cursor: &mut Cursor<'_>) -> Result<Option<Returns>, Wrong> {
    if !cursor.eat_word("RETURN") {
        return Ok(None);
    }
    cursor.blank()?;
    let returns = read_returns(cursor)?;
    cursor.blank()?;
    Ok(Some(returns))
}

/// Reads the arguments of THREAD.
pub(super) fn read_thread(cursor: &mut Cursor<'_>) -> Result<(Threading, Search), Wrong> {
    let threading = match cursor.atom()?.as_str() {
        "ORDEREDSUBJECT" => Threading::OrderedSubject,
        "REFERENCES" => Threading::References,
        _ => return Err("Unknown algorithm"),
    };
    cursor.blank()?;
    Ok((threading, with_charset(cursor)?))
}

fn with_charset(cursor: &mut Cursor<'_>) -> Result<Search, Wrong> {
    let charset = charset(cursor)?;
    in_charset(cursor, None, charset)
}

/// The charset of the strings; `None` if it is unknown.
fn charset(cursor: &mut Cursor<'_>) -> Result<Option<Encoding>, Wrong> {
    let charset = cursor.astring()?;
    cursor.blank()?;
    Ok(Encoding::find(&charset))
}

/// Reads the keys, whose strings are in a charset.
fn in_charset(cursor: &mut Cursor<'_>, returns: Option<Returns>, charset: Option<Encoding>) -> Result<Search, Wrong> {
    let mut key = keys(cursor)?;
    if let Some(charset) = charset {
        each_text(&mut key, &mut |text| recode(text, charset))?;
    }
    Ok(Search { returns, has_charset: true, is_foreign: charset.is_none(), key })
}

/// Calls `change` with the texts of a key.
fn each_text(key: &mut Key, change: &mut dyn FnMut(&mut Vec<u8>) -> Result<(), Wrong>) -> Result<(), Wrong> {
    match key {
        Key::And(keys) => keys.iter_mut().try_for_each(|key| each_text(key, change)),
        Key::Or(both) => each_text(&mut both.0, change).and_then(|()| each_text(&mut both.1, change)),
        Key::Not(key) => each_text(key, change),
        Key::Body(text) | Key::Text(text) | Key::Header(_, text) => change(text),
        _ => Ok(()),
    }
}

/// Makes UTF-8 of a text. A text that is called ASCII may be UTF-8.
fn recode(text: &mut Vec<u8>, charset: Encoding) -> Result<(), Wrong> {
    let (decoded, is_faulty) = charset.decode(text);
    if is_faulty {
        return Err("A string is not in its charset");
    }
    *text = decoded.into_owned().into_bytes();
    Ok(())
}

/// A text without a charset is ASCII; UTF-8 from clients that do not say so (RFC 6855, section 3: no other octets).
fn as_utf8(text: &[u8]) -> Result<(), Wrong> {
    core::str::from_utf8(text).map(|_| ()).map_err(|_| "A string is not UTF-8")
}

pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Search, Wrong> {
    let returns = returns(cursor)?;
    if cursor.eat_word("CHARSET") {
        cursor.blank()?;
        let charset = charset(cursor)?;
        return in_charset(cursor, returns, charset);
    }
    let mut key = keys(cursor)?;
    each_text(&mut key, &mut |text| as_utf8(text))?;
    Ok(Search { returns, has_charset: false, is_foreign: false, key })
}

fn keys(cursor: &mut Cursor<'_>) -> Result<Key, Wrong> {
    let mut count = 0;
    let mut keys = Vec::new();
    loop {
        keys.push(key(cursor, DEPTH_MAX, &mut count)?);
        if cursor.is_at_end() {
            break;
        }
        cursor.blank()?;
    }
    Ok(Key::And(keys))
}

fn read_returns(cursor: &mut Cursor<'_>) -> Result<Returns, Wrong> {
    let mut returns = Returns::default();
    cursor.list(true, |cursor| {
        match cursor.atom()?.as_str() {
            "MIN" => returns.min = true,
            "MAX" => returns.max = true,
            "ALL" => returns.all = true,
            "COUNT" => returns.count = true,
            "SAVE" => returns.save = true,
            "PARTIAL" if returns.partial.is_none() => returns.partial = Some(places(cursor)?),
            "UPDATE" => returns.update = true,
            // It will be asked again: nothing is kept for that.
            "CONTEXT" => {}
            _ => return Err("Unknown RETURN option"),
        }
        Ok(())
    })?;
    let Returns { min, max, all, count, save, partial, .. } = returns;
    if all && partial.is_some() {
        return Err("ALL does not go with PARTIAL");
    }
    returns.all |= !(min || max || count || save || partial.is_some());
    Ok(returns)
}

/// `PARTIAL 1:500`: from the lower one on.
fn places(cursor: &mut Cursor<'_>) -> Result<(u32, u32), Wrong> {
    let place = |cursor: &mut Cursor<'_>| {
        let place = u32::try_from(cursor.number()?).ok().filter(|&place| place > 0);
        place.ok_or("Not a place")
    };
    cursor.blank()?;
    let one = place(cursor)?;
    cursor.expect(b':', "Not a range")?;
    let other = place(cursor)?;
    Ok((one.min(other), one.max(other)))
}

fn key(cursor: &mut Cursor<'_>, depth: usize, count: &mut usize) -> Result<Key, Wrong> {
    *count += 1;
    let depth = depth.checked_sub(1).filter(|_| *count <= KEYS_MAX).ok_or("Too many search keys")?;
    match cursor.peek() {
        Some(b'(') => return Ok(Key::And(cursor.list(false, |cursor| key(cursor, depth, count))?)),
        Some(b'0'..=b'9' | b'*' | b'$') => return Set::read(cursor).map(Key::Messages),
        _ => {}
    }
    let word = cursor.atom()?;
    if let Some(key) = flag(&word) {
        return Ok(key);
    }
    if word == "ALL" {
        return Ok(Key::And(Vec::new()));
    }
    // Every mailbox keeps these dates (RFC 8514, section 4.3).
    if word == "SAVEDATESUPPORTED" {
        return Ok(Key::And(Vec::new()));
    }
    cursor.blank()?;
    let string = |cursor: &mut Cursor<'_>| cursor.astring();
    Ok(match word.as_str() {
        "NOT" => not(key(cursor, depth, count)?),
        "OR" => {
            let first = key(cursor, depth, count)?;
            cursor.blank()?;
            Key::Or(Box::new((first, key(cursor, depth, count)?)))
        }
        "UID" => Key::Uids(Set::read(cursor)?),
        "KEYWORD" => keyword(cursor)?,
        "UNKEYWORD" => not(keyword(cursor)?),
        "BEFORE" => Key::Arrived(i64::MIN, day(cursor)?),
        "SINCE" => Key::Arrived(day(cursor)?, i64::MAX),
        "ON" => one_day(day(cursor)?, Key::Arrived),
        "SAVEDBEFORE" => Key::Saved(i64::MIN, day(cursor)?),
        "SAVEDSINCE" => Key::Saved(day(cursor)?, i64::MAX),
        "SAVEDON" => one_day(day(cursor)?, Key::Saved),
        "SENTBEFORE" => Key::Sent(i64::MIN, day(cursor)?),
        "SENTSINCE" => Key::Sent(day(cursor)?, i64::MAX),
        "SENTON" => one_day(day(cursor)?, Key::Sent),
        "YOUNGER" => Key::Younger(cursor.positive()?),
        "OLDER" => not(Key::Younger(cursor.positive()?.saturating_sub(1))),
        "LARGER" => Key::Larger(cursor.number()?),
        "SMALLER" => Key::Smaller(cursor.number()?),
        "BODY" => Key::Body(string(cursor)?),
        "TEXT" => Key::Text(string(cursor)?),
        "HEADER" => {
            let name = string(cursor)?;
            cursor.blank()?;
            Key::Header(name, string(cursor)?)
        }
        "FROM" | "TO" | "CC" | "BCC" | "SUBJECT" => Key::Header(word.into_bytes(), string(cursor)?),
        "MODSEQ" => modseq(cursor)?,
        "EMAILID" => Key::EmailId(string(cursor)?),
        "THREADID" => Key::ThreadId(string(cursor)?),
        _ => return Err("Unknown search key"),
    })
}

/// A key that is a word alone.
fn flag(word: &str) -> Option<Key> {
    let (word, wanted) = match word.strip_prefix("UN") {
        Some(rest) if rest != "KEYWORD" => (rest, false),
        _ => (word, true),
    };
    let key = match word {
        "NEW" if wanted => Key::And(Vec::from([Key::Recent, not(Key::Flag(1))])),
        "OLD" if wanted => not(Key::Recent),
        "RECENT" if wanted => Key::Recent,
        "KEYWORD" => return None,
        _ => {
            let is_it = |flag: &&str| flag.get(1..).is_some_and(|name| name.eq_ignore_ascii_case(word));
            Key::Flag(1 << Flags::SYSTEM.iter().position(is_it)?)
        }
    };
    Some(if wanted { key } else { not(key) })
}

fn not(key: Key) -> Key {
    Key::Not(Box::new(key))
}

fn one_day(day: i64, key: fn(i64, i64) -> Key) -> Key {
    key(day, day.saturating_add(1))
}

fn day(cursor: &mut Cursor<'_>) -> Result<i64, Wrong> {
    date::parse_date(&cursor.astring()?).ok_or("Not a date")
}

fn keyword(cursor: &mut Cursor<'_>) -> Result<Key, Wrong> {
    let name = core::str::from_utf8(cursor.while_(is_atom)).map_err(|_| "Not a flag")?;
    if name.is_empty() { Err("Not a flag") } else { Ok(Key::Keyword(name.into())) }
}

/// `MODSEQ "/flags/\\draft" all 620162338`: what the first two narrow down is not kept apart here.
fn modseq(cursor: &mut Cursor<'_>) -> Result<Key, Wrong> {
    if cursor.peek() == Some(b'"') {
        cursor.astring()?;
        cursor.blank()?;
        if !matches!(cursor.atom()?.as_str(), "ALL" | "PRIV" | "SHARED") {
            return Err("Unknown entry type");
        }
        cursor.blank()?;
    }
    cursor.number().map(Key::Modseq)
}
