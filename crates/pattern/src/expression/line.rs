//! The sets of bytes that a match goes through, one behind the other.

use crate::ByteSet;

/// A byte of a set, and bytes of another behind it, as many as there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stroke {
    pub set: ByteSet,
    pub gap: ByteSet,
}

/// The most strokes of a line: what follows is a gap behind the last.
pub(super) const STROKES_MAX: usize = 64;

/// The line of a whole node: what may stand in front of its first stroke, and its strokes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub lead: ByteSet,
    pub strokes: Vec<Stroke>,
}

impl Line {
    pub const EMPTY: Line = Line { lead: ByteSet::EMPTY, strokes: Vec::new() };

    /// Any number of bytes of a set.
    pub fn gap(set: ByteSet) -> Line {
        Line { lead: set, strokes: Vec::new() }
    }

    pub fn stroke(&mut self, set: ByteSet) {
        if self.strokes.len() >= STROKES_MAX {
            return self.widen(&set);
        }
        self.strokes.push(Stroke { set, gap: ByteSet::EMPTY });
    }

    /// Lets bytes stand behind what there is.
    pub fn widen(&mut self, set: &ByteSet) {
        let gap = self.strokes.last_mut().map_or(&mut self.lead, |last| &mut last.gap);
        *gap = gap.union(set);
    }

    pub fn append(&mut self, next: &Line) {
        self.widen(&next.lead);
        for stroke in &next.strokes {
            self.stroke(stroke.set);
            self.widen(&stroke.gap);
        }
    }

    /// All bytes that may stand in it.
    pub fn bytes(&self) -> ByteSet {
        self.strokes.iter().fold(self.lead, |all, stroke| all.union(&stroke.set).union(&stroke.gap))
    }

    /// Lays another on it: either may be there.
    pub fn overlay(&mut self, other: &Line) {
        self.lead = self.lead.union(&other.lead);
        for (stroke, over) in self.strokes.iter_mut().zip(&other.strokes) {
            *stroke = Stroke { set: stroke.set.union(&over.set), gap: stroke.gap.union(&over.gap) };
        }
        let length = self.strokes.len().min(other.strokes.len());
        let rest = [&self.strokes[length..], &other.strokes[length..]].concat();
        self.strokes.truncate(length);
        self.widen(&Line { lead: ByteSet::EMPTY, strokes: rest }.bytes());
    }
}
