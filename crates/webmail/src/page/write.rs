//! A mail that is written: new, an answer, a forward, a draft; saved and sent.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::call::Call;
use crate::compose::{File, Letter, compose, compose_draft};
use crate::envelope::{Address, Envelope, shown};
use crate::fault::Fault;
use crate::html::{Html, Text, put};
use crate::language::fill;
use crate::mail::{Message, Origin, Purpose, Sending};
use crate::percent::decoded;
use crate::plain;
use crate::recipients::{RECIPIENTS_MAX, typed};
use crate::reply::Reply;
use crate::session::hex;
use crate::structure::{Header, Part};

use super::{Pages, Place, Told};

/// Bytes of all files of a mail.
const FILES_BYTES_MAX: usize = 25 << 20;

/// Bytes of a list of recipients in a draft.
const LIST_BYTES_MAX: usize = 20_000;

/// Fields of a draft that say which message it answers or forwards.
const ANSWERS: &str = "X-Sluice-Answers";
const FORWARDS: &str = "X-Sluice-Forwards";

/// Addresses that an answer to all goes to.
const ANSWERED_MAX: usize = 90;

/// The form, as it is shown.
#[derive(Debug, Default)]
struct Draft {
    letter: Letter,
    /// Random bytes of the form; none before it was shown.
    id: Option<[u8; 16]>,
    /// The draft that this is.
    draft: Option<Place>,
    /// The message that this answers.
    answers: Option<Place>,
    /// The message that this forwards.
    forwards: Option<Place>,
    /// Files of other messages that go with it.
    kept: Vec<Kept>,
}

/// A file of another message that goes with a mail.
#[derive(Debug)]
struct Kept {
    place: Place,
    /// The way to it in that message.
    path: String,
    name: String,
    bytes: u64,
}

