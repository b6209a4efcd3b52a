//! Observers: readers that look at an object beside the stages that open it.
//!
//! [`OBSERVERS`] has a row for each: the objects that it wants, and how its readers are added to a node. The order of the rows is the
//! order of the readers. A view, a form of the object made for signatures, is a node of its own below a reader that makes it.

use flow::Way;
use scan::{Links, Normaliser, Scan, View};
use sha2::{Digest as _, Sha256};
use stream::{Coding, FileType, Kind};

use super::Inspection;
use crate::node::{Form, Node, Open, Reader, Seed, Work};

/// An object of which the type is known.
pub(super) struct Sight {
    /// The slot of its node.
    pub slot: usize,
    /// Its type by content alone.
    pub content: FileType,
    /// Its type by the magic of the database, too.
    pub file_type: FileType,
    /// Whether programs show it as a page, whatever its first bytes are.
    pub is_page: bool,
    /// Bytes of the window by which it was recognised.
    pub head_bytes: usize,
    /// What a rule makes of it.
    pub way: Way,
}

/// A row of [`OBSERVERS`].
struct Observer {
    wants: fn(&Inspection, &Node, &Sight) -> bool,
    add: fn(&mut Inspection, &mut Node, &Sight),
}

const OBSERVERS: [Observer; 8] = [
    Observer {
        wants: |inspection, _, sight| {
            is_scanned(inspection, sight) && inspection.engine.database.census().signatures() > 0
        },
        add: Inspection::add_scan,
    },
    Observer {
        wants: |inspection, node, sight| {
            is_scanned(inspection, sight)
                && (sight.file_type == FileType::Html || sight.is_page)
                && inspection.containers(node).contains(&FileType::Mail)
        },
        add: Inspection::add_links,
    },
    Observer { wants: |inspection, _, sight| is_scanned(inspection, sight), add: Inspection::add_views },
    Observer {
        wants: |inspection, _, _| inspection.context.wants.objects,
        add: |_, node, _| node.readers.push(Reader::new("sha-256", Work::Sha256(Box::new(Sha256::new())))),
    },
    Observer {
        wants: |inspection, _, sight| is_scanned(inspection, sight),
        add: |inspection, node, _| inspection.read_page(node),
    },
    Observer { wants: |_, _, _| true, add: |inspection, node, _| inspection.watch(node) },
    Observer {
        wants: |_, _, sight| sight.way != Way::Bypass,
        add: |inspection, node, sight| inspection.keep_words(node, sight),
    },
    Observer {
        wants: |_, _, sight| sight.way != Way::Bypass,
        add: |inspection, node, sight| inspection.gather(node, sight),
    },
];

/// Whether signatures are for an object. An inspection that looks for text looks for nothing else.
fn is_scanned(inspection: &Inspection, sight: &Sight) -> bool {
    !matches!(sight.way, Way::Bypass) && inspection.context.wants.sought.is_none()
}

impl Inspection {
    /// Adds the readers of all observers that want an object.
    pub(super) fn add_observers(&mut self, node: &mut Node, sight: &Sight) {
        for observer in OBSERVERS {
            if (observer.wants)(self, node, sight) {
                (observer.add)(self, node, sight);
            }
        }
    }

    fn add_scan(&mut self, node: &mut Node, sight: &Sight) {
        let scan = Scan::new(self.engine.database.clone(), sight.file_type, None).spending(self.allowance.clone());
        let scan = called(scan, node).within(self.containers(node));
        node.readers.push(Reader::new("scan", Work::Scan(Box::new(scan))));
    }

    fn add_links(&mut self, node: &mut Node, _: &Sight) {
        if let Some(links) = Links::new(self.engine.database.clone()) {
            node.readers.push(Reader::new("links", Work::Stage(Box::new(links))));
        }
    }

    fn add_views(&mut self, node: &mut Node, sight: &Sight) {
        let file_type = match text_of([sight.content, sight.file_type]) {
            file_type @ (FileType::Html | FileType::Text | FileType::Xml) => file_type,
            _ if sight.is_page => FileType::Html,
            file_type => file_type,
        };
        for normaliser in scan::views(&self.engine.database, file_type, &node.window.filled()[..sight.head_bytes]) {
            self.add_view(node, sight.slot, normaliser);
        }
        if self.is_sent_in_lines(node, sight) {
            self.add_view(node, sight.slot, Normaliser::new(View::Lines));
        }
    }

    /// Whether it is a file that was sent as text, in lines that end in CRLF, whatever they ended in before: signatures are
    /// written for the file.
    fn is_sent_in_lines(&self, node: &Node, sight: &Sight) -> bool {
        let object = &node.object;
        let is_file = object.name.is_some() || object.media_type.as_deref().is_some_and(|it| it != "text/plain");
        let is_text = matches!(sight.content, FileType::Text | FileType::Html | FileType::Xml);
        object.kind == Kind::Part
            && matches!(object.coding, Coding::Identity | Coding::QuotedPrintable)
            && is_file
            && is_text
            && node.window.filled()[..sight.head_bytes].windows(2).any(|pair| pair == b"\r\n")
            && self.containers(node).contains(&FileType::Mail)
    }

    /// Has a node scanned in a normalised view, too. Signatures found there are found in the object, which lies in the same
    /// containers.
    fn add_view(&mut self, node: &mut Node, slot: usize, normaliser: Normaliser) {
        let scan = Scan::of_view(self.engine.database.clone(), normaliser.view()).spending(self.allowance.clone());
        let scan = called(scan, node).within(self.containers(node));
        let seed = Seed {
            id: node.id,
            object: node.object.clone(),
            path: node.path.clone(),
            source: Some(slot),
            depth: node.depth,
            raw_start: None,
            place: None,
            second_reading: node.second_reading,
            is_doubted: node.is_doubted,
            ticket: None,
        };
        let planted = self.plant(seed);
        let view = self.node(planted);
        (view.file_type, view.form) = (node.file_type, Some(Form::View));
        view.readers.push(Reader::new("scan", Work::Scan(Box::new(scan))));
        let mut reader = Reader::new(normaliser.view().name(), Work::View(Box::new(normaliser)));
        reader.second_reading = node.second_reading;
        reader.open.push(Open::Node(planted));
        node.readers.push(reader);
    }
}

/// A scan that knows how its object is called, and what that lies in.
fn called(scan: Scan, node: &Node) -> Scan {
    let mut names: Vec<&str> = node.path.iter().map(|name| &**name).collect();
    let name = if node.object.name.is_some() { names.pop() } else { None };
    scan.named(&names, name.unwrap_or_default())
}

/// Type by which views of an object are made: text by content has views whatever else it is.
fn text_of([by_content, by_magic]: [FileType; 2]) -> FileType {
    match by_content {
        FileType::Html | FileType::Text | FileType::Xml if by_magic != FileType::Html => by_content,
        _ => by_magic,
    }
}
