//! Names of hosts: whether they are put together as such, and in ASCII (UTS 46, RFC 3492).

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str;

/// Whether a domain is in a list: as itself, or below one that begins with a dot.
pub fn is_listed(list: &[String], domain: &str) -> bool {
    list.iter().any(|one| match one.starts_with('.') {
        true => domain.len() > one.len() && domain.ends_with(&one.to_ascii_lowercase()),
        false => one.eq_ignore_ascii_case(domain),
    })
}

/// Whether a host, in ASCII, is put together as one is: two labels at least.
pub fn is_host(host: &[u8]) -> bool {
    let end = host.iter().rposition(|byte| *byte != b'.').map_or(0, |last| last + 1);
    let host = &host[..end];
    if host.len() > 253 {
        return false;
    }
    let labels: Vec<&[u8]> = host.split(|byte| *byte == b'.').collect();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let fits = |(at, label): (usize, &&[u8])| {
        let outer = |byte: Option<&u8>| byte.is_some_and(|byte| inner(byte) && *byte != b'-');
        // Only labels below the domain may have a low line.
        let is_below = labels.len() - at > 2;
        (1..=63).contains(&label.len())
            && outer(label.first())
            && outer(label.last())
            && label.iter().all(inner)
            && (is_below || !label.contains(&b'_'))
    };
    labels.len() > 1 && labels.iter().enumerate().all(fits)
}

/// A host in ASCII: in lower case where it has nothing else than hosts have; else as UTS 46 maps it, as browsers do. If that forbids
/// it, labels in ASCII stay and others are coded as they are.
pub fn ascii(host: &[u8]) -> Vec<u8> {
    if host.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.:[]-".contains(byte)) {
        return host.to_ascii_lowercase();
    }
    let text = match str::from_utf8(host) {
        Ok(text) => text.to_owned(),
        Err(_) if host.iter().all(|byte| is_latin1_name(*byte)) => host.iter().copied().map(char::from).collect(),
        Err(_) => return host.to_ascii_lowercase(),
    };
    let dots = ['\u{2024}', '\u{3002}', '\u{ff0e}', '\u{ff61}', '\u{fe52}'];
    let text: String = text.chars().map(|c| if dots.contains(&c) { '.' } else { c }).collect();
    if let Some(name) = mapped(&text) {
        return name.into_bytes();
    }
    let labels: Option<Vec<String>> = text.split('.').map(label).collect();
    labels.map_or_else(|| text.to_ascii_lowercase().into_bytes(), |labels| labels.join(".").into_bytes())
}

/// A host with escapes (`%C2%AD`) as browsers read it: escaped bytes beyond ASCII are decoded, then it is put into ASCII. Escapes of
/// ASCII stay.
pub fn ascii_of_escaped(host: &[u8]) -> Vec<u8> {
    if !host.contains(&b'%') {
        return ascii(host);
    }
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut plain = Vec::with_capacity(host.len());
    let mut rest = host;
    while let Some((&byte, behind)) = rest.split_first() {
        let coded = digit(behind.first()).zip(digit(behind.get(1))).filter(|(high, _)| byte == b'%' && *high >= 8);
        plain.push(coded.map_or(byte, |(high, low)| (high << 4 | low) as u8));
        rest = if coded.is_some() { &behind[2..] } else { behind };
    }
    ascii(&plain)
}

/// As UTS 46 maps it: characters that are not seen are left out, wide letters are plain ones. Joiners that it forbids where they
/// stand are left out, too.
pub fn mapped(host: &str) -> Option<String> {
    let in_ascii = |host: &str| {
        let name = idna::domain_to_ascii_cow(host.as_bytes(), idna::AsciiDenyList::EMPTY);
        name.ok().map(Cow::into_owned)
    };
    in_ascii(host).or_else(|| in_ascii(&host.replace(['\u{200c}', '\u{200d}'], "")))
}

fn is_latin1_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'.' | b'-' | 0xad | 0xc0..=0xd6 | 0xd8..=0xde | 0xe0..=0xf6 | 0xf8..=0xfe)
}

/// A label in ASCII (RFC 3492), if it fits.
fn label(text: &str) -> Option<String> {
    if text.is_ascii() {
        return (1..=63).contains(&text.len()).then(|| text.to_ascii_lowercase());
    }
    let coded = punycode(&text.chars().flat_map(char::to_lowercase).collect::<Vec<char>>())?;
    (coded.len() <= 59).then(|| format!("xn--{coded}"))
}

