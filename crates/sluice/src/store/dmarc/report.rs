//! A report of one domain and one day: its XML, and the mail with it (RFC 9990, sections 2 and 3).

use std::fmt::Write as _;

use auth::dmarc::Destination;
use flow::{Observation, Published, Signature};
use mailbox::Site;
use mailbox::queue::Untaken;

use super::tally::Domain;
use crate::store::letter::Letter;

/// A report.
pub struct Report<'a> {
    /// Its sender, who is asked about it.
    pub contact: &'a str,
    /// The host that reports.
    pub hostname: &'a str,
    /// The domain that it is about.
    pub domain: &'a str,
    /// The first second of the day, since 1970.
    pub began: u64,
    /// The last.
    pub end: u64,
}

impl Report<'_> {
    /// Sends it, unless it is larger than its address takes; whether it is sent.
    ///
    /// # Errors
    /// When the queue does not take it.
    pub async fn send(&self, site: &Site, to: &Destination, counted: &Domain) -> Result<bool, Untaken> {
        let Report { contact, hostname, domain, began, end } = self;
        let (id, xml) = (self.id(), self.xml(counted));
        let letter = Letter {
            from: contact,
            to: &[to.address.to_string()],
            id: &id,
            subject: &format!("Report Domain: {domain} Submitter: {hostname} Report-ID: <{id}>"),
            fields: "",
            kind: "multipart/mixed",
            words: &format!("A report of DMARC about mail from {domain}."),
            media_type: "application/gzip",
            name: &format!("{hostname}!{domain}!{began}!{end}.xml.gz"),
            content: xml.as_bytes(),
        };
        let mail = letter.write();
        if to.bytes_max.is_some_and(|most| mail.len() as u64 > most) {
            return Ok(false);
        }
        letter.send(site, "dmarc-reports", mail).await.map(|()| true)
    }

    /// The same for the same day: a report that comes twice is known by it.
    fn id(&self) -> String {
        format!("{}.{}@{}", self.began, self.domain, self.hostname)
    }

    fn xml(&self, counted: &Domain) -> String {
        let Report { contact, hostname, domain, began, end } = self;
        let [contact, hostname, domain, id] = [*contact, *hostname, *domain, &*self.id()].map(escaped);
        let Published { p, sp, np, strict_dkim, strict_spf, testing } = &counted.published;
        let [p, sp, np] = [p, sp, np].map(|text| escaped(text));
        let mode = |is_strict: &bool| if *is_strict { 's' } else { 'r' };
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<feedback xmlns=\"urn:ietf:params:xml:ns:dmarc-2.0\">\n\
             <version>1.0</version>\n<report_metadata>\n<org_name>{hostname}</org_name>\n<email>{contact}</email>\n\
             <report_id>{id}</report_id>\n<date_range><begin>{began}</begin><end>{end}</end></date_range>\n"
        );
        if counted.left_out > 0 {
            let _ = writeln!(xml, "<error>{} more mails are not counted: too many results</error>", counted.left_out);
        }
        let _ = write!(
            xml,
            "<generator>Sluice {}</generator>\n</report_metadata>\n<policy_published>\n<domain>{domain}</domain>\n\
             <discovery_method>treewalk</discovery_method>\n<p>{p}</p>\n<sp>{sp}</sp>\n<np>{np}</np>\n\
             <adkim>{}</adkim>\n<aspf>{}</aspf>\n<testing>{}</testing>\n</policy_published>\n",
            env!("CARGO_PKG_VERSION"),
            mode(strict_dkim),
            mode(strict_spf),
            if *testing { 'y' } else { 'n' }
        );
        counted.records.iter().for_each(|(observation, count)| record(&mut xml, observation, *count));
        xml.push_str("</feedback>\n");
        xml
    }
}

fn record(xml: &mut String, observation: &Observation, count: u64) {
    let Observation { client, disposition, reason, header_from, envelope_from, spf_domain, spf, .. } = observation;
    let [disposition, reason, spf] = [disposition, reason, spf].map(|text| escaped(text));
    let [header_from, envelope_from, spf_domain] = [header_from, envelope_from, spf_domain].map(|text| escaped(text));
    let result = |is_aligned: bool| if is_aligned { "pass" } else { "fail" };
    let (dkim_aligned, spf_aligned) = (result(observation.dkim_aligned), result(observation.spf_aligned));
    let _ = write!(
        xml,
        "<record>\n<row>\n<source_ip>{}</source_ip>\n<count>{count}</count>\n<policy_evaluated>\n\
         <disposition>{disposition}</disposition>\n<dkim>{dkim_aligned}</dkim>\n<spf>{spf_aligned}</spf>\n",
        client.to_canonical()
    );
    if !reason.is_empty() {
        let _ = writeln!(xml, "<reason><type>{reason}</type></reason>");
    }
    let _ = write!(
        xml,
        "</policy_evaluated>\n</row>\n<identifiers>\n<header_from>{header_from}</header_from>\n\
         <envelope_from>{envelope_from}</envelope_from>\n</identifiers>\n<auth_results>\n"
    );
    for Signature { domain, selector, result } in &observation.signatures {
        let [domain, selector, result] = [domain, selector, result].map(|text| escaped(text));
        let _ = writeln!(
            xml,
            "<dkim><domain>{domain}</domain><selector>{selector}</selector><result>{result}</result></dkim>"
        );
    }
    if !spf_domain.is_empty() {
        let _ = writeln!(xml, "<spf><domain>{spf_domain}</domain><scope>mfrom</scope><result>{spf}</result></spf>");
    }
    xml.push_str("</auth_results>\n</record>\n");
}

/// Text as an element has it. Names of others may hold letters that XML does not have.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\u{fffe}' | '\u{ffff}' => out.push('?'),
            letter if letter.is_control() => out.push('?'),
            letter => out.push(letter),
        }
    }
    out
}
