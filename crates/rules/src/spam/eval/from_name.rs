//! Functions about display names that are addresses: of someone else than who the mail is from.

use super::{Arguments, Context, Function, look, truth};

/// The functions.
pub(super) const FUNCTIONS: &[Function] = &[
    look("check_fromname_spoof", spoof),
    look("check_fromname_different", |context, _| truth(state(context).address_differs)),
    look("check_fromname_domain_differ", |context, _| truth(state(context).domain_differs)),
    look("check_fromname_owners_differ", |context, _| truth(state(context).owner_differs)),
    look("check_fromname_contains_email", |context, _| truth(state(context).is_address)),
    look("check_fromname_equals_to", |context, _| truth(state(context).is_recipient)),
    look("check_fromname_equals_replyto", |context, _| truth(state(context).is_answered)),
];

/// Facts about a display name.
#[derive(Debug, Clone, Copy, Default)]
pub struct FromName {
    is_address: bool,
    address_differs: bool,
    domain_differs: bool,
    owner_differs: bool,
    is_recipient: bool,
    is_answered: bool,
}

fn spoof(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    let level = match arguments.text(0) {
        "0" => 0.0,
        "1" => 1.0,
        "2" => 2.0,
        _ => context.settings.number("fns_check", 1.0),
    };
    let state = state(context);
    let also = match level {
        0.0 => true,
        1.0 => state.owner_differs,
        _ => state.domain_differs,
    };
    truth(state.address_differs && also)
}

fn state(context: &Context<'_>) -> FromName {
    *context.from_name.get_or_init(|| find(context).unwrap_or_else(|partial| partial))
}

/// Facts about the display name; the error has those found before nothing more could be decided.
fn find(context: &Context<'_>) -> Result<FromName, FromName> {
    let mut state = FromName::default();
    for name in context.settings.all_words("fns_ignore_headers") {
        let name = String::from_utf8_lossy(name).into_owned();
        if !context.fields.get(&name).is_empty() {
            return Err(state);
        }
    }
    let from = context.fields.get("From:addr").to_ascii_lowercase();
    let from_domain = domain_of(context, &from).ok_or(state)?;
    let name = context.fields.get("From:name").to_ascii_lowercase();
    let address = address_in(&name).ok_or(state)?;
    let domain = domain_of(context, address).ok_or(state)?;
    state.is_address = true;
    let odd = |text: &[u8]| text.iter().filter(|byte| !byte.is_ascii_lowercase() && !byte.is_ascii_digit()).count();
    let rest = name.len() + odd(&name) - odd(address) - address.len();
    if rest as f64 > context.settings.number("fns_extrachars", 50.0) {
        return Err(state);
    }
    state.address_differs = *address != from[..];
    state.domain_differs = domain != from_domain;
    state.owner_differs = owner(context, address, &domain) != owner(context, &from, &from_domain);
    state.is_answered = *address == context.fields.get("Reply-To:addr").to_ascii_lowercase()[..];
    state.is_recipient = context.recipients_of().iter().any(|to| **to == *address);
    Ok(state)
}

/// The registered domain of an address.
pub(super) fn domain_of(context: &Context<'_>, address: &[u8]) -> Option<Vec<u8>> {
    let uri = [b"mailto:", address].concat();
    context.settings.reading.of_uri(&uri).map(|(_, domain)| domain)
}

/// The first mail address in a name.
fn address_in(name: &[u8]) -> Option<&[u8]> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let local = |byte: u8| word(byte) || b".!#$%&'*+/=?^`{|}~-".contains(&byte);
    let signs = name.iter().enumerate().filter(|(_, byte)| **byte == b'@').map(|(at, _)| at);
    signs.into_iter().find_map(|sign| {
        let mut start = sign;
        while start > 0 && local(name[start - 1]) {
            start -= 1;
        }
        // It begins at a border of words.
        let border = |at: usize| word(name[at]) != at.checked_sub(1).is_some_and(|before| word(name[before]));
        let start = (start..sign).find(|&at| border(at))?;
        let host = &name[sign + 1..];
        let first = host.iter().take_while(|&&byte| word(byte) || byte == b'-').count();
        let rest = host.get(first..)?.strip_prefix(b".")?;
        let mut length = rest.iter().take_while(|&&byte| word(byte) || byte == b'.' || byte == b'-').count();
        // What is taken is not given back: a border has to stand at its end.
        let end_is_word = length > 0 && word(rest[length - 1]);
        let starts = word(*host.first()?) && rest.first().is_some_and(|&byte| word(byte)) && length > 1;
        if !end_is_word {
            length = 0;
        }
        (starts && length > 0).then(|| &name[start..sign + 1 + first + 1 + length])
    })
}

/// Owner of an address: from a list, or else the first label of its domain.
fn owner(context: &Context<'_>, address: &[u8], domain: &[u8]) -> Box<[u8]> {
    let listed = |address: &[u8]| context.settings.owners.iter().find(|(_, list)| list.has(address));
    let user = address.split(|&byte| byte == b'@').next().unwrap_or_default();
    let short = [user, b"@", domain].concat();
    match listed(address).or_else(|| listed(&short)) {
        Some((owner, _)) => owner.clone(),
        None => domain.split(|&byte| byte == b'.').next().unwrap_or_default().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_names() {
        for (name, address) in [
            ("joe@example.com", Some("joe@example.com")),
            ("\"joe@example.com\" via x", Some("joe@example.com")),
            ("joe at example", None),
            ("joe@example.com.", None),
            ("joe@example", None),
        ] {
            assert_eq!(address_in(name.as_bytes()), address.map(str::as_bytes), "{name}");
        }
    }
}
