//! Functions that ask lists in the DNS ([`crate::spam::network`] decides them), and those that ask programs beside it: distributed
//! checksums, which nothing answers.

use super::{Function, ask, list};

/// The functions.
pub(super) const FUNCTIONS: &[Function] = &[
    // Lists of hosts, names and digests in the DNS.
    list("check_rbl"),
    list("check_rbl_txt"),
    list("check_rbl_sub"),
    list("check_rbl_accreditor"),
    list("check_rbl_from_host"),
    list("check_rbl_from_domain"),
    list("check_rbl_envfrom"),
    list("check_rbl_headers"),
    list("check_rbl_ns_from"),
    list("check_rbl_rcvd"),
    list("check_dns_sender"),
    list("check_uridnsbl"),
    list("check_hashbl_emails"),
    list("check_hashbl_uris"),
    list("check_hashbl_bodyre"),
    list("check_hashbl_tag"),
    list("check_hashbl_attachments"),
    // Checksums that are shared.
    ask("check_razor2"),
    ask("check_razor2_range"),
    ask("check_pyzor"),
    ask("check_dcc"),
    ask("check_dcc_reputation_range"),
];
