//! Extensions that a door of SMTP or LMTP offers.

use std::net::SocketAddr;
use std::time::SystemTime;

use proto::smtp::{Extensions, FutureRelease, Mechanisms};

use crate::net::listening::network_address;
use crate::porch::door::Door;
use crate::settings::{Auth, Forward, ListenerTls, SmtpListener};

/// Extensions offered to a client: ours, as far as the next hop permits.
pub fn offered(door: &Door, settings: &SmtpListener, client: SocketAddr, encrypted: bool) -> Extensions {
    let listener = &door.listener;
    let may_log_in = match listener.auth() {
        Auth::Off => false,
        Auth::Tls => encrypted,
        Auth::Any => true,
    };
    let ours = listener.content.message_bytes_max;
    let hop = match listener.hop.forward {
        Forward::Maildir(_) | Forward::Discard => {
            Extensions { eight_bit_mime: true, smtputf8: true, ..Extensions::default() }
        }
        // The store is part of this program: what it offers is known before it answers.
        Forward::Store => door.route.facts.extensions().unwrap_or(Extensions {
            eight_bit_mime: true,
            smtputf8: true,
            dsn: true,
            require_tls: true,
            ..Extensions::default()
        }),
        // Of a hop that has not been spoken to yet, what nearly all of them do is expected.
        _ => door.route.facts.extensions().unwrap_or(Extensions { eight_bit_mime: true, ..Extensions::default() }),
    };
    let size = match (ours, hop.size.unwrap_or(0)) {
        (0, theirs) => theirs,
        (ours, 0) => ours,
        (ours, theirs) => ours.min(theirs),
    };
    // The store tells accounts and insiders alone what becomes of their mails: strangers may have forged their addresses.
    let later = hop.future_release.filter(|_| may_log_in);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.ok().and_then(|since| i64::try_from(since.as_secs()).ok()).unwrap_or(0);
    let is_for_strangers = listener.hop.forward == Forward::Store
        && listener.auth() == Auth::Off
        && !settings.relays_for(network_address(client));
    Extensions {
        pipelining: true,
        size: Some(size),
        eight_bit_mime: hop.eight_bit_mime,
        smtputf8: hop.smtputf8,
        chunking: true,
        enhanced_status_codes: true,
        dsn: hop.dsn && !is_for_strangers,
        starttls: matches!(listener.place.tls, ListenerTls::Offer | ListenerTls::Require),
        future_release: later.map(|hop| FutureRelease::within(hop.seconds_max, now)),
        // Of other next hops it is not known whether mail goes to them as that asks for.
        require_tls: encrypted && hop.require_tls && listener.hop.forward == Forward::Store,
        auth: if may_log_in { hop.auth } else { Mechanisms::NONE },
        xforward: settings.xforward_from.iter().any(|trusted| trusted.means(network_address(client))),
        xclient: settings.xclient_from.iter().any(|trusted| trusted.means(network_address(client))),
    }
}
