//! Passkeys of a user: a list, a new one, an end for each.

use crate::call::Call;
use crate::html::{Html, Text, put};
use crate::language::Words;
use crate::mail::{NewPasskey, PasskeySummary};
use crate::passkey::{self, Texts, User};
use crate::reply::Reply;

use super::Pages;
use super::second::OWN_PASSWORD;

/// The sentences of forms with passkeys.
pub(super) fn texts(words: &Words) -> Texts {
    Texts { lack: words.security.passkey_lack, failed: words.security.passkey_failed }
}

impl Pages<'_> {
    /// The page of passkeys.
    pub fn passkeys(&mut self, call: &Call) -> Reply {
        let Some(passkeys) = self.mail.passkeys(self.session) else { return self.missing() };
        let (words, mut main) = (&self.words.security, Html::default());
        put!(main, "<h1>", words.passkeys, "</h1><p class=\"soft\">", words.passkeys_note, "</p>");
        passkeys.all.iter().for_each(|one| self.passkey(&mut main, one));
        put!(main, "<h2>", words.passkey_new, "</h2>");
        self.form(&mut main, "action=\"/passkeys\" class=\"wide\"");
        let user = User { id: &passkeys.user, name: self.mail.user() };
        let known = passkeys.all.iter().map(|one| one.credential.as_str());
        passkey::create(&mut main, &passkeys.challenge, user, known, texts(self.words));
        put!(main, "<input type=\"hidden\" name=\"do\" value=\"add\"><div class=\"field\"><label for=\"name\">");
        put!(
            main,
            words.passkey_name,
            "</label><input id=\"name\" name=\"name\" required maxlength=\"60\" dir=\"auto\" "
        );
        put!(main, "autocomplete=\"off\"></div><div class=\"field\"><label for=\"password\">", words.password_now);
        put!(main, "</label>", OWN_PASSWORD, "</div><button class=\"main-button\" disabled>", words.passkey_make);
        main.put("</button></form>");
        self.page(words.passkeys, None, self.told(call), main).with_script()
    }

    fn passkey(&self, main: &mut Html, one: &PasskeySummary) {
        let words = &self.words.security;
        put!(main, "<section class=\"card\"><h2><bdi>", Text(&one.name), "</bdi></h2><p class=\"soft\">");
        match one.used {
            Some(used) => main.say(words.used, &[&self.whole_date(one.made), &self.whole_date(used)]),
            None => main.say(words.unused, &[&self.whole_date(one.made)]),
        }
        main.put("</p>");
        self.form(main, "action=\"/passkeys\"");
        put!(main, "<input type=\"hidden\" name=\"id\" value=\"", one.id, "\"><button name=\"do\" value=\"end\">");
        put!(main, words.passkey_remove, "<span class=\"skip\">: ", Text(&one.name));
        main.put("</span></button></form></section>");
    }

    /// Adds one, or removes one.
    pub fn change_passkeys(&mut self, call: &Call) -> Reply {
        let form = &call.form;
        let outcome = match form.get("do") {
            "add" => {
                let (password, name) = (form.get("password"), form.get("name"));
                let (client, attestation) = (form.get("client"), form.get("attestation"));
                let new = NewPasskey { password, name, client, attestation };
                self.mail.add_passkey(self.session, new).map(|()| "/passkeys?told=kept")
            }
            "end" => match form.get("id").parse() {
                Ok(id) => self.mail.end_passkey(id).map(|()| "/passkeys?told=ended"),
                Err(_) => return self.missing(),
            },
            _ => return self.missing(),
        };
        outcome.map_or_else(|failure| self.failed(failure), Reply::see)
    }
}
