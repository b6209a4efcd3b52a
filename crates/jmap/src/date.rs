//! Dates: seconds since 1970 as JMAP writes them (RFC 8620, section 1.4), and fields of mails (RFC 5322, section 3.3).

use alloc::format;
use alloc::string::String;

use ::text::date::{Civil, civil, civil_of, message_in, parse_message, timestamp};

const DAY: i64 = 86_400;

/// A time with the minutes that its place is ahead of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Date {
    pub seconds: i64,
    pub minutes_ahead: i64,
}

impl Date {
    /// As a UTCDate.
    pub fn utc(seconds: i64) -> String {
        timestamp(seconds)
    }

    /// As a Date, with its offset.
    pub fn written(self) -> String {
        if self.minutes_ahead == 0 {
            return Date::utc(self.seconds);
        }
        let local = civil_of(self.seconds.saturating_add(self.minutes_ahead.saturating_mul(60)));
        let Civil { year, month, day, clock: [hour, minute, second], .. } = local;
        let (sign, ahead) = (if self.minutes_ahead < 0 { '-' } else { '+' }, self.minutes_ahead.abs());
        let (hours_ahead, minutes_ahead) = (ahead / 60, ahead % 60);
        format!(
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{sign}{hours_ahead:02}:{minutes_ahead:02}"
        )
    }

    /// As a field of a mail.
    pub fn field(self) -> String {
        message_in(self.seconds, self.minutes_ahead)
    }

    /// Reads a UTCDate, as seconds since 1970: it ends with `Z`.
    pub fn read_utc(text: &str) -> Option<i64> {
        Date::read(text).filter(|_| text.ends_with('Z')).map(|date| date.seconds)
    }

    /// Reads a Date or a UTCDate; fractions of a second are passed over.
    pub fn read(text: &str) -> Option<Date> {
        let (date, time) = text.split_once('T')?;
        let mut date = date.splitn(3, '-');
        let (year, month, day) = (digits(date.next()?, 4)?, digits(date.next()?, 2)?, digits(date.next()?, 2)?);
        let (clock, zone) = time.split_at(time.find(['Z', '+', '-'])?);
        let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
        if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let mut clock = clock.splitn(3, ':');
        let time = (digits(clock.next()?, 2)?, digits(clock.next()?, 2)?, digits(clock.next()?, 2)?);
        let minutes_ahead = match zone {
            "Z" => 0,
            zone => offset(&zone.replace(':', ""))?,
        };
        Date::of((year, month, day), time, minutes_ahead)
    }

    /// Reads a field of a mail.
    pub fn read_field(value: &str) -> Option<Date> {
        let (seconds, minutes_ahead) = parse_message(value.as_bytes())?;
        Some(Date { seconds, minutes_ahead })
    }

    fn of((year, month, day): (i64, i64, i64), (hour, minute, second): (i64, i64, i64), ahead: i64) -> Option<Date> {
        let fits = (1..=9_999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..=60).contains(&second);
        let days = civil(year, month, day).filter(|_| fits)?;
        let clock = hour.checked_mul(3_600)?.checked_add(minute.checked_mul(60)?)?.checked_add(second)?;
        let local = days.checked_mul(DAY)?.checked_add(clock)?;
        Some(Date { seconds: local.checked_sub(ahead.checked_mul(60)?)?, minutes_ahead: ahead })
    }
}

fn digits(text: &str, count: usize) -> Option<i64> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// `+0200`
fn offset(zone: &str) -> Option<i64> {
    let (sign, rest) = match zone.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, zone.strip_prefix('+')?),
    };
    let (hours, minutes) = (digits(rest.get(..2)?, 2)?, digits(rest.get(2..)?, 2)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_written() {
        let date = Date::read_field("Wed, 17 Jul 1996 02:23:25 -0700 (PDT)").unwrap();
        assert_eq!((date.seconds, date.written().as_str()), (837_595_405, "1996-07-17T02:23:25-07:00"));
        assert_eq!(date.field(), "Wed, 17 Jul 1996 02:23:25 -0700");
        assert_eq!(Date::utc(837_595_405), "1996-07-17T09:23:25Z");
        for written in ["2024-02-29T00:00:00Z", "1969-12-31T23:59:59Z", "2014-10-30T14:12:00+08:00"] {
            assert_eq!(Date::read(written).unwrap().written(), written);
        }
        for wrong in [
            "",
            "T",
            "2023-02-29T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00",
            "2024-1-1T0:0:0Z",
            "2024-01-01T00:00:00.Z",
        ] {
            assert_eq!(Date::read(wrong), None, "{wrong}");
        }
        assert_eq!(Date::read_field("1 é 2000 1:1"), None);
        Date::utc(i64::MAX);
        Date { seconds: i64::MIN, minutes_ahead: -5 }.field();
    }
}
