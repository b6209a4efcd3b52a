//! The page where a user logs in. It says the same of a name that is not there and of a password that is wrong.

use crate::html::{Html, Text, put};
use crate::reply::Reply;

use super::{Told, head};

/// The login page.
pub(crate) fn page(name: &str, told: Told) -> Reply {
    written(name, told, false)
}

/// The login page with a field for the code of the second step.
pub(crate) fn page_with_code(name: &str) -> Reply {
    let told = "Enter the code of your device, or a recovery code, and your password again.";
    written(name, Told::Done(told), true)
}

fn written(name: &str, told: Told, has_code: bool) -> Reply {
    let mut page = head("Log in");
    put!(page, "<body class=\"alone\"><main id=\"main\"><div class=\"card\"><h1>Sluice Mail</h1>");
    told.write(&mut page);
    put!(
        page,
        "<form method=\"post\" action=\"/login\" class=\"wide\"><div class=\"field\"><label for=\"name\">Name or address</label>"
    );
    put!(
        page,
        "<input id=\"name\" name=\"name\" autocomplete=\"username\" autocapitalize=\"none\" required maxlength=\"255\" value=\""
    );
    put!(page, Text(name), "\"></div><div class=\"field\"><label for=\"password\">Password</label>");
    put!(
        page,
        "<input id=\"password\" name=\"password\" type=\"password\" autocomplete=\"current-password\" required maxlength=\"1024\">"
    );
    if has_code {
        put!(page, "</div><div class=\"field\"><label for=\"code\">Code</label><input id=\"code\" name=\"code\" ");
        put!(page, "inputmode=\"numeric\" autocomplete=\"one-time-code\" required maxlength=\"64\">");
    }
    put!(page, "</div><button class=\"main-button\">Log in</button></form></div></main></body></html>");
    Reply::page(told.status(), page)
}

/// A page for who is not logged in, about something that went wrong.
pub(crate) fn plain(status: u16, title: &'static str, text: &'static str) -> Reply {
    let mut page: Html = head(title);
    put!(page, "<body class=\"alone\"><main id=\"main\"><div class=\"card\"><h1>", title, "</h1><p>", text);
    put!(page, "</p><p><a href=\"/\">To your mail</a></p></div></main></body></html>");
    Reply::page(status, page)
}
