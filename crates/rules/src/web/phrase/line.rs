//! A line of a phrase list: `<phrase>`, `<one>,<other>`, each with a weight behind it or none.

/// The most bytes of a phrase that are compared.
pub(super) const PHRASE_BYTES_MAX: usize = 127;

/// How much a phrase counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Points(i32),
    /// Percent of the group's limit.
    Percent(i32),
}

impl Weight {
    /// The points of it where a page is blocked beyond `limit`.
    pub fn points(self, limit: i32) -> i32 {
        match self {
            Weight::Points(points) => points,
            Weight::Percent(percent) => {
                let points = i64::from(percent) * i64::from(limit) / 100;
                i32::try_from(points).unwrap_or(if points < 0 { i32::MIN } else { i32::MAX })
            }
        }
    }
}

/// Phrases that stand on one line: all have to occur.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry<'l> {
    pub phrases: Vec<&'l [u8]>,
    /// `None`: the kind of the list says what the phrase does. A weight of 0 is no weight.
    pub weight: Option<Weight>,
    /// A warning about a line that probably does not mean what its author meant.
    pub warning: Option<&'static str>,
}

impl<'l> Entry<'l> {
    /// Reads a line that begins with `<`.
    pub fn read(line: &'l [u8]) -> Option<Entry<'l>> {
        let mut phrases = Vec::new();
        let mut rest = line.strip_prefix(b"<")?;
        loop {
            let end = rest.iter().position(|&byte| byte == b'>')?;
            let phrase = &rest[..end];
            if !phrase.is_empty() {
                phrases.push(&phrase[..end.min(PHRASE_BYTES_MAX)]);
            }
            rest = &rest[end + 1..];
            let next = rest.trim_ascii_start().strip_prefix(b",").map(<[u8]>::trim_ascii_start);
            match next.and_then(|next| next.strip_prefix(b"<")) {
                Some(next) => rest = next,
                None => break,
            }
        }
        if phrases.is_empty() {
            return None;
        }
        let (weight, warning) = read_weight(line, rest);
        Some(Entry { phrases, weight, warning })
    }
}

/// The weight is what stands behind the first `><`, wherever that is.
fn read_weight(line: &[u8], rest: &[u8]) -> (Option<Weight>, Option<&'static str>) {
    let Some(at) = line.windows(2).position(|pair| pair == b"><") else {
        let is_apart = rest.contains(&b'<');
        return (None, is_apart.then_some("the weight stands apart from the phrase and does not count"));
    };
    let text = &line[at + 2..];
    let Some(end) = text.iter().position(|&byte| byte == b'>') else {
        return (None, Some("the weight is not closed and does not count"));
    };
    let text = &text[..end];
    let digits = text.strip_suffix(b"%").unwrap_or(text);
    let number = leading_number(digits);
    let warning = match number {
        0 => Some("a weight of 0 is no weight"),
        _ if std::str::from_utf8(digits).is_ok_and(|digits| digits.trim().parse::<i32>().is_ok()) => None,
        _ => Some("the weight is not a number"),
    };
    let weight = if digits.len() < text.len() { Weight::Percent(number) } else { Weight::Points(number) };
    (Some(weight).filter(|_| number != 0), warning)
}

/// The number that a text begins with; 0 if it begins with none.
fn leading_number(text: &[u8]) -> i32 {
    let text = text.trim_ascii_start();
    let (is_negative, digits) = match text.split_first() {
        Some((b'-', digits)) => (true, digits),
        Some((b'+', digits)) => (false, digits),
        _ => (false, text),
    };
    let digits = digits.iter().take_while(|digit| digit.is_ascii_digit());
    let number = digits.fold(0i32, |number, digit| number.saturating_mul(10).saturating_add(i32::from(digit - b'0')));
    if is_negative { -number } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (Vec<String>, Option<Weight>, bool) {
        let entry = Entry::read(line.as_bytes()).expect("an entry");
        let phrases = entry.phrases.iter().map(|phrase| String::from_utf8_lossy(phrase).into_owned()).collect();
        (phrases, entry.weight, entry.warning.is_some())
    }

    #[test]
    fn phrases_combinations_and_weights_are_read() {
        assert_eq!(read("< a b ><20>"), (vec![" a b ".into()], Some(Weight::Points(20)), false));
        assert_eq!(read("<a>,<b>,< c>"), (vec!["a".into(), "b".into(), " c".into()], None, false));
        assert_eq!(read("<a>,<b><-7> #MARK#"), (vec!["a".into(), "b".into()], Some(Weight::Points(-7)), false));
        assert_eq!(read("<a><50%>"), (vec!["a".into()], Some(Weight::Percent(50)), false));
        assert_eq!((Weight::Percent(50).points(30), Weight::Percent(-10).points(50)), (15, -5));
    }

    #[test]
    fn weights_that_do_not_count_are_warned_of() {
        assert_eq!(read("<a>x<41>"), (vec!["a".into()], None, true));
        assert_eq!(read("<a><0>"), (vec!["a".into()], None, true));
        assert_eq!(read("<a></b><9>"), (vec!["a".into()], None, true));
        assert_eq!(read("<a><5"), (vec!["a".into()], None, true));
        assert_eq!(read("<a> , <b> <5>"), (vec!["a".into(), "b".into()], None, true));
        assert_eq!(read("<a><5x>"), (vec!["a".into()], Some(Weight::Points(5)), true));
    }

    #[test]
    fn a_long_phrase_is_cut() {
        let line = format!("<{}><1>", "x".repeat(300));
        assert_eq!(Entry::read(line.as_bytes()).expect("an entry").phrases[0].len(), PHRASE_BYTES_MAX);
        assert!(Entry::read(b"<a").is_none() && Entry::read(b"a>").is_none() && Entry::read(b"<>").is_none());
    }
}
