//! The text of a configuration: one file, and those that it includes.
//!
//! Tables of several files are one table, lists of tables (`[[listener]]`) are one list in the order of the files; a key that two
//! files set is an error. Each file is parsed behind as many blanks as the files before it have bytes, so that a place in the text
//! is a place in one file.

use std::path::{Path, PathBuf};

use edge::settings::Fault;
use flow::Glob;
use serde::Deserialize as _;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Error;

/// Files that one configuration may consist of.
const FILES_MAX: usize = 1_000;

/// The files, in their order.
pub struct Source {
    files: Vec<Text>,
    /// Files and folders that were looked at besides the first.
    pub included: Vec<PathBuf>,
}

struct Text {
    name: String,
    /// Offset of the text in the joined source, which is padded with blanks up to it.
    start: usize,
    text: String,
}

impl Source {
    /// A single text.
    pub fn single(name: &str, text: &str) -> Source {
        Source { files: vec![Text { name: name.into(), start: 0, text: text.into() }], included: Vec::new() }
    }

    /// A file, and those that it includes.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn read(path: &Path) -> Result<Source, Error> {
        let mut source = Source::single(&path.display().to_string(), &text(path)?);
        let folder = path.parent().unwrap_or(Path::new("."));
        for wanted in source.includes()? {
            let (looked_at, files) = named(&folder.join(&wanted))?;
            source.included.push(looked_at);
            for file in files {
                source.add(&file)?;
            }
        }
        Ok(source)
    }

    fn add(&mut self, path: &Path) -> Result<(), Error> {
        let start = self.files.last().map_or(0, |last| last.text.len() + 1);
        if self.files.len() == FILES_MAX {
            return Err(Error(format!("{}: more than {FILES_MAX} files", path.display())));
        }
        let text = format!("{}{}", " ".repeat(start), text(path)?);
        self.files.push(Text { name: path.display().to_string(), start, text });
        Ok(())
    }

    /// Files that the first file includes.
    fn includes(&self) -> Result<Vec<PathBuf>, Error> {
        let [first] = self.files.as_slice() else { return Ok(Vec::new()) };
        // What is wrong with the file is said when all of it is read.
        let Ok(mut table) = DeTable::parse(&first.text) else { return Ok(Vec::new()) };
        let Some(value) = table.get_mut().remove("include") else { return Ok(Vec::new()) };
        let paths = Vec::<PathBuf>::deserialize(toml::de::ValueDeserializer::from(value));
        paths.map_err(|error| self.error(&error.into()))
    }

    /// Name of the configuration in errors.
    pub fn name(&self) -> &str {
        self.files.first().map_or("", |first| &first.name)
    }

    /// The folder of the first file, from which paths count.
    pub fn folder(&self) -> &Path {
        Path::new(self.name()).parent().unwrap_or(Path::new("."))
    }

    /// All of it, as one table.
    ///
    /// # Errors
    /// When a file is no TOML, or two files set the same key.
    pub fn parse(&self) -> Result<Spanned<DeTable<'_>>, Fault> {
        let Some((first, others)) = self.files.split_first() else { return Ok(Spanned::new(0..0, DeTable::new())) };
        let mut whole = DeTable::parse(&first.text)?;
        whole.get_mut().remove("include");
        for other in others {
            self.merge(whole.get_mut(), DeTable::parse(&other.text)?.into_inner())?;
        }
        Ok(whole)
    }

    fn merge<'s>(&'s self, whole: &mut DeTable<'s>, other: DeTable<'s>) -> Result<(), Fault> {
        for (key, value) in other {
            let first = whole.get_key_value(&key).map(|(first, _)| first.span());
            let (Some(first), Some(known)) = (first, whole.get_mut(&key)) else {
                whole.insert(key, value);
                continue;
            };
            let span = key.span();
            match (known.get_mut(), value.into_inner()) {
                (DeValue::Table(known), DeValue::Table(value)) => self.merge(known, value)?,
                (DeValue::Array(known), DeValue::Array(value)) if are_tables(known) && are_tables(&value) => {
                    value.into_iter().for_each(|table| known.push(table));
                }
                _ => {
                    let message = format!("`{}` is set already: {}", key.get_ref(), self.place(first.start));
                    return Err(Fault { message, span: Some(span) });
                }
            }
        }
        Ok(())
    }

    /// The file that a place is in.
    fn file(&self, at: usize) -> &Text {
        let behind = self.files.partition_point(|file| file.start <= at);
        &self.files[behind.saturating_sub(1)]
    }

    /// A place, as `FILE:LINE:COLUMN`.
    fn place(&self, at: usize) -> String {
        let file = self.file(at);
        let before = &file.text[file.start..at.clamp(file.start, file.text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        format!("{}:{line}:{column}", file.name)
    }

    /// A place, as `FILE:LINE`.
    pub(super) fn line(&self, at: usize) -> String {
        let place = self.place(at);
        place.rsplit_once(':').map_or_else(|| place.clone(), |(line, _)| line.to_owned())
    }

    /// Error with its place and its line.
    pub fn error(&self, fault: &Fault) -> Error {
        let message = &fault.message;
        let Some(at) = fault.span.as_ref().map(|span| span.start) else {
            return Error(format!("{}: {message}", self.name()));
        };
        let file = self.file(at);
        let place = self.place(at);
        let end = at.clamp(file.start, file.text.len());
        let start = file.text[file.start..end].rfind('\n').map_or(file.start, |newline| file.start + newline + 1);
        let shown = file.text[start..].lines().next().unwrap_or_default();
        let column = file.text[start..end].chars().count() + 1;
        Error(format!("{place}: {message}\n  {shown}\n  {:>column$}", '^'))
    }
}

pub(super) fn are_tables(array: &[Spanned<DeValue<'_>>]) -> bool {
    array.iter().all(|value| value.get_ref().is_table())
}

fn text(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|error| Error(format!("{}: {error}", path.display())))
}

/// The file or the folder that a path means, and the files: in the last part of the path `*` and `?` stand for characters.
fn named(path: &Path) -> Result<(PathBuf, Vec<PathBuf>), Error> {
    let pattern = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !pattern.contains(['*', '?']) {
        return Ok((path.into(), vec![path.into()]));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((folder.into(), Vec::new())),
        Err(error) => return Err(Error(format!("{}: {error}", folder.display()))),
    };
    let glob = Glob::new(pattern);
    let matches =
        |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| glob.matches(name) && !name.starts_with('.'));
    let mut files: Vec<PathBuf> =
        entries.flatten().filter(|entry| matches(&entry.file_name())).map(|entry| entry.path()).collect();
    files.sort();
    Ok((folder.into(), files))
}

