//! Numbers, plurals and dates as languages write them: data of CLDR, and the few rules that six languages need.

use alloc::format;
use alloc::string::String;
use core::fmt::Write as _;

use text::date::{Civil, civil_of};

use super::{fill, pieces};

/// How a language counts and writes numbers.
#[derive(Debug)]
pub(crate) struct Numbers {
    /// The form of the plural for a number.
    pub form: fn(u64) -> usize,
    /// The digit zero, which nine others follow.
    pub zero: char,
    /// Between thousands, in numbers from `grouped_from` on.
    pub group: &'static str,
    pub grouped_from: u64,
    /// Before tenths.
    pub point: &'static str,
    /// Bytes and thousands, millions and thousands of millions of them.
    pub units: [&'static str; 4],
}

/// How a language writes dates. `{0}` is the day, `{1}` the month, `{2}` the year, `{3}` the time, `{4}` the zone, `{5}` the day of the week.
#[derive(Debug)]
pub(crate) struct Dates {
    pub months: [&'static str; 12],
    /// From Thursday on, as 1970 began.
    pub weekdays: [&'static str; 7],
    pub day: &'static str,
    pub year: &'static str,
    pub whole: &'static str,
}

/// The forms of a text with a number, `{0}`, in the order of [`Numbers::form`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plural(pub &'static [&'static str]);

/// English and German: one, other.
pub(super) fn one_other(number: u64) -> usize {
    usize::from(number != 1)
}

/// Spanish: one, many, other.
#[cfg(feature = "languages")]
pub(super) fn spanish(number: u64) -> usize {
    match number {
        1 => 0,
        _ => million_or_other(number),
    }
}

/// French, where nothing is one as well: one, many, other.
#[cfg(feature = "languages")]
pub(super) fn french(number: u64) -> usize {
    match number {
        0 | 1 => 0,
        _ => million_or_other(number),
    }
}

/// "un million *de* messages"
#[cfg(feature = "languages")]
fn million_or_other(number: u64) -> usize {
    if number != 0 && number.is_multiple_of(1_000_000) { 1 } else { 2 }
}

/// Chinese: other.
#[cfg(feature = "languages")]
pub(super) fn chinese(_: u64) -> usize {
    0
}

/// Arabic: zero, one, two, few, many, other.
#[cfg(feature = "languages")]
pub(super) fn arabic(number: u64) -> usize {
    match (number, number % 100) {
        (0..=2, _) => usize::try_from(number).unwrap_or(0),
        (_, 3..=10) => 3,
        (_, 11..=99) => 4,
        _ => 5,
    }
}

impl Numbers {
    /// A number with its groups.
    pub fn written(&self, number: u64) -> String {
        let digits = format!("{number}");
        let mut written = String::with_capacity(digits.len().saturating_mul(2));
        for (at, digit) in digits.chars().enumerate() {
            let is_whole = digits.len().saturating_sub(at).is_multiple_of(3);
            if at > 0 && is_whole && number >= self.grouped_from {
                written.push_str(self.group);
            }
            written.push(digit);
        }
        self.in_digits(&written)
    }

    /// A text with a number.
    pub fn counted(&self, plural: Plural, number: u64) -> String {
        fill(self.form_of(plural, number), &[&self.written(number)])
    }

    /// The form of a text for a number.
    pub fn form_of(&self, plural: Plural, number: u64) -> &'static str {
        plural.0.get((self.form)(number)).or(plural.0.last()).copied().unwrap_or_default()
    }

    /// A size for people.
    pub fn size(&self, bytes: u64) -> String {
        let [byte, thousand, million, milliard] = self.units;
        let tenths = |whole: u64, tenths: u64| format!("{}{}{}", self.written(whole), self.point, tenths % 10);
        let (unit, number) = match bytes {
            0..1_000 => (byte, self.written(bytes)),
            1_000..1_000_000 => (thousand, self.written(bytes / 1_000)),
            1_000_000..1_000_000_000 => (million, tenths(bytes / 1_000_000, bytes / 100_000)),
            _ => (milliard, tenths(bytes / 1_000_000_000, bytes / 100_000_000)),
        };
        fill(unit, &[&self.in_digits(&number)])
    }

    /// A text with the digits of the language.
    fn in_digits(&self, text: &str) -> String {
        if self.zero == '0' {
            return text.into();
        }
        let digit = |character: char| {
            let value = character.to_digit(10)?;
            char::from_u32(u32::from(self.zero).saturating_add(value))
        };
        text.chars().map(|character| digit(character).unwrap_or(character)).collect()
    }
}

impl Dates {
    /// A day, without its year if that is the one of now.
    pub fn day(&self, numbers: &Numbers, seconds: i64, has_year: bool) -> String {
        self.filled(if has_year { self.year } else { self.day }, numbers, seconds, 0)
    }

    /// Hour and minute.
    pub fn clock(&self, numbers: &Numbers, seconds: i64) -> String {
        let [hour, minute, _] = civil_of(seconds).clock;
        numbers.in_digits(&format!("{hour:02}:{minute:02}"))
    }

    /// A date as a whole, in a zone east of Greenwich.
    pub fn whole(&self, numbers: &Numbers, seconds: i64, zone_minutes: i32) -> String {
        self.filled(self.whole, numbers, seconds, zone_minutes)
    }

    fn filled(&self, pattern: &'static str, numbers: &Numbers, seconds: i64, zone_minutes: i32) -> String {
        let Civil { year, month, day, clock: [hour, minute, second], weekday } = civil_of(seconds);
        let name = |names: &[&'static str], at: usize| names.get(at).copied().unwrap_or_default();
        let (sign, zone) = (if zone_minutes < 0 { '-' } else { '+' }, zone_minutes.unsigned_abs());
        let mut filled = String::with_capacity(pattern.len().saturating_add(32));
        pieces(pattern, |piece| match piece {
            Ok(text) => filled.push_str(text),
            Err(place) => {
                let _ = match place {
                    0 => write!(filled, "{day}"),
                    1 => filled.write_str(name(&self.months, usize::try_from(month).unwrap_or(1).saturating_sub(1))),
                    2 => write!(filled, "{year:04}"),
                    3 => write!(filled, "{hour:02}:{minute:02}:{second:02}"),
                    4 => write!(filled, "{sign}{:02}{:02}", zone / 60, zone % 60),
                    _ => filled.write_str(name(&self.weekdays, weekday)),
                };
            }
        });
        numbers.in_digits(&filled)
    }
}
