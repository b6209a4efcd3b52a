//! Files of options: `e2guardian.conf`, those of filter groups and of plugins, and DansGuardian's of the same kind.
//!
//! A line is `name = 'value'`. Of an option that stands there twice the last counts, in the main file the first; of two lists of one
//! kind and name the last.
//! `.include<path>` reads another file in its place, `.define NAME <value>` is what `__NAME__` stands for in values.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use super::known;
use super::list::{Definition, Kind};
use super::loading::{Loading, Source, beside, included, lines};
use crate::spam::Place;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    pub text: Box<str>,
    pub place: Place,
}

/// The options of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    values: BTreeMap<Box<str>, Value>,
    /// Files of plugins that say who a client is, in their order.
    pub plugins: Vec<Value>,
    pub lists: BTreeMap<(Kind, Box<str>), Definition>,
    defined: HashMap<Box<str>, Box<str>>,
    /// Folders that `__LISTDIR__` may stand for where it is not defined: the first that has the file, else the last.
    list_folders: Vec<Box<str>>,
    /// Whether the first of two lines with one option counts.
    keeps_first: bool,
}

impl Options {
    /// None yet; `folder` is where the main file lies. E2Guardian 5.4 and later have its lists in `lists/common`, 5.3 in `lists`.
    pub fn new(folder: &str) -> Options {
        let list_folders = vec![format!("{folder}/lists/common").into(), format!("{folder}/lists").into()];
        let defined = HashMap::from([("CONFDIR".into(), folder.into())]);
        Options { defined, list_folders, keeps_first: true, ..Options::default() }
    }

    /// None yet, with the names that another file has defined.
    pub fn beside(other: &Options) -> Options {
        Options { defined: other.defined.clone(), list_folders: other.list_folders.clone(), ..Options::default() }
    }

    /// None yet, of a filter group: from E2Guardian 5.4 on its lists lie in a folder of its own.
    pub fn of_group(number: u32, main: &Options) -> Options {
        let mut options = Options::beside(main);
        if let Some(folder) = main.defined.get("CONFDIR") {
            options.list_folders.insert(0, format!("{folder}/lists/group{number}").into());
        }
        options
    }

    /// Reads a file.
    pub fn read(&mut self, source: &Source, loading: &mut Loading<'_>) {
        self.file(source, 0, loading);
    }

    fn file(&mut self, source: &Source, depth: usize, loading: &mut Loading<'_>) {
        for (place, line) in lines(source) {
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let line = self.substituted(&String::from_utf8_lossy(line), loading);
            if let Some(path) = included(line.as_bytes()) {
                self.include(&beside(&place.file, &path), &place, depth, loading);
            } else if let Some(rest) =
                line.get(..8).filter(|head| head.eq_ignore_ascii_case(".define ")).map(|_| &line[8..])
            {
                self.define(rest, &place, loading);
            } else {
                self.line(&line, place, loading);
            }
        }
    }

    fn include(&mut self, path: &str, place: &Place, depth: usize, loading: &mut Loading<'_>) {
        if depth >= loading.limits.include_depth_max {
            return loading.error(place, "files include each other too deep", "take the line away");
        }
        if let Some(source) = loading.file(path, place) {
            self.file(&source, depth + 1, loading);
        }
    }

    fn define(&mut self, rest: &str, place: &Place, loading: &mut Loading<'_>) {
        let value = rest.trim().split_once(char::is_whitespace);
        let value = value.and_then(|(name, value)| Some((name, value.trim().strip_prefix('<')?.split('>').next()?)));
        match value {
            Some((name, value)) => drop(self.defined.insert(name.into(), value.into())),
            None => loading.error(place, "the definition is not understood", "write .define NAME <value>"),
        }
    }

    /// A line with `__NAME__` replaced.
    fn substituted(&self, line: &str, loading: &mut Loading<'_>) -> String {
        if !line.contains("__") {
            return line.into();
        }
        let line = match line.split_once("__LISTDIR__") {
            Some((_, path)) if !self.defined.contains_key("LISTDIR") => {
                &line.replace("__LISTDIR__", self.list_folder(path, loading))
            }
            _ => line,
        };
        self.defined.iter().fold(line.to_string(), |line, (name, value)| line.replace(&format!("__{name}__"), value))
    }

    /// The folder of a list whose path goes on like this.
    fn list_folder(&self, rest: &str, loading: &mut Loading<'_>) -> &str {
        let path = rest.split(['\'', ',', '>']).next().unwrap_or(rest).trim_end();
        let Some((last, others)) = self.list_folders.split_last() else { return "" };
        others.iter().find(|folder| loading.has(&format!("{folder}{path}"))).unwrap_or(last)
    }

    fn line(&mut self, line: &str, place: Place, loading: &mut Loading<'_>) {
        let Some((name, value)) = line.split_once('=') else {
            return loading.error(&place, format!("{line} is no option"), "write name = 'value'");
        };
        let (name, text) = (name.trim().to_ascii_lowercase(), unquoted(value));
        if let Some(kind) = Kind::of_option(&name) {
            return self.define_list(kind, text, place, loading);
        }
        if let Some((kind, list, message)) = known::list_of(&name) {
            let definition =
                Definition { kind, name: list.into(), message, log_message: 0, path: text.into(), walks: true, place };
            self.lists.insert((kind, list.into()), definition);
            return;
        }
        let (name, text) = known::map_of(&name, text).unwrap_or((&name, text));
        let value = Value { text: text.into(), place };
        match name {
            "authplugin" => self.plugins.push(value),
            name if known::is_option(name) => {
                if !self.keeps_first || self.get(name).is_none() {
                    self.values.insert(name.into(), value);
                }
            }
            _ => match known::successor(name) {
                Some(other) => loading.error(
                    &value.place,
                    format!("{name} is an option of E2Guardian 3 and 4"),
                    &format!("write {other}"),
                ),
                None => loading.error(&value.place, format!("there is no option {name}"), "check its spelling"),
            },
        }
    }

