//! Contacts: a list with a search, a form for one, import and export as vCards.

use alloc::string::String;
use alloc::vec::Vec;

use crate::call::Call;
use crate::contacts::{Book, Contact, Detail, LINE_MAX, NOTE_MAX, Version};
use crate::html::{Html, Text, put};
use crate::language::fill;
use crate::reply::Reply;

use super::{PAGE_BYTES, Pages, Told};

/// Contacts of one page.
const SHOWN_MAX: usize = 500;

/// Characters of a field that are taken: more than it may have, so that a user sees again what is wrong with it.
const TYPED_MAX: usize = 2_000;

/// Recipients that a field offers.
const OFFERED_MAX: usize = 300;

impl Pages<'_> {
    /// The page of contacts.
    pub fn contacts(&mut self, call: &Call) -> Reply {
        self.contacts_told(call, self.told(call))
    }

    fn contacts_told(&mut self, call: &Call, told: Told) -> Reply {
        let (book, asked) = (self.book(), call.query.get("q").chars().take(200).collect::<String>());
        let found = book.found(&asked);
        let (words, mut main) = (&self.words.contacts, Html::with_capacity(PAGE_BYTES));
        put!(
            main,
            "<h1>",
            self.words.common.contacts,
            "</h1><form action=\"/contacts\" class=\"bar\"><input type=\"search\" "
        );
        put!(main, "name=\"q\" aria-label=\"", words.search, "\" value=\"", Text(&asked), "\"> <button>", words.search);
        put!(main, "</button><a class=\"button\" href=\"/contacts/edit\">", words.new, "</a></form>");
        match found.is_empty() {
            true => put!(main, "<p class=\"soft\">", words.empty, "</p>"),
            false => self.table(&mut main, &found),
        }
        put!(main, "<h2>", words.exchange, "</h2>");
        self.form(&mut main, "action=\"/contacts\" enctype=\"multipart/form-data\" class=\"bar\"");
        put!(
            main,
            "<input type=\"file\" name=\"file\" accept=\".vcf,.csv,text/vcard,text/csv\" aria-label=\"",
            words.file,
            "\" required> "
        );
        put!(main, "<button name=\"do\" value=\"import\">", words.import, "</button></form><p>", words.export);
        for (version, number) in [("4", 4), ("3", 3)] {
            put!(main, " <a class=\"button\" href=\"/contacts/export?version=", version, "\">");
            put!(main, Text(&fill(words.version, &[&self.words.number(number)])), "</a>");
        }
        main.put("</p>");
        self.page(self.words.common.contacts, None, told, main)
    }

    /// The form for a contact: a new one, or the one that is asked for.
    pub fn contact(&mut self, call: &Call) -> Reply {
        let book = self.book();
        let asked = call.query.get("id").parse().ok().map(|id: u32| book.get(id).cloned());
        let Some(contact) = asked.unwrap_or_else(|| Some(Contact::default())) else { return self.missing() };
        let addresses = contact.addresses.join(", ");
        self.contact_form(&contact, [&contact.name, &addresses, &contact.phone, &contact.note], Told::Nothing)
    }

    fn contact_form(&self, contact: &Contact, [name, addresses, phone, note]: [&str; 4], told: Told) -> Reply {
        let (words, common) = (&self.words.contacts, &self.words.common);
        let id = contact.id;
        let title = if id == 0 { words.new } else { words.one };
        let mut main = Html::default();
        put!(main, "<h1>", title, "</h1>");
        self.form(&mut main, "action=\"/contacts\" class=\"wide\"");
        put!(main, "<input type=\"hidden\" name=\"id\" value=\"", id, "\">");
        for (field, label, value) in [
            ("name", common.name, name),
            ("addresses", words.addresses_typed, addresses),
            ("phone", words.phone, phone),
        ] {
            put!(main, "<div class=\"field\"><label for=\"", field, "\">", label, "</label><input id=\"", field);
            put!(main, "\" name=\"", field, "\" dir=\"auto\" value=\"", Text(value), "\"");
            if field != "addresses" {
                put!(main, " maxlength=\"", LINE_MAX, "\"");
            }
            main.put("></div>");
        }
        put!(
            main,
            "<div class=\"field short\"><label for=\"note\">",
            words.note,
            "</label><textarea id=\"note\" name=\"note\" rows=\"3\" "
        );
        put!(main, "maxlength=\"", NOTE_MAX, "\" dir=\"auto\">\n", Text(note), "</textarea></div><div class=\"bar\">");
        put!(main, "<button class=\"main-button\" name=\"do\" value=\"save\">", common.save, "</button>");
        if id > 0 {
            put!(main, "<button name=\"do\" value=\"delete\">", common.delete, "</button>");
        }
        put!(main, "</div></form>");
        self.details(&mut main, &contact.details);
        self.page(title, None, told, main)
    }

    /// What else a vCard has said of a contact.
    fn details(&self, main: &mut Html, all: &[Detail]) {
        let mut shown = all.iter().filter(|one| !matches!(one.name(), "N" | "EMAIL")).peekable();
        if shown.peek().is_none() {
            return;
        }
        put!(main, "<h2>", self.words.contacts.details, "</h2><dl class=\"head\">");
        for one in shown {
            put!(main, "<dt>", Text(one.name()));
            one.types().for_each(|kind| put!(main, " ", Text(kind)));
            put!(main, "</dt><dd><bdi>", Text(&one.line()), "</bdi></dd>");
        }
        main.put("</dl>");
    }

    /// The book as a file.
    pub fn export_contacts(&mut self, call: &Call) -> Reply {
        let version = if call.query.get("version") == "3" { Version::Three } else { Version::Four };
        Reply::saved(self.book().exported(version), "contacts.vcf")
    }

    /// Keeps, deletes or imports contacts.
    pub fn change_contacts(&mut self, call: &Call) -> Reply {
        let (form, mut book) = (&call.form, self.book());
        let id = form.get("id").parse().unwrap_or(0);
        let typed = ["name", "addresses", "phone", "note"]
            .map(|name| form.get(name).chars().take(TYPED_MAX).collect::<String>());
        let [name, addresses, phone, note] = &typed;
        let typed: [&str; 4] = [name, addresses, phone, note];
        let what = form.get("do");
        let before = book.get(id).cloned().unwrap_or_else(|| Contact { id, ..Contact::default() });
        let done = match what {
            "save" => Contact::of(id, typed).and_then(|contact| book.put(contact.revising(&before))),
            "import" => book.import(form.files.first().map(|file| file.content.as_slice()).unwrap_or_default()),
            "delete" => {
                book.remove(id);
                Ok(())
            }
            _ => return self.missing(),
        };
        match done.and_then(|()| book.kept()) {
            Ok(kept) => match self.mail.set_contacts(&kept) {
                Ok(()) => Reply::see("/contacts?told=kept"),
                Err(failure) => self.failed(failure),
            },
            Err(why) if what == "save" => self.contact_form(&before, typed, self.wrong(&why)),
            Err(why) => self.contacts_told(&Call::default(), self.wrong(&why)),
        }
    }

    /// Notes the recipients of a mail that was sent. The mail is on its way: if they cannot be noted, nobody has to know.
    pub fn collect(&mut self, recipients: Vec<(String, String)>) {
        let mut book = self.book();
        if book.collect(recipients)
            && let Ok(kept) = book.kept()
        {
            let _ = self.mail.set_contacts(&kept);
        }
    }

    /// The list that fields for recipients offer.
    pub fn offer(&mut self, main: &mut Html) {
        let book = self.book();
        put!(main, "<datalist id=\"people\">");
        for recipient in book.found("").into_iter().flat_map(Contact::recipients).take(OFFERED_MAX) {
            put!(main, "<option value=\"", Text(&recipient), "\">");
        }
        put!(main, "</datalist>");
    }

    fn book(&mut self) -> Book {
        Book::read(&self.mail.contacts())
    }

    /// A table of contacts, in a form by which a mail is written to some of them.
    fn table(&self, main: &mut Html, found: &[&Contact]) {
        let (words, common) = (&self.words.contacts, &self.words.common);
        put!(main, "<form action=\"/write\"><table class=\"list\"><thead><tr><th class=\"check\" scope=\"col\">");
        put!(main, "<span class=\"skip\">", common.mark, "</span></th><th class=\"from\" scope=\"col\">", common.name);
        put!(main, "</th><th scope=\"col\">", words.addresses, "</th><th class=\"date\" scope=\"col\">", words.phone);
        main.put("</th></tr></thead><tbody>");
        for contact in found.iter().take(SHOWN_MAX) {
            put!(main, "<tr><td class=\"check\">");
            if let Some(recipient) = contact.recipients().next() {
                put!(main, "<input type=\"checkbox\" name=\"to\" value=\"", Text(&recipient), "\" aria-label=\"");
                put!(main, Text(&fill(common.mark_one, &[contact.label()])), "\">");
            }
            put!(main, "</td><td class=\"from\"><a href=\"/contacts/edit?id=", contact.id, "\"><bdi>");
            put!(main, Text(contact.label()), "</bdi></a>");
            if contact.is_collected {
                put!(main, " <span class=\"tag\">", words.collected, "</span>");
            }
            put!(main, "</td><td class=\"subject\"><bdi>", Text(&contact.addresses.join(", ")), "</bdi></td>");
            put!(main, "<td class=\"date\"><bdi dir=\"ltr\">", Text(&contact.phone), "</bdi></td></tr>");
        }
        put!(main, "</tbody></table><div class=\"bar\"><button>", words.write, "</button><span class=\"end\">");
        let count = self.words.count(words.count, found.len());
        let note = match found.len() > SHOWN_MAX {
            true => fill(words.cut, &[&count, &self.words.number(SHOWN_MAX)]),
            false => count,
        };
        put!(main, Text(&note), "</span></div></form>");
    }
}
