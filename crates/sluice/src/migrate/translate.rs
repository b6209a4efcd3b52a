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
use super::tables;
use super::translation::{Shape, Translation};
use super::{access, doors, people, reasons, ways};

/// Translates a configuration.
pub fn translate(folder: &Path, parameters: &Parameters, services: &[Service]) -> Draft {
    let (draft, done) = (Draft::default(), BTreeSet::new());
    let (lookups, has_way, has_recipients) = (Vec::new(), false, false);
    let mut translation = Translation { folder, parameters, services, draft, done, lookups, has_way, has_recipients };
    all(&mut translation);
    translation.draft
}

fn all(work: &mut Translation<'_>) {
    work.set(Part::Top, "hostname", "myhostname", |value| Some(json!(value)));
    if work.parameters.place("myhostname").is_none() {
        let host = work.parameters.value("myhostname");
        work.draft.key(Part::Top, "hostname", &json!(host), None);
    }
    let has_tls = tls(work);
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

/// Certificates and versions; whether a certificate is at hand.
fn tls(work: &mut Translation<'_>) -> bool {
    let minimum = |value: &str| {
        let only_3 = value.contains(">=TLSv1.3") || value.contains("!TLSv1.2");
        Some(json!(if only_3 { "1.3" } else { "1.2" }))
    };
    let protocols = ["smtpd_tls_protocols", "smtpd_tls_mandatory_protocols"];
    let strictest = protocols.into_iter().find(|name| work.parameters.is_set(name));
    protocols.iter().for_each(|name| work.done(name));
    if let Some(name) = strictest {
        work.set(Part::Tls, "minimum", name, minimum);
    }
    let chains = work.parameters.list("smtpd_tls_chain_files");
    let mut pairs: Vec<(&str, String, String)> =
        chains.iter().map(|file| ("smtpd_tls_chain_files", file.clone(), file.clone())).collect();
    work.done("smtpd_tls_chain_files");
    for kind in ["", "ec", "d"] {
        let [chain, key] = ["cert", "key"].map(|part| format!("smtpd_tls_{kind}{part}_file"));
        let (chain_file, key_file) = (work.parameters.value(&chain), work.parameters.value(&key));
        let key_file = if key_file.is_empty() || key_file.starts_with('$') { chain_file.clone() } else { key_file };
        [&chain, &key].into_iter().for_each(|name| work.done(name));
        if chain_file.is_empty() || chain_file == "none" {
            continue;
        }
        match kind {
            "" => pairs.push(("smtpd_tls_cert_file", chain_file, key_file)),
            "ec" => pairs.push(("smtpd_tls_eccert_file", chain_file, key_file)),
            _ => work.note(&chain, "certificates with DSA keys are not used any more"),
        }
    }
    let mut has_one = false;
    for (name, chain, key) in pairs {
        let [chain, key] = [chain, key].map(|file| work.folder.join(file));
        if let Some(missing) = [&chain, &key].into_iter().find(|file| std::fs::File::open(file).is_err()) {
            let why = format!("{} cannot be read here: without a certificate there is no TLS", missing.display());
            work.note(name, why);
            continue;
        }
        has_one = true;
        let place = work.place(name);
        work.draft.line(Part::Certificates, "[[tls.certificate]]");
        work.draft.key(Part::Certificates, "chain", &json!(tables::shown(&chain)), place.as_ref());
        work.draft.key(Part::Certificates, "key", &json!(tables::shown(&key)), None);
    }
    has_one
}

/// Notes lines that no other part has dealt with.
fn rest(work: &mut Translation<'_>) {
    for (place, line) in &work.parameters.void {
        work.draft.note(Some(place), line.clone(), "this line sets nothing, or a later one sets it again");
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
