//! Contacts: a list with a search, a form for one, import and export as vCards.

use alloc::string::String;
use alloc::vec::Vec;

use crate::call::Call;
use crate::contacts::{Book, Contact, LINE_MAX, NOTE_MAX, Version};
use crate::html::{Html, Text, put};
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
        self.contacts_told(call, Told::of(call))
    }

    fn contacts_told(&mut self, call: &Call, told: Told) -> Reply {
        let (book, words) = (self.book(), call.query.get("q").chars().take(200).collect::<String>());
        let found = book.found(&words);
        let mut main = Html::with_capacity(PAGE_BYTES);
        put!(main, "<h1>Contacts</h1><form action=\"/contacts\" class=\"bar\">");
        put!(main, "<input type=\"search\" name=\"q\" aria-label=\"Search contacts\" value=\"", Text(&words), "\"> ");
        put!(
            main,
            "<button>Search contacts</button><a class=\"button\" href=\"/contacts/edit\">New contact</a></form>"
        );
        match found.is_empty() {
            true => main.put("<p class=\"soft\">No contacts here.</p>"),
            false => table(&mut main, &found),
        }
        put!(main, "<h2>Import and export</h2>");
        self.form(&mut main, "action=\"/contacts\" enctype=\"multipart/form-data\" class=\"bar\"");
        put!(
            main,
            "<input type=\"file\" name=\"file\" accept=\".vcf,text/vcard\" aria-label=\"File of vCards\" required> "
        );
        put!(main, "<button name=\"do\" value=\"import\">Import vCards</button></form><p>Export as vCards: ");
        put!(main, "<a href=\"/contacts/export?version=4\">version 4</a>, ");
        put!(main, "<a href=\"/contacts/export?version=3\">version 3</a></p>");
        self.page("Contacts", None, told, main)
    }

    /// The form for a contact: a new one, or the one that is asked for.
    pub fn contact(&mut self, call: &Call) -> Reply {
        let book = self.book();
        let asked = call.query.get("id").parse().ok().map(|id: u32| book.get(id).cloned());
        let Some(contact) = asked.unwrap_or_else(|| Some(Contact::default())) else { return self.missing() };
        let addresses = contact.addresses.join(", ");
        self.contact_form(contact.id, [&contact.name, &addresses, &contact.phone, &contact.note], Told::Nothing)
    }

    fn contact_form(&self, id: u32, [name, addresses, phone, note]: [&str; 4], told: Told) -> Reply {
        let title = if id == 0 { "New contact" } else { "Contact" };
        let mut main = Html::default();
        put!(main, "<h1>", title, "</h1>");
        self.form(&mut main, "action=\"/contacts\" class=\"wide\"");
        put!(main, "<input type=\"hidden\" name=\"id\" value=\"", id, "\">");
        for (field, label, value) in [
            ("name", "Name", name),
            ("addresses", "Addresses, with commas between", addresses),
            ("phone", "Phone", phone),
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
            "<div class=\"field short\"><label for=\"note\">Note</label><textarea id=\"note\" name=\"note\" rows=\"3\" "
        );
        put!(main, "maxlength=\"", NOTE_MAX, "\" dir=\"auto\">\n", Text(note), "</textarea></div><div class=\"bar\">");
        put!(main, "<button class=\"main-button\" name=\"do\" value=\"save\">Save</button>");
        if id > 0 {
            put!(main, "<button name=\"do\" value=\"delete\">Delete</button>");
        }
        put!(main, "</div></form>");
        self.page(title, None, told, main)
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
        let done = match what {
            "save" => Contact::of(id, typed).and_then(|contact| book.put(contact)),
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
            Err(why) if what == "save" => self.contact_form(id, typed, Told::Wrong(why)),
            Err(why) => self.contacts_told(&Call::default(), Told::Wrong(why)),
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
}

/// A table of contacts, in a form by which a mail is written to some of them.
fn table(main: &mut Html, found: &[&Contact]) {
    put!(main, "<form action=\"/write\"><table class=\"list\"><thead><tr><th class=\"check\" scope=\"col\">");
    put!(main, "<span class=\"skip\">Mark</span></th><th class=\"from\" scope=\"col\">Name</th>");
    put!(main, "<th scope=\"col\">Addresses</th><th class=\"date\" scope=\"col\">Phone</th></tr></thead><tbody>");
    for contact in found.iter().take(SHOWN_MAX) {
        put!(main, "<tr><td class=\"check\">");
        if let Some(recipient) = contact.recipients().next() {
            put!(main, "<input type=\"checkbox\" name=\"to\" value=\"", Text(&recipient), "\" aria-label=\"Mark: ");
            put!(main, Text(contact.label()), "\">");
        }
        put!(main, "</td><td class=\"from\"><a href=\"/contacts/edit?id=", contact.id, "\"><bdi>");
        put!(main, Text(contact.label()), "</bdi></a>");
        if contact.is_collected {
            put!(main, " <span class=\"tag\">written to</span>");
        }
        put!(main, "</td><td class=\"subject\"><bdi>", Text(&contact.addresses.join(", ")), "</bdi></td>");
        put!(main, "<td class=\"date\"><bdi dir=\"ltr\">", Text(&contact.phone), "</bdi></td></tr>");
    }
    put!(main, "</tbody></table><div class=\"bar\"><button>Write to the marked</button><span class=\"end\">");
    put!(main, found.len(), if found.len() == 1 { " contact" } else { " contacts" });
    if found.len() > SHOWN_MAX {
        put!(main, ", of which the first ", SHOWN_MAX, " are shown");
    }
    put!(main, "</span></div></form>");
}
