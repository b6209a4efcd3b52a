//! FETCH items (RFC 9051, section 6.4.5, and the extensions that [`FetchItem`] names).

use alloc::vec::Vec;
use core::cell::Cell;

use super::section::{Part, Section};
use super::syntax::{Cursor, Wrong};

/// An item of FETCH.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of the standards")]
pub enum FetchItem {
    Flags,
    Uid,
    InternalDate,
    Size,
    Envelope,
    /// BODY without a section.
    Body,
    BodyStructure,
    Modseq,
    EmailId,
    ThreadId,
    SaveDate,
    /// With or without LAZY: it is made when it is asked for.
    Preview,
    Section(Section),
    /// The size of a part without its transfer coding.
    BinarySize(Vec<u32>),
}

const FETCH_ITEMS: [(&str, FetchItem); 12] = [
    ("FLAGS", FetchItem::Flags),
    ("UID", FetchItem::Uid),
    ("INTERNALDATE", FetchItem::InternalDate),
    ("RFC822.SIZE", FetchItem::Size),
    ("ENVELOPE", FetchItem::Envelope),
    ("BODY", FetchItem::Body),
    ("BODYSTRUCTURE", FetchItem::BodyStructure),
    ("MODSEQ", FetchItem::Modseq),
    ("EMAILID", FetchItem::EmailId),
    ("THREADID", FetchItem::ThreadId),
    ("SAVEDATE", FetchItem::SaveDate),
    ("PREVIEW", FetchItem::Preview),
];

/// `FAST`, `ALL` or `FULL`.
pub(super) fn macro_of(cursor: &mut Cursor<'_>) -> Option<Vec<FetchItem>> {
    use FetchItem::{Body, Envelope, Flags, InternalDate, Size};
    let fast = || Vec::from([Flags, InternalDate, Size]);
    if cursor.eat_word("FAST") {
        return Some(fast());
    }
    if cursor.eat_word("ALL") {
        return Some([fast(), Vec::from([Envelope])].concat());
    }
    cursor.eat_word("FULL").then(|| [fast(), Vec::from([Envelope, Body])].concat())
}

/// An item up to a blank or parenthesis that is not within its brackets.
pub(super) fn fetch_item(cursor: &mut Cursor<'_>) -> Result<FetchItem, Wrong> {
    let (depth, quoted) = (Cell::new(0u32), Cell::new(false));
    let item = cursor.while_(|byte| {
        match byte {
            b'"' => quoted.set(!quoted.get()),
            b'[' if !quoted.get() => depth.set(depth.get() + 1),
            b']' if !quoted.get() => depth.set(depth.get().saturating_sub(1)),
            b' ' | b'(' | b')' => return depth.get() > 0 || quoted.get(),
            _ => {}
        }
        true
    });
    let known = FETCH_ITEMS.iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(item));
    if let Some((_, item)) = known {
        if *item == FetchItem::Preview {
            preview_modifier(cursor)?;
        }
        return Ok(item.clone());
    }
    if let Some(path) = Section::binary_size(item) {
        return path.map(FetchItem::BinarySize);
    }
    match Section::parse(item)? {
        Some(section) if section.item == super::Item::Binary && section.part != Part::All => {
            Err("BINARY is of whole parts")
        }
        Some(section) => Ok(FetchItem::Section(section)),
        None => Err("Unknown item"),
    }
}

/// `PREVIEW (LAZY)`.
fn preview_modifier(cursor: &mut Cursor<'_>) -> Result<(), Wrong> {
    let mut ahead = cursor.clone();
    if ahead.eat(b' ') && ahead.eat(b'(') {
        if !ahead.eat_word("LAZY") {
            return Err("Unknown modifier");
        }
        ahead.expect(b')', "Not a list")?;
        *cursor = ahead;
    }
    Ok(())
}
