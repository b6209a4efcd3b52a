//! The words of a file, in statements: a line, the head of a block with its brace, or the end of a block.

use crate::spam::Place;
use crate::web::loading::{Source, lines};

/// A statement: its words, without a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub place: Place,
    pub words: Vec<String>,
}

impl Statement {
    pub fn words(&self) -> Vec<&str> {
        self.words.iter().map(String::as_str).collect()
    }

    pub fn opens(&self) -> bool {
        self.words.last().is_some_and(|word| word == "{")
    }

    pub fn closes(&self) -> bool {
        self.words == ["}"]
    }
}

/// Cuts a file into statements. An opening brace ends one, even on a line of its own; a closing brace is one.
pub(super) fn statements(source: &Source) -> Vec<Statement> {
    let mut all: Vec<Statement> = Vec::new();
    for (place, line) in lines(source) {
        let line = String::from_utf8_lossy(line);
        let text = line.split('#').next().unwrap_or_default().replace('{', " { ").replace('}', " } ");
        // The words belong to the last statement until it is ended.
        let mut is_open = false;
        for word in text.split_whitespace() {
            let begins = match word {
                "{" => !is_open && all.last().is_none_or(|last| last.opens() || last.closes()),
                "}" => true,
                _ => !is_open,
            };
            if begins {
                all.push(Statement { place: place.clone(), words: Vec::new() });
            }
            if let Some(last) = all.last_mut() {
                last.words.push(word.trim_matches('"').into());
            }
            is_open = !matches!(word, "{" | "}");
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_end_statements_wherever_they_stand() {
        let text =
            "acl { a within w { pass !b any # all\n} else {pass none}\n}\ndest d\n{\n\tdomainlist \"d/x\"\n}\n{ }\n";
        let all = statements(&Source { name: "s".into(), bytes: text.as_bytes().into() });
        let shown: Vec<String> = all.iter().map(|one| format!("{}:{}", one.place.line, one.words.join(" "))).collect();
        let wanted = [
            "1:acl {",
            "1:a within w {",
            "1:pass !b any",
            "2:}",
            "2:else {",
            "2:pass none",
            "2:}",
            "3:}",
            "4:dest d {",
            "6:domainlist d/x",
            "7:}",
            "8:{",
            "8:}",
        ];
        assert_eq!(shown, wanted);
    }
}
