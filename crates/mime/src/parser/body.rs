//! The content of a body that is not a container: everything up to a delimiter line of an open multipart.
//!
//! Runs of content are passed as they stand; only lines that begin with two hyphens are looked at. Held back are the
//! line end before such a line, which belongs to the delimiter, and the line as far as it may be one.
//!
//! Where some readers look for a header (before the first delimiter of a multipart, and behind the blank lines at the start of
//! an entity) the first line that begins with [`FIELD`] is looked at, too.

use alloc::boxed::Box;

use memchr::{memchr2_iter, memmem};
use stream::{Kind, Object};

use super::Advance;
use super::boundary::{Matcher, Verdict, is_possible};
use super::reader::{Reader, Tell};

/// The longest line that is guessed to be a delimiter of an undeclared boundary.
const GUESS_BYTES_MAX: usize = 200;

/// How the fields begin that say how a body is read, in either case.
const FIELD: &[u8] = b"content-t";

/// A body being read.
#[derive(Debug, Clone)]
pub(super) struct Body {
    pub leaf: Leaf,
    at: At,
}

/// The object that the content belongs to.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    role: Role,
    object: Object,
    /// It is an open object of this reading.
    told: bool,
    /// For some readers a header may begin in it.
    wants_field: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Part,
    Preamble,
    Epilogue,
}

#[derive(Debug, Clone)]
enum At {
    /// Within a line that is content; nothing is held.
    Middle,
    /// After a CR, which is held.
    Cr,
    /// At the start of a line that may be a delimiter; it is held, and the line end before it.
    Start(Start),
    /// The line held is a delimiter, or may be one.
    Decided(Decision),
}

#[derive(Debug, Clone)]
struct Start {
    /// How many of the held bytes are the line end before the line.
    line_at: usize,
    /// That line end is a CR that others do not take for one.
    bare_cr: bool,
    /// None when the line is no delimiter of an open multipart, but perhaps one of an undeclared boundary.
    matcher: Option<Matcher>,
    /// How many held bytes of the line have been read.
    seen: usize,
}

#[derive(Debug, Clone, Copy)]
enum Decision {
    Delimiter(super::Delimiter),
    BareDelimiter(super::Delimiter),
    /// It begins like a field, behind a line end of so many bytes.
    Field(usize),
}

impl Body {
    /// A body at its start; if bytes are held, they are the beginning of its first line.
    pub(super) const fn new(leaf: Leaf) -> Body {
        Body { leaf, at: At::Start(Start::new(0, false)) }
    }

    /// The header in front of it was empty, so that some readers look for one here.
    pub(super) const fn want_field(&mut self) {
        self.leaf.wants_field = true;
    }

    pub(super) fn advance(&mut self, reader: &mut Reader, input: &[u8]) -> Advance {
        let Some(&next) = input.first() else {
            return Advance::Took(0);
        };
        match &self.at {
            At::Middle => self.middle(reader, input),
            At::Cr if next == b'\n' => {
                reader.hold(next);
                self.at = At::Start(Start::new(2, false));
                Advance::Took(1)
            }
            At::Cr => {
                self.at = At::Start(Start::new(1, reader.bare_cr_is_content()));
                Advance::Took(0)
            }
            At::Start(_) => self.line_start(reader, input),
            At::Decided(decision) => decision.advance(),
        }
    }

    pub(super) fn advance_at_end(&mut self, reader: &mut Reader) -> Advance {
        match &self.at {
            At::Middle => Advance::Finished,
            At::Cr => {
                self.take_for_content(reader);
                Advance::Took(0)
            }
            At::Start(_) => match self.read_held(reader) {
                true => Advance::Took(0),
                false => self.line_ended(reader),
            },
            At::Decided(decision) => decision.advance(),
        }
    }

    /// Takes held bytes for content, except for a CR at their end, which may begin a line end.
    pub(super) fn take_for_content(&mut self, reader: &mut Reader) {
        let line_at = match &self.at {
            At::Start(start) => start.line_at,
            At::Decided(_) => 2,
            At::Middle | At::Cr => usize::MAX,
        };
        let kept = usize::from(reader.held().len() > line_at && reader.held().ends_with(b"\r"));
        self.at = if kept > 0 { At::Cr } else { At::Middle };
        if !self.leaf.told {
            let line_ends = reader.held().iter();
            let line_ends = line_ends.take_while(|byte| matches!(byte, b'\r' | b'\n'));
            let count = line_ends.count();
            reader.drop_held_front(count.min(reader.held().len() - kept));
            if reader.held().len() == kept {
                return;
            }
            self.leaf.open(reader);
        }
        reader.tell_held_but(kept);
    }

