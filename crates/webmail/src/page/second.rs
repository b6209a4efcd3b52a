//! The second step of the login: it is set up with a device that shows codes, and taken away with a code.

use crate::call::Call;
use crate::html::{Html, Text, put};
use crate::mail::{Second, Setup};
use crate::reply::Reply;
use crate::session::Ending;

use super::{Pages, Told};

const CODE: &str =
    "<input id=\"code\" name=\"code\" inputmode=\"numeric\" autocomplete=\"one-time-code\" required maxlength=\"64\">";

impl Pages<'_> {
    /// The page of the second step.
    pub fn second(&mut self, call: &Call) -> Reply {
        let mut main = Html::default();
        put!(main, "<h1>Second step</h1>");
        match self.mail.second() {
            None => return self.missing(),
            Some(Second::Set { recovery_codes }) => self.set(&mut main, recovery_codes),
            Some(Second::Unset { secret, link }) => self.unset(&mut main, &secret, &link),
        }
        self.page("Second step", None, Told::of(call), main)
    }

    fn set(&self, main: &mut Html, recovery_codes: usize) {
        put!(main, "<p>You log in here with your password and a code. Recovery codes that are left: ", recovery_codes);
        put!(main, ".</p>");
        self.form(main, "action=\"/second\" class=\"wide\"");
        put!(main, "<div class=\"field\"><label for=\"code\">Code of your device, or a recovery code</label>", CODE);
        put!(main, "</div><button name=\"do\" value=\"end\">Log in by the password alone from now on</button></form>");
    }

    fn unset(&self, main: &mut Html, secret: &str, link: &str) {
        put!(
            main,
            "<p>Log in with your password and a code that a device of yours shows. Enter this secret in an authenticator "
        );
        put!(main, "application, or open the link on the device that has one; then enter the code that it shows.</p>");
        put!(main, "<p><code>", Text(secret), "</code></p><p><a href=\"", Text(link), "\">", Text(link), "</a></p>");
        self.form(main, "action=\"/second\" class=\"wide\"");
        put!(main, "<input type=\"hidden\" name=\"secret\" value=\"", Text(secret), "\">");
        put!(
            main,
            "<div class=\"field\"><label for=\"password\">Password of now</label><input id=\"password\" name=\"password\" "
        );
        put!(main, "type=\"password\" autocomplete=\"current-password\" required maxlength=\"1024\"></div>");
        put!(main, "<div class=\"field\"><label for=\"code\">Code</label>", CODE, "</div><fieldset class=\"card\">");
        put!(
            main,
            "<legend>Mail programs, which know no codes</legend><p><label><input type=\"radio\" name=\"programs\" "
        );
        put!(
            main,
            "value=\"closed\" checked> get in with app passwords alone</label></p><p><label><input type=\"radio\" "
        );
        put!(
            main,
            "name=\"programs\" value=\"open\"> get in with your own password too, and so does who has guessed it</label></p>"
        );
        put!(main, "</fieldset><p class=\"soft\">Your sessions in other browsers end.</p>");
        put!(main, "<button class=\"main-button\" name=\"do\" value=\"begin\">Set it up</button></form>");
    }

    /// Sets it up, or takes it away.
    pub fn change_second(&mut self, call: &Call) -> Reply {
        let code = call.form.get("code");
        let outcome = match call.form.get("do") {
            "begin" => {
                let (password, secret) = (call.form.get("password"), call.form.get("secret"));
                let is_alone = call.form.get("programs") != "open";
                self.mail.begin_second(Setup { password, secret, code, is_alone }).map(Some)
            }
            "end" => self.mail.end_second(code).map(|()| None),
            _ => return self.missing(),
        };
        match outcome {
            Ok(None) => Reply::see("/second?told=kept"),
            Err(failure) => self.failed(failure),
            Ok(Some(codes)) => {
                self.mail.end_sessions(Ending::AllBut(&self.session.id));
                let mut main = Html::default();
                put!(
                    main,
                    "<h1>The second step is set up</h1><p>Keep these recovery codes where your device is not. Each is good "
                );
                put!(main, "once, in the place of a code; they are shown this once.</p><pre dir=\"ltr\">");
                codes.iter().for_each(|code| put!(main, Text(code), "\n"));
                put!(main, "</pre><p><a href=\"/second\">Done</a></p>");
                self.page("Recovery codes", None, Told::Nothing, main)
            }
        }
    }
}
