//! Lines and dots: how content is framed in DATA (RFC 5321, section 4.5.2), read strictly and written safely.
//!
//! Only CRLF `.` CRLF ends DATA. A bare CR or LF is no line end on the wire; it becomes one in the content, and the
//! dot behind it stays, to be doubled when the content is written again. So whatever another server takes for an end
//! of DATA, it never sees it within a message that came through here.

use alloc::vec::Vec;

use memchr::{memchr2, memmem};
use stream::Window;

/// Reads content from the wire: undoes the dots of DATA and makes each line end CRLF.
#[derive(Debug, Clone)]
pub struct LineReader {
    at: At,
    dots: bool,
    bare: bool,
}

/// Where in a line the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// After CRLF, or at the very start.
    LineStart,
    /// Anywhere else.
    Text,
    /// After a CR that has not been written.
    Cr,
    /// After a dot at the start of a line, not written.
    Dot,
    /// After such a dot and a CR, neither written.
    DotCr,
    /// The end of DATA was seen.
    End,
}

/// Result of [`LineReader::read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// Bytes of the input that are done with.
    pub taken: usize,
    /// Whether the end of DATA was read.
    pub end: bool,
}

impl LineReader {
    /// A reader of DATA.
    pub const fn data() -> LineReader {
        LineReader { at: At::LineStart, dots: true, bare: false }
    }

    /// A reader of the chunks of BDAT, which have no dots and no end.
    pub const fn chunks() -> LineReader {
        LineReader { at: At::LineStart, dots: false, bare: false }
    }

    /// Whether a bare CR or LF has been read so far.
    pub const fn has_bare_line_ends(&self) -> bool {
        self.bare
    }

    /// Reads from `input` into `output` until one of them is used up, or DATA ends.
    ///
    /// `output` needs room for at least [`LineReader::ROOM_MIN`] bytes to get on.
    pub fn read(&mut self, input: &[u8], output: &mut Window) -> Read {
        let mut taken = 0;
        while taken < input.len() && self.at != At::End && output.room() >= LineReader::ROOM_MIN {
            taken += match self.at {
                At::Text | At::LineStart => self.text(&input[taken..], output),
                _ => self.byte(input[taken], output),
            };
        }
        Read { taken, end: self.at == At::End }
    }

    /// Writes what is still held at the end of the last chunk.
    pub fn finish(&mut self, output: &mut Window) {
        if self.at == At::Cr {
            self.bare = true;
            self.at = At::Text;
            output.push(b"\r\n");
        }
    }

    /// The room that one byte of input may need.
    pub const ROOM_MIN: usize = 4;

    /// Takes as long a run as can be copied as it stands.
    fn text(&mut self, input: &[u8], output: &mut Window) -> usize {
        if self.at == At::LineStart && self.dots && input[0] == b'.' {
            self.at = At::Dot;
            return 1;
        }
        let limit = input.len().min(output.room() - LineReader::ROOM_MIN + 1);
        let mut run = plain(&input[..limit], self.dots);
        self.at = At::Text;
        // Whole lines that need no attention are part of the run.
        while let Some(end) = memchr2(b'\r', b'\n', &input[run..limit]) {
            let line_end = run + end;
            match input.get(line_end..line_end + 3) {
                Some([b'\r', b'\n', next]) if line_end + 2 < limit && !(self.dots && *next == b'.') => {
                    run = line_end + 2
                }
                _ => {
                    output.push(&input[..line_end]);
                    return line_end + self.byte(input[line_end], output);
                }
            }
        }
        output.push(&input[..limit]);
        limit
    }

