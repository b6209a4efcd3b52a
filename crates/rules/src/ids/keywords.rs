//! Keywords that are understood and never match on a stream or on what a proxy sees, and `requires`.

/// The version of Suricata whose keywords are known.
const VERSION: [u32; 3] = [8, 0, 7];

/// Keywords of packets, of files that are kept, and of protocols that nothing here speaks.
const IDLE: &[&str] = &[
    "ack",
    "app-layer-event",
    "app-layer-protocol",
    "app-layer-state",
    "asn1",
    "ber_data",
    "ber_skip",
    "cip_attribute",
    "config",
    "cvs",
    "decode-event",
    "dce_iface",
    "dce_opnum",
    "dce_stub_data",
    "dcerpc",
    "dcerpc.iface",
    "dcerpc.opnum",
    "dcerpc.stub_data",
    "engine-event",
    "enip_req",
    "file_meta",
    "file.magic",
    "filemagic",
    "filemd5",
    "filesha1",
    "filesha256",
    "fileext",
    "filesize",
    "filestore",
    "file_type",
    "flags",
    "flow.age",
    "fragbits",
    "fragoffset",
    "frame",
    "ftpbounce",
    "geoip",
    "gtp_info",
    "gtp_type",
    "gtp_version",
    "http2.frametype",
    "icmp_id",
    "icmp_seq",
    "icode",
    "icmpv4.hdr",
    "icmpv6.hdr",
    "icmpv6.mtu",
    "id",
    "ip_proto",
    "ipopts",
    "ipproto",
    "ipv4.hdr",
    "ipv6.hdr",
    "itype",
    "krb5_cname",
    "krb5_err_code",
    "krb5_msg_type",
    "krb5_sname",
    "l3_proto",
    "lua",
    "luajit",
    "mpls",
    "modbus",
    "modbus_data",
    "modbus_func",
    "modbus_unit",
    "nfs.version",
    "nfs_procedure",
    "nfq_set_mark",
    "noalert",
    "pkthdr",
    "prefilter",
    "pcre2",
    "quic.version",
    "replace",
    "rpc",
    "s7commplus_content",
    "sameip",
    "sd_pattern",
    "seq",
    "sip.content_length",
    "sip.content_type",
    "sip.method",
    "sip.protocol",
    "sip.request_line",
    "sip.response_line",
    "sip.stat_code",
    "sip.stat_msg",
    "sip.uri",
    "sip.from",
    "sip.to",
    "sip.via",
    "sip.user_agent",
    "sip_body",
    "sip_header",
    "sip_method",
    "sip_stat_code",
    "smb.named_pipe",
    "smb.ntlmssp_user",
    "smb.ntlmssp_domain",
    "smb.share",
    "smb.version",
    "snmp.community",
    "snmp.pdu_type",
    "snmp.version",
    "ssh.hassh",
    "ssh.hassh.string",
    "ssh.proto",
    "ssh.software",
    "ssh_proto",
    "ssl_state",
    "ssl_version",
    "stream-event",
    "stream_reassemble",
    "stream_size",
    "tag",
    "tcp.ack",
    "tcp.flags",
    "tcp.hdr",
    "tcp.mss",
    "tcp.seq",
    "tcp.window",
    "tls.version",
    "tls.subject",
    "tls.issuerdn",
    "tls.fingerprint",
    "tls.store",
    "tls_cert_expired",
    "tls_cert_notafter",
    "tls_cert_notbefore",
    "tls_cert_valid",
    "tls.random",
    "tos",
    "ttl",
    "udp.hdr",
    "vba_data",
    "window",
    "activates",
    "activated_by",
    "dnp3_data",
    "dnp3_func",
    "dnp3_ind",
    "dnp3_obj",
    "appids",
    "js_data",
    "http_trailer",
    "http_true_ip",
    "http_param",
    "http_num_headers",
    "http_header_test",
    "dns.opcode",
    "dns.rcode",
    "dns.rrtype",
    "dns.answer.name",
    "mqtt.type",
    "rfb.name",
    "ike.init_spi",
    "bypass",
    "filecontainer",
    "stream_event",
    "tcp_flags",
    "ipv6hdr",
    "xor_data",
    "snmp.usm",
    "ftpdata_command",
    "ftp.command",
    "ftp.reply",
];

/// Whether a rule with the keyword loads and never matches.
pub(super) fn is_idle(name: &str) -> bool {
    IDLE.contains(&name)
}

