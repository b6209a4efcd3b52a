//! Dates as IMAP and messages write them (RFC 9051, section 9, `date-time` and `date`; RFC 5322, section 3.3), as seconds since
//! 1970 in UTC.
//!
//! Years of four digits. Of names of zones those of RFC 5322 are read, in messages: IMAP has none.

use alloc::string::String;
use alloc::vec::Vec;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const DAY: i64 = 86_400;

/// A date and a time of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    /// The year.
    pub year: i64,
    /// The month, from 1.
    pub month: i64,
    /// The day of the month, from 1.
    pub day: i64,
    /// Hour, minute and second.
    pub clock: [i64; 3],
    /// The day of the week, from Thursday, which is 0.
    pub weekday: usize,
}

/// Seconds as a date and a time.
pub fn civil_of(seconds: i64) -> Civil {
    let (year, month, day, clock) = split(seconds);
    let weekday = usize::try_from(seconds.div_euclid(DAY).rem_euclid(7)).unwrap_or(0);
    Civil { year, month, day, clock, weekday }
}

/// Seconds as `date-time`: `17-Jul-1996 02:44:25 +0000`, the day with a blank in front where it has one digit.
pub fn internal(seconds: i64) -> String {
    let (year, month, day, clock) = split(seconds);
    let [hour, minute, second] = clock;
    alloc::format!("{day:2}-{}-{year:04} {hour:02}:{minute:02}:{second:02} +0000", name_of(month))
}

/// Seconds as the field `Date` has them, in UTC: `Wed, 17 Jul 1996 02:44:25 +0000`.
pub fn message(seconds: i64) -> String {
    message_in(seconds, 0)
}

/// Seconds as the field `Date` has them, in a zone that is so many minutes ahead of UTC.
pub fn message_in(seconds: i64, minutes_ahead: i64) -> String {
    let local = civil_of(seconds.saturating_add(minutes_ahead.saturating_mul(60)));
    let Civil { year, month, day, clock: [hour, minute, second], weekday } = local;
    let (weekday, month) = (WEEKDAYS.get(weekday).unwrap_or(&"Thu"), name_of(month));
    let (sign, ahead) = (if minutes_ahead < 0 { '-' } else { '+' }, minutes_ahead.unsigned_abs());
    let (hours_ahead, minutes_ahead) = (ahead / 60, ahead % 60);
    alloc::format!(
        "{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} {sign}{hours_ahead:02}{minutes_ahead:02}"
    )
}

/// Seconds as RFC 3339 has them: `1996-07-17T02:44:25Z`.
pub fn timestamp(seconds: i64) -> String {
    let (year, month, day, clock) = split(seconds);
    let [hour, minute, second] = clock;
    alloc::format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Reads a date and time of RFC 3339; fractions of a second are passed over.
pub fn parse_timestamp(text: &[u8]) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let (clock, zone) =
        rest.split_first().filter(|(mark, _)| **mark == b'T').and_then(|(_, rest)| rest.split_at_checked(8))?;
    let mut date = date.split(|&byte| byte == b'-');
    let (year, month, day) = (digits(date.next()?)?, two(date.next()?)?, two(date.next()?)?);
    let mut clock = clock.split(|&byte| byte == b':').map(two);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    if !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let zone = match zone.split_first() {
        Some((b'.', rest)) => rest.get(rest.iter().position(|byte| !byte.is_ascii_digit())?..)?,
        _ => zone,
    };
    let ahead = match zone {
        b"Z" => 0,
        [sign, hour @ .., b':', ten, one] => parse_zone(&[&[*sign][..], hour, &[*ten, *one]].concat())?,
        _ => return None,
    };
    let seconds = civil(year, month, day)?.checked_mul(DAY)?.checked_add(hour * 3600 + minute * 60 + second)?;
    seconds.checked_sub(ahead)
}

