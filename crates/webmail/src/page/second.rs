//! The second step of the login: it is set up with a device that shows codes, and taken away with a code.

use crate::call::Call;
use crate::html::{Html, Text, put};
use crate::mail::{Second, Setup};
use crate::qr::qr;
use crate::reply::Reply;
use crate::session::Ending;

use super::{Pages, Told};

/// The field for the password of now: a session alone changes no way in.
pub(super) const OWN_PASSWORD: &str = "<input id=\"password\" name=\"password\" type=\"password\" \
    autocomplete=\"current-password\" required maxlength=\"1024\">";

/// The same behind its id.
const PASSWORD_FIELD: &str =
    "name=\"password\" type=\"password\" autocomplete=\"current-password\" required maxlength=\"1024\">";

const CODE: &str =
    "<input id=\"code\" name=\"code\" inputmode=\"numeric\" autocomplete=\"one-time-code\" required maxlength=\"64\">";

impl Pages<'_> {
    /// The page of the second step.
    pub fn second(&mut self, call: &Call) -> Reply {
        let (words, mut main) = (&self.words.security, Html::default());
        put!(main, "<h1>", words.second, "</h1>");
        match self.mail.second() {
            None => return self.missing(),
            Some(Second::Set { recovery_codes }) => self.set(&mut main, recovery_codes),
            Some(Second::Unset { secret, link }) => {
                if self.mail.passkeys(self.session).is_some_and(|passkeys| !passkeys.all.is_empty()) {
                    self.by_passkeys(&mut main);
                }
                self.unset(&mut main, &secret, &link);
            }
        }
        self.page(words.second, None, self.told(call), main)
    }

    fn set(&self, main: &mut Html, recovery_codes: usize) {
        let words = &self.words.security;
        put!(main, "<p>", words.second_set, " ");
        main.say(words.second_left, &[&self.words.number(recovery_codes)]);
        main.put("</p>");
        self.form(main, "action=\"/second\" class=\"wide\"");
        put!(main, "<div class=\"field\"><label for=\"code\">", words.second_code, "</label>", CODE);
        put!(main, "</div><button name=\"do\" value=\"end\">", words.second_end, "</button></form>");
    }

    fn unset(&self, main: &mut Html, secret: &str, link: &str) {
        let words = &self.words.security;
        put!(main, "<p>", words.second_unset, "</p><p>");
        qr(main, link, words.second_picture);
        put!(main, "</p><p><code>", Text(secret));
        put!(main, "</code></p><p><a href=\"", Text(link), "\"><bdi dir=\"ltr\">", Text(link), "</bdi></a></p>");
        self.form(main, "action=\"/second\" class=\"wide\"");
        put!(main, "<input type=\"hidden\" name=\"secret\" value=\"", Text(secret), "\"><div class=\"field\">");
        put!(main, "<label for=\"code\">", self.words.login.code, "</label>", CODE, "</div>");
        self.proof(main, "password", "begin");
    }

    fn by_passkeys(&self, main: &mut Html) {
        put!(main, "<section class=\"card\"><p>", self.words.security.second_passkeys, "</p>");
        self.form(main, "action=\"/second\" class=\"wide\"");
        self.proof(main, "own", "passkeys");
        main.put("</section>");
    }

    /// The end of a form that sets it up: the password, and the choice for mail programs.
    fn proof(&self, main: &mut Html, id: &'static str, what: &'static str) {
        let words = &self.words.security;
        put!(main, "<div class=\"field\"><label for=\"", id, "\">", words.password_now, "</label><input id=\"", id);
        put!(main, "\" ", PASSWORD_FIELD, "</div><fieldset class=\"card\"><legend>", words.programs, "</legend>");
        put!(main, "<p><label><input type=\"radio\" name=\"programs\" value=\"closed\" checked> ");
        put!(main, words.programs_closed, "</label></p><p><label>");
        put!(main, "<input type=\"radio\" name=\"programs\" value=\"open\"> ", words.programs_open);
        put!(main, "</label></p></fieldset><p class=\"soft\">", words.sessions_end, "</p>");
        put!(main, "<button class=\"main-button\" name=\"do\" value=\"", what, "\">", words.second_begin);
        main.put("</button></form>");
    }

    /// Sets it up, or takes it away.
    pub fn change_second(&mut self, call: &Call) -> Reply {
        let code = call.form.get("code");
        let outcome = match call.form.get("do") {
            what @ ("begin" | "passkeys") => {
                let device = (what == "begin").then_some((call.form.get("secret"), code));
                let (password, is_alone) = (call.form.get("password"), call.form.get("programs") != "open");
                self.mail.begin_second(Setup { password, device, is_alone }).map(Some)
            }
            "end" => self.mail.end_second(code).map(|()| None),
            _ => return self.missing(),
        };
        match outcome {
            Ok(None) => Reply::see("/second?told=kept"),
            Err(failure) => self.failed(failure),
            Ok(Some(codes)) => {
                self.mail.end_sessions(Ending::AllBut(&self.session.id));
                let (words, mut main) = (&self.words.security, Html::default());
                put!(main, "<h1>", words.second_done, "</h1><p>", words.recovery_note, "</p><pre dir=\"ltr\">");
                codes.iter().for_each(|code| put!(main, Text(code), "\n"));
                put!(main, "</pre><p><a href=\"/second\">", self.words.common.done, "</a></p>");
                self.page(words.recovery, None, Told::Nothing, main)
            }
        }
    }
}
