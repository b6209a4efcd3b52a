//! Lists of recipients as users type them: IDN domains, quoted local parts, entries without a comma between them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use mime::address::{Entry, addresses};

use crate::fault::Fault;

/// Recipients of one mail.
pub const RECIPIENTS_MAX: usize = 100;

/// Names and addresses of a list that was typed.
///
/// # Errors
/// Where one is no address.
pub(crate) fn typed(list: &str) -> Result<Vec<(String, String)>, Fault> {
    let mut all = Vec::new();
    let list = separated(list).replace(SEPARATOR, ",");
    for entry in addresses(list.as_bytes(), RECIPIENTS_MAX.saturating_mul(2)) {
        let Entry::Address(address) = entry else { continue };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (local, domain) = (text(&address.local), text(&address.domain));
        if local.is_empty() && domain.is_empty() {
            match address.name {
                None => continue,
                Some(name) => return Err(Fault::Address(text(&name))),
            }
        }
        let wrong = || Fault::Address(format!("{local}@{domain}").trim_matches('@').into());
        let host = host_of(&domain).filter(|_| address.is_whole).ok_or_else(wrong)?;
        let spec = format!("{}@{host}", local_of(&local).ok_or_else(wrong)?);
        if spec.len() > 254 {
            return Err(wrong());
        }
        all.push((address.name.as_deref().map(text).unwrap_or_default(), spec));
    }
    Ok(all)
}

/// A domain in ASCII, if it can be that of an address.
fn host_of(domain: &str) -> Option<String> {
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    let host = if domain.is_ascii() { domain.into() } else { text::host::mapped(domain)? };
    (!host.is_empty() && host.chars().all(is_host)).then_some(host)
}

/// A local part as it stands before the `@`: in quotes where it needs them (RFC 5321, section 4.1.2).
fn local_of(local: &str) -> Option<String> {
    let is_atom = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
    if local.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom)) {
        return Some(local.into());
    }
    let is_printable = local.chars().all(|c| c == ' ' || c.is_ascii_graphic());
    is_printable.then(|| format!("\"{}\"", local.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// The mark between the entries of a list in [`separated`].
pub(crate) const SEPARATOR: char = '\u{1}';

/// A list that was typed with a mark between its entries: at commas, semicolons and line ends, and between two addresses without one.
pub(crate) fn separated(list: &str) -> String {
    let (mut out, mut is_quoted, mut is_escaped, mut in_angle, mut depth) =
        (String::with_capacity(list.len()), false, false, false, 0usize);
    // A word before has an `@`, and may be an address.
    let (mut has_address, mut word_has_at) = (false, false);
    for (at, c) in list.char_indices() {
        let is_outside = !is_quoted && !in_angle && depth == 0;
        let was_escaped = core::mem::take(&mut is_escaped);
        match c {
            '\\' if (is_quoted || depth > 0) && !was_escaped => is_escaped = true,
            '"' if !was_escaped && depth == 0 => is_quoted = !is_quoted,
            '(' if !is_quoted && !was_escaped => depth = depth.saturating_add(1),
            ')' if !is_quoted && !was_escaped => depth = depth.saturating_sub(1),
            '<' if is_outside => {
                in_angle = true;
                quote_name(&mut out);
            }
            '@' if is_outside => word_has_at = true,
            _ => {}
        }
        let is_end = c.is_control() || is_outside && matches!(c, ',' | ';');
        let closes = c == '>' && in_angle && !is_quoted && depth == 0;
        if is_end {
            out.push(SEPARATOR);
            (has_address, word_has_at) = (false, false);
            continue;
        }
        if closes {
            in_angle = false;
            out.push(c);
            out.push(SEPARATOR);
            (has_address, word_has_at) = (false, false);
            continue;
        }
        // The first blank behind a word: no byte is looked at twice.
        if c == ' ' && is_outside && !out.ends_with(' ') {
            has_address |= core::mem::take(&mut word_has_at);
            let next = list.get(at..).unwrap_or_default().trim_start_matches(' ');
            let word = next.split([' ', ',', ';', '<', '"', '(']).next().unwrap_or_default();
            if has_address && word.find('@').is_some_and(|at| at > 0) {
                out.push(SEPARATOR);
                has_address = false;
                continue;
            }
        }
        out.push(c);
    }
    out
}

/// Quotes the name before an address at the end of a list, if it is an address, too.
fn quote_name(list: &mut String) {
    let start = list.rfind(SEPARATOR).map_or(0, |at| at.saturating_add(SEPARATOR.len_utf8()));
    let name = list.get(start..).unwrap_or_default().trim();
    if name.contains('@') && !name.contains(['"', '\\', '(']) {
        let quoted = format!("\"{name}\" ");
        list.truncate(start);
        list.push_str(&quoted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_typed() {
        for (list, wanted) in [
            ("a@m\u{fc}ller.example", "a@xn--mller-kva.example"),
            ("\"x y\"@example.org", "\"x y\"@example.org"),
            ("\"a\\\"b\"@example.org, \"c\"@example.org", "\"a\\\"b\"@example.org c@example.org"),
            ("bob@example.org ann@example.org", "bob@example.org ann@example.org"),
            (
                "bob@example.org  ann@example.org <ann@example.org> c@example.org",
                "bob@example.org ann@example.org c@example.org",
            ),
            ("Bob <bob@example.org> Ann <ann@example.org>", "bob@example.org ann@example.org"),
            ("bob@example.org <bob@example.net>", "bob@example.net"),
            ("\"a@b c@d, e\" <x@example.org> (y@z), f@example.org (a@b c@d)", "x@example.org f@example.org"),
            ("a@b.example\nc@d.example; e@f.example,", "a@b.example c@d.example e@f.example"),
        ] {
            let found = typed(list).map(|all| all.into_iter().map(|(_, spec)| spec).collect::<Vec<_>>().join(" "));
            assert_eq!(found, Ok(wanted.into()), "{list}");
        }
    }
}
