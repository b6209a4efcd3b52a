//! THREAD (RFC 5256): conversations, by subject or by who answers whom.
//!
//! Hostile references make no rings, and no chain longer than 1,000; nothing here calls itself.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::content::Messages;
use crate::find::Message;

use crate::sort::{sent, subject};

/// Answers to answers.
const DEPTH_MAX: usize = 1_000;

/// References of one message; of more, the last.
const REFERENCES_MAX: usize = 100;

/// The longest message id, in bytes.
const ID_BYTES_MAX: usize = 1_000;

/// A message by its number or UID, with the fields that threads are made of.
pub struct Post {
    name: u32,
    sent: i64,
    subject: String,
    is_reply: bool,
    id: Option<Vec<u8>>,
    references: Vec<Vec<u8>>,
}

impl Post {
    /// Reads a message, to be called by this number or UID; its references only if they are needed.
    pub fn new<M: Messages>(message: &Message<'_, M>, name: u32, with_references: bool) -> Post {
        let (subject, is_reply) = subject(message);
        let mut post = Post { name, sent: sent(message), subject, is_reply, id: None, references: Vec::new() };
        if with_references {
            post.id = message.field(b"message-id").next().and_then(|field| ids(&field).into_iter().next());
            post.references = message.field(b"references").next().map(|field| ids(&field)).unwrap_or_default();
            if post.references.is_empty() {
                let answered = message.field(b"in-reply-to").next();
                post.references = answered.map(|field| ids(&field)).unwrap_or_default();
                post.references.truncate(1);
            }
        }
        post
    }
}

/// Message identifiers in angle brackets, inside quotes too; the last [`REFERENCES_MAX`] are kept.
fn ids(field: &[u8]) -> Vec<Vec<u8>> {
    let mut ids = Vec::new();
    let mut rest = field;
    while let Some(open) = rest.iter().position(|&byte| byte == b'<') {
        rest = &rest[open + 1..];
        let Some(close) = rest.iter().position(|&byte| byte == b'>') else { break };
        let id: Vec<u8> = rest[..close].iter().copied().filter(|byte| !b"\"\\ \t".contains(byte)).collect();
        if id.contains(&b'@') && id.len() <= ID_BYTES_MAX {
            ids.push(id);
        }
        rest = &rest[close + 1..];
    }
    ids.split_off(ids.len().saturating_sub(REFERENCES_MAX))
}

/// A piece of threads that are written out: `Open`, a message and the threads below it, `Close`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// A thread begins. One that begins with another thread has no first message.
    Open,
    /// A message by its number or UID. A message that follows at once is the only one below it.
    Message(u32),
    /// A thread ends.
    Close,
}

/// Threads by subject alone: the first message of each, and all others below it.
pub fn by_subject(mut posts: Vec<Post>) -> Pieces {
    posts.sort_by(|one, other| (&one.subject, one.sent, one.name).cmp(&(&other.subject, other.sent, other.name)));
    let mut forest = Forest::default();
    let mut roots: Vec<usize> = Vec::new();
    for (at, post) in posts.iter().enumerate() {
        let node = forest.add();
        forest.nodes[node].post = Some(at);
        match roots.last().copied().filter(|&root| posts[root].subject == post.subject) {
            Some(root) => forest.nodes[root].children.push(node),
            None => roots.push(node),
        }
    }
    forest.posts = posts;
    forest.sort(&mut roots);
    Pieces::new(forest, &roots)
}

/// A message, or a gap where one is missing that others refer to.
#[derive(Default)]
struct Node {
    post: Option<usize>,
    parent: Option<usize>,
    children: Vec<usize>,
}

/// Threads by references, and by subject where these are missing. Each message is placed as it comes.
#[derive(Default)]
pub struct Forest {
    posts: Vec<Post>,
    nodes: Vec<Node>,
    by_id: BTreeMap<Vec<u8>, usize>,
}

impl Forest {
    /// The threads in order.
    pub fn threads(mut self) -> Pieces {
        let roots = self.pruned();
        let mut roots = self.gathered(roots);
        self.sort(&mut roots);
        Pieces::new(self, &roots)
    }

    /// Adds a message, in 100 times 1,000 steps at most.
    pub fn place(&mut self, mut post: Post) {
        let (at, references, id) = (self.posts.len(), core::mem::take(&mut post.references), post.id.take());
        self.posts.push(post);
        let mut before = None;
        for id in references {
            let node = self.of(id);
            if let Some(parent) = before.filter(|_| self.nodes[node].parent.is_none()) {
                self.link(parent, node);
            }
            before = Some(node);
        }
        // Who has the id of another has none.
        let node = match id.map(|id| self.of(id)) {
            Some(node) if self.nodes[node].post.is_none() => node,
            _ => self.add(),
        };
        self.nodes[node].post = Some(at);
        // What it says itself counts, and not what others say of it, even where it would make a ring (section 3, (1)(B)).
        if let Some(parent) = before {
            self.nodes[node].parent = None;
            self.link(parent, node);
        }
    }