fn punycode(characters: &[char]) -> Option<String> {
    const LABEL_MAX: usize = 63;
    if characters.len() > LABEL_MAX {
        return None;
    }
    let mut out: String = characters.iter().filter(|c| c.is_ascii()).collect();
    let basic = out.len();
    if basic > 0 {
        out.push('-');
    }
    let (mut point, mut delta, mut bias, mut done) = (128u32, 0u32, 72u32, basic);
    while done < characters.len() {
        let next = characters.iter().map(|c| u32::from(*c)).filter(|c| *c >= point).min()?;
        delta = delta.checked_add((next - point).checked_mul(u32::try_from(done).ok()? + 1)?)?;
        point = next;
        for character in characters.iter().map(|c| u32::from(*c)) {
            if character < point {
                delta = delta.checked_add(1)?;
            }
            if character != point {
                continue;
            }
            digits(&mut out, delta, bias);
            bias = adapted(delta, u32::try_from(done).ok()? + 1, done == basic);
            delta = 0;
            done += 1;
        }
        delta = delta.checked_add(1)?;
        point = point.checked_add(1)?;
    }
    Some(out)
}

/// A label as it is shown: `xn--` is decoded, all else stays.
pub fn shown(label: &str) -> String {
    label.strip_prefix("xn--").and_then(decoded).unwrap_or_else(|| label.to_owned())
}

fn decoded(coded: &str) -> Option<String> {
    let (basic, coded) = coded.rsplit_once('-').unwrap_or(("", coded));
    let mut out: Vec<char> = basic.chars().collect();
    let (mut point, mut at, mut bias) = (128u32, 0u32, 72u32);
    let mut rest = coded.bytes();
    while rest.len() > 0 {
        let (start, mut weight) = (at, 1u32);
        for step in 1u32.. {
            let digit = match rest.next()? {
                letter @ b'a'..=b'z' => u32::from(letter - b'a'),
                digit @ b'0'..=b'9' => u32::from(digit - b'0') + 26,
                _ => return None,
            };
            at = at.checked_add(digit.checked_mul(weight)?)?;
            let threshold = step.checked_mul(36)?.saturating_sub(bias).clamp(1, 26);
            if digit < threshold {
                break;
            }
            weight = weight.checked_mul(36 - threshold)?;
        }
        let count = u32::try_from(out.len()).ok()?.checked_add(1)?;
        bias = adapted(at - start, count, start == 0);
        point = point.checked_add(at / count)?;
        at %= count;
        out.insert(at as usize, char::from_u32(point)?);
        at += 1;
    }
    Some(out.into_iter().collect())
}

fn digits(out: &mut String, delta: u32, bias: u32) {
    let digit = |value: u32| b"abcdefghijklmnopqrstuvwxyz0123456789".get(value as usize).map(|byte| char::from(*byte));
    let mut rest = delta;
    for step in 1u32.. {
        let threshold = (step * 36).saturating_sub(bias).clamp(1, 26);
        if rest < threshold {
            out.extend(digit(rest));
            return;
        }
        out.extend(digit(threshold + (rest - threshold) % (36 - threshold)));
        rest = (rest - threshold) / (36 - threshold);
    }
}

fn adapted(delta: u32, count: u32, is_first: bool) -> u32 {
    let mut delta = if is_first { delta / 700 } else { delta / 2 };
    delta += delta / count;
    let mut steps = 0;
    while delta > 455 {
        delta /= 35;
        steps += 36;
    }
    steps + 36 * delta / (delta + 38)
}

/// Returns the IPv4 address of a host whose last label is a number, in any notation: one to four numbers in decimal,
/// octal or hexadecimal, of which the last fills the rest (URL Standard, "IPv4 parser"). `None` for names.
///
/// # Errors
/// The host ends in a number and is not an address.
#[allow(clippy::result_unit_err)]
pub fn ipv4(host: &str) -> Result<Option<Ipv4Addr>, ()> {
    let host = host.strip_suffix('.').unwrap_or(host);
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_hex = last.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("0x"));
    if last.is_empty() || !(is_hex || last.bytes().all(|byte| byte.is_ascii_digit())) {
        return Ok(None);
    }
    let numbers: Vec<u64> = host.split('.').map(number).collect::<Option<_>>().ok_or(())?;
    let (last, front) = numbers.split_last().ok_or(())?;
    let rest = 32_u32.saturating_sub(8 * front.len() as u32);
    if front.len() > 3 || front.iter().any(|&number| number > 255) || *last >= 1 << rest {
        return Err(());
    }
    let front = front.iter().fold(0, |sum, number| sum << 8 | number) << rest;
    Ok(Some(Ipv4Addr::from_bits((front | last) as u32)))
}

