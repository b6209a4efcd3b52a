//! `score NAME n [n n n]`: one score or four, each absolute or, in parentheses, relative.

use super::words;
use crate::spam::problem::Fault;

/// Scores on a line, one for each score set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scores {
    /// The scores become these.
    Absolute([f64; 4]),
    /// The scores are increased by these.
    Relative([f64; 4]),
}

const FORM: &str = "write one score or four, such as 1.5 or (0.5)";

impl Scores {
    /// Reads what stands behind the rule's name. One number in parentheses makes all of them relative.
    pub fn read(text: &[u8]) -> Result<Scores, Fault> {
        let mut relative = false;
        let mut numbers = [0.0; 4];
        let mut count = 0;
        for word in words(text) {
            let inner = word.strip_prefix(b"(").and_then(|word| word.strip_suffix(b")"));
            relative |= inner.is_some();
            let place = numbers.get_mut(count).ok_or_else(|| Fault::new("there are more than four scores", FORM))?;
            *place = number(inner.unwrap_or(word)).ok_or_else(|| Fault::new("a score is no number", FORM))?;
            count += 1;
        }
        match count {
            1 => numbers = [numbers[0]; 4],
            4 => {}
            _ => return Err(Fault::new(format!("there are {count} scores"), FORM)),
        }
        Ok(if relative { Scores::Relative(numbers) } else { Scores::Absolute(numbers) })
    }
}

/// `-?[0-9]+(.[0-9]+)?`
fn number(word: &[u8]) -> Option<f64> {
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let unsigned = word.strip_prefix(b"-").unwrap_or(word);
    let fits = match unsigned.iter().position(|&byte| byte == b'.') {
        Some(at) => digits(&unsigned[..at]) && digits(&unsigned[at + 1..]),
        None => digits(unsigned),
    };
    let number = core::str::from_utf8(word).ok().filter(|_| fits)?.parse::<f64>().ok()?;
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_one_or_four() {
        let read = |text: &str| Scores::read(text.as_bytes());
        assert_eq!(read("-0.5"), Ok(Scores::Absolute([-0.5; 4])));
        assert_eq!(read("1 2  3 4.25"), Ok(Scores::Absolute([1.0, 2.0, 3.0, 4.25])));
        assert_eq!(read("(1)"), Ok(Scores::Relative([1.0; 4])));
        assert_eq!(read("(1) 2 (-3) 4"), Ok(Scores::Relative([1.0, 2.0, -3.0, 4.0])));
        for text in ["", "1 2", "1 2 3", "1 2 3 4 5", "abc", "1e3", "+1", ".5", "1.", "(1.)", "-(1)", "()"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
