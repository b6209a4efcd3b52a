//! What all pages have: head, navigation, the line that tells the outcome of a form.

use webmail::html::{Html, Text, put};
use webmail::session::Session;
use webmail::{Call, Reply, STYLE};

/// Rules beside those of the webmail.
const MORE_STYLE: &str = include_str!("style.css");

/// The pages of the navigation: path and name.
const PLACES: [(&str, &str); 3] = [("/", "Overview"), ("/kept", "Quarantine"), ("/settings", "Configuration")];

/// The style sheet.
pub fn style() -> Reply {
    Reply::style(&[STYLE, MORE_STYLE].concat())
}

/// A page around its content.
pub fn page(title: &'static str, here: &str, session: &Session, hostname: &str, call: &Call, main: Html) -> Reply {
    let mut page = head(title);
    put!(page, "<body><a class=\"skip\" href=\"#main\">Skip to content</a><header class=\"top\">");
    put!(page, "<a class=\"brand\" href=\"/\">Sluice</a> <span class=\"who\">", Text(hostname), "</span> ");
    form(&mut page, session, "action=\"/leave\" class=\"inline end\"");
    put!(page, "<button>Log out</button></form></header><nav class=\"folders\" aria-label=\"Pages\"><ul>");
    for (path, name) in PLACES {
        let current = if path == here { "\" aria-current=\"page\">" } else { "\">" };
        put!(page, "<li><a href=\"", path, current, name, "</a></li>");
    }
    put!(page, "</ul></nav><main id=\"main\">");
    told(&mut page, call.query.get("told"));
    put!(page, main, "</main></body></html>");
    Reply::page(200, page)
}

/// A page without navigation.
pub fn plain(status: u16, title: &'static str, text: &str) -> Reply {
    let mut page = head(title);
    put!(page, "<body class=\"alone\"><main id=\"main\"><div class=\"card\"><h1>", title, "</h1><p>", Text(text));
    put!(page, "</p><p><a href=\"/\">To the overview</a></p></div></main></body></html>");
    Reply::page(status, page)
}

/// The beginning of a form that changes something.
pub fn form(page: &mut Html, session: &Session, attributes: &'static str) {
    put!(
        page,
        "<form method=\"post\" ",
        attributes,
        "><input type=\"hidden\" name=\"token\" value=\"",
        Text(&session.token),
        "\">"
    );
}

/// A term and what it is, in a list of such.
pub fn term(page: &mut Html, name: &'static str, value: &str) {
    put!(page, "<dt>", name, "</dt><dd dir=\"auto\">", Text(value), "</dd>");
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
        "part" => "Not all of them: see below, and the log.",
        "none" => "Nothing was chosen.",
        _ => return,
    };
    put!(page, "<p class=\"told\" role=\"status\">", text, "</p>");
}
