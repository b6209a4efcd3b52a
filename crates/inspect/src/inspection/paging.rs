//! The content of a web page, its codings undone, is counted by phrases beside all other readers.

use super::Inspection;
use crate::node::{Node, Reader, Work};
use crate::page;

impl Inspection {
    /// Has the phrases of a node counted, if it is the page that was asked about.
    pub(super) fn read_page(&self, node: &mut Node) {
        let (Some(paging), Some(pages)) = (&self.context.paging, &self.pages) else { return };
        if !self.is_content(node) || self.page.is_some() {
            return;
        }
        if let Some(page) = pages.page(paging, node.object.charset.as_deref()) {
            node.readers.push(Reader::new("phrases", Work::Page(Some(Box::new(page)))));
        }
    }

    /// Takes the score of a node that is over.
    pub(super) fn take_page(&mut self, node: &mut Node) {
        let (Some(page), Some(paging)) = (node.page(), &self.context.paging) else { return };
        self.page = Some(page::score(*page, paging));
    }

    /// Whether a node is the content that is fed, its content codings undone.
    pub(super) fn is_content(&self, node: &Node) -> bool {
        if node.form.is_some() || node.second_reading || !node.object.content_codings.is_empty() {
            return false;
        }
        let mut source = node.source;
        while let Some(slot) = source {
            let coded = self.nodes[slot].as_deref().filter(|above| !above.object.content_codings.is_empty());
            let Some(above) = coded else { return false };
            source = above.source;
        }
        true
    }
}
