//! Surroundings of a place between bytes, as far as assertions depend on them.

use crate::expression::syntax::is_word;

/// A byte beside a place, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Side {
    #[default]
    Other,
    Word,
    Feed,
    /// The haystack begins or ends here.
    Edge,
}

impl Side {
    pub const ALL: [Side; 4] = [Side::Other, Side::Word, Side::Feed, Side::Edge];

    pub fn of(byte: Option<u8>) -> Side {
        match byte {
            None => Side::Edge,
            Some(b'\n') => Side::Feed,
            Some(byte) if is_word(byte) => Side::Word,
            Some(_) => Side::Other,
        }
    }
}

/// Condition at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Start,
    /// The start, and behind a line feed that is not the last byte.
    LineStart,
    End,
    LineEnd,
    Word,
    NotWord,
}

impl Look {
    /// Whether it holds between what was passed and what is `ahead`; nothing if that depends on what is not known.
    pub fn holds(self, behind: Side, ahead: Option<Side>, is_reverse: bool) -> Option<bool> {
        match is_reverse {
            false => self.holds_between(Some(behind), ahead),
            true => self.holds_between(ahead, Some(behind)),
        }
    }

    fn holds_between(self, before: Option<Side>, after: Option<Side>) -> Option<bool> {
        let is_boundary = || Some((before? == Side::Word) != (after? == Side::Word));
        match self {
            Look::Start => before.map(|side| side == Side::Edge),
            Look::LineStart => match before? {
                Side::Edge => Some(true),
                Side::Feed => after.map(|side| side != Side::Edge),
                Side::Word | Side::Other => Some(false),
            },
            Look::End => after.map(|side| side == Side::Edge),
            Look::LineEnd => after.map(|side| matches!(side, Side::Edge | Side::Feed)),
            Look::Word => is_boundary(),
            Look::NotWord => is_boundary().map(|is_boundary| !is_boundary),
        }
    }
}

/// As much of each side as any of these asks for: what they do not tell apart from [`Side::Other`] is that.
pub(super) fn told_apart(looks: impl Iterator<Item = Look>) -> [Side; Side::ALL.len()] {
    let mut told = [Side::Other; Side::ALL.len()];
    for look in looks {
        let sides: &[Side] = match look {
            Look::Word | Look::NotWord => &[Side::Word],
            Look::Start | Look::End => &[Side::Edge],
            Look::LineStart | Look::LineEnd => &[Side::Edge, Side::Feed],
        };
        sides.iter().for_each(|&side| told[side as usize] = side);
    }
    told
}
