//! Parameters that have no key of their own: those that need none, and those that have no counterpart, with what there is instead.

/// Nothing has to be done.
const NOTHING: &[&str] = &[
    "2bounce_notice_recipient",
    "*_cache_database",
    "*_directory",
    "*_service_name",
    "alias_database",
    "append_at_myorigin",
    "append_dot_mydomain",
    "biff",
    "broken_sasl_auth_clients",
    "command_*",
    "compatibility_level",
    "daemon_*",
    "debug*",
    "default_database_type",
    "disable_dns_lookups",
    "disable_vrfy_command",
    "dovecot_destination_*",
    "enable_long_queue_ids",
    "enable_original_recipient",
    "html_directory",
    "inet_protocols",
    "mail_*",
    "maillog_file",
    "mailq_path",
    "manpage_directory",
    "milter_*",
    "mydomain",
    "myorigin",
    "newaliases_path",
    "owner_request_special",
    "parent_domain_matches_subdomains",
    "postscreen_*_ttl",
    "postscreen_cache_*",
    "process_*",
    "readme_directory",
    "sendmail_path",
    "setgid_group",
    "smtp*_tls_loglevel",
    "smtp_tls_CA*",
    "smtp_tls_note_starttls_offer",
    "smtp*_tls_session_cache*",
    "smtp_tls_security_level",
    "smtp_use_tls",
    "smtpd_banner",
    "smtpd_delay_reject",
    "smtpd_discard_ehlo_keywords",
    "smtpd_forbid_*",
    "smtpd_helo_required",
    "smtpd_peername_lookup",
    "smtpd_sasl_authenticated_header",
    "smtpd_sasl_local_domain",
    "smtpd_sasl_security_options",
    "smtpd_sasl_tls_security_options",
    "smtpd_tls_CA*",
    "smtpd_tls_auth_only",
    "smtpd_tls_received_header",
    "smtputf8_*",
    "strict_rfc821_envelopes",
    "swap_bangpath",
    "tls_*",
    "unknown_*_reject_code",
    "unverified_*",
    "virtual_gid_maps",
    "virtual_minimum_uid",
    "virtual_uid_maps",
];

const HEADERS: &str =
    "rules over headers are rules of SpamAssassin, in a folder of [spam] rules; no field is taken out or changed";

