//! The blocks of a file.

use std::collections::HashMap;
use std::sync::Arc;

use super::redirect;
use super::sources::{Choice, Source, Sources};
use super::statement::{Statement, statements};
use super::time::{Span, When};
use crate::spam::Place;
use crate::web::list::{Definition, Kind};
use crate::web::loading::{self, Loading};

/// The folder of lists, unless the file says another.
const DBHOME: &str = "/var/lib/squidguard/db";
/// Options of the first level without a meaning here.
const PASSED_OVER: [&str; 4] = ["logdir", "syslog", "ldapcachetime", "ldapprotover"];
/// Words of `pass` that are no destinations.
const WORDS: [&str; 4] = ["any", "all", "none", "in-addr"];
const NO_EFFECT: &str = "it has no effect";

/// A configuration that was read.
#[derive(Debug, Default)]
pub(in crate::web) struct Plan {
    pub sources: Sources,
    pub destinations: HashMap<Box<str>, Destination>,
    /// The branches of access rules, each a group of its own.
    pub branches: Vec<Branch>,
}

/// A destination: its lists, the time at which it holds, and its redirect.
#[derive(Debug, Default)]
pub(in crate::web) struct Destination {
    pub lists: Vec<Definition>,
    pub when: When,
    pub redirect: Option<Box<str>>,
}

/// A branch of access rules.
#[derive(Debug, Default)]
pub(in crate::web) struct Branch {
    pub source: Box<str>,
    /// The words of `pass`.
    pub words: Vec<Box<str>>,
    pub redirect: Option<Box<str>>,
}

/// Reads a configuration. Statements that are not understood are reported.
pub(in crate::web) fn read(source: &loading::Source, loading: &mut Loading<'_>) -> Plan {
    let statements = statements(source).into_iter().peekable();
    let mut reader = Reader { statements, loading, home: DBHOME.into(), times: HashMap::new(), plan: Plan::default() };
    while let Some(statement) = reader.statements.next() {
        reader.statement(&statement);
    }
    reader.plan.inherit_redirects();
    reader.plan
}

impl Plan {
    /// Gives branches without a redirect that of `default`.
    fn inherit_redirects(&mut self) {
        let of_default = self.branches.iter().find(|branch| &*branch.source == "default");
        let Some(redirect) = of_default.and_then(|branch| branch.redirect.clone()) else { return };
        for branch in &mut self.branches {
            branch.redirect.get_or_insert_with(|| redirect.clone());
        }
    }
}

struct Reader<'r, 'l> {
    statements: std::iter::Peekable<std::vec::IntoIter<Statement>>,
    loading: &'r mut Loading<'l>,
    home: String,
    times: HashMap<String, Arc<[Span]>>,
    plan: Plan,
}

impl Reader<'_, '_> {
    /// Reads a statement of the first level, and its block.
    fn statement(&mut self, statement: &Statement) {
        let place = &statement.place;
        match statement.words()[..] {
            ["dbhome", path] => self.home = path.trim_end_matches('/').into(),
            ["time", name, "{"] => self.time(name),
            ["src" | "source", name, "{"] => self.source(name),
            ["dest" | "destination", name, "{"] => self.destination(name),
            ["rew" | "rewrite", .., "{"] => {
                self.loading.error(place, "URLs are not rewritten", "lists of E2Guardian change them: urlregexplist");
                self.skip();
            }
            ["acl", "{"] => self.rules(),
            [name, ..] if PASSED_OVER.contains(&name) => {}
            _ => self.misread(statement),
        }
    }

    /// Reports a statement, and passes over its block.
    fn misread(&mut self, statement: &Statement) {
        let text = statement.words.join(" ");
        self.loading.error(&statement.place, format!("{text} is not understood"), NO_EFFECT);
        if statement.opens() {
            self.skip();
        }
    }

    /// The next statement of a block, until its end.
    fn within(&mut self) -> Option<Statement> {
        self.statements.next().filter(|statement| !statement.closes())
    }

    /// Passes over a block, and the blocks in it.
    fn skip(&mut self) {
        let mut depth = 1;
        while depth > 0
            && let Some(statement) = self.statements.next()
        {
            depth = depth + usize::from(statement.opens()) - usize::from(statement.closes());
        }
    }

    fn time(&mut self, name: &str) {
        let mut spans = Vec::new();
        while let Some(statement) = self.within() {
            match Span::read(&statement.words()) {
                Some(more) => spans.extend(more),
                None => self.misread(&statement),
            }
        }
        self.times.insert(name.into(), spans.into());
    }

    /// `within NAME`, `outside NAME` or nothing; `None` where that is not understood.
    fn when(&mut self, words: &[&str], place: &Place) -> Option<When> {
        let when = match *words {
            [] => Some(When::Always),
            ["within", name] => self.times.get(name).cloned().map(When::Within),
            ["outside", name] => self.times.get(name).cloned().map(When::Outside),
            _ => None,
        };
        if when.is_none() {
            let advice = "write within NAME or outside NAME, behind the time of that name";
            self.loading.error(place, format!("there is no time {}", words.join(" ")), advice);
        }
        when
    }

