//! A store that a command reads: opened here, or asked of the server that has it open.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use mailbox::File;
use serde_json::{Value, json};
use store::{Content, Volume};

use super::control;
use super::look::{self, Look};
use super::volume::{open, open_as_root};
use crate::output::Failure;
use crate::process::privileges::Place;

/// The longest row, in bytes: a damaged message may be in many mailboxes.
const ROW_BYTES_MAX: u64 = 64 << 20;

/// The longest piece of content, in bytes.
const PIECE_BYTES_MAX: u64 = 1 << 20;

/// Where rows and content come from.
pub enum Source {
    /// The store itself, opened for reading.
    Here(Box<Volume<File>>),
    /// The server that has the store open.
    Server(BufReader<UnixStream>),
}

/// The outcome of reading a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Reading {
    /// All of it was read.
    Whole,
    /// No mailbox has it any more.
    Gone,
    /// The mail is damaged, with the reason.
    Damaged(String),
}

impl Source {
    /// Asks the server that has the store open, or opens the store. `as_root`: root has stayed root, and reads only what belongs
    /// to the owner of the folder.
    ///
    /// # Errors
    /// When no server answers and the store cannot be opened.
    pub fn open(place: &Place, as_root: bool) -> Result<Source, Failure> {
        if let Some(server) = Source::of_server(place)? {
            return Ok(server);
        }
        let volume = if as_root { open_as_root(place, true)? } else { open(place, true, false)? };
        Ok(Source::Here(Box::new(volume)))
    }

    /// The server that has the store open; `None` if no server has.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn of_server(place: &Place) -> Result<Option<Source>, Failure> {
        Ok(control::connect(place)?.map(|stream| Source::Server(BufReader::new(stream))))
    }

    /// Calls `each` with every row of an answer.
    ///
    /// # Errors
    /// When there is no such account or mailbox, and what `each` fails with.
    pub fn rows(&mut self, look: &Look, each: &mut dyn FnMut(&Value) -> Result<(), Failure>) -> Result<(), Failure> {
        let volume = match self {
            Source::Here(volume) => volume,
            Source::Server(stream) => {
                ask(stream, look)?;
                while let Some(row) = next(stream)? {
                    each(&row)?;
                }
                return Ok(());
            }
        };
        match look {
            Look::Stat => each(&look::stat(volume.state(), &volume.usage(), Some(volume.report()))),
            Look::Check => check(volume, each),
            listing => look::rows(volume.state(), listing)?.into_iter().flatten().try_for_each(|row| each(&row)),
        }
    }

    /// All rows of a short answer.
    ///
    /// # Errors
    /// As [`Source::rows`].
    pub fn all(&mut self, look: &Look) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        self.rows(look, &mut |row| {
            all.push(row.clone());
            Ok(())
        })?;
        Ok(all)
    }

    /// Calls `each` with the pieces of a message.
    ///
    /// # Errors
    /// What `each` fails with, and when the server is gone.
    pub fn content(
        &mut self,
        message: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<Reading, Failure> {
        match self {
            Source::Here(volume) => content_here(volume, message, each),
            Source::Server(stream) => {
                ask(stream, &Look::Content { message })?;
                content_there(stream, each)
            }
        }
    }
}

fn content_here(
    volume: &Volume<File>,
    number: u64,
    each: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<Reading, Failure> {
    let Some(message) = volume.state().message(number) else { return Ok(Reading::Gone) };
    let mut content = Content::new(number, message);
    let (mut piece, mut offset) = (vec![0; volume.geometry().piece_bytes as usize], 0);
    loop {
        match volume.read_piece(&mut content, offset, &mut piece) {
            Ok(0) => return Ok(Reading::Whole),
            Ok(length) => {
                each(&piece[..length])?;
                offset += length as u64;
            }
            Err(error) => return Ok(Reading::Damaged(error.to_string())),
        }
    }
}

fn content_there(
    stream: &mut BufReader<UnixStream>,
    each: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<Reading, Failure> {
    let (mut reading, mut piece) = (Reading::Whole, Vec::new());
    loop {
        let row = line(stream)?;
        if let Some(length) = row["piece"].as_u64().filter(|&length| length <= PIECE_BYTES_MAX) {
            piece.resize(usize::try_from(length)?, 0);
            stream.read_exact(&mut piece)?;
            each(&piece)?;
        } else if let Some(error) = row["error"].as_str() {
            return Ok(Reading::Damaged(error.into()));
        } else if row["gone"] == true {
            reading = Reading::Gone;
        } else {
            return Ok(reading);
        }
    }
}

fn ask(stream: &mut BufReader<UnixStream>, look: &Look) -> Result<(), Failure> {
    Ok(stream.get_mut().write_all(format!("look {}\n", serde_json::to_string(look)?).as_bytes())?)
}

/// The next row of a listing; none at its end.
fn next(stream: &mut BufReader<UnixStream>) -> Result<Option<Value>, Failure> {
    let row = control::checked(line(stream)?)?;
    Ok((row["end"] != true).then_some(row))
}

fn line(stream: &mut BufReader<UnixStream>) -> Result<Value, Failure> {
    let mut line = String::new();
    stream.take(ROW_BYTES_MAX).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(|_| "the server has ended the connection: its log says more".into())
}

fn check(volume: &Volume<File>, each: &mut dyn FnMut(&Value) -> Result<(), Failure>) -> Result<(), Failure> {
    let report = volume.report();
    for damage in &report.damage {
        each(&json!({ "damaged": damage.to_string() }))?;
    }
    if report.discarded_records > 0 {
        let note = format!("{} records behind the end of the log were discarded", report.discarded_records);
        each(&json!({ "note": note }))?;
    }
    if report.lost_transactions {
        each(&json!({ "note": "transactions are lost; all mailboxes have a new UIDVALIDITY" }))?;
    }
    let (state, mut outcome) = (volume.state(), Ok(()));
    volume.scrub(0, u64::MAX, &mut |number, error| {
        if outcome.is_ok() {
            outcome = each(&look::damaged(state, number, &error));
        }
    });
    outcome?;
    each(&json!({ "messages": volume.usage().messages }))
}
