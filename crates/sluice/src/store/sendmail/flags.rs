//! The command line of `sendmail`, as cron, PHP, mutt and git use it: letters with or without a value, which may stand behind each other
//! and behind recipients. Letters that choose how other programs queue are read and mean nothing.

use std::path::PathBuf;

use super::Fault;

/// Letters with a value behind them, in the same word or in the next.
const WITH_VALUE: &[u8] = b"ABCFLNORVXbefhopr";

/// Letters whose value stands in the same word, or nowhere.
const WITH_REST: &[u8] = b"qd";

/// Letters that stand alone.
const ALONE: &[u8] = b"GIUcimnstvx";

/// The longest value, in bytes.
const VALUE_BYTES_MAX: usize = 10_000;

/// Mode of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Take a mail from standard input.
    #[default]
    Mail,
    /// Take the mails of an SMTP session on standard input and output.
    Session,
    /// List what waits.
    Queue,
    /// Try what waits now.
    Flush,
    /// Make tables of aliases anew: there are none.
    Aliases,
    /// Print the help.
    Help,
}

/// A command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Mode of the command.
    pub mode: Mode,
    /// `-f`, `-r`: the sender; empty is the null sender.
    pub from: Option<String>,
    /// `-F`: the name of the sender.
    pub name: String,
    /// `-t`: recipients stand in the header, too.
    pub reads_header: bool,
    /// `-i`, `-oi`: a dot alone on a line is a line.
    pub keeps_dots: bool,
    /// `-N`, as NOTIFY= has it; empty if nothing is asked for.
    pub notify: String,
    /// `-R`: the whole mail comes back, or its header.
    pub returns_all: Option<bool>,
    /// `-V`: the envelope's id, as it was given.
    pub envid: String,
    /// `-C`: the configuration.
    pub config: Option<PathBuf>,
    /// Words that are no options.
    pub recipients: Vec<String>,
}

impl Flags {
    /// Reads a command line without the name of the program.
    ///
    /// # Errors
    /// What is not understood.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Flags, Fault> {
        let (mut flags, mut words) = (Flags::default(), words.into_iter());
        while let Some(word) = words.next() {
            match word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                None => flags.recipients.push(word),
                Some("-help") => flags.mode = Mode::Help,
                Some("-") => flags.recipients.extend(words.by_ref()),
                Some(letters) => flags.letters(letters, &mut words)?,
            }
        }
        Ok(flags)
    }

    fn letters(&mut self, letters: &str, words: &mut impl Iterator<Item = String>) -> Result<(), Fault> {
        for (at, letter) in letters.char_indices() {
            let rest = letters.get(at + letter.len_utf8()..).unwrap_or_default();
            match u8::try_from(letter).unwrap_or(0) {
                b'i' => self.keeps_dots = true,
                b't' => self.reads_header = true,
                b'I' => self.mode = Mode::Aliases,
                letter if ALONE.contains(&letter) => {}
                letter if WITH_REST.contains(&letter) => {
                    if letter == b'q' {
                        self.mode = Mode::Flush;
                    }
                    return Ok(());
                }
                letter if WITH_VALUE.contains(&letter) => {
                    let value = if rest.is_empty() { words.next() } else { Some(rest.to_owned()) };
                    let value = value.ok_or_else(|| Fault::usage(format!("-{}: no value", letter as char)))?;
                    return self.value(letter, value);
                }
                _ => return Err(Fault::usage(format!("-{letter}: not an option of sendmail"))),
            }
        }
        Ok(())
    }

    fn value(&mut self, letter: u8, value: String) -> Result<(), Fault> {
        let wrong = |wanted: &str| Fault::usage(format!("-{} {value:?}: {wanted}", letter as char));
        if value.len() > VALUE_BYTES_MAX || value.contains(['\r', '\n', '\0']) {
            return Err(Fault::usage(format!("-{}: not a value", letter as char)));
        }
        match letter {
            b'f' | b'r' => self.from = Some(value),
            b'F' => self.name = value,
            b'C' => self.config = Some(value.into()),
            b'V' => self.envid = value,
            b'o' if value == "i" => self.keeps_dots = true,
            b'O' if value.eq_ignore_ascii_case("IgnoreDots=true") => self.keeps_dots = true,
            b'N' => self.notify = notify(&value).ok_or_else(|| wrong("never, or success, failure and delay"))?,
            b'R' => match value.to_ascii_lowercase().as_str() {
                "full" => self.returns_all = Some(true),
                "hdrs" => self.returns_all = Some(false),
                _ => return Err(wrong("full or hdrs")),
            },
            b'b' => match value.as_str() {
                "m" => {}
                "p" => self.mode = Mode::Queue,
                "i" => self.mode = Mode::Aliases,
                "s" => self.mode = Mode::Session,
                _ => return Err(wrong("m, p, i or s")),
            },
            _ => {}
        }
        Ok(())
    }
}

fn notify(value: &str) -> Option<String> {
    let words: Vec<String> = value.split(',').map(|word| word.trim().to_ascii_uppercase()).collect();
    let is_never = words == ["NEVER"];
    let is_list = words.iter().all(|word| matches!(word.as_str(), "SUCCESS" | "FAILURE" | "DELAY"));
    (is_never || is_list).then(|| words.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Flags, Fault> {
        Flags::parse(line.split_whitespace().map(|word| if word == "''" { "" } else { word }.to_owned()))
    }

    #[test]
    fn command_lines_of_cron_php_mutt_and_git_are_read() {
        let cron = parse("-FCronDaemon -i -B8BITMIME -oem root").unwrap();
        assert_eq!((cron.name.as_str(), cron.keeps_dots, cron.reads_header), ("CronDaemon", true, false));
        assert_eq!(cron.recipients, ["root"]);
        let php = parse("-t -i -fwww@example.org").unwrap();
        assert!(php.reads_header && php.keeps_dots && php.from.as_deref() == Some("www@example.org"));
        let mutt = parse("-oem -oi -f ann@example.org -N never -R hdrs -- bob@example.org -x@example.org").unwrap();
        assert_eq!(mutt.recipients, ["bob@example.org", "-x@example.org"]);
        assert_eq!((mutt.notify.as_str(), mutt.returns_all, mutt.keeps_dots), ("NEVER", Some(false), true));
        assert_eq!(parse("-i a@b -f '' c@d").unwrap().from.as_deref(), Some(""));
        assert_eq!(parse("-N success,Delay x").unwrap().notify, "SUCCESS,DELAY");
        assert!(parse("-it").unwrap().reads_header && parse("-odq -bm -v a").unwrap().recipients == ["a"]);
        for (line, mode) in [
            ("--help", Mode::Help),
            ("-bp", Mode::Queue),
            ("-q", Mode::Flush),
            ("-q15m", Mode::Flush),
            ("-bi", Mode::Aliases),
            ("-bs", Mode::Session),
        ] {
            assert_eq!(parse(line).unwrap().mode, mode, "{line}");
        }
    }

    #[test]
    fn what_is_not_understood_is_an_error_of_usage() {
        for line in ["-f", "-Z", "-bd", "-bt", "-N maybe", "-N never,delay", "-R some", "-N"] {
            assert_eq!(parse(line).unwrap_err().status, 64, "{line}");
        }
        assert_eq!(Flags::parse(["-fa\nto b".to_owned()]).unwrap_err().status, 64);
    }
}
