//! What a reader of a message sees: its texts in their order, their pictures, and all else to be saved.

use alloc::vec::Vec;

use super::Part;

/// A text of a message, in the forms that it has.
#[derive(Debug, Clone, Copy, Default)]
pub struct Text<'a> {
    /// As HTML.
    pub html: Option<&'a Part>,
    /// As plain text.
    pub plain: Option<&'a Part>,
    /// The message within the message that it is of.
    pub message: Option<&'a Part>,
}

/// A message in the order in which it is read.
#[derive(Debug, Default)]
pub struct Shown<'a> {
    /// Texts.
    pub texts: Vec<Text<'a>>,
    /// Pictures beside a text, which it may show.
    pub pictures: Vec<&'a Part>,
    /// All else.
    pub attachments: Vec<&'a Part>,
    /// Attachments of messages within the message, which go with these.
    pub inner: Vec<&'a Part>,
}

impl Part {
    /// Its texts and attachments.
    pub fn shown(&self) -> Shown<'_> {
        let mut shown = Shown::default();
        self.collect(false, &mut shown);
        shown
    }

    fn collect<'a>(&'a self, is_related: bool, shown: &mut Shown<'a>) {
        match self.kind.as_str() {
            "multipart/alternative" => {
                let mut text = Text::default();
                for part in &self.parts {
                    let mut one = Shown::default();
                    part.collect(false, &mut one);
                    let (inner, own): (Vec<_>, Vec<_>) = one.texts.into_iter().partition(|text| text.message.is_some());
                    shown.texts.extend(inner);
                    shown.inner.extend(one.inner);
                    for found in own {
                        // Other forms of text than plain stand in where there is no plain one.
                        let plain = found.plain.filter(|part| text.plain.is_none() || part.kind == "text/plain");
                        text = Text { html: found.html.or(text.html), plain: plain.or(text.plain), message: None };
                    }
                    shown.pictures.extend(one.pictures);
                    shown.attachments.extend(one.attachments);
                }
                if text.html.is_some() || text.plain.is_some() {
                    shown.texts.push(text);
                }
            }
            "message/rfc822" => {
                shown.attachments.push(self);
                match self.is_attachment {
                    true => {}
                    // The head alone is known.
                    false if self.is_coded_message() => {
                        shown.texts.push(Text { message: Some(self), ..Text::default() });
                    }
                    false => self.collect_message(shown),
                }
            }
            _ if !self.parts.is_empty() => {
                let is_related = self.kind == "multipart/related";
                self.parts.iter().for_each(|part| part.collect(is_related, shown));
            }
            "text/html" if !self.is_attachment => shown.texts.push(Text { html: Some(self), ..Text::default() }),
            kind if !self.is_attachment
                && is_text(kind)
                && (self.name.is_empty() || self.is_inline || self.path == "1") =>
            {
                shown.texts.push(Text { plain: Some(self), ..Text::default() });
                if !self.name.is_empty() {
                    shown.attachments.push(self);
                }
            }
            kind if is_related && kind.starts_with("image/") && !(self.id.is_empty() && self.location.is_empty()) => {
                shown.pictures.push(self);
            }
            kind if kind.starts_with("multipart/") => {}
            _ => shown.attachments.push(self),
        }
    }
}

impl Part {
    /// What a message within the message has.
    fn collect_message<'a>(&'a self, shown: &mut Shown<'a>) {
        let mut one = Shown::default();
        self.parts.iter().for_each(|part| part.collect(false, &mut one));
        shown.texts.extend(one.texts.into_iter().map(|text| Text { message: text.message.or(Some(self)), ..text }));
        shown.inner.extend(one.attachments.into_iter().chain(one.pictures).chain(one.inner));
    }
}

