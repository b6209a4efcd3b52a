//! The scheme `Basic` (RFC 7617): a name and a password in one word of Base64.

use alloc::string::String;
use alloc::vec::Vec;

/// The name and the password of `Authorization` or `Proxy-Authorization`; none if the value is of another scheme, or malformed.
pub fn basic_credentials(value: &[u8]) -> Option<(String, Vec<u8>)> {
    let (scheme, digits) = value.split_at_checked(value.iter().position(|&byte| byte == b' ')?)?;
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let decoded = text::base64::decode(digits.trim_ascii().iter().copied().take_while(|&digit| digit != b'='))?;
    let mut parts = decoded.splitn(2, |&byte| byte == b':');
    let (name, password) = (parts.next()?, parts.next()?);
    let name = core::str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
    Some((name.into(), password.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords_are_read() {
        let pair = |name: &str, password: &str| Some((name.into(), password.as_bytes().to_vec()));
        for (value, wanted) in [
            ("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", pair("Aladdin", "open sesame")),
            ("BASIC   YTo=", pair("a", "")),
            ("basic YTpiOmM", pair("a", "b:c")),
            ("Basic OmI=", None),
            ("Basic YQ==", None),
            ("Basic /zpi", None),
            ("Basic !", None),
            ("Basic", None),
            ("Bearer YTpiOmM", None),
            ("", None),
        ] {
            assert_eq!(basic_credentials(value.as_bytes()), wanted, "{value}");
        }
    }
}