/// A value, as JSON has it.
pub(super) fn json(value: &Spanned<DeValue<'_>>) -> Value {
    match value.get_ref() {
        DeValue::String(text) => Value::from(&**text),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Boolean(value) => Value::from(*value),
        DeValue::Datetime(time) => Value::from(time.to_string()),
        DeValue::Array(array) => array.iter().map(json).collect(),
        DeValue::Table(table) => table
            .iter()
            .map(|(name, value)| (name.get_ref().to_string(), json(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    fn read(files: &[(&str, &str)]) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("conf.d")).unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let read = Config::read(&folder.path().join("a.toml"));
        read.map_err(|error| error.to_string().replace(folder.path().to_str().unwrap(), ""))
    }

    const FIRST: &str = "include = ['conf.d/*.toml']\nhostname = 'a.test'\n[limits]\ndepth_max = 3\n[[listener]]\n\
                         protocol = 'smtp'\naddress = '127.0.0.1:1'\nforward = 'discard:'\n";

    #[test]
    fn several_files_are_one_configuration() {
        let second = "[limits]\nspool_bytes_max = '1M'\n";
        let third = "[[listener]]\nprotocol = 'lmtp'\naddress = '127.0.0.1:2'\nforward = 'discard:'\n";
        let files =
            [("a.toml", FIRST), ("conf.d/2.toml", third), ("conf.d/1.toml", second), ("conf.d/.x.toml", "no = 1")];
        let config = read(&files).unwrap();
        assert_eq!((config.limits.depth_max, config.limits.spool_bytes_max), (3, 1 << 20));
        let addresses: Vec<String> =
            config.listeners.iter().map(|listener| listener.place.address.to_string()).collect();
        assert_eq!(addresses, ["127.0.0.1:1", "127.0.0.1:2"]);
        assert_eq!(config.included.len(), 1);
        assert!(read(&[("a.toml", "include = ['conf.d/*.toml', 'elsewhere/*.toml']")]).is_ok(), "nothing is included");
    }

    #[test]
    fn what_is_wrong_is_said_of_the_file_that_it_is_in() {
        for (second, wanted) in [
            (
                "[limits]\ndepth_max = 4\n",
                "/conf.d/1.toml:2:1: `depth_max` is set already: /a.toml:4:1\n  depth_max = 4\n  ^",
            ),
            ("hostname = 'b'", "/conf.d/1.toml:1:1: `hostname` is set already: /a.toml:2:1"),
            ("\nhostnam = 'b'", "/conf.d/1.toml:2:1: unknown field `hostnam`"),
            ("include = ['x']", "/conf.d/1.toml:1:1: unknown field `include`"),
            ("[[listener]]\nprotocol = 'x'", "/conf.d/1.toml:2:12: unknown variant `x`"),
            ("[[listener]\n", "/conf.d/1.toml:1:"),
            ("listener = 3", "/conf.d/1.toml:1:1: `listener` is set already"),
        ] {
            let error = read(&[("a.toml", FIRST), ("conf.d/1.toml", second)]).unwrap_err();
            assert!(error.starts_with(wanted), "{error}");
        }
        for (first, wanted) in [
            ("include = ['b.toml']", "/b.toml: No such file"),
            ("include = 'b.toml'", "/a.toml:1:11: invalid type"),
            ("x = 1\ninclude = []", "/a.toml:1:1: unknown field `x`"),
            ("x =", "/a.toml:1:"),
        ] {
            let error = read(&[("a.toml", first)]).unwrap_err();
            assert!(error.starts_with(wanted), "{error}");
        }
    }
}
