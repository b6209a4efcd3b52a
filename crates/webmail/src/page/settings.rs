//! Settings of a user: name, signature, rows of a page, time zone, senders whose pictures are shown.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::call::Call;
use crate::html::{Html, Text, put};
use crate::language::Language;
use crate::reply::Reply;

use super::Pages;
use super::pictures::{SENDERS_MAX, is_sender};

/// Rows of a page, as can be chosen.
const ROWS: [usize; 4] = [25, 50, 100, 200];

/// The word for lists of conversations.
const THREADED: &str = "threaded";

/// The beginning of the word for senders whose pictures are shown.
const PICTURES: &str = "pictures=";

/// The beginning of the word for a language.
const LANGUAGE: &str = "language=";

/// Settings of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The name that mails are from.
    pub name: String,
    pub signature: String,
    pub rows: usize,
    /// Whether a list has a row for each conversation.
    pub is_threaded: bool,
    /// Minutes east of Greenwich.
    pub zone_minutes: i32,
    /// Senders whose pictures of other servers are shown at once.
    pub pictures: Vec<String>,
    /// The language of the pages, if it is not the one that the browser asks for.
    pub language: Option<Language>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::decode(b"")
    }
}

impl Settings {
    /// Reads lines: rows, [`THREADED`], [`LANGUAGE`] and [`PICTURES`], zone, name, and the signature to the end.
    pub fn decode(bytes: &[u8]) -> Settings {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.splitn(4, '\n');
        let mut line = || lines.next().unwrap_or_default();
        let mut view = line().split(' ');
        let rows = view.next().and_then(|rows| rows.parse().ok()).filter(|rows| ROWS.contains(rows)).unwrap_or(50);
        let words: Vec<&str> = view.collect();
        let is_threaded = words.contains(&THREADED);
        let value = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)).unwrap_or_default();
        let (language, pictures) = (Language::tagged(value(LANGUAGE)), value(PICTURES));
        let pictures = pictures.split(',').filter(|one| is_sender(one)).take(SENDERS_MAX).map(String::from).collect();
        let zone_minutes = line().parse().ok().filter(|zone| (-720..=840).contains(zone)).unwrap_or(0);
        Settings { rows, is_threaded, zone_minutes, pictures, language, name: line().into(), signature: line().into() }
    }

    pub fn encode(&self) -> Vec<u8> {
        let Settings { name, signature, rows, is_threaded, zone_minutes, pictures, language } = self;
        let mut view = if *is_threaded { format!("{rows} {THREADED}") } else { rows.to_string() };
        if let Some(language) = language {
            view.push_str(&format!(" {LANGUAGE}{}", language.tag()));
        }
        if !pictures.is_empty() {
            view.push_str(&format!(" {PICTURES}{}", pictures.join(",")));
        }
        format!("{view}\n{zone_minutes}\n{name}\n{signature}").into_bytes()
    }
}

