//! Keywords that are understood and never match on a stream or on what a proxy sees, and `requires`.

use super::buffer::Buffer;
use super::spelling;
use super::transform::Transform;

/// The version of Suricata whose keywords are known.
const VERSION: [u32; 3] = [8, 0, 7];

/// Keywords of packets, of files that are kept, and of protocols that nothing here speaks.
const IDLE: &[&str] = &[
    "ack",
    "activated_by",
    "activates",
    "app-layer-event",
    "app-layer-state",
    "appid",
    "appids",
    "asn1",
    "ber_data",
    "ber_skip",
    "config",
    "cvs",
    "dcerpc",
    "decode-event",
    "engine-event",
    "entropy",
    "file.magic",
    "file_group",
    "file_meta",
    "file_type",
    "filecontainer",
    "filemagic",
    "flags",
    "flowvar",
    "fragbits",
    "fragoffset",
    "frame",
    "ftpbounce",
    "geoip",
    "hash",
    "http_encode",
    "http_header_test",
    "http_max_header_line",
    "http_max_trailer_line",
    "http_num_cookies",
    "http_num_headers",
    "http_num_trailers",
    "http_param",
    "http_raw_body",
    "http_raw_trailer",
    "http_trailer",
    "http_trailer_test",
    "http_true_ip",
    "http_version_match",
    "icode",
    "id",
    "ipopts",
    "ipproto",
    "iprep",
    "ipv6hdr",
    "itype",
    "js_data",
    "l3_proto",
    "length",
    "lua",
    "luajit",
    "luaxform",
    "md5",
    "modbus",
    "mpls",
    "pcre2",
    "pkt_num",
    "pkthdr",
    "pktvar",
    "protected_content",
    "rpc",
    "sd_pattern",
    "seq",
    "sha256",
    "sha512",
    "so",
    "stream-event",
    "stream_event",
    "subslice",
    "tos",
    "ttl",
    "vba_data",
    "window",
    "xor_data",
];

/// Protocols and heads of packets: their keywords, which begin with their names, are idle where they name no buffer.
const FAMILIES: &[&str] = &[
    "cip",
    "dce",
    "dcerpc",
    "dhcp",
    "dnp3",
    "dns",
    "enip",
    "ether",
    "flow",
    "ftp",
    "ftpdata",
    "gtp",
    "http2",
    "icmp",
    "icmpv4",
    "icmpv6",
    "iec104",
    "ike",
    "ipv4",
    "ipv6",
    "krb5",
    "ldap",
    "mdns",
    "mms",
    "modbus",
    "mqtt",
    "nfs",
    "opcua",
    "pgsql",
    "quic",
    "rfb",
    "s7commplus",
    "sdp",
    "sip",
    "smb",
    "snmp",
    "socks",
    "ssh",
    "ssl",
    "tcp",
    "tls",
    "udp",
    "vlan",
    "websocket",
];

/// Whether a rule with the keyword loads and never matches.
pub(super) fn is_idle(name: &str) -> bool {
    let is_of_family = || name.split_once(['.', '_']).is_some_and(|(family, _)| FAMILIES.contains(&family));
    let is_mistaken = || spelling::mistaken(name, Buffer::NAMES.iter().copied()).is_some();
    name.ends_with("-csum") || IDLE.contains(&name) || is_of_family() && !is_mistaken()
}

/// The keyword that a name may have been meant for, in words.
pub(super) fn advice(name: &str) -> String {
    let others = [KNOWN, IDLE, OF_RULES, TRANSFORMS, Buffer::NAMES].into_iter().flatten().copied();
    let meant = spelling::mistaken(name, Buffer::NAMES.iter().copied()).or_else(|| spelling::nearest(name, others));
    meant.map_or_else(|| "is not known".into(), |meant| format!("is not known; the nearest keyword is {meant}"))
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
            "keyword" => is_known(rest.trim()),
            "feature" => FEATURES.contains(&rest.trim()),
            _ => false,
        }
    };
    let missing = value.split(',').map(str::trim).find(|item| !item.is_empty() && !met(item));
    missing.map_or(Ok(()), |item| Err(item.into()))
}

/// Features that rules may ask for; of Suricata's others there is no counterpart.
const FEATURES: &[&str] = &["ja3", "ja4"];

/// Whether rules with a keyword can match.
fn is_known(name: &str) -> bool {
    let is_buffer = Buffer::sticky(name).is_some() || Buffer::modifier(name).is_some();
    is_buffer || Transform::read(name, None).is_some() || KNOWN.contains(&name)
}

/// Keywords about a rule as a whole.
const OF_RULES: &[&str] = &[
    "alert",
    "bypass",
    "classtype",
    "gid",
    "metadata",
    "msg",
    "priority",
    "rawbytes",
    "reference",
    "regex",
    "replace",
    "rev",
    "service",
    "sid",
    "uricontent",
];

/// Keywords that derive a buffer from another.
const TRANSFORMS: &[&str] = &[
    "compress_whitespace",
    "domain",
    "dotprefix",
    "from_base64",
    "gunzip",
    "header_lowercase",
    "pcrexform",
    "strip_pseudo_headers",
    "strip_whitespace",
    "tld",
    "to_lowercase",
    "to_md5",
    "to_sha1",
    "to_sha256",
    "to_uppercase",
    "url_decode",
    "xor",
    "zlib_deflate",
];

/// Keywords that name no buffer.
const KNOWN: &[&str] = &[
    "absent",
    "app-layer-event",
    "app-layer-protocol",
    "base64_data",
    "base64_decode",
    "bsize",
    "byte_extract",
    "byte_jump",
    "byte_math",
    "byte_test",
    "content",
    "datarep",
    "dataset",
    "depth",
    "detection_filter",
    "distance",
    "dsize",
    "endswith",
    "fast_pattern",
    "fileext",
    "filemd5",
    "filename",
    "filesha1",
    "filesha256",
    "filesize",
    "filestore",
    "flow",
    "flowbits",
    "flowint",
    "hostbits",
    "ip.dst",
    "ip.src",
    "ip_proto",
    "isdataat",
    "nocase",
    "noalert",
    "offset",
    "pcre",
    "prefilter",
    "requires",
    "sameip",
    "startswith",
    "stream_size",
    "tag",
    "target",
    "threshold",
    "urilen",
    "within",
    "xbits",
];

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
        assert!(requires("keyword byte_test").is_ok() && requires("keyword to_md5, keyword dsize").is_ok());
        assert!(requires("keyword lua").is_err());
        assert!(requires("feature ja4").is_ok() && requires("feature output::file-store").is_err());
        assert!(requires("feature none").is_err() && requires("keyword http.uri, version >= 7").is_ok());
    }
}
