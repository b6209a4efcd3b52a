//! Options about a flow as a whole: its protocols, its addresses, and how much its sides have sent.

use super::buffer::{App, Direction};
use super::head;
use super::lexer::{items, text};
use super::rule::{Condition, StreamSide, Transport};
use super::values::sizes;

/// Reads `app-layer-protocol`; none where it is about a protocol that nothing here speaks.
pub(super) fn app(value: &[u8]) -> Result<Option<Condition>, String> {
    let mut list = items(value);
    let first = text(list.next().unwrap_or_default());
    let name = first.trim_start_matches('!').trim();
    let is_negated = name.len() < first.len();
    for mode in list {
        match mode {
            b"final" | b"either" | b"to_server" | b"to_client" => {}
            // Protocols before a change are not kept.
            b"original" => return Ok(None),
            _ => return Err(format!("{} is not known", text(mode))),
        }
    }
    let apps = match name {
        "failed" => vec![App::Other],
        "unknown" => return Ok(None),
        _ => match head::apps_of(name).ok_or_else(|| format!("{name} is no protocol"))? {
            apps if apps == [App::Other] && !is_negated => return Ok(None),
            apps if apps == [App::Other] => Vec::new(),
            apps => apps,
        },
    };
    Ok(Some(Condition::App { apps, is_negated }))
}

/// Reads `stream_size`.
pub(super) fn stream(value: &[u8]) -> Result<Condition, String> {
    let list: Vec<&[u8]> = items(value).collect();
    let (side, size) = match list[..] {
        [side, order, bytes] => (side, [order, bytes].concat()),
        // Snort 3 has the size in front.
        [size, side] => (side, size.to_vec()),
        [size] => (&b"either"[..], size.to_vec()),
        _ => return Err("needs a side, an order and a number".into()),
    };
    let side = match side {
        b"server" | b"to_client" => StreamSide::One(Direction::ToClient),
        b"client" | b"to_server" => StreamSide::One(Direction::ToServer),
        b"both" => StreamSide::Both,
        b"either" => StreamSide::Either,
        _ => return Err(format!("{} is no side", text(side))),
    };
    Ok(Condition::Stream { side, size: sizes(&size)? })
}

/// Reads `ip_proto`; none where it means neither TCP nor UDP.
pub(super) fn carried(value: &[u8]) -> Result<Option<Condition>, String> {
    let value = text(value);
    let name = value.trim_start_matches(['!', '<', '>', '=', ' ']).to_ascii_lowercase();
    let number = NUMBERS.iter().find(|(known, _)| *known == name).map(|(_, number)| number.to_string());
    let order = value.get(..value.len() - name.len()).unwrap_or_default();
    let sizes = sizes(format!("{}{}", order.trim(), number.unwrap_or(name)).as_bytes())?;
    let can_hold = [Transport::Tcp, Transport::Udp].into_iter().any(|transport| sizes.has(transport.number()));
    Ok(can_hold.then_some(Condition::Carried(sizes)))
}

/// Protocols that IP carries.
const NUMBERS: [(&str, u8); 10] = [
    ("icmp", 1),
    ("igmp", 2),
    ("tcp", 6),
    ("udp", 17),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("ipv6-icmp", 58),
    ("icmpv6", 58),
    ("sctp", 132),
];
