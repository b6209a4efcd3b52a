//! mbox files, in the form called mboxrd: a line `From ` begins a mail, and one more `>` stands before such lines within.
//!
//! Of files of others a line begins a mail if it has a date, behind an empty line or not; the first one in any case. Lines end as they
//! do in the file.

use std::io::{self, BufRead, Read, Write};

use time::OffsetDateTime;
use time::macros::format_description;

/// Bytes of a line that are held; the rest is passed on in pieces.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Element of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A mail begins, which came at this time, in seconds since 1970.
    Mail(Option<i64>),
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
    let (mut at_line_start, mut has_begun) = (true, false);
    loop {
        line.clear();
        if (&mut input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let is_from = at_line_start && line.starts_with(b"From ");
        let date = if is_from { date_in(&line) } else { None };
        if is_from && (date.is_some() || !has_begun) {
            held.clear();
            each(Item::Mail(date))?;
            has_begun = true;
        } else if has_begun {
            if !held.is_empty() {
                each(Item::Content(&held))?;
                held.clear();
            }
            if at_line_start && is_empty(&line) {
                held.extend_from_slice(&line);
            } else {
                let is_quoted = at_line_start && is_quoted_from(&line);
                each(Item::Content(&line[usize::from(is_quoted)..]))?;
            }
        } else if !is_empty(&line) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no mbox: it does not begin with \"From \"").into());
        }
        at_line_start = line.ends_with(b"\n");
    }
}

/// An empty line, as files of other systems begin with, too: behind a byte order mark.
fn is_empty(line: &[u8]) -> bool {
    matches!(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line), b"\n" | b"\r\n")
}

/// The date of a line `From ADDRESS Mon Feb  3 10:00:00 2020`, with a zone in front of the year or behind it, or none: UTC.
fn date_in(line: &[u8]) -> Option<i64> {
    let line = std::str::from_utf8(line).ok()?;
    let words: Vec<&str> = line.split_ascii_whitespace().skip(1).collect();
    let is_time = |word: &&str| {
        word.len() >= 4 && word.contains(':') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
    };
    let at = words.iter().position(is_time).filter(|at| *at >= 2)?;
    let (month, day, time) = (words[at - 2], words[at - 1], words[at]);
    let (year, others): (Vec<&str>, Vec<&str>) = words[at + 1..]
        .iter()
        .take(3)
        .partition(|word| word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit()));
    let zone = others.first().copied().unwrap_or("+0000");
    text::date::parse_message(format!("{day} {month} {} {time} {zone}", year.first()?).as_bytes())
        .map(|(seconds, _)| seconds)
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
                Item::Mail(_) => mails.push(Vec::new()),
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
    fn lines_that_begin_a_mail_have_a_date() {
        for (line, seconds) in [
            ("From a@b.c Mon Feb  3 10:00:00 2020\n", Some(1_580_724_000)),
            ("From - Mon Feb 03 10:00:00 2020\r\n", Some(1_580_724_000)),
            ("From \"a b\"@c Mon Feb  3 11:00 +0100 2020\n", Some(1_580_724_000)),
            ("From a Mon Feb  3 05:00:00 2020 EST remote from b\n", Some(1_580_724_000)),
            ("From 123@xxx Mon Feb 03 10:00:00 +0000 2020\n", Some(1_580_724_000)),
            ("From here to there\n", None),
            ("From 10:30 on it rains\n", None),
            ("From Feb 3 10:00:00\n", None),
        ] {
            assert_eq!(date_in(line.as_bytes()), seconds, "{line}");
        }
        let begin = "From a@b.c Mon Feb  3 10:00:00 2020\n";
        let file = format!("\n{begin}Subject: 1\n\nFrom here to there\n{begin}Subject: 2\n\nx\n");
        let wanted = ["Subject: 1\n\nFrom here to there\n", "Subject: 2\n\nx\n"];
        assert_eq!(mails(file.as_bytes()), wanted.map(str::as_bytes));
    }

    #[test]
    fn what_is_none_is_refused() {
        assert!(read(&b"Subject: x\n\nFrom y\n"[..], |_| Ok::<(), io::Error>(())).is_err());
    }
}
