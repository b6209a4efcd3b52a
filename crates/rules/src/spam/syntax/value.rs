//! Values of settings, by kind.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::words;
use crate::spam::problem::{Fault, shown};

/// Form of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Any text.
    Text,
    /// 0, 1, no or yes.
    Switch,
    /// A number.
    Number,
    /// A key and what belongs to it.
    Pairs,
    /// Addresses or names with globs, one at least; in a list of a name, that stands before them in parentheses.
    Addresses,
    /// A line of a text.
    Template,
    /// Nothing.
    Bare,
    /// Words.
    Words,
    /// Networks.
    Networks,
    /// A time.
    Duration,
}

/// The value of a setting.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text as it stands.
    Text(Box<[u8]>),
    /// On or off.
    Switch(bool),
    /// A number.
    Number(f64),
    /// A key and what belongs to it.
    Pair(Box<[u8]>, Box<[u8]>),
    /// Words or addresses.
    Words(Vec<Box<[u8]>>),
    /// Networks.
    Networks(Vec<Network>),
    /// Seconds.
    Seconds(f64),
    /// The setting has no value.
    Bare,
}

/// Hosts with a common prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// The first address.
    pub address: IpAddr,
    /// The bits that are the same.
    pub prefix_bits: u8,
    /// `!`: these are left out, although a network that follows has them.
    pub excluded: bool,
}

impl Form {
    /// The kind that a table calls `name`.
    pub fn from_name(name: &str) -> Option<Form> {
        Some(match name {
            "text" => Form::Text,
            "switch" => Form::Switch,
            "number" => Form::Number,
            "pairs" => Form::Pairs,
            "addresses" => Form::Addresses,
            "template" => Form::Template,
            "bare" => Form::Bare,
            "words" => Form::Words,
            "networks" => Form::Networks,
            "duration" => Form::Duration,
            _ => return None,
        })
    }

    /// Reads the value of the setting `name`.
    pub fn read(self, name: &str, text: &[u8]) -> Result<Value, Fault> {
        let missing = || Fault::new("the value is missing", "write one behind the setting, or leave the line away");
        let may_be_empty = matches!(self, Form::Bare | Form::Template) || MAY_BE_EMPTY.contains(&name);
        if text.is_empty() && !may_be_empty {
            return Err(missing());
        }
        let value = match self {
            Form::Text | Form::Template => Value::Text(text.into()),
            Form::Bare if text.is_empty() || name == "clear_util_rb" => Value::Bare,
            Form::Bare => return Err(Fault::new("the setting takes no value", "take away what stands behind it")),
            Form::Switch => Value::Switch(switch(text)?),
            Form::Number => Value::Number(number(text)?),
            Form::Duration => Value::Seconds(seconds(text)?),
            Form::Pairs => {
                let (key, rest) = super::word(text);
                Value::Pair(key.into(), rest.into())
            }
            Form::Words | Form::Addresses => Value::Words(words(text).map(Into::into).collect()),
            Form::Networks => Value::Networks(networks(text)?),
        };
        if TAKE_TWO.contains(&name) && words(text).count() < 2 {
            return Err(missing());
        }
        fitting(name, text)?;
        Ok(value)
    }
}

/// Settings whose value may be missing.
const MAY_BE_EMPTY: [&str; 4] =
    ["freemail_domains", "freemail_welcomelist", "clear_uridnsbl_skip_domain", "clear_url_shortener"];
/// Settings that take two words at least: a list of a name and what is in it, an address and who sends for it.
const TAKE_TWO: [&str; 4] =
    ["enlist_addrlist", "enlist_uri_host", "welcomelist_from_rcvd", "def_welcomelist_from_rcvd"];
/// Settings that take a few words only.
const CHOICES: [(&str, &[&str]); 5] = [
    ("authres_networks", &["internal", "trusted", "all"]),
    ("lock_method", &["nfssafe", "flock", "win32"]),
    ("report_safe", &["0", "1", "2"]),
    ("dns_available", &["yes", "no", "test", "1", "0"]),
    ("bayes_auto_learn_on_error", &["0", "1", "yes", "no"]),
];

fn fitting(name: &str, text: &[u8]) -> Result<(), Fault> {
    if name.starts_with("enlist_") {
        let named = text.first() == Some(&b'(') && text.contains(&b')');
        return if named { Ok(()) } else { Err(Fault::new("the list has no name", "write (NAME) before its entries")) };
    }
    let Some((_, choices)) = CHOICES.iter().find(|(choice, _)| *choice == name) else { return Ok(()) };
    let word = text.split(|&byte| byte == b':' || byte.is_ascii_whitespace()).next().unwrap_or_default();
    if choices.iter().any(|choice| choice.as_bytes() == word) {
        return Ok(());
    }
    Err(Fault::new(
        format!("{name} cannot be {:?}", shown(text)),
        "take one of the values that its documentation lists",
    ))
}

fn switch(text: &[u8]) -> Result<bool, Fault> {
    match text {
        b"0" | b"no" => Ok(false),
        b"1" | b"yes" => Ok(true),
        _ => Err(Fault::new(format!("{:?} is neither on nor off", shown(text)), "write 0 or 1")),
    }
}

fn number(text: &[u8]) -> Result<f64, Fault> {
    let number =
        core::str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| b"-+.0123456789".contains(&byte)));
    let number = number.and_then(|text| text.parse::<f64>().ok()).filter(|number| number.is_finite());
    number.ok_or_else(|| Fault::new(format!("{:?} is no number", shown(text)), "write digits"))
}

