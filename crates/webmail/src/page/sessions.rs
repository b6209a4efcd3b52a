//! Sessions of the user in browsers: a list, and an end for each.

use crate::call::Call;
use crate::html::{Html, Text, put};
use crate::reply::Reply;
use crate::session::Ending;

use super::{Pages, Told};

impl Pages<'_> {
    /// The page of sessions.
    pub fn sessions(&mut self, call: &Call) -> Reply {
        let all = self.mail.sessions();
        let mut main = Html::default();
        put!(main, "<h1>Sessions</h1><p class=\"soft\">Browsers in which you are logged in.</p>");
        for session in &all {
            let is_here = session.id == self.session.id;
            put!(
                main,
                "<section class=\"card\"><p><bdi dir=\"ltr\">",
                Text(&session.client),
                "</bdi></p><p class=\"soft\">"
            );
            put!(main, "Since ", Text(&self.whole_date(session.begun)));
            put!(main, ", used ", Text(&self.whole_date(session.used)), "</p>");
            match is_here {
                true => put!(main, "<p><strong>This browser</strong></p>"),
                false => {
                    self.form(&mut main, "action=\"/sessions\"");
                    put!(main, "<button name=\"end\" value=\"", Text(&session.id), "\">End</button></form>");
                }
            }
            main.put("</section>");
        }
        if all.len() > 1 {
            self.form(&mut main, "action=\"/sessions\" class=\"bar\"");
            put!(main, "<button name=\"end\" value=\"others\">End all others</button></form>");
        }
        self.page("Sessions", None, Told::of(call), main)
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
