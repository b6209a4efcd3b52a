//! The page where a user logs in. It says the same of a name that is not there and of a password that is wrong.

use crate::html::{Html, Text, put};
use crate::language::Words;
use crate::refusal::Refusal;
use crate::reply::Reply;

use super::{Told, head};

/// The login page.
pub(crate) fn page(words: &'static Words, name: &str, told: Told) -> Reply {
    written(words, name, told, false)
}

/// The login page with a field for the code of the second step.
pub(crate) fn page_with_code(words: &'static Words, name: &str) -> Reply {
    written(words, name, Told::Done(words.login.enter_code), true)
}

fn written(all: &'static Words, name: &str, told: Told, has_code: bool) -> Reply {
    let (words, mut page) = (&all.login, head(all, all.login.log_in));
    put!(page, "<body class=\"alone\"><main id=\"main\"><div class=\"card\"><h1>Sluice Mail</h1>");
    told.write(&mut page);
    put!(
        page,
        "<form method=\"post\" action=\"/login\" class=\"wide\"><div class=\"field\"><label for=\"name\">",
        words.name
    );
    put!(page, "</label><input id=\"name\" name=\"name\" autocomplete=\"username\" autocapitalize=\"none\" required ");
    put!(
        page,
        "dir=\"auto\" maxlength=\"255\" value=\"",
        Text(name),
        "\"></div><div class=\"field\"><label for=\"password\">"
    );
    put!(page, words.password, "</label><input id=\"password\" name=\"password\" type=\"password\" ");
    put!(page, "autocomplete=\"current-password\" required maxlength=\"1024\">");
    if has_code {
        put!(
            page,
            "</div><div class=\"field\"><label for=\"code\">",
            words.code,
            "</label><input id=\"code\" name=\"code\" "
        );
        put!(page, "inputmode=\"numeric\" autocomplete=\"one-time-code\" required maxlength=\"64\">");
    }
    put!(page, "</div><button class=\"main-button\">", words.log_in, "</button></form></div></main></body></html>");
    Reply::page(told.status(), page)
}

/// A page for who is not logged in, about a request that is refused.
pub(crate) fn refusal(words: &'static Words, why: Refusal) -> Reply {
    let mut page: Html = head(words, words.common.not_done);
    put!(page, "<body class=\"alone\"><main id=\"main\"><div class=\"card\"><h1>", words.common.not_done, "</h1><p>");
    put!(page, why.text(words), "</p><p><a href=\"/\">", words.login.to_mail, "</a></p></div></main></body></html>");
    Reply::page(why.status(), page)
}
