//! From Postfix's configuration to one of Sluice: what is the same is set, and all else is noted.
//!
//! Two shapes are made: a mail server, whose recipients are accounts of the store and whose queue relays, and a gateway, where all domains
//! are relayed to one next hop while the client waits.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;

use super::draft::{Draft, Part};
use super::parameters::Parameters;
use super::services::Service;
use super::translation::{Shape, Translation, told};
use super::{access, certificates, doors, people, reasons, ways};

/// Translates a configuration.
pub fn translate(folder: &Path, parameters: &Parameters, services: &[Service]) -> Draft {
    let (draft, done) = (Draft::default(), BTreeSet::new());
    let (lookups, has_way, has_recipients) = (Vec::new(), false, false);
    let mut translation = Translation { folder, parameters, services, draft, done, lookups, has_way, has_recipients };
    all(&mut translation);
    translation.draft
}

fn all(work: &mut Translation<'_>) {
    // What an option of a service names is in use.
    for (_, _, value) in work.services.iter().flat_map(|service| &service.options) {
        work.parameters.expanded(value);
    }
    work.set(Part::Top, "hostname", "myhostname", |value| Some(json!(value)));
    if work.parameters.place("myhostname").is_none() {
        let host = work.parameters.value("myhostname");
        work.draft.key(Part::Top, "hostname", &json!(host), None);
    }
    let has_tls = certificates::tls(work);
    let has_insiders = !access::inside(work).is_empty();
    let shape = ways::shape(work, has_insiders);
    match &shape {
        Shape::Server => {
            let at = json!("/var/lib/sluice/store");
            work.draft.key(Part::Store, "folder", &at, None);
            ways::relay(work);
            let relayed = ways::relayed(work);
            if !relayed.is_empty() {
                people::relayed(work, &relayed, false);
            }
            people::accounts(work);
        }
        Shape::Gateway(_) => people::of_gateway(work),
    }
    ways::queue(work, &shape);
    access::trust(work);
    doors::listeners(work, &shape, has_tls);
    rest(work);
}

/// Notes lines that no other part has dealt with.
fn rest(work: &mut Translation<'_>) {
    for (place, name, value) in &work.parameters.void {
        let line = if value.is_empty() { name.clone() } else { told(name, value) };
        work.draft.note(Some(place), line, "this line sets nothing, or a later one sets it again");
    }
    let names: Vec<String> = work.parameters.all().map(|(name, _, _)| name.to_owned()).collect();
    let parameters = work.parameters;
    for name in names.iter().filter(|name| parameters.is_endless(name)) {
        work.note(
            name,
            "the value names itself: Postfix does not start with it, and it is used here as far as it goes",
        );
    }
    for name in names.iter().filter(|name| !work.done.contains(*name)).cloned().collect::<Vec<_>>() {
        let value = work.parameters.value(&name);
        let is_empty = value.is_empty() || value == "0" && name.ends_with("_limit");
        match reasons::reason(&name) {
            Some(None) => {}
            _ if is_empty => {}
            None if work.parameters.is_named(&name) => {}
            Some(Some(why)) => work.note(&name, why),
            None => work.note(&name, "there is no such setting"),
        }
    }
}
