//! Sessions of the user in browsers: a list, and an end for each.

use crate::call::Call;
use crate::html::{Html, Text, put};
use crate::reply::Reply;
use crate::session::Ending;

use super::Pages;

impl Pages<'_> {
    /// The page of sessions.
    pub fn sessions(&mut self, call: &Call) -> Reply {
        let all = self.mail.sessions();
        let (words, mut main) = (&self.words.security, Html::default());
        put!(main, "<h1>", words.sessions, "</h1><p class=\"soft\">", words.sessions_note, "</p>");
        for session in &all {
            let is_here = session.id == self.session.id;
            put!(
                main,
                "<section class=\"card\"><p><bdi dir=\"ltr\">",
                Text(&session.client),
                "</bdi></p><p class=\"soft\">"
            );
            main.say(words.used, &[&self.whole_date(session.begun), &self.whole_date(session.used)]);
            main.put("</p>");
            match is_here {
                true => put!(main, "<p><strong>", words.this_browser, "</strong></p>"),
                false => {
                    self.form(&mut main, "action=\"/sessions\"");
                    put!(
                        main,
                        "<button name=\"end\" value=\"",
                        Text(&session.id),
                        "\">",
                        words.end,
                        "</button></form>"
                    );
                }
            }
            main.put("</section>");
        }
        if all.len() > 1 {
            self.form(&mut main, "action=\"/sessions\" class=\"bar\"");
            put!(main, "<button name=\"end\" value=\"others\">", words.end_others, "</button></form>");
        }
        self.page(words.sessions, None, self.told(call), main)
    }

    /// Ends one of them, or all others.
    pub fn end_sessions(&mut self, call: &Call) -> Reply {
        match call.form.get("end") {
            "others" => self.mail.end_sessions(Ending::AllBut(&self.session.id)),
            id => self.mail.end_sessions(Ending::One(id)),
        }
        Reply::see("/sessions?told=ended")
    }
}
