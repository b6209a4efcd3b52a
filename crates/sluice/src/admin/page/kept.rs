//! The quarantine: a list that can be narrowed, one message, and what becomes of those that are chosen.
//!
//! Of a message its facts and its header are shown, as text; the whole can be saved, never opened here.

use std::io::Read as _;

use clap::ValueEnum as _;
use edge::quarantine::{Kept, read};
use serde_json::json;
use webmail::Form;
use webmail::html::{Html, Text, put};

use super::frame::{View, term};
use crate::admin::fault::Fault;
use crate::admin::role::{Right, Who};
use crate::admin::site::Site;
use crate::cli::Selection;
use crate::cli::values::Stage;
use crate::quarantine::place::header;
use crate::quarantine::release::{DELETED, RELEASED, release};

/// Rows of a page.
const ROWS_MAX: usize = 100;

/// Bytes of a message that can be saved here: it is held.
const SAVED_BYTES_MAX: u64 = 64 << 20;

/// Selection that a form describes.
pub fn selection(form: &Form) -> Selection {
    let text = |name: &str| Some(form.get(name).trim().to_owned()).filter(|text| !text.is_empty());
    let state = text("state").and_then(|name| Stage::from_str(&name, false).ok());
    Selection { from: text("from"), to: text("to"), found: text("found"), state, ..Selection::default() }
}

/// Messages that are meant, the newest first, and how many there are.
pub fn meant(site: &Site, selection: &Selection, count_max: usize) -> Result<(Vec<Kept>, usize), String> {
    let mut all: Vec<Kept> = site.place.meant(selection).map_err(|error| error.to_string())?.collect();
    let count = all.len();
    all.reverse();
    all.truncate(count_max);
    Ok((all, count))
}

/// Writes the list.
pub fn list(page: &mut Html, view: &View) {
    put!(page, "<h1>Quarantine</h1>");
    narrow(page, &view.call.query);
    let (all, count) = match meant(view.site, &selection(&view.call.query), ROWS_MAX) {
        Ok(found) => found,
        Err(error) => return put!(page, "<p class=\"told wrong\" role=\"alert\">", Text(&error), "</p>"),
    };
    if all.is_empty() {
        return put!(page, "<p>No messages.</p>");
    }
    view.form(page, "action=\"/kept\"");
    actions(page, view);
    put!(
        page,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Messages\"><table class=\"list\"><caption class=\"skip\">Messages, the newest first</caption><thead><tr>"
    );
    put!(
        page,
        "<th class=\"check\" scope=\"col\"><span class=\"skip\">Choose</span></th><th class=\"from\" scope=\"col\">From</th>"
    );
    put!(
        page,
        "<th scope=\"col\">To</th><th scope=\"col\">Found</th><th class=\"from\" scope=\"col\">Date</th><th class=\"date\" scope=\"col\">State</th></tr></thead><tbody>"
    );
    for kept in &all {
        row(page, kept);
    }
    put!(
        page,
        "</tbody></table></div></form><p class=\"soft\">",
        count,
        if count == 1 { " message" } else { " messages" }
    );
    if count > all.len() {
        put!(page, ", of which the newest ", all.len(), " are shown");
    }
    put!(page, ".</p>");
}

fn narrow(page: &mut Html, query: &Form) {
    put!(page, "<form action=\"/kept\" class=\"bar\" role=\"search\">");
    for (name, label) in [("from", "From"), ("to", "To"), ("found", "Found")] {
        put!(
            page,
            "<label>",
            label,
            " <input name=\"",
            name,
            "\" size=\"14\" value=\"",
            Text(query.get(name)),
            "\"></label> "
        );
    }
    put!(page, "<label>State <select name=\"state\">");
    for (value, label) in [("", "any"), ("held", "held"), ("partly", "partly released"), ("released", "released")] {
        put!(
            page,
            "<option value=\"",
            value,
            if query.get("state") == value { "\" selected>" } else { "\">" },
            label,
            "</option>"
        );
    }
    put!(page, "</select></label> <button>Show</button></form>");
}

fn actions(page: &mut Html, view: &View) {
    if !view.who.may(Right::Release) {
        return;
    }
    put!(page, "<p class=\"bar\"><button name=\"do\" value=\"release\">Release</button> ");
    put!(
        page,
        "<button name=\"do\" value=\"delete\">Delete</button> <span class=\"soft\">Released: delivered to its recipients, as it is.</span></p>"
    );
}

