//! Gathering: what a door looks for in the text of an object and of all that it holds.

use flow::Out;
use stream::{FileType, Kind};

use super::Inspection;
use super::observers::Sight;
use crate::gather::{Claim, Gather};
use crate::node::{Node, Reader, Work};

/// The longest header field whose text is read.
pub(super) const GATHERED_FIELD_BYTES_MAX: usize = 64 << 10;

impl Inspection {
    /// Has the text of an object gathered, if somebody looks for something in it; its name is text too.
    pub(super) fn gather(&mut self, node: &mut Node, sight: &Sight) {
        let file_type = sight.content;
        let Some(sought) = &self.context.wants.sought else { return };
        let claim = Claim {
            file_type,
            container: self.containers(node).last().copied(),
            is_page: sight.is_page,
            is_declared: node.source.is_some() && is_text(node, sight),
            charset: node.object.charset.as_deref(),
            head: node.window.filled(),
        };
        let readers = Gather::readers(sought, claim).map(|gather| Reader::new("text", Work::Gather(Box::new(gather))));
        let readers: Vec<Reader> = readers.collect();
        node.readers.extend(readers);
        let names = node.object.names().filter(|_| node.source.is_some());
        let named: Vec<_> = names.map(|name| Gather::of(sought, name)).collect();
        named.into_iter().for_each(|found| self.gathered(found));
    }

    /// Takes over a header field, unless it is one of the mail that is fed: whoever asks has those.
    pub(super) fn gather_field(&mut self, field: &[u8], is_of_root: bool) {
        let Some(sought) = self.context.wants.sought.as_ref().filter(|_| !is_of_root) else { return };
        let text = mime::header_text(field, field.len());
        let found = Gather::of(sought, &text);
        self.gathered(found);
    }

    pub(super) fn report_gathered(&mut self, node: &mut Node, index: usize, is_over: bool) {
        let Work::Gather(gather) = &mut node.readers[index].work else { return };
        let found = gather.report(is_over);
        self.gathered(found);
    }

    fn gathered(&mut self, found: Option<Out>) {
        let is_told = found == Some(Out::Present) && std::mem::replace(&mut self.is_present, true);
        self.out.extend(found.filter(|_| !is_told));
    }
}

/// Whether an object is declared to be text. A part of a mail is, if it is declared to be nothing (RFC 2045, section 5.2).
fn is_text(node: &Node, sight: &Sight) -> bool {
    // A page is read as one.
    if sight.is_page || node.object.media_type.as_deref() == Some("text/xml") {
        return !matches!(sight.content, FileType::Html | FileType::Xml);
    }
    match node.object.media_type.as_deref() {
        Some(media_type) => media_type.starts_with("text/"),
        None => node.object.kind == Kind::Part,
    }
}
