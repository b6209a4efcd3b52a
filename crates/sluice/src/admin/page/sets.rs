//! Signatures and rules, their updates, and certificates.

use serde_json::Value;
use webmail::Reply;
use webmail::html::{Html, Text, put};

use super::frame::{View, all, cell, date, end, table, term, text};
use super::plot::{bytes, count};
use crate::admin::role::Right;
use crate::admin::work::sets;

const HERE: &str = "/rules";

/// The page.
pub fn show(view: &View) -> Reply {
    view.worked("Signatures and rules", HERE, |page| {
        let found = sets::list(view.site, view.who)?;
        put!(page, "<h1>Signatures and rules</h1><dl class=\"head\">");
        let in_force = &found["in_force"];
        let signatures = in_force["signatures"].as_f64().map_or_else(|| "not known".into(), count);
        term(page, "Signatures in force", &signatures);
        term(page, "Newest was built", &date(in_force["built"].as_f64().map(|seconds| seconds as i64)));
        put!(page, "</dl>");
        files(page, &found["signatures"]);
        updates(page, view, &found["update"]);
        rules(page, all(&found["rules"]));
        certificates(page, view);
        Ok(())
    })
}

fn files(page: &mut Html, found: &Value) {
    put!(page, "<h2>Files of signatures</h2>");
    if let Some(why) = found["failed"].as_str() {
        return put!(page, "<p class=\"told wrong\">", Text(why), "</p>");
    }
    if all(&found["files"]).is_empty() {
        return put!(page, "<p>None: only the built-in test signatures are in force.</p>");
    }
    table(page, "Files of signatures", &["File", "Version", "Built", "Changed", "Size"]);
    for one in all(&found["files"]) {
        put!(page, "<tr>");
        cell(page, "File", text(&one["file"]));
        cell(page, "Version", &one["version"].as_u64().map_or_else(|| "-".into(), |version| version.to_string()));
        cell(page, "Built", &date(one["built"].as_i64()));
        cell(page, "Changed", &date(one["modified"].as_i64()));
        cell(page, "Size", &size(&one["bytes"]));
        put!(page, "</tr>");
    }
    end(page);
}

fn updates(page: &mut Html, view: &View, found: &Value) {
    put!(page, "<h2>Updates</h2>");
    let Some(folder) = found["folder"].as_str() else {
        return put!(
            page,
            "<p>Another program keeps the signatures up to date, or nobody: no folder is set in [update].</p>"
        );
    };
    put!(page, "<p>Into <bdi>", Text(folder), "</bdi>.</p>");
    if !all(&found["files"]).is_empty() {
        table(page, "Last outcome for each file", &["File", "From", "Last outcome", "Changed there"]);
        for one in all(&found["files"]) {
            put!(page, "<tr>");
            cell(page, "File", text(&one["file"]));
            cell(page, "From", text(&one["from"]));
            cell(page, "Last outcome", &outcome(one));
            cell(page, "Changed there", text(&one["last_modified"]));
            put!(page, "</tr>");
        }
        end(page);
    }
    run(page, &found["run"]);
    if view.who.may(Right::Change) {
        view.form(page, "action=\"/rules\" class=\"bar\"");
        put!(page, "<button name=\"do\" value=\"update\">Update now</button></form>");
    }
}

fn outcome(one: &Value) -> String {
    match one["failures"].as_u64().unwrap_or(0) {
        0 => "right".into(),
        failures => format!("failed {failures} times, asked again from {}", date(one["not_before"].as_i64())),
    }
}

fn run(page: &mut Html, run: &Value) {
    let Some(begun) = run["begun"].as_str() else { return };
    if run["is_running"] == true {
        return put!(page, "<p class=\"told\">An update is under way, since ", Text(begun), ".</p>");
    }
    let (class, word) = match run["is_right"] == true {
        true => ("<p class=\"told\">", "Done"),
        false => ("<p class=\"told wrong\">", "Failed"),
    };
    put!(
        page,
        class,
        word,
        " at ",
        Text(text(&run["ended"])),
        ":</p><pre dir=\"ltr\" tabindex=\"0\">",
        Text(text(&run["output"])),
        "</pre>"
    );
}

fn rules(page: &mut Html, found: &[Value]) {
    put!(page, "<h2>Rules and lists</h2>");
    if found.is_empty() {
        return put!(page, "<p>None are configured.</p>");
    }
    table(page, "Rules and lists", &["For", "Place", "Files", "Newest was changed", "Size"]);
    for one in found {
        put!(page, "<tr>");
        cell(page, "For", text(&one["kind"]));
        cell(page, "Place", text(&one["path"]));
        cell(page, "Files", &one["files"].to_string());
        cell(page, "Newest was changed", &date(one["modified"].as_i64()));
        cell(page, "Size", &size(&one["bytes"]));
        put!(page, "</tr>");
    }
    end(page);
}

fn certificates(page: &mut Html, view: &View) {
    put!(page, "<h2>Certificates</h2>");
    let found = match sets::certificates(view.site, view.who) {
        Ok(found) => found,
        Err(fault) => return put!(page, "<p class=\"told wrong\">Not known: ", Text(&fault.text), "</p>"),
    };
    if all(&found["certificates"]).is_empty() {
        return put!(page, "<p>None are configured.</p>");
    }
    table(page, "Certificates", &["Name", "Expires"]);
    for one in all(&found["certificates"]) {
        put!(page, "<tr>");
        cell(page, "Name", text(&one["name"]));
        cell(page, "Expires", &date(one["expires"].as_i64()));
        put!(page, "</tr>");
    }
    end(page);
}

/// Begins an update.
pub fn update(view: &View) -> Reply {
    match sets::update(view.site, view.who) {
        Ok(_) => Reply::see("/rules?told=begun"),
        Err(fault) => view.failed(&fault, HERE),
    }
}

fn size(value: &Value) -> String {
    value.as_u64().map_or_else(|| "-".into(), |count| bytes(count as f64))
}
