//! The letters behind an expression, and in `(?i)` and the like.

/// How an expression is to be read: Perl's flags of the same letters.
///
/// There is no flag for the character set: an expression is always about bytes, as under Perl's `/aa`. Classes such as
/// `\w` have ASCII characters only, and letters of ASCII and of Latin-1 have two cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags {
    /// `i`: letters match in either case.
    pub ignore_case: bool,
    /// `m`: `^` and `$` also match at the lines inside.
    pub multi_line: bool,
    /// `s`: `.` also matches a line feed.
    pub dot_all: bool,
    /// `x`: blanks and comments are not part of the expression.
    pub extended: bool,
    /// `xx`: neither are blanks inside brackets.
    pub extended_more: bool,
    /// `n`: groups without a name capture nothing.
    pub no_capture: bool,
}

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags {
        ignore_case: false,
        multi_line: false,
        dot_all: false,
        extended: false,
        extended_more: false,
        no_capture: false,
    };

    /// The flags of these letters, of `imsxna` and those that are about neither reading nor matching: `gcopr`.
    ///
    /// # Errors
    /// The first letter that is none of them.
    pub fn of(letters: &str) -> Result<Flags, char> {
        let mut flags = Flags::NONE;
        for letter in letters.chars() {
            let known = u8::try_from(letter).is_ok_and(|byte| b"gcopr".contains(&byte) || flags.set(byte, true));
            if !known {
                return Err(letter);
            }
        }
        Ok(flags)
    }

    /// Sets or clears what the letter stands for, and says whether it is known.
    pub(super) fn set(&mut self, letter: u8, on: bool) -> bool {
        match letter {
            b'i' => self.ignore_case = on,
            b'm' => self.multi_line = on,
            b's' => self.dot_all = on,
            b'x' => {
                self.extended_more = on && self.extended;
                self.extended = on;
            }
            b'n' => self.no_capture = on,
            b'a' | b'd' | b'p' => {}
            _ => return false,
        }
        true
    }
}