    /// Takes one byte that may be part of a line end or of the end of DATA.
    fn byte(&mut self, byte: u8, output: &mut Window) -> usize {
        match (self.at, byte) {
            (At::Text | At::LineStart, b'\r') => self.at = At::Cr,
            (At::Cr, b'\n') => {
                output.push(b"\r\n");
                self.at = At::LineStart;
            }
            (At::Dot, b'\r') => self.at = At::DotCr,
            (At::DotCr, b'\n') => self.at = At::End,
            (At::Cr | At::DotCr, _) => {
                // A bare CR. A dot before it was the first of its line, and goes.
                self.bare = true;
                output.push(b"\r\n");
                self.at = At::Text;
                return 0;
            }
            (At::Dot, _) => {
                self.at = At::Text;
                return 0;
            }
            (_, b'\n') => {
                self.bare = true;
                output.push(b"\r\n");
                self.at = At::Text;
            }
            (_, byte) => {
                output.push(&[byte]);
                self.at = At::Text;
            }
        }
        1
    }
}

/// How many of the first bytes, in the middle of a line or at its start, need no attention: all line ends in them are CRLF,
/// and no dot follows one if dots matter. Looked at in blocks, a vector of bytes and the one of their successors at a time, so
/// there may be more. At least one byte is left, and never a CR taken without its LF.
fn plain(input: &[u8], dots: bool) -> usize {
    const BLOCK: usize = 256;
    if input.first() == Some(&b'\n') {
        return 0;
    }
    let is_plain = |bytes: &[u8], next: &[u8]| {
        let unlike =
            |byte: u8, next: u8| ((byte == b'\r') != (next == b'\n')) | ((byte == b'\n') & (next == b'.') & dots);
        !bytes.iter().zip(next).fold(false, |any, (&byte, &next)| any | unlike(byte, next))
    };
    let blocks = input.chunks_exact(BLOCK).zip(input[input.len().min(1)..].chunks_exact(BLOCK));
    let run = blocks.take_while(|(bytes, next)| is_plain(bytes, next)).count() * BLOCK;
    run - usize::from(input[..run].last() == Some(&b'\r'))
}

/// Writes content to the wire: doubles the dots at the start of lines, and ends DATA.
#[derive(Debug, Clone)]
pub struct DotWriter {
    /// The last two bytes written.
    last: [u8; 2],
}

impl Default for DotWriter {
    fn default() -> DotWriter {
        DotWriter { last: *b"\r\n" }
    }
}

impl DotWriter {
    /// Appends `content` to `out`.
    pub fn write(&mut self, content: &[u8], out: &mut Vec<u8>) {
        let Some(&last) = content.last() else { return };
        if self.last[1] == b'\n' && content[0] == b'.' {
            out.push(b'.');
        }
        let mut from = 0;
        for at in memmem::find_iter(content, b"\n.") {
            out.extend_from_slice(&content[from..=at]);
            out.push(b'.');
            from = at + 1;
        }
        out.extend_from_slice(&content[from..]);
        self.last = [content.len().checked_sub(2).map_or(self.last[1], |at| content[at]), last];
    }

