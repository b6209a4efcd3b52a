//! Fuzz body.

use super::{Message, MessageLimits, Reading};

/// Fuzz body: a mail, with small limits. It is read the same twice, its views are bounded, and pieces of it are in it.
pub fn fuzz_message(data: &[u8]) {
    let limits =
        MessageLimits { fields_max: 50, parts_max: 40, uris_max: 50, elements_max: 60, ..MessageLimits::default() };
    let tlds = ["com", "org", "net", "uk"].iter().map(|name| name.as_bytes().into()).collect();
    let reading = Reading { tlds, body_part_scan_size: 3000, rawbody_part_scan_size: 5000, ..Reading::default() };
    let message = Message::read(data, &reading, &limits);
    assert_eq!(format!("{message:?}"), format!("{:?}", Message::read(data, &reading, &limits)));
    assert!(message.parts().len() <= limits.parts_max && message.uris().len() <= limits.uris_max);
    assert!(message.parts().iter().all(|part| part.fields.len() <= 2 * data.len() / 2 + 1));
    assert!(message.body().iter().all(|line| line.len() <= 2 * 2048));
    assert!(message.raw_body().iter().all(|piece| piece.len() <= 4096));
    assert_eq!(message.full_header().len() + message.full_body().len(), message.full().len());
}
