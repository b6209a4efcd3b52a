//! `sluice`: everything that touches the operating system.
//!
//! The command line, the configuration, files, sockets, signals and logs. What bytes mean is decided below, in
//! `inspect` and `proto`.

#[macro_use]
mod output;

mod admin;
mod audit;
mod cli;
mod cluster;
mod command;
mod config;
mod database;
mod dmarc;
mod dnsbl;
mod eve;
mod intercept;
mod learned;
mod logging;
mod lookups;
mod mails;
mod migrate;
mod numbers;
mod on_access;
mod process;
mod quarantine;
mod resolver;
mod serve;
mod store;
mod update;

use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command, ConfigCommand, MailCommand, MigrateCommand};

/// Counts the memory of inspections as it is allocated.
#[global_allocator]
static ALLOCATOR: jail::Counting = jail::Counting;

fn main() -> ExitCode {
    name_thread("sluice");
    jail::instructions::limit();
    let mut arguments: Vec<_> = std::env::args_os().collect();
    if on_access::helper::is_meant(&arguments) {
        return on_access::helper::run(&arguments);
    }
    // Neither has anything to do with a command line that people type.
    let mut is_keep = false;
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
        Some("keep") => {
            name_thread("sluice: keep");
            arguments.remove(1);
            is_keep = true;
            false
        }
        _ => false,
    };
    if let Some(arguments) = store::sendmail::is_called(&arguments) {
        return store::sendmail::run(&arguments);
    }
    let is_clamscan = command::scan::clamscan::is_called(&mut arguments);
    let mut cli = Cli::parse_from(command::scan::clamscan::without_passed_over(arguments.into_iter()));
    if let (true, Command::Scan(scan)) = (is_clamscan, &mut cli.command) {
        command::scan::clamscan::have_its_signatures(scan);
    }
    let outcome = match cli.command {
        Command::Serve(args) if is_edge => serve::run(&args),
        Command::Serve(args) if is_keep => serve::keep::run(&args),
        Command::Serve(args) => {
            if args.config.is_none() && args.clamd_conf.is_none() {
                process::beside::start(&["admin", "serve", "--built-in"]);
            }
            process::supervise::run()
        }
        Command::Reload(args) => process::supervise::reload::run(&args),
        Command::Scan(args) => command::scan::run(&args),
        Command::Mount(args) => on_access::mount::run(&args),
        Command::Watch(args) => on_access::watch::run(&args),
        Command::Explain(args) => command::explain::run(&args),
        Command::Check(args) => command::check::run(&args),
        Command::Config { command: ConfigCommand::Show(args) } => command::config::show(&args),
        Command::Intercept(args) => intercept::run(&args),
        Command::Quarantine(args) => quarantine::command::run(&args, store::reach::offer),
        Command::Log(args) => command::log::run(&args),
        Command::Database(args) => command::database::run(&args),
        Command::Update(args) => update::run(&args),
        Command::Top(args) => command::top::run(&args),
        Command::Recipients { command } => command::recipients::run(&command),
        Command::Lookup(args) => command::lookup::run(&args),
        Command::Dnsbl(args) => dnsbl::command::run(&args),
        Command::Rules(args) => command::rules::run(&args),
        Command::Auth(args) => command::auth::run(&args),
        Command::Dkim(args) => store::dkim::run(&args),
        Command::Dmarc(args) => dmarc::run(&args),
        Command::Domain(args) => store::domain::run(&args),
        Command::Migrate { command: MigrateCommand::Postfix(args) } => migrate::postfix(&args),
        Command::Sendmail { arguments } => return store::sendmail::run(&arguments),
        Command::Queue(args) => store::queue::run(&args),
        Command::Cluster(args) => cluster::command::run(&args, store::maildrop::waiting, store::shared::all),
        Command::Store(args) => store::command::run(&args),
        Command::Mail { command: MailCommand::Who(args) } => store::recall::who(&args),
        Command::Mail { command: MailCommand::Recall(args) } => store::recall::recall(&args),
        Command::Who(args) => store::recall::who(&args),
        Command::Recall(args) => store::recall::recall(&args),
        Command::Account(args) => store::account::run(&args),
        Command::Sieve(args) => command::sieve::run(&args),
        Command::Spam(args) => command::spam::run(&args),
        Command::Web(args) => command::web::run(&args),
        Command::Ids(args) => command::ids::run(&args),
        Command::Admin(args) => admin::run(&args),
        Command::Learn(args) => command::learn::run(&args),
        Command::Man { folder } => command::manual::pages(folder.as_deref()),
        Command::Completions { shell } => command::manual::completions(shell),
    };
    let printed = output::finish().map_err(|error| format!("standard output: {error}").into());
    outcome.and_then(|status| printed.map(|()| status)).unwrap_or_else(|error: output::Failure| {
        eprintln!("sluice: {error}");
        ExitCode::from(2)
    })
}

/// Sets the thread's name for ps and top, and the process's for pgrep if it is the first thread; whatever the file is
/// called.
fn name_thread(name: &str) {
    let name: Vec<u8> = name.trim_end().bytes().filter(|&byte| byte != 0).chain([0]).collect();
    let _ = std::ffi::CStr::from_bytes_with_nul(&name).map(rustix::thread::set_name);
}
