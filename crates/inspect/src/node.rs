//! One object under inspection: its window, and the readers that share it.

use std::borrow::Cow;
use std::sync::Arc;

use digest::Batch;
use scan::{Normaliser, Roll, Scan};
use sha2::{Digest, Sha256};
use stream::{Event, FileType, Finding, Fuel, Object, ReadAt, Spool, Stage, Step, Window};
use unpack::Doubt;

use crate::gather::Gather;
use crate::page::PAGE_COST;
use crate::place::{Place, Tail};
use crate::watcher::Watcher;
use crate::words::Text;
use flow::StageTime;
use rules::web::phrase::Page;

/// Bytes of text that are gathered from in one turn, and what each costs beside one that is looked at.
const GATHERED_BYTES_MAX: usize = 16 << 10;
const GATHERING_COST: usize = 8;

/// The most turns in a row in which a reader neither takes nor writes a byte. More than the 10,000 members that an inspection
/// opens take, were all of them empty.
const STANDING_TURNS_MAX: u32 = 1 << 17;

/// The window of an object that much content has come through, and how much that is: the fewer turns the better, and most
/// objects are small. It is for a mail and what lies in it itself, so that no inspection holds 8 KiB more for it.
const WIDE_BYTES: usize = 6 << 10;
const MUCH_BYTES: u64 = 64 << 10;
const WIDE_DEPTH_MAX: u32 = 1;

/// An object whose content is being read.
pub(crate) struct Node {
    /// Its number in reports.
    pub id: u32,
    /// Description by its container.
    pub object: Object,
    /// Its names, outermost first.
    pub path: Arc<[Box<str>]>,
    /// The slot of the node whose reader opened it.
    pub source: Option<usize>,
    /// Containers that it lies in.
    pub depth: u32,
    /// Where its bytes begin in the object that is fed, if they are a run of it, unchanged.
    pub raw_start: Option<u64>,
    /// Where its bytes begin in the object that they are a run of; unknown of one that begins in two readings.
    pub place: Option<Place>,
    /// How it is read as a mail.
    pub tail: Option<Tail>,
    /// Bytes that are needed to recognise the object.
    pub head_bytes: usize,
    /// Type; unknown until enough content has come.
    pub file_type: Option<FileType>,
    /// Bytes received.
    pub bytes: u64,
    /// Bytes received that no reader waits for any more.
    pub base: u64,
    /// Received, and not yet taken by every reader.
    pub window: Window,
    /// No more bytes will come.
    pub closing: bool,
    /// Readers. Those that open objects come first, so that a match in a mail finds its part.
    pub readers: Vec<Reader>,
    /// Whether this is another form of the object with the same number, which is the one reported.
    pub form: Option<Form>,
    /// Whether a second reading produced it.
    pub second_reading: bool,
    /// Whether a reader that is doubted throughout produced it.
    pub is_doubted: bool,
    /// Set once its raw bytes are to be overwritten; whether the finding came late.
    pub blanked: Option<bool>,
    /// Its members, compared with signatures while they are told.
    pub roll: Option<Box<Roll>>,
    /// Ticket in its container's roll, under which its size is waited for.
    pub ticket: Option<u64>,
    /// The name of the ambiguity of which this is the second reading, if more content would not be opened: what opens the first
    /// reading is in the middle of it.
    pub torn: Option<Cow<'static, str>>,
}

/// A form in which an object is read beside its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// In its transfer coding.
    Encoded,
    /// The object in a normalised view.
    View,
}

/// Next task of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Recognise the type and choose the readers.
    Recognise,
    /// Let this reader take bytes.
    Step(usize),
    /// Let this reader finish.
    Finish(usize),
    /// Report it and forget it.
    Retire,
}

