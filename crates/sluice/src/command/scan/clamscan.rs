//! clamscan's name, and those of its options that mean nothing here, so that a script's command line can stay as it is.

use std::ffi::OsString;
use std::path::Path;

use crate::cli::Scan;

/// Where clamscan has its signatures.
const SIGNATURES: &str = "/var/lib/clamav";

/// Options that may have a value behind `=`: what they set is always done here, or there is no such thing to set.
const PASSED_OVER: [&str; 30] = [
    "verbose",
    "debug",
    "leave-temps",
    "force-to-disk",
    "bytecode",
    "bytecode-unsigned",
    "statistics",
    "phishing-sigs",
    "phishing-scan-urls",
    "heuristic-alerts",
    "heuristic-scan-precedence",
    "normalize",
    "scan-mail",
    "scan-pe",
    "scan-elf",
    "scan-ole2",
    "scan-pdf",
    "scan-swf",
    "scan-html",
    "scan-xmldocs",
    "scan-hwp3",
    "scan-onenote",
    "scan-archive",
    "scan-image",
    "scan-image-fuzzy-hash",
    "nocerts",
    "dumpcerts",
    "disable-cache",
    "algorithmic-detection",
    "normalise",
];

/// The same, of what is not done: it is said so, unless the value is `no`.
const NOT_DONE: [&str; 14] = [
    "official-db-only",
    "gen-json",
    "detect-structured",
    "alert-broken",
    "alert-broken-media",
    "alert-macros",
    "alert-phishing-ssl",
    "alert-phishing-cloak",
    "alert-partition-intersection",
    "block-macros",
    "detect-broken",
    "phishing-ssl",
    "phishing-cloak",
    "partition-intersection",
];

/// Options that have a value, behind `=` or as the next word.
const WITH_VALUE: [&str; 16] = [
    "tempdir",
    "bytecode-timeout",
    "structured-ssn-format",
    "structured-ssn-count",
    "structured-cc-count",
    "structured-cc-mode",
    "max-embeddedpe",
    "max-htmlnormalize",
    "max-htmlnotags",
    "max-scriptnormalize",
    "max-ziptypercg",
    "max-partitions",
    "max-iconspe",
    "max-rechwp3",
    "pcre-match-limit",
    "pcre-recmatch-limit",
];

/// Makes `clamscan ...`, as which the program may be linked, into `clamscan scan ...`; whether it was that.
pub fn is_called(arguments: &mut Vec<OsString>) -> bool {
    let is_called =
        arguments.first().and_then(|name| Path::new(name).file_name()).is_some_and(|name| name == "clamscan");
    if is_called {
        arguments.insert(1, "scan".into());
    }
    is_called
}

/// Uses clamscan's signatures if none are named.
pub fn have_its_signatures(scan: &mut Scan) {
    if scan.database.databases.is_empty() {
        scan.database.databases.push(SIGNATURES.into());
    }
}

/// The command line without those options, if it is one of `scan`.
pub fn without_passed_over(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut kept: Vec<OsString> = Vec::new();
    let mut arguments = arguments.peekable();
    let mut rest = false;
    while let Some(argument) = arguments.next() {
        let scan = kept.get(1).is_some_and(|command| command == "scan");
        rest |= argument == "--";
        match argument.to_str().filter(|_| scan && !rest).map(Meaning::of) {
            Some(Meaning::PassedOver) => {}
            Some(Meaning::NotDone(text)) => eprintln!("sluice: {text}: not supported"),
            Some(Meaning::NextToo) => drop(arguments.next()),
            Some(Meaning::Other) | None => kept.push(argument),
        }
    }
    kept
}

/// Meaning of an option.
enum Meaning<'a> {
    PassedOver,
    NotDone(&'a str),
    NextToo,
    Other,
}

impl Meaning<'_> {
    fn of(argument: &str) -> Meaning<'_> {
        if argument == "-v" {
            return Meaning::PassedOver;
        }
        let (name, value) = match argument.strip_prefix("--") {
            Some(text) => text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value))),
            None => return Meaning::Other,
        };
        if WITH_VALUE.contains(&name) || name == "pcre-max-filesize" {
            return if value.is_some() { Meaning::PassedOver } else { Meaning::NextToo };
        }
        if NOT_DONE.contains(&name) {
            return if value == Some("no") { Meaning::PassedOver } else { Meaning::NotDone(argument) };
        }
        match PASSED_OVER.contains(&name) {
            // What can be opened is always opened.
            true if name.starts_with("scan-") && value == Some("no") => Meaning::NotDone(argument),
            true => Meaning::PassedOver,
            false => Meaning::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(line: &str) -> String {
        let kept = without_passed_over(line.split(' ').map(OsString::from));
        kept.join(std::ffi::OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn by_its_name_it_has_its_options_and_its_signatures() {
        let scan = |line: &str| {
            let mut arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let is_called = is_called(&mut arguments);
            let cli = <crate::cli::Cli as clap::Parser>::parse_from(without_passed_over(arguments.into_iter()));
            let crate::cli::Command::Scan(mut scan) = cli.command else { unreachable!("the command is scan") };
            if is_called {
                have_its_signatures(&mut scan);
            }
            scan.database.databases
        };
        assert_eq!(scan("/usr/local/bin/clamscan -r --debug x"), [Path::new("/var/lib/clamav")]);
        assert_eq!(scan("clamscan -rd mine x"), [Path::new("mine")]);
        assert!(scan("/usr/bin/sluice scan clamscan").is_empty());
    }

    #[test]
    fn what_means_nothing_is_taken_out_with_its_value() {
        let line = "sluice scan -r --scan-pe=yes -i --tempdir /tmp --bytecode --max-iconspe=3 --gen-json=no -v x";
        assert_eq!(kept(line), "sluice scan -r -i x");
        assert_eq!(kept("sluice scan -- --debug"), "sluice scan -- --debug");
        assert_eq!(kept("sluice explain --debug"), "sluice explain --debug");
        assert_eq!(kept("sluice scan --nonsense x"), "sluice scan --nonsense x");
    }
}
