//! Lines of data files, and the special entries that are the same in all data sets (rbldnsd(8), "Special Entries").

use super::value::{Substitutions, trim_end, trim_start};
use super::{names, value};
use proto::dns::{Name, Soa};

/// The time to live where nothing is said, in seconds.
pub const TTL_DEFAULT: u32 = 2_100;

/// The longest line that is read; a longer one is cut off there.
const LINE_BYTES_MAX: usize = 65_536;

/// How many name servers a zone has at most.
const SERVERS_MAX: usize = 32;

/// A `$SOA` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoaLine {
    /// In seconds.
    pub ttl: u32,
    /// The SOA record. A serial number of 0 stands for the time of the youngest file.
    pub soa: Soa,
}

/// A `$NS` line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServersLine {
    /// In seconds.
    pub ttl: u32,
    /// The name servers.
    pub servers: Vec<Name>,
}

/// Special entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// The first `$SOA`.
    pub soa: Option<SoaLine>,
    /// The first `$NS`.
    pub servers: Option<ServersLine>,
    /// The last `$TTL`.
    pub ttl: Option<u32>,
    /// `$0` to `$9` and `$=`.
    pub substitutions: Substitutions,
    /// `$TIMESTAMP`: seconds since 1970 until which the data counts.
    pub expires: Option<u64>,
    /// `$TIMESTAMP`: seconds since 1970 when the data was made.
    pub made: Option<u64>,
    /// `$MAXRANGE4`: how many addresses a network may have.
    pub range_max: Option<u64>,
}

impl Head {
    /// The time to live of records, in seconds.
    pub fn ttl(&self) -> u32 {
        self.ttl.unwrap_or(TTL_DEFAULT)
    }

    /// Reads a special entry, without its dollar sign. Returns `false` if it is unknown or malformed.
    pub fn read(&mut self, entry: &[u8]) -> bool {
        let keyword_len = entry.iter().take_while(|byte| !matches!(byte, b' ' | b'\t')).count();
        let (keyword, rest) = entry.split_at(keyword_len);
        let rest = trim_start(rest);
        let read = match &keyword.to_ascii_uppercase()[..] {
            b"SOA" => soa(rest).map(|mut line| {
                // Without a TTL the current one counts.
                line.ttl = if line.ttl == 0 { self.ttl() } else { line.ttl };
                set_first(&mut self.soa, line);
            }),
            b"NS" => servers(rest).map(|mut line| {
                line.ttl = if line.ttl == 0 { self.ttl() } else { line.ttl };
                if !line.servers.is_empty() {
                    set_first(&mut self.servers, line);
                }
            }),
            b"TTL" => time(rest).map(|ttl| self.ttl = (ttl > 0).then_some(ttl)),
            b"TIMESTAMP" => self.timestamp(rest),
            b"MAXRANGE4" => range_max(rest).map(|max| {
                self.range_max = Some(self.range_max.unwrap_or(u64::MAX).min(max));
            }),
            b"=" if !rest.is_empty() => {
                set_first(&mut self.substitutions.base, rest.to_vec());
                Some(())
            }
            [digit @ b'0'..=b'9'] if !rest.is_empty() => {
                set_first(&mut self.substitutions.variables[usize::from(digit - b'0')], rest.to_vec());
                Some(())
            }
            _ => None,
        };
        read.is_some()
    }

    fn timestamp(&mut self, text: &[u8]) -> Option<()> {
        let mut words = words(text);
        let made = stamp(words.next()?)?;
        let expires = match words.next() {
            None => None,
            Some(word) => match word.strip_prefix(b"+") {
                Some(offset) => made.map(|made| Some(made + u64::from(time(offset)?)))?,
                None => stamp(word)?,
            },
        };
        if words.next().is_some() {
            return None;
        }
        self.made = made.or(self.made);
        if let Some(expires) = expires {
            self.expires = Some(self.expires.map_or(expires, |other| other.min(expires)));
        }
        Some(())
    }
}

fn set_first<T>(slot: &mut Option<T>, value: T) {
    slot.get_or_insert(value);
}

fn soa(text: &[u8]) -> Option<SoaLine> {
    let words: Vec<&[u8]> = words(text).collect();
    let &[ttl, origin, person, serial, refresh, retry, expire, minimum] = &words[..] else {
        return None;
    };
    let soa = Soa {
        origin: name(origin)?,
        person: name(person)?,
        serial: digits(serial)?,
        refresh: time(refresh)?,
        retry: time(retry)?,
        expire: time(expire)?,
        minimum: time(minimum)?,
    };
    Some(SoaLine { ttl: time(ttl)?, soa })
}

