//! Bytes that a zip reader held for a record that was none are read by the member that follows them.

use std::sync::Arc;

use crate::pipeline::{Drive, drive};
use flow::Policy;
use inspect::Engine;
use scan::Database;
use stream::Limits;

#[test]
fn a_record_that_is_none_hides_nothing_behind_it() {
    let engine = Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() });
    let zip = crate::build::zip("e.com", &crate::build::eicar(), true);
    for prefix in [&b"PK\x01\x02"[..], b"PK\x05\x06", b"PK\x06\x06", b"PK\x07\x08", b"junkPK\x01\x02", b"PKPK\x01\x02P"]
    {
        // The prefix straddles a window border, and every other place around it.
        for filler in 4_080..4_110 {
            let bytes = [b"MZ", &vec![b'x'; filler][..], prefix, &zip].concat();
            let how = Drive { piece: 4_096, fuel: u64::MAX, mail: false };
            let seen = drive(&engine, Policy::default(), &bytes, how);
            assert!(seen.names().contains(&"Eicar-Test-Signature"), "{prefix:?} behind {filler} bytes");
        }
    }
}

#[test]
fn nor_behind_an_archive_that_has_been_read() {
    let engine = Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() });
    let (clean, zip) =
        (crate::build::zip("a", b"clean", false), crate::build::zip("e.com", &crate::build::eicar(), true));
    for prefix in [&b"junkPK\x01\x02"[..], b"junkPK\x05\x06", b"PKPK\x01\x02P"] {
        for piece in 1..64 {
            let bytes = [&clean, prefix, &zip].concat();
            let seen = drive(&engine, Policy::default(), &bytes, Drive { piece, fuel: u64::MAX, mail: false });
            // A member of this very archive, with its own name, and not one that is found again in a gap.
            let whole = |object: &flow::ObjectReport| {
                object.parent == Some(0) && object.name.as_deref() == Some("e.com") && object.bytes == 68
            };
            assert!(seen.objects.iter().any(whole), "{prefix:?} in pieces of {piece}");
        }
    }
}

/// A gzip file can carry an archive where its own readers look at nothing.
#[test]
fn an_archive_in_the_header_of_a_compressed_stream_is_found() {
    let engine = Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() });
    let zip = crate::build::zip("e.com", &crate::build::eicar(), true);
    let mut bytes = crate::build::gzip(b"clean");
    let extra = [&(zip.len() as u16).to_le_bytes()[..], &zip].concat();
    bytes[3] |= 4;
    bytes.splice(10..10, extra);
    let seen = drive(&engine, Policy::default(), &bytes, Drive { piece: 4_096, fuel: u64::MAX, mail: false });
    assert!(seen.names().contains(&"Eicar-Test-Signature"), "{:?}", seen.names());
}
