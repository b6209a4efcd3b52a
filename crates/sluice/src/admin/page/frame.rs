//! The parts that all pages have: head, navigation, the line that tells the outcome of a form, tables, forms.

use serde_json::Value;
use time::OffsetDateTime;
use time::macros::format_description;
use webmail::html::{Html, Text, put};
use webmail::passkey::{self, Texts};
use webmail::session::Session;
use webmail::{Call, Reply, STYLE};

use crate::admin::fault::Fault;
use crate::admin::role::{Right, Who};
use crate::admin::site::Site;

/// Rules beside those of the webmail.
const MORE_STYLE: &str = include_str!("../style.css");

/// The pages of the navigation: path, name, and the right to see them.
const PLACES: [(&str, &str, Right); 8] = [
    ("/", "Overview", Right::Look),
    ("/kept", "Quarantine", Right::Quarantine),
    ("/queue", "Queue", Right::Look),
    ("/accounts", "Accounts", Right::Accounts),
    ("/domains", "Domains", Right::Look),
    ("/rules", "Signatures and rules", Right::Look),
    ("/settings", "Configuration", Right::Look),
    ("/changes", "Audit log", Right::Look),
];

/// Sentences of forms with passkeys.
pub const PASSKEY_TEXTS: Texts = Texts {
    lack: "This needs JavaScript, and a browser that knows passkeys.",
    failed: "The browser has used no passkey. Try again.",
};

/// A request of who has logged in.
pub struct View<'a> {
    pub site: &'a Site,
    pub who: &'a Who,
    pub session: &'a Session,
    pub call: &'a Call,
}

/// The style sheet.
pub fn style() -> Reply {
    Reply::style(&[STYLE, MORE_STYLE].concat())
}

impl View<'_> {
    /// A page around its content.
    pub fn page(&self, title: &'static str, here: &str, main: Html) -> Reply {
        let mut page = head(title);
        put!(page, "<body><a class=\"skip\" href=\"#main\">Skip to content</a><header class=\"top\">");
        put!(page, "<a class=\"brand\" href=\"/\">Sluice</a> <span class=\"who\">", Text(&self.site.hostname));
        put!(page, "</span> <span class=\"who end\"><a href=\"/you\">", Text(&self.who.name), "</a>, ");
        put!(page, self.who.role.name(), "</span> ");
        self.form(&mut page, "action=\"/leave\" class=\"inline\"");
        put!(page, "<button>Log out</button></form></header><nav class=\"folders\" aria-label=\"Pages\"><ul>");
        for (path, name, _) in PLACES.iter().filter(|(_, _, right)| self.who.may(*right)) {
            let current = if *path == here { "\" aria-current=\"page\">" } else { "\">" };
            put!(page, "<li><a href=\"", *path, current, *name, "</a></li>");
        }
        put!(page, "</ul></nav><main id=\"main\">");
        told(&mut page, self.call.query.get("told"));
        put!(page, main, "</main></body></html>");
        Reply::page(200, page)
    }

    /// A page of work that may have failed.
    pub fn worked(&self, title: &'static str, here: &str, write: impl FnOnce(&mut Html) -> Result<(), Fault>) -> Reply {
        let mut main = Html::default();
        match write(&mut main) {
            Ok(()) => self.page(title, here, main),
            Err(fault) => self.failed(&fault, here),
        }
    }

    /// A page for something that could not be done.
    pub fn failed(&self, fault: &Fault, here: &str) -> Reply {
        let mut main = Html::default();
        put!(main, "<h1>Not done</h1><p class=\"told wrong\" role=\"alert\">", Text(&fault.text), "</p>");
        put!(main, "<p><a href=\"", Text(here), "\">Back</a></p>");
        let mut reply = self.page("Not done", here, main);
        reply.status = fault.status;
        reply
    }

    /// The beginning of a form that changes something.
    pub fn form(&self, page: &mut Html, attributes: &'static str) {
        let token = Text(&self.session.token);
        put!(
            page,
            "<form method=\"post\" ",
            attributes,
            "><input type=\"hidden\" name=\"token\" value=\"",
            token,
            "\">"
        );
    }
}

/// A page without navigation.
pub fn plain(status: u16, title: &'static str, text: &str) -> Reply {
    let mut page = head(title);
    put!(page, "<body class=\"alone\"><main id=\"main\"><div class=\"card\"><h1>", title, "</h1><p>", Text(text));
    put!(page, "</p><p><a href=\"/\">To the overview</a></p></div></main></body></html>");
    Reply::page(status, page)
}

/// The page of who has not logged in. People have a form, where there can be some.
pub fn closed(has_people: bool, told: &str) -> Reply {
    let mut page = head("Log in");
    put!(page, "<body class=\"alone\"><main id=\"main\"><div class=\"card\"><h1>Sluice</h1>");
    if !told.is_empty() {
        put!(page, "<p class=\"told wrong\" role=\"alert\">", Text(told), "</p>");
    }
    put!(page, "<p>Open the link that <code>sluice admin serve</code> has printed. It is good for one browser.</p>");
    if has_people {
        put!(page, "<h2>Or log in</h2><form method=\"post\" action=\"/login\" class=\"wide\">");
        field(
            &mut page,
            "Name",
            "name",
            "autocomplete=\"username\" autocapitalize=\"none\" maxlength=\"64\" required",
            "",
        );
        let password = "type=\"password\" autocomplete=\"current-password\" maxlength=\"1024\" required";
        field(&mut page, "Password", "password", password, "");
        let code = "inputmode=\"numeric\" autocomplete=\"one-time-code\" maxlength=\"64\"";
        field(&mut page, "Code, if you have set up a second step", "code", code, "");
        put!(page, "<button class=\"main-button\">Log in</button></form>");
        put!(page, "<p><a href=\"/login/passkey\">Log in with a passkey</a></p>");
    }
    put!(page, "</div></main></body></html>");
    Reply::page(403, page)
}

