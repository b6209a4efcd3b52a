//! Printing, and the error of a command.
//!
//! `println!`, `print!` and `eprintln!` are the standard library's but for a closed pipe: its reader has seen enough, and
//! that is no reason to leave work half done. What could not be written for another reason is the error of the command.

use std::io::{self, ErrorKind, Write as _};
use std::sync::{Mutex, PoisonError};

macro_rules! println {
    ($($text:tt)*) => { $crate::output::write(format_args!("{}\n", format_args!($($text)*))) };
}
macro_rules! print {
    ($($text:tt)*) => { $crate::output::write(format_args!($($text)*)) };
}
macro_rules! eprintln {
    ($($text:tt)*) => { drop(std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{}\n", format_args!($($text)*)))) };
}

/// The error of a command, printed after the program's name. Exit status 2.
pub type Failure = Box<dyn std::error::Error>;

/// Why a part of the output could not be written.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Writes to standard output.
pub fn write(text: std::fmt::Arguments<'_>) {
    note(io::stdout().write_fmt(text));
}

/// That all was written; a closed pipe is no error.
///
/// # Errors
/// When something was not.
pub fn finish() -> io::Result<()> {
    note(io::stdout().flush());
    LOST.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
}

/// Standard output for much: after its reader has closed it, the rest is dropped without an error.
pub fn out() -> impl io::Write {
    Out(io::stdout().lock())
}

struct Out(io::StdoutLock<'static>);

impl io::Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
            outcome => outcome,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().or_else(|error| if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
    }
}

/// Notes what became of a write to standard output, for the end.
pub fn note(outcome: io::Result<()>) {
    if let Err(error) = outcome
        && error.kind() != ErrorKind::BrokenPipe
    {
        *LOST.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}
