//! SQL queries, split into text and parameters.
//!
//! A literal in single quotes with a placeholder (`'%s'`, `'@%d'`) becomes one parameter as a whole; so does a
//! placeholder outside of quotes. The text that the server reads comes from the configuration alone, so a key cannot
//! change its meaning.

use crate::pattern::{Key, Pattern};

/// Form of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `$1`, `$2`: PostgreSQL.
    Numbered,
    /// `?`: MySQL, SQLite.
    Marked,
}

/// A query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Text that the server prepares.
    pub text: String,
    parameters: Vec<Pattern>,
}

impl Statement {
    /// Splits a query.
    ///
    /// # Errors
    /// The query has no placeholder, or one in a place where a parameter is impossible.
    pub fn parse(query: &str, style: Style) -> Result<Statement, String> {
        let mut reader = Reader { rest: query, text: String::new(), parameters: Vec::new(), style };
        while let Some(character) = reader.rest.chars().next() {
            reader.read(character)?;
        }
        let Reader { text, parameters, .. } = reader;
        match parameters.is_empty() {
            true => Err("it is the same for everybody: '%s', '%u' or '%d' is missing".into()),
            false => Ok(Statement { text, parameters }),
        }
    }

    /// Returns the parameters for a key; `None` if it has no domain and one is needed.
    pub fn fill(&self, key: &Key) -> Option<Vec<String>> {
        self.parameters.iter().map(|pattern| pattern.fill(key, str::to_owned)).collect()
    }
}

struct Reader<'a> {
    rest: &'a str,
    text: String,
    parameters: Vec<Pattern>,
    style: Style,
}

impl Reader<'_> {
    /// Reads the token that begins with this character.
    fn read(&mut self, character: char) -> Result<(), String> {
        match character {
            '\'' => self.literal(),
            '"' | '`' => self.name(character),
            '-' if self.rest.starts_with("--") => self.pass(self.rest.find('\n').unwrap_or(self.rest.len())),
            '/' if self.rest.starts_with("/*") => {
                self.pass(self.rest.find("*/").map_or(self.rest.len(), |end| end.saturating_add(2)))
            }
            '%' => self.place(),
            '$' if self.style == Style::Numbered => Err("$ cannot stand in it".into()),
            '?' if self.style == Style::Marked => Err("? cannot stand in it".into()),
            _ => self.pass(character.len_utf8()),
        }
    }

    /// Copies bytes unchanged.
    fn pass(&mut self, bytes: usize) -> Result<(), String> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or("it ends too soon")?;
        self.text.push_str(taken);
        self.rest = rest;
        Ok(())
    }

    fn place(&mut self) -> Result<(), String> {
        let letter = self.rest.chars().nth(1);
        let pattern = Pattern::of(letter)?;
        match pattern.is_constant() {
            true => self.text.push('%'),
            false => self.parameter(pattern),
        }
        self.rest = self.rest.get(2..).unwrap_or_default();
        Ok(())
    }

    fn parameter(&mut self, pattern: Pattern) {
        self.parameters.push(pattern);
        match self.style {
            Style::Numbered => self.text.push_str(&format!("${}", self.parameters.len())),
            Style::Marked => self.text.push('?'),
        }
    }

    fn literal(&mut self) -> Result<(), String> {
        let end = closed(self.rest, '\'')?;
        let raw = self.rest.get(1..end.saturating_sub(1)).unwrap_or_default();
        if !raw.contains('%') {
            return self.pass(end);
        }
        let pattern = Pattern::parse(&raw.replace("''", "'"))?;
        if raw.contains('\\') || self.text.ends_with(|before: char| before.is_alphanumeric() || before == '&') {
            return Err(format!("'{raw}': with a percent sign a literal has no backslash, and no letter before it"));
        }
        match pattern.is_constant() {
            true => self.text.push_str(&format!("'{}'", raw.replace("%%", "%"))),
            false => self.parameter(pattern),
        }
        self.rest = self.rest.get(end..).unwrap_or_default();
        Ok(())
    }

    /// Copies text in other quotes.
    fn name(&mut self, quote: char) -> Result<(), String> {
        let end = closed(self.rest, quote)?;
        match self.rest.get(..end).is_some_and(|name| name.contains('%')) {
            true => {
                Err(format!("{}: a percent sign stands in single quotes", self.rest.get(..end).unwrap_or_default()))
            }
            false => self.pass(end),
        }
    }
}

/// Returns the end of a quoted text, after its closing quote; doubled quotes belong to the text.
fn closed(text: &str, quote: char) -> Result<usize, String> {
    let mut at = 1_usize;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let end = rest.find(quote).ok_or(format!("{quote} is not closed"))?;
        at = at.saturating_add(end).saturating_add(1);
        if !text.get(at..).unwrap_or_default().starts_with(quote) {
            return Ok(at);
        }
        at = at.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str, style: Style) -> (String, Vec<String>) {
        let statement = Statement::parse(query, style).unwrap();
        (statement.text.clone(), statement.fill(&Key::of("o'hara@a.test").unwrap()).unwrap())
    }

    #[test]
    fn a_key_becomes_parameters_and_never_text() {
        let (text, values) = parse("SELECT 1 FROM m WHERE a='%s' OR a='@%d' OR u=%u", Style::Numbered);
        assert_eq!(text, "SELECT 1 FROM m WHERE a=$1 OR a=$2 OR u=$3");
        assert_eq!(values, ["o'hara@a.test", "@a.test", "o'hara"]);
        let (text, values) =
            parse("SELECT 'it''s 5%%', \"q\" -- 50%\n/* 'x */ FROM `m` WHERE a LIKE 'it''s %u%%'", Style::Marked);
        assert_eq!(text, "SELECT 'it''s 5%', \"q\" -- 50%\n/* 'x */ FROM `m` WHERE a LIKE ?");
        assert_eq!(values, ["it's o'hara%"]);
        assert_eq!(parse("SELECT 7 %% 2 WHERE x = '%u'", Style::Marked).0, "SELECT 7 % 2 WHERE x = ?");
    }

    #[test]
    fn places_where_none_can_be_are_refused() {
        for (query, wanted) in [
            ("SELECT 1", "same for everybody"),
            ("SELECT '%x' WHERE a='%s'", "%x is not"),
            ("SELECT 1 WHERE a=\"%s\"", "single quotes"),
            ("SELECT 1 WHERE a='%s", "not closed"),
            ("SELECT 1 WHERE a=E'%s'", "no letter"),
            ("SELECT 1 WHERE a='\\%s'", "no backslash"),
            ("SELECT $$x$$ WHERE a='%s'", "$ cannot"),
            ("SELECT 1 WHERE a=%", "is not %s"),
        ] {
            let error = Statement::parse(query, Style::Numbered).unwrap_err();
            assert!(error.contains(wanted), "{query}: {error}");
        }
    }

    #[test]
    fn any_text_is_read_or_refused() {
        let alphabet = ["'", "\"", "`", "%", "s", "%s", "%%", "-", "--", "/*", "*/", "\\", "$", "?", "é", "\n", " a"];
        let mut state = 7_u64;
        for _ in 0..20_000 {
            let mut query = String::new();
            for _ in 0..8 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                query.push_str(alphabet[(state >> 33) as usize % alphabet.len()]);
            }
            for style in [Style::Numbered, Style::Marked] {
                if let Ok(statement) = Statement::parse(&query, style) {
                    assert!(!statement.fill(&Key::of("k@d").unwrap()).unwrap().is_empty(), "{query}");
                }
            }
        }
    }
}