fn row(page: &mut Html, kept: &Kept) {
    let facts = &kept.facts;
    let found = facts.found.first().map_or("", String::as_str);
    put!(page, "<tr><td class=\"check\"><input type=\"checkbox\" name=\"id\" value=\"", Text(&facts.id));
    put!(
        page,
        "\" aria-label=\"Choose ",
        Text(&facts.id),
        "\"></td><td class=\"from\"><a href=\"/kept/",
        Text(&facts.id),
        "\"><bdi>"
    );
    put!(
        page,
        Text(if facts.envelope.from.is_empty() { "<>" } else { &facts.envelope.from }),
        "</bdi></a></td><td><bdi>"
    );
    put!(
        page,
        Text(&recipients(kept).join(", ")),
        "</bdi></td><td>",
        Text(found),
        "</td><td class=\"from\">",
        Text(&facts.date)
    );
    put!(page, "</td><td class=\"date\">", facts.state().name(), "</td></tr>");
}

fn recipients(kept: &Kept) -> Vec<&str> {
    let mailbox = kept.facts.mailbox.iter().map(|mailbox| mailbox.user.as_str());
    kept.facts.envelope.to.iter().map(|recipient| recipient.address.as_str()).chain(mailbox).collect()
}

/// Writes the page of one message.
pub fn show(page: &mut Html, view: &View, kept: &Kept) {
    let facts = &kept.facts;
    put!(page, "<h1>Message ", Text(&facts.id), "</h1><dl class=\"head\">");
    term(page, "State", facts.state().name());
    term(page, "Date", &facts.date);
    term(page, "Client", &format!("{} ({})", facts.client, facts.hello));
    facts.account.iter().for_each(|account| term(page, "Account", account));
    term(page, "From", if facts.envelope.from.is_empty() { "<>" } else { &facts.envelope.from });
    term(page, "To", &recipients(kept).join(", "));
    facts.found.iter().for_each(|found| term(page, "Found", found));
    term(page, "Listener", &facts.listener);
    term(page, "Next hop", &facts.hop);
    term(page, "Size", &super::plot::bytes(kept.bytes as f64));
    for release in &facts.releases {
        term(
            page,
            "Released",
            &format!("{} to {} for {}: {}", release.date, release.hop, release.to.join(" "), release.reply),
        );
    }
    put!(page, "</dl>");
    if view.who.may(Right::Release) {
        view.form(page, "action=\"/kept\" class=\"bar\"");
        put!(
            page,
            "<input type=\"hidden\" name=\"id\" value=\"",
            Text(&facts.id),
            "\"><button name=\"do\" value=\"release\">Release</button> "
        );
        put!(page, "<button name=\"do\" value=\"delete\">Delete</button> ");
        put!(
            page,
            "<a class=\"button\" href=\"/kept/",
            Text(&facts.id),
            "/mail\" download>Save the message</a></form>"
        );
    }
    put!(page, "<h2>Header</h2><pre dir=\"ltr\" tabindex=\"0\">");
    match header(kept) {
        Ok(lines) => lines.iter().for_each(|line| put!(page, Text(line), "\n")),
        Err(error) => put!(page, Text(&error.to_string())),
    }
    put!(page, "</pre>");
}

/// The whole message, to be saved; none if it is too large to be held.
pub fn mail(kept: &Kept) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    if kept.bytes > SAVED_BYTES_MAX {
        return None;
    }
    read(&kept.mail()).ok()?.take(SAVED_BYTES_MAX).read_to_end(&mut content).ok()?;
    Some(content)
}

/// Counts of messages.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub done: usize,
    pub failed: usize,
}

/// Releases or deletes messages by their ids; each is noted. Waits: called where a thread may.
///
/// # Errors
/// Without the right.
pub fn act(site: &Site, who: &Who, what: Act, ids: &[&str]) -> Result<Done, Fault> {
    if !who.may(Right::Release) {
        return Err(Fault::forbidden());
    }
    let mut outcome = Done::default();
    for id in ids {
        let work = || {
            let done = site.place.one(id).map_err(|error| error.to_string()).and_then(|kept| one(site, what, kept));
            done.map(|()| json!({ "id": id })).map_err(|text| Fault { status: 502, text })
        };
        match site.change(who, Right::Release, what.past(), id, work) {
            Ok(_) => outcome.done += 1,
            Err(_) => outcome.failed += 1,
        }
    }
    Ok(outcome)
}

/// Action on a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Release,
    Delete,
}

impl Act {
    /// By the name that forms give it.
    pub fn named(name: &str) -> Option<Act> {
        match name {
            "release" => Some(Act::Release),
            "delete" => Some(Act::Delete),
            _ => None,
        }
    }

    fn past(self) -> &'static str {
        match self {
            Act::Release => RELEASED,
            Act::Delete => DELETED,
        }
    }
}

fn one(site: &Site, what: Act, mut kept: Kept) -> Result<(), String> {
    if what == Act::Delete {
        return kept.delete().map_err(|error| error.to_string());
    }
    let route = site.place.route(&kept, None).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let outcome = runtime.block_on(release(&mut kept, &route, &site.place.config.hostname, false));
    let refused = outcome.map_err(|error| error.to_string())?.refused;
    match refused.first() {
        None => Ok(()),
        Some((address, reply)) => Err(format!("<{address}>: {reply}")),
    }
}
