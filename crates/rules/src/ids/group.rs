//! One text of each rule by which it is selected, all texts of one buffer in one pass.

use pattern::{Builder, Match, Patterns, Piece, State};

use super::buffer::Buffer;
use super::rule::{Content, Rule, Section, Test};
use super::transform::Transform;

/// The texts of one buffer, and the rules that they select.
#[derive(Debug)]
pub(super) struct Group {
    pub buffer: Buffer,
    pub transforms: Vec<Transform>,
    patterns: Patterns,
    rules: Vec<Vec<u32>>,
}

impl Group {
    /// Scans a piece; the state is that of the pieces before.
    pub fn scan(&self, state: &mut State, piece: &[u8], select: &mut impl FnMut(u32)) {
        self.patterns.scan(state, piece, &mut |found: Match| self.tell(found, select));
    }

    /// Ends the scan of what came in pieces.
    pub fn finish(&self, state: &mut State, select: &mut impl FnMut(u32)) {
        self.patterns.finish(state, &mut |found: Match| self.tell(found, select));
    }

    fn tell(&self, found: Match, select: &mut impl FnMut(u32)) {
        self.rules.get(found.part as usize).into_iter().flatten().for_each(|&rule| select(rule));
    }
}

/// All groups, and the rules that no text selects.
#[derive(Debug, Default)]
pub(super) struct Groups {
    list: Vec<Group>,
    always: Vec<u32>,
}

/// A group that is being built.
struct Draft {
    buffer: Buffer,
    transforms: Vec<Transform>,
    builder: Builder,
    rules: Vec<Vec<u32>>,
}

impl Groups {
    /// Chooses a text of each rule that can match.
    pub fn build(rules: &[Rule]) -> Groups {
        let (mut drafts, mut always): (Vec<Draft>, Vec<u32>) = (Vec::new(), Vec::new());
        for (number, rule) in (0u32..).zip(rules).filter(|(_, rule)| rule.idle.is_none()) {
            if choice(rule).is_none_or(|(section, content)| !place(&mut drafts, section, content, number)) {
                always.push(number);
            }
        }
        let list = drafts.into_iter().map(|draft| Group {
            buffer: draft.buffer,
            transforms: draft.transforms,
            patterns: draft.builder.build(),
            rules: draft.rules,
        });
        Groups { list: list.collect(), always }
    }

    pub fn always(&self) -> usize {
        self.always.len()
    }

    /// The rules that are tried each time.
    pub fn unselected(&self) -> &[u32] {
        &self.always
    }

    /// The groups of a buffer, by number.
    pub fn of(&self, buffer: Buffer) -> impl Iterator<Item = (usize, &Group)> {
        self.list.iter().enumerate().filter(move |(_, group)| group.buffer == buffer)
    }

    pub fn get(&self, number: usize) -> Option<&Group> {
        self.list.get(number)
    }
}

/// Puts a text into the group of its buffer; says whether it can be looked for.
fn place(drafts: &mut Vec<Draft>, section: &Section, content: &Content, rule: u32) -> bool {
    let known =
        drafts.iter().position(|draft| draft.buffer == section.buffer && draft.transforms == section.transforms);
    let at = known.unwrap_or_else(|| {
        drafts.push(Draft {
            buffer: section.buffer,
            transforms: section.transforms.clone(),
            builder: Builder::new(),
            rules: Vec::new(),
        });
        drafts.len() - 1
    });
    let bytes = content.fast_part.and_then(|(at, length)| content.bytes.get(at..at + length)).unwrap_or(&content.bytes);
    let piece = if content.is_caseless { Piece::caseless } else { Piece::byte };
    let pieces: Vec<Piece> = bytes.iter().map(|&byte| piece(byte)).collect();
    let draft = &mut drafts[at];
    let Ok(part) = draft.builder.add(&pieces) else { return false };
    let part = part as usize;
    if draft.rules.len() <= part {
        draft.rules.resize(part + 1, Vec::new());
    }
    draft.rules[part].push(rule);
    true
}

/// The text that selects a rule: the one that it names, else the longest; those of a stream only where there is no other.
fn choice(rule: &Rule) -> Option<(&Section, &Content)> {
    let contents = rule.sections.iter().flat_map(|section| {
        section.tests.iter().filter_map(move |test| match test {
            Test::Content(content) if !content.is_negated => Some((section, &**content)),
            _ => None,
        })
    });
    let may_be_absent = |section: &Section| section.tests.iter().any(|test| matches!(test, Test::Absent { .. }));
    contents
        .filter(|(section, content)| content.bytes.len() > 1 && !may_be_absent(section))
        .max_by_key(|(section, content)| (content.is_fast, section.buffer != Buffer::Payload, content.bytes.len()))
}
