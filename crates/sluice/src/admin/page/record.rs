//! The audit log: changes that were made by the pages, the HTTP interface and commands, the newest first.

use webmail::Reply;
use webmail::html::put;

use super::frame::{View, all, cell, end, table, text};
use crate::admin::work::record;
use crate::audit::trail::FROM;

/// The page.
pub fn show(view: &View) -> Reply {
    view.worked("Audit log", "/changes", |page| {
        let found = record::list(view.site, view.who)?;
        put!(page, "<h1>Audit log</h1>");
        if all(&found["changes"]).is_empty() {
            put!(page, "<p>Nothing was changed yet.</p>");
            return Ok(());
        }
        table(page, "Changes, the newest first", &["Time", "Who", "Role", "From", "By", "Change", "Of", "Outcome"]);
        for one in all(&found["changes"]) {
            put!(page, "<tr>");
            cell(page, "Time", &text(&one["time"]).replace('T', " ").replace('Z', " UTC"));
            cell(page, "Who", text(&one["who"]));
            cell(page, "Role", text(&one["role"]));
            cell(page, "From", text(&one["from"]));
            let by = match (one["from"] == FROM, one["is_program"] == true) {
                (true, _) => "a command",
                (false, true) => "a program",
                (false, false) => "a browser",
            };
            cell(page, "By", by);
            cell(page, "Change", text(&one["what"]));
            cell(page, "Of", text(&one["on"]));
            cell(
                page,
                "Outcome",
                one["failed"].as_str().map_or("done", |why| if why.is_empty() { "failed" } else { why }),
            );
            put!(page, "</tr>");
        }
        end(page);
        Ok(())
    })
}
