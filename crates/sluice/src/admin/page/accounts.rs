//! Accounts: a list, one account with what can be changed of it, and the question before one is removed.

use serde_json::Value;
use webmail::Reply;
use webmail::html::{Html, Text, put};

use super::frame::{View, all, cell, date, end, escaped, field, hidden, table, term, text};
use super::plot::bytes;
use crate::admin::fault::{Fault, Outcome};
use crate::admin::role::Right;
use crate::admin::work::accounts::{self, New, Password, Settings};

/// Rows of a page.
const ROWS_MAX: usize = 500;

const HERE: &str = "/accounts";

/// The list, and the form that adds one.
pub fn list(view: &View) -> Reply {
    view.worked("Accounts", HERE, |page| {
        let found = accounts::list(view.site, view.who)?;
        let wanted = view.call.query.get("q").trim().to_lowercase();
        let is_meant = |one: &&Value| {
            let mut names = all(&one["aliases"]).iter().chain([&one["name"]]);
            wanted.is_empty() || names.any(|name| text(name).contains(&wanted))
        };
        let meant: Vec<&Value> = all(&found["accounts"]).iter().filter(is_meant).collect();
        put!(page, "<h1>Accounts</h1>");
        search(page, &wanted);
        if let Some(why) = found["store"].as_str() {
            put!(page, "<p class=\"told wrong\">Sizes and logins are not known: ", Text(why), "</p>");
        }
        rows(page, &meant);
        if view.who.may(Right::Change) {
            add_form(page, view);
        }
        Ok(())
    })
}

fn search(page: &mut Html, wanted: &str) {
    put!(page, "<form action=\"/accounts\" class=\"bar\" role=\"search\"><label>Name or address ");
    put!(page, "<input type=\"search\" name=\"q\" value=\"", Text(wanted), "\"></label> <button>Show</button></form>");
}

fn rows(page: &mut Html, meant: &[&Value]) {
    if meant.is_empty() {
        return put!(page, "<p>No accounts.</p>");
    }
    table(page, "Accounts by name", &["Account", "Mails", "Size", "Quota", "Last login", "Aliases", "State"]);
    for one in meant.iter().take(ROWS_MAX) {
        let name = text(&one["name"]);
        put!(page, "<tr><th scope=\"row\"><a href=\"/account?name=", Text(&escaped(name)), "\"><bdi>", Text(name));
        put!(page, "</bdi></a></th>");
        cell(page, "Mails", &one["messages"].as_u64().map_or_else(|| "-".into(), |count| count.to_string()));
        cell(page, "Size", &size(&one["bytes"]));
        cell(page, "Quota", &quota(&one["quota_bytes"]));
        cell(page, "Last login", &date(one["last_login"].as_i64()));
        cell(page, "Aliases", &aliases(one).join(" "));
        cell(page, "State", state(one));
        put!(page, "</tr>");
    }
    end(page);
    put!(page, "<p class=\"soft\">", meant.len(), if meant.len() == 1 { " account" } else { " accounts" });
    if meant.len() > ROWS_MAX {
        put!(page, ", of which ", ROWS_MAX, " are shown");
    }
    put!(page, ".</p>");
}

fn add_form(page: &mut Html, view: &View) {
    put!(page, "<section class=\"card narrow\"><h2>Add an account</h2>");
    view.form(page, "action=\"/accounts\" class=\"wide\"");
    field(
        page,
        "Name, which is its address",
        "name",
        "autocomplete=\"off\" autocapitalize=\"none\" maxlength=\"255\" required",
        "",
    );
    field(page, "Password, of 8 characters at least; empty: one is made", "password", NEW_PASSWORD, "");
    field(page, "Quota in MB; empty: none", "quota", QUOTA, "");
    field(
        page,
        "Other addresses, with blanks between them; @DOMAIN is all of a domain",
        "aliases",
        "autocomplete=\"off\"",
        "",
    );
    put!(page, "<button class=\"main-button\" name=\"do\" value=\"add\">Add</button></form></section>");
}