/// Reads a day of ISO 8601, `1996-07-17`, as days since 1970.
pub fn parse_day(text: &str) -> Option<i64> {
    let mut parts = text.as_bytes().split(|&byte| byte == b'-');
    let (year, month, day) = (parts.next()?, two(parts.next()?)?, two(parts.next()?)?);
    let is_whole = parts.next().is_none() && year.len() == 4 && (1..=12).contains(&month);
    civil(digits(year).filter(|_| is_whole)?, month, day)
}

/// Reads a `date-time` without its quotes.
pub fn parse_internal(text: &[u8]) -> Option<i64> {
    let text = core::str::from_utf8(text).ok()?;
    let (date, rest) = text.trim_start_matches(' ').split_once(' ')?;
    let (clock, zone) = rest.split_once(' ')?;
    let days = parse_date(date.as_bytes())?;
    let mut parts = clock.split(':').map(|part| two(part.as_bytes()));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days.checked_mul(DAY)?.checked_add(hour * 3600 + minute * 60 + second)?;
    seconds.checked_sub(parse_zone(zone.as_bytes())?)
}

/// Reads a `date` of SEARCH, as days since 1970.
pub fn parse_date(text: &[u8]) -> Option<i64> {
    let mut parts = text.split(|&byte| byte == b'-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() != 4 {
        return None;
    }
    civil(digits(year)?, month_of(month)?, two(day).or(digits(day).filter(|_| day.len() == 1))?)
}

/// Parses the day of the field `Date`, as days since 1970, in its own zone, as SENTON and the like compare it.
pub fn parse_sent(text: &[u8]) -> Option<i64> {
    let words = sent_words(text);
    let [day, month, year, ..] = &words[..] else { return None };
    let year = match digits(year)? {
        year @ 0..50 => year + 2000,
        year @ 50..1000 => year + 1900,
        year => year,
    };
    civil(year, month_of(month.get(..3)?)?, digits(day)?)
}

/// Parses the field `Date`: seconds since 1970, and the minutes that its zone is ahead of UTC. Obsolete forms are read (RFC 5322, section
/// 4.3), and fields without the comma behind the weekday; a zone that nobody knows counts as UTC.
pub fn parse_message(text: &[u8]) -> Option<(i64, i64)> {
    let (days, words) = (parse_sent(text)?, sent_words(text));
    let word = words.get(3)?;
    // A zone right behind the time, fractions of a second, and points in the place of colons.
    let end = word.iter().position(|byte| b"+-".contains(byte)).unwrap_or(word.len());
    let (time, glued) = word.split_at(end);
    let mark = if time.contains(&b':') { b':' } else { b'.' };
    let fraction = time.iter().position(|&byte| byte == b'.').filter(|_| mark == b':').unwrap_or(time.len());
    let mut clock = time.get(..fraction)?.split(|&byte| byte == mark).map(digits);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next().unwrap_or(Some(0))?);
    if hour > 23 || minute > 59 || second > 60 || clock.next().is_some() {
        return None;
    }
    let zone = if glued.is_empty() { words.get(4).map(Vec::as_slice) } else { Some(glued) };
    let minutes_ahead = zone.and_then(zone_minutes).unwrap_or(0);
    Some((days * DAY + (hour * 60 + minute - minutes_ahead) * 60 + second, minutes_ahead))
}

/// The words of the field `Date` from the day of the month on, without comments, and without blanks around colons.
fn sent_words(text: &[u8]) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let (mut depth, mut is_escaped, mut is_open) = (0usize, false, false);
    for &byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            b' ' | b'\t' | b'\r' | b'\n' | b',' => {}
            byte => {
                match words.last_mut().filter(|_| is_open || byte == b':') {
                    Some(word) => word.push(byte),
                    None => words.push([byte].into()),
                }
                is_open = true;
                continue;
            }
        }
        is_open = words.last().is_some_and(|word| word.ends_with(b":"));
    }
    let first = words.iter().position(|word| word.first().is_some_and(u8::is_ascii_digit)).unwrap_or(words.len());
    words.split_off(first)
}