fn servers(text: &[u8]) -> Option<ServersLine> {
    let mut words = words(text);
    let ttl = time(words.next()?)?;
    let mut line = ServersLine { ttl, servers: Vec::new() };
    let mut any = false;
    for word in words {
        any = true;
        if word.starts_with(b"-") {
            continue;
        }
        let server = name(word)?;
        if !line.servers.contains(&server) && line.servers.len() < SERVERS_MAX {
            line.servers.push(server);
        }
    }
    any.then_some(line)
}

fn name(word: &[u8]) -> Option<Name> {
    let mut wire = names::read_keeping_case(word)?;
    wire.push(0);
    Name::from_wire(&wire).ok()
}

fn digits(word: &[u8]) -> Option<u32> {
    let all = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    all.then(|| core::str::from_utf8(word).ok()?.parse().ok())?
}

/// A time in seconds, or with a unit behind it: s, m, h, d or w.
pub fn time(word: &[u8]) -> Option<u32> {
    let (last, front) = word.split_last()?;
    let (number, unit) = match last.to_ascii_lowercase() {
        b's' => (front, 1),
        b'm' => (front, 60),
        b'h' => (front, 3_600),
        b'd' => (front, 86_400),
        b'w' => (front, 604_800),
        _ => (word, 1),
    };
    digits(number)?.checked_mul(unit)
}

fn range_max(text: &[u8]) -> Option<u64> {
    match text.strip_prefix(b"/") {
        Some(bits) => {
            let bits = value::number(bits).filter(|bits| (1..=32).contains(bits))?;
            Some(1 << (32 - bits))
        }
        None => digits(text).filter(|&count| count > 0).map(u64::from),
    }
}

/// `yyyy:mm:dd[:hh[:mi[:ss]]]`, its colons or dashes left out or not, in seconds since 1970 (UTC). Nothing in place of a
/// time is `0` or `-`: then there is `Some(None)`.
fn stamp(word: &[u8]) -> Option<Option<u64>> {
    if matches!(word, b"0" | b"-") {
        return Some(None);
    }
    let mut fields = [0_u32; 6];
    let mut rest = word;
    let mut count = 0;
    while count < 6 && !rest.is_empty() {
        let width = if count == 0 { 4 } else { 2 };
        let field = rest.get(..width)?;
        fields[count] = digits(field)?;
        rest = &rest[width..];
        count += 1;
        if let [b':' | b'-', behind @ ..] = rest {
            rest = behind;
        }
    }
    let [year, month, day, hour, minute, second] = fields;
    let plausible = count >= 3
        && rest.is_empty()
        && (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    plausible.then(|| {
        let seconds = days_since_1970(year, month, day) * 86_400 + u64::from(hour * 3_600 + minute * 60 + second);
        Some(seconds)
    })
}

/// Days of the Gregorian calendar, years counted from March so that the leap day is the last.
fn days_since_1970(year: u32, month: u32, day: u32) -> u64 {
    let year = u64::from(if month <= 2 { year - 1 } else { year });
    let month = u64::from((month + 9) % 12);
    let in_year = (153 * month + 2) / 5 + u64::from(day) - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + in_year - 719_468
}

/// Words between blanks.
pub fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty())
}

/// Kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// An empty line, or a comment.
    Empty,
    /// A special entry, its dollar sign left out.
    Special(&'a [u8]),
    /// An entry of the data set, blanks around it removed.
    Entry(&'a [u8]),
}

/// Classifies a line, without its end.
pub fn line(bytes: &[u8]) -> Line<'_> {
    let line = trim_end(trim_start(bytes));
    match line {
        [] => Line::Empty,
        [b'$', rest @ ..] | [b'#' | b';' | b':', b'$', rest @ ..] => Line::Special(rest),
        [b'#' | b';', ..] => Line::Empty,
        _ => Line::Entry(line),
    }
}

/// Splits its input into lines. The last one counts even without an end.
#[derive(Debug, Default)]
pub struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Whether the next byte is the first of a line.
    pub const fn is_at_start(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes bytes up to the end of a line, and calls `each` with the line; all bytes without a line end. Returns the
    /// rest.
    pub fn feed<'i>(&mut self, input: &'i [u8], mut each: impl FnMut(&[u8])) -> &'i [u8] {
        let Some(end) = input.iter().position(|&byte| byte == b'\n') else {
            self.keep(input);
            return &[];
        };
        let (line, behind) = (&input[..end], &input[end + 1..]);
        if self.rest.is_empty() {
            each(&line[..line.len().min(LINE_BYTES_MAX)]);
        } else {
            self.keep(line);
            each(&self.rest);
            self.rest.clear();
        }
        behind
    }

    /// Ends the file: calls `each` with the last line.
    pub fn end(&mut self, mut each: impl FnMut(&[u8])) {
        if !self.rest.is_empty() {
            each(&self.rest);
            self.rest.clear();
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES_MAX.saturating_sub(self.rest.len());
        self.rest.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}
