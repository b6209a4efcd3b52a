//! Templates of texts for a message: header fields and the report, with tags such as `_SCORE_` kept.

/// Messages that get a header field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Spam.
    Spam,
    /// Ham: mail that is not spam.
    Ham,
    /// Both.
    All,
}

/// A header field that is added: `X-Spam-NAME: TEXT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Name after `X-Spam-`.
    pub name: Box<str>,
    /// Its text; `\n` and `\t` stand for a line break and a tab.
    pub text: Box<[u8]>,
}

/// Templates of texts for messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Templates {
    /// The report.
    pub report: Vec<Box<[u8]>>,
    /// Text added where the original was not plain text.
    pub unsafe_report: Vec<Box<[u8]>>,
    /// Header fields added to spam, in order.
    pub spam: Vec<Header>,
    /// Header fields added to what is not spam, in order.
    pub ham: Vec<Header>,
    /// Fields that are rewritten in spam: Subject, From or To, and with what.
    pub rewritten: Vec<(Box<str>, Box<[u8]>)>,
}

impl Templates {
    /// Adds a header field, in place of one of the same name.
    pub(super) fn add(&mut self, audience: Audience, name: &str, text: &[u8]) {
        for list in self.lists(audience) {
            match list.iter_mut().find(|header| header.name.eq_ignore_ascii_case(name)) {
                Some(header) => header.text = text.into(),
                None => list.push(Header { name: name.into(), text: text.into() }),
            }
        }
    }

    /// Takes a header field away.
    pub(super) fn remove(&mut self, audience: Audience, name: &str) {
        for list in self.lists(audience) {
            list.retain(|header| !header.name.eq_ignore_ascii_case(name));
        }
    }

    /// Takes all header fields away, but the one that says who looked.
    pub(super) fn clear_headers(&mut self) {
        for list in self.lists(Audience::All) {
            list.retain(|header| *header.name == *"Checker-Version");
        }
    }

    /// Rewrites a field, or with no text leaves it.
    pub(super) fn rewrite(&mut self, field: &str, text: &[u8]) {
        self.rewritten.retain(|(name, _)| **name != *field);
        if !text.is_empty() {
            self.rewritten.push((field.into(), text.into()));
        }
    }

    /// Whether a template contains a text.
    pub(super) fn has(&self, text: &[u8]) -> bool {
        let fields = self.spam.iter().chain(&self.ham).map(|header| &header.text);
        let mut all = fields.chain(&self.report).chain(&self.unsafe_report);
        all.any(|template| memchr::memmem::find(template, text).is_some())
    }

    fn lists(&mut self, audience: Audience) -> impl Iterator<Item = &mut Vec<Header>> {
        let (spam, ham) = (audience != Audience::Ham, audience != Audience::Spam);
        [(&mut self.spam, spam), (&mut self.ham, ham)].into_iter().filter(|(_, meant)| *meant).map(|(list, _)| list)
    }
}

impl Audience {
    /// `spam`, `ham` or `all`.
    pub(super) fn from_name(name: &[u8]) -> Option<Audience> {
        Some(match &*name.to_ascii_lowercase() {
            b"spam" => Audience::Spam,
            b"ham" => Audience::Ham,
            b"all" => Audience::All,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_replaced_removed_and_cleared() {
        let mut templates = Templates::default();
        templates.add(Audience::All, "Flag", b"a");
        templates.add(Audience::Spam, "flag", b"b");
        templates.add(Audience::All, "Checker-Version", b"c");
        assert_eq!((&*templates.spam[0].text, &*templates.ham[0].text), (&b"b"[..], &b"a"[..]));
        templates.remove(Audience::Ham, "FLAG");
        assert_eq!((templates.spam.len(), templates.ham.len()), (2, 1));
        templates.clear_headers();
        assert_eq!((templates.spam.len(), templates.ham.len()), (1, 1));
        templates.rewrite("Subject", b"***");
        templates.rewrite("Subject", b"");
        assert!(templates.rewritten.is_empty());
    }
}
