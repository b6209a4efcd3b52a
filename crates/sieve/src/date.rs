//! Dates of header fields, and their parts (RFC 5260, section 4.2). The calendar is the Gregorian one, before its time too.

use alloc::format;
use alloc::string::String;

use text::date::{Civil, civil_of, message_in, parse_message};

const SECONDS_OF_DAY: i64 = 86_400;
/// From the first day of the modified Julian calendar to 1970.
const JULIAN_OF_1970: i64 = 40_587;
/// No date of a mail is further from 1970, in seconds: the year 9999.
const SECONDS_MAX: i64 = 253_402_300_799;

/// A moment, in the time of some zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date {
    /// Since 1970, in UTC.
    pub seconds: i64,
    /// East of Greenwich, in minutes.
    pub zone: i32,
}

/// `+hhmm`, in minutes.
pub fn zone(text: &str) -> Option<i32> {
    let (sign, digits) = text.split_at_checked(1)?;
    let sign = match sign {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes) = digits.split_at(2);
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then(|| hours.saturating_mul(60).saturating_add(minutes).saturating_mul(sign))
}

impl Date {
    /// Makes a date, within the range of dates in mails.
    pub fn new(seconds: i64, zone: i32) -> Date {
        Date { seconds: seconds.clamp(-62_135_596_800, SECONDS_MAX), zone: zone.clamp(-1_439, 1_439) }
    }

    /// Reads a date as mails have it (RFC 5322, section 3.3, with its obsolete forms).
    pub fn parse(text: &str) -> Option<Date> {
        let (seconds, zone) = parse_message(text.as_bytes())?;
        Some(Date::new(seconds, i32::try_from(zone).ok()?))
    }

    /// The same moment in another zone.
    pub fn in_zone(self, zone: i32) -> Date {
        Date::new(self.seconds, zone)
    }

    /// One of its parts; none if there is no such part.
    #[allow(clippy::arithmetic_side_effects)] // `Date::new` bounds both
    pub fn part(self, name: &str) -> Option<String> {
        let local = self.seconds + i64::from(self.zone) * 60;
        let day_number = local.div_euclid(SECONDS_OF_DAY);
        let Civil { year, month, day, clock: [hour, minute, second], .. } = civil_of(local);
        let weekday = (day_number + 4).rem_euclid(7);
        let sign = if self.zone < 0 { '-' } else { '+' };
        let (zone_hours, zone_minutes) = (self.zone.abs() / 60, self.zone.abs() % 60);
        Some(match name {
            "year" => format!("{year:04}"),
            "month" => format!("{month:02}"),
            "day" => format!("{day:02}"),
            "date" => format!("{year:04}-{month:02}-{day:02}"),
            "julian" => format!("{}", day_number + JULIAN_OF_1970),
            "hour" => format!("{hour:02}"),
            "minute" => format!("{minute:02}"),
            "second" => format!("{second:02}"),
            "time" => format!("{hour:02}:{minute:02}:{second:02}"),
            "iso8601" if self.zone == 0 => {
                format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
            }
            "iso8601" => format!(
                "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{sign}{zone_hours:02}:{zone_minutes:02}"
            ),
            "std11" => message_in(self.seconds, i64::from(self.zone)),
            "zone" => format!("{sign}{zone_hours:02}{zone_minutes:02}"),
            "weekday" => format!("{weekday}"),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_parts() {
        let date = Date::parse("Mon, 23 Nov 2026 23:30:05 -0230 (some zone)").unwrap();
        for (part, wanted) in [
            ("year", "2026"),
            ("month", "11"),
            ("day", "23"),
            ("julian", "61367"),
            ("time", "23:30:05"),
            ("weekday", "1"),
            ("zone", "-0230"),
            ("iso8601", "2026-11-23T23:30:05-02:30"),
            ("std11", "Mon, 23 Nov 2026 23:30:05 -0230"),
        ] {
            assert_eq!(date.part(part).as_deref(), Some(wanted));
        }
        assert_eq!(date.in_zone(0).part("date").as_deref(), Some("2026-11-24"));
        assert_eq!(date.part("century"), None);
    }

    #[test]
    fn odd_dates_are_read_or_refused() {
        for (text, wanted) in [
            ("1 Jan 70 00:00 GMT", Some(0)),
            ("Thu,1 Jan 1970 00:00:01 EST", Some(18_001)),
            ("29 Feb 2000 12:00:00 +0000", Some(951_825_600)),
            ("(x) 1 (y) Jan 1970 00 : 00 : 10 +0000", Some(10)),
            ("Thu, 1 January 1970 00:00:10 +0000", Some(10)),
            ("Thu, 1 Jan 1970 00.00.10 +0000", Some(10)),
            ("Thu, 1 Jan 1970 00:00:10.123 +0000", Some(10)),
            ("Thu, 1 Jan 1970 01:00:10+0100", Some(10)),
            ("32 Jan 2000 12:00:00 +0000", None),
            ("30 Feb 2020 12:00:00 +0000", None),
            ("1 Foo 2000 12:00:00 +0000", None),
            ("", None),
            ("Mon", None),
            ("1 Jan 2000", None),
            ("1 Jan 2000 25:00", None),
        ] {
            assert_eq!(Date::parse(text).map(|date| date.seconds), wanted, "{text}");
        }
    }
}
