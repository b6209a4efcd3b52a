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
        if let Some(page) = pages.page(paging) {
            node.readers.push(Reader::new("phrases", Work::Page(Some(Box::new(page)))));
        }
    }

    /// Takes the score of a node that is over.
    pub(super) fn take_page(&mut self, node: &mut Node) {
        let (Some(page), Some(paging)) = (node.page(), &self.context.paging) else { return };
        self.page = Some(page::score(*page, paging));
    }

    /// Whether a node is the content that is fed, without the codings that it was sent in.
    fn is_content(&self, node: &Node) -> bool {
        node.form.is_none() && !node.second_reading && node.source.is_none()
    }
}
