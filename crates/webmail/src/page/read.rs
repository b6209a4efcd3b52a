//! A message: its head, its texts, its attachments. HTML stands in a frame of its own, which may do nothing.

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;

use crate::call::Call;
use crate::envelope::{Address, Envelope};
use crate::html::{Html, Safe as Markup, Text, put};
use crate::mail::{Flag, Message};
use crate::plain;
use crate::reply::Reply;
use crate::sanitise::{Picture, Safe, sanitise};
use crate::structure::{Content, Header, Part, Shown, picture_kind};

use super::listing::Listing;
use super::write::list_of;
use super::{Pages, Place};

/// Addresses of a field that are shown.
const SHOWN_MAX: usize = 50;

/// Bytes of all pictures of a mail that its frame shows.
const PICTURES_BYTES_MAX: usize = 8 << 20;

impl Pages<'_> {
    /// A message.
    pub fn read(&mut self, folder: u32, uid: u32, call: &Call) -> Reply {
        let Some(message) = self.found(folder, uid) else { return self.missing() };
        if !message.row.flags.seen {
            // Reading goes on if it cannot be noted.
            let _ = self.mail.flag(folder, &[uid], Flag::Seen, true);
            self.folders = self.mail.folders();
        }
        let part = Part::read(self.mail, &message);
        let envelope = self.envelope(&message);
        let (words, subject) = (&self.words.read, self.subject(&envelope.subject));
        let mut main = Html::default();
        put!(main, "<h1><bdi>", Text(subject), "</bdi></h1>");
        self.head(&mut main, &message, &envelope);
        let list = list_of(&Header::read(self.mail, message.number, &message.layout));
        let back = Listing::back(&call.query).unwrap_or(Listing::newest(folder));
        self.actions_on(&mut main, Place { folder, uid }, &back, message.row.flags.flagged, list.is_some());
        self.leaving(&mut main, &message);
        let as_text = call.query.get("as") == "text";
        let shown = self.shown(&part, as_text);
        let are_shown = self.shows_pictures(folder, &envelope, call);
        if !as_text && shown.texts.iter().any(|text| text.html.is_some()) {
            self.picture_choices(&mut main, Place { folder, uid }, &back, &envelope, are_shown);
        }
        let mut last = "";
        for text in &shown.texts {
            self.letter_of(&mut main, text.message, &mut last);
            match (text.html, text.plain) {
                (Some(html), _) if !as_text => self.frame_of(&mut main, (folder, uid), &back, html, are_shown),
                (_, Some(plain)) => {
                    let text = plain.text(self.mail);
                    put!(main, "<div class=\"card text\" dir=\"auto\">");
                    plain::write(&mut main, &text);
                    main.put("</div>");
                }
                (Some(html), None) => {
                    let text = plain::of_html(&html.text(self.mail));
                    put!(main, "<div class=\"card text\" dir=\"auto\">");
                    plain::write(&mut main, &text);
                    main.put("</div>");
                }
                (None, None) => {}
            }
        }
        if shown.texts.is_empty() {
            put!(main, "<p class=\"soft\">", words.no_text, "</p>");
        }
        if part.is_cut() {
            put!(main, "<p class=\"note\">", words.more_parts, "</p>");
        }
        if !shown.attachments.is_empty() {
            put!(main, "<h2>", self.words.common.attachments, "</h2><ul class=\"files\">");
            for part in &shown.attachments {
                self.file_of(&mut main, (folder, uid), part);
            }
            main.put("</ul>");
            self.pictures_of(&mut main, (folder, uid), &shown.attachments);
        }
        self.page(subject, Some(folder), self.told(call), main)
    }

    /// An attachment in the list of them, to be saved, and to be looked at where a browser may show it.
    fn file_of(&mut self, main: &mut Html, (folder, uid): (u32, u32), part: &Part) {
        put!(main, "<li><a class=\"button\" href=\"/m/", folder, "/", uid, "/part/", Text(&part.path), "\"><bdi>");
        put!(main, Text(&part.file_name()), "</bdi> <span class=\"soft\">");
        put!(main, Text(&self.words.size(part.size())), "</span></a>");
        if part.is_readable() || self.is_pdf(part) {
            put!(main, " <a target=\"_blank\" rel=\"noopener\" href=\"/m/", folder, "/", uid, "/view/");
            put!(main, Text(&part.path), "\">", self.words.read.view);
            put!(main, "<span class=\"skip\">: ", Text(&part.file_name()), "</span></a>");
        }
        main.put("</li>");
    }

    fn is_pdf(&mut self, part: &Part) -> bool {
        part.kind == "application/pdf" && part.bytes(self.mail, 5) == b"%PDF-"
    }

    /// The pictures among attachments, shown.
    fn pictures_of(&mut self, main: &mut Html, (folder, uid): (u32, u32), files: &[&Part]) {
        let pictures = files.iter().filter(|part| part.kind.starts_with("image/")).take(SHOWN_MAX);
        for part in pictures {
            if part.picture_kind(self.mail).is_none() {
                continue;
            }
            put!(main, "<p><img class=\"picture\" loading=\"lazy\" src=\"/m/", folder, "/", uid, "/view/");
            put!(main, Text(&part.path), "\" alt=\"", Text(&part.file_name()), "\"></p>");
        }
    }

    /// An attachment to be looked at: a picture, a text, a PDF.
    pub fn view(&mut self, folder: u32, uid: u32, path: &str) -> Reply {
        let Some(message) = self.found(folder, uid) else { return self.missing() };
        let root = Part::read(self.mail, &message);
        let Some(part) = root.find(path) else { return self.missing() };
        match part.picture_kind(self.mail) {
            Some(kind) if part.kind.starts_with("image/") => Reply::picture(part.content(), kind),
            _ if part.is_readable() => Reply::text(part.text(self.mail)),
            _ if self.is_pdf(part) => Reply::pdf(part.content()),
            _ => self.missing(),
        }
    }

    /// The texts and attachments of a message: among these are the pictures that no text shows.
    fn shown<'p>(&mut self, root: &'p Part, as_text: bool) -> Shown<'p> {
        let mut shown = root.shown();
        if shown.pictures.is_empty() && shown.inner.is_empty() {
            return shown;
        }
        let mut named: BTreeSet<&str> = BTreeSet::new();
        for html in shown.texts.iter().filter_map(|text| text.html).filter(|_| !as_text) {
            let page = html.text(self.mail);
            sanitise(&page, &mut |picture| {
                named.extend(root.picture(picture).map(|part| part.path.as_str()));
                None
            });
        }
        // A picture that browsers do not show is a file, whatever names it.
        let mut is_shown = |part: &&Part| named.contains(part.path.as_str()) && part.picture_kind(self.mail).is_some();
        let (pictures, others) = shown.pictures.into_iter().partition(&mut is_shown);
        shown.pictures = pictures;
        shown.attachments.extend(others);
        shown.inner.retain(|part| !is_shown(part));
        shown.attachments.append(&mut shown.inner);
        shown
    }

    /// The head of a message within the message, before the first of its texts.
    fn letter_of<'p>(&self, main: &mut Html, message: Option<&'p Part>, last: &mut &'p str) {
        let path = message.map_or("", |part| part.path.as_str());
        let is_new = core::mem::replace(last, path) != path;
        let Some(letter) = message.and_then(|part| part.letter.as_deref()).filter(|_| is_new) else { return };
        let words = &self.words.common;
        put!(main, "<hr><dl class=\"head\">");
        let date = letter.date.map(|date| self.whole_date(date)).unwrap_or_default();
        for (name, value) in [(words.subject, &letter.subject), (words.from, &letter.from), (words.date, &date)] {
            put!(main, "<dt>", name, "</dt><dd><bdi>", Text(value), "</bdi></dd>");
        }
        put!(main, "</dl>");
    }

    /// A message of the user.
    pub fn found(&mut self, folder: u32, uid: u32) -> Option<Message> {
        self.folder(folder)?;
        self.mail.message(folder, uid)
    }

    /// The envelope of a message.
    pub fn envelope(&mut self, message: &Message) -> Envelope {
        Envelope::parse(&message.row.envelope)
    }

    fn head(&self, main: &mut Html, message: &Message, envelope: &Envelope) {
        let words = &self.words.common;
        put!(main, "<dl class=\"head\">");
        for (name, list) in [
            (words.from, &envelope.from),
            (words.to, &envelope.to),
            (words.cc, &envelope.cc),
            (words.bcc, &envelope.bcc),
        ] {
            self.people(main, name, list);
        }
        if envelope.reply_to != envelope.from {
            self.people(main, words.reply_to, &envelope.reply_to);
        }
        put!(main, "<dt>", words.date, "</dt><dd>", Text(&self.whole_date(envelope.sent(message))), "</dd></dl>");
    }

    fn actions_on(
        &self,
        main: &mut Html,
        Place { folder, uid }: Place,
        back: &Listing,
        is_flagged: bool,
        is_of_list: bool,
    ) {
        let (words, common) = (&self.words.read, &self.words.common);
        put!(main, "<div class=\"bar\">");
        for (action, text) in
            [("reply", words.reply), ("all", words.reply_all), ("list", words.reply_list), ("forward", words.forward)]
        {
            if action == "list" && !is_of_list {
                continue;
            }
            put!(main, "<a class=\"button\" href=\"/write?", action, "=", folder, ".", uid, "\">", text, "</a>");
        }
        put!(main, "<a class=\"button\" href=\"/m/", folder, "/", uid, "/source\">", words.source, "</a>");
        put!(main, "<a class=\"button\" href=\"/m/", folder, "/", uid, "/print\">", words.print, "</a></div>");
        self.form(main, "action=\"/act\"");
        put!(main, "<input type=\"hidden\" name=\"at\" value=\"", folder, ".", uid, "\">");
        back.field(main);
        let (mark, flag) = if is_flagged { ("unflag", common.unflag) } else { ("flag", common.flag) };
        main.put("<div class=\"bar\">");
        for (action, text) in [("unseen", common.unread), (mark, flag), ("delete", common.delete)] {
            put!(main, "<button name=\"do\" value=\"", action, "\">", text, "</button>");
        }
        self.destinations(main, Some(folder));
        main.put("</div></form>");
    }

    fn frame_of(&mut self, main: &mut Html, (folder, uid): (u32, u32), back: &Listing, html: &Part, are_shown: bool) {
        put!(main, "<div class=\"bar\"><a href=\"/m/", folder, "/", uid, "?as=text");
        back.query(main, folder, "&amp;");
        put!(main, "\">", self.words.read.as_text, "</a></div>");
        put!(
            main,
            "<iframe title=\"",
            self.words.read.frame,
            "\" sandbox=\"allow-popups allow-popups-to-escape-sandbox\" src=\"/m/"
        );
        put!(main, folder, "/", uid, "/html/", Text(&html.path));
        main.put(if are_shown { "?pictures=1\"></iframe>" } else { "\"></iframe>" });
    }

    /// A message for paper: its head and its texts in one page, under the policy of a frame.
    pub fn print(&mut self, folder: u32, uid: u32) -> Reply {
        let Some(message) = self.found(folder, uid) else { return self.missing() };
        let (root, envelope) = (Part::read(self.mail, &message), self.envelope(&message));
        let mut page = sheet(self.words.tag, &envelope.subject);
        put!(page, "<main dir=\"", self.words.direction, "\"><h1><bdi>", Text(&envelope.subject), "</bdi></h1>");
        self.head(&mut page, &message, &envelope);
        let (shown, mut left) = (self.shown(&root, false), PICTURES_BYTES_MAX);
        let mut last = "";
        for text in &shown.texts {
            self.letter_of(&mut page, text.message, &mut last);
            match (text.html, text.plain) {
                (Some(html), _) => {
                    let Safe { html, .. } = self.safe(&root, html, &mut left, false);
                    put!(page, "<div class=\"mail\" dir=\"auto\">", Markup(html), "</div>");
                }
                (None, Some(plain)) => {
                    put!(page, "<div class=\"text\" dir=\"auto\">");
                    plain::write(&mut page, &plain.text(self.mail));
                    page.put("</div>");
                }
                (None, None) => {}
            }
        }
        if !shown.attachments.is_empty() {
            put!(page, "<h2>", self.words.common.attachments, "</h2><ul>");
            for part in &shown.attachments {
                put!(page, "<li><bdi>", Text(&part.file_name()), "</bdi>", self.words.common.comma);
                put!(page, Text(&self.words.size(part.size())), "</li>");
            }
            page.put("</ul>");
        }
        put!(page, "</main></body></html>");
        Reply::frame(page)
    }

    /// The HTML of a part made safe, with the pictures of the message, and of other servers where they are fetched, as far as there is room.
    fn safe(&mut self, root: &Part, part: &Part, left: &mut usize, fetches: bool) -> Safe {
        let page = part.text(self.mail);
        let fetched = if fetches { self.fetched(&page, *left) } else { BTreeMap::new() };
        let mail = &mut *self.mail;
        sanitise(&page, &mut |named| {
            let bytes = match named {
                Picture::Remote(url) => Cow::Borrowed(&fetched.get(url)?[..]),
                named => Cow::Owned(root.picture(named)?.bytes(mail, *left)),
            };
            *left = left.saturating_sub(bytes.len());
            if *left > 0 { picture(&bytes) } else { None }
        })
    }

    /// The HTML of a part, for the frame.
    pub fn frame(&mut self, folder: u32, uid: u32, path: &str, call: &Call) -> Reply {
        let Some(message) = self.found(folder, uid) else { return self.missing() };
        let root = Part::read(self.mail, &message);
        let Some(part) = root.find(path).filter(|part| part.kind == "text/html") else { return self.missing() };
        let fetches = call.query.get("pictures") == "1" && self.may_fetch(folder);
        let Safe { html, remote } = self.safe(&root, part, &mut { PICTURES_BYTES_MAX }, fetches);
        let mut page = sheet("und", self.words.read.frame);
        page.put("<main dir=\"auto\">");
        if remote > 0 {
            let note = if fetches { self.words.read.pictures_lost } else { self.words.read.pictures_left };
            put!(page, "<p class=\"note\" lang=\"", self.words.tag, "\" dir=\"", self.words.direction, "\">");
            put!(page, Text(&self.words.count(note, remote as usize)), "</p>");
        }
        put!(page, Markup(html), "</main></body></html>");
        Reply::frame(page)
    }

    /// An attachment.
    pub fn attachment(&mut self, folder: u32, uid: u32, path: &str) -> Reply {
        let Some(message) = self.found(folder, uid) else { return self.missing() };
        let root = Part::read(self.mail, &message);
        match root.find(path) {
            Some(part) => Reply::file(part.content(), &part.file_name()),
            None => self.missing(),
        }
    }

    /// A message as it stands.
    pub fn source(&mut self, folder: u32, uid: u32) -> Reply {
        match self.found(folder, uid) {
            Some(message) => Reply::source(Content::whole(&message)),
            None => self.missing(),
        }
    }

    fn people(&self, main: &mut Html, name: &'static str, list: &[Address]) {
        if list.is_empty() {
            return;
        }
        put!(main, "<dt>", name, "</dt><dd>");
        for (at, one) in list.iter().take(SHOWN_MAX).enumerate() {
            put!(main, if at > 0 { self.words.common.comma } else { "" }, "<bdi>");
            match one.name.is_empty() {
                true => put!(main, Text(&one.address)),
                false => put!(main, Text(&one.name), " <span class=\"soft\">&lt;", Text(&one.address), "&gt;</span>"),
            }
            main.put("</bdi>");
        }
        if list.len() > SHOWN_MAX {
            let others = list.len().saturating_sub(SHOWN_MAX);
            put!(main, " ", Text(&self.words.count(self.words.read.others, others)));
        }
        main.put("</dd>");
    }
}

/// The beginning of a page that a mail stands in.
fn sheet(tag: &'static str, title: &str) -> Html {
    let mut page = Html::default();
    put!(
        page,
        "<!DOCTYPE html><html lang=\"",
        tag,
        "\"><head><meta charset=\"utf-8\"><title>",
        Text(title),
        "</title><style>"
    );
    put!(
        page,
        "body{font:15px/1.5 system-ui,sans-serif;margin:12px;color:#1c2024;background:#fff;overflow-wrap:anywhere}"
    );
    put!(
        page,
        "img{max-width:100%;height:auto}.note{margin:0 0 12px;color:#5c6670}.text{white-space:pre-wrap}h1{font-size:20px}"
    );
    put!(
        page,
        ".head{display:grid;grid-template-columns:auto 1fr;gap:2px 12px}.head dd{margin:0}.mail{overflow:hidden}</style></head><body>"
    );
    page
}

/// A picture as a URL that holds it.
fn picture(bytes: &[u8]) -> Option<String> {
    let kind = picture_kind(bytes)?;
    Some(format!("data:{kind};base64,{}", text::base64::encode(bytes)))
}
