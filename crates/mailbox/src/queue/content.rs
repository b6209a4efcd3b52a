//! The content of a mail that waits.

use crate::content::Body;
use crate::outbox::place;
use crate::site::Site;

/// The content of a mail that waits.
pub(super) fn open(site: &Site, mail: u32) -> Option<Body<'_>> {
    let number = place(&site.store.state())?.1.entry(mail)?.message.get();
    Body::open(&site.store, number)
}
