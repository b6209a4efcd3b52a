//! The report about a mail, as the configuration's template has it, and the table of what hit.

mod tags;

use super::check::Outcome;
use super::engine::Engine;
use super::hit::Hit;
use super::markup::{self, Break};
use crate::spam::message::Message;
use crate::spam::preferences::Preferences;
use crate::spam::settings::Settings;
use crate::spam::template::Templates;

/// A report, made of what a check came to.
#[derive(Debug, Clone, Copy)]
pub struct Report<'r> {
    engine: &'r Engine,
    mail: &'r Message,
    outcome: &'r Outcome,
    host: &'r str,
    settings: &'r Settings,
    templates: &'r Templates,
}

/// The columns of a report.
const WIDTH: usize = 75;
/// Where descriptions begin.
const INDENT: usize = 28;

impl<'r> Report<'r> {
    /// A report about `mail`; `host` is the name of this machine.
    pub fn new(engine: &'r Engine, mail: &'r Message, outcome: &'r Outcome, host: &'r str) -> Report<'r> {
        let (settings, templates) = (engine.settings(), &engine.rules().templates);
        Report { engine, mail, outcome, host, settings, templates }
    }

    /// As the user wants it whom the mail is for.
    pub fn of(self, preferences: Option<&'r Preferences>) -> Report<'r> {
        match preferences {
            Some(own) => Report { settings: &own.settings, templates: &own.templates, ..self },
            None => self,
        }
    }

    /// The report, by the configuration's template. Tags that are not known stay as they are.
    pub fn text(&self) -> String {
        let lines = &self.templates.report;
        let template = lines.iter().map(|line| unquoted(line)).collect::<Vec<_>>().join("\n");
        let mut out = self.filled(&template);
        while out.ends_with('\n') {
            out.pop();
        }
        out + "\n"
    }

    /// The header fields that the configuration adds to such a mail, in order: what follows `X-Spam-`, and the value, folded,
    /// with lines that end in LF alone. `with_report`: `Report` too, as with `report_safe 0`.
    pub fn fields(&self, with_report: bool) -> Vec<(String, String)> {
        let mut fields: Vec<(String, String)> = self.headers(self.outcome.is_spam()).collect();
        if with_report && !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("report")) {
            fields.push(self.header("Report", "_REPORT_"));
        }
        fields
    }

    /// The header fields that are added to spam, or to ham.
    fn headers(&self, is_spam: bool) -> impl Iterator<Item = (String, String)> {
        let headers = if is_spam { &self.templates.spam } else { &self.templates.ham };
        let text = |text: &[u8]| markup::unescaped(&String::from_utf8_lossy(text));
        headers.iter().map(move |header| self.header(&header.name, &text(&header.text)))
    }

    fn header(&self, name: &str, template: &str) -> (String, String) {
        let text = self.filled(template);
        let is_folded = self.settings.number("fold_headers", 1.0) != 0.0;
        let value = if is_folded { markup::field(name, &text) } else { markup::line(&text) };
        (name.into(), value)
    }

    /// The rules that hit and are no sub-rules, with what each has added to the score.
    pub fn hits(&self) -> impl Iterator<Item = (&'r str, f64)> {
        let (rules, set) = (self.engine.rules(), self.outcome.set());
        let hits = self.outcome.hits.iter().map(move |hit| (&rules.names()[hit.rule as usize], hit));
        let visible = hits.filter(|(rule, _)| !rule.is_subrule());
        visible.map(move |(rule, hit)| (&*rule.name, hit.points(rules, set)))
    }

    /// Each hit in a line of its own, as `_REPORT_` has them.
    fn terse(&self) -> String {
        let columns = self.columns();
        let rules = self.engine.rules();
        let mut out = String::new();
        for hit in &self.outcome.hits {
            let rule = &rules.names()[hit.rule as usize];
            if rule.is_subrule() {
                continue;
            }
            let score = shown_points(hit.score(rules, self.outcome.set()));
            let description = rule.description.as_ref().map(|text| String::from_utf8_lossy(text).into_owned());
            let description = description.filter(|text| !text.is_empty()).unwrap_or("No description available.".into());
            let first = " ".repeat(4 + rule.name.len() + score.len() + hit.area.len());
            let description = markup::wrap(&description, "*      ", &first, columns, Break::Blank);
            let mut row = format!("* {score} {} {}{}\n", rule.name, hit.area, description.trim_start());
            for note in &hit.notes {
                let note = String::from_utf8_lossy(note).into_owned();
                let note = if rule.flags.has("nolog") { "*REDACTED*".to_string() } else { note };
                row += &format!("*      [{note}]\n");
            }
            out += &row.repeat(self.rows(hit));
        }
        out
    }

    /// Each hit that has a score: points, rule, description.
    pub fn summary(&self) -> String {
        let rules = self.engine.rules();
        let visible = |hit: &&Hit| !rules.names()[hit.rule as usize].is_subrule();
        self.outcome.hits.iter().filter(visible).map(|hit| self.row(hit).repeat(self.rows(hit))).collect()
    }

    /// The longest line of a description.
    fn columns(&self) -> usize {
        const COLUMNS_MAX: f64 = 10_000.0;
        self.settings.number("report_wrap_width", WIDTH as f64).clamp(1.0, COLUMNS_MAX) as usize
    }

    /// The rows of a hit: one for each that counts, unless its points are not those of the rule.
    fn rows(&self, hit: &Hit) -> usize {
        const ROWS_MAX: u32 = 100;
        let rule = &self.engine.rules().names()[hit.rule as usize];
        if hit.points.is_some() { 1 } else { hit.count.min(rule.flags.hits_max()).clamp(1, ROWS_MAX) as usize }
    }

    fn row(&self, hit: &Hit) -> String {
        let rules = self.engine.rules();
        let rule = &rules.names()[hit.rule as usize];
        let score = shown_points(hit.score(rules, self.outcome.set()));
        let start = format!("{score} {:<22} {}", rule.name, hit.area);
        let description = rule.description.as_ref().map(|text| String::from_utf8_lossy(text).into_owned());
        let description = description.filter(|text| !text.is_empty()).unwrap_or("No description available.".into());
        let first = " ".repeat(3 + rule.name.len() + score.len() + hit.area.len());
        let description = markup::wrap(&description, &" ".repeat(INDENT), &first, self.columns(), Break::Blank);
        let mut out = format!("{start}{}\n", description.trim_start());
        let notes = hit.notes.iter().map(|note| String::from_utf8_lossy(note).into_owned());
        for note in notes.flat_map(|note| cut(&note)) {
            let note = if rule.flags.has("nolog") { "*REDACTED*".to_string() } else { note };
            out += &match note.len() {
                48.. => format!("{:>78}\n", format!("[{note}]")),
                _ => format!("{:27} [{note}]\n", ""),
            };
        }
        out
    }

    /// The first words of the body.
    fn preview(&self) -> String {
        const BYTES_MIN: usize = 200;
        const PARAGRAPHS_MAX: usize = 3;
        let mut text = Vec::new();
        for paragraph in self.mail.body().iter().skip(1).take(PARAGRAPHS_MAX) {
            if text.len() >= BYTES_MIN {
                break;
            }
            text.extend_from_slice(paragraph);
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines = text.lines().map(|line| match line.char_indices().nth(BYTES_MIN) {
            Some((end, _)) => format!("{} [...]", &line[..end]),
            None => line.to_string(),
        });
        let text = lines.collect::<Vec<_>>().join(" ");
        let words = text
            .split_ascii_whitespace()
            .filter(|word| !(word.len() >= 10 && word.bytes().all(|byte| b"-_*.".contains(&byte))));
        wrapped(words)
    }
}

