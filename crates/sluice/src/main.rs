//! `sluice`: everything that touches the operating system.
//!
//! The command line, the configuration, files, sockets, signals and logs. What bytes mean is decided below, in
//! `inspect` and `proto`.

// As the standard library's, but for a closed pipe: that is the reader's way to say that it has seen enough, and no reason
// to leave what is being done half done.
macro_rules! println {
    ($($text:tt)*) => { drop(std::io::Write::write_fmt(&mut std::io::stdout(), format_args!("{}\n", format_args!($($text)*)))) };
}
macro_rules! print {
    ($($text:tt)*) => { drop(std::io::Write::write_fmt(&mut std::io::stdout(), format_args!($($text)*))) };
}
macro_rules! eprintln {
    ($($text:tt)*) => { drop(std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{}\n", format_args!($($text)*)))) };
}

mod auth;
mod check;
mod clamd_conf;
mod cli;
mod conduct;
mod config;
mod config_command;
mod confine;
mod database;
mod database_command;
mod dnsbl;
mod explain;
mod freshclam_conf;
mod held;
mod intercept;
mod learn_command;
mod learned;
mod log_command;
mod lookup_command;
mod lookups;
mod mails;
mod manual;
mod on_access;
mod privileges;
mod pua;
mod quarantine;
mod recipients_command;
mod resolver;
mod rules_command;
mod scan_command;
mod serve;
mod sieve_command;
mod spam_command;
mod store;
mod supervise;
mod top;
mod update;
mod update_settings;
mod values;
mod web_command;

use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command, ConfigCommand, MailCommand};

/// What inspections hold is counted where it is allocated.
#[global_allocator]
static ALLOCATOR: jail::Counting = jail::Counting;

fn main() -> ExitCode {
    name_thread("sluice");
    let mut arguments: Vec<_> = std::env::args_os().collect();
    if on_access::helper::is_meant(&arguments) {
        return on_access::helper::run(&arguments);
    }
    // Neither has anything to do with a command line that people type.
    let is_edge = match arguments.get(1).and_then(|argument| argument.to_str()) {
        Some("jail") => {
            name_thread("sluice: jails");
            let is_probe = arguments.get(2).is_some_and(|argument| argument == "probe");
            return if is_probe { jail::probe() } else { jail::run() };
        }
        Some("edge") => {
            name_thread("sluice: edge");
            arguments.remove(1);
            true
        }
        _ => false,
    };
    let is_clamscan = scan_command::clamscan::is_called(&mut arguments);
    let mut cli = Cli::parse_from(scan_command::clamscan::without_passed_over(arguments.into_iter()));
    if let (true, Command::Scan(scan)) = (is_clamscan, &mut cli.command) {
        scan_command::clamscan::have_its_signatures(scan);
    }
    let outcome = match cli.command {
        Command::Serve(args) if is_edge => serve::run(&args),
        Command::Serve(_) => supervise::run(),
        Command::Reload(args) => supervise::reload::run(&args),
        Command::Scan(args) => scan_command::run(&args),
        Command::Mount(args) => on_access::mount::run(&args),
        Command::Watch(args) => on_access::watch::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Config { command: ConfigCommand::Show(args) } => config_command::show(&args),
        Command::Intercept(args) => intercept::run(&args),
        Command::Quarantine(args) => quarantine::command::run(&args),
        Command::Log(args) => log_command::run(&args),
        Command::Database(args) => database_command::run(&args),
        Command::Update(args) => update::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Recipients { command } => recipients_command::run(&command),
        Command::Lookup(args) => lookup_command::run(&args),
        Command::Dnsbl(args) => dnsbl::command::run(&args),
        Command::Rules(args) => rules_command::run(&args),
        Command::Auth(args) => auth::run(&args),
        Command::Store(args) => store::command::run(&args),
        Command::Mail { command: MailCommand::Who(args) } => store::recall::who(&args),
        Command::Mail { command: MailCommand::Recall(args) } => store::recall::recall(&args),
        Command::Who(args) => store::recall::who(&args),
        Command::Recall(args) => store::recall::recall(&args),
        Command::Account(args) => store::account::run(&args),
        Command::Sieve(args) => sieve_command::run(&args),
        Command::Spam(args) => spam_command::run(&args),
        Command::Web(args) => web_command::run(&args),
        Command::Learn(args) => learn_command::run(&args),
        Command::Man { folder } => manual::pages(folder.as_deref()),
        Command::Completions { shell } => manual::completions(shell),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("sluice: {error}");
        ExitCode::from(2)
    })
}

/// What ps and top call this thread, and pgrep the process if it is its first; whatever the file is called.
fn name_thread(name: &str) {
    let name: Vec<u8> = name.trim_end().bytes().filter(|&byte| byte != 0).chain([0]).collect();
    let _ = std::ffi::CStr::from_bytes_with_nul(&name).map(rustix::thread::set_name);
}

/// What ends a command: shown after the program's name. Exit status 2.
pub type Failure = Box<dyn std::error::Error>;
