//! Dates as IMAP and messages write them (RFC 9051, section 9, `date-time` and `date`; RFC 5322, section 3.3), as seconds since
//! 1970 in UTC.
//!
//! Years of four digits. Names of zones are not read: IMAP has none.

use alloc::string::String;

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
    let text = match text.iter().position(|&byte| byte == b',') {
        Some(comma) => text.get(comma + 1..)?,
        None => text,
    };
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (day, month, year) = (words.next()?, words.next()?, digits(words.next()?)?);
    let year = match year {
        0..50 => year + 2000,
        50..1000 => year + 1900,
        year => year,
    };
    civil(year, month_of(month)?, digits(day)?)
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
}
