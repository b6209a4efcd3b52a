//! Actions as text: a line each, close to how a script would say it.

use alloc::string::String;
use core::fmt;

use super::{Action, Failure};

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Keep { flags, is_implicit, header } => {
                f.write_str(if *is_implicit { "keep (implicit)" } else { "keep" })?;
                stored(f, flags, header.is_some())
            }
            Action::FileInto { mailbox, flags, create, special_use, header } => {
                write!(f, "fileinto {mailbox:?}")?;
                if let Some(special_use) = special_use {
                    write!(f, " :specialuse {special_use:?}")?;
                }
                f.write_str(if *create { " :create" } else { "" })?;
                stored(f, flags, header.is_some())
            }
            Action::Redirect { address } => write!(f, "redirect {address:?}"),
            Action::Discard => f.write_str("discard"),
            Action::Reject { reason, is_extended } => {
                write!(f, "{} {reason:?}", if *is_extended { "ereject" } else { "reject" })
            }
            Action::Vacation(vacation) => {
                write!(f, "vacation to {:?}, subject {:?}", vacation.to, vacation.subject)?;
                write!(f, ", again after {} seconds", vacation.seconds)?;
                vacation.withheld.map_or(Ok(()), |why| write!(f, " (not sent: {why})"))
            }
        }
    }
}

fn stored(f: &mut fmt::Formatter<'_>, flags: &[String], is_edited: bool) -> fmt::Result {
    if !flags.is_empty() {
        write!(f, " :flags {:?}", flags.join(" "))?;
    }
    f.write_str(if is_edited { " (edited header)" } else { "" })
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.script.is_empty() {
            write!(f, "script {}, ", self.script)?;
        }
        write!(f, "line {}: {}", self.line, self.text)
    }
}
