//! The mail that tells a recipient that a part of another mail was overwritten.
//!
//! It is a mail of its own with a null reverse-path, so that nothing can bounce off it, and marked as automatic
//! (RFC 3834).

use std::fmt::Write as _;

use inspect::{Action, Policy, Verdict};

use super::message::{date, describe};

/// The text of the notice, CRLF line ends.
pub fn text(hostname: &str, id: &str, sender: &str, recipients: &str, verdict: &Verdict, policy: &Policy) -> String {
    let mut text = format!(
        "From: Mail gateway <postmaster@{hostname}>\r\n\
         To: {recipients}\r\n\
         Subject: Part of a mail to you was removed\r\n\
         Date: {}\r\n\
         Message-ID: <notice.{id}@{hostname}>\r\n\
         Auto-Submitted: auto-replied\r\n\
         MIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=us-ascii\r\n\
         \r\n\
         A mail from {sender} to you held something dangerous.\r\n\
         The gateway {hostname} has overwritten that part and delivered the rest.\r\n\
         \r\n",
        date()
    );
    let removed = verdict.findings.iter().filter(|spotted| policy.action(spotted.finding.class) == Action::Blank);
    for spotted in removed.take(16) {
        let _ = write!(text, "  {}\r\n", describe(spotted));
    }
    let _ = write!(text, "\r\nYour administrator finds the details in the log under the id {id}.\r\n");
    text
}