    /// The held line, which begins like a field, is content in this reading, and so are those behind it.
    pub(super) fn take_field_for_content(&mut self, reader: &mut Reader) {
        self.leaf.wants_field = false;
        self.take_for_content(reader);
    }

    /// The boundary that the held line would belong to if it were a delimiter.
    pub(super) fn guessed_boundary(&self, reader: &Reader) -> Option<Box<[u8]>> {
        let At::Start(start) = &self.at else {
            return None;
        };
        let line = reader.held().get(start.line_at..)?;
        let boundary = line.strip_prefix(b"--")?.trim_ascii_end();
        let plausible = boundary.len() <= GUESS_BYTES_MAX
            && boundary.iter().all(u8::is_ascii_graphic)
            && boundary.iter().any(u8::is_ascii_alphanumeric);
        plausible.then(|| boundary.into())
    }

    fn middle(&mut self, reader: &mut Reader, input: &[u8]) -> Advance {
        let count = self.content_bytes(reader, input);
        if count > 0 {
            if !self.leaf.told {
                self.leaf.open(reader);
                return Advance::Took(0);
            }
            return Advance::Content(count);
        }
        reader.hold(input[0]);
        self.at = if input[0] == b'\r' { At::Cr } else { At::Start(Start::new(1, false)) };
        Advance::Took(1)
    }

    /// Returns how many bytes at the front of `input`, which begins within a line, are certainly content; 0 before a
    /// line end.
    fn content_bytes(&self, reader: &Reader, input: &[u8]) -> usize {
        if !self.leaf.told && matches!(input[0], b'\r' | b'\n') {
            return 0;
        }
        if self.leaf.wants_field {
            return content_bytes_before_field(input);
        }
        let mut from = 0;
        while let Some(found) = memmem::find(&input[from..], b"--") {
            let hyphens = from + found;
            let before = &input[..hyphens];
            if matches!(before.last(), Some(b'\r' | b'\n')) {
                let behind = &input[hyphens + 2..];
                if self.may_guess(reader) || is_possible(behind, reader.boundaries()) {
                    return before.len() - line_end_len(before);
                }
            }
            let run = input[hyphens..].iter().take_while(|&&byte| byte == b'-');
            from = hyphens + run.count();
        }
        let line = match input {
            [.., b'\r' | b'\n', b'-'] => &input[..input.len() - 1],
            _ => input,
        };
        match line_end_len(line) {
            0 => input.len(),
            len => line.len() - len,
        }
    }

    fn may_guess(&self, reader: &Reader) -> bool {
        self.leaf.role == Role::Preamble && reader.wants_guess()
    }

    fn line_start(&mut self, reader: &mut Reader, input: &[u8]) -> Advance {
        if self.read_held(reader) {
            return Advance::Took(0);
        }
        let mut taken = 0;
        for &byte in input {
            if reader.ends_line(byte) {
                break;
            }
            reader.hold(byte);
            taken += 1;
            if self.read_held(reader) {
                return Advance::Took(taken);
            }
        }
        match taken {
            0 => self.line_ended(reader),
            _ => Advance::Took(taken),
        }
    }

    /// Reads the held bytes of the line that have not been read; whether its role is clear now.
    fn read_held(&mut self, reader: &mut Reader) -> bool {
        loop {
            let At::Start(start) = &mut self.at else {
                return true;
            };
            let Some(&byte) = reader.held().get(start.line_at + start.seen) else {
                return false;
            };
            start.seen += 1;
            let verdict = match &mut start.matcher {
                Some(matcher) => matcher.push(byte, reader.boundaries()),
                None => Verdict::Content,
            };
            match reader.judge(verdict) {
                Verdict::Undecided => {}
                Verdict::Delimiter(delimiter) => self.decide(delimiter),
                Verdict::Content => self.not_a_delimiter(reader),
            }
        }
    }

