//! A request of HTTP with its response, as rules see them, whatever version of the protocol frames them: heads, contents without
//! their codings, and files.

use super::super::body::Open;
use super::super::buffer::{App, Buffer, Direction};
use super::super::events::name_in_rules;
use super::super::flow::{Desk, Flow};
use super::super::transaction::Transaction;
use super::coding::Codings;
use super::head::{Head, names_http, request_line};
use super::parts::{Event, Parts, parameter};
use super::record::{self, Anomaly, File, Layer, Log, Message};
use super::uri;

/// The flow, the desk and the log, which travel together.
pub(super) struct Ways<'w, 'd> {
    pub flow: &'w mut Flow,
    pub desk: &'w mut Desk<'d>,
    pub log: &'w mut Log,
}

/// A request and its response.
#[derive(Default)]
pub(super) struct Exchange {
    pub transaction: Transaction,
    pub is_asked: bool,
    pub method: Vec<u8>,
    pub number: u64,
    pub told: record::Exchange,
    /// The files that are open, of each way.
    files: [Option<OpenFile>; 2],
}

/// A file by its name, and its bytes so far.
type OpenFile = (Option<Box<[u8]>>, u64);

/// The content of a message that has begun.
pub(super) struct Content {
    pub codings: Codings,
    parts: Option<Parts>,
}

impl Exchange {
    /// One that begins, by its number among all of its connection.
    pub fn new(number: u64, is_asked: bool) -> Exchange {
        Exchange { number, is_asked, ..Exchange::default() }
    }

    /// Tells of a fault of a message, in a record and to rules.
    pub fn odd(&mut self, direction: Direction, event: &'static str, ways: &mut Ways<'_, '_>) {
        let layer = Layer::Parser(App::Http.name());
        ways.log.tell(self.number, record::Content::Anomaly(Anomaly { event, layer, direction }));
        self.transaction.fill(ways.desk.rules, direction, Buffer::Event, name_in_rules(event).as_bytes());
    }

    /// Begins the content of a message.
    pub fn begin(&mut self, direction: Direction, head: &Head, ways: &mut Ways<'_, '_>) -> Content {
        let codings = Codings::of(head.field(b"content-encoding").unwrap_or_default());
        let kind = head.field(b"content-type").unwrap_or_default();
        let is_form = direction == Direction::ToServer && kind.to_ascii_lowercase().starts_with(b"multipart/");
        let parts = is_form.then(|| {
            let mut parts = Parts::new();
            parts.feed(&[b"Content-Type: ", kind, b"\r\n\r\n"].concat(), &mut |_| {});
            parts
        });
        if let Some(name) = self.body_name(head).filter(|_| !is_form) {
            self.transaction.fill(ways.desk.rules, direction, Buffer::FileName, &name);
        }
        Content { codings, parts }
    }

    /// Hands decoded bytes of a content to the rules.
    pub fn body(&mut self, direction: Direction, content: &mut Content, bytes: &[u8], ways: &mut Ways<'_, '_>) {
        if bytes.is_empty() {
            return;
        }
        let own = if direction == Direction::ToServer { Buffer::RequestBody } else { Buffer::ResponseBody };
        let Some(parts) = &mut content.parts else {
            self.grow(direction, bytes.len());
            let open = Open { also: Some(own), ..Open::of(Buffer::FileData, 0) };
            return ways.flow.feed_open(&mut self.transaction, direction, open, bytes, ways.desk);
        };
        ways.flow.feed(&mut self.transaction, direction, own, bytes, ways.desk);
        parts.feed(bytes, &mut |event| self.upload(event, ways));
    }

    /// Ends a message, with its content where it has one.
    pub fn end(&mut self, direction: Direction, content: Option<Content>, is_whole: bool, ways: &mut Ways<'_, '_>) {
        if let Some(mut content) = content {
            let mut rest = Vec::new();
            content.codings.finish(&mut |bytes| rest.extend_from_slice(bytes));
            self.body(direction, &mut content, &rest, ways);
            if let Some(parts) = &mut content.parts {
                parts.finish(&mut |event| self.upload(event, ways));
            }
        }
        self.end_file(direction, is_whole, ways.log);
        ways.flow.end(&mut self.transaction, direction, ways.desk);
    }

    /// Whether its request can only be one of HTTP.
    pub fn asks_http(&self) -> bool {
        let line = self.told.request.as_ref().map(|head| request_line(&head.line));
        line.is_some_and(|(method, _, protocol)| method == b"GET" || names_http(protocol))
    }

    /// Tells of it in a record.
    pub fn record(self, log: &mut Log) {
        if self.told.request.is_some() || self.told.response.is_some() {
            log.tell(self.number, record::Content::Http(self.told));
        }
    }

    /// Takes bytes of a file; the first ones begin it.
    fn grow(&mut self, direction: Direction, bytes: usize) {
        let file = &mut self.files[usize::from(direction == Direction::ToClient)];
        let (_, sum) = file.get_or_insert_default();
        *sum = sum.saturating_add(bytes as u64);
    }

    /// The name of a body: the one that its head gives it, or the path of the request.
    fn body_name(&self, head: &Head) -> Option<Vec<u8>> {
        let given = head.field(b"content-disposition").and_then(|value| parameter(value, b"filename"));
        given.or_else(|| Some(uri::path(request_line(&self.told.request.as_ref()?.line).1)))
    }

    fn end_file(&mut self, direction: Direction, is_whole: bool, log: &mut Log) {
        let is_to_client = direction == Direction::ToClient;
        if let Some((name, bytes)) = self.files[usize::from(is_to_client)].take().filter(|(_, bytes)| *bytes > 0) {
            let of = Message::Http(self.told.clone());
            log.tell(self.number, record::Content::File(File { name, bytes, is_to_client, is_whole, of }));
        }
    }

    /// Hands the files of a form to the rules: parts with a name of a file.
    fn upload(&mut self, event: Event<'_>, ways: &mut Ways<'_, '_>) {
        let direction = Direction::ToServer;
        match event {
            Event::Begin(name) => {
                self.files[0] = name.map(|name| (Some(name.into()), 0));
                if let Some(name) = name {
                    self.transaction.fill(ways.desk.rules, direction, Buffer::FileName, name);
                }
            }
            Event::Data(bytes) if self.files[0].is_some() => {
                self.grow(direction, bytes.len());
                ways.flow.feed(&mut self.transaction, direction, Buffer::FileData, bytes, ways.desk);
            }
            Event::End if self.files[0].is_some() => {
                self.end_file(direction, true, ways.log);
                ways.flow.end_buffer(&mut self.transaction, direction, Buffer::FileData, ways.desk);
            }
            _ => {}
        }
    }
}