impl Pages<'_> {
    /// The form for a mail.
    pub fn write(&mut self, call: &Call) -> Reply {
        let asked = ["draft", "reply", "all", "list", "forward"].into_iter().find(|name| call.query.has(name));
        let Some(asked) = asked else {
            let to = call.query.all("to").take(RECIPIENTS_MAX).collect::<Vec<_>>().join(", ");
            let to: String = to.chars().take(8_000).collect();
            let from = self.usual_address();
            let text = self.signed(&from, "");
            let letter = Letter { from, to, text, ..Letter::default() };
            return self.form_of(&Draft { letter, ..Draft::default() }, Told::Nothing);
        };
        let Some(place) = Place::parse(call.query.get(asked)) else { return self.missing() };
        let Some(message) = self.found(place.folder, place.uid) else { return self.missing() };
        let (part, envelope) = (Part::read(self.mail, &message), Envelope::parse(&message.row.envelope));
        let mut draft = match asked {
            "draft" => self.opened(place, &message, &part, &envelope),
            "forward" => self.forward(place, &message, &part, &envelope),
            asked => self.answer(place, &message, &part, &envelope, asked),
        };
        let own = self.mail.addresses();
        if !own.iter().any(|address| address.eq_ignore_ascii_case(&draft.letter.from)) {
            draft.letter.from = self.usual_address();
        }
        self.form_of(&draft, self.told(call))
    }

    fn usual_address(&self) -> String {
        self.mail.addresses().into_iter().next().unwrap_or_default()
    }

    /// A text below the signature of an address.
    fn signed(&mut self, from: &str, text: &str) -> String {
        match self.identity(from).signature.trim_end() {
            "" => format!("\n\n{text}"),
            signature => format!("\n\n-- \n{signature}\n\n{text}"),
        }
    }

    /// The text of a message as plain text.
    fn text_of(&mut self, part: &Part) -> String {
        let mut whole = String::new();
        // Messages within go with it as files.
        for text in part.shown().texts.into_iter().filter(|text| text.message.is_none()) {
            if !whole.is_empty() && !whole.ends_with('\n') {
                whole.push('\n');
            }
            match (text.plain, text.html) {
                (Some(plain), _) => whole.push_str(&plain.text(self.mail)),
                (None, Some(html)) => whole.push_str(&plain::of_html(&html.text(self.mail))),
                (None, None) => {}
            }
        }
        whole
    }

    fn opened(&mut self, place: Place, message: &Message, part: &Part, envelope: &Envelope) -> Draft {
        let header = Header::read(self.mail, message.number, &message.layout);
        let field = |name| header.get(name).map(|value| shown(&value)).unwrap_or_default();
        let noted = |name| Place::parse(&field(name)).filter(|place| self.folder(place.folder).is_some());
        let (answers, forwards) = (noted(ANSWERS), noted(FORWARDS));
        let list = |name, read: &[Address]| {
            let raw = header.get(name).unwrap_or_default();
            // Half an address is none in the envelope.
            let is_whole = raw == b"undisclosed-recipients:;" || typed(&String::from_utf8_lossy(&raw)).is_ok();
            if is_whole { joined(read) } else { mime::header_text(&raw, LIST_BYTES_MAX).into() }
        };
        let letter = Letter {
            from: envelope.from.first().map(|from| from.address.clone()).unwrap_or_default(),
            to: list("to", &envelope.to),
            cc: list("cc", &envelope.cc),
            bcc: list("bcc", &envelope.bcc),
            subject: envelope.subject.clone(),
            text: self.text_of(part),
            in_reply_to: field("in-reply-to"),
            references: field("references"),
            ..Letter::default()
        };
        Draft { letter, id: None, draft: Some(place), answers, forwards, kept: files(place, part) }
    }

    fn forward(&mut self, place: Place, message: &Message, part: &Part, envelope: &Envelope) -> Draft {
        let mut text = format!("---------- {} ----------\n", self.words.write.forwarded);
        let words = &self.words.common;
        for (name, value) in [
            (words.from, joined(&envelope.from)),
            (words.date, self.whole_date(envelope.sent(message))),
            (words.subject, envelope.subject.clone()),
            (words.to, joined(&envelope.to)),
        ] {
            text.push_str(&format!("{name}: {value}\n"));
        }
        text.push('\n');
        text.push_str(&self.text_of(part));
        let subject = prefixed("Fwd: ", &envelope.subject);
        let from = self.usual_address();
        let text = self.signed(&from, &text);
        let letter = Letter { from, subject, text, ..Letter::default() };
        Draft { letter, forwards: Some(place), kept: files(place, part), ..Draft::default() }
    }

    fn answer(&mut self, place: Place, message: &Message, part: &Part, envelope: &Envelope, asked: &str) -> Draft {
        let is_to_all = asked == "all";
        let header = Header::read(self.mail, message.number, &message.layout);
        let own = self.mail.addresses();
        let own_of = |one: &Address| {
            let plain = without_detail(&one.address);
            own.iter().find(|own| own.eq_ignore_ascii_case(&one.address) || own.eq_ignore_ascii_case(&plain))
        };
        let everybody = || envelope.to.iter().chain(&envelope.cc);
        let mut people = &envelope.reply_to;
        // An answer to a mail of one's own goes to those whom that went to.
        if people.iter().all(|one| own_of(one).is_some()) {
            people = &envelope.to;
        }
        let list: Vec<Address> = list_of(&header).filter(|_| asked == "list").into_iter().collect();
        if !list.is_empty() {
            people = &list;
        }
        let mut seen = BTreeSet::new();
        let mut is_new = |one: &&Address| seen.insert(one.address.to_lowercase());
        let to: Vec<Address> = people.iter().filter(&mut is_new).cloned().collect();
        let others = everybody().filter(|one| is_to_all && own_of(one).is_none()).filter(is_new);
        let cc: Vec<Address> = others.take(ANSWERED_MAX).cloned().collect();
        let quoted = plain::quoted(without_signature(&self.text_of(part)));
        let who = envelope.from.first().map(Address::written).unwrap_or_default();
        let head = fill(self.words.write.wrote, &[&self.whole_date(envelope.sent(message)), &who]);
        let text = format!("\n\n{head}\n{quoted}");
        let from = everybody().find_map(own_of).cloned().unwrap_or_else(|| self.usual_address());
        let signature = self.signed(&from, "");
        let letter = Letter {
            from,
            to: joined(&to),
            cc: joined(&cc),
            subject: prefixed("Re: ", &envelope.subject),
            text: format!("{text}{}", signature.trim_end()),
            in_reply_to: envelope.id.clone(),
            references: earlier(&header),
            ..Letter::default()
        };
        Draft { letter, answers: Some(place), ..Draft::default() }
    }

    fn form_of(&mut self, draft: &Draft, told: Told) -> Reply {
        let (letter, mut main) = (&draft.letter, Html::default());
        let (words, common) = (&self.words.write, &self.words.common);
        put!(main, "<h1>", common.write, "</h1>");
        self.form(&mut main, "action=\"/write\" enctype=\"multipart/form-data\" class=\"wide\"");
        let id = hex(&draft.id.unwrap_or_else(|| self.mail.random()));
        put!(main, "<input type=\"hidden\" name=\"id\" value=\"", Text(&id), "\">");
        for (name, place) in [("draft", draft.draft), ("answers", draft.answers), ("forwards", draft.forwards)] {
            if let Some(Place { folder, uid }) = place {
                put!(main, "<input type=\"hidden\" name=\"", name, "\" value=\"", folder, ".", uid, "\">");
            }
        }
        for (name, value) in [("in_reply_to", &letter.in_reply_to), ("references", &letter.references)] {
            put!(main, "<input type=\"hidden\" name=\"", name, "\" value=\"", Text(value), "\">");
        }
        put!(
            main,
            "<div class=\"field\"><label for=\"from\">",
            common.from,
            "</label><select id=\"from\" name=\"from\" dir=\"ltr\">"
        );
        for address in self.mail.addresses() {
            let selected = if address.eq_ignore_ascii_case(&letter.from) { "\" selected>" } else { "\">" };
            let shown = Address { name: self.identity(&address).name, address: address.clone() }.written();
            put!(main, "<option value=\"", Text(&address), selected, Text(&shown), "</option>");
        }
        put!(main, "</select></div>");
        let fields = [
            ("to", common.to, &letter.to),
            ("cc", common.cc, &letter.cc),
            ("bcc", common.bcc, &letter.bcc),
            ("subject", common.subject, &letter.subject),
        ];
        for (name, label, value) in fields {
            put!(
                main,
                "<div class=\"field\"><label for=\"",
                name,
                "\">",
                label,
                "</label><input id=\"",
                name,
                "\" name=\"",
                name
            );
            put!(main, if name == "subject" { "\"" } else { "\" list=\"people\"" });
            put!(main, " dir=\"auto\" value=\"", Text(value), "\"></div>");
        }
        self.offer(&mut main);
        put!(
            main,
            "<div class=\"field\"><label for=\"text\">",
            common.text,
            "</label><textarea id=\"text\" name=\"text\" "
        );
        put!(main, "rows=\"16\" dir=\"auto\">\n", Text(&letter.text), "</textarea></div>");
        self.files_of(&mut main, draft);
        put!(
            main,
            "<div class=\"field\"><label for=\"file\">",
            words.attach,
            "</label><input id=\"file\" type=\"file\" "
        );
        put!(
            main,
            "name=\"file\" multiple></div><div class=\"bar\"><button class=\"main-button\" name=\"do\" value=\"send\">"
        );
        put!(
            main,
            words.send,
            "</button><button name=\"do\" value=\"draft\">",
            words.save_draft,
            "</button></div></form>"
        );
        self.page(common.write, self.folder_for(Purpose::Drafts).filter(|_| draft.draft.is_some()), told, main)
    }

    fn files_of(&self, main: &mut Html, draft: &Draft) {
        if draft.kept.is_empty() {
            return;
        }
        put!(main, "<fieldset class=\"card\"><legend>", self.words.write.kept_files, "</legend><ul class=\"files\">");
        for Kept { place, path, name, bytes } in &draft.kept {
            put!(
                main,
                "<li><label class=\"button\"><input type=\"checkbox\" name=\"keep\" checked value=\"",
                place.folder,
                ".",
                place.uid,
                "."
            );
            put!(
                main,
                Text(path),
                "\"> <bdi>",
                Text(name),
                "</bdi> <span class=\"soft\">",
                Text(&self.words.size(*bytes)),
                "</span></label></li>"
            );
        }
        put!(main, "</ul></fieldset>");
    }

    /// Saves or sends what a form has.
    pub fn written(&mut self, call: &mut Call) -> Reply {
        let is_sent = call.form.get("do") == "send";
        let mut form = self.form_in(call);
        if call.form.is_cut {
            return self.form_of(&form, self.wrong(&Fault::Files));
        }
        let (mut files, are_there) = self.kept(call, &mut form);
        if !are_there {
            return self.form_of(&form, self.wrong(&Fault::FileGone));
        }
        files.append(&mut call.form.files);
        let bytes = files.iter().fold(0usize, |bytes, file| bytes.saturating_add(file.content.len()));
        if !self.mail.addresses().contains(&form.letter.from) {
            return self.form_of(&form, self.wrong(&Fault::Sender));
        }
        if bytes > FILES_BYTES_MAX {
            return self.form_of(&form, self.wrong(&Fault::Files));
        }
        let has_new = files.len() > form.kept.len();
        form.letter.files = files;
        let outcome = if is_sent { self.sent(&form) } else { self.saved(&form) };
        outcome.unwrap_or_else(|why| {
            let again = if has_new { self.words.faults.files_again } else { "" };
            form.letter.files.clear();
            self.form_of(&form, Told::Wrong(format!("{why} {again}")))
        })
    }

    /// Shows the form of an earlier session again: it is neither saved nor sent.
    pub fn unsent(&mut self, call: &Call) -> Reply {
        let mut form = self.form_in(call);
        self.kept(call, &mut form);
        let again = if call.form.files.is_empty() { "" } else { self.words.faults.files_again };
        let reply = self.form_of(&form, Told::Wrong(format!("{} {again}", self.words.faults.not_sent)));
        Reply { status: 403, ..reply }
    }

    /// What was typed.
    fn form_in(&mut self, call: &Call) -> Draft {
        let form = &call.form;
        let cut = |name: &str, most: usize| form.get(name).chars().take(most).collect::<String>();
        let letter = Letter {
            from: cut("from", 300),
            name: self.identity(&cut("from", 300)).name,
            to: cut("to", 20_000),
            cc: cut("cc", 20_000),
            bcc: cut("bcc", 20_000),
            subject: cut("subject", 1_000),
            text: cut("text", 2_000_000),
            in_reply_to: cut("in_reply_to", 300),
            references: cut("references", 8_000),
            files: Vec::new(),
        };
        let own = |place: &Place| self.folder(place.folder).is_some();
        let place = |name: &str| Place::parse(form.get(name)).filter(own);
        let (draft, answers, forwards) = (place("draft"), place("answers"), place("forwards"));
        let id = text::hex::decode(form.get("id").as_bytes()).and_then(|id| id.try_into().ok());
        Draft { letter, id, draft, answers, forwards, kept: Vec::new() }
    }

    /// Files of other messages that stay with a mail, and whether all of them are there.
    fn kept(&mut self, call: &Call, form: &mut Draft) -> (Vec<File>, bool) {
        let (mut all, mut left, mut are_there) = (Vec::new(), FILES_BYTES_MAX.saturating_add(1), true);
        for value in call.form.all("keep") {
            let Some((file, kept)) = self.kept_file(value, left) else {
                are_there = false;
                continue;
            };
            left = left.saturating_sub(file.content.len());
            all.push(file);
            form.kept.push(kept);
        }
        (all, are_there)
    }

    fn kept_file(&mut self, value: &str, bytes_max: usize) -> Option<(File, Kept)> {
        let mut words = value.splitn(3, '.');
        let (folder, uid, path) = (words.next()?, words.next()?, words.next()?);
        let place = Place::parse(&format!("{folder}.{uid}"))?;
        let message = self.found(place.folder, place.uid)?;
        let root = Part::read(self.mail, &message);
        let part = root.find(path)?;
        let content = part.bytes(self.mail, bytes_max);
        Some((File { name: part.file_name(), kind: part.kind.clone(), content }, Kept::new(place, part)))
    }

    fn sent(&mut self, form: &Draft) -> Result<Reply, String> {
        let (now, id) = (self.mail.now(), form.id.unwrap_or_else(|| self.mail.random()));
        let composed = compose(&form.letter, now, id, self.mail.hostname()).map_err(|fault| fault.text(self.words))?;
        if composed.recipients.is_empty() {
            return Err(Fault::NoRecipient.text(self.words));
        }
        let pair = |place: Place| (place.folder, place.uid);
        let drafts = self.folder_for(Purpose::Drafts);
        let origin = Origin {
            id,
            draft: form.draft.filter(|place| Some(place.folder) == drafts).map(pair),
            answers: form.answers.map(pair),
            forwards: form.forwards.map(pair),
        };
        let sending = Sending {
            origin,
            from: form.letter.from.clone(),
            to: composed.recipients,
            content: composed.content,
            private: composed.private,
        };
        self.mail.send(sending).map_err(|failure| failure.text(self.words))?;
        let lists = [&form.letter.to, &form.letter.cc, &form.letter.bcc];
        self.collect(lists.into_iter().flat_map(|list| typed(list).unwrap_or_default()).collect());
        Ok(Reply::see("/?told=sent"))
    }

    fn saved(&mut self, form: &Draft) -> Result<Reply, String> {
        let (now, random) = (self.mail.now(), self.mail.random());
        let mut content = String::new();
        for (name, place) in [(ANSWERS, form.answers), (FORWARDS, form.forwards)] {
            let field = place.map(|Place { folder, uid }| format!("{name}: {folder}.{uid}\r\n"));
            content.extend(field);
        }
        let mut content = content.into_bytes();
        content.extend(compose_draft(&form.letter, now, random, self.mail.hostname()));
        let folder = self.provided(Purpose::Drafts).map_err(|failure| failure.text(self.words))?;
        let replaces = form.draft.filter(|place| place.folder == folder).map(|place| place.uid);
        let id = form.id.unwrap_or(random);
        let uid = self.mail.save(folder, content, replaces, id).map_err(|failure| failure.text(self.words))?;
        Ok(Reply::see(&format!("/write?draft={folder}.{uid}&told=draft")))
    }
}

