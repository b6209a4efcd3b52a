//! The report about a mail, as the configuration's template has it, and the table of what hit.

use super::check::{Hit, Outcome};
use super::engine::Engine;
use super::markup::{self, Break};
use crate::spam::message::Message;
use crate::spam::preferences::Preferences;
use crate::spam::recalled::Recalled;
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
        let templates = self.templates;
        let headers = if self.outcome.is_spam() { &templates.spam } else { &templates.ham };
        let of = |name: &str, text: &str| (name.to_string(), markup::field(name, &self.filled(text)));
        let mut fields: Vec<(String, String)> = headers
            .iter()
            .map(|header| of(&header.name, &markup::unescaped(&String::from_utf8_lossy(&header.text))))
            .collect();
        if with_report && !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("report")) {
            fields.push(of("Report", "_REPORT_"));
        }
        fields
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
        const COLUMNS: usize = 75;
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
            let description = markup::wrap(&description, "*      ", &first, COLUMNS, Break::Blank);
            out += &format!("* {score} {} {}{}\n", rule.name, hit.area, description.trim_start());
            for note in &hit.notes {
                let note = String::from_utf8_lossy(note).into_owned();
                let note = if rule.flags.has("nolog") { "*REDACTED*".to_string() } else { note };
                out += &format!("*      [{note}]\n");
            }
        }
        out
    }

    /// Each hit that has a score: points, rule, description.
    pub fn summary(&self) -> String {
        let rules = self.engine.rules();
        let visible = |hit: &&Hit| !rules.names()[hit.rule as usize].is_subrule();
        self.outcome.hits.iter().filter(visible).map(|hit| self.row(hit)).collect()
    }

    fn row(&self, hit: &Hit) -> String {
        let rules = self.engine.rules();
        let rule = &rules.names()[hit.rule as usize];
        let score = shown_points(hit.score(rules, self.outcome.set()));
        let start = format!("{score} {:<22} {}", rule.name, hit.area);
        let description = rule.description.as_ref().map(|text| String::from_utf8_lossy(text).into_owned());
        let description = description.filter(|text| !text.is_empty()).unwrap_or("No description available.".into());
        let mut out = format!("{start}{}\n", wrapped(&description, 3 + rule.name.len() + score.len() + hit.area.len()));
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

    fn filled(&self, template: &str) -> String {
        let mut out = String::new();
        let mut rest = template;
        while let Some(at) = rest.find('_') {
            out += &rest[..at];
            let inner = &rest[at + 1..];
            match tag(inner).and_then(|(name, argument, length)| Some((self.value(name, argument)?, length))) {
                Some((value, length)) => {
                    out += &value;
                    rest = &inner[length..];
                }
                None => {
                    out.push('_');
                    rest = inner;
                }
            }
        }
        out + rest
    }

    fn value(&self, name: &str, argument: Option<&str>) -> Option<String> {
        let rules = self.engine.rules();
        let outcome = self.outcome;
        Some(match name {
            "YESNO" | "YESNOCAPS" => {
                let (yes, no) = argument.map_or(("Yes", "No"), |words| words.split_once(',').unwrap_or((words, "No")));
                let word = if outcome.is_spam() { yes } else { no };
                if name == "YESNO" { word.into() } else { word.to_uppercase() }
            }
            "SCORE" | "HITS" => padded(shown_score(outcome), argument),
            "REQD" => format!("{:.1}", outcome.required),
            "SUMMARY" => self.summary().trim_end_matches('\n').to_string() + "\n",
            "PREVIEW" => self.preview(),
            "HOSTNAME" => match self.settings.text("report_hostname") {
                Some(host) => String::from_utf8_lossy(host).into_owned(),
                None => self.host.into(),
            },
            "CONTACTADDRESS" => match self.settings.text("report_contact") {
                Some(contact) => String::from_utf8_lossy(contact).into_owned(),
                None => "the administrator of that system".into(),
            },
            "VERSION" => "4.0.1".into(),
            // When that version was made.
            "SUBVERSION" => "2024-03-25".into(),
            "AUTOLEARN" => outcome.autolearn.map_or("disabled".into(), |autolearn| autolearn.to_string()),
            "REPORT" => format!("\n{}", self.terse()),
            "TESTS" => {
                let separator = argument.filter(|text| !text.is_empty()).unwrap_or(",");
                let names = outcome.hits.iter().map(|hit| &rules.names()[hit.rule as usize]);
                let mut names: Vec<&str> = names.filter(|rule| !rule.is_subrule()).map(|rule| &*rule.name).collect();
                names.sort_unstable();
                if names.is_empty() { "none".into() } else { names.join(separator) }
            }
            "STARS" => {
                let star = argument.filter(|text| !text.is_empty()).unwrap_or("*");
                star.repeat(outcome.total.value().clamp(0.0, 50.0) as usize)
            }
            _ => return Recalled::tag(outcome.recalled.as_ref(), name),
        })
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
        let text = words.collect::<Vec<_>>().join(" ");
        let mut out = String::new();
        let mut column = "Content preview:  ".len();
        for word in text.split(' ').filter(|word| !word.is_empty()) {
            if column + word.len() > WIDTH && column > 2 {
                out.push_str("\n  ");
                column = 2;
            }
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(word);
            column += word.len() + 1;
        }
        out
    }
}

