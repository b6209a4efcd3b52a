//! The user of a proxy that asks by ICAP, as it names the user in `X-Authenticated-User` (draft-stecher-icap-subid, section 3.4):
//! Base64 of a URL such as `Local://ann`, `WinNT://DOMAIN/ann` or `LDAP://server/CN=ann,DC=a`.
//!
//! A value that is not such a URL is taken as the name itself.

use proto::http::{Fields, basic_credentials};

/// Bytes of a name.
const NAME_BYTES_MAX: usize = 255;

/// The name of the user; none where there is none, or it is too long.
pub(super) fn user(fields: &Fields) -> Option<Box<str>> {
    let said = fields.get("x-authenticated-user")?.trim_ascii();
    // As credentials of `Basic` it is Base64 of two texts with a colon between.
    let parts = basic_credentials(&[b"Basic ", said].concat());
    let decoded = parts.and_then(|(scheme, rest)| Some([&scheme, ":", std::str::from_utf8(&rest).ok()?].concat()));
    let decoded = decoded.filter(|url| url.contains("://"));
    let url = decoded.as_deref().map_or_else(|| std::str::from_utf8(said), Ok).ok()?;
    let name = url.split_once("://").map_or(url, |(scheme, rest)| match scheme.eq_ignore_ascii_case("ldap") {
        true => common_name(rest.split_once('/').map_or(rest, |(_, name)| name)),
        false => rest.rsplit(['/', '\\']).next().unwrap_or(rest),
    });
    let is_name = !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control);
    is_name.then(|| name.into())
}

/// The value of the first part of a distinguished name (RFC 4514).
fn common_name(name: &str) -> &str {
    let first = name.split(',').next().unwrap_or(name);
    first.split_once('=').map_or(first, |(_, value)| value).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_named_in_each_way_that_proxies_have() {
        let name = |said: &str| {
            let mut fields = Fields::default();
            fields.push("X-Authenticated-User", said.as_bytes());
            user(&fields)
        };
        for (coded, plain, wanted) in [
            ("TG9jYWw6Ly9hbm4=", "Local://ann", "ann"),
            ("V2luTlQ6Ly9TQ0hPT0wvYW5u", "WinNT://SCHOOL/ann", "ann"),
            ("V2luTlQ6Ly9TQ0hPT0xcYW5u", "WinNT://SCHOOL\\ann", "ann"),
            (
                "TERBUDovL2xkYXAudGVzdC9DTj1Bbm4gTGVlLE9VPXgsREM9YQ==",
                "LDAP://ldap.test/CN=Ann Lee,OU=x,DC=a",
                "Ann Lee",
            ),
            ("bGRhcDovL2xkYXAudGVzdC91aWQ9YW5u", "ldap://ldap.test/uid=ann", "ann"),
        ] {
            assert_eq!(
                [coded, plain].map(|said| name(said).unwrap_or_default()),
                [wanted, wanted].map(Into::into),
                "{plain}"
            );
        }
        assert_eq!(name("anna").as_deref(), Some("anna"), "no URL of Base64");
        assert_eq!(name("TG9jYWw6Ly8="), None);
        assert_eq!(name(&"a".repeat(256)), None);
        assert_eq!(user(&Fields::default()), None);
    }
}