/// Whether what a rule requires is there.
///
/// # Errors
/// With what is missing.
pub(super) fn requires(value: &str) -> Result<(), String> {
    let met = |item: &str| {
        let (word, rest) = item.split_once(char::is_whitespace).unwrap_or((item, ""));
        match word {
            "version" => version_holds(rest),
            "keyword" => super::buffer::Buffer::sticky(rest.trim()).is_some() || KNOWN.contains(&rest.trim()),
            _ => false,
        }
    };
    let missing = value.split(',').map(str::trim).find(|item| !item.is_empty() && !met(item));
    missing.map_or(Ok(()), |item| Err(item.into()))
}

/// Keywords that rules ask for by name.
const KNOWN: &[&str] =
    &["content", "pcre", "flowbits", "xbits", "dataset", "from_base64", "absent", "requires", "bsize"];

/// Whether one of several conditions on the version holds: `>= 7.0.3 < 8 | >= 8.0.1`.
fn version_holds(text: &str) -> bool {
    text.split('|').any(|choice| {
        let words: Vec<&str> = choice.split_whitespace().collect();
        words.chunks(2).all(|pair| {
            let [order, version] = pair else { return false };
            let mut wanted = [0; 3];
            for (place, part) in wanted.iter_mut().zip(version.split('.')) {
                *place = part.parse().unwrap_or(0);
            }
            match *order {
                ">=" => VERSION >= wanted,
                ">" => VERSION > wanted,
                "<=" => VERSION <= wanted,
                "<" => VERSION < wanted,
                _ => false,
            }
        })
    })
}

/// Classes of rules, with a description and a priority, which files of classifications add to.
pub(super) fn classes() -> std::collections::BTreeMap<String, (String, u32)> {
    let rows = [
        ("not-suspicious", "Not Suspicious Traffic", 3),
        ("unknown", "Unknown Traffic", 3),
        ("bad-unknown", "Potentially Bad Traffic", 2),
        ("attempted-recon", "Attempted Information Leak", 2),
        ("successful-recon-limited", "Information Leak", 2),
        ("successful-recon-largescale", "Large Scale Information Leak", 2),
        ("attempted-dos", "Attempted Denial of Service", 2),
        ("successful-dos", "Denial of Service", 2),
        ("attempted-user", "Attempted User Privilege Gain", 1),
        ("unsuccessful-user", "Unsuccessful User Privilege Gain", 1),
        ("successful-user", "Successful User Privilege Gain", 1),
        ("attempted-admin", "Attempted Administrator Privilege Gain", 1),
        ("successful-admin", "Successful Administrator Privilege Gain", 1),
        ("rpc-portmap-decode", "Decode of an RPC Query", 2),
        ("shellcode-detect", "Executable code was detected", 1),
        ("string-detect", "A suspicious string was detected", 3),
        ("suspicious-filename-detect", "A suspicious filename was detected", 2),
        ("suspicious-login", "An attempted login using a suspicious username was detected", 2),
        ("system-call-detect", "A system call was detected", 2),
        ("trojan-activity", "A Network Trojan was detected", 1),
        ("web-application-activity", "access to a potentially vulnerable web application", 2),
        ("web-application-attack", "Web Application Attack", 1),
        ("misc-activity", "Misc activity", 3),
        ("misc-attack", "Misc Attack", 2),
        ("policy-violation", "Potential Corporate Privacy Violation", 1),
        ("protocol-command-decode", "Generic Protocol Command Decode", 3),
        ("network-scan", "Detection of a Network Scan", 3),
        ("malware-cnc", "Malware Command and Control Activity Detected", 1),
        ("command-and-control", "Malware Command and Control Activity Detected", 1),
        ("exploit-kit", "Exploit Kit Activity Detected", 1),
        ("credential-theft", "Successful Credential Theft Detected", 1),
        ("social-engineering", "Possible Social Engineering Attempted", 2),
        ("domain-c2", "Domain Observed Used for C2 Detected", 1),
        ("coin-mining", "Crypto Currency Mining Activity Detected", 2),
        ("pup-activity", "Possibly Unwanted Program Detected", 2),
        ("default-login-attempt", "Attempt to login by a default username and password", 2),
        ("denial-of-service", "Detection of a Denial of Service Attack", 2),
        ("file-format", "Known malicious file or file based exploit", 1),
        ("client-side-exploit", "Known client side exploit attempt", 1),
    ];
    rows.into_iter().map(|(name, text, priority)| (name.to_string(), (text.to_string(), priority))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_compared_with_what_is_known() {
        assert!(requires("version >= 7.0.3 < 8 | >= 8.0.1").is_ok() && requires("version < 7").is_err());
        assert!(requires("feature none").is_err() && requires("keyword http.uri, version >= 7").is_ok());
    }
}
