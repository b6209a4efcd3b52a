//! Facts about stocks, `Name: value`, as mails have them that praise one (`check_stock_info`).

use std::collections::BTreeSet;

/// Lengths of a name, behind its first letter.
const LENGTHS: (usize, usize) = (2, 29);

/// Names in lower case without blanks; what counts is how a name ends.
const NAMES: [&str; 17] = [
    "company",
    "companyname",
    "target",
    "ticker",
    "openingp",
    "openingprice",
    "currentp",
    "currentprice",
    "projected",
    "position",
    "expectations",
    "weekhigh",
    "weekshigh",
    "marketperformance",
    "sector",
    "recommendation",
    "rating",
];

/// How many kinds of facts a text has.
pub(super) fn kinds(text: &[u8]) -> usize {
    let mut kinds = BTreeSet::new();
    let mut at = 0;
    while let Some((name, end)) = next(text, at) {
        let letters: Vec<u8> = name.iter().map(u8::to_ascii_lowercase).filter(u8::is_ascii_lowercase).collect();
        if let Some(start) = (0..letters.len()).find(|&start| is_kind(&letters, start)) {
            kinds.insert(letters[start..].to_vec());
        }
        at = end;
    }
    kinds.len()
}

/// The next name with a value that begins on a line at or behind a place, and the end of both.
fn next(text: &[u8], from: usize) -> Option<(&[u8], usize)> {
    let is_blank = |at: usize| text.get(at).is_some_and(u8::is_ascii_whitespace);
    let skip = |mut at: usize| {
        while is_blank(at) {
            at += 1;
        }
        at
    };
    let line_behind = |at: usize| text.get(at..)?.iter().position(|&byte| byte == b'\n').map(|end| at + end + 1);
    let mut line = if from == 0 || text.get(from - 1) == Some(&b'\n') { from } else { line_behind(from)? };
    loop {
        let start = skip(line);
        let rest = text.get(start + 1..)?;
        let length = rest.iter().position(|byte| b":\n".contains(byte)).unwrap_or(rest.len());
        let bare = rest[..length].trim_ascii_end().len().max(LENGTHS.0);
        let colon = skip(start + 1 + length);
        let value = skip(colon + 1);
        let fits = text[start] != b':' && bare <= length.min(LENGTHS.1) && text.get(colon) == Some(&b':');
        if fits && value < text.len() {
            return Some((&text[start..start + 1 + bare], value + 1));
        }
        line = line_behind(start)?;
    }
}

/// Whether a name from a place on is one of a fact.
fn is_kind(letters: &[u8], start: usize) -> bool {
    let name = &letters[start..];
    let is_time_or_price = || {
        let known = ["year", "week", "month", "day", "price"].into_iter();
        let mut behind = known.filter_map(|word| name.strip_prefix(word.as_bytes()));
        behind.any(|rest| [&b"target"[..], b"estimate", b"estimates"].contains(&rest))
    };
    (start == 0 && (name == b"tradedate" || name == b"tradingdate"))
        || NAMES.iter().any(|known| known.as_bytes() == name)
        || is_time_or_price()
        || [&b"stock"[..], b"sym", b"symbol"].into_iter().any(|word| is_loose(name, word))
}

/// Whether a name is a word with at most one letter more between two of its own.
fn is_loose(name: &[u8], word: &[u8]) -> bool {
    match (name.split_first(), word.split_first()) {
        (Some((first, rest)), Some((wanted, behind))) if first == wanted => {
            let skips = || rest.get(1..).is_some_and(|rest| is_loose(rest, behind));
            if behind.is_empty() { rest.is_empty() } else { is_loose(rest, behind) || skips() }
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_facts_are_counted_once() {
        for (text, expected) in [
            ("Company: Acme\nSymbol: ACME\nPrice: 1\nTarget: 2\n", 3),
            ("Company: Acme\nThe Company : Other\n", 1),
            ("Current Price: 1\n S Y M B O L : x\nS.t.0.c.k: y\n", 2),
            ("Trade Date: today\nOur Trade Date: today\n", 1),
            ("Sector:\n\n\nmining\nRating\n: good", 2),
            ("5 week target: 3\nWeeks high: 4", 2),
            ("Company:\n", 0),
            (": Company: x", 0),
            ("Name of this rather long company here: x", 0),
            ("\n\n\n   Stxozcyk: 1", 1),
            ("", 0),
        ] {
            assert_eq!(kinds(text.as_bytes()), expected, "{text}");
        }
    }
}