const NEW_PASSWORD: &str = "type=\"password\" autocomplete=\"new-password\" minlength=\"8\" maxlength=\"1024\"";
const QUOTA: &str = "inputmode=\"decimal\" pattern=\"[0-9]{1,9}([.][0-9]{1,6})?\" autocomplete=\"off\"";

/// One account.
pub fn show(view: &View) -> Reply {
    view.worked("Account", HERE, |page| {
        let one = accounts::one(view.site, view.who, view.call.query.get("name"))?;
        let name = text(&one["name"]);
        put!(page, "<h1><bdi>", Text(name), "</bdi></h1><dl class=\"head\">");
        term(page, "State", state(&one));
        term(page, "Mails", &one["messages"].as_u64().map_or_else(|| "-".into(), |count| count.to_string()));
        term(page, "Size", &size(&one["bytes"]));
        term(page, "Quota", &quota(&one["quota_bytes"]));
        term(page, "Last login", &date(one["last_login"].as_i64()));
        if let Some(door) = one["door"].as_str() {
            term(page, "By", door);
        }
        term(page, "Aliases", &aliases(&one).join(" "));
        if one["has_second_step"] == true {
            term(page, "Second step", "set up");
        }
        if let Some(count @ 1..) = one["passkeys"].as_u64() {
            term(page, "Passkeys", &count.to_string());
        }
        put!(page, "</dl>");
        if view.who.may(Right::Password) {
            password_form(page, view, name);
        }
        if view.who.may(Right::Change) {
            settings_form(page, view, &one);
            switch_form(page, view, &one);
        }
        Ok(())
    })
}

fn password_form(page: &mut Html, view: &View, name: &str) {
    put!(page, "<section class=\"card narrow\"><h2>Password</h2>");
    view.form(page, "action=\"/accounts\" class=\"wide\"");
    hidden(page, "name", name);
    field(page, "New password, of 8 characters at least; empty: one is made", "password", NEW_PASSWORD, "");
    put!(page, "<button name=\"do\" value=\"password\">Set the password</button></form></section>");
}

fn settings_form(page: &mut Html, view: &View, one: &Value) {
    put!(page, "<section class=\"card narrow\"><h2>Quota and aliases</h2>");
    view.form(page, "action=\"/accounts\" class=\"wide\"");
    hidden(page, "name", text(&one["name"]));
    field(page, "Quota in MB; empty: none", "quota", QUOTA, &megabytes(&one["quota_bytes"]));
    let label = "Other addresses, with blanks between them; @DOMAIN is all of a domain";
    field(page, label, "aliases", "autocomplete=\"off\"", &aliases(one).join(" "));
    put!(page, "<button name=\"do\" value=\"set\">Save</button></form></section>");
}

fn switch_form(page: &mut Html, view: &View, one: &Value) {
    let name = text(&one["name"]);
    put!(page, "<section class=\"card narrow\"><h2>Disable or remove</h2>");
    view.form(page, "action=\"/accounts\" class=\"bar\"");
    hidden(page, "name", name);
    if one["has_second_step"] == true || one["passkeys"].as_u64() > Some(0) {
        put!(page, "<button name=\"do\" value=\"reset\">Take second step and passkeys away</button> ");
    }
    match one["is_disabled"] == true {
        true => put!(page, "<button name=\"do\" value=\"enable\">Let it log in again</button>"),
        false => put!(page, "<button name=\"do\" value=\"disable\">Disable: nobody logs in, mail comes in</button>"),
    }
    put!(
        page,
        " <a class=\"button\" href=\"/account/remove?name=",
        Text(&escaped(name)),
        "\">Remove…</a></form></section>"
    );
}

/// The question before an account is removed.
pub fn remove(view: &View) -> Reply {
    view.worked("Remove an account", HERE, |page| {
        if !view.who.may(Right::Change) {
            return Err(Fault::forbidden());
        }
        let one = accounts::one(view.site, view.who, view.call.query.get("name"))?;
        let name = text(&one["name"]);
        put!(
            page,
            "<h1>Remove <bdi>",
            Text(name),
            "</bdi>?</h1><p>Nobody can log in any more, and mail for it is refused. "
        );
        put!(page, "Its mail stays in the store: an account that is added with this name has it again.</p>");
        view.form(page, "action=\"/accounts\" class=\"bar\"");
        hidden(page, "name", name);
        put!(page, "<button class=\"main-button\" name=\"do\" value=\"remove\">Remove</button> ");
        put!(page, "<a class=\"button\" href=\"/account?name=", Text(&escaped(name)), "\">Keep it</a></form>");
        Ok(())
    })
}

