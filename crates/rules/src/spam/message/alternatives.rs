//! How far the versions of a text in `multipart/alternative` say the same.

use super::Part;
use super::perl::{Text, is_space, is_word};
use crate::spam::map::HashMap;

/// Difference of two versions, and their number of words.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Alternatives {
    /// Words of the HTML that the plain text has less often, in percent of its words; the worst of all.
    pub(super) percent: f64,
    /// Different words of the last pair.
    pub(super) html_words: u32,
    pub(super) plain_words: u32,
}

/// The words of a part that is rendered.
#[derive(Debug, Default)]
pub(super) struct Words {
    counts: HashMap<Box<str>, u32>,
    is_html: bool,
}

impl Words {
    /// Counts the words of a text; HTML without any has one that stands for its pictures.
    pub(super) fn read(text: &Text, is_html: bool, has_image: bool) -> Words {
        let mut words = Words { counts: HashMap::default(), is_html };
        let all = text.characters.split(|c| is_space(c, text.is_wide));
        for word in all.filter(|word| word.chars().any(|c| is_word(c, text.is_wide))) {
            match words.counts.get_mut(word) {
                Some(count) => *count += 1,
                None => drop(words.counts.insert(word.into(), 1)),
            }
        }
        if is_html && has_image && words.counts.is_empty() {
            words.counts.insert("\n".into(), 1);
        }
        words
    }
}

impl Alternatives {
    /// Compares the versions; `words` are those of the parts, none where one is not rendered.
    pub(super) fn read(parts: &[Part], words: &[Option<Words>]) -> Alternatives {
        let mut out = Alternatives::default();
        if is_invitation(parts) {
            return out;
        }
        for (at, part) in parts.iter().enumerate().filter(|(_, part)| is_alternative(part)) {
            let inner = parts[at + 1..].iter().take_while(|inner| inner.depth > part.depth).count();
            out.compare(parts.iter().zip(words).skip(at).take(inner + 1));
        }
        out
    }

    fn compare<'a>(&mut self, parts: impl Iterator<Item = (&'a Part, &'a Option<Words>)>) {
        let (mut html, mut plain): (HashMap<&str, u32>, HashMap<&str, u32>) = Default::default();
        let is_text = |part: &Part| {
            part.kind
                .strip_prefix("text")
                .is_some_and(|rest| !rest.bytes().next().is_some_and(super::perl::is_word_byte))
        };
        for (_, words) in parts.filter(|(part, _)| is_text(part)) {
            let Some(words) = words else { continue };
            let all = if words.is_html { &mut html } else { &mut plain };
            for (word, count) in &words.counts {
                // The mark of a picture only where there is no word.
                if &**word != "\n" || all.is_empty() {
                    *all.entry(word).or_default() += count;
                }
            }
        }
        if html.is_empty() {
            return;
        }
        (self.html_words, self.plain_words) = (count(html.len()), count(plain.len()));
        let left = html.iter().filter(|(word, count)| plain.get(*word).is_none_or(|found| found < count)).count();
        self.percent = self.percent.max(left as f64 / html.len() as f64 * 100.0);
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// `multipart/alternative`, with nothing that goes on as a word.
pub(super) fn is_alternative(part: &Part) -> bool {
    let rest = part.kind.strip_prefix("multipart/alternative");
    rest.is_some_and(|rest| !rest.bytes().next().is_some_and(super::perl::is_word_byte))
}

/// HTML and a calendar, and nothing else.
fn is_invitation(parts: &[Part]) -> bool {
    let kinds: Vec<&str> = parts.iter().take(4).map(|part| &*part.kind).collect();
    kinds == ["multipart/alternative", "text/html", "text/calendar"]
}
