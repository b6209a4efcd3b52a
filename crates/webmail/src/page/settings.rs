//! Settings of a user: name, signature, rows of a page, time zone, senders whose pictures are shown.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::call::Call;
use crate::html::{Html, Text, put};
use crate::reply::Reply;

use super::pictures::{SENDERS_MAX, is_sender};
use super::{Pages, Told};

/// Rows of a page, as can be chosen.
const ROWS: [usize; 4] = [25, 50, 100, 200];

/// The word for lists of conversations.
const THREADED: &str = "threaded";

/// The beginning of the word for senders whose pictures are shown.
const PICTURES: &str = "pictures=";

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
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::decode(b"")
    }
}

impl Settings {
    /// Reads lines: rows, [`THREADED`] and [`PICTURES`], zone, name, and the signature to the end.
    pub fn decode(bytes: &[u8]) -> Settings {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.splitn(4, '\n');
        let mut line = || lines.next().unwrap_or_default();
        let mut view = line().split(' ');
        let rows = view.next().and_then(|rows| rows.parse().ok()).filter(|rows| ROWS.contains(rows)).unwrap_or(50);
        let words: Vec<&str> = view.collect();
        let is_threaded = words.contains(&THREADED);
        let pictures = words.iter().find_map(|word| word.strip_prefix(PICTURES)).unwrap_or_default();
        let pictures = pictures.split(',').filter(|one| is_sender(one)).take(SENDERS_MAX).map(String::from).collect();
        let zone_minutes = line().parse().ok().filter(|zone| (-720..=840).contains(zone)).unwrap_or(0);
        Settings { rows, is_threaded, zone_minutes, pictures, name: line().into(), signature: line().into() }
    }

    pub fn encode(&self) -> Vec<u8> {
        let Settings { name, signature, rows, is_threaded, zone_minutes, pictures } = self;
        let mut view = if *is_threaded { format!("{rows} {THREADED}") } else { rows.to_string() };
        if !pictures.is_empty() {
            view.push_str(&format!(" {PICTURES}{}", pictures.join(",")));
        }
        format!("{view}\n{zone_minutes}\n{name}\n{signature}").into_bytes()
    }
}

impl Pages<'_> {
    /// The page of settings.
    pub fn settings(&mut self, call: &Call) -> Reply {
        let mut main = Html::default();
        let Settings { name, signature, rows, is_threaded, zone_minutes, pictures } = &self.settings;
        put!(main, "<h1>Settings</h1>");
        self.form(&mut main, "action=\"/settings\" class=\"wide\"");
        put!(
            main,
            "<div class=\"field\"><label for=\"name\">Your name, as others see it</label><input id=\"name\" name=\"name\" maxlength=\"100\" dir=\"auto\" value=\""
        );
        put!(main, Text(name), "\"></div><div class=\"field short\"><label for=\"signature\">Signature</label>");
        put!(
            main,
            "<textarea id=\"signature\" name=\"signature\" rows=\"5\" maxlength=\"2000\" dir=\"auto\">\n",
            Text(signature),
            "</textarea></div>"
        );
        put!(
            main,
            "<div class=\"field\"><label for=\"rows\">Messages on a page</label><select id=\"rows\" name=\"rows\">"
        );
        for choice in ROWS {
            put!(main, if choice == *rows { "<option selected>" } else { "<option>" }, choice, "</option>");
        }
        put!(
            main,
            "</select></div><p><label><input type=\"checkbox\" name=\"view\" value=\"threaded\"",
            if *is_threaded { " checked" } else { "" },
            "> One row for each conversation</label></p><div class=\"field\"><label for=\"zone\">Time zone</label><select id=\"zone\" name=\"zone\">"
        );
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
        put!(main, "</select></div><div class=\"bar\"><button class=\"main-button\">Save</button></div></form>");
        let has_filters = self.mail.script().is_some();
        for (is_there, link) in [
            (has_filters, "<p><a href=\"/filters\">Filters</a></p>"),
            (!pictures.is_empty(), "<p><a href=\"/pictures\">Pictures of other servers</a></p>"),
            (has_filters, "<p><a href=\"/vacation\">While you are away</a></p>"),
            (!self.mail.identities().is_empty(), "<p><a href=\"/identities\">Identities</a></p>"),
            (!self.mail.sessions().is_empty(), "<p><a href=\"/sessions\">Sessions in browsers</a></p>"),
            (self.mail.app_passwords().is_some(), "<p><a href=\"/app-passwords\">App passwords</a></p>"),
            (self.mail.second().is_some(), "<p><a href=\"/second\">Second step of the login</a></p>"),
        ] {
            if is_there {
                main.put(link);
            }
        }
        self.page("Settings", None, Told::of(call), main)
    }

    /// Keeps settings.
    pub fn change_settings(&mut self, call: &Call) -> Reply {
        let line = |name: &str| call.form.get(name).chars().filter(|c| !c.is_control()).take(100).collect::<String>();
        let settings = Settings {
            name: line("name").trim().into(),
            pictures: self.settings.pictures.clone(),
            signature: call.form.get("signature").replace("\r\n", "\n").chars().take(2_000).collect(),
            ..Settings::decode(format!("{} {}\n{}", line("rows"), line("view"), line("zone")).as_bytes())
        };
        match self.mail.set_settings(&settings.encode()) {
            Ok(()) => Reply::see("/settings?told=kept"),
            Err(failure) => self.failed(failure),
        }
    }
}