/// The identifiers of the mails before one that is answered (RFC 5322, section 3.6.4).
fn earlier(header: &Header) -> String {
    let field = |name| header.get(name).map(|value| shown(&value)).filter(|ids| !ids.is_empty());
    let answered = || field("in-reply-to").filter(|ids| ids.matches('<').count() == 1);
    field("references").or_else(answered).unwrap_or_default()
}

/// The address by which a mail of a list is answered there (RFC 2369, section 3.4).
pub(super) fn list_of(header: &Header) -> Option<Address> {
    let field = String::from_utf8(header.get("list-post")?).ok()?;
    let urls = field.split('<').skip(1).filter_map(|url| url.split('>').next());
    let address = urls.filter_map(|url| {
        let (scheme, rest) = url.trim().split_once(':')?;
        let address = decoded(rest.split('?').next()?.as_bytes(), false);
        scheme.eq_ignore_ascii_case("mailto").then_some(address)
    });
    let is_one = |address: &String| typed(address).is_ok_and(|all| matches!(&all[..], [(_, one)] if one == address));
    address.take(10).find(is_one).map(|address| Address { name: String::new(), address })
}

/// A text without the signature below it (RFC 3676, section 4.3), if it is more than that.
fn without_signature(text: &str) -> &str {
    let text = text.trim_end_matches('\n');
    let before = text.rfind("\n-- \n").and_then(|at| text.get(..at)).unwrap_or(text);
    if before.trim().is_empty() { text } else { before }
}

