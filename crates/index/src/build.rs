//! Building a segment in memory.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::codec::put;
use crate::segment::{Block, Document, Field, head};

/// Approximate cost of a term besides its bytes: the node of the tree, and two allocations.
const TERM_BYTES: usize = 96;

/// A segment under way.
#[derive(Debug, Default)]
pub struct Builder {
    documents: Vec<Document>,
    lists: BTreeMap<(Field, Box<[u8]>), List>,
    bytes: usize,
}

/// The places of documents, each as the distance to the one before.
#[derive(Debug, Default)]
struct List {
    last: Option<usize>,
    bytes: Vec<u8>,
}

impl Builder {
    /// Begins a document, whose number is above that of the one before; terms that are added next belong to it.
    pub fn begin(&mut self, document: Document) {
        debug_assert!(self.documents.last().is_none_or(|last| last.number < document.number));
        self.documents.push(document);
    }

    /// A term of the document, once or several times.
    pub fn add(&mut self, field: Field, term: &str) {
        let Some(place) = self.documents.len().checked_sub(1) else { return };
        let list = self.lists.entry((field, term.as_bytes().into())).or_default();
        let distance = match list.last {
            Some(last) if last == place => return,
            Some(last) => place - last,
            None => {
                self.bytes += TERM_BYTES + term.len();
                place
            }
        };
        let before = list.bytes.len();
        put(&mut list.bytes, distance as u64);
        (list.last, self.bytes) = (Some(place), self.bytes + list.bytes.len() - before);
    }

    /// Not all terms of the document were added.
    pub fn is_partial(&mut self) {
        if let Some(document) = self.documents.last_mut() {
            document.is_partial = true;
        }
    }

    /// Documents so far.
    pub fn documents(&self) -> usize {
        self.documents.len()
    }

    /// About how much memory it takes, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The segment, in the pieces that it is written in.
    pub fn finish(self) -> Vec<Vec<u8>> {
        let (mut pieces, mut block) = (alloc::vec![head(&self.documents)], Block::default());
        for ((field, term), list) in self.lists {
            pieces.extend(block.push(field, &term, &list.bytes));
        }
        pieces.extend(block.take());
        pieces
    }
}
