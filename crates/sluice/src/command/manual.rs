//! The man pages and the completions, made from the command line's own description.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use clap::CommandFactory;

use crate::cli::Cli;
use crate::output::{self, Failure};

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

fn print(text: &[u8]) -> io::Result<()> {
    let mut out = output::out();
    out.write_all(text)?;
    out.flush()
}

/// Prints the completions for a shell.
pub fn completions(shell: clap_complete::Shell) -> Result<ExitCode, Failure> {
    let (mut script, mut command) = (Vec::new(), Cli::command());
    clap_complete::generate(shell, &mut command, "sluice", &mut script);
    if shell == clap_complete::Shell::Fish {
        script.extend(third_level(&command).into_bytes());
    }
    print(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// The options of commands of the third level for fish: the script of clap_complete has two levels.
fn third_level(command: &clap::Command) -> String {
    let mut script = String::new();
    for first in command.get_subcommands().filter(|first| first.get_name() != "help") {
        for second in first.get_subcommands() {
            for third in second.get_subcommands() {
                let seen =
                    |command: &clap::Command| format!("; and __fish_seen_subcommand_from {}", command.get_name());
                let place = [first.get_name().to_owned(), seen(second), seen(third)].concat();
                let options = third.get_arguments().filter(|option| !option.is_positional() && !option.is_hide_set());
                for option in options {
                    script.push_str("complete -c sluice -n \"__fish_sluice_using_subcommand ");
                    script.push_str(&place);
                    script.push('"');
                    script.push_str(&fish_option(option));
                    script.push('\n');
                }
            }
        }
    }
    script
}

/// An option as fish completes it: its names, its description, and its values.
fn fish_option(option: &clap::Arg) -> String {
    let mut words = String::new();
    let shorts = option.get_short_and_visible_aliases().unwrap_or_default();
    shorts.into_iter().for_each(|short| words += &format!(" -s {short}"));
    let longs = option.get_long_and_visible_aliases().unwrap_or_default();
    longs.into_iter().for_each(|long| words += &format!(" -l {long}"));
    if let Some(help) = option.get_help() {
        let help = help.to_string().replace('\\', "\\\\").replace('\'', "\\'").replace('\n', " ");
        words += &format!(" -d '{help}'");
    }
    if !option.get_action().takes_values() {
        return words;
    }
    let values: Vec<String> = option.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    words += " -r";
    match option.get_value_hint() {
        _ if !values.is_empty() => words += &format!(" -f -a '{}'", values.join(" ")),
        clap::ValueHint::Unknown => {}
        clap::ValueHint::AnyPath | clap::ValueHint::FilePath => words += " -F",
        clap::ValueHint::DirPath => words += " -f -a '(__fish_complete_directories)'",
        _ => words += " -f",
    }
    words
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn fish_completes_options_of_the_third_level() {
        let mut command = Cli::command();
        command.build();
        let script = third_level(&command);
        let begin = "complete -c sluice -n \"__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from ca; and __fish_seen_subcommand_from create\"";
        let found = script.lines().any(|line| line.starts_with(begin) && line.contains(" -l days "));
        assert!(found, "{script}");
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
