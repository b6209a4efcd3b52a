//! Dates in header fields, and how far they lie apart.

use super::Context;
use crate::spam::header::without_line_feed;
use crate::spam::message::Message;

/// Dates of a mail.
#[derive(Debug, Clone, Default)]
pub struct Dates {
    /// Time in `Date`, in seconds since 1970.
    pub date: Option<i64>,
    /// Times in `Received` fields, the newest first.
    pub received: Vec<i64>,
    /// When a program fetched it.
    pub fetched: Option<i64>,
    /// How far `Date` is from the nearest of them; 0 where one is not known.
    pub difference: i64,
}

impl Context<'_> {
    /// The mail's dates.
    pub(crate) fn dates(&self) -> &Dates {
        self.dates.get_or_init(|| {
            let mut dates = Dates { date: date_field(self), ..Dates::default() };
            received(self, &mut dates);
            dates.difference = difference(&dates);
            dates
        })
    }

    /// When the mail was received, most likely: the median of what is known.
    pub(crate) fn date_received(&self) -> i64 {
        let dates = self.dates();
        let mut all: Vec<i64> = dates.date.into_iter().collect();
        all.extend(dates.received.first());
        all.extend(dates.fetched);
        if let (Some(date), false) = (dates.date, dates.received.is_empty()) {
            all.push(date - dates.difference);
        }
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.get(all.len().saturating_sub(1) / 2).copied().unwrap_or(0)
    }
}

/// When a mail was received, in seconds since 1970, by what its header says: the newest `Received` field, the line in front of
/// the mail in a mailbox, older fields, `Resent-Date` and `Date`. None where none has a date.
pub fn received_at(mail: &Message) -> Option<i64> {
    let values = |name: &'static [u8]| mail.fields().iter().filter(|field| field.is(name)).map(|field| &*field.value);
    let mut fields: Vec<&[u8]> = values(b"Received").collect();
    let mut local = Vec::new();
    if fields.first().is_some_and(|field| is_local(field)) {
        local.push(fields.remove(0));
    }
    if fields.first().is_some_and(|field| is_fetched(field)) {
        local.push(fields.remove(0));
    } else if let Some(field) = local.pop() {
        fields.insert(0, field);
    }
    let newest = fields.first().copied();
    let separator = mail.separator().and_then(|line| line.trim_ascii_start().strip_prefix(b"From "));
    let older = fields.into_iter().skip(1);
    let others = values(b"Resent-Date").take(1).chain(values(b"Date").take(1));
    let all = newest.into_iter().chain(local).chain(separator).chain(older).chain(others);
    all.filter_map(parse).find(|&time| time != 0)
}

fn date_field(context: &Context<'_>) -> Option<i64> {
    // A field that is there counts, whether it can be read or not.
    for name in ["Resent-Date", "Date"] {
        for value in context.fields.written(name) {
            if let Some(time) = parse(without_line_feed(&value.value)) {
                return Some(time);
            }
        }
    }
    None
}

fn received(context: &Context<'_>, dates: &mut Dates) {
    let values = context.fields.values("Received");
    let mut fields: Vec<&[u8]> = values.iter().map(|value| without_line_feed(value)).collect();
    fields.retain(|field| !field.trim_ascii().is_empty());
    let mut local = Vec::new();
    if fields.first().is_some_and(|field| is_local(field)) {
        local.push(fields.remove(0));
    }
    if fields.first().is_some_and(|field| is_fetched(field)) {
        local.push(fields.remove(0));
    } else if let Some(field) = local.pop() {
        fields.insert(0, field);
    }
    let times = |fields: &[&[u8]]| fields.iter().filter_map(|field| parse(date_in(field)?)).collect::<Vec<_>>();
    dates.fetched = times(&local).into_iter().filter(|&time| context.now >= time).max();
    dates.received = times(&fields);
}

/// Received from this host itself.
fn is_local(field: &[u8]) -> bool {
    let text = String::from_utf8_lossy(field);
    let from_here = text.match_indices("from ").any(|(at, _)| {
        let rest = &text[at + 5..];
        rest.starts_with("localhost ") || rest.split(' ').skip(1).take(2).any(|word| word.contains("127.0.0.1"))
    });
    let by_program = text.find("qmail ").is_some_and(|at| text[at..].contains(" invoked by uid "));
    from_here || by_program
}

