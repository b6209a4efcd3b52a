//! Rules over packets that carry their content in parts: fragments of IPv4 and IPv6, and DNS in streams.

use crate::ids::{conversation_bytes, counts, set};

/// A capture of raw packets of IP.
fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::from([0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]);
    file.extend([0; 8]);
    file.extend([65_535_u32.to_le_bytes(), 101_u32.to_le_bytes()].concat());
    for packet in packets {
        file.extend([0; 8]);
        file.extend([u32::try_from(packet.len()).expect("a packet").to_le_bytes(); 2].concat());
        file.extend(packet);
    }
    file
}

fn length(length: usize) -> [u8; 2] {
    u16::try_from(length).expect("a packet").to_be_bytes()
}

/// A fragment of IPv4.
fn part4(number: u8, offset: usize, has_more: bool, content: &[u8]) -> Vec<u8> {
    let total = length(20 + content.len());
    let place = length((offset / 8) | (usize::from(has_more) << 13));
    let head = [0x45, 0, total[0], total[1], 0, number, place[0], place[1], 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&head[..], content].concat()
}

/// A fragment of IPv6, with options in front of its head.
fn part6(number: u8, offset: usize, has_more: bool, content: &[u8]) -> Vec<u8> {
    let total = length(16 + content.len());
    let place = length(offset | usize::from(has_more));
    let addresses = [&[0xfd; 16][..], &[0xfe; 16]].concat();
    let options = [44, 0, 1, 4, 0, 0, 0, 0];
    let head = [17, 0, place[0], place[1], 0, 0, 0, number];
    [&[0x60, 0, 0, 0, total[0], total[1], 0, 64][..], &addresses, &options, &head, content].concat()
}

const RULES: &str = r#"alert udp any any -> any any (content:"needle in parts"; sid:1;)
    alert udp any any -> any any (content:"replaced"; sid:2;)"#;

#[test]
fn fragments_are_put_together_and_the_first_bytes_stay() {
    let set = set(RULES, &[]);
    let datagram = [&[4, 0, 0, 99, 0, 32, 0, 0][..], b"a needle in parts, whole"].concat();
    for part in [part4 as fn(u8, usize, bool, &[u8]) -> Vec<u8>, part6] {
        let first = part(1, 0, true, &datagram[..16]);
        let second = part(1, 16, true, &datagram[16..24]);
        let last = part(1, 24, false, &datagram[24..]);
        // It comes late, and says otherwise.
        let other = part(1, 8, true, b"replacedreplaced");
        let another = part(2, 24, false, &datagram[24..]);
        for order in
            [[&first, &second, &other, &last], [&last, &another, &second, &first], [&second, &last, &first, &first]]
        {
            let found = counts(&set, &capture(&order.map(Vec::clone)));
            assert_eq!(found.into_iter().collect::<Vec<_>>(), [(1, 1)]);
        }
        assert!(counts(&set, &capture(&[first, last])).is_empty());
    }
    // One fragment of IPv6 may be the whole packet.
    assert_eq!(counts(&set, &capture(&[part6(1, 0, false, &datagram)])).len(), 1);
}

/// A question with its length in front.
fn question(name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|label| [&length(label.len())[1..], label.as_bytes()].concat());
    let message = [&[10, 10, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], &labels.collect::<Vec<_>>(), &[0, 0, 1, 0, 1]].concat();
    [&length(message.len())[..], &message].concat()
}

#[test]
fn questions_in_streams_are_looked_at() {
    let rules = r#"alert dns any any -> any any (dns.query; content:"first.test"; bsize:10; sid:1;)
        alert dns any any -> any any (dns.query; content:"second.test"; endswith; sid:2;)
        alert tcp any any -> any any (app-layer-protocol:dns; content:"second"; sid:3;)"#;
    let set = set(rules, &[]);
    let client = [question("first.test"), question("www.second.test")].concat();
    for (port, size, wanted) in [(53, 1400, 3), (53, 1, 3), (53, 5, 3), (54, 1400, 0)] {
        assert_eq!(counts(&set, &conversation_bytes(port, &[&client, &[0, 12]], size)).len(), wanted, "{port} {size}");
    }
    // A length that no message has ends the reading; a message that is not whole is none.
    let short = [question("first.test"), vec![0, 3, 1, 2, 3], question("www.second.test")].concat();
    assert_eq!(counts(&set, &conversation_bytes(53, &[&short], 1400)).into_keys().collect::<Vec<_>>(), [1, 3]);
}
