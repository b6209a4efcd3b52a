//! The configuration in force: what is set, where, and what is otherwise. Passwords are left out.

use std::path::Path;

use webmail::html::{Html, Text, put};

use crate::config::Config;
use crate::config::shown::{Entry, in_force, is_changed};
use crate::config::source::Source;
use crate::serve::reading::{BUILT_IN, FIRST_STEPS};

/// Keys in force, or what is wrong with the configuration.
pub fn entries(path: &Path) -> Result<Vec<Entry>, String> {
    let is_built_in = path == Path::new(BUILT_IN);
    let source = if is_built_in { Ok(Source::single(BUILT_IN, FIRST_STEPS)) } else { Source::read(path) };
    let set = source.and_then(|source| source.entries()).map_err(|error| error.to_string())?;
    let config = if is_built_in { Config::parse(FIRST_STEPS, BUILT_IN) } else { Config::read(path) };
    let config = config.map_err(|error| error.to_string())?;
    Ok(in_force(set, &config))
}

/// Writes the page. With `all` also keys that have their defaults.
pub fn write(page: &mut Html, path: &Path, all: bool) {
    put!(page, "<h1>Configuration</h1><p><bdi>", Text(&path.display().to_string()), "</bdi>, as it stands now. ");
    put!(page, "What the gateway runs with is that of its start, or of its last reload.</p>");
    let entries = match entries(path) {
        Ok(entries) => entries,
        Err(error) => return put!(page, "<p class=\"told wrong\" role=\"alert\">It is wrong: ", Text(&error), "</p>"),
    };
    put!(page, "<p class=\"told\">It is right.</p><p>");
    put!(
        page,
        match all {
            true => "<a href=\"/settings\">Only what is set</a>",
            false => "<a href=\"/settings?all=1\">Defaults, too</a>",
        }
    );
    put!(
        page,
        "</p><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Keys\"><table class=\"keyed\"><thead><tr><th scope=\"col\">Key</th><th scope=\"col\">Value</th><th scope=\"col\">Place</th></tr></thead><tbody>"
    );
    for entry in entries.iter().filter(|entry| all || is_changed(entry)) {
        let value = entry.words.clone().unwrap_or_else(|| entry.value.to_string());
        put!(
            page,
            "<tr><td>",
            Text(&entry.key),
            "</td><td>",
            Text(&value),
            "</td><td>",
            Text(&entry.place),
            "</td></tr>"
        );
    }
    put!(page, "</tbody></table></div>");
}
