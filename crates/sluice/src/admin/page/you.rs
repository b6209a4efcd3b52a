//! The person who has logged in: password, and the second step of the login.

use mailbox::totp::{Second, link};
use webmail::Reply;
use webmail::html::{Html, Text, put};

use super::frame::{View, field, hidden};
use crate::admin::access::now;
use crate::admin::fault::Fault;
use crate::admin::people::{People, Person};

const HERE: &str = "/you";
const CODE: &str = "inputmode=\"numeric\" autocomplete=\"one-time-code\" maxlength=\"64\" required";
const NEW_PASSWORD: &str =
    "type=\"password\" autocomplete=\"new-password\" minlength=\"8\" maxlength=\"1024\" required";
const PASSWORD: &str = "type=\"password\" autocomplete=\"current-password\" maxlength=\"1024\" required";

/// The page.
pub fn show(view: &View) -> Reply {
    view.worked("You", HERE, |page| {
        put!(page, "<h1><bdi>", Text(&view.who.name), "</bdi></h1><p>Role: ", view.who.role.name(), ".</p>");
        let Some(person) = person(view)? else {
            put!(
                page,
                "<p>You came by the link that was printed. People with passwords and roles of their own are added by "
            );
            put!(page, "<code>sluice admin person add</code>.</p>");
            return Ok(());
        };
        match person.second {
            Some(second) => {
                put!(
                    page,
                    "<section class=\"card narrow\"><h2>Second step</h2><p>Set up. Recovery codes that are left: "
                );
                put!(page, second.recovery_count(), ".</p>");
                view.form(page, "action=\"/you\" class=\"wide\"");
                field(page, "Code of your device, or a recovery code", "code", CODE, "");
                put!(page, "<button name=\"do\" value=\"remove\">Take it away</button></form></section>");
            }
            None => set_up(page, view, &Second::secret().map_err(Fault::away)?),
        }
        put!(page, "<section class=\"card narrow\"><h2>Password</h2>");
        view.form(page, "action=\"/you\" class=\"wide\"");
        field(page, "Password of now", "password", PASSWORD, "");
        field(page, "New password, of 8 characters at least", "new", NEW_PASSWORD, "");
        put!(page, "<button name=\"do\" value=\"password\">Change it</button></form></section>");
        Ok(())
    })
}

fn set_up(page: &mut Html, view: &View, secret: &str) {
    let link = link(&format!("Sluice {}", view.site.hostname), &view.who.name, secret);
    put!(
        page,
        "<section class=\"card narrow\"><h2>Second step</h2><p>Enter this secret in an authenticator application, or "
    );
    put!(
        page,
        "open the link on the device that has one; then enter the code that it shows.</p><p><code>",
        Text(secret)
    );
    put!(page, "</code></p><p><a href=\"", Text(&link), "\">", Text(&link), "</a></p>");
    view.form(page, "action=\"/you\" class=\"wide\"");
    hidden(page, "secret", secret);
    field(page, "Password of now", "now", PASSWORD, "");
    field(page, "Code", "code", CODE, "");
    put!(page, "<button class=\"main-button\" name=\"do\" value=\"begin\">Set it up</button></form></section>");
}

/// Does what a form says.
pub fn act(view: &View) -> Reply {
    if let Err(fault) = view.site.reserve() {
        return view.failed(&fault, HERE);
    }
    let form = &view.call.form;
    let (what, outcome) = match form.get("do") {
        "begin" => ("set up the second step of", view.site.access.guarded(view.who, || begin(view))),
        "remove" => ("took away the second step of", view.site.access.guarded(view.who, || remove(view))),
        "password" => ("changed the password of", view.site.access.guarded(view.who, || password(view))),
        _ => return Reply::see(HERE),
    };
    let failed = outcome.as_ref().err().map(|fault| fault.text.as_str());
    if let Err(error) = view.site.note(view.who, what, &view.who.name, failed) {
        return view.failed(&Fault::away(error), HERE);
    }
    match outcome {
        Ok(codes) if codes.is_empty() => Reply::see("/you?told=kept"),
        Ok(codes) => {
            let mut page = Html::default();
            put!(
                page,
                "<h1>The second step is set up</h1><p>Keep these recovery codes where your device is not. Each is good once, "
            );
            put!(page, "in the place of a code; they are shown this once.</p><pre dir=\"ltr\">");
            codes.iter().for_each(|code| put!(page, Text(code), "\n"));
            put!(page, "</pre><p><a href=\"/you\">Done</a></p>");
            view.page("Recovery codes", HERE, page)
        }
        Err(fault) => view.failed(&fault, HERE),
    }
}

fn begin(view: &View) -> Result<Vec<String>, Fault> {
    let form = &view.call.form;
    let (secret, code) = (form.get("secret"), form.get("code"));
    edit(view, |person| {
        if person.second.is_some() {
            return Err("it is set up already".into());
        }
        // Whoever has the session alone would lock its owner out.
        if !person.is_password(form.get("now")) {
            return Err("the password of now is wrong".into());
        }
        let begun = Second::begin(secret, code.trim(), now()).map_err(|error| error.to_string())?;
        let (second, codes) = begun.ok_or("the code is not of this secret: is the clock of the device right?")?;
        person.second = Some(second);
        Ok(codes)
    })
}

fn remove(view: &View) -> Result<Vec<String>, Fault> {
    edit(view, |person| {
        let second = person.second.as_mut().ok_or("it is not set up")?;
        if !second.takes(view.call.form.get("code"), now()) {
            return Err("the code is wrong".into());
        }
        person.second = None;
        Ok(Vec::new())
    })
}

fn password(view: &View) -> Result<Vec<String>, Fault> {
    let form = &view.call.form;
    edit(view, |person| {
        if !person.is_password(form.get("password")) {
            return Err("the password of now is wrong".into());
        }
        person.set_password(form.get("new"))?;
        Ok(Vec::new())
    })
}

/// The person, unless the link was used.
fn person(view: &View) -> Result<Option<Person>, Fault> {
    let Some(path) = view.site.access.people() else { return Ok(None) };
    let people = People::read(path).map_err(Fault::away)?;
    Ok(people.people.into_iter().find(|person| person.name == view.who.name))
}

fn edit<T>(view: &View, change: impl FnOnce(&mut Person) -> Result<T, String>) -> Result<T, Fault> {
    let path = view.site.access.people().ok_or_else(|| Fault::missing("there are no people here"))?;
    if view.who.is_read_only {
        return Err(Fault::forbidden());
    }
    People::edit(path, |people| change(people.person(&view.who.name)?)).map_err(Fault::wrong)
}
