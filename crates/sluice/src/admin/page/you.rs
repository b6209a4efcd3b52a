//! The person who has logged in: password, passkeys, and the second step of the login.

use mailbox::totp::{Second, link};
use mailbox::webauthn::{self, Ceremony, PASSKEYS_MAX, Passkey};
use webmail::html::{Html, Text, put};
use webmail::passkey::{self, User};
use webmail::{Reply, qr};

use super::frame::{PASSKEY_TEXTS, View, date, field, hidden};
use crate::admin::access::{handle, now, origin, registration};
use crate::admin::fault::Fault;
use crate::admin::people::{People, Person};

const HERE: &str = "/you";
const CODE: &str = "inputmode=\"numeric\" autocomplete=\"one-time-code\" maxlength=\"64\" required";
const NAME: &str = "maxlength=\"60\" autocomplete=\"off\" required";
const NEW_PASSWORD: &str =
    "type=\"password\" autocomplete=\"new-password\" minlength=\"8\" maxlength=\"1024\" required";
const PASSWORD: &str = "type=\"password\" autocomplete=\"current-password\" maxlength=\"1024\" required";

/// The page.
pub fn show(view: &View) -> Reply {
    let page = view.worked("You", HERE, |page| {
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
            None => set_up(page, view, &Second::secret().map_err(Fault::away)?, !person.passkeys.is_empty()),
        }
        passkeys(page, view, &person.passkeys)?;
        put!(page, "<section class=\"card narrow\"><h2>Password</h2>");
        view.form(page, "action=\"/you\" class=\"wide\"");
        field(page, "Password of now", "password", PASSWORD, "");
        field(page, "New password, of 8 characters at least", "new", NEW_PASSWORD, "");
        put!(page, "<button name=\"do\" value=\"password\">Change it</button></form></section>");
        Ok(())
    });
    page.with_script()
}

fn set_up(page: &mut Html, view: &View, secret: &str, has_passkeys: bool) {
    let link = link(&format!("Sluice {}", view.site.hostname), &view.who.name, secret);
    put!(
        page,
        "<section class=\"card narrow\"><h2>Second step</h2><p>Scan this picture with an authenticator application, or "
    );
    put!(
        page,
        "open the link on the device that has one, or enter the secret there; then enter the code that it shows.</p><p>"
    );
    qr(page, &link, "QR code of the link");
    put!(page, "</p><p><code>", Text(secret));
    put!(page, "</code></p><p><a href=\"", Text(&link), "\">", Text(&link), "</a></p>");
    view.form(page, "action=\"/you\" class=\"wide\"");
    hidden(page, "secret", secret);
    field(page, "Password of now", "now", PASSWORD, "");
    field(page, "Code", "code", CODE, "");
    put!(page, "<button class=\"main-button\" name=\"do\" value=\"begin\">Set it up</button></form>");
    if has_passkeys {
        view.form(page, "action=\"/you\" class=\"wide\"");
        put!(page, "<p>Or let your passkeys be the second step, with recovery codes for when none is at hand.</p>");
        field(page, "Your password", "own", PASSWORD, "");
        put!(page, "<button name=\"do\" value=\"by-passkeys\">Set it up without a device</button></form>");
    }
    put!(page, "</section>");
}

fn passkeys(page: &mut Html, view: &View, all: &[Passkey]) -> Result<(), Fault> {
    put!(
        page,
        "<section class=\"card narrow\"><h2>Passkeys</h2><p class=\"soft\">A passkey of your device, or a security "
    );
    put!(page, "key, logs you in without a password. With a second step it also counts in the place of a code.</p>");
    for one in all {
        view.form(page, "action=\"/you\"");
        hidden(page, "id", &one.id.to_string());
        put!(page, "<p><bdi>", Text(&one.name), "</bdi> <span class=\"soft\">added ", Text(&date(Some(one.made))));
        put!(page, ", used ", Text(&date(one.used)), "</span> <button name=\"do\" value=\"remove-passkey\">Remove");
        put!(page, "<span class=\"skip\">: ", Text(&one.name), "</span></button></p></form>");
    }
    let made = view.site.access.challenges.make(&registration(view.session), now());
    let (challenge, handle) = (made.map_err(Fault::away)?, handle(&view.who.name));
    view.form(page, "action=\"/you\" class=\"wide\"");
    hidden(page, "do", "add-passkey");
    let known: Vec<String> = all.iter().map(Passkey::credential).collect();
    let user = User { id: &handle, name: &view.who.name };
    passkey::create(page, &challenge, user, known.iter().map(String::as_str), PASSKEY_TEXTS);
    field(page, "Device or key", "name", NAME, "");
    field(page, "Password", "proof", PASSWORD, "");
    put!(page, "<button disabled>Add it</button></form></section>");
    Ok(())
}

/// Does what a form says.
pub fn act(view: &View) -> Reply {
    if let Err(fault) = view.site.reserve() {
        return view.failed(&fault, HERE);
    }
    let form = &view.call.form;
    let (what, outcome) = match form.get("do") {
        "begin" => ("set up the second step of", view.site.access.guarded(view.who, || begin(view))),
        "by-passkeys" => ("set up the second step of", view.site.access.guarded(view.who, || by_passkeys(view))),
        "add-passkey" => ("added a passkey of", view.site.access.guarded(view.who, || add_passkey(view))),
        "remove-passkey" => ("removed a passkey of", remove_passkey(view)),
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

fn by_passkeys(view: &View) -> Result<Vec<String>, Fault> {
    edit(view, |person| {
        if person.second.is_some() || person.passkeys.is_empty() {
            return Err("it is set up already, or there is no passkey".into());
        }
        if !person.is_password(view.call.form.get("own")) {
            return Err("the password of now is wrong".into());
        }
        let (second, codes) = Second::without_device().map_err(|error| error.to_string())?;
        person.second = Some(second);
        Ok(codes)
    })
}

fn add_passkey(view: &View) -> Result<Vec<String>, Fault> {
    let (form, challenges) = (&view.call.form, &view.site.access.challenges);
    let (origin, purpose) = (origin(view.call), registration(view.session));
    edit(view, |person| {
        if !person.is_password(form.get("proof")) {
            return Err("the password is wrong".into());
        }
        let ceremony = Ceremony { challenges, purpose: &purpose, origin: &origin, now: now() };
        let credential = ceremony.register(form.get("client"), form.get("attestation"));
        let credential = credential.map_err(|why| format!("the passkey was not added: {why}"))?;
        match webauthn::add(&mut person.passkeys, form.get("name"), credential, now()) {
            true => Ok(Vec::new()),
            false => Err(format!("a passkey has a name, is added once, and a person has {PASSKEYS_MAX} of them")),
        }
    })
}

fn remove_passkey(view: &View) -> Result<Vec<String>, Fault> {
    let id = view.call.form.get("id");
    edit(view, |person| {
        let at = person.passkeys.iter().position(|one| one.id.to_string() == id).ok_or("there is no such passkey")?;
        if person.passkeys.len() == 1 && person.second.as_ref().is_some_and(|second| !second.has_device()) {
            return Err("the second step needs the last passkey: take the second step away first".into());
        }
        person.passkeys.remove(at);
        Ok(Vec::new())
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
