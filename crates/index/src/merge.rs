//! Merging segments into one, block by block.

use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::codec::put;
use crate::segment::{Block, Document, Entries, Entry, Segment, Source, Wrong, head, places};

/// Several segments on their way to one.
#[derive(Debug)]
pub struct Merger<S> {
    inputs: Vec<Input<S>>,
    documents: Vec<Document>,
    block: Block,
    has_begun: bool,
}

#[derive(Debug)]
struct Input<S> {
    entries: Entries<S>,
    /// New positions of the documents; `None` for removed ones.
    places: Vec<Option<usize>>,
    next: Option<Entry>,
}

impl<S: Source> Merger<S> {
    /// Merges these. Of documents only those stay that `stays` says, and of one that several have the first.
    pub fn new(segments: Vec<Segment<S>>, stays: impl Fn(u64) -> bool) -> Merger<S> {
        let all = segments.iter().enumerate().flat_map(|(at, segment)| {
            segment.documents().iter().enumerate().map(move |(place, document)| (document.number, at, place, *document))
        });
        let mut all: Vec<_> = all.filter(|(number, ..)| stays(*number)).collect();
        all.sort_unstable_by_key(|&(number, at, ..)| (number, at));
        all.dedup_by_key(|&mut (number, ..)| number);
        let mut places: Vec<Vec<Option<usize>>> =
            segments.iter().map(|segment| alloc::vec![None; segment.documents().len()]).collect();
        for (place, &(_, at, before, _)) in all.iter().enumerate() {
            places[at][before] = Some(place);
        }
        let documents = all.into_iter().map(|(.., document)| document).collect();
        let input = |(segment, places): (Segment<S>, _)| Input { entries: segment.entries(), places, next: None };
        let inputs = segments.into_iter().zip(places).map(input).collect();
        Merger { inputs, documents, block: Block::default(), has_begun: false }
    }

    /// How many documents the segment will have.
    pub fn documents(&self) -> usize {
        self.documents.len()
    }

    /// The next piece of the segment; none at its end.
    ///
    /// # Errors
    /// When one of them cannot be read, or is damaged.
    pub fn next_block(&mut self) -> Result<Option<Vec<u8>>, Wrong<S::Error>> {
        if !self.has_begun {
            self.has_begun = true;
            for input in &mut self.inputs {
                input.next = input.entries.next()?;
            }
            return Ok(Some(head(&self.documents)));
        }
        loop {
            let Some((field, term, list)) = self.next_term()? else { return Ok(self.block.take()) };
            if !list.is_empty()
                && let Some(before) = self.block.push(field, &term, &list)
            {
                return Ok(Some(before));
            }
        }
    }

    /// The lowest term that any of them has, with its list in the new places.
    fn next_term(&mut self) -> Result<Option<Entry>, Wrong<S::Error>> {
        let heads = self.inputs.iter().filter_map(|input| input.next.as_ref());
        let Some((field, term, _)) = heads.min_by(|one, other| order(one, other)) else { return Ok(None) };
        let (field, term) = (*field, term.clone());
        let mut all = Vec::new();
        for input in &mut self.inputs {
            let Some((_, _, list)) = input.next.take_if(|next| next.0 == field && next.1 == term) else { continue };
            places(&list, |place| all.extend(input.places.get(place).copied().flatten()));
            input.next = input.entries.next()?;
        }
        all.sort_unstable();
        let (mut list, mut last) = (Vec::new(), 0);
        for place in all {
            put(&mut list, (place - last) as u64);
            last = place;
        }
        Ok(Some((field, term, list)))
    }
}

fn order(one: &Entry, other: &Entry) -> Ordering {
    (one.0, &one.1).cmp(&(other.0, &other.1))
}
