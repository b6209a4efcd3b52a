//! `sluice auth check`: whom a mail is from, by SPF, DKIM, DMARC and ARC.
//!
//! The mail is read in pieces and none of its body is kept. Names are looked up by resolvers or in a file ([`Source`]), within
//! a budget of time; what is not there by then is a temporary error.

use std::fs::File;
use std::io::Read;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::auth::message::LineEnds;
use ::auth::{Check, Context, Limits, Results, dkim, dmarc, report, spf};
use flow::{Answer, Ask};
use serde_json::{Value, json};

use crate::cli::{self, AuthCheck, AuthCommand};
use crate::config::Config;
use crate::output::Failure;
use crate::process::confine::Reach;
use crate::process::privileges;
use crate::resolver::source::{Asks, Source};

/// Does what the command line says.
pub fn run(args: &cli::Auth) -> Result<ExitCode, Failure> {
    match &args.command {
        AuthCommand::Check(args) => check(args),
    }
}

fn check(args: &AuthCheck) -> Result<ExitCode, Failure> {
    let resolvers = match &args.config {
        Some(path) if args.resolvers.is_empty() && args.zone.is_none() => Config::read(path)?.dns.servers()?,
        _ => args.resolvers.clone(),
    };
    privileges::harden()?;
    let mut reach = Reach::reading();
    if args.zone.is_none() {
        reach.connect();
    }
    reach.confine(&[])?;
    let source = Source::new(args.zone.as_deref(), &resolvers, Duration::from_secs(args.timeout))?;
    let mut check = read(args)?;
    source.settle(&mut check)?;
    let questions = check.questions();
    let results = check.results().ok_or("the check has no result")?;
    match args.json {
        true => println!("{:#}", described(args, results, questions)),
        false => print(args, results),
    }
    Ok(ExitCode::from(u8::from(results.dmarc.outcome == dmarc::Outcome::Fail)))
}

impl Asks for Check {
    fn ask(&mut self) -> Option<Ask> {
        Check::ask(self)
    }

    fn answer(&mut self, answer: Answer) {
        Check::answer(self, answer);
    }
}

/// Reads the mail.
fn read(args: &AuthCheck) -> Result<Check, Failure> {
    let failed = |error| format!("{}: {error}", args.file.display());
    let mut source: Box<dyn Read> = match args.file.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(File::open(&args.file).map_err(failed)?),
    };
    let mut buffer = vec![0; 64 << 10];
    let mut len = source.read(&mut buffer).map_err(failed)?;
    let mut check = Check::new(context(args, &buffer[..len]), Limits::default());
    while len > 0 {
        check.feed(&buffer[..len]);
        len = source.read(&mut buffer).map_err(failed)?;
    }
    check.finish();
    Ok(check)
}

fn context(args: &AuthCheck, head: &[u8]) -> Context {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // As the first line ends, so do all.
    let is_wire = head.iter().position(|&byte| byte == b'\n').is_some_and(|at| head[..at].ends_with(b"\r"));
    Context {
        client: args.client,
        helo: args.helo.as_str().into(),
        sender: args.from.trim_matches(['<', '>']).into(),
        receiver: args.receiver.as_str().into(),
        now: args.time.unwrap_or_else(now),
        ends: if is_wire { LineEnds::Crlf } else { LineEnds::Any },
    }
}

fn print(args: &AuthCheck, results: &Results) {
    report::methods(&args.helo, results).iter().for_each(|line| println!("{line}"));
    if let Some(explanation) = &results.mailfrom.explanation {
        println!("explanation: {explanation}");
    }
    if let Some(disposition) = results.dmarc.disposition {
        println!("disposition: {}", disposition.name());
    }
    if results.signatures_left_out > 0 {
        println!("signatures left out: {}", results.signatures_left_out);
    }
    if !results.forged.is_empty() {
        println!("forged {} fields: {}", report::NAME, results.forged.len());
    }
}

fn described(args: &AuthCheck, results: &Results, questions: usize) -> Value {
    json!({
        "file": args.file,
        "spf": { "helo": sender(&results.helo), "mailfrom": sender(&results.mailfrom) },
        "dkim": results.dkim.iter().map(signature).collect::<Vec<_>>(),
        "signatures_left_out": results.signatures_left_out,
        "arc": {
            "result": results.arc.outcome.name(),
            "reason": &*results.arc.reason,
            "sealers": results.arc.sealers,
        },
        "dmarc": policy(&results.dmarc),
        "forged": results.forged,
        "header_cut": results.header_cut,
        "questions": questions,
        "authentication_results": report::field(&args.receiver, &args.helo, results),
    })
}

fn sender(report: &spf::Report) -> Value {
    json!({
        "result": report.outcome.name(),
        "domain": report.domain,
        "sender": report.sender,
        "reason": report.reason,
        "explanation": report.explanation,
        "lookups": report.lookups,
    })
}

fn signature(report: &dkim::Report) -> Value {
    json!({
        "result": report.outcome.name(),
        "reason": report.reason,
        "domain": report.domain,
        "selector": report.selector,
        "identity": report.identity,
        "algorithm": report.algorithm.map(|algorithm| algorithm.name()),
        "key_bits": report.key_bits,
        "testing": report.testing,
        "expired": report.expired,
        "bytes_unsigned": report.bytes_unsigned,
    })
}

fn policy(report: &dmarc::Report) -> Value {
    json!({
        "result": report.outcome.name(),
        "reason": report.reason,
        "domain": report.domain,
        "policy_domain": report.policy_domain,
        "policy": report.policy.map(dmarc::Policy::name),
        "disposition": report.disposition.map(dmarc::Policy::name),
        "testing": report.testing,
        "spf_aligned": report.spf_aligned,
        "dkim_aligned": report.dkim_aligned,
    })
}
