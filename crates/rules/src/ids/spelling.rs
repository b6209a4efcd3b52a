//! Spelling of keywords: the nearest one that there is, and the keywords of protocols that nothing here speaks.
//!
//! A keyword of such a protocol loads, also one that is too new to be in the list; one that differs by a letter or two from another
//! of its protocol is taken for a mistake.

/// Letters that a misspelt word may differ by.
const LETTERS_MAX: usize = 2;
/// Bytes of words that are compared.
const WORD_BYTES_MAX: usize = 64;

/// The word that a keyword of a protocol is taken for; none where it is one itself, or is near none.
pub(super) fn mistaken(name: &str, own: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let family = |word: &str| word.split(['.', '_']).next().unwrap_or_default().to_owned();
    let of_name = family(name);
    let known = own.chain(OF_PROTOCOLS.iter().copied()).filter(|word| family(word) == of_name);
    nearest(name, known).filter(|word| distance(name, word) > 0)
}

/// The keyword nearest to a name; none where all are far.
pub(super) fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let letters = if name.len() < 6 { 1 } else { LETTERS_MAX };
    let near = known.map(|word| (distance(name, word), word)).filter(|(distance, _)| *distance <= letters);
    near.min_by_key(|(distance, _)| *distance).map(|(_, word)| word)
}

