//! Printing, and the error of a command.
//!
//! `println!`, `print!` and `eprintln!` are the standard library's but for a closed pipe: its reader has seen enough, and
//! that is no reason to leave work half done.

macro_rules! println {
    ($($text:tt)*) => { drop(std::io::Write::write_fmt(&mut std::io::stdout(), format_args!("{}\n", format_args!($($text)*)))) };
}
macro_rules! print {
    ($($text:tt)*) => { drop(std::io::Write::write_fmt(&mut std::io::stdout(), format_args!($($text)*))) };
}
macro_rules! eprintln {
    ($($text:tt)*) => { drop(std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{}\n", format_args!($($text)*)))) };
}

/// The error of a command, printed after the program's name. Exit status 2.
pub type Failure = Box<dyn std::error::Error>;