fn seconds(text: &[u8]) -> Result<f64, Fault> {
    let fault =
        || Fault::new(format!("{:?} is no time", shown(text)), "write seconds, or a number with s, m, h, d or w");
    let (digits, unit) = match text.split_last() {
        Some((unit, digits)) if unit.is_ascii_alphabetic() => (digits.trim_ascii_end(), unit.to_ascii_lowercase()),
        _ => (text, b's'),
    };
    let unit = match unit {
        b's' => 1.0,
        b'm' => 60.0,
        b'h' => 3600.0,
        b'd' => 86400.0,
        b'w' => 604_800.0,
        _ => return Err(fault()),
    };
    Ok(number(digits).map_err(|_| fault())? * unit)
}

fn networks(text: &[u8]) -> Result<Vec<Network>, Fault> {
    words(text)
        .map(|word| {
            let advice = "write addresses, 10.0.0.0/8, 10. or 2001:db8::/32, with ! before what is left out";
            network(word).ok_or_else(|| Fault::new(format!("{:?} is no network", shown(word)), advice))
        })
        .collect()
}

/// `10.0.0.0/8`, `10.0.0.0/255.0.0.0`, `10.`, `[2001:db8::]/32`, each with `!` before it.
fn network(word: &[u8]) -> Option<Network> {
    let text = core::str::from_utf8(word).ok()?;
    let (excluded, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
    let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
    let address = address.strip_prefix('[').and_then(|address| address.strip_suffix(']')).unwrap_or(address);
    let (address, bits) = match address.parse::<IpAddr>() {
        Ok(address) => (address, if address.is_ipv4() { 32 } else { 128 }),
        Err(_) => partial(address).map(|(address, bits)| (IpAddr::V4(address), bits))?,
    };
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    let prefix_bits = match prefix {
        None => bits,
        Some(prefix) => prefix.parse::<u8>().ok().or_else(|| mask(prefix))?,
    };
    (prefix_bits <= bits_max).then_some(Network { address, prefix_bits, excluded })
}

/// `10.2.` is `10.2.0.0/16`, and so is `10.2` before a slash.
fn partial(text: &str) -> Option<(Ipv4Addr, u8)> {
    let mut octets = [0; 4];
    let mut count = 0;
    for part in text.strip_suffix('.').unwrap_or(text).split('.') {
        *octets.get_mut(count)? = part.parse::<u8>().ok()?;
        count += 1;
    }
    (count < 4).then(|| (octets.into(), u8::try_from(count * 8).unwrap_or(32)))
}

fn mask(text: &str) -> Option<u8> {
    let mask = u32::from(text.parse::<Ipv4Addr>().ok()?);
    let bits = mask.leading_ones();
    (bits.checked_add(mask.trailing_zeros())? >= 32).then(|| u8::try_from(bits).unwrap_or(32))
}

impl Network {
    /// Whether `address` is in it; an address of IPv4 in IPv6 is one of IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(address) => (32, u128::from(u32::from(address))),
            IpAddr::V6(address) => (128, u128::from(address)),
        };
        let canonical = |address: IpAddr| match address {
            IpAddr::V6(six) => Ipv6Addr::to_ipv4_mapped(&six).map_or(address, IpAddr::V4),
            four => four,
        };
        let ((width, ours), (width_theirs, theirs)) = (bits(self.address), bits(canonical(address)));
        let shift = u32::from(width - self.prefix_bits.min(width));
        width == width_theirs && ours.checked_shr(shift).unwrap_or(0) == theirs.checked_shr(shift).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_kind() {
        let read = |form: Form, text: &str| form.read("x", text.as_bytes());
        assert_eq!(read(Form::Switch, "yes"), Ok(Value::Switch(true)));
        assert_eq!(read(Form::Number, "-1.5"), Ok(Value::Number(-1.5)));
        assert_eq!(read(Form::Duration, "5m"), Ok(Value::Seconds(300.0)));
        assert_eq!(read(Form::Pairs, "a b  c"), Ok(Value::Pair(b"a"[..].into(), b"b  c"[..].into())));
        for (form, text) in [
            (Form::Switch, "2"),
            (Form::Switch, "maybe"),
            (Form::Number, "abc"),
            (Form::Number, "inf"),
            (Form::Duration, "foo"),
            (Form::Addresses, ""),
            (Form::Pairs, ""),
            (Form::Networks, "300.1.1.1"),
            (Form::Networks, "foo"),
            (Form::Networks, "10.0.0.0/33"),
        ] {
            assert!(read(form, text).is_err(), "{text}");
        }
        assert!(Form::Number.read("report_safe", b"3").is_err());
        assert!(Form::Addresses.read("enlist_addrlist", b"FOO a@b").is_err());
        assert!(Form::Text.read("dns_available", b"test: a.example").is_ok());
    }

    #[test]
    fn networks_hold_their_addresses() {
        let network = |text: &str| network(text.as_bytes()).unwrap();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(network("10.2.").contains(address("10.2.3.4")));
        assert!(!network("10.2.").contains(address("10.3.3.4")));
        assert!(network("10.0.0.0/255.0.0.0").contains(address("10.3.3.4")));
        assert!(network("2001:db8::/32").contains(address("2001:db8:1::1")));
        assert!(network("[2001:db8::]/32").contains(address("2001:db8:1::1")));
        assert!(network("192.0.2.1").contains(address("::ffff:192.0.2.1")));
        assert!(network("0.0.0.0/0").contains(address("192.0.2.1")));
        assert!(!network("0.0.0.0/0").contains(address("2001:db8::1")));
        assert!(network("!10.0.0.0/8").excluded);
    }
}
