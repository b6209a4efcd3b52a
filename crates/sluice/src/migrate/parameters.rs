//! Postfix's `main.cf`: logical lines with their places, and values in which names are expanded.
//!
//! A line that begins with white space goes on the one before it; comments and empty lines do not end it. Of two lines for one name the last
//! counts. Bounds: values of [`VALUE_BYTES_MAX`] bytes, [`STEPS_MAX`] names in one value, names in names [`DEPTH_MAX`] deep.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// The longest value, in bytes.
const VALUE_BYTES_MAX: usize = 256 << 10;
const STEPS_MAX: u32 = 10_000;

/// How deep values name others.
const DEPTH_MAX: usize = 20;

/// Values that Postfix has without a line, as far as others name them or they matter here.
const DEFAULTS: &[(&str, &str)] = &[
    ("alias_maps", "hash:/etc/aliases"),
    ("command_directory", "/usr/sbin"),
    ("daemon_directory", "/usr/lib/postfix/sbin"),
    ("data_directory", "/var/lib/postfix"),
    ("default_database_type", "hash"),
    ("default_transport", "smtp"),
    ("inet_interfaces", "all"),
    ("inet_protocols", "all"),
    ("mail_name", "Postfix"),
    ("mail_version", "3.7"),
    ("compatibility_level", "0"),
    ("mydestination", "$myhostname, localhost.$mydomain, localhost"),
    ("myorigin", "$myhostname"),
    ("mynetworks", "127.0.0.0/8 [::1]/128"),
    ("queue_directory", "/var/spool/postfix"),
    ("relay_transport", "relay"),
    ("virtual_alias_domains", "$virtual_alias_maps"),
    ("virtual_mailbox_domains", "$virtual_mailbox_maps"),
    ("virtual_transport", "virtual"),
];

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// The file as it is named to people.
    pub file: String,
    /// Its number, from 1.
    pub line: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The logical lines of a file: where each begins, and its text in one line.
pub fn logical_lines(file: &str, text: &str) -> Vec<(Place, String)> {
    let mut found: Vec<(Place, String)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let is_comment = line.trim_start().starts_with('#') || line.trim().is_empty();
        match (is_comment, line.starts_with([' ', '\t']), found.last_mut()) {
            (true, _, _) => {}
            (false, true, Some((_, whole))) => {
                whole.push(' ');
                whole.push_str(line.trim());
            }
            _ => found.push((Place { file: file.into(), line: at + 1 }, line.trim().to_owned())),
        }
    }
    found
}

/// The parameters of a configuration.
#[derive(Debug, Default)]
pub struct Parameters {
    set: BTreeMap<String, (Place, String)>,
    /// Lines that another line of the same name replaces: place, name, value. Lines that set nothing are names without a value.
    pub void: Vec<(Place, String, String)>,
    defaults: BTreeMap<String, String>,
    /// Names that values name.
    named: RefCell<BTreeSet<String>>,
    /// Names that were expanded in the value under way.
    steps: Cell<u32>,
    /// The value under way was not expanded to its end.
    is_cut: Cell<bool>,
}

