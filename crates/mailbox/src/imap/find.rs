//! Searches of another door: in a mailbox of an account, in turns with other accounts.

use std::sync::Arc;
use std::time::Instant;

use proto::imap::acl::Rights;
use proto::imap::search::Key;
use store::Mailbox;
use tokio::task::block_in_place;

use super::labour::Slice;
use super::render;
use super::search::Finder;
use crate::site::Site;

/// The UIDs of the messages that fit, ascending; those that were not looked at by `until` are left out.
pub(crate) async fn find(site: &Site, number: u32, mailbox: &Arc<Mailbox>, key: &Key, until: Instant) -> Vec<u32> {
    let view = render::open(number, mailbox.clone(), (true, Rights::READ), &site.recents);
    let (mut finder, mut found) = (Finder::new(site, &view), Vec::new());
    while Instant::now() < until {
        let turn = site.workers.turn(mailbox.account).await;
        let is_done = block_in_place(|| finder.go_on(key, &Slice::begin(), |message| found.push(message.uid())));
        drop(turn);
        if is_done {
            break;
        }
    }
    found
}
