//! Domains, and the records that the DNS has to have for one of them.

use serde_json::Value;
use webmail::Reply;
use webmail::html::{Html, Text, put};

use super::frame::{View, all, cell, end, escaped, field, table, text};
use crate::admin::role::Right;
use crate::admin::work::domains::{self, New};

const HERE: &str = "/domains";

/// The list.
pub fn list(view: &View) -> Reply {
    view.worked("Domains", HERE, |page| {
        let found = domains::list(view.site, view.who)?;
        let all = all(&found["domains"]);
        put!(page, "<h1>Domains</h1>");
        if all.is_empty() {
            put!(
                page,
                "<p>No domains: those of accounts with a domain in their names are listed, and those with keys.</p>"
            );
        } else {
            table(page, "Domains", &["Domain", "Accounts", "DKIM keys"]);
            for one in all {
                let name = text(&one["domain"]);
                put!(
                    page,
                    "<tr><th scope=\"row\"><a href=\"/domain?name=",
                    Text(&escaped(name)),
                    "\">",
                    Text(name),
                    "</a></th>"
                );
                cell(page, "Accounts", yes(&one["has_accounts"]));
                cell(page, "DKIM keys", yes(&one["has_keys"]));
                put!(page, "</tr>");
            }
            end(page);
        }
        if view.who.may(Right::Change) {
            put!(page, "<section class=\"card narrow\"><h2>Add a domain</h2>");
            view.form(page, "action=\"/domains\" class=\"wide\"");
            field(
                page,
                "Domain",
                "domain",
                "autocomplete=\"off\" autocapitalize=\"none\" maxlength=\"253\" required",
                "",
            );
            put!(page, "<button class=\"main-button\">Make its keys, and show its records</button></form></section>");
        }
        Ok(())
    })
}

/// One domain: its records, as they are and as they have to be.
pub fn show(view: &View) -> Reply {
    view.worked("Domain", HERE, |page| {
        let found = domains::check(view.site, view.who, view.call.query.get("name"))?;
        put!(page, "<h1>", Text(text(&found["domain"])), "</h1>");
        let wrong =
            all(&found["records"]).iter().filter(|one| ["missing", "other"].contains(&text(&one["state"]))).count();
        match wrong {
            0 => put!(page, "<p class=\"told\">No record is missing or other than it has to be.</p>"),
            count => put!(
                page,
                "<p class=\"told wrong\">",
                count,
                " records are missing, or other than they have to be.</p>"
            ),
        }
        records(page, all(&found["records"]));
        put!(page, "<p class=\"soft\">Asked of the DNS just now.</p>");
        Ok(())
    })
}

fn records(page: &mut Html, records: &[Value]) {
    table(page, "Records", &["State", "Name", "Type", "Data", "In the DNS"]);
    for one in records {
        put!(page, "<tr>");
        let state = text(&one["state"]);
        cell(page, "State", if state.is_empty() { "-" } else { state });
        cell(page, "Name", text(&one["name"]));
        cell(page, "Type", text(&one["type"]));
        cell(page, "Data", text(&one["data"]));
        cell(
            page,
            "In the DNS",
            match state {
                "right" => "the same",
                "missing" => "nothing",
                _ => text(&one["found"]),
            },
        );
        put!(page, "</tr>");
    }
    end(page);
}

/// Adds a domain.
pub fn add(view: &View) -> Reply {
    let new = New { domain: view.call.form.get("domain").into() };
    match domains::add(view.site, view.who, &new) {
        Ok(done) => Reply::see(&format!("/domain?name={}", escaped(text(&done["domain"])))),
        Err(fault) => view.failed(&fault, HERE),
    }
}

fn yes(value: &Value) -> &'static str {
    if value == true { "yes" } else { "-" }
}