/// The page of the second step of a login: a code, or a passkey.
pub fn step(name: &str, challenge: &str, passkeys: &[String]) -> Reply {
    let mut page = head("Log in");
    let begin = |page: &mut Html| {
        put!(page, "<form method=\"post\" action=\"/login\" class=\"wide\">");
        hidden(page, "name", name);
        hidden(page, "step", challenge);
    };
    put!(page, "<body class=\"alone\"><main id=\"main\"><div class=\"card\"><h1>Second step</h1>");
    begin(&mut page);
    let code = "inputmode=\"numeric\" autocomplete=\"one-time-code\" maxlength=\"64\" required";
    field(&mut page, "Code of your device, or a recovery code", "code", code, "");
    put!(page, "<button class=\"main-button\">Log in</button></form>");
    if !passkeys.is_empty() {
        put!(page, "<h2>Or use a passkey</h2>");
        begin(&mut page);
        passkey::get(&mut page, challenge, passkeys.iter().map(String::as_str), false, PASSKEY_TEXTS);
        put!(page, "<button class=\"main-button\" disabled>Use a passkey</button></form>");
    }
    put!(page, "</div></main></body></html>");
    Reply::page(200, page).with_script()
}

/// The page of a login by a passkey alone.
pub fn passkey(challenge: &str, told: &str) -> Reply {
    let mut page = head("Log in");
    put!(page, "<body class=\"alone\"><main id=\"main\"><div class=\"card\"><h1>Sluice</h1>");
    if !told.is_empty() {
        put!(page, "<p class=\"told wrong\" role=\"alert\">", Text(told), "</p>");
    }
    put!(page, "<form method=\"post\" action=\"/login/passkey\" class=\"wide\">");
    passkey::get(&mut page, challenge, std::iter::empty(), true, PASSKEY_TEXTS);
    put!(page, "<button class=\"main-button\" disabled>Use a passkey</button></form><p><a href=\"/\">Log in</a></p>");
    put!(page, "</div></main></body></html>");
    Reply::page(if told.is_empty() { 200 } else { 403 }, page).with_script()
}

/// A field of a form with its label. `attributes` are those of the input beside its name.
pub fn field(page: &mut Html, label: &'static str, name: &'static str, attributes: &'static str, value: &str) {
    put!(page, "<div class=\"field\"><label for=\"", name, "\">", label, "</label><input id=\"", name, "\" name=\"");
    put!(page, name, "\" ", attributes, " value=\"", Text(value), "\"></div>");
}

/// A hidden field of a form.
pub fn hidden(page: &mut Html, name: &'static str, value: &str) {
    put!(page, "<input type=\"hidden\" name=\"", name, "\" value=\"", Text(value), "\">");
}

/// A term and its meaning, in a list of such.
pub fn term(page: &mut Html, name: &'static str, value: &str) {
    put!(page, "<dt>", name, "</dt><dd dir=\"auto\">", Text(value), "</dd>");
}

/// The beginning of a table, up to its rows.
pub fn table(page: &mut Html, caption: &'static str, columns: &[&'static str]) {
    put!(page, "<table class=\"cards\"><caption class=\"skip\">", caption, "</caption><thead><tr>");
    columns.iter().for_each(|name| put!(page, "<th scope=\"col\">", *name, "</th>"));
    put!(page, "</tr></thead><tbody>");
}

/// A cell, with the name of its column for narrow screens.
pub fn cell(page: &mut Html, column: &'static str, text: &str) {
    put!(page, "<td data-label=\"", column, "\"><bdi>", Text(text), "</bdi></td>");
}

/// The end of a table.
pub fn end(page: &mut Html) {
    put!(page, "</tbody></table>");
}

/// A text as a part of a link.
pub fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// A time in seconds since 1970; a hyphen for none.
pub fn date(seconds: Option<i64>) -> String {
    let when = seconds.filter(|seconds| *seconds > 0).and_then(|at| OffsetDateTime::from_unix_timestamp(at).ok());
    let written =
        when.and_then(|when| when.format(format_description!("[year]-[month]-[day] [hour]:[minute] UTC")).ok());
    written.unwrap_or_else(|| "-".into())
}

/// A text of a value; empty for anything else.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// All values of a list.
pub fn all(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn head(title: &'static str) -> Html {
    let mut page = Html::default();
    put!(
        page,
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
    );
    put!(
        page,
        "<meta name=\"robots\" content=\"noindex\"><link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"/style.css\"><title>"
    );
    put!(page, title, " · Sluice</title></head>");
    page
}

fn told(page: &mut Html, what: &str) {
    let text = match what {
        "released" => "Released.",
        "deleted" => "Deleted.",
        "held" => "Held: it waits until it is released.",
        "retried" => "It is tried now.",
        "bounced" => "Given up: the sender is notified.",
        "kept" => "Saved.",
        "removed" => "Removed. Its mail stays in the store.",
        "begun" => "The update has begun. Open the page again to see its outcome.",
        "part" => "Not all of them: see below, and the log.",
        "none" => "Nothing was chosen.",
        _ => return,
    };
    put!(page, "<p class=\"told\" role=\"status\">", text, "</p>");
}
