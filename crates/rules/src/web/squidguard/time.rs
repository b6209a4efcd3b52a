//! Times: `weekly mtwhf 08:00 - 16:30`, `date *-*-01 08:00-16:30`, `date 2026.12.24-2026.12.26`.

use std::sync::Arc;

use crate::web::moment::{Date, Moment};

/// The minutes of a day.
const DAY: u16 = 24 * 60;

/// A time at which something holds.
#[derive(Debug, Clone, Default)]
pub(in crate::web) enum When {
    #[default]
    Always,
    /// In one of these spans.
    Within(Arc<[Span]>),
    /// In none of them.
    Outside(Arc<[Span]>),
}

impl When {
    pub fn holds(&self, now: Moment) -> bool {
        let is_in = |spans: &[Span]| spans.iter().any(|span| span.has(now));
        match self {
            When::Always => true,
            When::Within(spans) => is_in(spans),
            When::Outside(spans) => !is_in(spans),
        }
    }
}

/// Minutes of some days, the last one not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) struct Span {
    days: Days,
    from: u16,
    until: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Days {
    /// A bit for each day of the week, from Monday.
    OfWeek(u8),
    /// Those with this year, month and day, as far as they are said.
    Like {
        year: Option<u16>,
        month: Option<u8>,
        day: Option<u8>,
    },
    Between(Date, Date),
}

impl Span {
    /// Reads a statement of a time; `None` where it is not understood.
    pub fn read(words: &[&str]) -> Option<Vec<Span>> {
        let (kind, rest) = words.split_first()?;
        let text = rest.join(" ").to_ascii_lowercase().replace(" - ", "-");
        let words: Vec<&str> = text.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        let (days, hours) = words.split_at(words.iter().position(|word| word.contains(':')).unwrap_or(words.len()));
        let days = match *kind {
            "weekly" => Days::OfWeek(days.iter().try_fold(0, |all, word| Some(all | week(word)?))?),
            "date" if days.len() == 1 => dates(days[0])?,
            _ => return None,
        };
        if days == Days::OfWeek(0) {
            return None;
        }
        let span = |(from, until)| Span { days, from, until };
        match hours {
            [] => Some(vec![span((0, DAY))]),
            _ => hours.iter().map(|text| range(text).map(span)).collect(),
        }
    }

    fn has(&self, now: Moment) -> bool {
        let is_day = match self.days {
            Days::OfWeek(days) => days >> now.day.min(7) & 1 != 0,
            Days::Between(first, last) => (first..=last).contains(&now.date),
            Days::Like { year, month, day } => {
                year.is_none_or(|year| year == now.date.year)
                    && month.is_none_or(|month| month == now.date.month)
                    && day.is_none_or(|day| day == now.date.day)
            }
        };
        is_day && (self.from..self.until).contains(&now.minute)
    }
}

/// The days of a word: `*`, `mtwhf`, `mon`, `monday` or `mondays`.
fn week(word: &str) -> Option<u8> {
    const LETTERS: &str = "mtwhfas";
    const NAMES: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    if word == "*" {
        return Some(0x7f);
    }
    let is_name = |name: &&str| word == *name || word.strip_suffix('s') == Some(name) || word == &name[..3];
    match NAMES.iter().position(is_name) {
        Some(day) => Some(1 << day),
        None => word.chars().try_fold(0, |all, letter| Some(all | 1 << LETTERS.find(letter)?)),
    }
}

/// A date, parts of which may be `*`, or two with a dash between them.
fn dates(word: &str) -> Option<Days> {
    let parts: Vec<&str> = word.split(['.', '-']).collect();
    match parts[..] {
        [year, month, day] => Some(Days::Like { year: part(year)?, month: part(month)?, day: part(day)? }),
        [_, _, _, _, _, _] => {
            let (first, last) = (date(&parts[..3])?, date(&parts[3..])?);
            (first <= last).then_some(Days::Between(first, last))
        }
        _ => None,
    }
}

fn date(parts: &[&str]) -> Option<Date> {
    Some(Date { year: parts[0].parse().ok()?, month: parts[1].parse().ok()?, day: parts[2].parse().ok()? })
}

fn part<N: core::str::FromStr>(text: &str) -> Option<Option<N>> {
    if text == "*" { Some(None) } else { text.parse().ok().map(Some) }
}

/// `08:00-16:30` in minutes.
fn range(text: &str) -> Option<(u16, u16)> {
    let (from, until) = text.split_once('-')?;
    let (from, until) = (minute(from)?, minute(until)?);
    (from < until).then_some((from, until))
}

fn minute(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
    (hour <= 24 && minute < 60 && hour * 60 + minute <= DAY).then(|| hour * 60 + minute)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str, day: u8, hour: u16, date: (u16, u8, u8)) -> bool {
        let words: Vec<&str> = text.split_whitespace().collect();
        let spans = Span::read(&words).unwrap_or_else(|| panic!("{text}"));
        let date = Date { year: date.0, month: date.1, day: date.2 };
        When::Within(spans.into()).holds(Moment { day, minute: hour * 60, date })
    }

    #[test]
    fn days_of_the_week_have_letters_and_names() {
        for text in
            ["weekly mtwhf 08:00 - 16:00", "weekly mon tue, wed 08:00-16:00", "weekly mondays 00:00-06:00 08:00-16:00"]
        {
            assert!(holds(text, 0, 8, (2026, 11, 30)) && !holds(text, 0, 16, (2026, 11, 30)), "{text}");
            assert!(!holds(text, 6, 8, (2026, 11, 29)), "{text}");
        }
        assert!(holds("weekly *", 5, 23, (2026, 11, 28)) && holds("weekly as", 5, 0, (2026, 11, 28)));
    }

    #[test]
    fn dates_have_stars_and_ranges() {
        for text in ["date *-*-01 08:00 - 16:30", "date 2026.12.01", "date 2026.11.30-2026.12.02 07:00-09:00"] {
            assert!(holds(text, 1, 8, (2026, 12, 1)), "{text}");
            assert!(!holds(text, 3, 8, (2026, 12, 3)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_times() {
        for text in [
            "weekly",
            "weekly x",
            "weekly m 8-9",
            "weekly m 09:00-08:00",
            "weekly m 08:00-24:01",
            "date",
            "date 1.2",
            "date 1999.03.31 12:00.24:00",
            "date 2026.12.02-2026.12.01",
            "yearly *",
        ] {
            assert_eq!(Span::read(&text.split_whitespace().collect::<Vec<_>>()), None, "{text}");
        }
    }
}
