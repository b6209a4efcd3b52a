//! The pages, and what all of them have: head, search, folders, a line that tells the outcome of the last form.

pub(crate) mod app_passwords;
pub(crate) mod contacts;
pub(crate) mod filters;
pub(crate) mod folders;
pub(crate) mod identities;
pub(crate) mod list;
pub(crate) mod login;
pub(crate) mod pictures;
pub(crate) mod read;
pub(crate) mod second;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod unsubscribe;
pub(crate) mod vacation;
pub(crate) mod write;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::call::Call;
use crate::html::{Html, Text, put};
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
    pub fn new(mail: &'m mut dyn Mail, session: &'m Session) -> Pages<'m> {
        let (folders, settings) = (mail.folders(), Settings::decode(&mail.settings()));
        Pages { mail, session, folders, settings }
    }

    /// The folder with this number, if it is the user's.
    pub fn folder(&self, number: u32) -> Option<&Folder> {
        self.folders.iter().find(|folder| folder.number == number)
    }

    /// The number of the folder for a purpose.
    pub fn folder_for(&self, purpose: Purpose) -> Option<u32> {
        self.folders.iter().find(|folder| folder.purpose == purpose).map(|folder| folder.number)
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
        let mut page = head(title);
        put!(page, "<body><a class=\"skip\" href=\"#main\">Skip to content</a><header class=\"top\">");
        put!(page, "<a class=\"brand\" href=\"/\">Sluice Mail</a>");
        put!(
            page,
            "<form class=\"search\" role=\"search\" action=\"/search\"><input type=\"search\" name=\"q\" aria-label=\"Search mail\" "
        );
        put!(
            page,
            "placeholder=\"Search mail\"> <button>Search</button></form><span class=\"who\">",
            Text(self.mail.user()),
            "</span> "
        );
        self.form(&mut page, "action=\"/logout\" class=\"inline\"");
        put!(page, "<button>Log out</button></form></header>");
        self.navigation(&mut page, here);
        put!(page, "<main id=\"main\">");
        told.write(&mut page);
        put!(page, main, "</main></body></html>");
        Reply::page(told.status(), page)
    }

    fn navigation(&self, page: &mut Html, here: Option<u32>) {
        put!(
            page,
            "<nav class=\"folders\" aria-label=\"Folders\"><a class=\"button main-button write\" href=\"/write\">Write</a><ul>"
        );
        for folder in &self.folders {
            put!(page, "<li><a href=\"/m/", folder.number, "\"");
            if here == Some(folder.number) {
                page.put(" aria-current=\"page\"");
            }
            put!(page, "><bdi>", Text(folder.label()), "</bdi>");
            if folder.unseen > 0 {
                put!(page, " <span class=\"n\">", folder.unseen, "<span class=\"skip\"> unread</span></span>");
            }
            page.put("</a></li>");
        }
        put!(
            page,
            "</ul><ul class=\"more\"><li><a href=\"/contacts\">Contacts</a></li><li><a href=\"/folders\">Folders</a></li><li><a href=\"/settings\">Settings</a></li></ul></nav>"
        );
    }

    /// A page for something that could not be done.
    pub fn failed(&self, failure: Failure) -> Reply {
        let mut main = Html::default();
        put!(main, "<h1>Not done</h1><p><a href=\"/\">Back to your mail</a></p>");
        self.page("Not done", None, Told::Wrong(failure.text().into()), main)
    }

    /// A page for something that is not there, whoever's it is.
    pub fn missing(&self) -> Reply {
        let mut main = Html::default();
        put!(
            main,
            "<h1>Not found</h1><p>There is no such page, folder or message. <a href=\"/\">Back to your mail</a></p>"
        );
        let mut reply = self.page("Not found", None, Told::Nothing, main);
        reply.status = 404;
        reply
    }

    /// A day, or the time of one that is today, where the user is.
    pub fn date(&self, seconds: i64) -> String {
        let zone = i64::from(self.settings.zone_minutes).saturating_mul(60);
        let (then, now) = (seconds.saturating_add(zone), self.mail.now().saturating_add(zone));
        let written = proto::imap::date::message(then);
        let words: Vec<&str> = written.split(' ').collect();
        let [_, day, month, year, clock, _] = words[..] else { return String::new() };
        match now.saturating_sub(then) {
            0..86_400 if now.div_euclid(86_400) == then.div_euclid(86_400) => clock.get(..5).unwrap_or_default().into(),
            0..15_552_000 => format!("{day} {month}"),
            _ => format!("{day} {month} {year}"),
        }
    }

    /// A date as a whole.
    pub fn whole_date(&self, seconds: i64) -> String {
        let minutes = self.settings.zone_minutes;
        let written = proto::imap::date::message(seconds.saturating_add(i64::from(minutes).saturating_mul(60)));
        let sign = if minutes < 0 { '-' } else { '+' };
        let minutes = minutes.unsigned_abs();
        format!("{}{sign}{:02}{:02}", written.trim_end_matches("+0000"), minutes / 60, minutes % 60)
    }
}

impl Folder {
    /// Its name as it is shown.
    pub fn label(&self) -> &str {
        if self.purpose == Purpose::Inbox { "Inbox" } else { &self.name }
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
    /// The outcome that a redirection names.
    pub fn of(call: &Call) -> Told {
        let all = [
            ("sent", "Your mail is on its way."),
            ("draft", "The draft is saved."),
            ("moved", "Moved."),
            ("deleted", "Deleted."),
            ("marked", "Marked."),
            ("junk", "Moved to Junk."),
            ("ended", "Ended."),
            ("left", "The list has been asked to take you off."),
            ("kept", "Saved."),
        ];
        let asked = call.query.get("told");
        all.iter().find(|(name, _)| *name == asked).map_or(Told::Nothing, |(_, text)| Told::Done(text))
    }

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
pub(crate) fn head(title: &str) -> Html {
    let mut page = Html::with_capacity(PAGE_BYTES);
    put!(
        page,
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>",
        Text(title),
        " \u{b7} Sluice Mail</title>"
    );
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

/// A size for people.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        1_000_000..1_000_000_000 => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
        _ => format!("{}.{} GB", bytes / 1_000_000_000, bytes / 100_000_000 % 10),
    }
}
