//! Reads files line by line: includes, versions and conditions decide which lines count.

use super::{File, Include, Loader};
use crate::spam::limits::Limits;
use crate::spam::problem::{Fault, Place, shown};
use crate::spam::source::condition::{self, World};
use crate::spam::source::line::Line;

/// A condition that is open.
struct Frame {
    place: Place,
    /// Whether the lines around it are read.
    outer: bool,
    holds: bool,
}

/// The conditions that are open in a file.
#[derive(Default)]
struct Frames {
    open: Vec<Frame>,
    /// Number of conditions nested beyond the bound within the innermost open one.
    too_deep: usize,
}

impl Frames {
    /// Whether lines within the open conditions are read.
    fn are_read(&self) -> bool {
        self.too_deep == 0 && self.open.last().is_none_or(|frame| frame.outer && frame.holds)
    }
}

/// `# UPDATE version NUMBER`, which `sa-update` writes.
fn update(line: &[u8]) -> Option<String> {
    let number = line.strip_prefix(b"# UPDATE version ")?.trim_ascii_end();
    let is_number = !number.is_empty() && number.len() < 20 && number.iter().all(u8::is_ascii_digit);
    core::str::from_utf8(number).ok().filter(|_| is_number).map(Into::into)
}

impl Loader {
    pub(super) fn file(&mut self, file: &File, include: &mut Include<'_>, depth: usize) {
        self.place = Place { file: file.name.clone(), line: 0 };
        if let Err(fault) = self.admit(file, depth) {
            return self.error(None, fault);
        }
        let mut frames = Frames::default();
        for (number, line) in lines(&file.bytes).enumerate() {
            self.place = Place { file: file.name.clone(), line: u32::try_from(number + 1).unwrap_or(u32::MAX) };
            if let Some(version) = update(line) {
                self.rules.versions.insert((*file.name).into(), version);
            }
            let Some(line) = Line::read(line) else { continue };
            if self.conditional(&line, &mut frames) {
                continue;
            }
            if !frames.are_read() {
                self.rules.skipped += 1;
                continue;
            }
            if line.language.is_some() {
                self.rules.translated += 1;
                continue;
            }
            match &*line.keyword {
                "include" => self.include(&line.value, include, depth),
                "require_version" if !self.is_version(&line.value) => {
                    let reason = format!(
                        "the file is for version {} and not for {:.6}",
                        shown(&line.value),
                        self.options.version
                    );
                    return self.error(
                        None,
                        Fault::new(reason, "the rest of the file was not read: take the line away if it fits"),
                    );
                }
                "require_version" => {}
                _ => self.line(&line),
            }
        }
        for frame in frames.open {
            self.place = frame.place;
            self.error(None, Fault::new("the condition is not closed in this file", "write endif"));
        }
    }

    fn admit(&mut self, file: &File, depth: usize) -> Result<(), Fault> {
        const ADVICE: &str = "the file was not read";
        let Limits { file_bytes_max, files_max, bytes_max, include_depth_max, .. } = self.limits;
        if file.bytes.len() > file_bytes_max {
            return Err(Fault::new(format!("the file has more than {file_bytes_max} bytes"), ADVICE));
        }
        self.bytes = self.bytes.saturating_add(file.bytes.len());
        if self.bytes > bytes_max {
            return Err(Fault::new(format!("all files have more than {bytes_max} bytes"), ADVICE));
        }
        if depth > include_depth_max {
            return Err(Fault::new(format!("files include each other more than {include_depth_max} deep"), ADVICE));
        }
        if self.rules.files >= files_max as u64 {
            return Err(Fault::new(format!("there are more than {files_max} files"), ADVICE));
        }
        self.rules.files += 1;
        Ok(())
    }

