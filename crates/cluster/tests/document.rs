//! Documents over random schedules: nodes that are edited by hand and by commands, lost answers, crashes, disks that are emptied or old.
//!
//! A text is a set of entries, and its digest the hash of them. Every edit adds one entry.

use std::collections::BTreeSet;

use cluster::{Digest, Held, Step, Version, step};

type Text = BTreeSet<u32>;

fn digest(text: &Text) -> Digest {
    let mut digest = [0; 32];
    for (at, entry) in text.iter().enumerate() {
        let mixed = u64::from(*entry).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(at as u32);
        (0..8).for_each(|byte| digest[byte] ^= mixed.to_le_bytes()[byte]);
    }
    digest[31] = u8::try_from(text.len() % 251).unwrap();
    digest
}

#[derive(Clone, Default)]
struct Node {
    /// The file, and the time of its last change.
    file: Option<(Text, u64)>,
    /// The version that it was equal to, and the time of the file.
    synced: Option<(Version, u64)>,
    beside: Vec<Text>,
}

/// A point at which a node stops.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    LostRequest,
    LostAnswer,
    BeforeNote,
}

#[derive(Default)]
struct World {
    document: Option<(u64, Text)>,
    /// Entries of commands that were told of success.
    acknowledged: Text,
    clock: u64,
}

impl World {
    /// Puts a text after a version. None if no answer comes.
    fn put(&mut self, after: u64, text: &Text, fault: Fault) -> Option<bool> {
        if fault == Fault::LostRequest {
            return None;
        }
        let number = self.document.as_ref().map_or(0, |(number, _)| *number);
        let is_done = number == after;
        if is_done {
            assert!(self.acknowledged.is_subset(text), "{:?} is lost in {text:?}", self.acknowledged);
            self.document = Some((after + 1, text.clone()));
        }
        (fault != Fault::LostAnswer).then_some(is_done)
    }

    fn version(&self) -> Option<Version> {
        self.document.as_ref().map(|(number, text)| Version { number: *number, digest: digest(text) })
    }

    fn sync(&mut self, node: &mut Node, fault: Fault) {
        let held = node.file.as_ref().map(|(text, time)| Held {
            digest: digest(text),
            is_older: node.synced.is_some_and(|(_, synced)| *time < synced),
        });
        let version = self.version();
        let noted = match step(held, node.synced.map(|(version, _)| version), version) {
            Step::Nothing => return,
            Step::Note => version,
            step @ (Step::Take | Step::TakeAside) => {
                if step == Step::TakeAside {
                    node.beside.extend(node.file.iter().map(|(text, _)| text.clone()));
                }
                self.clock += 1;
                node.file = self.document.as_ref().map(|(_, text)| (text.clone(), self.clock));
                version
            }
            Step::Push(after) => {
                let text = node.file.clone().unwrap().0;
                match self.put(after, &text, fault) {
                    Some(true) => Some(Version { number: after + 1, digest: digest(&text) }),
                    _ => return,
                }
            }
        };
        if fault != Fault::BeforeNote {
            let time = node.file.as_ref().map_or(0, |(_, time)| *time);
            node.synced = noted.map(|noted| (noted, time));
        }
    }

    /// A command: the document is changed first, and the file follows.
    fn command(&mut self, node: &mut Node, entry: u32, fault: Fault) {
        for _ in 0..3 {
            self.sync(node, Fault::None);
            let after = self.document.as_ref().map_or(0, |(number, _)| *number);
            let mut text = self.document.as_ref().map(|(_, text)| text.clone()).unwrap_or_default();
            text.insert(entry);
            let is_done = match self.put(after, &text, fault) {
                Some(is_done) => is_done,
                // The database is asked what came of it.
                None => self.version() == Some(Version { number: after + 1, digest: digest(&text) }),
            };
            if is_done {
                self.acknowledged.insert(entry);
                if fault != Fault::BeforeNote {
                    self.sync(node, Fault::None);
                }
                return;
            }
        }
    }
}

fn schedule(seed: u64) {
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut world = World::default();
    let mut nodes = vec![Node::default(); 3];
    let mut old: Vec<Vec<Node>> = vec![Vec::new(); 3];
    // Edits by hand that are in a file, or were synced or kept from one.
    let mut edits: Vec<Text> = vec![Text::new(); 3];
    for entry in 0..60_u32 {
        let at = random(3);
        let fault = [Fault::None, Fault::LostRequest, Fault::LostAnswer, Fault::BeforeNote][random(8).min(3)];
        let node = &mut nodes[at];
        match random(16) {
            0..4 => world.command(node, entry, fault),
            // A file that is made anew by hand in place of a synced one is meant to replace it.
            4..6 if node.file.is_some() || node.synced.is_none() => {
                world.clock += 1;
                let mut text = node.file.take().map(|(text, _)| text).unwrap_or_default();
                text.insert(entry);
                edits[at].insert(entry);
                node.file = Some((text, world.clock));
            }
            6 => old[at].push(node.clone()),
            7 if !old[at].is_empty() => {
                // A disk as it was: the edits that it had not synced are gone with it.
                let beside = std::mem::take(&mut node.beside);
                *node = old[at][random(old[at].len())].clone();
                node.beside.extend(beside);
                edits[at].clear();
            }
            8 if !old[at].is_empty() => {
                // The program sees it before somebody edits it: the time of an edit would hide that it is old.
                node.file = old[at][random(old[at].len())].file.clone();
                edits[at].clear();
                world.sync(node, fault);
                world.sync(node, Fault::None);
            }
            9 => {
                node.file = None;
                edits[at].clear();
                if random(2) == 0 {
                    node.synced = None;
                }
            }
            _ => world.sync(node, fault),
        }
    }
    for _ in 0..3 {
        nodes.iter_mut().for_each(|node| world.sync(node, Fault::None));
    }
    let Some((_, text)) = &world.document else { return };
    assert!(world.acknowledged.is_subset(text), "seed {seed}: {:?} and {text:?}", world.acknowledged);
    for (at, node) in nodes.iter().enumerate() {
        assert_eq!(node.file.as_ref().map(|(text, _)| text), Some(text), "seed {seed}: node {at}");
        let all: Text = nodes.iter().flat_map(|node| node.beside.iter().flatten()).chain(text).copied().collect();
        let lost: Vec<_> = edits[at].difference(&all).collect();
        assert!(lost.is_empty(), "seed {seed}: edits of node {at}: {lost:?}");
    }
}

#[test]
fn nothing_acknowledged_is_lost_nothing_old_comes_back_and_all_nodes_converge() {
    (1..6_000).for_each(schedule);
}

#[test]
fn a_database_that_was_set_back_holds_and_the_newer_file_is_kept() {
    let version = |number, byte| Version { number, digest: [byte; 32] };
    let file = |byte| Some(Held { digest: [byte; 32], is_older: false });
    assert_eq!(step(file(7), Some(version(7, 7)), Some(version(5, 5))), Step::TakeAside);
    assert_eq!(step(file(7), Some(version(7, 7)), Some(version(7, 6))), Step::TakeAside);
    assert_eq!(step(file(7), Some(version(7, 7)), None), Step::Nothing);
    assert_eq!(step(None, Some(version(7, 7)), Some(version(7, 7))), Step::Take);
    assert_eq!(step(None, None, None), Step::Nothing);
}
