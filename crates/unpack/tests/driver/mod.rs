//! A tiny driver for tests: reads a file, opens what is in it, and what is in that.
#![allow(dead_code)]

use std::path::PathBuf;

use stream::{Event, FileType, Finding, Fuel, Kind, Limits, Note, Object, Spool, Stage, Window};
use unpack::Passwords;

/// An object and what was found in it.
pub struct Node {
    pub object: Object,
    pub file_type: FileType,
    pub content: Vec<u8>,
    pub findings: Vec<Finding>,
    pub children: Vec<Node>,
    /// Whether it lies deeper than was looked.
    pub too_deep: bool,
}

/// The most bytes that are kept of one object.
pub const CONTENT_BYTES_MAX: usize = 100 << 20;

/// The candidates that open the encrypted seeds, and one that does not.
pub fn passwords() -> Passwords {
    Passwords::new(["wrong", "sluice"].map(|word| word.as_bytes().into()), &Limits::default())
}

/// The reader of that name which is due for an object, if one is.
pub fn reader(name: &str, claim: &unpack::Claim<'_>) -> Option<Box<dyn Stage>> {
    let openers = unpack::open(claim, &Limits::default(), &passwords());
    openers.into_iter().find(|opener| opener.name == name).map(|opener| opener.stage)
}

impl Node {
    /// Opens `content` and what is in it, `depth` layers deep.
    pub fn open(object: Object, content: Vec<u8>, depth: u32) -> Node {
        Node::open_with(object, content, depth, &passwords())
    }

    /// As [`Node::open`], with these passwords.
    pub fn open_with(object: Object, content: Vec<u8>, depth: u32, passwords: &Passwords) -> Node {
        let head = &content[..content.len().min(unpack::HEAD_BYTES)];
        let head = &content[..content.len().min(unpack::head_bytes(head))];
        let mut node = Node {
            object,
            file_type: unpack::recognise(head),
            content,
            findings: Vec::new(),
            children: Vec::new(),
            too_deep: depth == 0,
        };
        if depth > 0 {
            node.read(depth, passwords);
        }
        node
    }

    fn read(&mut self, depth: u32, passwords: &Passwords) {
        let limits = Limits::default();
        let head = self.content[..self.content.len().min(unpack::HEAD_BYTES)].to_vec();
        let object = self.object.clone();
        let claim = unpack::Claim {
            name: object.name.as_deref(),
            media_type: object.media_type.as_deref(),
            is_rest: object.kind == Kind::Rest,
            head: &head,
            ..unpack::Claim::of(self.file_type)
        };
        // What a mail is only the driver of all knows: here any text is one that begins as a mailbox does.
        let mailbox =
            unpack::open(&unpack::Claim { head: &head, ..unpack::Claim::of(FileType::Mail) }, &limits, passwords);
        for opener in unpack::open(&claim, &limits, passwords).into_iter().chain(mailbox) {
            self.read_by(opener.stage, 0, depth, passwords);
        }
    }

    /// Reads the content from `start` on, and every second reading of it.
    fn read_by(&mut self, mut stage: Box<dyn Stage>, start: usize, depth: u32, passwords: &Passwords) {
        let mut output = Window::with_capacity(8192);
        let mut spool = Spool::default();
        let mut at = start;
        let mut open: Option<(Object, Vec<u8>)> = None;
        loop {
            output.clear();
            let mut fuel = Fuel::unlimited();
            let offered = &self.content[at..self.content.len().min(at + 16384)];
            let (taken, event) = if offered.is_empty() {
                (0, stage.finish(&spool, &mut output, &mut fuel))
            } else {
                let step = stage.step(offered, &mut output, &mut fuel);
                (step.taken, step.event)
            };
            spool.pass((at - start) as u64, &offered[..taken], u64::MAX);
            at += taken;
            match event {
                Event::Idle => {}
                Event::Verbatim => add(&mut open, &offered[..taken]),
                Event::Wrote => add(&mut open, output.filled()),
                Event::Open(object) => open = Some((object, Vec::new())),
                Event::Close => {
                    let (object, content) = open.take().expect("a close has its open");
                    self.children.push(Node::open_with(object, content, depth - 1, passwords));
                }
                Event::Note(Note::Finding(finding)) => self.findings.push(finding),
                Event::Note(Note::Fork(finding)) => {
                    self.findings.push(finding);
                    if let Some(second) = stage.alternative() {
                        self.read_by(second, at, depth, passwords);
                    }
                }
                Event::Keep(range) => assert!(spool.ask(range, (at - start) as u64), "ranges are asked for in order"),
                Event::End => return,
            }
        }
    }

    /// All nodes, this one first.
    pub fn all(&self) -> Vec<&Node> {
        let mut all = vec![self];
        for child in &self.children {
            all.extend(child.all());
        }
        all
    }

    /// The names of all findings, of this node and those below.
    pub fn finding_names(&self) -> Vec<String> {
        let findings = self.all().into_iter().flat_map(|node| &node.findings);
        findings.map(|finding| finding.name.to_string()).collect()
    }
}

fn add(open: &mut Option<(Object, Vec<u8>)>, bytes: &[u8]) {
    let (_, content) = open.as_mut().expect("content belongs to an object");
    let keep = bytes.len().min(CONTENT_BYTES_MAX - content.len());
    content.extend_from_slice(&bytes[..keep]);
}

/// A folder of the public material, if it is there.
pub fn data(folder: &str) -> Option<PathBuf> {
    let roots = [
        std::env::var_os("SLUICE_DATA").map(PathBuf::from),
        Some(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../data")),
    ];
    let found = roots.into_iter().flatten().map(|root| root.join(folder)).find(|path| path.is_dir());
    if found.is_none() {
        eprintln!("no pack: {folder}");
    }
    found
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The stream that a seed of this format stands for. The first byte of a seed is the fuzz body's.
pub fn stream_of(format: &str, seed: &[u8]) -> Vec<u8> {
    match format {
        "iso" | "hfs" | "disk" => unpack::fuzz::blocks(seed)[1..].to_vec(),
        _ => seed[1..].to_vec(),
    }
}
