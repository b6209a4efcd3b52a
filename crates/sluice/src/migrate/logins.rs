//! Logins at next hops: the table of passwords is read by Sluice as it stands, and no secret goes into the configuration.

use serde_json::json;

use super::draft::Part;
use super::tables::{Contents, Entry, Table, shown};
use super::translation::Translation;

/// `smtp_sasl_password_maps` becomes `logins`.
pub fn logins(work: &mut Translation<'_>) {
    const TABLE: &str = "smtp_sasl_password_maps";
    work.done("smtp_sasl_auth_enable");
    if !work.parameters.is_yes("smtp_sasl_auth_enable") {
        if work.parameters.is_set(TABLE) {
            work.note(TABLE, "without smtp_sasl_auth_enable = yes it is not used there, and not here");
        }
        return;
    }
    let tables = work.tables(TABLE);
    let table = match tables.as_slice() {
        [table] if table.is_text() => table,
        [] => return work.note("smtp_sasl_auth_enable", "there is no smtp_sasl_password_maps: nobody logs in"),
        _ => {
            return work.note(
                TABLE,
                "logins stand in one file of text: logins in [store.queue], with lines HOST:PORT NAME:PASSWORD",
            );
        }
    };
    let of_senders = work.parameters.is_yes("smtp_sender_dependent_authentication");
    work.done("smtp_sender_dependent_authentication");
    let place = work.place(TABLE);
    work.draft.key(Part::Queue, "logins", &json!(shown(&table.path(work.folder))), place.as_ref());
    work.note(
        TABLE,
        "the file is read as it is, by the service and not by all users: chgrp sluice, chmod 640. A login goes over TLS alone, to a server \
         whose certificate is for its name",
    );
    lines(work, table, of_senders);
}

/// Notes lines that mean something else here. Their passwords are not shown.
fn lines(work: &mut Translation<'_>, table: &Table, of_senders: bool) {
    let entries = match table.read(work.folder) {
        Contents::Entries(entries) => entries,
        Contents::Unread(why) => return work.draft.note(None, table.whole.clone(), why),
        _ => Vec::new(),
    };
    for Entry { place, key, value } in entries {
        if key.contains('@') && !of_senders {
            let why = "without smtp_sender_dependent_authentication it is not used there, and here its sender logs in with it";
            work.draft.note(Some(&place), key.clone(), why);
        }
        if !value.split_once(':').is_some_and(|(name, password)| !name.is_empty() && !password.is_empty()) {
            work.draft.note(Some(&place), key, "a login is NAME:PASSWORD: the file is refused until this line is gone");
        }
    }
}
