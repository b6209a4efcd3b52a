//! App passwords: one for each program of the user, shown once, for some protocols, withdrawn alone.

use alloc::vec::Vec;

use crate::call::Call;
use crate::html::{Html, Text, put};
use crate::mail::{AppPassword, Program};
use crate::reply::Reply;

use super::{Pages, Told};

/// Protocols, as the host names them and as they are shown.
const PROTOCOLS: [(&str, &str); 5] = [
    ("imap", "IMAP: read mail"),
    ("pop3", "POP3: fetch mail"),
    ("submission", "SMTP: send mail"),
    ("managesieve", "ManageSieve: change filters"),
    ("jmap", "JMAP: read and send mail"),
];

impl Pages<'_> {
    /// The page of app passwords.
    pub fn app_passwords(&mut self, call: &Call) -> Reply {
        let Some(all) = self.mail.app_passwords() else { return self.missing() };
        let mut main = Html::default();
        put!(
            main,
            "<h1>App passwords</h1><p class=\"soft\">A password for each of your programs. It logs in by the protocols that you "
        );
        put!(main, "choose, not here, and it can be withdrawn without the others.</p>");
        all.iter().for_each(|one| self.app_password(&mut main, one));
        put!(main, "<h2>New app password</h2>");
        self.form(&mut main, "action=\"/app-passwords\" class=\"wide\"");
        put!(
            main,
            "<div class=\"field\"><label for=\"name\">Program or device</label><input id=\"name\" name=\"name\" required "
        );
        put!(
            main,
            "maxlength=\"60\" dir=\"auto\" autocomplete=\"off\"></div><fieldset class=\"card\"><legend>Protocols</legend>"
        );
        for (door, text) in PROTOCOLS {
            put!(
                main,
                "<p><label><input type=\"checkbox\" name=\"door\" value=\"",
                door,
                "\" checked> ",
                text,
                "</label></p>"
            );
        }
        put!(
            main,
            "</fieldset><div class=\"field\"><label for=\"password\">Password of now</label><input id=\"password\" "
        );
        put!(
            main,
            "name=\"password\" type=\"password\" autocomplete=\"current-password\" required maxlength=\"1024\"></div>"
        );
        put!(main, "<button class=\"main-button\" name=\"do\" value=\"add\">Make it</button></form>");
        self.page("App passwords", None, Told::of(call), main)
    }

    fn app_password(&self, main: &mut Html, one: &AppPassword) {
        put!(main, "<section class=\"card\"><h2><bdi>", Text(&one.name), "</bdi></h2><p class=\"soft\">");
        for (at, door) in one.doors.iter().enumerate() {
            let known = PROTOCOLS.iter().find(|(known, _)| known == door);
            let text = known.and_then(|(_, text)| text.split(':').next()).unwrap_or_default();
            put!(main, if at > 0 { ", " } else { "" }, Text(text));
        }
        put!(main, "</p><p class=\"soft\">Since ", Text(&self.whole_date(one.made)));
        match &one.used {
            Some((seconds, _)) => put!(main, ", used ", Text(&self.whole_date(*seconds)), "</p>"),
            None => put!(main, ", not used yet</p>"),
        }
        self.form(main, "action=\"/app-passwords\"");
        put!(main, "<input type=\"hidden\" name=\"id\" value=\"", one.id, "\">");
        put!(main, "<button name=\"do\" value=\"end\">Withdraw<span class=\"skip\">: ", Text(&one.name));
        put!(main, "</span></button></form></section>");
    }

    /// Makes one, or withdraws one.
    pub fn change_app_passwords(&mut self, call: &Call) -> Reply {
        let form = &call.form;
        match form.get("do") {
            "add" => {
                let doors: Vec<&str> = form.all("door").collect();
                let program = Program { name: form.get("name").trim(), doors: &doors };
                match self.mail.add_app_password(form.get("password"), program) {
                    Ok(password) => self.new_app_password(&password),
                    Err(failure) => self.failed(failure),
                }
            }
            "end" => match form.get("id").parse().ok().map(|id| self.mail.end_app_password(id)) {
                Some(Ok(())) => Reply::see("/app-passwords?told=ended"),
                Some(Err(failure)) => self.failed(failure),
                None => self.missing(),
            },
            _ => self.missing(),
        }
    }

    fn new_app_password(&self, password: &str) -> Reply {
        let mut main = Html::default();
        put!(
            main,
            "<h1>The app password is made</h1><p>Enter it in your program. It is shown this once.</p><pre dir=\"ltr\">"
        );
        put!(main, Text(password), "</pre><p>Your name there: <bdi>", Text(self.mail.user()));
        put!(main, "</bdi></p><p><a href=\"/app-passwords\">Done</a></p>");
        self.page("App password", None, Told::Nothing, main)
    }
}