/// An address without the detail behind a `+` (RFC 5233).
fn without_detail(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((local, domain)) => format!("{}@{domain}", local.split('+').next().unwrap_or_default()),
        None => address.into(),
    }
}

fn joined(list: &[Address]) -> String {
    list.iter().map(Address::written).collect::<Vec<_>>().join(", ")
}

fn prefixed(prefix: &str, subject: &str) -> String {
    let head = subject.get(..prefix.len().saturating_sub(1)).unwrap_or_default();
    if head.eq_ignore_ascii_case(prefix.trim_end()) { subject.into() } else { format!("{prefix}{subject}") }
}

impl Kept {
    fn new(place: Place, part: &Part) -> Kept {
        Kept { place, path: part.path.clone(), name: part.file_name(), bytes: part.size() }
    }
}

/// The files of a message, with the pictures of its texts.
fn files(place: Place, part: &Part) -> Vec<Kept> {
    let shown = part.shown();
    shown.attachments.iter().chain(&shown.pictures).map(|part| Kept::new(place, part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_answered_at_its_address() {
        for (field, wanted) in [
            ("<mailto:list@x.example>", "list@x.example"),
            ("<https://x.example/post>, <MAILTO:a%2Bb@x.example?subject=x> (comment)", "a+b@x.example"),
            ("NO", ""),
            ("<mailto:a@x.example,b@x.example>", ""),
            ("<mailto:a%0D%0ABcc:b@x.example>", ""),
            ("mailto:a@x.example", ""),
        ] {
            let header = Header::of(format!("List-Post: {field}\n").as_bytes());
            assert_eq!(list_of(&header).map(|one| one.address).unwrap_or_default(), wanted, "{field}");
        }
    }

    #[test]
    fn an_answer_quotes_no_signature() {
        for (text, wanted) in [
            ("a\n\n-- \nBob\nOffice\n", "a\n"),
            ("a\n--\nb", "a\n--\nb"),
            ("a\n-- \nb\n-- \nc", "a\n-- \nb"),
            ("> a\n> -- \n> b", "> a\n> -- \n> b"),
            ("\n-- \nBob", "\n-- \nBob"),
            ("", ""),
        ] {
            assert_eq!(without_signature(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn an_answer_has_the_identifiers_of_what_was_before() {
        for (fields, wanted) in [
            ("References: <1@x> <2@x>\nIn-Reply-To: <3@x>\n", "<1@x> <2@x>"),
            ("In-Reply-To: <3@x>\n", "<3@x>"),
            ("In-Reply-To: <3@x> <4@x>\n", ""),
            ("Subject: x\n", ""),
        ] {
            assert_eq!(earlier(&Header::of(fields.as_bytes())), wanted, "{fields}");
        }
    }
}