/// Parameters without a counterpart, and why.
const REASONS: &[(&str, &str)] = &[
    (
        "*_milters",
        "mail is inspected here: rules of spam are [spam], signatures sluice dkim, SPF and DMARC [authentication]",
    ),
    ("*_bcc_maps", "copies are made by a Sieve script: sieve_before in [store]"),
    ("address_verify_*", "a table of [[recipients]] asks another server with call_ahead"),
    ("allow_percent_hack", "an address is taken as it stands"),
    ("always_bcc", "copies are made by a Sieve script: sieve_before in [store]"),
    ("best_mx_transport", "mail servers that are this machine are not asked"),
    ("body_checks", "rules over content are rules of SpamAssassin, in a folder of [spam] rules"),
    ("bounce_queue_lifetime", "notifications wait as long as mails: lifetime_seconds in [store.queue]"),
    ("canonical_maps", "addresses are not rewritten"),
    ("content_filter", "mail is inspected here: a filter behind it is not needed"),
    ("double_bounce_sender", "mail from the null sender is never returned"),
    ("error_notice_recipient", "the log and the metrics tell of errors"),
    ("fallback_transport*", "there is one way of delivery: the accounts of [store]"),
    ("header_checks", HEADERS),
    ("header_size_limit", "headers have no bound of their own, and the first 256 KiB are looked at"),
    ("home_mailbox", "mailboxes are in the store: sluice store import reads a Maildir or an mbox"),
    ("local_header_rewrite_clients", "headers are not rewritten"),
    ("local_recipient_maps", "recipients here are the accounts of [store]"),
    ("luser_relay", "an account with the alias @DOMAIN takes all other addresses of the domain"),
    ("mailbox_command*", "a Sieve script of the account does it"),
    ("mailbox_size_limit", "an account has quota=BYTES: sluice account add --quota"),
    ("mailbox_transport*", "mail is delivered to the accounts of [store]"),
    ("masquerade_*", "addresses are not rewritten"),
    ("mime_header_checks", "[[attachment]] forbids parts by name and type"),
    ("nested_header_checks", HEADERS),
    (
        "mynetworks_style",
        "clients relay nothing without a login, whatever their network: permit in [trust] is for those that are not tested",
    ),
    ("notify_classes", "the log and the metrics tell of errors"),
    ("permit_mx_backup_networks", "nobody relays for domains that name this machine as MX"),
    ("postscreen_*", "new clients are tested as [trust] says: greet_wait_ms, dnsbl.lists, scores, reject"),
    (
        "proxy_interfaces",
        "add the addresses outside as [dns] says nothing of them: mail servers with hostname as name are never asked",
    ),
    ("receive_override_options", "mail is inspected once, at the door"),
    ("recipient_bcc_maps", "copies are made by a Sieve script: sieve_before in [store]"),
    ("recipient_canonical_maps", "addresses are not rewritten"),
    ("relay_recipient_maps", "recipients of domains in relay_domains, which are listed: [[recipients]] with lookups"),
    ("relocated_maps", "an account that has moved has a Sieve script with reject"),
    ("remote_header_rewrite_domain", "headers are not rewritten"),
    ("sender_canonical_*", "addresses are not rewritten"),
    (
        "sender_dependent_*",
        "the way of a mail depends on its recipient and its sender: [store.queue.routes] and sender_routes",
    ),
    ("smtp_*_checks", "no field of a mail is taken out or changed"),
    ("smtp_address_preference", "IPv6 is tried first, and IPv4 at once after it"),
    ("smtp_bind_address*", "the kernel chooses the source address"),
    ("smtp_destination_*", "rates adapt to each destination by themselves: connections_to_one_max in [store.queue]"),
    ("smtp_dns_support_level", "dane in [store.queue] is on, and needs a resolver on this machine that validates"),
    ("smtp_fallback_relay", "there is one way for a destination"),
    ("smtp_generic_maps", "addresses are not rewritten"),
    ("smtp_helo_name", "it is hostname"),
    ("smtp_sasl_*", "logins in [store.queue] are of next hops, and go by SCRAM-SHA-256, PLAIN or LOGIN over TLS"),
    ("smtp_sender_dependent_*", "logins of senders stand in the file of logins, ann@example.org NAME:PASSWORD"),
    ("smtp_tls_mandatory_*", "it is [tls] minimum"),
    ("smtp_tls_policy_maps", "there is no policy of TLS by destination"),
    ("smtp_tls_protocols", "it is [tls] minimum"),
    ("smtp_tls_wrappermode", "a next hop within TLS is smtps://HOST:PORT"),
    ("smtpd_client_*_limit", "see [trust.client] and connections_per_client_max of the listener"),
    ("smtpd_*_limit", "see [trust]: errors_max and tarpit"),
    ("smtpd_error_sleep_time", "see [trust]: tarpit"),
    ("smtpd_proxy_*", "mail is inspected here: a filter in front of the queue is not needed"),
    ("smtpd_sasl_path", "logins are those of the accounts of [store], or of tables of [[lookup]] with passwords"),
    ("smtpd_sasl_type", "logins are those of the accounts of [store], or of tables of [[lookup]] with passwords"),
    ("smtpd_sender_login_maps", "an account sends as its name and its aliases alone"),
    ("smtpd_tls_*", "ciphers and curves are those of rustls, versions are [tls] minimum"),
    ("smtpd_upstream_proxy_protocol", "proxy_from of the listener names the load balancers"),
    ("virtual_mailbox_base", "mailboxes are in the store: sluice store import reads a Maildir or an mbox"),
    ("virtual_mailbox_limit", "an account has quota=BYTES: sluice account add --quota"),
];

/// Why a parameter is not translated; `Some(None)` if it needs nothing, none if nothing is known of it.
pub fn reason(name: &str) -> Option<Option<&'static str>> {
    if NOTHING.iter().any(|pattern| matches(pattern, name)) {
        return Some(None);
    }
    REASONS.iter().find(|(pattern, _)| matches(pattern, name)).map(|(_, why)| Some(*why))
}

/// Whether a name is like a pattern with at most two stars.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((front, back)) => name
            .strip_prefix(front)
            .is_some_and(|rest| (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|rest| matches(back, rest)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_a_reason_or_need_nothing() {
        assert_eq!(reason("readme_directory"), Some(None));
        assert_eq!(reason("smtp_tls_session_cache_database"), Some(None));
        assert_eq!(reason("smtpd_tls_session_cache_timeout"), Some(None));
        assert!(reason("smtpd_milters").flatten().is_some_and(|why| why.contains("inspected here")));
        assert!(reason("smtpd_tls_eecdh_grade").flatten().is_some());
        assert_eq!(reason("no_such_parameter"), None);
    }
}
