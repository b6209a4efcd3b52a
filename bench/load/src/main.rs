//! Load generator and sink of the mail benches: one process holds both ends, so that one clock times both.
//!
//! `sluice-bench-load [--sink ADDRESS] [--chunking]` opens the sink (none without `--sink`), prints `ready` and then
//! reads runs from standard input, one a line, as `key=value` words (see [`run`]); it answers each with one line of
//! JSON (see [`report`]). It ends when standard input does. The sink outlives the runs, so that a gateway may keep its
//! connections.
//!
//! An order that begins with `retrieve=` is for clients that read mail instead (see [`retrieve`]), and one that begins with
//! `relay=` opens a relay (see [`relay`]). One that begins with `mixed=` is for good mails among bounces (see [`mixed`]).
//!
//! It knows nothing of the gateways under test and measures only times and counts; processor time and memory are read
//! from outside. The sender opens a connection for each mail unless told otherwise (`mails_per_connection`) and waits
//! for the reply to each command, as most clients do.
//!
//! Bounds: two threads, and one for each client that reads; memory is the mails of the manifest plus a few kB a session. A mail of any size can be
//! generated on the fly.

mod ledger;
mod mail;
mod mixed;
mod relay;
mod report;
mod retrieve;
mod run;
mod sender;
mod sink;
mod trust;

use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use ledger::Board;
use run::Run;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("sluice-bench-load: {reason}");
            ExitCode::from(2)
        }
    }
}

fn serve() -> Result<(), String> {
    let options = Options::parse(std::env::args().skip(1))?;
    let board = Arc::new(Board::default());
    if let Some(address) = options.sink {
        let sink = sink::Sink::open(address, options.chunking, Arc::clone(&board));
        let sink = sink.map_err(|error| format!("sink on {address}: {error}"))?;
        thread::spawn(move || sink.serve());
    }
    say("ready")?;
    for (number, line) in (1..).zip(io::stdin().lock().lines()) {
        let line = line.map_err(|error| error.to_string())?;
        say(&answer(&line, number, &board, options.sink.is_some()))?;
    }
    Ok(())
}

/// Does one run; what is wrong with it is told in the answer, because the next one may be right.
fn answer(line: &str, number: u32, board: &Board, sunk: bool) -> String {
    if line.starts_with("retrieve=") {
        return retrieve::answer(line);
    }
    if line.starts_with("relay=") {
        return relay::answer(line);
    }
    if line.starts_with("mixed=") {
        return mixed::answer(line, number, board, sunk);
    }
    let run = match Run::parse(line) {
        Ok(run) => run,
        Err(reason) => return report::refusal(&reason),
    };
    let ledger = board.open(number, run.mails, sunk);
    match sender::drive(&run, &ledger) {
        Ok(records) => report::report(&run, &ledger, &records),
        Err(error) => report::refusal(&error.to_string()),
    }
}

fn say(line: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| error.to_string())
}

#[derive(Default)]
struct Options {
    sink: Option<SocketAddr>,
    chunking: bool,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--sink" => options.sink = Some(address(&words.next().ok_or("--sink wants HOST:PORT")?)?),
                "--chunking" => options.chunking = true,
                _ => {
                    return Err(format!("{word}: unknown; usage: sluice-bench-load [--sink HOST:PORT] [--chunking]"));
                }
            }
        }
        Ok(options)
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("{text:?} is no HOST:PORT with a numeric host"))
}
