//! Runs of a response that stay as they stand: text, quoted strings and literals, up to the end of a value or of a line.
//!
//! A literal is told apart from what stands around it: here it is a name or a short text, and line ends in it have no
//! meaning but to make it look like a message.
//!
//! Nothing is kept. A quoted string without an end, a literal that is none, a NUL and parentheses that do not match are
//! faults: readers could disagree about where such a response ends.

/// Parentheses within parentheses.
const DEPTH_MAX: u32 = 1_000;

/// Bytes of a string: a name or a short text, and no message.
const STRING_BYTES_MAX: u32 = 64 << 10;

/// Bytes of a value without strings, which is numbers, flags and dates.
const PLAIN_BYTES_MAX: u32 = 16 << 10;

/// Bytes of the value of an item: a thousand parts, or ten thousand addresses.
const VALUE_BYTES_MAX: usize = 8 << 20;

/// Within a run of text and literals.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Run {
    depth: u32,
    mode: Mode,
    /// Whether its value has no strings, by the grammar of its item.
    plain: bool,
    /// Bytes of the string under way, or of the value without strings.
    bytes: u32,
    /// Bytes of the run so far.
    total: usize,
}

#[derive(Debug, Clone, Copy, Default)]
enum Mode {
    #[default]
    Plain,
    Quoted,
    Escaped,
    /// `{`, and these digits.
    Digits {
        value: u64,
        count: u32,
    },
    /// `}`, and whether the carriage return has come.
    Announced {
        len: u64,
        after_cr: bool,
    },
    Literal(u64),
}

/// Where a run stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// With the input.
    Input,
    /// In front of a blank or a parenthesis at the top.
    ItemEnd,
    /// The line end is expected.
    LineEnd,
}

impl Run {
    /// A value without strings: numbers, flags, dates.
    pub(super) fn without_literals() -> Run {
        Run { plain: true, ..Run::default() }
    }

    /// Whether what is taken next stands in a literal.
    pub(super) fn is_in_literal(&self) -> bool {
        matches!(self.mode, Mode::Literal(_))
    }

    /// Takes text, or what is in a literal, up to a stop.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn take(&mut self, input: &[u8], items: bool) -> Result<(usize, Stop), &'static str> {
        if items && self.total > VALUE_BYTES_MAX {
            return Err("a value is too long");
        }
        let room = if items { (VALUE_BYTES_MAX + 1).saturating_sub(self.total) } else { usize::MAX };
        let taken = self.runs(&input[..input.len().min(room)], items)?;
        self.total = self.total.saturating_add(taken.0);
        Ok(taken)
    }

    fn runs(&mut self, input: &[u8], items: bool) -> Result<(usize, Stop), &'static str> {
        let (mut at, in_literal) = (0, self.is_in_literal());
        while let Some(&byte) = input.get(at) {
            if self.is_in_literal() != in_literal {
                break;
            }
            if let Mode::Literal(left) = self.mode {
                let count = usize::try_from(left).unwrap_or(usize::MAX).min(input.len() - at);
                at += count;
                let left = left - count as u64;
                self.mode = if left == 0 { Mode::Plain } else { Mode::Literal(left) };
                continue;
            }
            match self.look(byte, items) {
                Ok(Stop::Input) => at += 1,
                Ok(stop) => return Ok((at, stop)),
                // What stands in front of a fault passes; the fault is found again.
                Err(_) if at > 0 => break,
                Err(reason) => return Err(reason),
            }
        }
        Ok((at, Stop::Input))
    }

    fn look(&mut self, byte: u8, items: bool) -> Result<Stop, &'static str> {
        let is_new = matches!((self.mode, byte), (Mode::Plain, b'"')) && !self.plain;
        self.bytes = if is_new { 0 } else { self.bytes.saturating_add(1) };
        let is_string = matches!(self.mode, Mode::Quoted | Mode::Escaped);
        if self.plain && self.bytes > PLAIN_BYTES_MAX || is_string && self.bytes > STRING_BYTES_MAX {
            return Err("a string is too long");
        }
        self.mode = match (self.mode, byte) {
            (_, 0) => return Err("a NUL"),
            (Mode::Plain, b'\r' | b'\n') => return Ok(Stop::LineEnd),
            (Mode::Plain, b' ' | b')') if items && self.depth == 0 => return Ok(Stop::ItemEnd),
            (Mode::Plain, b'"') => Mode::Quoted,
            (Mode::Plain, b'{') if self.plain => return Err("a literal where none can be"),
            (Mode::Plain, b'{') => Mode::Digits { value: 0, count: 0 },
            (Mode::Plain, b'(') => {
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err("too many parentheses");
                }
                Mode::Plain
            }
            (Mode::Plain, b')') => {
                self.depth = self.depth.checked_sub(1).ok_or("a parenthesis too many")?;
                Mode::Plain
            }
            (Mode::Plain, _) => Mode::Plain,
            (Mode::Quoted | Mode::Escaped, b'\r' | b'\n') => return Err("a quoted string without an end"),
            (Mode::Quoted, b'"') => Mode::Plain,
            (Mode::Quoted, b'\\') => Mode::Escaped,
            (Mode::Quoted | Mode::Escaped, _) => Mode::Quoted,
            (Mode::Digits { value, count }, b'0'..=b'9') if count < 18 => {
                Mode::Digits { value: value * 10 + u64::from(byte - b'0'), count: count + 1 }
            }
            (Mode::Digits { value, .. }, b'}') if value > u64::from(STRING_BYTES_MAX) => {
                return Err("a string is too long");
            }
            (Mode::Digits { value, count: 1.. }, b'}') => Mode::Announced { len: value, after_cr: false },
            (Mode::Announced { len, after_cr: false }, b'\r') => Mode::Announced { len, after_cr: true },
            (Mode::Announced { len: 0, .. }, b'\n') => Mode::Plain,
            (Mode::Announced { len, .. }, b'\n') => Mode::Literal(len),
            _ => return Err("not a literal"),
        };
        Ok(Stop::Input)
    }
}
