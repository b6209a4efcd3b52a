//! The queue: mails that wait to go out, one of them with its recipients and their last answers, and what can be done with them.

use serde_json::Value;
use webmail::html::{Html, Text, put};
use webmail::{Form, Reply};

use super::frame::{View, all, cell, end, hidden, table, term, text};
use crate::admin::role::Right;
use crate::admin::work::queue::{self, request};

/// Rows of a page.
const ROWS_MAX: usize = 200;

const HERE: &str = "/queue";

/// Actions by their names, the labels of their buttons, and the word that tells the outcome.
const ACTIONS: [(&str, &str, &str); 5] = [
    ("retry", "Try now", "retried"),
    ("hold", "Hold", "held"),
    ("release", "Release", "released"),
    ("bounce", "Give up, and tell the sender", "bounced"),
    ("delete", "Delete without a notice", "deleted"),
];

/// The list.
pub fn list(view: &View) -> Reply {
    view.worked("Queue", HERE, |page| {
        put!(page, "<h1>Queue</h1>");
        narrow(page, &view.call.query);
        let found = queue::list(view.site, view.who, &request(&view.call.query)?)?;
        let (mails, count) = (all(&found["mails"]), found["count"].as_u64().unwrap_or(0));
        if mails.is_empty() {
            put!(page, "<p>No mail waits.</p>");
            return Ok(());
        }
        view.form(page, "action=\"/queue\"");
        actions(page, view);
        table(page, "Mails that wait", &["Choose", "Mail", "From", "To", "Since", "Next", "Why"]);
        mails.iter().take(ROWS_MAX).for_each(|mail| row(page, mail));
        end(page);
        put!(page, "</form><p class=\"soft\">", count, if count == 1 { " mail" } else { " mails" });
        if mails.len() > ROWS_MAX || count > mails.len() as u64 {
            put!(page, ", of which ", ROWS_MAX.min(mails.len()), " are shown");
        }
        put!(page, ".</p>");
        Ok(())
    })
}

fn narrow(page: &mut Html, query: &Form) {
    put!(page, "<form action=\"/queue\" class=\"bar\" role=\"search\">");
    let fields = [
        ("sender", "Sender"),
        ("recipient", "Recipient"),
        ("domain", "Domain"),
        ("reason", "Reason"),
        ("age", "Older than (4h, 2d)"),
    ];
    for (name, label) in fields {
        put!(
            page,
            "<label>",
            label,
            " <input name=\"",
            name,
            "\" size=\"12\" value=\"",
            Text(query.get(name)),
            "\"></label> "
        );
    }
    let checked = if query.get("held") == "1" { " checked" } else { "" };
    put!(
        page,
        "<label><input type=\"checkbox\" name=\"held\" value=\"1\"",
        checked,
        "> held</label> <button>Show</button></form>"
    );
}

fn actions(page: &mut Html, view: &View) {
    if !view.who.may(Right::Change) {
        return;
    }
    put!(page, "<p class=\"bar\">");
    for (name, label, _) in ACTIONS {
        put!(page, "<button name=\"do\" value=\"", name, "\">", label, "</button> ");
    }
    put!(page, "</p>");
}

fn row(page: &mut Html, mail: &Value) {
    let id = mail["id"].to_string();
    let recipients = all(&mail["recipients"]);
    let first = |name: &str| recipients.first().map_or("", |one| text(&one[name]));
    put!(page, "<tr><td data-label=\"Choose\"><input type=\"checkbox\" name=\"id\" value=\"", Text(&id));
    put!(
        page,
        "\" aria-label=\"Choose mail ",
        Text(&id),
        "\"></td><th scope=\"row\"><a href=\"/queue/",
        Text(&id),
        "\">"
    );
    put!(page, Text(&id), "</a></th>");
    cell(page, "From", &address(text(&mail["from"])));
    let more = if recipients.len() > 1 { format!(", and {} more", recipients.len() - 1) } else { String::new() };
    cell(page, "To", &format!("{}{more}", first("to")));
    cell(page, "Since", &when(text(&mail["since"])));
    cell(page, "Next", &next(mail, first("next")));
    cell(page, "Why", first("why"));
    put!(page, "</tr>");
}

/// One mail.
pub fn show(view: &View, id: &str) -> Reply {
    view.worked("Mail in the queue", HERE, |page| {
        let mail = queue::one(view.site, view.who, id)?;
        put!(page, "<h1>Mail ", Text(id), "</h1><dl class=\"head\">");
        term(page, "From", &address(text(&mail["from"])));
        term(page, "Account", text(&mail["account"]));
        term(page, "Since", &when(text(&mail["since"])));
        term(page, "State", if mail["held"] == true { "held" } else { "waits" });
        term(page, "Sender was warned", if mail["warned"] == true { "yes" } else { "no" });
        if let Some(envid) = mail["envid"].as_str() {
            term(page, "Envelope id", envid);
        }
        put!(page, "</dl>");
        if view.who.may(Right::Change) {
            view.form(page, "action=\"/queue\"");
            hidden(page, "id", id);
            actions(page, view);
            put!(page, "</form>");
        }
        put!(page, "<h2>Recipients that do not have it yet</h2>");
        table(page, "Recipients", &["To", "Tries", "Last answer", "Next", "Host rests until"]);
        for one in all(&mail["recipients"]) {
            put!(page, "<tr>");
            cell(page, "To", text(&one["to"]));
            cell(page, "Tries", &one["tries"].to_string());
            cell(page, "Last answer", if text(&one["why"]).is_empty() { "none yet" } else { text(&one["why"]) });
            cell(page, "Next", &next(&mail, text(&one["next"])));
            cell(page, "Host rests until", &when(text(&one["host_rests_until"])));
            put!(page, "</tr>");
        }
        end(page);
        Ok(())
    })
}

/// Does what a form says with the mails that it names.
pub fn act(view: &View) -> Reply {
    let form = &view.call.form;
    let Some((action, _, told)) = ACTIONS.iter().find(|(name, ..)| *name == form.get("do")) else {
        return Reply::see("/queue?told=none");
    };
    let (mut done, mut failed) = (0, None);
    for id in form.all("id") {
        match queue::act(view.site, view.who, action, id) {
            Ok(_) => done += 1,
            Err(fault) => failed = Some(fault),
        }
    }
    match (done, failed) {
        (0, None) => Reply::see("/queue?told=none"),
        (_, None) => Reply::see(&format!("/queue?told={told}")),
        (0, Some(fault)) => view.failed(&fault, HERE),
        (_, Some(_)) => Reply::see("/queue?told=part"),
    }
}

fn address(text: &str) -> String {
    if text.is_empty() { "<>".into() } else { text.into() }
}

/// The time of a mail for people: without the seconds.
fn when(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(11..16)) {
        (Some(day), Some(clock)) => format!("{day} {clock} UTC"),
        _ => "-".into(),
    }
}

fn next(mail: &Value, at: &str) -> String {
    if mail["held"] == true { "held".into() } else { when(at) }
}
