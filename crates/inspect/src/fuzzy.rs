//! Comparison of a mail with reported mails: the sketch of its text, and digests of its attachments.
//!
//! Left out are text parts, which have the sketch, and attachments of less than [`PART_BYTES_MIN`], which are signs of mail programs
//! and firms rather than of senders.

use digest::sha256;
use flow::Fuzzy;
use flow::fuzzy::PARTS_MAX;
use learn::Sketcher;
use rules::spam::message::Message;
use rules::spam::run::Engine;

/// The smallest attachment that counts, in bytes.
pub const PART_BYTES_MIN: usize = 4_096;

/// Functions of rules that need the comparison.
const FUNCTIONS: [&str; 2] = ["check_fuzzy", "check_fuzzy_attachment"];

/// The values of a mail to compare; `None` where no rule asks, or there is too little text.
pub fn fuzzy(engine: &Engine, mail: &Message) -> Option<Fuzzy> {
    if !FUNCTIONS.iter().any(|name| engine.calls(name)) {
        return None;
    }
    let mut sketcher = Sketcher::default();
    mail.visible().iter().for_each(|line| sketcher.take(line));
    let attached = mail.parts().iter().filter(|part| !part.has_parts && !part.effective_kind().starts_with("text/"));
    let large = attached.map(|part| part.decoded()).filter(|content| content.len() >= PART_BYTES_MIN);
    let digest = |content: &[u8]| {
        let mut digest = [0; 16];
        digest.iter_mut().zip(sha256::digest(content)).for_each(|(digest, byte)| *digest = byte);
        digest
    };
    let shingles = sketcher.finish().map(|sketch| sketch.values().to_vec()).unwrap_or_default();
    let found = Fuzzy { shingles, parts: large.take(PARTS_MAX).map(digest).collect() };
    (!found.is_empty()).then_some(found)
}