/// How many letters are to be put in, left out or replaced. Dots and underscores are one letter.
fn distance(one: &str, other: &str) -> usize {
    if one.len().abs_diff(other.len()) > LETTERS_MAX || one.len() > WORD_BYTES_MAX {
        return usize::MAX;
    }
    let letter = |byte: u8| if byte == b'_' { b'.' } else { byte.to_ascii_lowercase() };
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, left) in one.bytes().enumerate() {
        let mut before = row[0];
        row[0] = at + 1;
        for (place, right) in other.bytes().enumerate() {
            let replaced = before + usize::from(letter(left) != letter(right));
            before = row[place + 1];
            row[place + 1] = replaced.min(before + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}

/// Keywords of protocols and heads of packets, of Suricata 7 to 9 and of Snort 3, with a dot where both spellings are known.
#[rustfmt::skip]
const OF_PROTOCOLS: &[&str] = &[
    "cip_attribute", "cip_class", "cip_conn_path_class", "cip_instance", "cip_req", "cip_rsp", "cip_service",
    "cip_status", "dce_iface", "dce_opnum", "dce_stub_data", "dcerpc.iface", "dcerpc.opnum", "dcerpc.stub_data",
    "dhcp.leasetime", "dhcp.rebinding_time", "dhcp.renewal_time", "dnp3.data", "dnp3.func", "dnp3.ind", "dnp3.obj",
    "dns.additionals.rrname", "dns.answer.name", "dns.answers.rrname", "dns.authorities.rrname", "dns.opcode",
    "dns.queries.rrname", "dns.query", "dns.query.name", "dns.rcode", "dns.response.rrname", "dns.rrtype",
    "enip.capabilities", "enip.cip_attribute", "enip.cip_class", "enip.cip_extendedstatus", "enip.cip_instance",
    "enip.cip_status", "enip.device_type", "enip.identity_status", "enip.product_code", "enip.product_name",
    "enip.protocol_version", "enip.revision", "enip.serial", "enip.service_name", "enip.state", "enip.status",
    "enip.vendor_id", "enip_command", "enip_req", "enip_rsp", "ether.hdr", "flow.age", "flow.bytes",
    "flow.bytes_toclient", "flow.bytes_toserver", "flow.elephant", "flow.pkts", "flow.pkts_toclient",
    "flow.pkts_toserver", "ftp.command", "ftp.command_data", "ftp.completion_code", "ftp.dynamic_port", "ftp.mode",
    "ftp.reply", "ftp.reply_received", "ftpdata_command", "gtp_info", "gtp_type", "gtp_version", "http2.errorcode",
    "http2.frametype", "http2.header_name", "http2.priority", "http2.settings", "http2.size_update", "http2.window",
    "icmp_id", "icmp_seq", "icmpv4.hdr", "icmpv6.hdr", "icmpv6.mtu", "iec104_apci_type", "iec104_asdu_func",
    "ike.chosen_sa_attribute", "ike.exchtype", "ike.init_spi", "ike.key_exchange_payload",
    "ike.key_exchange_payload_length", "ike.nonce_payload", "ike.nonce_payload_length", "ike.resp_spi", "ike.vendor",
    "ipv4.hdr", "ipv6.hdr", "krb5.cname", "krb5.sname", "krb5.ticket_encryption", "krb5_err_code", "krb5_msg_type",
    "ldap.request.attribute_type", "ldap.request.dn", "ldap.request.operation", "ldap.responses.attribute_type",
    "ldap.responses.count", "ldap.responses.dn", "ldap.responses.message", "ldap.responses.operation",
    "ldap.responses.result_code", "mdns.additionals.rrname", "mdns.answers.rrname", "mdns.authorities.rrname",
    "mdns.queries.rrname", "mdns.response.rrname", "mms_data", "mms_func", "modbus_data", "modbus_func", "modbus_unit",
    "mqtt.connack.session_present", "mqtt.connect.clientid", "mqtt.connect.flags", "mqtt.connect.password",
    "mqtt.connect.protocol_string", "mqtt.connect.username", "mqtt.connect.willmessage", "mqtt.connect.willtopic",
    "mqtt.flags", "mqtt.protocol_version", "mqtt.publish.message", "mqtt.publish.topic", "mqtt.qos", "mqtt.reason_code",
    "mqtt.subscribe.topic", "mqtt.type", "mqtt.unsubscribe.topic", "nfs.version", "nfs_procedure", "opcua_msg_type",
    "opcua_node_id", "pgsql.query", "quic.cyu.hash", "quic.cyu.string", "quic.sni", "quic.ua", "quic.version",
    "rfb.name", "rfb.secresult", "rfb.sectype", "s7commplus_content", "s7commplus_func", "s7commplus_opcode",
    "sdp.attribute", "sdp.bandwidth", "sdp.connection_data", "sdp.email", "sdp.encryption_key",
    "sdp.media.connection_data", "sdp.media.encryption_key", "sdp.media.media", "sdp.media.media_info", "sdp.origin",
    "sdp.phone_number", "sdp.repeat_time", "sdp.session_info", "sdp.session_name", "sdp.time", "sdp.timezone",
    "sdp.uri", "sip.content_length", "sip.content_type", "sip.from", "sip.method", "sip.protocol", "sip.request_line",
    "sip.response_line", "sip.stat_code", "sip.stat_msg", "sip.to", "sip.uri", "sip.user_agent", "sip.via", "sip_body",
    "sip_header", "sip_stat_code", "smb.named_pipe", "smb.ntlmssp_domain", "smb.ntlmssp_user", "smb.share",
    "smb.version", "snmp.community", "snmp.pdu_type", "snmp.trap_address", "snmp.trap_oid", "snmp.trap_type",
    "snmp.usm", "snmp.version", "socks.command", "ssh.hassh", "ssh.hassh.server", "ssh.hassh.server.string",
    "ssh.hassh.string", "ssh.proto", "ssh.protoversion", "ssh.software", "ssh.softwareversion", "ssl_state",
    "ssl_version", "tcp.ack", "tcp.flags", "tcp.hdr", "tcp.mss", "tcp.seq", "tcp.session", "tcp.window", "tcp.wscale",
    "tls.alpn", "tls.cert_chain_len", "tls.cert_fingerprint", "tls.cert_issuer", "tls.cert_notafter",
    "tls.cert_notbefore", "tls.cert_serial", "tls.cert_subject", "tls.certs", "tls.fingerprint", "tls.issuerdn",
    "tls.random", "tls.random_bytes", "tls.random_time", "tls.sni", "tls.store", "tls.subject", "tls.subjectaltname",
    "tls.version", "tls_cert_expired", "tls_cert_fingerprint", "tls_cert_issuer", "tls_cert_notafter",
    "tls_cert_notbefore", "tls_cert_serial", "tls_cert_subject", "tls_cert_valid", "udp.hdr", "vlan.id", "vlan.layers",
    "websocket.flags", "websocket.mask", "websocket.opcode", "websocket.payload",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_keyword_is_told_from_a_new_one() {
        let mistaken = |name: &str| mistaken(name, ["tls.sni"].into_iter());
        assert_eq!(mistaken("tls.cert_sujbect"), Some("tls.cert_subject"));
        assert_eq!((mistaken("tls.snii"), mistaken("dns.opcod")), (Some("tls.sni"), Some("dns.opcode")));
        assert_eq!((mistaken("tls_cert_subject"), mistaken("tls.greeting"), mistaken("dns.rcode")), (None, None, None));
        assert_eq!(nearest("contnet", ["content", "contents"].into_iter()), Some("content"));
        assert_eq!(nearest("pcr", ["content", "isdataat"].into_iter()), None);
    }
}
