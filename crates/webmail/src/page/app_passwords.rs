//! App passwords: one for each program of the user, shown once, for some protocols, withdrawn alone.

use alloc::vec::Vec;

use crate::call::Call;
use crate::html::{Html, Text, put};
use crate::language::fill;
use crate::mail::{AppPassword, Program};
use crate::reply::Reply;

use super::second::OWN_PASSWORD;
use super::{Pages, Told};

/// Protocols, as the host names them and as they are shown.
const PROTOCOLS: [(&str, &str); 5] =
    [("imap", "IMAP"), ("pop3", "POP3"), ("submission", "SMTP"), ("managesieve", "ManageSieve"), ("jmap", "JMAP")];

impl Pages<'_> {
    /// The page of app passwords.
    pub fn app_passwords(&mut self, call: &Call) -> Reply {
        let Some(all) = self.mail.app_passwords() else { return self.missing() };
        let (words, mut main) = (&self.words.security, Html::default());
        put!(main, "<h1>", words.apps, "</h1><p class=\"soft\">", words.apps_note, "</p>");
        all.iter().for_each(|one| self.app_password(&mut main, one));
        put!(main, "<h2>", words.app_new, "</h2>");
        self.form(&mut main, "action=\"/app-passwords\" class=\"wide\"");
        put!(
            main,
            "<div class=\"field\"><label for=\"name\">",
            words.app_name,
            "</label><input id=\"name\" name=\"name\" required "
        );
        put!(
            main,
            "maxlength=\"60\" dir=\"auto\" autocomplete=\"off\"></div><fieldset class=\"card\"><legend>",
            words.protocols
        );
        main.put("</legend>");
        let uses = [words.reads, words.fetches, words.sends, words.changes_filters, words.reads_and_sends];
        for ((door, name), text) in PROTOCOLS.into_iter().zip(uses) {
            put!(main, "<p><label><input type=\"checkbox\" name=\"door\" value=\"", door, "\" checked> ");
            put!(main, Text(&fill(text, &[name])), "</label></p>");
        }
        put!(
            main,
            "</fieldset><div class=\"field\"><label for=\"password\">",
            words.password_now,
            "</label>",
            OWN_PASSWORD
        );
        put!(
            main,
            "</div><button class=\"main-button\" name=\"do\" value=\"add\">",
            words.app_make,
            "</button></form>"
        );
        self.page(words.apps, None, self.told(call), main)
    }

    fn app_password(&self, main: &mut Html, one: &AppPassword) {
        put!(main, "<section class=\"card\"><h2><bdi>", Text(&one.name), "</bdi></h2><p class=\"soft\">");
        let words = &self.words.security;
        for (at, door) in one.doors.iter().enumerate() {
            let name = PROTOCOLS.iter().find(|(known, _)| known == door).map_or("", |(_, name)| name);
            put!(main, if at > 0 { self.words.common.comma } else { "" }, name);
        }
        put!(main, "</p><p class=\"soft\">");
        match &one.used {
            Some((seconds, _)) => main.say(words.used, &[&self.whole_date(one.made), &self.whole_date(*seconds)]),
            None => main.say(words.unused, &[&self.whole_date(one.made)]),
        }
        main.put("</p>");
        self.form(main, "action=\"/app-passwords\"");
        put!(main, "<input type=\"hidden\" name=\"id\" value=\"", one.id, "\">");
        put!(
            main,
            "<button name=\"do\" value=\"end\">",
            words.app_withdraw,
            "<span class=\"skip\">: ",
            Text(&one.name)
        );
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
        let (words, mut main) = (&self.words.security, Html::default());
        put!(
            main,
            "<h1>",
            words.app_made,
            "</h1><p>",
            words.app_shown,
            "</p><pre dir=\"ltr\">",
            Text(password),
            "</pre><p>"
        );
        main.say(words.app_login, &[self.mail.user()]);
        put!(main, "</p><p><a href=\"/app-passwords\">", self.words.common.done, "</a></p>");
        self.page(words.apps, None, Told::Nothing, main)
    }
}