impl Parameters {
    /// Reads the `main.cf` of a folder, on a machine of this name.
    pub fn parse(file: &str, text: &str, folder: &str, host: &str) -> Parameters {
        let mut parameters = Parameters::default();
        for (place, line) in logical_lines(file, text) {
            match line.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
                Some((name, value)) if is_name(name) => {
                    let before = parameters.set.insert(name.to_owned(), (place, value.to_owned()));
                    parameters.void.extend(before.map(|(place, value)| (place, name.to_owned(), value)));
                }
                _ => parameters.void.push((place, line, String::new())),
            }
        }
        let defaults = DEFAULTS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        parameters.defaults = defaults.collect();
        for (name, value) in [("config_directory", folder), ("meta_directory", folder), ("myhostname", host)] {
            parameters.defaults.insert(name.into(), value.into());
        }
        let host = parameters.value("myhostname");
        let domain = host.split_once('.').map_or("localdomain", |(_, domain)| domain);
        parameters.defaults.insert("mydomain".into(), domain.into());
        parameters
    }

    /// The same with values in place of these, as a service of `master.cf` has them.
    pub fn with(&self, values: &[(Place, String, String)]) -> Parameters {
        let mut set = self.set.clone();
        for (place, name, value) in values {
            set.insert(name.clone(), (place.clone(), value.clone()));
        }
        Parameters { set, void: Vec::new(), defaults: self.defaults.clone(), ..Parameters::default() }
    }

    /// All that lines set: name, place, value as it stands.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Place, &str)> {
        self.set.iter().map(|(name, (place, value))| (name.as_str(), place, value.as_str()))
    }

    /// Whether a value names this parameter.
    pub fn is_named(&self, name: &str) -> bool {
        self.named.borrow().contains(name)
    }

    /// The line that sets a parameter.
    pub fn place(&self, name: &str) -> Option<&Place> {
        self.set.get(name).map(|(place, _)| place)
    }

    /// Whether a line sets a parameter to something.
    pub fn is_set(&self, name: &str) -> bool {
        self.set.contains_key(name) && !self.value(name).is_empty()
    }

    /// The value of a parameter, expanded; empty where there is none.
    pub fn value(&self, name: &str) -> String {
        self.expanded(self.raw(name))
    }

    /// Whether a value names itself, or goes on beyond all bounds.
    pub fn is_endless(&self, name: &str) -> bool {
        self.value(name);
        self.is_cut.get()
    }

    /// The words of a value: parted by white space and commas, but not within braces.
    pub fn list(&self, name: &str) -> Vec<String> {
        words(&self.value(name))
    }

    /// Whether a value is `yes`.
    pub fn is_yes(&self, name: &str) -> bool {
        self.value(name).eq_ignore_ascii_case("yes")
    }

    fn raw(&self, name: &str) -> &str {
        let set = self.set.get(name).map(|(_, value)| value);
        set.or_else(|| self.defaults.get(name)).map_or("", String::as_str)
    }

    /// Expands a value, or a line of another file.
    pub fn expanded(&self, value: &str) -> String {
        self.steps.set(0);
        self.is_cut.set(false);
        self.expand(value, 0)
    }

    fn expand(&self, value: &str, depth: usize) -> String {
        let (mut out, mut rest) = (String::new(), value);
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            self.steps.set(self.steps.get() + 1);
            if depth >= DEPTH_MAX || out.len() > VALUE_BYTES_MAX || self.steps.get() > STEPS_MAX {
                self.is_cut.set(true);
                return out;
            }
            rest = self.expand_one(rest, depth, &mut out);
        }
        out.push_str(rest);
        out
    }

    /// Appends the value of the name after a `$`; returns the rest.
    fn expand_one<'t>(&self, rest: &'t str, depth: usize, out: &mut String) -> &'t str {
        if let Some(rest) = rest.strip_prefix('$') {
            out.push('$');
            return rest;
        }
        if let Some((inner, rest)) = braced(rest, '{', '}').or_else(|| braced(rest, '(', ')')) {
            out.push_str(&self.conditional(inner, depth));
            return rest;
        }
        let end = rest.find(|letter: char| !is_letter(letter)).unwrap_or(rest.len());
        match end {
            0 => out.push('$'),
            _ => out.push_str(&self.of_name(&rest[..end], depth)),
        }
        &rest[end..]
    }

    fn of_name(&self, name: &str, depth: usize) -> String {
        self.named.borrow_mut().insert(name.to_owned());
        self.expand(self.raw(name), depth + 1)
    }

    /// `name`, `name?x`, `name:x`, `name?{x}:{y}`, and the same with a comparison `{a} == {b}` in place of the name.
    fn conditional(&self, inner: &str, depth: usize) -> String {
        let inner = inner.trim();
        let (is_true, value, rest) = match self.comparison(inner, depth) {
            Some((is_true, rest)) => (is_true, String::new(), rest),
            None => {
                let end = inner.find(|letter: char| !is_letter(letter)).unwrap_or(inner.len());
                let value = self.of_name(&inner[..end], depth);
                (!value.is_empty(), value, &inner[end..])
            }
        };
        let rest = rest.trim_start();
        let choose = |text: &str| match braced(text.trim_start(), '{', '}') {
            Some((inner, rest)) => (inner.trim().to_owned(), rest.trim_start().to_owned()),
            None => (text.to_owned(), String::new()),
        };
        let chosen = match rest.split_at_checked(1) {
            Some(("?", rest)) => {
                let (yes, rest) = choose(rest);
                let no = rest.strip_prefix(':').map(|rest| choose(rest).0).unwrap_or_default();
                if is_true { yes } else { no }
            }
            Some((":", _)) if is_true => return value,
            Some((":", rest)) => choose(rest).0,
            _ => return value,
        };
        self.expand(&chosen, depth + 1)
    }

    fn comparison<'t>(&self, inner: &'t str, depth: usize) -> Option<(bool, &'t str)> {
        let (left, rest) = braced(inner, '{', '}')?;
        let rest = rest.trim_start();
        let operator = ["==", "!=", "<=", ">=", "<", ">"].into_iter().find(|operator| rest.starts_with(operator))?;
        // "<=level" and the like compare versions, as numbers do.
        let after = rest[operator.len()..].trim_start().trim_start_matches("level").trim_start();
        let (right, rest) = braced(after, '{', '}')?;
        let [left, right] = [left, right].map(|side| self.expand(side.trim(), depth + 1));
        let number = |text: &str| text.split('.').map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<u64>>>();
        let order = match (number(&left), number(&right)) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => left.cmp(&right),
        };
        let is_true = match operator {
            "==" => order.is_eq(),
            "!=" => order.is_ne(),
            "<=" => order.is_le(),
            ">=" => order.is_ge(),
            "<" => order.is_lt(),
            _ => order.is_gt(),
        };
        Some((is_true, rest))
    }
}

