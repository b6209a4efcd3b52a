//! Intrusion rules over the object that is fed and all content in it, beside all other readers.

use std::sync::{Arc, PoisonError};

use flow::{Out, Protocol, Spotted};
use stream::{Class, FileType, Finding};

use super::Inspection;
use crate::node::{Node, Reader, Work};
use crate::watcher::Watcher;

impl Inspection {
    /// Has a node read by the rules, if there are any for this object.
    pub(super) fn watch(&self, node: &mut Node) {
        let Some(watch) = &self.watch else { return };
        if node.form.is_some() || node.second_reading {
            return;
        }
        let is_root = node.source.is_none();
        let is_mail = node.file_type == Some(FileType::Mail);
        let is_coded = !node.object.content_codings.is_empty();
        let is_file = !is_coded && !is_mail;
        let part = is_file.then(|| {
            // The name of a mail as an object is none of a file; that of a body is the last of its path.
            let is_http = matches!(self.context.flow.protocol, Protocol::Http | Protocol::Icap);
            let name = node.object.name.as_deref().filter(|_| !is_root || is_http);
            watch.lock().unwrap_or_else(PoisonError::into_inner).open(name)
        });
        if is_root || part.is_some() {
            let watcher = Watcher { watch: watch.clone(), part, is_body: self.is_content(node), is_root };
            node.readers.push(Reader::new("intrusion", Work::Watch(Box::new(watcher))));
        }
    }

    /// Takes over a header field of the mail that is fed.
    pub(super) fn watch_field(&mut self, field: &[u8]) {
        if let Some(watch) = &self.watch {
            watch.lock().unwrap_or_else(PoisonError::into_inner).field(field);
        }
    }

    /// Reports the rules that have matched.
    pub(super) fn report_watched(&mut self) {
        let Some(watch) = &self.watch else { return };
        let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
        self.out.extend(watch.alerts().into_iter().map(Out::Alert));
        let is_spent = watch.is_spent();
        drop(watch);
        if is_spent && !std::mem::replace(&mut self.is_watch_spent, true) {
            let finding = Finding::new(Class::Limit, "Heuristics.Limits.Exceeded.Intrusion", 0);
            let spotted = Spotted { finding, path: Arc::default(), object: 0 };
            if self.ledger.note(&spotted, &self.context.policy) {
                self.out.push_back(Out::Finding(spotted));
            }
        }
    }

    /// The object is over for the rules.
    pub(super) fn end_watch(&mut self) {
        let Some(watch) = &self.watch else { return };
        watch.lock().unwrap_or_else(PoisonError::into_inner).end();
        self.report_watched();
        self.watch = None;
    }
}
