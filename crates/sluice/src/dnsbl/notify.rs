//! Tells secondaries that a zone has changed (RFC 1996). One packet each; a secondary that misses it looks by itself when
//! the zone's refresh time is over.

use std::net::UdpSocket;
use std::sync::Arc;

use ::dnsbl::zone::Zones;
use proto::dns::{Writer, class, flag, kind, opcode};

use super::shared::Shared;

/// Tells of zones whose serial number is not what it was.
pub fn tell(shared: &Arc<Shared>, before: &Zones) {
    if shared.settings.notify.is_empty() {
        return;
    }
    let (zones, generation) = shared.zones();
    let changed = zones.zones().iter().filter(|zone| {
        let old = before.zones().iter().find(|old| old.name == zone.name);
        let serial = |zone: &::dnsbl::zone::Zone| zone.soa.as_ref().map(|(_, soa)| soa.serial);
        serial(zone).is_some() && serial(zone) != old.and_then(serial)
    });
    for zone in changed {
        let mut packet = Vec::new();
        let id = u16::try_from(generation & 0xffff).unwrap_or(0);
        let mut writer = Writer::new(&mut packet, 512, id, u16::from(opcode::NOTIFY) << 11 | flag::AA);
        writer.question(zone.name.as_wire(), kind::SOA, class::IN);
        for secondary in &shared.settings.notify {
            let from = if secondary.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
            let sent = UdpSocket::bind(from).and_then(|socket| socket.send_to(&packet, secondary));
            if let Err(error) = sent {
                tracing::warn!(%secondary, %error, "not notified");
            }
        }
    }
}
