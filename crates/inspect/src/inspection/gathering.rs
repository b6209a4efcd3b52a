//! Gathering: what a door looks for in the text of an object and of all that it holds.

use flow::Out;
use stream::FileType;

use super::Inspection;
use crate::gather::Gather;
use crate::node::{Node, Reader, Work};

impl Inspection {
    /// Has the text of an object gathered, if somebody looks for something in it; its name is text too.
    pub(super) fn gather(&mut self, node: &mut Node, file_type: FileType) {
        let Some(sought) = &self.context.wants.sought else { return };
        let charset = node.object.charset.as_deref();
        let gather =
            Gather::new(sought, file_type, self.containers(node).last().copied(), charset, node.window.filled());
        if let Some(gather) = gather {
            node.readers.push(Reader::new("text", Work::Gather(Box::new(gather))));
        }
        let name = node.object.name.as_deref().filter(|_| node.source.is_some());
        let named = name.and_then(|name| Gather::of(sought, name));
        self.gathered(named);
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