/// A zone in minutes: `+0130`, or one of the names that RFC 5322 has.
fn zone_minutes(zone: &[u8]) -> Option<i64> {
    const HOURS: [(&[u8], i64); 8] = [
        (b"EDT", -4),
        (b"EST", -5),
        (b"CDT", -5),
        (b"CST", -6),
        (b"MDT", -6),
        (b"MST", -7),
        (b"PDT", -7),
        (b"PST", -8),
    ];
    match HOURS.iter().find(|(name, _)| zone.eq_ignore_ascii_case(name)) {
        Some((_, hours)) => Some(hours * 60),
        None => parse_zone(zone).map(|seconds| seconds / 60).filter(|minutes| minutes.abs() < 24 * 60),
    }
}

/// `+0130` in seconds.
fn parse_zone(zone: &[u8]) -> Option<i64> {
    let (sign, digits) = zone.split_first()?;
    let (hours, minutes) = (two(digits.get(..2)?)?, two(digits.get(2..)?)?);
    let offset = hours * 3600 + minutes * 60;
    match sign {
        b'+' => Some(offset),
        b'-' => Some(-offset),
        _ => None,
    }
}

fn two(text: &[u8]) -> Option<i64> {
    digits(text).filter(|_| text.len() == 2)
}

fn digits(text: &[u8]) -> Option<i64> {
    let fits = (1..=4).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    fits.then(|| text.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

/// The number of a month, from 1, by its name of three letters.
pub fn month_of(text: &[u8]) -> Option<i64> {
    let at = MONTHS.iter().position(|month| month.as_bytes().eq_ignore_ascii_case(text))?;
    i64::try_from(at).ok().map(|at| at + 1)
}

fn name_of(month: i64) -> &'static str {
    usize::try_from(month - 1).ok().and_then(|at| MONTHS.get(at)).unwrap_or(&"Jan")
}

/// Days since 1970 of a date of the Gregorian calendar; none if there is no such day.
pub fn civil(year: i64, month: i64, day: i64) -> Option<i64> {
    let days = days_before(year, month) + day - 1;
    ((1..=31).contains(&day) && (month == 12 || days < days_before(year, month + 1))).then_some(days)
}

/// Days from 1970 to the first of a month, from 1. Years begin in March here, so that the leap day is the last.
pub fn days_before(year: i64, month: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let since_march = (month + 9) % 12;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (since_march * 153 + 2) / 5
        - 719_468
}

fn split(seconds: i64) -> (i64, i64, i64, [i64; 3]) {
    // What no calendar of four digits has stands for its last or first day.
    let seconds = seconds.clamp(-62_135_596_800, 253_402_300_799);
    let (days, clock) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    // At most the year that it is.
    let mut year = 1970 + days.div_euclid(if days < 0 { 365 } else { 366 });
    while days_before(year + 1, 1) <= days {
        year += 1;
    }
    let month = (1..=12).rev().find(|&month| days_before(year, month) <= days).unwrap_or(1);
    (year, month, days - days_before(year, month) + 1, [clock / 3600, clock / 60 % 60, clock % 60])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_and_read() {
        for (seconds, written) in [
            (0, " 1-Jan-1970 00:00:00 +0000"),
            (837_596_665, "17-Jul-1996 09:44:25 +0000"),
            (951_782_400, "29-Feb-2000 00:00:00 +0000"),
            (1_735_689_599, "31-Dec-2024 23:59:59 +0000"),
            (-1, "31-Dec-1969 23:59:59 +0000"),
        ] {
            assert_eq!(internal(seconds), written);
            assert_eq!(parse_internal(written.as_bytes()), Some(seconds));
        }
        assert_eq!(parse_internal(b"17-jul-1996 02:44:25 -0700"), Some(837_596_665));
        assert_eq!(
            (timestamp(837_596_665).as_str(), parse_day("1996-07-17")),
            ("1996-07-17T09:44:25Z", Some(837_596_665 / DAY))
        );
        for day in ["", "1996-7-17", "1996-13-01", "1996-00-01", "1997-02-29", "1996-07-17-", "96-07-17", "1996-07"] {
            assert_eq!(parse_day(day), None, "{day}");
        }
        assert_eq!(message(837_596_665), "Wed, 17 Jul 1996 09:44:25 +0000");
        assert_eq!(message_in(837_596_665, -450), "Wed, 17 Jul 1996 02:14:25 -0730");
        assert_eq!(message_in(-1, 90), "Thu, 01 Jan 1970 01:29:59 +0130");
        assert_eq!(internal(i64::MAX), "31-Dec-9999 23:59:59 +0000");
    }

    #[test]
    fn timestamps_are_written_and_read() {
        assert_eq!(timestamp(837_596_665), "1996-07-17T09:44:25Z");
        for text in ["1996-07-17T09:44:25Z", "1996-07-17T02:44:25-07:00", "1996-07-17T09:44:25.123Z"] {
            assert_eq!(parse_timestamp(text.as_bytes()), Some(837_596_665), "{text}");
        }
        for text in [
            "",
            "1996-07-17",
            "1996-07-17 09:44:25Z",
            "1996-13-17T09:44:25Z",
            "1996-07-17T09:44:25",
            "1996-07-17T09:44:25.Z+",
        ] {
            assert_eq!(parse_timestamp(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn every_day_comes_back() {
        for day in (-719_162..2_932_896).step_by(97) {
            assert_eq!(parse_internal(internal(day * DAY).as_bytes()), Some(day * DAY));
        }
    }

    #[test]
    fn what_is_no_date_is_not_read() {
        for text in ["", "31-Feb-2000", "1-Jan-70", "1-Foo-1970", "0-Jan-1970", "1-Jan-1970-1", "-1-Jan-1970"] {
            assert_eq!(parse_date(text.as_bytes()), None, "{text}");
        }
        for text in ["1-Jan-1970", "1-Jan-1970 00:00:00", "01-Jan-1970 24:00:00 +0000", "01-Jan-1970 00:00:00 EST"] {
            assert_eq!(parse_internal(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_sent(b"Wed, 17 Jul 1996 02:44:25 -0700 (PDT)"), parse_date(b"17-Jul-1996"));
        assert_eq!(parse_sent(b"17 Jul 96 02:44"), parse_date(b"17-Jul-1996"));
        assert_eq!(parse_sent(b"yesterday"), None);
    }

    #[test]
    fn dates_of_messages_are_read_in_all_their_forms() {
        for (text, hours) in [
            ("Tue, 12 Mar 2002 10:00:00 +0200", 2),
            ("Tue, 12 Mar 2002 10:00:00 EST", -5),
            ("Tue, 12 Mar 2002 10:00:00 pdt", -7),
            ("Tue, 12 Mar 2002 10:00:00 gmt", 0),
            ("Tue, 12 Mar 02 10:00 A", 0),
            ("Tue (a, (b) \\) c), 12 Mar 2002(x)10:00:00 (a comment) +0200 (Central European Time)", 2),
            ("12 March 102 10 : 00 :00 +0200", 2),
            ("Tue 12 Mar 2002 10:00:00\r\n\t+0200", 2),
            ("Tue,12 Mar 2002 10:00:00 +0200", 2),
            ("12 Mar 2002 10:00:00", 0),
            ("12 Mar 2002 10.00.00 +0200", 2),
            ("12 Mar 2002 10:00:00.5 -0200", -2),
            ("12 Mar 2002 10:00:00-0200 +0100", -2),
        ] {
            let read = parse_message(text.as_bytes());
            assert_eq!(read, Some((1_015_927_200 - hours * 3_600, hours * 60)), "{text}");
        }
        for text in [
            "12 Mar 2002",
            "12 Mar 2002 24:00",
            "Mar 12 10:00:00 2002",
            "12 Mar 2002 1:2:3:4",
            "12 Mar 2002 :",
            "(",
            "",
            "\\",
        ] {
            assert_eq!(parse_message(text.as_bytes()), None, "{text}");
        }
    }
}
