//! Bytes that no step of a program tells apart.

use super::side::Look;
use super::steps::{Program, Step};
use crate::ByteSet;
use crate::expression::syntax::is_word;

/// For each byte, the column of transitions that it shares with others.
#[derive(Debug)]
pub(super) struct Classes {
    of: Box<[u8; 256]>,
    count: u16,
}

impl Classes {
    pub fn of(program: &Program) -> Classes {
        let (mut bytes, mut letters) = (ByteSet::EMPTY, ByteSet::EMPTY);
        let mut classes = vec![ByteSet::EMPTY.complement()];
        program.sets.iter().for_each(|set| split(&mut classes, set));
        for step in &program.steps {
            match *step {
                Step::Byte(byte) => bytes.insert(byte),
                Step::Letter(byte) => letters.insert(byte),
                Step::Look(Look::LineStart | Look::LineEnd) => bytes.insert(b'\n'),
                _ => {}
            }
        }
        bytes.iter().for_each(|byte| split(&mut classes, &one_of(&[byte])));
        letters.iter().for_each(|byte| split(&mut classes, &one_of(&[byte, byte ^ 0x20])));
        if program.steps.iter().any(|step| matches!(step, Step::Look(Look::Word | Look::NotWord))) {
            split(&mut classes, &ByteSet::of(is_word));
        }

        let mut of = Box::new([0; 256]);
        for (class, bytes) in (0u8..=u8::MAX).zip(&classes) {
            bytes.iter().for_each(|byte| of[usize::from(byte)] = class);
        }
        Classes { of, count: classes.len() as u16 }
    }

    /// How many there are; the end of the haystack has the column behind them.
    pub fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// The column of a byte.
    #[inline]
    pub fn column(&self, byte: u8) -> usize {
        usize::from(self.of[usize::from(byte)])
    }
}

/// Tells what is in the set apart from what is not.
fn split(classes: &mut Vec<ByteSet>, set: &ByteSet) {
    let others = set.complement();
    for at in 0..classes.len() {
        let (inside, outside) = (classes[at].intersection(set), classes[at].intersection(&others));
        if !inside.is_empty() && !outside.is_empty() {
            classes[at] = inside;
            classes.push(outside);
        }
    }
}

fn one_of(bytes: &[u8]) -> ByteSet {
    let mut set = ByteSet::EMPTY;
    bytes.iter().for_each(|&byte| set.insert(byte));
    set
}
