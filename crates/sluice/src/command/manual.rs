//! The man pages and the completions, made from the command line's own description.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use clap::CommandFactory;

use crate::cli::Cli;
use crate::output::Failure;

/// Writes a man page for each command into `folder`, or shows the main one: by `man` on a terminal, else as it is.
pub fn pages(folder: Option<&Path>) -> Result<ExitCode, Failure> {
    match folder {
        Some(folder) => {
            std::fs::create_dir_all(folder)?;
            clap_mangen::generate_to(Cli::command(), folder)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            if !(io::stdout().is_terminal() && is_shown(&page)) {
                print(&page)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether `man` has shown a page.
fn is_shown(page: &[u8]) -> bool {
    // It reads the page from the standard input where its name is `-`.
    let Ok(mut man) = Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).spawn() else { return false };
    let is_read = man.stdin.take().is_some_and(|mut input| input.write_all(page).is_ok());
    man.wait().is_ok_and(|status| status.success()) && is_read
}

/// Writes all of it; a reader that has seen enough is no error.
fn print(text: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// Prints the completions for a shell.
pub fn completions(shell: clap_complete::Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sluice", &mut script);
    print(&script)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    fn walk(command: &clap::Command, path: &str, without: &mut Vec<String>) {
        let path = format!("{path} {}", command.get_name());
        let takes = |argument: &clap::Arg| argument.get_short() == Some('c') && argument.get_long() == Some("config");
        if !command.has_subcommands() && !command.get_arguments().any(takes) {
            without.push(path.clone());
        }
        command.get_subcommands().for_each(|command| walk(command, &path, without));
    }

    #[test]
    fn every_command_takes_a_configuration_behind_its_verb() {
        let mut command = Cli::command();
        command.build();
        let mut without = Vec::new();
        walk(&command, "", &mut without);
        without.retain(|path| !path.contains(" help"));
        assert_eq!(without, Vec::<String>::new());
        for line in [
            "account list -c F",
            "account -c F list",
            "-c F account list",
            "quarantine list -c F",
            "learn spam -c F x",
            "rules lint -c F",
            "database info -c F",
            "database find x -c F",
            "database verify -c F",
            "dnsbl check -c F",
            "dnsbl why 192.0.2.1 -c F",
            "auth check -c F x",
            "ids lint -c F",
            "ids check --pcap x -c F",
            "web lint -c F",
            "web check -c F x",
            "log -c F",
            "spam check -c F x",
            "sieve test -c F x y",
            "reload -c F",
            "check -c F",
        ] {
            let read = Cli::try_parse_from(["sluice"].into_iter().chain(line.split(' ')));
            assert!(read.is_ok(), "{line}: {}", read.err().map(|error| error.to_string()).unwrap_or_default());
        }
        let Ok(cli) = Cli::try_parse_from(["sluice", "account", "list", "-c", "F"]) else { panic!("it is not read") };
        let crate::cli::Command::Account(account) = cli.command else { panic!("another command") };
        assert_eq!(account.config.to_str(), Some("F"));
    }
}
