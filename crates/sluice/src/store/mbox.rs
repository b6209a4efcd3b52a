//! mbox files, in the form called mboxrd: a line `From ` begins a mail, and one more `>` stands before such lines within.
//!
//! Flags are not read and not written. Lines end as they do in the file.

use std::io::{self, BufRead, Read, Write};

use time::OffsetDateTime;
use time::macros::format_description;

/// Bytes of a line that are held; the rest is passed on in pieces.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Element of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A mail begins.
    Mail,
    /// A piece of it.
    Content(&'a [u8]),
}

/// Reads an mbox, piece by piece. The empty line before each `From ` belongs to no mail.
pub fn read<E: From<io::Error>>(
    mut input: impl BufRead,
    mut each: impl FnMut(Item<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut line = Vec::new();
    // A line may begin a mail if the one before it was empty; that one is held back.
    let mut held: Vec<u8> = Vec::new();
    let (mut is_after_empty, mut at_line_start, mut has_begun) = (true, true, false);
    loop {
        line.clear();
        if (&mut input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if at_line_start && is_after_empty && line.starts_with(b"From ") {
            held.clear();
            each(Item::Mail)?;
            (has_begun, is_after_empty) = (true, false);
        } else if has_begun {
            if !held.is_empty() {
                each(Item::Content(&held))?;
                held.clear();
            }
            is_after_empty = at_line_start && matches!(line[..], [b'\n'] | [b'\r', b'\n']);
            if is_after_empty {
                held.extend_from_slice(&line);
            } else {
                let is_quoted = at_line_start && is_quoted_from(&line);
                each(Item::Content(&line[usize::from(is_quoted)..]))?;
            }
        } else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no mbox: it does not begin with \"From \"").into());
        }
        at_line_start = line.ends_with(b"\n");
    }
}

fn is_quoted_from(line: &[u8]) -> bool {
    let quotes = line.iter().take_while(|&&byte| byte == b'>').count();
    quotes > 0 && line[quotes..].starts_with(b"From ")
}

/// A mail being written to an mbox.
pub struct Writer<W> {
    out: W,
    /// Beginning of the present line while it may be quotes and `From `.
    pending: Vec<u8>,
    is_decided: bool,
    ends_line: bool,
}

impl<W: Write> Writer<W> {
    /// Begins a mail of this date.
    pub fn begin(mut out: W, date: &str) -> io::Result<Self> {
        writeln!(out, "From MAILER-DAEMON {date}")?;
        Ok(Writer { out, pending: Vec::new(), is_decided: false, ends_line: true })
    }

    /// Adds a piece of it.
    pub fn add(&mut self, piece: &[u8]) -> io::Result<()> {
        for part in piece.split_inclusive(|&byte| byte == b'\n') {
            if self.is_decided {
                self.out.write_all(part)?;
            } else {
                self.pending.extend_from_slice(part);
                self.decide()?;
            }
            self.ends_line = part.ends_with(b"\n");
            if self.ends_line {
                self.flush_line()?;
                self.is_decided = false;
            }
        }
        Ok(())
    }

    /// Ends the mail.
    pub fn end(mut self) -> io::Result<()> {
        self.flush_line()?;
        self.out.write_all(if self.ends_line { b"\n" } else { b"\n\n" })
    }

    fn decide(&mut self) -> io::Result<()> {
        let quotes = self.pending.iter().take_while(|&&byte| byte == b'>').count();
        let rest = &self.pending[quotes..];
        if rest.starts_with(b"From ") {
            self.out.write_all(b">")?;
        } else if b"From ".starts_with(rest) && quotes < LINE_BYTES_MAX as usize {
            return Ok(());
        }
        self.flush_line()?;
        self.is_decided = true;
        Ok(())
    }

    fn flush_line(&mut self) -> io::Result<()> {
        self.out.write_all(&self.pending)?;
        self.pending.clear();
        Ok(())
    }
}

/// A time as `From ` lines have it.
pub fn date_of(date: i64) -> String {
    let format = format_description!(
        "[weekday repr:short] [month repr:short] [day padding:space] [hour]:[minute]:[second] [year]"
    );
    let date = OffsetDateTime::from_unix_timestamp(date).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    date.format(format).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mails(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut mails: Vec<Vec<u8>> = Vec::new();
        let each = |item: Item<'_>| {
            match item {
                Item::Mail => mails.push(Vec::new()),
                Item::Content(piece) => mails.last_mut().unwrap().extend_from_slice(piece),
            }
            Ok::<(), io::Error>(())
        };
        read(bytes, each).unwrap();
        mails
    }

    #[test]
    fn what_is_written_is_read_back_however_it_comes() {
        let wanted: [&[u8]; 4] = [
            b"Subject: a\n\nFrom here\n>From there\n>>From >\n>\n\nFrom\nlast\n",
            b"\n\n\n",
            b"",
            b"From From\n\n>From \n",
        ];
        for piece in [1, 3, 100] {
            let mut out = Vec::new();
            for mail in wanted {
                let mut writer = Writer::begin(&mut out, "Thu Jan  1 00:00:00 1970").unwrap();
                mail.chunks(piece).for_each(|piece| writer.add(piece).unwrap());
                writer.end().unwrap();
            }
            assert_eq!(mails(&out), wanted, "{}", String::from_utf8_lossy(&out));
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        assert!(read(&b"Subject: x\n\nFrom y\n"[..], |_| Ok::<(), io::Error>(())).is_err());
    }
}