    /// `name=N,messageno=M,logmessageno=L,path=P,anonlog=true,sitewild=false`
    fn define_list(&mut self, kind: Kind, text: &str, place: Place, loading: &mut Loading<'_>) {
        let nothing: Box<str> = "".into();
        let mut definition = Definition {
            kind,
            name: nothing.clone(),
            message: 0,
            log_message: 0,
            path: nothing,
            walks: true,
            place: place.clone(),
        };
        for field in text.split(',') {
            let (key, value) = field.split_once('=').unwrap_or((field, ""));
            let (key, value) = (key.trim(), value.trim());
            let number = value.parse();
            match key {
                "name" => definition.name = value.into(),
                "path" => definition.path = value.into(),
                "messageno" if number.is_ok() => definition.message = number.unwrap_or(0),
                "logmessageno" if number.is_ok() => definition.log_message = number.unwrap_or(0),
                "sitewild" => definition.walks = value != "false",
                "anonlog" | "listdir" => {}
                _ => loading.error(&place, format!("{field} is not understood in a list"), "check its spelling"),
            }
        }
        if definition.name.is_empty() || definition.path.is_empty() {
            return loading.error(&place, "the list has no name or no path", "write name=...,path=...");
        }
        self.lists.insert((kind, definition.name.clone()), definition);
    }

    /// The value of an option, where it has one.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name).filter(|value| !value.text.is_empty())
    }

    /// An option that is a number.
    pub fn number<N: FromStr>(&self, name: &str, default: N, loading: &mut Loading<'_>) -> N {
        let Some(value) = self.get(name) else { return default };
        // E2Guardian reads digits up to the first other character.
        let sign = usize::from(value.text.starts_with(['-', '+']));
        let rest = &value.text[sign..];
        let end = sign + rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number = value.text.parse().or_else(|_| value.text[..end].parse());
        number.unwrap_or_else(|_| {
            loading.error(
                &value.place,
                format!("{name}: {} is no number in its range", value.text),
                "the default counts",
            );
            default
        })
    }

    /// Whether an option is `on`.
    pub fn is_on(&self, name: &str) -> bool {
        self.is(name, "on")
    }

    /// Whether an option has this value.
    pub fn is(&self, name: &str, wanted: &str) -> bool {
        self.get(name).is_some_and(|value| &*value.text == wanted)
    }
}

/// A value without its quotes and what stands behind it.
fn unquoted(value: &str) -> &str {
    let value = value.trim();
    match value.strip_prefix('\'') {
        Some(rest) => rest.split('\'').next().unwrap_or(rest),
        None => value.split([' ', '\t', '#']).next().unwrap_or(value),
    }
}

#[cfg(test)]
mod tests {
    use super::super::limits::Limits;
    use super::*;

    fn read(text: &str) -> (Options, Vec<String>) {
        let mut more = |path: &str| match path {
            "/etc/e/more.conf" => Ok(b"naughtynesslimit = 70\nsitelist = 'name=grey,path=/b'\n".to_vec()),
            _ => Err("there is none".to_string()),
        };
        let mut loading = Loading::new(&mut more, Limits::default());
        let mut options = Options::beside(&Options::new("/etc/e"));
        let source = Source { name: "/etc/e/e.conf".into(), bytes: text.as_bytes().into() };
        options.read(&source, &mut loading);
        (options, loading.problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_last_value_and_the_last_definition_count() {
        let text = "naughtynesslimit = 50\nsitelist = 'name=grey,messageno=5,path=__LISTDIR__/a'\n.include<more.conf>\n\
                    usesmtp = off   #not tested\nbannedsitelist = '/old'\n";
        let (options, problems) = read(text);
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(options.get("naughtynesslimit").map(|value| &*value.text), Some("70"));
        assert_eq!(options.get("usesmtp").map(|value| &*value.text), Some("off"));
        let grey = &options.lists[&(Kind::Site, "grey".into())];
        assert_eq!((&*grey.path, grey.message), ("/b", 0));
        assert_eq!((&*grey.place.file, grey.place.line), ("/etc/e/more.conf", 2));
        assert_eq!(&*options.lists[&(Kind::Site, "banned".into())].path, "/old");
    }

    #[test]
    fn the_first_value_counts_in_the_main_file() {
        let mut nothing = |_: &str| Err(String::new());
        let mut loading = Loading::new(&mut nothing, Limits::default());
        let mut options = Options::new("/etc/e");
        let bytes = b"language = ''\nlanguage = 'a'\nlanguage = 'b'\n";
        options.read(&Source { name: "m".into(), bytes: bytes[..].into() }, &mut loading);
        assert_eq!(options.get("language").map(|value| &*value.text), Some("a"));
    }

    #[test]
    fn lines_that_are_not_understood_are_told_with_their_place() {
        let (_, problems) = read("# all right\nbadoption = 5\nnothing\nsitelist = 'name=a,colour=b'\n.include<none>\n");
        assert_eq!(problems.len(), 5, "{problems:?}");
        assert!(
            problems
                .iter()
                .zip([2, 3, 4, 4, 5])
                .all(|(told, line)| told.starts_with(&format!("/etc/e/e.conf:{line}: error")))
        );
    }

    #[test]
    fn names_that_were_defined_stand_for_their_value() {
        let (options, problems) = read(".Define LISTDIR </x>\nbannedphraselist = '__LISTDIR__/y'\n");
        assert_eq!((options.get("bannedphraselist").map(|value| &*value.text), problems.len()), (Some("/x/y"), 0));
    }
}
