//! Certificates and versions of TLS: a private key and its chain become `[[tls.certificate]]`.
//!
//! Of files in `smtpd_tls_chain_files` it is read what they hold, since a key there may have a file of its own in front of its chain.

use serde_json::json;

use super::draft::Part;
use super::tables;
use super::translation::Translation;

/// A certificate: the parameter that names it, the file of its chain and that of its key.
type Pair = (&'static str, String, String);

/// Certificates and versions; whether a certificate is at hand.
pub fn tls(work: &mut Translation<'_>) -> bool {
    versions(work);
    let mut pairs = chain_files(work);
    let has_files = !work.parameters.list("smtpd_tls_chain_files").is_empty();
    for kind in ["", "ec", "d"] {
        let [chain, key] = ["cert", "key"].map(|part| format!("smtpd_tls_{kind}{part}_file"));
        let (chain_file, key_file) = (work.parameters.value(&chain), work.parameters.value(&key));
        let key_file = if key_file.is_empty() || key_file.starts_with('$') { chain_file.clone() } else { key_file };
        [&chain, &key].into_iter().for_each(|name| work.done(name));
        if chain_file.is_empty() || chain_file == "none" {
            continue;
        }
        match kind {
            _ if has_files => work.note(&chain, "smtpd_tls_chain_files takes its place"),
            "" => pairs.push(("smtpd_tls_cert_file", chain_file, key_file)),
            "ec" => pairs.push(("smtpd_tls_eccert_file", chain_file, key_file)),
            _ => work.note(&chain, "certificates with DSA keys are not used any more"),
        }
    }
    let mut has_one = false;
    for (name, chain, key) in pairs {
        has_one |= certificate(work, name, &chain, &key);
    }
    has_one
}

fn versions(work: &mut Translation<'_>) {
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
}

/// Writes a certificate, if both of its files can be read; whether they can.
fn certificate(work: &mut Translation<'_>, name: &str, chain: &str, key: &str) -> bool {
    let [chain, key] = [chain, key].map(|file| work.folder.join(file));
    if let Some(missing) = [&chain, &key].into_iter().find(|file| std::fs::File::open(file).is_err()) {
        let why = format!("{} cannot be read here: without a certificate there is no TLS", missing.display());
        work.note(name, why);
        return false;
    }
    let place = work.place(name);
    work.draft.line(Part::Certificates, "[[tls.certificate]]");
    work.draft.key(Part::Certificates, "chain", &json!(tables::shown(&chain)), place.as_ref());
    work.draft.key(Part::Certificates, "key", &json!(tables::shown(&key)), None);
    true
}

/// The pairs of `smtpd_tls_chain_files`: keys, each in front of its chain, in as many files as one likes.
fn chain_files(work: &mut Translation<'_>) -> Vec<Pair> {
    const NAME: &str = "smtpd_tls_chain_files";
    work.done(NAME);
    let (mut pairs, mut key) = (Vec::new(), None::<String>);
    for file in work.parameters.list(NAME) {
        let held = Held::of(&file, tables::read(&work.folder.join(&file)).ok().as_deref());
        match (held, key.take()) {
            (Held::Key, _) => key = Some(file),
            (Held::Chain, Some(key)) => pairs.push((NAME, file, key)),
            (Held::Chain, None) => {
                work.note(NAME, format!("{file}: a chain is one file, and no key stands in front of this part of one"));
            }
            (Held::Both, _) => pairs.push((NAME, file.clone(), file)),
        }
    }
    if let Some(key) = key {
        work.note(NAME, format!("{key}: no certificate follows this key"));
    }
    pairs
}

/// Contents of a file in PEM.
#[derive(Debug, PartialEq, Eq)]
enum Held {
    Key,
    Chain,
    Both,
}

impl Held {
    /// By the text of a file; of one that cannot be read, by its name.
    fn of(file: &str, text: Option<&str>) -> Held {
        let is_key = |name: &str| name.to_ascii_lowercase().contains("key");
        let named = file.rsplit('/').next().is_some_and(is_key);
        let (has_key, has_chain) = match text {
            Some(text) => (text.contains("PRIVATE KEY-----"), text.contains("BEGIN CERTIFICATE-----")),
            None => (named, !named),
        };
        match (has_key, has_chain) {
            (true, true) => Held::Both,
            (true, false) => Held::Key,
            (false, _) => Held::Chain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_chain_are_known_by_their_text_or_their_name() {
        let (key, chain) = ("-----BEGIN EC PRIVATE KEY-----\n", "-----BEGIN CERTIFICATE-----\n");
        for (file, text, wanted) in [
            ("a.pem", Some(format!("{key}{chain}")), Held::Both),
            ("a.pem", Some(key.into()), Held::Key),
            ("a.key", Some(chain.into()), Held::Chain),
            ("/etc/keys/mx.pem", None, Held::Chain),
            ("/etc/ssl/mx.key", None, Held::Key),
            ("privkey.pem", None, Held::Key),
        ] {
            assert_eq!(Held::of(file, text.as_deref()), wanted, "{file} {text:?}");
        }
    }
}