    fn of(&mut self, id: Vec<u8>) -> usize {
        if let Some(&node) = self.by_id.get(&id) {
            return node;
        }
        let node = self.add();
        self.by_id.insert(id, node);
        node
    }

    fn add(&mut self) -> usize {
        self.nodes.push(Node::default());
        self.nodes.len() - 1
    }

    /// Whether that makes no ring.
    fn link(&mut self, parent: usize, child: usize) -> bool {
        let mut above = Some(parent);
        for _ in 0..DEPTH_MAX {
            match above {
                Some(node) if node == child => return false,
                Some(node) => above = self.nodes[node].parent,
                None => {
                    self.nodes[child].parent = Some(parent);
                    return true;
                }
            }
        }
        false
    }

    /// The roots, without gaps that nothing is below, or that are no root.
    fn pruned(&mut self) -> Vec<usize> {
        let mut roots = Vec::new();
        for node in 0..self.nodes.len() {
            match self.nodes[node].parent {
                Some(parent) => self.nodes[parent].children.push(node),
                None => roots.push(node),
            }
        }
        let mut order = roots.clone();
        let mut at = 0;
        while let Some(&node) = order.get(at) {
            order.extend_from_slice(&self.nodes[node].children);
            at += 1;
        }
        // From the leaves up.
        for &node in order.iter().rev() {
            let children = core::mem::take(&mut self.nodes[node].children);
            let mut kept = Vec::new();
            for child in children {
                match self.nodes[child].post {
                    Some(_) => kept.push(child),
                    None => kept.append(&mut self.nodes[child].children),
                }
            }
            self.sort(&mut kept);
            self.nodes[node].children = kept;
        }
        let is_gap = |node: &usize| self.nodes[*node].post.is_none();
        let heir = |node: usize| match self.nodes[node].children.as_slice() {
            [] if is_gap(&node) => None,
            [child] if is_gap(&node) => Some(*child),
            _ => Some(node),
        };
        roots.into_iter().filter_map(heir).collect()
    }

    /// The first message of a thread.
    fn first(&self, node: usize) -> Option<&Post> {
        let node = &self.nodes[node];
        let at = node.post.or_else(|| self.nodes[*node.children.first()?].post)?;
        self.posts.get(at)
    }

    fn sort(&self, nodes: &mut [usize]) {
        nodes.sort_by_key(|&node| self.first(node).map(|post| (post.sent, post.name)));
    }

    /// Threads of the same subject become one.
    fn gathered(&mut self, mut roots: Vec<usize>) -> Vec<usize> {
        self.sort(&mut roots);
        let mut table: BTreeMap<String, usize> = BTreeMap::new();
        for &root in &roots {
            let Some(post) = self.first(root).filter(|post| !post.subject.is_empty()) else { continue };
            let is_better = |known: usize| {
                let (gap, known_gap) = (self.nodes[root].post.is_none(), self.nodes[known].post.is_none());
                (gap && !known_gap)
                    || (gap == known_gap && !post.is_reply && self.first(known).is_some_and(|post| post.is_reply))
            };
            if table.get(&post.subject).is_none_or(|&known| is_better(known)) {
                table.insert(post.subject.clone(), root);
            }
        }
        let mut is_gone = vec![false; self.nodes.len()];
        let mut added = Vec::new();
        for &root in &roots {
            let Some(post) = self.first(root).filter(|post| !post.subject.is_empty()) else { continue };
            let (subject, is_reply) = (post.subject.clone(), post.is_reply);
            let Some(&known) = table.get(&subject).filter(|&&known| known != root) else { continue };
            let known_is_reply = self.first(known).is_some_and(|post| post.is_reply);
            match (self.nodes[known].post.is_none(), self.nodes[root].post.is_none()) {
                (true, true) => {
                    let mut children = core::mem::take(&mut self.nodes[root].children);
                    self.nodes[known].children.append(&mut children);
                }
                (true, false) => self.nodes[known].children.push(root),
                (false, _) if is_reply && !known_is_reply => self.nodes[known].children.push(root),
                (false, _) => {
                    let gap = self.add();
                    is_gone.push(false);
                    self.nodes[gap].children = vec![known, root];
                    is_gone[known] = true;
                    table.insert(subject, gap);
                    added.push(gap);
                }
            }
            is_gone[root] = true;
        }
        roots.extend(added);
        roots.retain(|&root| !is_gone[root]);
        for &root in &roots {
            let mut children = core::mem::take(&mut self.nodes[root].children);
            self.sort(&mut children);
            self.nodes[root].children = children;
        }
        roots
    }
}