impl Node {
    /// The possible task; `None` while it waits for bytes.
    pub fn task(&self) -> Option<Task> {
        if self.file_type.is_none() && self.form != Some(Form::Encoded) {
            let enough = self.window.len() >= self.head_bytes;
            return (enough || self.closing).then_some(Task::Recognise);
        }
        let mut reading = self.readers.iter().enumerate().filter(|(_, reader)| !reader.ended);
        let mut behind = reading.clone().filter(|(_, reader)| reader.at < self.bytes);
        // Second readings go first: most end soon, and fewer are under way when the next begins.
        if let Some((index, _)) = behind.clone().find(|(_, reader)| reader.forked).or_else(|| behind.next()) {
            return Some(Task::Step(index));
        }
        if !self.closing {
            return None;
        }
        Some(reading.next().map_or(Task::Retire, |(index, _)| Task::Finish(index)))
    }

    /// Waits for a longer head, in a window that has room for a scratch window besides.
    pub fn want_head(&mut self, bytes: usize) {
        let mut window = Window::with_capacity(bytes + unpack::HEAD_BYTES);
        window.push(self.window.filled());
        (self.head_bytes, self.window) = (bytes, window);
    }

    /// Lets go of the bytes that all readers have taken.
    pub fn trim(&mut self) {
        if self.file_type.is_none() && self.form != Some(Form::Encoded) {
            return;
        }
        let slowest = self.readers.iter().filter(|reader| !reader.ended).map(|reader| reader.at).min();
        let keep_from = slowest.unwrap_or(self.bytes);
        let done = usize::try_from(keep_from - self.base).expect("a window's length fits usize");
        self.window.take(done);
        self.base = keep_from;
        if self.bytes >= MUCH_BYTES && self.window.is_empty() && self.may_widen() {
            self.window = Window::with_capacity(WIDE_BYTES);
        }
    }

    /// Keeps no memory for content that is still to come, nor for readers that read no more and have nothing to report.
    pub fn rest(&mut self) {
        self.window.rest();
        if self.readers.iter().any(Reader::is_over) {
            self.readers.retain(|reader| !reader.is_over());
            self.readers.shrink_to_fit();
        }
    }

    /// Whether a wider window would be of use. A view is read as it is made.
    fn may_widen(&self) -> bool {
        self.window.capacity() < WIDE_BYTES && self.depth <= WIDE_DEPTH_MAX && self.form != Some(Form::View)
    }

    /// The scan of its content, if there is one.
    pub fn scan(&self) -> Option<&Scan> {
        self.readers.iter().find_map(|reader| match &reader.work {
            Work::Scan(scan) => Some(&**scan),
            _ => None,
        })
    }

    /// The SHA-256 of all that was received, if it was asked for.
    pub fn sha256(&self) -> Option<[u8; 32]> {
        self.readers.iter().find_map(|reader| match &reader.work {
            Work::Sha256(hash) => Some((**hash).clone().finalize().into()),
            _ => None,
        })
    }

    /// Its text, which may hold passwords.
    pub fn text(&mut self) -> Option<Text> {
        self.readers.iter_mut().find_map(|reader| match &mut reader.work {
            Work::Words(text) => Some(std::mem::take(&mut **text)),
            _ => None,
        })
    }

    /// The page that it is, if its phrases were counted.
    pub fn page(&mut self) -> Option<Box<Page>> {
        self.readers.iter_mut().find_map(|reader| match &mut reader.work {
            Work::Page(page) => page.take(),
            _ => None,
        })
    }

    /// The time spent by each reader.
    pub fn stage_times(&self) -> Vec<StageTime> {
        let timed = self.readers.iter().filter(|reader| reader.nanos > 0);
        timed.map(|reader| StageTime { stage: reader.name.into(), nanos: reader.nanos }).collect()
    }
}

/// A stage that reads a node, and the objects that it has open.
pub(crate) struct Reader {
    pub work: Work,
    /// The stage's name in reports.
    pub name: &'static str,
    /// Bytes of the node taken, from the node's first byte on.
    pub at: u64,
    /// Where in the node it began: offsets that it tells count from here.
    pub began: u64,
    /// Open objects, innermost last.
    pub open: Vec<Open>,
    /// Whether it is a second reading.
    pub second_reading: bool,
    /// Whether it is the one that began the second reading.
    pub forked: bool,
    /// Whether it makes more out of its input than it is given, which counts as expansion.
    pub expands: bool,
    /// It has told `End`, or was cut off.
    pub ended: bool,
    /// Time spent in it.
    pub nanos: u64,
    /// Input kept at its request.
    pub spool: Spool,
    /// Turns in a row in which it neither took nor wrote a byte, though there was fuel.
    pub standing: u32,
    /// When its findings count.
    pub doubt: Doubt,
    /// Findings that wait until they count.
    pub withheld: Vec<Finding>,
}