/// The points of a rule.
fn shown_points(score: f64) -> String {
    if score.abs() >= 10.0 { format!("{score:4.0}") } else { format!("{:4.1}", nonzero(score)) }
}

/// No minus before nothing.
fn nonzero(score: f64) -> f64 {
    if score.abs() < 0.05 { 0.0 } else { score }
}

/// The score with one decimal, and never on the wrong side of what is required.
fn shown_score(outcome: &Outcome) -> String {
    let value = outcome.total.value();
    let mut shown = format!("{:.1}", nonzero(value));
    let required = format!("{:.1}", outcome.required);
    if !outcome.is_spam() && shown.parse::<f64>().unwrap_or(0.0) >= required.parse::<f64>().unwrap_or(0.0) {
        shown = format!("{:.1}", outcome.required - 0.1);
    }
    shown
}

/// `_SCORE(00)_` and the like: the argument says how wide it gets.
fn padded(score: String, argument: Option<&str>) -> String {
    let Some(pad) = argument.filter(|pad| !pad.is_empty() && pad.bytes().all(|byte| byte == b'0' || byte == b' '))
    else {
        return score;
    };
    let missing = (pad.len() + 3).saturating_sub(score.len());
    pad[..missing.min(pad.len())].to_string() + &score
}

/// The name of a tag, its argument, and how long both are with the underscore behind.
fn tag(text: &str) -> Option<(&str, Option<&str>, usize)> {
    let name_end = text.find(|letter: char| !(letter.is_ascii_uppercase() || letter.is_ascii_digit()))?;
    let (name, rest) = text.split_at(name_end);
    if name.is_empty() {
        return None;
    }
    if let Some(inner) = rest.strip_prefix('(') {
        let end = inner.find(")_")?;
        return Some((name, Some(&inner[..end]), name_end + 1 + end + 2));
    }
    rest.starts_with('_').then_some((name, None, name_end + 1))
}

/// A line of a template: quotes around it keep its blanks.
fn unquoted(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line).into_owned();
    match line.strip_prefix('"').and_then(|line| line.strip_suffix('"')) {
        Some(inner) => inner.into(),
        None => line,
    }
}

/// A description, wrapped where the report ends; the first line begins at `column`.
fn wrapped(text: &str, column: usize) -> String {
    let mut out = String::new();
    let mut column = column.max(INDENT);
    for word in text.split_ascii_whitespace() {
        let is_first = out.is_empty();
        if !is_first && column + 1 + word.len() > WIDTH {
            out.push('\n');
            out.push_str(&" ".repeat(INDENT));
            column = INDENT;
        } else if !is_first {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out
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
    fn tags_are_read_with_their_arguments() {
        assert_eq!(tag("SCORE_ x"), Some(("SCORE", None, 6)));
        assert_eq!(tag("YESNO(, NOT)_x"), Some(("YESNO", Some(", NOT"), 13)));
        assert_eq!(tag("lower_"), None);
        assert_eq!(
            wrapped("URI host has a public dotted-decimal IPv4 address", 28),
            "URI host has a public dotted-decimal IPv4\n                            address"
        );
    }
}