impl Pages<'_> {
    /// The page of settings.
    pub fn settings(&mut self, call: &Call) -> Reply {
        let (words, mut main) = (&self.words.settings, Html::default());
        let Settings { name, signature, rows, is_threaded, zone_minutes, pictures, .. } = &self.settings;
        put!(main, "<h1>", self.words.common.settings, "</h1>");
        self.form(&mut main, "action=\"/settings\" class=\"wide\"");
        put!(
            main,
            "<div class=\"field\"><label for=\"name\">",
            words.name,
            "</label><input id=\"name\" name=\"name\" maxlength=\"100\" "
        );
        put!(
            main,
            "dir=\"auto\" value=\"",
            Text(name),
            "\"></div><div class=\"field short\"><label for=\"signature\">"
        );
        put!(main, words.signature, "</label>");
        put!(
            main,
            "<textarea id=\"signature\" name=\"signature\" rows=\"5\" maxlength=\"2000\" dir=\"auto\">\n",
            Text(signature),
            "</textarea></div>"
        );
        self.languages(&mut main);
        put!(
            main,
            "<div class=\"field\"><label for=\"rows\">",
            words.rows,
            "</label><select id=\"rows\" name=\"rows\">"
        );
        for choice in ROWS {
            put!(main, "<option value=\"", choice, if choice == *rows { "\" selected>" } else { "\">" });
            put!(main, Text(&self.words.number(choice)), "</option>");
        }
        put!(main, "</select></div><p><label><input type=\"checkbox\" name=\"view\" value=\"threaded\"");
        put!(
            main,
            if *is_threaded { " checked> " } else { "> " },
            words.threaded,
            "</label></p><div class=\"field\"><label for=\"zone\">"
        );
        put!(main, words.zone, "</label><select id=\"zone\" name=\"zone\" dir=\"ltr\">");
        for quarter in -24..=28 {
            let minutes = quarter * 30;
            let sign = if minutes < 0 { "-" } else { "+" };
            let text = format!("UTC{sign}{:02}:{:02}", i32::abs(minutes) / 60, i32::abs(minutes) % 60);
            put!(
                main,
                "<option value=\"",
                Text(&minutes.to_string()),
                if minutes == *zone_minutes { "\" selected>" } else { "\">" }
            );
            put!(main, Text(&text), "</option>");
        }
        put!(main, "</select></div><div class=\"bar\"><button class=\"main-button\">", self.words.common.save);
        main.put("</button></div></form>");
        let has_filters = self.mail.script().is_some();
        for (is_there, path, text) in [
            (has_filters, "/filters", self.words.filters.title),
            (!pictures.is_empty(), "/pictures", words.pictures),
            (has_filters, "/vacation", self.words.vacation.title),
            (!self.mail.identities().is_empty(), "/identities", words.identities),
            (!self.mail.sessions().is_empty(), "/sessions", words.sessions),
            (self.mail.app_passwords().is_some(), "/app-passwords", self.words.security.apps),
            (self.mail.second().is_some(), "/second", words.second),
            (self.mail.passkeys(self.session).is_some(), "/passkeys", self.words.security.passkeys),
        ] {
            if is_there {
                put!(main, "<p><a href=\"", path, "\">", text, "</a></p>");
            }
        }
        self.page(self.words.common.settings, None, self.told(call), main)
    }

    /// The choice of a language, each by its own name, where there is one.
    fn languages(&self, main: &mut Html) {
        if Language::all().count() == 1 {
            return;
        }
        let words = &self.words.settings;
        put!(main, "<div class=\"field\"><label for=\"language\">", words.language, "</label><select id=\"language\" ");
        put!(main, "name=\"language\"><option value=\"\">", words.browser_language, "</option>");
        for language in Language::all() {
            let is_chosen = self.settings.language == Some(language);
            put!(main, "<option value=\"", language.tag(), "\" lang=\"", language.tag());
            put!(main, if is_chosen { "\" selected>" } else { "\">" }, language.words().name, "</option>");
        }
        main.put("</select></div>");
    }

    /// Keeps settings.
    pub fn change_settings(&mut self, call: &Call) -> Reply {
        let line = |name: &str| call.form.get(name).chars().filter(|c| !c.is_control()).take(100).collect::<String>();
        let settings = Settings {
            name: line("name").trim().into(),
            pictures: self.settings.pictures.clone(),
            signature: call.form.get("signature").replace("\r\n", "\n").chars().take(2_000).collect(),
            ..Settings::decode(&chosen(call))
        };
        match self.mail.set_settings(&settings.encode()) {
            Ok(()) => Reply::see("/settings?told=kept"),
            Err(failure) => self.failed(failure),
        }
    }
}

/// The settings that are chosen from a list, as they are kept.
fn chosen(call: &Call) -> Vec<u8> {
    let get = |name| call.form.get(name);
    format!("{} {} {LANGUAGE}{}\n{}", get("rows"), get("view"), get("language"), get("zone")).into_bytes()
}
