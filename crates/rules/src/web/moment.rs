//! Moments, and times of a week at which lists and phrases hold: `#time: 8 0 17 30 01234`.

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Date {
    /// The year.
    pub year: u16,
    /// The month, from 1.
    pub month: u8,
    /// The day of the month, from 1.
    pub day: u8,
}

/// A moment, as the host's clock and zone have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// The day, 0 is Monday.
    pub day: u8,
    /// Minutes since midnight.
    pub minute: u16,
    /// The date.
    pub date: Date,
}

/// When something holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    from: u16,
    until: u16,
    /// A bit for each day.
    days: u8,
}

impl Window {
    /// It never holds.
    pub const NEVER: Window = Window { from: 1, until: 0, days: 0 };

    /// Reads the text behind `#time:`: hour, minute, hour, minute, and days. E2Guardian reads at most seven bytes of days, digit by digit.
    pub fn read(text: &[u8]) -> Option<Window> {
        let mut rest = std::str::from_utf8(text).ok()?.trim_ascii();
        let mut number = |max: u16| {
            let (word, behind) = rest.split_once(|c: char| c.is_ascii_whitespace())?;
            rest = behind.trim_ascii_start();
            word.parse::<u16>().ok().filter(|&number| number <= max)
        };
        let from = number(23)? * 60 + number(59)?;
        let until = number(23)? * 60 + number(59)?;
        let digits = Some(rest).filter(|digits| digits.len() <= 7)?;
        let days = digits.bytes().try_fold(0, |days, digit| match digit {
            b'0'..=b'6' => Some(days | 1u8 << (digit - b'0')),
            b',' | b'-' | b' ' | b'\t' => Some(days),
            _ => None,
        })?;
        (days != 0).then_some(Window { from, until, days })
    }

    /// When both hold.
    pub fn and(self, other: Window) -> Window {
        let (from, until) = (self.from.max(other.from), self.until.min(other.until));
        Window { from, until, days: self.days & other.days }
    }

    /// Whether it never holds.
    pub fn is_empty(self) -> bool {
        self.from > self.until
    }

    /// Whether it holds at a moment: at the last of its minutes, too.
    pub fn has(self, now: Moment) -> bool {
        let is_day = self.days >> now.day.min(7) & 1 != 0;
        is_day && (self.from..=self.until).contains(&now.minute)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_its_days_and_both_ends() {
        let window = Window::read(b" 8 0 17 30 01 ").expect("a window");
        let has = |day, hour: u16, minute| window.has(Moment { day, minute: hour * 60 + minute, ..Moment::default() });
        assert!(has(0, 8, 0) && has(1, 17, 30) && !has(2, 9, 0) && !has(0, 7, 59) && !has(0, 17, 31));
        let days = |text: &str| Window::read(format!("0 0 23 59 {text}").as_bytes()).map(|window| window.days);
        assert_eq!((days("0,1,2"), days("0 2 4"), days("0-6")), (Some(7), Some(21), Some(65)), "as E2Guardian has it");
        for wrong in [
            "",
            "8 0 24 0 0",
            "8 0 9 60 0",
            "8 0 9 0",
            "8 0 9 0 7",
            "8 0 9 0 01234560",
            "8 0 9 0 0,1,2,3,4",
            "8 0 9 0 -",
        ] {
            assert_eq!(Window::read(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
