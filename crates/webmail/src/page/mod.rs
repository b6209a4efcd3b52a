//! The pages, and what all of them have: head, search, folders, a line that tells the outcome of the last form.

pub(crate) mod app_passwords;
pub(crate) mod contacts;
pub(crate) mod filters;
pub(crate) mod folders;
pub(crate) mod identities;
pub(crate) mod list;
mod listing;
pub(crate) mod login;
pub(crate) mod order;
pub(crate) mod passkeys;
pub(crate) mod pictures;
pub(crate) mod read;
pub(crate) mod second;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod unsubscribe;
pub(crate) mod vacation;
pub(crate) mod write;

use alloc::string::String;
use alloc::vec::Vec;

use crate::call::Call;
use crate::fault::Fault;
use crate::html::{Html, Text, put};
use crate::language::{Language, Plural, Words};
use crate::mail::{Failure, Folder, Mail, Purpose};
use crate::reply::Reply;
use crate::session::Session;
use settings::Settings;

/// The style sheet of all pages.
pub const STYLE: &str = include_str!("style.css");

/// Bytes of an ordinary page, for which there is room from the beginning.
const PAGE_BYTES: usize = 32 << 10;

/// A page for a user.
pub(crate) struct Pages<'m> {
    pub mail: &'m mut dyn Mail,
    pub session: &'m Session,
    pub folders: Vec<Folder>,
    pub settings: Settings,
    /// The language of the user.
    pub words: &'static Words,
}

/// A message by its folder and its UID: `7.12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub folder: u32,
    pub uid: u32,
}

impl Place {
    pub fn parse(text: &str) -> Option<Place> {
        let (folder, uid) = text.split_once('.')?;
        Some(Place { folder: folder.parse().ok()?, uid: uid.parse().ok()? })
    }
}

impl<'m> Pages<'m> {
    pub fn new(mail: &'m mut dyn Mail, session: &'m Session, asked: Language) -> Pages<'m> {
        let (folders, settings) = (mail.folders(), Settings::decode(&mail.settings()));
        let words = settings.language.unwrap_or(asked).words();
        Pages { mail, session, folders, settings, words }
    }

    /// The folder with this number, if it is the user's.
    pub fn folder(&self, number: u32) -> Option<&Folder> {
        self.folders.iter().find(|folder| folder.number == number)
    }

    /// The number of the folder for a purpose.
    pub fn folder_for(&self, purpose: Purpose) -> Option<u32> {
        self.folders.iter().find(|folder| folder.purpose == purpose).map(|folder| folder.number)
    }

    /// The number of the folder for a purpose, which is made if there is none.
    pub fn provided(&mut self, purpose: Purpose) -> Result<u32, Failure> {
        self.folder_for(purpose).map_or_else(|| self.mail.provide(purpose), Ok)
    }

    /// The beginning of a form that changes something.
    pub fn form(&self, page: &mut Html, attributes: &'static str) {
        put!(
            page,
            "<form method=\"post\" ",
            attributes,
            "><input type=\"hidden\" name=\"token\" value=\"",
            Text(&self.session.token),
            "\">"
        );
    }

    /// A page around its content. `here` is the folder that is open.
    pub fn page(&self, title: &str, here: Option<u32>, told: Told, main: Html) -> Reply {
        let words = &self.words.common;
        let mut page = head(self.words, title);
        put!(page, "<body><a class=\"skip\" href=\"#main\">", words.skip, "</a><header class=\"top\">");
        put!(
            page,
            "<a class=\"brand\" href=\"/\">Sluice Mail</a><form class=\"search\" role=\"search\" action=\"/search\">"
        );
        put!(page, "<input type=\"search\" name=\"q\" aria-label=\"", words.search_mail);
        put!(page, "\" placeholder=\"", words.search_mail, "\"> <button>", words.search, "</button></form>");
        put!(page, "<bdi class=\"who\">", Text(self.mail.user()), "</bdi> ");
        self.form(&mut page, "action=\"/logout\" class=\"inline\"");
        put!(page, "<button>", words.log_out, "</button></form></header>");
        self.navigation(&mut page, here);
        put!(page, "<main id=\"main\">");
        told.write(&mut page);
        put!(page, main, "</main></body></html>");
        Reply::page(told.status(), page)
    }

    fn navigation(&self, page: &mut Html, here: Option<u32>) {
        let words = &self.words.common;
        put!(page, "<nav class=\"folders\" aria-label=\"", words.folders);
        put!(page, "\"><a class=\"button main-button write\" href=\"/write\">", words.write, "</a><ul>");
        for folder in &self.folders {
            put!(page, "<li><a href=\"/m/", folder.number, "\"");
            if here == Some(folder.number) {
                page.put(" aria-current=\"page\"");
            }
            put!(page, "><bdi>", Text(folder.label(self.words)), "</bdi>");
            if folder.unseen > 0 {
                let unseen = folder.unseen as usize;
                put!(page, " <span class=\"n\">");
                self.numeral(page, words.unread_messages, unseen);
                page.put("</span>");
            }
            page.put("</a></li>");
        }
        put!(
            page,
            "</ul><ul class=\"more\"><li><a href=\"/contacts\">",
            words.contacts,
            "</a></li><li><a href=\"/folders\">"
        );
        put!(page, words.folders, "</a></li><li><a href=\"/settings\">", words.settings, "</a></li></ul></nav>");
    }

    /// A number, which is read aloud with its text.
    pub fn numeral(&self, page: &mut Html, text: Plural, number: usize) {
        put!(page, "<span aria-hidden=\"true\">", Text(&self.words.number(number)), "</span><span class=\"skip\">");
        put!(page, Text(&self.words.count(text, number)), "</span>");
    }

    /// A page for something that could not be done.
    pub fn failed(&self, failure: Failure) -> Reply {
        let (words, mut main) = (&self.words.common, Html::default());
        put!(main, "<h1>", words.not_done, "</h1><p><a href=\"/\">", words.back, "</a></p>");
        self.page(words.not_done, None, Told::Wrong(failure.text(self.words).into()), main)
    }

    /// A page for something that is not there, whoever's it is.
    pub fn missing(&self) -> Reply {
        let (words, mut main) = (&self.words.common, Html::default());
        put!(main, "<h1>", words.not_found, "</h1><p>", words.no_such_page, " <a href=\"/\">", words.back, "</a></p>");
        let mut reply = self.page(words.not_found, None, Told::Nothing, main);
        reply.status = 404;
        reply
    }

    /// A day, or the time of one that is today, where the user is.
    pub fn date(&self, seconds: i64) -> String {
        let zone = i64::from(self.settings.zone_minutes).saturating_mul(60);
        let (then, now) = (seconds.saturating_add(zone), self.mail.now().saturating_add(zone));
        let (dates, numbers) = (&self.words.dates, &self.words.numbers);
        match now.saturating_sub(then) {
            0..86_400 if now.div_euclid(86_400) == then.div_euclid(86_400) => dates.clock(numbers, then),
            0..15_552_000 => dates.day(numbers, then, false),
            _ => dates.day(numbers, then, true),
        }
    }

    /// A date as a whole.
    pub fn whole_date(&self, seconds: i64) -> String {
        let minutes = self.settings.zone_minutes;
        let then = seconds.saturating_add(i64::from(minutes).saturating_mul(60));
        self.words.dates.whole(&self.words.numbers, then, minutes)
    }

    /// The outcome that a redirection names.
    pub fn told(&self, call: &Call) -> Told {
        let told = &self.words.told;
        match call.query.get("told") {
            "sent" => Told::Done(told.sent),
            "draft" => Told::Done(told.draft),
            "moved" => Told::Done(told.moved),
            "deleted" => Told::Done(told.deleted),
            "marked" => Told::Done(told.marked),
            "junk" => Told::Done(told.junk),
            "ended" => Told::Done(told.ended),
            "left" => Told::Done(told.left),
            "kept" => Told::Done(told.kept),
            _ => Told::Nothing,
        }
    }

    /// A fault in a form.
    pub fn wrong(&self, fault: &Fault) -> Told {
        Told::Wrong(fault.text(self.words))
    }
}