/// A preview in lines. As in SpamAssassin, a line ends behind the word that passes its width.
fn wrapped<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let mut out = String::new();
    let mut column = "Content preview:  ".len();
    for word in words {
        let between = match column {
            _ if out.is_empty() => "",
            ..WIDTH => " ",
            WIDTH => "\n  ",
            _ => "\n   ",
        };
        column = if between.starts_with('\n') { between.len() - 1 } else { column + between.len() } + word.len();
        out += between;
        out += word;
    }
    out
}

/// The points of a rule.
fn shown_points(score: f64) -> String {
    if score.abs() >= 10.0 { format!("{score:4.0}") } else { format!("{:4.1}", nonzero(score)) }
}

/// No minus before nothing.
fn nonzero(score: f64) -> f64 {
    if score.abs() < 0.05 { 0.0 } else { score }
}

/// A line of a template: quotes around it keep its blanks.
fn unquoted(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line).into_owned();
    match line.strip_prefix('"').and_then(|line| line.strip_suffix('"')) {
        Some(inner) => inner.into(),
        None => line,
    }
}

/// A note in pieces of up to 48 letters, cut at blanks.
fn cut(note: &str) -> Vec<String> {
    const BYTES_MAX: usize = 48;
    let mut pieces = Vec::new();
    let mut piece = String::new();
    for word in note.split_ascii_whitespace() {
        if !piece.is_empty() && piece.len() + 1 + word.len() > BYTES_MAX {
            pieces.push(std::mem::take(&mut piece));
        }
        if !piece.is_empty() {
            piece.push(' ');
        }
        piece.push_str(word);
    }
    pieces.push(piece);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_preview_ends_behind_the_word_that_passes_its_width() {
        // By wrap("...", "  ", "Content preview:  ", 75, 1) of Mail::SpamAssassin::Util.
        for (lengths, wanted) in [
            ([50, 9, 4], "50 9\n   4"),
            ([50, 6, 4], "50 6\n  4"),
            ([50, 5, 4], "50 5 4"),
            ([57, 9, 4], "57\n  9 4"),
            ([90, 80, 4], "90\n   80\n   4"),
        ] {
            let words = lengths.map(|length| "x".repeat(length));
            let named =
                lengths.iter().zip(&words).fold(wrapped(words.iter().map(|word| &**word)), |text, (length, word)| {
                    text.replacen(word, &length.to_string(), 1)
                });
            assert_eq!(named, wanted);
        }
    }
}