/// Does what a form says.
pub fn act(view: &View) -> Reply {
    let form = &view.call.form;
    let name = form.get("name").trim();
    let (site, who) = (view.site, view.who);
    let password = || Some(form.get("password").to_owned());
    let set = |settings| accounts::set(site, who, name, settings);
    let switch = |is_disabled| set(Settings { is_disabled: Some(is_disabled), ..Settings::default() });
    let outcome = match form.get("do") {
        "add" => read_quota(form.get("quota")).and_then(|quota_bytes| {
            let aliases = read_aliases(form.get("aliases"));
            accounts::add(site, who, New { name: name.into(), password: password(), quota_bytes, aliases })
        }),
        "password" => accounts::set_password(site, who, name, Password { password: password() }),
        "set" => read_quota(form.get("quota")).and_then(|quota| {
            let aliases = Some(read_aliases(form.get("aliases")));
            set(Settings { quota_bytes: Some(quota), aliases, is_disabled: None })
        }),
        "disable" => switch(true),
        "enable" => switch(false),
        "reset" => accounts::reset_second(site, who, name),
        "remove" => accounts::remove(site, who, name),
        _ => Err(Fault::missing("there is no such action")),
    };
    answered(view, name, form.get("do"), outcome)
}

fn answered(view: &View, name: &str, what: &str, outcome: Outcome) -> Reply {
    let path = format!("/account?name={}", escaped(name));
    match outcome {
        Err(fault) => view.failed(&fault, HERE),
        Ok(done) => match done["password"].as_str() {
            Some(password) => {
                let mut page = Html::default();
                put!(page, "<h1>Password of <bdi>", Text(name), "</bdi></h1><p>It is shown this once:</p>");
                put!(
                    page,
                    "<pre dir=\"ltr\">",
                    Text(password),
                    "</pre><p><a href=\"",
                    Text(&path),
                    "\">To the account</a></p>"
                );
                view.page("Password", HERE, page)
            }
            None if what == "remove" => Reply::see("/accounts?told=removed"),
            None => Reply::see(&format!("{path}&told=kept")),
        },
    }
}

/// Bytes of a number of megabytes.
fn read_quota(text: &str) -> Result<u64, Fault> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(0);
    }
    let number = text.parse::<f64>().ok().filter(|number| (0.0..1e9).contains(number));
    number.map(|number| (number * 1e6).round() as u64).ok_or_else(|| Fault::wrong("the quota is not a number of MB"))
}

fn megabytes(value: &Value) -> String {
    match value.as_u64() {
        None | Some(0) => String::new(),
        Some(bytes) => format!("{}", bytes as f64 / 1e6),
    }
}

fn read_aliases(text: &str) -> Vec<String> {
    text.split([' ', ',', '\r', '\n', '\t']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn aliases(one: &Value) -> Vec<&str> {
    all(&one["aliases"]).iter().map(text).collect()
}

fn size(value: &Value) -> String {
    value.as_u64().map_or_else(|| "-".into(), |count| bytes(count as f64))
}

fn quota(value: &Value) -> String {
    match value.as_u64() {
        None | Some(0) => "none".into(),
        Some(count) => bytes(count as f64),
    }
}

fn state(one: &Value) -> &'static str {
    if one["is_disabled"] == true { "disabled" } else { "enabled" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_go_there_and_back() {
        for (text, bytes) in [("", 0), ("0", 0), ("1", 1_000_000), (" 1073.741824 ", 1_073_741_824), ("0.5", 500_000)] {
            assert_eq!(read_quota(text), Ok(bytes));
            assert_eq!(read_quota(&megabytes(&bytes.into())), Ok(bytes));
        }
        for wrong in ["x", "-1", "1e99", "NaN", "inf", "1 GB"] {
            assert!(read_quota(wrong).is_err(), "{wrong}");
        }
    }
}
