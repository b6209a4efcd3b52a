//! THREAD (RFC 5256): conversations, by subject or by who answers whom.
//!
//! Hostile references make no rings, and no chain longer than [`DEPTH_MAX`]; nothing here calls itself.

use std::collections::HashMap;

use keep::content::Messages;
use keep::find::Message;

use super::sort::{sent, subject};

/// Answers to answers.
const DEPTH_MAX: usize = 1_000;

/// References of one message; of more, the last.
const REFERENCES_MAX: usize = 100;

/// The longest message id, in bytes.
const ID_BYTES_MAX: usize = 1_000;

/// What is told of one message: its number or UID, and what it has said of itself.
pub(super) struct Post {
    name: u32,
    sent: i64,
    subject: String,
    is_reply: bool,
    id: Option<Vec<u8>>,
    references: Vec<Vec<u8>>,
}

impl Post {
    /// By this number or UID; references are read if they are needed.
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

/// What stands in angle brackets, the last [`REFERENCES_MAX`]; quotes make no difference.
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

/// Threads by subject alone: the first message of each, and all others below it.
pub(super) fn by_subject(mut posts: Vec<Post>) -> Vec<u8> {
    posts.sort_by(|one, other| (&one.subject, one.sent, one.name).cmp(&(&other.subject, other.sent, other.name)));
    let mut threads: Vec<&[Post]> = posts.chunk_by(|one, other| one.subject == other.subject).collect();
    threads.sort_by_key(|thread| (thread[0].sent, thread[0].name));
    let mut out = Vec::new();
    for thread in threads {
        let children: Vec<String> = thread[1..].iter().map(|post| post.name.to_string()).collect();
        let below = match children.as_slice() {
            [] => String::new(),
            [one] => format!(" {one}"),
            more => format!(" ({})", more.join(")(")),
        };
        out.extend_from_slice(format!("({}{below})", thread[0].name).as_bytes());
    }
    out
}

/// A message, or a gap where one is missing that others refer to.
#[derive(Default)]
struct Node {
    post: Option<usize>,
    parent: Option<usize>,
    children: Vec<usize>,
}

/// Threads by references, put together by subject where these are missing. Each message is placed as it comes.
#[derive(Default)]
pub(super) struct Forest {
    posts: Vec<Post>,
    nodes: Vec<Node>,
    by_id: HashMap<Vec<u8>, usize>,
}

impl Forest {
    /// The threads, as they are told.
    pub fn threads(mut self) -> Vec<u8> {
        let roots = self.pruned();
        let mut roots = self.gathered(roots);
        self.sort(&mut roots);
        self.written(&roots)
    }

    /// Adds a message. At most [`REFERENCES_MAX`] times [`DEPTH_MAX`] steps.
    pub fn place(&mut self, mut post: Post) {
        let (at, references, id) = (self.posts.len(), std::mem::take(&mut post.references), post.id.take());
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
        // What it says itself counts more than what others say of it.
        if let Some(parent) = before {
            let old = self.nodes[node].parent.take();
            if !self.link(parent, node) {
                self.nodes[node].parent = old;
            }
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
            let children = std::mem::take(&mut self.nodes[node].children);
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
        let mut table: HashMap<String, usize> = HashMap::new();
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
                    let mut children = std::mem::take(&mut self.nodes[root].children);
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
            let mut children = std::mem::take(&mut self.nodes[root].children);
            self.sort(&mut children);
            self.nodes[root].children = children;
        }
        roots
    }

    fn written(&self, roots: &[usize]) -> Vec<u8> {
        enum Work {
            Thread(usize),
            Text(&'static str),
            Message(usize),
        }
        let mut out = Vec::new();
        let mut work: Vec<Work> = roots.iter().rev().map(|&root| Work::Thread(root)).collect();
        while let Some(next) = work.pop() {
            match next {
                Work::Text(text) => out.extend_from_slice(text.as_bytes()),
                Work::Thread(node) => {
                    out.push(b'(');
                    work.extend([Work::Text(")"), Work::Message(node)]);
                }
                Work::Message(node) => {
                    let node = &self.nodes[node];
                    if let Some(post) = node.post {
                        out.extend_from_slice(self.posts[post].name.to_string().as_bytes());
                    }
                    match node.children.as_slice() {
                        [] => {}
                        [child] if node.post.is_some() => work.extend([Work::Message(*child), Work::Text(" ")]),
                        children => {
                            work.extend(children.iter().rev().map(|&child| Work::Thread(child)));
                            work.extend(node.post.map(|_| Work::Text(" ")));
                        }
                    }
                }
            }
        }
        out
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

    fn threads(posts: Vec<Post>) -> String {
        let mut forest = Forest::default();
        posts.into_iter().for_each(|post| forest.place(post));
        String::from_utf8(forest.threads()).unwrap()
    }

    #[test]
    fn rings_and_long_chains_come_to_an_end() {
        assert_eq!(threads(vec![post(1, "a@x", &["b@x"]), post(2, "b@x", &["a@x"])]), "(2 1)");
        assert_eq!(threads(vec![post(1, "a@x", &["a@x"])]), "(1)");
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
}