/// The words of a text: parted by white space and commas, but not within braces.
pub fn words(text: &str) -> Vec<String> {
    let (mut found, mut word, mut depth) = (Vec::new(), String::new(), 0usize);
    for letter in text.chars().chain([' ']) {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (letter.is_whitespace() || letter == ',') {
            found.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
        } else {
            word.push(letter);
        }
    }
    found.extend(Some(word).filter(|word| !word.trim().is_empty()));
    found
}

/// The text within a pair of brackets at the front, and what follows.
fn braced(text: &str, open: char, close: char) -> Option<(&str, &str)> {
    let mut depth = 0usize;
    text.strip_prefix(open)?;
    for (at, letter) in text.char_indices() {
        if letter == open {
            depth += 1;
        } else if letter == close {
            depth -= 1;
            if depth == 0 {
                return Some((&text[1..at], &text[at + 1..]));
            }
        }
    }
    None
}

fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| is_letter(letter) || letter == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Parameters {
        Parameters::parse("main.cf", text, "/etc/postfix", "mx.example.org")
    }

    #[test]
    fn lines_go_on_and_the_last_of_a_name_counts() {
        let text = "# a\na = 1,\n  # between\n\n\t2\nb=x\n a = not a line of its own\nb =\nno line\n";
        let parameters = parse(text);
        assert_eq!(parameters.list("a"), ["1", "2"]);
        assert_eq!((parameters.value("b").as_str(), parameters.place("b").unwrap().line), ("", 8));
        let void: Vec<_> = parameters.void.iter().map(|(place, name, value)| (place.line, &**name, &**value)).collect();
        assert_eq!(void, [(6, "b", "x a = not a line of its own"), (9, "no line", "")]);
    }

    #[test]
    fn names_are_expanded() {
        let parameters = parse("a = 1\nempty =\nlevel = 3.6\nloop = x$loop\n");
        for (value, wanted) in [
            ("$a-$(a)-${a}", "1-1-1"),
            ("${a?yes}${empty?no}", "yes"),
            ("${a:no}${empty:yes}", "1yes"),
            ("${a?{x y}:{z}} ${empty?{x}:{z $a}}", "x y z 1"),
            ("${{$level} < {4} ? {old} : {new}}", "old"),
            ("${{$level} >=level {3.10} ? {new} : {old}}", "old"),
            ("${{a} == {b} ? {1}}", ""),
            ("$mydomain $$a $", "example.org $a $"),
            ("${a", "${a"),
            ("hash:$config_directory/x ${meta_directory}", "hash:/etc/postfix/x /etc/postfix"),
            ("$mydestination", "mx.example.org, localhost.example.org, localhost"),
        ] {
            assert_eq!(parameters.expanded(value), wanted, "{value}");
        }
        assert!(parameters.value("loop").len() < 100 && parameters.is_named("loop") && !parameters.is_named("b"));
        let bomb: String = (0..40).map(|n| format!("b{n} = {}\n", format!("$b{}", n + 1).repeat(10))).collect();
        assert!(parse(&(bomb + "b40 = x\n")).value("b25").len() < VALUE_BYTES_MAX * 20);
        // Each name four times in itself.
        assert!(parse("a = $a$a$a$a\n").value("a").is_empty());
    }

    #[test]
    fn words_in_braces_are_one() {
        assert_eq!(words("a, { b c } d,,e"), ["a", "{ b c }", "d", "e"]);
        assert_eq!(words(""), Vec::<String>::new());
    }
}