    fn include(&mut self, value: &[u8], include: &mut Include<'_>, depth: usize) {
        let place = self.place.clone();
        let name = String::from_utf8_lossy(value).into_owned();
        if name.is_empty() {
            return self.error(None, Fault::new("no file is named", "write include FILE"));
        }
        match include(&place, &name) {
            Ok(file) => self.file(&file, include, depth + 1),
            Err(reason) => {
                self.error(None, Fault::new(format!("{name} cannot be included: {reason}"), "check its path"))
            }
        }
        self.place = place;
    }

    fn is_version(&self, value: &[u8]) -> bool {
        // What stands there before a release is made.
        const MARK: &[u8] = b"@@VERSION@@";
        let number = core::str::from_utf8(value).ok().and_then(|value| value.parse::<f64>().ok());
        value == MARK || number.is_some_and(|number| (number - self.options.version).abs() < 5e-7)
    }

    /// Opens, turns and closes conditions; `false` where the line does none of this.
    fn conditional(&mut self, line: &Line<'_>, frames: &mut Frames) -> bool {
        match &*line.keyword {
            "if" | "ifplugin" if frames.too_deep > 0 => frames.too_deep += 1,
            "else" if frames.too_deep > 0 => {}
            "endif" if frames.too_deep > 0 => frames.too_deep -= 1,
            "if" | "ifplugin" => {
                let outer = frames.are_read();
                if outer && line.value.is_empty() {
                    let fault = Fault::new("the condition is missing", "the line was not read: write one behind it");
                    self.error(None, fault);
                    return true;
                }
                if frames.open.len() >= self.limits.nesting_max {
                    let reason = format!("conditions stand more than {} deep", self.limits.nesting_max);
                    self.error(None, Fault::new(reason, "it counts as false: what stands in it is not read"));
                    frames.too_deep = 1;
                    return true;
                }
                let holds =
                    outer && if line.keyword == "if" { self.holds(&line.value) } else { self.is_loaded(&line.value) };
                frames.open.push(Frame { place: self.place.clone(), outer, holds });
            }
            "else" => match frames.open.last_mut() {
                Some(frame) => frame.holds = !frame.holds,
                None => self.error(None, Fault::new("else stands outside of a condition", "write if before it")),
            },
            "endif" => {
                if frames.open.pop().is_none() {
                    self.error(None, Fault::new("endif stands outside of a condition", "take it away"));
                }
            }
            _ => return false,
        }
        true
    }

    fn holds(&mut self, text: &[u8]) -> bool {
        match condition::read(text, self.limits.nesting_max, self) {
            Ok(outcome) => {
                if let Some(word) = outcome.unknown {
                    let reason = format!("a condition knows no {}", shown(word.as_bytes()));
                    self.error(
                        None,
                        Fault::new(reason, "it counts as true, as in Perl; write version, plugin(), has() or can()"),
                    );
                }
                outcome.holds
            }
            Err(fault) => {
                self.error(None, fault);
                false
            }
        }
    }

    fn is_loaded(&self, name: &[u8]) -> bool {
        let name = core::str::from_utf8(name).ok().and_then(|name| self.known.plugin(name));
        name.is_some_and(|name| self.loaded.contains(name))
    }
}

/// Prefix of the flags that `enable_compat` sets.
pub(super) const COMPATIBLE: &str = "Mail::SpamAssassin::Conf::compat_";

impl World for Loader {
    fn word(&self, word: &str) -> Option<f64> {
        match word {
            "version" => Some(self.options.version),
            "perl_version" => Some(self.options.perl_version),
            "local_tests_only" => Some(f64::from(u8::from(self.options.local_tests_only))),
            _ => None,
        }
    }

    fn call(&self, function: &str, argument: &str) -> Option<bool> {
        match function {
            "plugin" => Some(self.is_loaded(argument.as_bytes())),
            "has" | "can" => Some(self.compatible.contains(argument) || self.known.has(argument, &self.loaded)),
            _ => None,
        }
    }
}

/// The lines of a file, without what ends them.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    memchr::memchr_iter(b'\n', bytes)
        .chain([bytes.len()])
        .map(move |end| &bytes[std::mem::replace(&mut start, end + 1)..end])
}