impl Folder {
    /// Its name as it is shown: in the user's language where it is the one that every mailbox begins with.
    pub(crate) fn label(&self, words: &Words) -> &str {
        match (self.purpose, self.name.as_str()) {
            (Purpose::Inbox, _) => words.folders.inbox,
            (Purpose::Drafts, "Drafts") => words.folders.drafts,
            (Purpose::Sent, "Sent") => words.folders.sent,
            (Purpose::Archive, "Archive") => words.folders.archive,
            (Purpose::Junk, "Junk") => words.folders.junk,
            (Purpose::Trash, "Trash") => words.folders.trash,
            (_, name) => name,
        }
    }
}

/// The outcome of the last form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    Nothing,
    Done(&'static str),
    Wrong(String),
}

impl Told {
    fn write(&self, page: &mut Html) {
        match self {
            Told::Nothing => {}
            Told::Done(text) => put!(page, "<p class=\"told\" role=\"status\">", *text, "</p>"),
            Told::Wrong(text) => put!(page, "<p class=\"told wrong\" role=\"alert\">", Text(text), "</p>"),
        }
    }

    fn status(&self) -> u16 {
        if matches!(self, Told::Wrong(_)) { 400 } else { 200 }
    }
}

/// The head of a page.
pub(crate) fn head(words: &'static Words, title: &str) -> Html {
    let mut page = Html::with_capacity(PAGE_BYTES);
    put!(
        page,
        "<!DOCTYPE html><html lang=\"",
        words.tag,
        "\" dir=\"",
        words.direction,
        "\"><head><meta charset=\"utf-8\">"
    );
    put!(page, "<title>", Text(title), " \u{b7} Sluice Mail</title>");
    put!(
        page,
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">"
    );
    put!(
        page,
        "<meta name=\"robots\" content=\"noindex\"><link rel=\"stylesheet\" href=\"/style.css\"><link rel=\"icon\" href=\"data:,\"></head>"
    );
    page
}