fn number(text: &str) -> Option<u64> {
    let hex = text.get(2..).filter(|_| text.as_bytes().get(..2).is_some_and(|start| start.eq_ignore_ascii_case(b"0x")));
    match (hex, text.strip_prefix('0')) {
        (Some(""), _) | (_, Some("")) => Some(0),
        (Some(hex), _) => u64::from_str_radix(hex, 16).ok().filter(|_| !hex.starts_with('+')),
        (_, Some(octal)) => u64::from_str_radix(octal, 8).ok().filter(|_| !octal.starts_with('+')),
        _ => text.parse().ok().filter(|_| !text.starts_with('+')),
    }
}

/// Whether a host is an IP address.
pub fn is_address(host: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(host) else { return false };
    let text6 = text.strip_prefix("ipv6:").unwrap_or(text);
    text.parse::<Ipv4Addr>().is_ok() || text6.parse::<Ipv6Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_however_they_are_written() {
        let local = Ok(Some(Ipv4Addr::LOCALHOST));
        for host in
            ["127.0.0.1", "2130706433", "0x7f000001", "0X7F.1", "127.1", "127.000.000.001", "0177.0.0.1", "127.0.1."]
        {
            assert_eq!(ipv4(host), local, "{host}");
        }
        assert_eq!((ipv4("0"), ipv4("0x")), (Ok(Some(Ipv4Addr::UNSPECIFIED)), Ok(Some(Ipv4Addr::UNSPECIFIED))));
        for name in ["example.org", "1.example", "a.0b", "", ".", "127.0.0.1.x"] {
            assert_eq!(ipv4(name), Ok(None), "{name}");
        }
        for wrong in
            ["1.2.3.4.5", "256.1.1.1", "1.2.3.256", "4294967296", "09.1", "a.1", "1..2", "0xg", "99999999999999999999"]
        {
            assert_eq!(ipv4(wrong), Err(()), "{wrong}");
        }
    }

    #[test]
    fn names_are_put_into_ascii() {
        assert_eq!(ascii("bücher.example".as_bytes()), b"xn--bcher-kva.example");
        assert_eq!(ascii("Россия.РФ".as_bytes()), b"xn--h1alffa9f.xn--p1ai");
        for name in ["bücher", "россия", "рф", "ab", "他们为什么不说中文", "ü"] {
            let coded = String::from_utf8(ascii(format!("{name}.example").as_bytes())).unwrap();
            assert_eq!(shown(coded.strip_suffix(".example").unwrap()), name);
        }
        for hidden in ["ev\u{ad}il", "evil\u{200b}", "\u{2060}evil", "ev\u{200d}il", "evi\u{feff}l", "ｅｖＩｌ", "𝐞𝐯𝐢𝐥"]
        {
            assert_eq!(ascii(format!("{hidden}.example").as_bytes()), b"evil.example", "{hidden:?}");
        }
        assert_eq!(ascii(b"ev\xadil.example"), b"evil.example");
        for (escaped, wanted) in [
            ("Ev%C2%ADil.example", "evil.example"),
            ("ev%e2%81%a0il%E3%80%82example", "evil.example"),
            ("b%C3%BCcher.example", "xn--bcher-kva.example"),
            ("%65vil.example", "%65vil.example"),
            ("evil.example%", "evil.example%"),
            ("evil.example%c", "evil.example%c"),
        ] {
            assert_eq!(ascii_of_escaped(escaped.as_bytes()), wanted.as_bytes(), "{escaped}");
        }
        for wrong in ["xn--", "xn--!", "xn--99999999", "xn--a-b-ü"] {
            assert!(shown(wrong).len() <= wrong.len(), "{wrong}");
        }
    }

    #[test]
    fn a_list_has_domains_and_those_below_others() {
        let list = ["example.org", ".Example.net"].map(String::from);
        for (domain, wanted) in [
            ("example.org", true),
            ("a.example.net", true),
            ("b.a.example.net", true),
            ("a.example.org", false),
            ("example.net", false),
            (".example.net", false),
            ("badexample.net", false),
            ("example.org.", false),
            ("", false),
        ] {
            assert_eq!(is_listed(&list, domain), wanted, "{domain}");
        }
    }
}