    /// Appends the end of DATA, behind a line end of its own if the content has none.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if self.last != *b"\r\n" {
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b".\r\n");
        self.last = *b"\r\n";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn read_cut(input: &[u8], piece: usize, room: usize) -> (Vec<u8>, Option<usize>, bool) {
        let (mut reader, mut content, mut at) = (LineReader::data(), Vec::new(), 0);
        while at < input.len() {
            let mut window = Window::with_capacity(room);
            let offered = &input[at..input.len().min(at + piece)];
            let read = reader.read(offered, &mut window);
            assert!(read.taken > 0 || read.end || !window.is_empty());
            at += read.taken;
            content.extend_from_slice(window.filled());
            if read.end {
                return (content, Some(at), reader.bare);
            }
        }
        (content, None, reader.bare)
    }

    fn read(input: &[u8]) -> (Vec<u8>, Option<usize>, bool) {
        read_cut(input, usize::MAX >> 1, 64 << 10)
    }

    #[test]
    fn dots_are_undone_and_the_end_is_found() {
        assert_eq!(read(b"a\r\n..b\r\n.c\r\n.\r\nQUIT"), (b"a\r\n.b\r\nc\r\n".to_vec(), Some(15), false));
        assert_eq!(read(b".\r\n"), (vec![], Some(3), false));
    }

    #[test]
    fn no_sequence_but_one_ends_the_data() {
        for (end, content) in [
            ("\n.\n", "a\r\n.\r\nb"),
            ("\n.\r\n", "a\r\n.\r\nb"),
            ("\r\n.\n", "a\r\n\r\nb"),
            ("\r.\r", "a\r\n.\r\nb"),
            ("\r.\r\n", "a\r\n.\r\nb"),
            ("\r\n.\r", "a\r\n\r\nb"),
            ("\n.\r", "a\r\n.\r\nb"),
            ("\r.\n", "a\r\n.\r\nb"),
            ("\r\n\0.\r\n", "a\r\n\0.\r\nb"),
            ("\r\n.\0\r\n", "a\r\n\0\r\nb"),
            ("\r\r\n.\r", "a\r\n\r\n\r\nb"),
        ] {
            let wire = alloc::format!("a{end}b");
            let (read, ended, _) = read(wire.as_bytes());
            assert_eq!(ended, None, "{end:?} ended the data");
            assert_eq!(alloc::string::String::from_utf8(read).unwrap(), content, "{end:?}");
        }
    }

    #[test]
    fn what_is_read_and_written_again_has_one_end() {
        for end in ["\n.\n", "\n.\r\n", "\r\n.\n", "\r.\r", "\r.\r\n", "\r\n.\r", "\r\n.\r\r\n"] {
            let wire = alloc::format!("a{end}MAIL FROM:<x@y>\r\n.\r\n");
            let (content, ended, bare) = read(wire.as_bytes());
            assert_eq!((ended, bare), (Some(wire.len()), true), "{end:?}");
            let mut out = Vec::new();
            let mut writer = DotWriter::default();
            writer.write(&content, &mut out);
            writer.end(&mut out);
            assert_eq!(memmem::find_iter(&out, b"\r\n.\r\n").count(), 1, "{end:?}");
            let lenient = out.windows(2).filter(|two| *two == b"\n.").count();
            let doubled = out.windows(3).filter(|three| *three == b"\n..").count();
            assert_eq!(lenient, doubled + 1, "{end:?}: an undoubled dot at the start of a line");
            assert!(!out.iter().enumerate().any(|(at, &byte)| byte == b'\n' && (at == 0 || out[at - 1] != b'\r')));
        }
    }

    proptest! {
        #[test]
        fn the_reader_gives_the_same_however_it_is_cut(
            input in "[a.\r\n]{0,60}", piece in 1usize..9, room in 4usize..20,
        ) {
            prop_assert_eq!(read_cut(input.as_bytes(), piece, room), read(input.as_bytes()));
        }

        #[test]
        fn long_runs_are_read_like_single_bytes(
            lines in proptest::collection::vec((0usize..300, "\r\n|\r\n|\r\n\\.|\r|\n|\r\r\n|\n\r|\\.|\r\n\\.\r\n"), 0..12),
        ) {
            let line = |(length, end): &(usize, alloc::string::String)| [&vec![b'a'; *length], end.as_bytes()].concat();
            let input: Vec<u8> = lines.iter().flat_map(line).collect();
            prop_assert_eq!(read(&input), read_cut(&input, 1, 20));
        }

        #[test]
        fn what_is_written_is_read_back(lines in proptest::collection::vec("[a.]{0,5}", 0..8), piece in 1usize..9) {
            let content: Vec<u8> = lines.iter().flat_map(|line| [line.as_bytes(), b"\r\n"].concat()).collect();
            let (mut out, mut writer) = (Vec::new(), DotWriter::default());
            content.chunks(piece).for_each(|piece| writer.write(piece, &mut out));
            writer.end(&mut out);
            prop_assert_eq!(read(&out), (content, Some(out.len()), false));
        }
    }
}
