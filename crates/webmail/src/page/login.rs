//! The pages where a user logs in. They say the same of a name that is not there and of a password that is wrong.

use alloc::string::String;

use crate::form::Form;
use crate::html::{Html, Text, put};
use crate::language::Words;
use crate::passkey;
use crate::refusal::{Denial, Refusal};
use crate::reply::Reply;

use super::passkeys::texts;
use super::{Told, head};

/// The login page.
pub(crate) fn page(all: &'static Words, name: &str, told: Told) -> Reply {
    let (words, mut page) = (&all.login, card(all, &told));
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
    put!(page, "autocomplete=\"current-password\" required maxlength=\"1024\"></div><button class=\"main-button\">");
    put!(page, words.log_in, "</button></form>");
    if cfg!(feature = "second") {
        put!(page, "<p><a href=\"/login/passkey\">", words.passkey, "</a></p>");
    }
    page.put("</div></main></body></html>");
    Reply::page(told.status(), page)
}

/// The page of who has written a mail until the session ended: what was written goes on to the next one.
pub(crate) fn expired(all: &'static Words, form: &Form) -> Reply {
    let mut page = card(all, &Told::Wrong(all.login.expired.into()));
    put!(page, "<p><a class=\"button\" href=\"/login\" target=\"_blank\">", all.login.log_in, "</a></p>");
    put!(page, "<form method=\"post\" action=\"/write\" class=\"wide\">");
    for (name, value) in form.fields().filter(|(name, _)| !matches!(*name, "token" | "text" | "do")) {
        put!(page, "<input type=\"hidden\" name=\"", Text(name), "\" value=\"", Text(value), "\">");
    }
    put!(
        page,
        "<div class=\"field\"><label for=\"text\">",
        all.common.text,
        "</label><textarea id=\"text\" name=\"text\" "
    );
    put!(page, "rows=\"16\" dir=\"auto\">\n", Text(form.get("text")), "</textarea></div>");
    put!(page, "<button class=\"main-button\">", all.login.go_on, "</button></form></div></main></body></html>");
    Reply::page(401, page)
}

/// The second step of a login whose password was right.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// The name of the account.
    pub name: &'a str,
    /// The proof that the password was right, which is the challenge for passkeys, too.
    pub challenge: &'a str,
    /// Identifiers of the credentials that count, in Base64 for URLs.
    pub passkeys: &'a [String],
    /// Why the last try has failed.
    pub denial: Option<Denial>,
}

/// The page of the second step: a code, or a passkey.
pub(crate) fn step(all: &'static Words, step: &Step<'_>) -> Reply {
    let words = &all.login;
    let told = step.denial.map_or(Told::Done(words.enter_code), |why| Told::Wrong(why.text(all).into()));
    let mut page = card(all, &told);
    begin_step(&mut page, step);
    put!(page, "<div class=\"field\"><label for=\"code\">", words.code, "</label><input id=\"code\" name=\"code\" ");
    put!(page, "inputmode=\"numeric\" autocomplete=\"one-time-code\" required maxlength=\"64\"></div>");
    put!(page, "<button class=\"main-button\">", words.log_in, "</button></form>");
    if !step.passkeys.is_empty() {
        put!(page, "<h2>", words.or_passkey, "</h2>");
        begin_step(&mut page, step);
        let known = step.passkeys.iter().map(String::as_str);
        passkey::get(&mut page, step.challenge, known, false, texts(all));
        put!(page, "<button class=\"main-button\" disabled>", words.use_passkey, "</button></form>");
    }
    page.put("</div></main></body></html>");
    Reply::page(told.status(), page).with_script()
}

fn begin_step(page: &mut Html, step: &Step<'_>) {
    put!(page, "<form method=\"post\" action=\"/login\" class=\"wide\"><input type=\"hidden\" name=\"name\" value=\"");
    put!(page, Text(step.name), "\"><input type=\"hidden\" name=\"step\" value=\"", Text(step.challenge), "\">");
}

/// The page of a login by a passkey alone.
pub(crate) fn passkey(all: &'static Words, challenge: &str, denial: Option<Denial>) -> Reply {
    let words = &all.login;
    let told = denial.map_or(Told::Nothing, |why| Told::Wrong(why.text(all).into()));
    let mut page = card(all, &told);
    page.put("<form method=\"post\" action=\"/login/passkey\" class=\"wide\">");
    passkey::get(&mut page, challenge, core::iter::empty(), true, texts(all));
    put!(page, "<button class=\"main-button\" disabled>", words.use_passkey, "</button></form><p><a href=\"/login\">");
    put!(page, words.log_in, "</a></p></div></main></body></html>");
    Reply::page(told.status(), page).with_script()
}

/// The beginning of a page with one card.
fn card(words: &'static Words, told: &Told) -> Html {
    let mut page = head(words, words.login.log_in);
    put!(page, "<body class=\"alone\"><main id=\"main\"><div class=\"card\"><h1>Sluice Mail</h1>");
    told.write(&mut page);
    page
}

/// A page for who is not logged in, about a request that is refused.
pub(crate) fn refusal(words: &'static Words, why: Refusal) -> Reply {
    let mut page: Html = head(words, words.common.not_done);
    put!(page, "<body class=\"alone\"><main id=\"main\"><div class=\"card\"><h1>", words.common.not_done, "</h1><p>");
    put!(page, why.text(words), "</p><p><a href=\"/\">", words.login.to_mail, "</a></p></div></main></body></html>");
    Reply::page(why.status(), page)
}
