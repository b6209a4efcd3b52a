//! `sendmail -bs`: SMTP on standard input and output, as programs speak it that know no other way. Each mail goes into the maildrop.

use std::io::{Read, Write};
use std::path::Path;

use proto::smtp::{Config, Extensions, MailFrom, Reply, Server, ServerEvent};
use stream::Window;

use super::draft::Draft;
use super::envelope::{BYTES_MAX, Envelope};
use super::input::RECIPIENTS_MAX;
use super::{Fault, WINDOW_BYTES};
use crate::config::host_name;

const OK: Reply = Reply::new(250, (2, 0, 0), "Ok");
const TOO_MANY: Reply = Reply::new(452, (4, 5, 3), "Too many recipients");
const FAILED: Reply = Reply::new(451, (4, 3, 0), "The mail cannot be taken now");

/// Speaks until the client ends it.
///
/// # Errors
/// When the client cannot be heard or told.
pub fn serve(
    (folder, bytes_max): (&Path, u64),
    from: Option<&str>,
    mut input: impl Read,
    mut output: impl Write,
) -> Result<(), Fault> {
    let failed = |error: std::io::Error| Fault::input(&error);
    let extensions = Extensions {
        pipelining: true,
        size: Some(bytes_max),
        eight_bit_mime: true,
        smtputf8: true,
        enhanced_status_codes: true,
        dsn: true,
        ..Extensions::default()
    };
    let config = Config { hostname: host_name(), extensions, ..Config::default() };
    let mut server = Server::new(config, 0);
    let mut session = Session { folder, bytes_max, from, envelope: Envelope::default(), draft: Ok(None) };
    let (mut window, mut heard) = (Window::with_capacity(WINDOW_BYTES), Window::with_capacity(WINDOW_BYTES));
    loop {
        output.write_all(server.outbox()).and_then(|()| output.flush()).map_err(failed)?;
        server.sent(server.outbox().len());
        let (taken, event) = server.step(0, heard.filled(), &mut window);
        heard.take(taken);
        match event {
            ServerEvent::Closed => return output.write_all(server.outbox()).map_err(failed),
            ServerEvent::Idle if taken == 0 && server.outbox().is_empty() => {
                let count = input.read(heard.spare()).map_err(failed)?;
                if count == 0 {
                    return Ok(());
                }
                heard.wrote(count);
            }
            event => session.event(event, &mut server, &mut window),
        }
    }
}

/// The mail under way.
struct Session<'a> {
    folder: &'a Path,
    bytes_max: u64,
    /// The sender of the command line, in place of those of mails.
    from: Option<&'a str>,
    envelope: Envelope,
    draft: Result<Option<Draft<'a>>, Fault>,
}

impl Session<'_> {
    fn event(&mut self, event: ServerEvent, server: &mut Server, window: &mut Window) {
        match event {
            ServerEvent::Hello { .. } | ServerEvent::Reset => self.draft = Ok(None),
            ServerEvent::Mail(MailFrom { path, ret, envid, .. }) => {
                let from = Some(self.from.unwrap_or(path.as_str()).to_owned());
                self.envelope = Envelope { from, ret, envid: envid.unwrap_or_default(), ..Envelope::default() };
                server.reply(&OK);
            }
            ServerEvent::Recipient(recipient) => {
                if self.envelope.recipients.len() >= RECIPIENTS_MAX {
                    return server.reply(&TOO_MANY);
                }
                // One word for all of them: the last that asks.
                self.envelope.notify = recipient.notify.unwrap_or_else(|| std::mem::take(&mut self.envelope.notify));
                self.envelope.recipients.push(recipient.path.as_str().to_owned());
                server.reply(&OK);
            }
            ServerEvent::Data => {
                let envelope = self.envelope.write();
                let is_long = envelope.len() > BYTES_MAX;
                self.draft = if is_long {
                    Err(Fault::data("the recipients are too long"))
                } else {
                    Draft::begin(self.folder, &envelope, self.bytes_max).map(Some)
                };
                server.begin();
            }
            ServerEvent::Content => {
                if let Ok(Some(draft)) = &mut self.draft
                    && let Err(fault) = draft.add(window.filled())
                {
                    self.draft = Err(fault);
                }
                window.clear();
            }
            ServerEvent::End { .. } => {
                let draft = std::mem::replace(&mut self.draft, Ok(None));
                server.reply(&match draft.and_then(|draft| draft.map_or(Ok(()), Draft::finish)) {
                    Ok(()) => OK,
                    Err(Fault { status: 65, why }) => Reply::with_text(552, (5, 3, 4), why),
                    Err(Fault { why, .. }) => Reply { text: why.into(), ..FAILED },
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mails_of_a_session_come_into_the_maildrop() {
        let folder = tempfile::tempdir().unwrap();
        let said = "EHLO [127.0.0.1]\r\nMAIL FROM:<www@example.org>\r\nRCPT TO:<a@example.org>\r\nRCPT TO:<b@example.org>\r\n\
                    DATA\r\nSubject: x\r\n\r\n..dot\r\n.\r\nRSET\r\nMAIL FROM:<>\r\nRCPT TO:<c@example.org>\r\nDATA\r\n\
                    0123456789012345678901234567890123456789\r\n.\r\nQUIT\r\n";
        let mut told = Vec::new();
        serve((folder.path(), 30), None, said.as_bytes(), &mut told).unwrap();
        let told = String::from_utf8(told).unwrap();
        let codes: Vec<&str> = told.lines().filter(|line| line.as_bytes()[3] == b' ').map(|line| &line[..3]).collect();
        assert_eq!(
            codes,
            ["220", "250", "250", "250", "250", "354", "250", "250", "250", "250", "354", "552", "221"],
            "{told}"
        );
        let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 1);
        let text = std::fs::read_to_string(&files[0]).unwrap();
        let (envelope, at) = Envelope::read(text.as_bytes()).unwrap();
        assert_eq!(envelope.from.as_deref(), Some("www@example.org"));
        assert_eq!(envelope.recipients, ["a@example.org", "b@example.org"]);
        assert_eq!(&text[at..], "Subject: x\r\n\r\n.dot\r\n");
    }
}