    fn not_a_delimiter(&mut self, reader: &mut Reader) {
        let may_guess = self.may_guess(reader);
        let At::Start(start) = &mut self.at else {
            return;
        };
        let line = reader.held().get(start.line_at..).unwrap_or_default();
        if self.leaf.wants_field && begins_like_field(line) {
            start.matcher = None;
            if line.len() >= FIELD.len() {
                self.at = At::Decided(Decision::Field(start.line_at));
            }
            return;
        }
        if may_guess && line.starts_with(b"--") && line.len() < GUESS_BYTES_MAX + 2 {
            start.matcher = None;
            return;
        }
        self.take_for_content(reader);
    }

    /// The line ends, or the input does.
    fn line_ended(&mut self, reader: &mut Reader) -> Advance {
        let may_guess = self.may_guess(reader);
        let At::Start(start) = &mut self.at else {
            return Advance::Took(0);
        };
        let verdict = start.matcher.as_ref().map(Matcher::finish);
        if let Some(Verdict::Delimiter(delimiter)) = verdict.map(|verdict| reader.judge(verdict)) {
            self.decide(delimiter);
            return Advance::Took(0);
        }
        let line = reader.held().get(start.line_at..).unwrap_or_default();
        if may_guess && line.starts_with(b"--") {
            return Advance::Guess;
        }
        self.take_for_content(reader);
        Advance::Took(0)
    }

    fn decide(&mut self, delimiter: super::Delimiter) {
        let bare = matches!(self.at, At::Start(Start { bare_cr: true, .. }));
        self.at = At::Decided(if bare { Decision::BareDelimiter(delimiter) } else { Decision::Delimiter(delimiter) });
    }
}

impl Start {
    const fn new(line_at: usize, bare_cr: bool) -> Start {
        Start { line_at, bare_cr, matcher: Some(Matcher::new()), seen: 0 }
    }
}

impl Decision {
    const fn advance(self) -> Advance {
        match self {
            Decision::Delimiter(delimiter) => Advance::Delimiter(delimiter),
            Decision::BareDelimiter(delimiter) => Advance::BareDelimiter(delimiter),
            Decision::Field(line_at) => Advance::Field { line_at },
        }
    }
}

impl Leaf {
    pub(super) const fn part(object: Object) -> Leaf {
        Leaf { role: Role::Part, object, told: false, wants_field: false }
    }

    pub(super) fn preamble() -> Leaf {
        Leaf { role: Role::Preamble, object: Object::default(), told: false, wants_field: true }
    }

    pub(super) fn epilogue() -> Leaf {
        Leaf { role: Role::Epilogue, object: Object::default(), told: false, wants_field: false }
    }

    /// Opens the object at the first byte that is held, or else at the next one.
    pub(super) fn open(&mut self, reader: &mut Reader) {
        self.told = true;
        reader.tell(Tell::Open(Object { kind: Kind::Part, raw_offset: reader.held_offset(), ..self.object.clone() }));
    }

    pub(super) fn close(&mut self, reader: &mut Reader) {
        if self.told {
            self.told = false;
            reader.tell(Tell::Close);
        }
    }
}

/// As [`Body::content_bytes`] where lines that begin like a field are looked at too. It looks no further than to the first that
/// may be one, or a delimiter, so that all of them together cost one pass.
fn content_bytes_before_field(input: &[u8]) -> usize {
    let line_ends = memchr2_iter(b'\n', b'\r', input);
    let mut odd = line_ends.filter(|at| matches!(input.get(at + 1), None | Some(b'-' | b'c' | b'C')));
    odd.next().map_or(input.len(), |at| at + 1 - line_end_len(&input[..=at]))
}

/// Whether a line begins with [`FIELD`], as far as it is known.
fn begins_like_field(line: &[u8]) -> bool {
    let common = line.len().min(FIELD.len());
    line[..common].eq_ignore_ascii_case(&FIELD[..common])
}

/// The length of the line end at the end of `bytes`.
fn line_end_len(bytes: &[u8]) -> usize {
    match bytes {
        [.., b'\r', b'\n'] => 2,
        [.., b'\r' | b'\n'] => 1,
        _ => 0,
    }
}
