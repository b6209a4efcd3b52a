//! `sluice intercept`: puts the rules in force that send connections to transparent listeners, and takes them back.
//!
//! nft(8) and ip(8) do it, as an administrator would. Everything stands in one table of its own, which is replaced as a
//! whole, and in one routing table: to install twice is to install once, and to remove what is not there is no error.

mod rules;

use std::io::Write as _;
use std::process::{Command, ExitCode, Stdio};

use crate::cli::{Intercept, InterceptCommand};
use crate::config::Config;
use crate::output::Failure;
use rules::Rules;

/// Prints, installs or removes the rules.
pub fn run(args: &Intercept) -> Result<ExitCode, Failure> {
    let config = Config::read(&args.config)?;
    let rules = Rules::new(&config);
    if rules.is_empty() && !matches!(args.command, InterceptCommand::Remove) {
        return Err(format!("{}: no [[listener]] is transparent", args.config.display()).into());
    }
    match args.command {
        InterceptCommand::Print => print!("{}", rules.text()),
        InterceptCommand::Install => install(&rules)?,
        InterceptCommand::Remove => remove(&rules)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn install(rules: &Rules<'_>) -> Result<(), Failure> {
    need_privileges()?;
    // What cannot be in force as a whole is not begun.
    tell("nft", &["-c", "-f", "-"], &rules.table())?;
    tell("nft", &["-f", "-"], &rules.table())?;
    let routed = rules.routes().iter().try_for_each(|route| {
        // A second rule of the same kind would stay behind when the first is removed.
        let _ = tell("ip", &route.forget(), "");
        tell("ip", &route.mark(), "")?;
        tell("ip", &route.deliver(), "")
    });
    if routed.is_err() {
        remove(rules)?;
    }
    routed
}

fn remove(rules: &Rules<'_>) -> Result<(), Failure> {
    need_privileges()?;
    tell("nft", &["-f", "-"], Rules::NONE)?;
    for route in rules.every_route() {
        // Which of them there are is not known.
        let _ = tell("ip", &route.forget(), "");
        let _ = tell("ip", &route.flush(), "");
    }
    Ok(())
}

/// Checks for privileges, since nft's own message is hard to understand.
fn need_privileges() -> Result<(), Failure> {
    const CAP_NET_ADMIN: u64 = 1 << 12;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let held = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    match held {
        Some(held) if held & CAP_NET_ADMIN == 0 => Err("changing the packet filter needs root (CAP_NET_ADMIN)".into()),
        _ => Ok(()),
    }
}

/// Runs a program with `input`.
fn tell(program: &str, args: &[impl AsRef<std::ffi::OsStr>], input: &str) -> Result<(), Failure> {
    // Not every user finds the folders of the administrator's programs.
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(program);
    command.env("PATH", path).args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{program} cannot be run: {error}"))?;
    // It may end before it has read all: then it says why.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()).into())
}
