//! Lists of recipients: sorted, alike, missing.

use crate::spam::eval::{Arguments, Context, truth};

/// How recipients follow each other.
#[derive(Debug, Clone, Copy, Default)]
pub struct Recipients {
    pub(super) are_sorted: bool,
    pub(super) similar: f64,
}

pub(super) fn recipients(context: &Context<'_>) -> Recipients {
    *context.recipients.get_or_init(|| {
        const SORTED_MIN: usize = 7;
        const SIMILAR_MIN: usize = 5;
        const LOOKED_AT_MAX: usize = 256;
        let mut all = context.fields.values("ToCc:addr").to_vec();
        if all.len() < SIMILAR_MIN {
            all.extend(context.fields.values("Bcc:addr").iter().cloned());
        }
        let mut distinct: Vec<Box<[u8]>> = Vec::new();
        for address in all.into_iter().take_while(|address| !matches!(&**address, b"" | b"0")) {
            if distinct.last().is_none_or(|last| !last.eq_ignore_ascii_case(&address)) {
                distinct.push(address);
            }
            if distinct.len() == LOOKED_AT_MAX {
                break;
            }
        }
        let are_sorted = distinct.len() >= SORTED_MIN && distinct.is_sorted();
        let similar = if distinct.len() >= SIMILAR_MIN { similarity(&distinct) } else { 0.0 };
        Recipients { are_sorted, similar }
    })
}

/// How many pairs begin alike, of their users or their hosts.
fn similarity(addresses: &[Box<[u8]>]) -> f64 {
    let start = |text: &'_ [u8]| text[..text.len().min(2)].to_vec();
    let host = |address: &[u8]| address.iter().position(|&byte| byte == b'@').map(|at| address[at + 1..].to_vec());
    let users: Vec<Vec<u8>> = addresses.iter().map(|address| start(address)).collect();
    // Addresses without a host are passed over, and those behind move up.
    let hosts: Vec<Vec<u8>> = addresses.iter().filter_map(|address| host(address)).collect();
    let (mut hits, mut pairs) = (0_u32, 0_u32);
    for first in 0..addresses.len() {
        for second in first + 1..addresses.len() {
            hits += u32::from(users[first] == users[second]);
            if let (Some(one), Some(other)) = (hosts.get(first), hosts.get(second)) {
                hits += u32::from(start(one) == start(other) && one != other);
            }
            pairs += 1;
        }
    }
    f64::from(hits) / f64::from(pairs.max(1))
}

pub(super) fn missing_to(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    truth(context.fields.get("To").is_empty() && context.fields.get("Apparently-To").is_empty())
}