/// Whether a part is shown as plain text: unknown kinds of text are (RFC 2046, section 4.1.4), and what a report says in fields.
fn is_text(kind: &str) -> bool {
    const REPORTS: [&str; 6] = [
        "message/delivery-status",
        "message/global-delivery-status",
        "message/global-headers",
        "message/disposition-notification",
        "message/feedback-report",
        "message/tracking-status",
    ];
    const FILES: [&str; 7] =
        ["text/calendar", "text/vcard", "text/x-vcard", "text/directory", "text/rtf", "text/css", "text/javascript"];
    REPORTS.contains(&kind) || kind.starts_with("text/") && kind != "text/html" && !FILES.contains(&kind)
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use stream::Coding;

    use super::*;
    use crate::sanitise::Picture;

    fn part(kind: &str, id: &str, parts: Vec<Part>) -> Part {
        Part {
            path: "1".into(),
            kind: kind.into(),
            name: String::new(),
            description: String::new(),
            charset: String::new(),
            is_flowed: false,
            deletes_space: false,
            is_attachment: false,
            is_inline: false,
            id: id.into(),
            location: String::new(),
            coding: Coding::Identity,
            message: 0,
            body: 0,
            end: 0,
            parts,
            letter: None,
        }
    }

    #[test]
    fn pictures_of_a_text_are_no_attachments() {
        let page = || part("text/html", "", Vec::new());
        let related = part("multipart/related", "", vec![page(), part("image/png", "a@b", Vec::new())]);
        let both = part("multipart/alternative", "", vec![part("text/plain", "", Vec::new()), related]);
        let all = part("multipart/mixed", "", vec![both, part("image/gif", "c@d", Vec::new())]);
        let shown = all.shown();
        let ids = |parts: &[&Part]| parts.iter().map(|part| part.id.clone()).collect::<Vec<_>>();
        assert_eq!((ids(&shown.pictures), ids(&shown.attachments)), (vec!["a@b".into()], vec!["c@d".into()]));
    }

    #[test]
    fn a_picture_is_named_by_its_identifier_or_its_place() {
        let mut placed = part("image/png", "A@b+c", Vec::new());
        placed.location = "img/a b.png".into();
        let all = part("multipart/related", "", vec![part("image/gif", "x", Vec::new()), placed]);
        let found = |named| all.picture(named).map(|part| part.kind.as_str());
        for id in ["A@b+c", "a@b+C", "<A@b+c>", "A%40b+c", "%3cA%40b%2bc%3e", " A@b+c "] {
            assert_eq!(found(Picture::Part(id)), Some("image/png"), "{id}");
        }
        assert_eq!(found(Picture::Place("img/a%20b.png")), Some("image/png"));
        assert_eq!(
            (found(Picture::Part("")), found(Picture::Place("")), found(Picture::Part("y"))),
            (None, None, None)
        );
        for (field, wanted) in [("(x) <a@b>", "a@b"), ("<a@b> y", "a@b"), ("a@b", "a@b"), ("", ""), ("<", "")] {
            assert_eq!(super::super::content_id(field), wanted, "{field}");
        }
    }

    #[test]
    fn a_description_names_a_file_without_a_name() {
        let described =
            |kind: &str, text: &str| Part { description: text.into(), ..part(kind, "", Vec::new()) }.file_name();
        assert_eq!(described("application/pdf", "Report of May"), "Report of May.pdf");
        assert_eq!(described("application/pdf", "a/Report.PDF"), "Report.PDF");
        assert_eq!(described("application/x-other", "x.odd"), "x.odd");
        assert_eq!(described("application/x-other", "x"), "x.bin");
        assert_eq!(described("image/png", ""), "part-1.png");
    }

    #[test]
    fn texts_of_other_kinds_are_shown() {
        let named = |kind: &str, is_inline| Part {
            path: "1.2".into(),
            name: "n.txt".into(),
            is_inline,
            ..part(kind, "", Vec::new())
        };
        for (one, wanted) in [
            (part("text/markdown", "", Vec::new()), (1, 0)),
            (part("text/rfc822-headers", "", Vec::new()), (1, 0)),
            (part("message/global-headers", "", Vec::new()), (1, 0)),
            (part("message/delivery-status", "", Vec::new()), (1, 0)),
            (part("text/calendar", "", Vec::new()), (0, 1)),
            (named("text/plain", true), (1, 1)),
            (named("text/plain", false), (0, 1)),
            (Part { path: "1".into(), ..named("text/plain", false) }, (1, 1)),
            (Part { is_attachment: true, ..named("text/x-patch", true) }, (0, 1)),
        ] {
            let shown = one.shown();
            assert_eq!((shown.texts.len(), shown.attachments.len()), wanted, "{one:?}");
        }
        let forms = ["text/plain", "text/x-amp-html", "text/enriched"].map(|kind| part(kind, "", Vec::new()));
        let all = part("multipart/alternative", "", forms.into());
        let texts: Vec<&str> = all.shown().texts.iter().filter_map(|text| Some(text.plain?.kind.as_str())).collect();
        assert_eq!(texts, ["text/plain"]);
    }
}
