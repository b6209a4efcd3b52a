//! Terms of a searched text.

use alloc::string::String;
use alloc::vec::Vec;

use memchr::memmem::Finder;

use crate::terms::{Class, DENSE, TERM_CHARACTERS_MAX, WITHIN_MAX, composed, lower};

/// Maximum number of parts; of a longer query the first words are searched for.
pub const PARTS_MAX: usize = 16;

/// A text that is searched for.
#[derive(Debug)]
pub struct Query {
    pub(crate) parts: Vec<Part>,
    is_exact: bool,
}

/// Something that a term has to hold. Terms stand between line feeds, so those belong to it where a term has to begin or end.
#[derive(Debug)]
pub(crate) struct Part(pub Finder<'static>);

/// A run of characters of one class.
struct Run {
    text: String,
    length: usize,
    is_dense: bool,
    /// It may go on before its first character, or behind its last.
    is_open: [bool; 2],
}

impl Query {
    /// Builds the query for a text; case does not matter.
    pub fn new(text: &str) -> Query {
        let text = composed(text);
        let runs = runs(&text);
        // Characters that terms leave out may be missing in the documents found.
        let is_plain = |character| !matches!(Class::of(character), Class::Blank | Class::Mark) && character != 'İ';
        let is_alone = runs.len() == 1 && text.chars().all(is_plain);
        let is_exact = is_alone && runs.iter().all(|run| run.length <= if run.is_dense { DENSE } else { WITHIN_MAX });
        let mut parts = Vec::new();
        runs.iter().for_each(|run| run.parts(&mut parts));
        parts.truncate(PARTS_MAX);
        let part = |wanted: String| Part(Finder::new(wanted.as_bytes()).into_owned());
        Query { parts: parts.into_iter().map(part).collect(), is_exact }
    }

    /// Whether there is nothing in it that terms know: it may be in any document.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether each document that is found holds the text.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }
}

fn runs(text: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut is_open = true;
    for character in text.chars() {
        let class = Class::of(character);
        if class == Class::Mark {
            continue;
        }
        let is_dense = class == Class::Dense;
        let goes_on = runs.last().is_some_and(|run| run.is_open[1] && run.is_dense == is_dense);
        if let Some(run) = runs.last_mut().filter(|_| class == Class::Blank || !goes_on) {
            run.is_open[1] = false;
        }
        if class == Class::Blank {
            is_open = false;
            continue;
        }
        if !goes_on {
            // A run after one of the other class begins a term.
            let is_first = is_open && runs.is_empty();
            runs.push(Run { text: String::new(), length: 0, is_dense, is_open: [is_first, true] });
        }
        if let Some(run) = runs.last_mut() {
            lower(character, |character| {
                run.text.push(character);
                run.length += 1;
            });
        }
    }
    runs
}

impl Run {
    /// Collects the strings that terms have to contain for a match.
    fn parts(&self, parts: &mut Vec<String>) {
        let [before, behind] = self.is_open.map(|is_open| if is_open { "" } else { "\n" });
        match (self.is_dense, self.length) {
            // Within three characters, or two that stand alone.
            (true, ..DENSE) => parts.push(self.text.clone()),
            (true, _) => self.windows(DENSE, 1, |window| parts.push(["\n", window, "\n"].concat())),
            (false, ..=WITHIN_MAX) => parts.push([before, &self.text, behind].concat()),
            (false, ..=TERM_CHARACTERS_MAX) if self.is_open == [false, false] => {
                parts.push([before, &self.text, behind].concat());
            }
            _ => self.windows(WITHIN_MAX, WITHIN_MAX, |window| parts.push(window.into())),
        }
    }

    /// Pieces of so many characters, so far apart; the last ends where the run does.
    fn windows(&self, length: usize, stride: usize, mut tell: impl FnMut(&str)) {
        let last = self.length.saturating_sub(length);
        let starts = (0..last).step_by(stride).chain([last]);
        let place = |at: usize| self.text.char_indices().nth(at).map_or(self.text.len(), |(place, _)| place);
        starts.for_each(|start| tell(&self.text[place(start)..place(start.saturating_add(length))]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (Vec<String>, bool) {
        let query = Query::new(text);
        let text = |part: &Part| String::from_utf8_lossy(part.0.needle()).into_owned();
        (query.parts.iter().map(text).collect(), query.is_exact)
    }

    fn expect(text: &str, wanted: &[&str], is_exact: bool) {
        assert_eq!(parts(text), (wanted.iter().map(|part| (*part).to_owned()).collect(), is_exact), "{text}");
    }

    #[test]
    fn a_word_may_be_part_of_a_term_and_of_several_only_the_outer_ones() {
        expect("Voice", &["voice"], true);
        expect("an invoice of", &["an\n", "\ninvoice\n", "\nof"], false);
        expect(" an ", &["\nan\n"], false);
        expect("a@b.example", &["a\n", "\nb\n", "\nexample"], false);
        expect("--", &[], false);
        expect("", &[], false);
    }

    #[test]
    fn what_is_longer_than_terms_is_looked_for_in_pieces() {
        let run: String = ('a'..='z').cycle().take(40).collect();
        expect(&run[..17], &[&run[..17]], true);
        expect(&run[..18], &[&run[..17], &run[1..18]], false);
        expect(&run, &[&run[..17], &run[17..34], &run[23..40]], false);
        expect(&format!("x {} y", &run[..20]), &["x\n", &format!("\n{}\n", &run[..20]), "\ny"], false);
    }

    #[test]
    fn scripts_without_blanks_are_looked_for_by_their_terms() {
        expect("密", &["密"], true);
        expect("密码", &["密码"], true);
        expect("解压密", &["\n解压密\n"], true);
        expect("解压密码", &["\n解压密\n", "\n压密码\n"], false);
        expect("密码x", &["密码", "\nx"], false);
    }
}
