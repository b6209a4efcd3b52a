//! Memory of an inspection, by a counting allocator.

#[allow(dead_code, reason = "each test program uses its own part")]
#[path = "pipeline/build.rs"]
mod build;
mod pipeline;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use flow::{Context, In};
use inspect::{Engine, Inspection};
use scan::Database;
use stream::{Fuel, Limits, Object};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator with the caller's own arguments; only a counter is added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps `dealloc`'s contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that is held at any time while `bytes` come in pieces of 4 kB.
fn most_held(engine: &Arc<Engine>, bytes: &[u8]) -> usize {
    let before = HELD.load(Relaxed);
    let object = Object { media_type: Some("message/rfc822".into()), ..Object::default() };
    let context = Context { object, ..Context::default() };
    let mut inspection = Inspection::new(engine.clone(), context);
    let mut most = 0;
    for mut piece in bytes.chunks(4096) {
        while !piece.is_empty() {
            piece = &piece[inspection.tell(In::Feed(piece))..];
            inspection.work(&mut Fuel::unlimited());
            while inspection.hear().is_some() {}
            most = most.max(HELD.load(Relaxed) - before);
        }
    }
    most
}

fn noise(len: u32) -> Vec<u8> {
    (0..len).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

// One test, since the counter is the process's.
#[test]
fn an_inspection_holds_little_and_no_more_for_a_larger_mail() {
    let engine = Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() });
    let mut figures = Vec::new();
    // By how much the windows of a mail and its part widen, and of the form that this is sent in.
    const WIDER: usize = 3 * (2 << 10);
    // What zip keeps of each archive for the reading by its directory, in memory that grows by doubling.
    const KEPT: usize = 2 * 2 * (1 << 20);
    for (what, most_bytes, kept, make) in [
        ("a text", 54 << 10, 0, (|bytes| bytes) as fn(Vec<u8>) -> Vec<u8>),
        ("a gzipped attachment", 132 << 10, 0, |bytes| build::gzip(&bytes)),
        ("a zip in a zip", 128 << 10, KEPT, |bytes| build::zip("b.zip", &build::zip("b", &bytes, true), false)),
    ] {
        let small = most_held(&engine, &build::mail("a", &make(noise(300_000)), 0));
        let large = most_held(&engine, &build::mail("a", &make(noise(6_000_000)), 0));
        println!("{what}: {small} bytes, {large} for one of twenty times its size");
        figures.push((what, small, large, most_bytes, kept));
    }
    for (what, small, large, most_bytes, kept) in figures {
        assert!(large <= most_bytes + kept, "{what}: {large} bytes");
        assert!(large <= small + 4096 + WIDER + kept, "{what}: {small} bytes, {large} for a larger one");
    }
}