/// Threads, written out piece by piece.
pub struct Pieces {
    forest: Forest,
    work: Vec<Work>,
}

enum Work {
    Thread(usize),
    Message(usize),
    Close,
}

impl Pieces {
    fn new(forest: Forest, roots: &[usize]) -> Pieces {
        Pieces { forest, work: roots.iter().rev().map(|&root| Work::Thread(root)).collect() }
    }
}

impl Iterator for Pieces {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        loop {
            let node = match self.work.pop()? {
                Work::Close => return Some(Piece::Close),
                Work::Thread(node) => {
                    self.work.extend([Work::Close, Work::Message(node)]);
                    return Some(Piece::Open);
                }
                Work::Message(node) => &self.forest.nodes[node],
            };
            match node.children.as_slice() {
                [child] if node.post.is_some() => self.work.push(Work::Message(*child)),
                children => self.work.extend(children.iter().rev().map(|&child| Work::Thread(child))),
            }
            if let Some(post) = node.post {
                return Some(Piece::Message(self.forest.posts[post].name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(name: u32, id: &str, references: &[&str]) -> Post {
        let references = references.iter().map(|id| id.as_bytes().to_vec()).collect();
        let id = Some(id.as_bytes().to_vec());
        Post { name, sent: name.into(), subject: format!("S{name}"), is_reply: false, id, references }
    }

    /// As IMAP writes threads.
    fn written(pieces: Pieces) -> String {
        let (mut out, mut before) = (String::new(), Piece::Open);
        for piece in pieces {
            let separator = if matches!(before, Piece::Message(_)) && piece != Piece::Close { " " } else { "" };
            out += separator;
            out += &match piece {
                Piece::Open => "(".to_owned(),
                Piece::Message(name) => name.to_string(),
                Piece::Close => ")".to_owned(),
            };
            before = piece;
        }
        out
    }

    fn threads(posts: Vec<Post>) -> String {
        let mut forest = Forest::default();
        posts.into_iter().for_each(|post| forest.place(post));
        written(forest.threads())
    }

    #[test]
    fn rings_and_long_chains_come_to_an_end() {
        assert_eq!(threads(vec![post(1, "a@x", &["b@x"]), post(2, "b@x", &["a@x"])]), "(2 1)");
        assert_eq!(threads(vec![post(1, "a@x", &["a@x"])]), "(1)");
        let ring = vec![post(1, "a@x", &[]), post(2, "b@x", &["a@x", "c@x"]), post(3, "c@x", &["b@x"])];
        assert_eq!(threads(ring), "(1)(3 2)");
        let name = |at: u32| format!("{at}@x");
        let chain = (1..5_000).map(|at| post(at, &name(at), &[&name(at - 1)])).collect();
        assert!(threads(chain).ends_with(" 4999)"));
        // Every message has two answers, one of which goes on.
        let comb =
            (1..2_000).map(|at| post(at, &name(at), &[&name(if at % 2 == 0 { at.max(2) - 1 } else { at.max(2) - 2 })]));
        assert!(threads(comb.collect()).starts_with("(1 (2)(3"));
    }

    #[test]
    fn a_missing_message_holds_its_answers_together() {
        assert_eq!(threads(vec![post(1, "b@x", &["a@x"]), post(2, "c@x", &["a@x"])]), "((1)(2))");
        assert_eq!(threads(vec![post(1, "c@x", &["a@x", "b@x"]), post(2, "d@x", &["z@x"])]), "(1)(2)");
        assert_eq!(threads(vec![post(1, "a@x", &[]), post(2, "c@x", &["a@x", "b@x"])]), "(1 2)");
    }

    #[test]
    fn posts_of_one_subject_are_below_the_first() {
        let post = |name: u32, subject: &str| Post { subject: subject.into(), ..post(name, "x@x", &[]) };
        let posts = [(4, "b"), (2, "a"), (3, "a"), (1, "c"), (5, "a"), (6, "b")];
        let posts = posts.map(|(name, subject)| post(name, subject)).into();
        assert_eq!(written(by_subject(posts)), "(1)(2 (3)(5))(4 6)");
        assert_eq!(written(by_subject(Vec::new())), "");
    }
}
