//! Mails that begin at one place, so that nested readings take linear time.
//!
//! The body of a mail may begin like a mail, and each second reading has that body once more. Mails that follow each other are
//! nested like that in every reading, and the readings would double with each of them. So at most [`READ_MAX`] objects that
//! begin at one byte are read as mails. Another one has no reader of mails, and its end must be that of one that is read: both
//! have the same content. A part without a name that begins with a line that divides mails of a mailbox is left to the
//! reader of that mailbox, which must open the mail behind the line.
//!
//! What holds of none in the end is the finding `Heuristics.Ambiguous.Mime.Forks`. Memory: an entry for each object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flow::{Action, Out, Spotted};
use stream::{Class, Finding, Kind};

use super::Inspection;
use crate::node::{Node, Seed};
use crate::place::{MBOX, Place, Tail};

/// The objects that begin at one place and are read as mails.
const READ_MAX: u8 = 2;

/// Mails by their places.
#[derive(Debug, Default)]
pub(super) struct Tails {
    /// How many are read from each place on.
    begun: BTreeMap<Place, u8>,
    /// Where those that are read begin and end.
    read: BTreeSet<(Place, u64)>,
    /// Where members of mailboxes begin.
    divided: BTreeSet<Place>,
    /// Mails that are not read, for others are.
    owed: Vec<Owed>,
}

/// A mail that is read elsewhere: its place, its end if that counts, and where a finding is reported.
#[derive(Debug)]
struct Owed {
    place: Place,
    end: Option<u64>,
    object: u32,
    path: Arc<[Box<str>]>,
}

impl Tails {
    fn is_paid(&self, owed: &Owed) -> bool {
        match owed.end {
            Some(end) => self.read.contains(&(owed.place, end)),
            None => self.divided.contains(&owed.place),
        }
    }
}

impl Inspection {
    /// Decides how a mail that is recognised is read.
    pub(super) fn tail(&mut self, node: &Node, head: &[u8]) -> Tail {
        let Some(place) = node.place.filter(|_| !node.is_doubted) else { return Tail::Read };
        if let Some(line) = unpack::mail_divider(head).filter(|_| self.is_rest_of_mailbox(node, place)) {
            let place = (place.0, place.1 + line as u64);
            self.tails.owed.push(Owed { place, end: None, object: node.id, path: node.path.clone() });
            return Tail::Divided;
        }
        let count = self.tails.begun.entry(place).or_insert(0);
        if *count == READ_MAX {
            return Tail::Shared;
        }
        *count += 1;
        Tail::Read
    }

    /// Whether it is a part that nobody saves as a file, within a mailbox that is read.
    fn is_rest_of_mailbox(&self, node: &Node, place: Place) -> bool {
        let is_part = node.object.kind == Kind::Part && node.object.names().next().is_none();
        let mut source = node.source.filter(|_| is_part);
        while let Some(above) = source.and_then(|slot| self.nodes[slot].as_ref()) {
            let is_of_mailbox = above.readers.iter().any(|reader| reader.name == MBOX && !reader.ended);
            if is_of_mailbox && above.place.is_some_and(|(base, _)| base == place.0) {
                return true;
            }
            source = above.source;
        }
        false
    }

    /// Notes a member of a mailbox.
    pub(super) fn note_divided(&mut self, reader: &str, seed: &Seed) {
        if let (MBOX, Some(place)) = (reader, seed.place) {
            self.tails.divided.insert(place);
        }
    }

    /// A mail has passed: its end is known.
    pub(super) fn note_end(&mut self, node: &Node) {
        let (Some(tail), Some(place)) = (node.tail, node.place) else { return };
        match tail {
            Tail::Read => drop(self.tails.read.insert((place, node.bytes))),
            Tail::Shared => {
                let owed = Owed { place, end: Some(node.bytes), object: node.id, path: node.path.clone() };
                self.tails.owed.push(owed);
            }
            Tail::Divided => {}
        }
    }

    /// Reports the mails of which no reader has had all.
    pub(super) fn report_unread(&mut self) {
        let tails = std::mem::take(&mut self.tails);
        for owed in tails.owed.iter().filter(|owed| !tails.is_paid(owed)) {
            let finding = Finding::new(Class::Ambiguous, "Heuristics.Ambiguous.Mime.Forks", 0);
            self.ledger.unblankable |= self.context.policy.action(&finding) == Action::Blank;
            let spotted = Spotted { finding, path: owed.path.clone(), object: owed.object };
            if self.ledger.note(&spotted, &self.context.policy) {
                self.out.push_back(Out::Finding(spotted));
            }
        }
    }
}