fn is_fetched(field: &[u8]) -> bool {
    let text = String::from_utf8_lossy(field);
    text.find("by localhost with ").is_some_and(|at| text[at..].contains(" (fetchmail-"))
}

/// The date in a field of the path: ` 22 Aug 2002 12:34:53 +0100`.
pub(crate) fn date_in(field: &[u8]) -> Option<&[u8]> {
    let is_blank = |at: usize| field.get(at).is_some_and(u8::is_ascii_whitespace);
    (0..field.len()).filter(|&at| is_blank(at)).find_map(|at| {
        let digits =
            |from: usize| field[from.min(field.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        // One byte of any kind may stand before the day.
        let day_at = if digits(at + 1) > 0 { at + 1 } else { at + 2 };
        let day = digits(day_at);
        let month = day_at + day + 1;
        let is_month =
            day > 0 && is_blank(month - 1) && (month..month + 3).all(|at| field.get(at).is_some() && !is_blank(at));
        if !is_month || !is_blank(month + 3) {
            return None;
        }
        let year = month + 4;
        let time = year + digits(year) + 1;
        if digits(year) == 0 || !is_blank(time - 1) {
            return None;
        }
        let mut end = time;
        for part in 0..3 {
            let count = digits(end);
            if count == 0 || (part < 2 && field.get(end + count) != Some(&b':')) {
                return None;
            }
            end += count + usize::from(part < 2);
        }
        let zone = end + 1;
        let length = field.get(zone..)?.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
        (is_blank(end) && length > 0).then(|| &field[at..zone + length])
    })
}

fn difference(dates: &Dates) -> i64 {
    let Some(date) = dates.date else { return 0 };
    let mut all: Vec<i64> = dates.received.iter().map(|time| date - time).collect();
    // The oldest field has the date itself where the sender's own server wrote both.
    if all.len() > 1 && all.last() == Some(&0) {
        all.pop();
    }
    all.into_iter().min_by_key(|difference| difference.abs()).unwrap_or(0)
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// Names of zones, in minutes.
const ZONES: [(&str, i64); 49] = [
    ("UT", 0),
    ("UTC", 0),
    ("NDT", -150),
    ("AST", -240),
    ("ADT", -180),
    ("NST", -210),
    ("EST", -300),
    ("EDT", -240),
    ("CST", -360),
    ("CDT", -300),
    ("MST", -420),
    ("MDT", -360),
    ("PST", -480),
    ("PDT", -420),
    ("HST", -600),
    ("AKST", -540),
    ("AKDT", -480),
    ("HADT", -540),
    ("HAST", -600),
    ("GMT", 0),
    ("BST", 60),
    ("IST", 60),
    ("WET", 0),
    ("WEST", 60),
    ("CET", 60),
    ("CEST", 120),
    ("EET", 120),
    ("EEST", 180),
    ("MSK", 180),
    ("MSD", 240),
    ("MET", 60),
    ("MEZ", 60),
    ("MEST", 120),
    ("MESZ", 120),
    ("BRST", -120),
    ("BRT", -180),
    ("AEST", 600),
    ("AEDT", 660),
    ("ACST", 570),
    ("ACDT", 630),
    ("AWST", 480),
    ("NZST", 720),
    ("NZDT", 780),
    ("JST", 540),
    ("KST", 540),
    ("HKT", 480),
    ("SGT", 480),
    ("PHT", 480),
    ("IDT", 180),
];

/// A date as mails write it, in seconds since 1970. What is out of range is moved into it; years lie between 1970 and 2037.
pub(crate) fn parse(text: &[u8]) -> Option<i64> {
    let text = String::from_utf8_lossy(text);
    let text = text.replace(',', " ");
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (mut day, mut month, mut year, used) = day_of(&words)?;
    let free = words.iter().enumerate().filter(|(at, _)| !used.contains(at));
    let clock = free.clone().find_map(|(at, word)| clock(word).map(|clock| (at, clock)));
    let (clock_at, [hour, minute, second]) = clock.map_or((None, [0; 3]), |(at, clock)| (Some(at), clock));
    let rest = free.filter(|(at, _)| Some(*at) != clock_at);
    let zone = zone(rest.map(|(_, word)| *word));
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_max = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    };
    if day > days_max {
        (day, month) = (1, month + 1);
        if month > 12 {
            (month, year) = (1, year + 1);
        }
    }
    let year = year.clamp(1970, 2037);
    if day < 1 {
        return None;
    }
    let seconds = hour.min(23) * 3600 + minute.min(59) * 60 + second.min(59);
    let time = days(year, month, day) * 86_400 + seconds - zone * 60;
    Some(if zone > 0 { time.max(0) } else { time })
}

/// Day, month and year, and the words that they are in.
fn day_of(words: &[&str]) -> Option<(i64, i64, i64, Vec<usize>)> {
    let month =
        |word: &str| (1..).zip(MONTHS).find(|(_, name)| word.eq_ignore_ascii_case(name)).map(|(month, _)| month);
    let number = |word: &str, lengths: std::ops::RangeInclusive<usize>| {
        let fits = lengths.contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
        if fits { word.parse::<i64>().ok() } else { None }
    };
    let plain = |year: std::ops::RangeInclusive<usize>| {
        words.windows(3).enumerate().find_map(|(at, three)| {
            let [day, name, written] = three else { return None };
            let year = number(written, year.clone())?;
            let year = match written.len() {
                2 if year < 50 => year + 2000,
                4 => year,
                _ => year + 1900,
            };
            Some((number(day, 1..=9)?, month(name)?, year, (at..at + 3).collect()))
        })
    };
    // Unix's own order.
    let turned = || {
        words.windows(4).enumerate().find_map(|(at, four)| {
            let [name, day, time, year] = four else { return None };
            clock(time).filter(|_| time.matches(':').count() == 2)?;
            Some((number(day, 1..=9)?, month(name)?, number(year, 4..=4)?, vec![at, at + 1, at + 2, at + 3]))
        })
    };
    plain(4..=4).or_else(turned).or_else(|| plain(2..=3))
}

fn clock(word: &str) -> Option<[i64; 3]> {
    let parts: Vec<&str> = word.split(':').collect();
    let two = |part: &str| if part.len() == 2 { part.parse::<i64>().ok().filter(|number| *number >= 0) } else { None };
    let hour = |part: &str| if part.len() == 1 { part.parse::<i64>().ok() } else { two(part) };
    match parts[..] {
        [hours, minutes] => Some([hour(hours)?, two(minutes)?, 0]),
        [hours, minutes, seconds] => Some([hour(hours)?, two(minutes)?, two(seconds)?]),
        _ => None,
    }
}

/// Minutes: the first offset in digits, or else the first word that looks like the name of a zone, if it is one.
fn zone<'w>(words: impl Iterator<Item = &'w str> + Clone) -> i64 {
    let offset = words.clone().find_map(|word| {
        let sign = match word.as_bytes().first()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let digits =
            word.get(1..).filter(|digits| digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        let number: i64 = digits.parse().ok()?;
        Some(sign * (number / 100 * 60 + number % 100))
    });
    if let Some(offset) = offset {
        return offset;
    }
    let letters = |word: &'w str| {
        word.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
            .find(|part| (2..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_uppercase()))
    };
    let name = words.filter_map(letters).next();
    name.and_then(|name| ZONES.iter().find(|(known, _)| *known == name)).map_or(0, |(_, minutes)| *minutes)
}

/// Days from 1970 to a day.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_mails_write_them() {
        for (text, seconds) in [
            ("Thu, 22 Aug 2002 12:34:53 +0100", Some(1_030_016_093)),
            ("22 Aug 02 11:34:53 GMT", Some(1_030_016_093)),
            // The time of day in this order is not taken.
            ("Thu Aug 22 11:34:53 2002", Some(1_029_974_400)),
            ("Thu,22 Aug 2002 07:34:53 EDT", Some(1_030_016_093)),
            ("1 Jan 1970 00:00 -0000", Some(0)),
            ("30 Feb 2002 00:00:00 +0000", Some(1_014_940_800)),
            ("nonsense", None),
            ("0 Jan 2002 00:00:00 +0000", None),
        ] {
            assert_eq!(parse(text.as_bytes()), seconds, "{text}");
        }
        assert_eq!(
            date_in(b"from a by b; Thu, 22 Aug 2002 12:34:53 +0100 (x)"),
            Some(&b" 22 Aug 2002 12:34:53 +0100"[..])
        );
        assert_eq!(date_in(b"from a by b"), None);
    }
}