impl Reader {
    /// Whether it reads a mail, in the first reading.
    pub fn is_of_mail(&self) -> bool {
        self.name == "mime" && !self.second_reading
    }

    /// Whether it looks for signatures.
    pub const fn is_scan(&self) -> bool {
        matches!(self.work, Work::Scan(_))
    }

    /// Reads no more: its stage is freed.
    pub fn end(&mut self) {
        self.ended = true;
        if let Work::Stage(stage) = &mut self.work {
            *stage = Box::new(Ended);
        }
    }

    /// Whether it has ended, and nothing of it is reported later.
    fn is_over(&self) -> bool {
        self.ended && self.nanos == 0 && matches!(self.work, Work::Stage(_))
    }

    /// The slot of the node that its content goes to.
    pub fn target(&self) -> Option<usize> {
        match self.open.last() {
            Some(Open::Node(slot)) => Some(*slot),
            _ => None,
        }
    }

    /// If it writes a view: another one that goes on like it, and the slot of the node that has the view.
    pub fn view(&self) -> Option<(Reader, usize)> {
        let Work::View(normaliser) = &self.work else { return None };
        let mut other = Reader::new(self.name, Work::View(normaliser.clone()));
        (other.at, other.ended) = (self.at, self.ended);
        self.target().map(|slot| (other, slot))
    }

    /// If it undoes a transfer coding: another one that goes on like it, and the slot of the node that has the content.
    pub fn decoder(&self) -> Option<(Reader, usize)> {
        let Work::Decode(decoder) = &self.work else { return None };
        let mut other = Reader::new(self.name, Work::Decode(decoder.clone()));
        (other.at, other.ended) = (self.at, self.ended);
        self.target().map(|slot| (other, slot))
    }

    /// Whether it undoes a coding that `object` hardly has: a label that is wrong, or one among several.
    pub fn is_junk(&self, object: &Object) -> bool {
        let Work::Decode(decoder) = &self.work else { return false };
        let media_type = object.media_type.as_deref().unwrap_or_default();
        let is_container = media_type.starts_with("message/") || media_type.starts_with("multipart/");
        (self.second_reading || is_container) && decoder.is_junk()
    }

    /// Counts a turn in which it took and wrote so many bytes and burned so much; whether it stands still. One that has run
    /// out of fuel goes on, for as long as there is processor time: how often that is depends on the fuel.
    pub fn stands(&mut self, bytes: usize, event: &Event, burned: u64, fuel: &Fuel) -> bool {
        if bytes > 0 {
            self.standing = 0;
            return false;
        }
        match *event == Event::Idle {
            true if fuel.is_empty() => return false,
            true if burned == 0 => return true,
            _ => self.standing += 1,
        }
        self.standing >= STANDING_TURNS_MAX
    }

    /// A reader that begins at the first byte.
    pub fn new(name: &'static str, work: Work) -> Reader {
        Reader {
            work,
            name,
            at: 0,
            began: 0,
            open: Vec::new(),
            second_reading: false,
            forked: false,
            expands: false,
            ended: false,
            nanos: 0,
            spool: Spool::default(),
            standing: 0,
            doubt: Doubt::None,
            withheld: Vec::new(),
        }
    }
}

/// Work of a reader.
pub(crate) enum Work {
    /// Looks for signatures.
    Scan(Box<Scan>),
    /// Opens objects.
    Stage(Box<dyn Stage>),
    /// Undoes a transfer coding.
    Decode(Box<mime::Decoder>),
    /// Writes a normalised view.
    View(Box<Normaliser>),
    /// Computes the hash that reports show.
    Sha256(Box<Sha256>),
    /// Keeps text whose words may be passwords.
    Words(Box<Text>),
    /// Gathers what is looked for in its text.
    Gather(Box<Gather>),
    /// Counts the phrases of a web page.
    Page(Option<Box<Page>>),
    /// Tries intrusion rules.
    Watch(Box<Watcher>),
}