    fn source(&mut self, name: &str) {
        let mut source = Source { name: name.into(), ..Source::default() };
        while let Some(statement) = self.within() {
            let place = &statement.place;
            match statement.words()[..] {
                ["ip", ref texts @ ..] => self.addresses(&mut source, &texts.join(" "), place),
                ["iplist", path] => {
                    let text = self.entries(path, place);
                    self.addresses(&mut source, &text, place);
                }
                ["user", ref names @ ..] => users(&mut source, &names.join(" ")),
                ["userlist", path] => users(&mut source, &self.entries(path, place)),
                ["within" | "outside", _] => match self.when(&statement.words(), place) {
                    Some(when) => source.when = when,
                    None => source.is_unknown = true,
                },
                ["log" | "logfile", ..] => {}
                _ => {
                    source.is_unknown = true;
                    self.misread(&statement);
                }
            }
        }
        source.addresses.iter_mut().for_each(|addresses| addresses.seal());
        self.plan.sources.all.push(source);
    }

    /// Adds addresses. A blank may stand on either side of the dash of a range.
    fn addresses(&mut self, source: &mut Source, text: &str, place: &Place) {
        let all = source.addresses.get_or_insert_default();
        for text in text.replace(" - ", "-").split([' ', '\n', ',']).filter(|text| !text.is_empty()) {
            if !all.push(text, ()) {
                let advice = "write an address, a subnet or a range";
                self.loading.error(place, format!("{text} is no address"), advice);
            }
        }
    }

    /// The lines of a file of a source, without comments.
    fn entries(&mut self, path: &str, place: &Place) -> String {
        let path = self.path(path);
        let Some(source) = self.loading.file(&path, place) else { return String::new() };
        let lines = loading::lines(&source).map(|(_, line)| String::from_utf8_lossy(line).into_owned());
        lines.filter(|line| !line.starts_with('#')).map(|line| line + "\n").collect()
    }

    fn path(&self, path: &str) -> String {
        if path.starts_with('/') { path.into() } else { format!("{}/{path}", self.home) }
    }

    fn destination(&mut self, name: &str) {
        let mut destination = Destination::default();
        while let Some(statement) = self.within() {
            let place = &statement.place;
            match statement.words()[..] {
                ["redirect", text] => destination.redirect = self.redirect(text, place),
                ["within" | "outside", _] => {
                    destination.when = self.when(&statement.words(), place).unwrap_or_default();
                }
                ["log" | "logfile", ..] => {}
                [option, path] => match list_of(option) {
                    Some((kind, message)) => {
                        let (name, path, place) = (name.into(), self.path(path).into(), place.clone());
                        let list = Definition { kind, name, message, log_message: 0, path, walks: true, place };
                        destination.lists.push(list);
                    }
                    None => self.misread(&statement),
                },
                _ => self.misread(&statement),
            }
        }
        self.plan.destinations.insert(name.into(), destination);
    }

    fn redirect(&mut self, text: &str, place: &Place) -> Option<Box<str>> {
        let address = redirect::address(text);
        if address.is_none() {
            self.loading.error(place, format!("{text} is no URL of HTTP"), "our own page is shown");
        }
        address
    }

    fn rules(&mut self) {
        while let Some(statement) = self.within() {
            match statement.words()[..] {
                [source, ref when @ .., "{"] => self.branches(source, when, &statement.place),
                _ => self.misread(&statement),
            }
        }
    }

    /// Reads the branches of a source.
    fn branches(&mut self, source: &str, when: &[&str], place: &Place) {
        // Rules whose time is not known hold always: what they block stays blocked.
        let mut choices = vec![Choice { when: self.when(when, place).unwrap_or_default(), group: self.branch(source) }];
        while self.statements.next_if(|next| next.words() == ["else", "{"]).is_some() {
            choices.push(Choice { when: When::Always, group: self.branch(source) });
        }
        match self.plan.sources.all.iter_mut().find(|known| *known.name == *source) {
            Some(known) => known.choices.extend(choices),
            None if source == "default" => self.plan.sources.default.extend(choices),
            None => self.loading.error(place, format!("there is no source {source}"), "the rules have no effect"),
        }
    }

    /// Reads a branch, and says the number of its group.
    fn branch(&mut self, source: &str) -> u32 {
        let mut branch = Branch { source: source.into(), ..Branch::default() };
        while let Some(statement) = self.within() {
            match statement.words()[..] {
                ["pass", ref words @ ..] => {
                    branch.words.extend(words.iter().map(|word| self.word(word, &statement.place)))
                }
                ["redirect", text] => branch.redirect = self.redirect(text, &statement.place),
                ["log" | "logfile", ..] => {}
                _ => self.misread(&statement),
            }
        }
        self.plan.branches.push(branch);
        u32::try_from(self.plan.branches.len()).unwrap_or(u32::MAX)
    }

    /// A word of `pass`, after a look at its destination.
    fn word(&mut self, word: &str, place: &Place) -> Box<str> {
        let name = word.strip_prefix('!').unwrap_or(word);
        if !WORDS.contains(&name) && !self.plan.destinations.contains_key(name) {
            self.loading.error(place, format!("there is no destination {name}"), "the word has no effect");
        }
        word.into()
    }
}

/// The kind of a list of a destination, and the message for clients that it blocks.
fn list_of(option: &str) -> Option<(Kind, u32)> {
    Some(match option {
        "domainlist" => (Kind::Site, 500),
        "urllist" => (Kind::Beginning, 501),
        "expressionlist" => (Kind::UrlExpression, 503),
        _ => return None,
    })
}

fn users(source: &mut Source, names: &str) {
    // So that files of passwords serve.
    let names = names.split([' ', '\n', ',']).filter_map(|name| name.split(':').next());
    let names = names.filter(|name| !name.is_empty());
    source.users.get_or_insert_default().extend(names.map(|name| name.to_ascii_lowercase().into()));
}