impl Work {
    /// The second reading that the last event offered.
    pub fn alternative(&mut self) -> Option<Box<dyn Stage>> {
        match self {
            Work::Stage(stage) => stage.alternative(),
            Work::Decode(decoder) => decoder.alternative(),
            _ => None,
        }
    }

    pub fn step(&mut self, batch: &mut Batch, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        match self {
            Work::Scan(scan) => scan.step_beside(batch, input, fuel),
            Work::Stage(stage) => stage.step(input, output, fuel),
            Work::Decode(decoder) => decoder.step(input, output, fuel),
            Work::View(normaliser) => normaliser.step(input, output, fuel),
            Work::Sha256(hash) => {
                hash.update(input);
                fuel.burn(input.len());
                Step::idle(input.len())
            }
            Work::Words(words) => {
                words.read(input);
                fuel.burn(input.len());
                Step::idle(input.len())
            }
            Work::Page(page) => {
                page.iter_mut().for_each(|page| page.feed(input));
                fuel.burn(input.len() * PAGE_COST);
                Step::idle(input.len())
            }
            Work::Watch(watcher) => {
                watcher.feed(input, fuel);
                Step::idle(input.len())
            }
            Work::Gather(gather) => {
                let input = &input[..input.len().min(GATHERED_BYTES_MAX)];
                gather.read(input);
                fuel.burn(input.len() * GATHERING_COST);
                Step::idle(input.len())
            }
        }
    }

    pub fn finish(&mut self, batch: &mut Batch, kept: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
        match self {
            Work::Scan(scan) => scan.finish_beside(batch, kept, fuel),
            Work::Stage(stage) => stage.finish(kept, output, fuel),
            Work::Decode(decoder) => decoder.finish(kept, output, fuel),
            Work::View(normaliser) => normaliser.finish(kept, output, fuel),
            Work::Gather(gather) => {
                gather.end();
                Event::End
            }
            Work::Watch(watcher) => {
                watcher.end();
                Event::End
            }
            Work::Sha256(_) | Work::Words(_) | Work::Page(_) => Event::End,
        }
    }
}

/// The stage of a reader that reads no more. It takes no memory.
struct Ended;

impl Stage for Ended {
    fn step(&mut self, input: &[u8], _output: &mut Window, _fuel: &mut Fuel) -> Step {
        Step::idle(input.len())
    }

    fn finish(&mut self, _kept: &dyn ReadAt, _output: &mut Window, _fuel: &mut Fuel) -> Event {
        Event::End
    }
}

/// Something that a reader has open.
pub(crate) enum Open {
    /// An object with content, in this slot.
    Node(usize),
    /// A container without content of its own.
    Container { id: u32, parent: u32, path: Arc<[Box<str>]>, object: Box<Object> },
    /// A header field, as far as it is kept.
    Field(Vec<u8>),
    /// Content that nobody reads: objects beyond a limit.
    Unread,
}

/// A node before it has a window.
#[derive(Clone)]
pub(crate) struct Seed {
    pub id: u32,
    pub object: Object,
    pub path: Arc<[Box<str>]>,
    pub source: Option<usize>,
    pub depth: u32,
    pub raw_start: Option<u64>,
    pub place: Option<Place>,
    pub second_reading: bool,
    pub is_doubted: bool,
    pub ticket: Option<u64>,
}

impl Seed {
    pub fn grow(self, window: Window) -> Node {
        Node {
            id: self.id,
            object: self.object,
            path: self.path,
            source: self.source,
            depth: self.depth,
            raw_start: self.raw_start,
            place: self.place,
            tail: None,
            head_bytes: unpack::HEAD_BYTES,
            file_type: None,
            bytes: 0,
            base: 0,
            window,
            closing: false,
            readers: Vec::new(),
            form: None,
            second_reading: self.second_reading,
            is_doubted: self.is_doubted,
            blanked: None,
            roll: None,
            ticket: self.ticket,
            torn: None,
        }
    }
}
