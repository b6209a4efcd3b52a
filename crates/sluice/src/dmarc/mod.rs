//! `sluice dmarc`: reports that others send about the mail of a domain (RFC 9990), as a table or as JSON.
//!
//! A file is what a mailbox or a web page gives out: the XML, compressed, in an archive, or the whole mail. It comes from strangers: it is
//! read in a process that can reach nothing else, and within bounds ([`documents`], [`report`]).

mod documents;
mod report;

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use edge::inspector::examine;
use serde_json::json;
use text::hazard::is_hazard;

use self::documents::{Documents, FILE_BYTES_MAX};
use self::report::{Checked, Record, Report};
use crate::cli::{Dmarc, DmarcCommand};
use crate::output::Failure;
use crate::process::confine::Reach;
use crate::process::privileges;

/// Prints the reports of files.
pub fn run(args: &Dmarc) -> Result<ExitCode, Failure> {
    let DmarcCommand::Report { files, json } = &args.command;
    privileges::harden()?;
    Reach::reading().confine(&[])?;
    let mut is_whole = true;
    for file in files {
        match reports(file) {
            Ok((reports, is_cut)) => {
                reports.iter().for_each(|report| print!("{}", if *json { line(file, report) } else { table(report) }));
                if is_cut || reports.iter().any(|report| report.is_cut) {
                    eprintln!("sluice: {}: it is torn, or holds more than is read", file.display());
                    is_whole = false;
                }
            }
            Err(why) => {
                eprintln!("sluice: {}: {why}", file.display());
                is_whole = false;
            }
        }
    }
    Ok(ExitCode::from(if is_whole { 0 } else { 2 }))
}

/// The reports of a file, and whether more may be in it.
fn reports(file: &Path) -> Result<(Vec<Report>, bool), String> {
    let mut bytes = Vec::new();
    let source = examine::open(file).map_err(|error| error.to_string())?;
    source.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is longer than {FILE_BYTES_MAX} bytes"));
    }
    let Documents { found, is_cut, .. } = Documents::of(&bytes);
    let reports: Vec<Report> = found.iter().filter_map(|document| Report::read(document)).collect();
    match reports.is_empty() {
        true => Err("there is no report in it".into()),
        false => Ok((reports, is_cut)),
    }
}

fn line(file: &Path, report: &Report) -> String {
    format!("{}\n", json!({ "file": file.display().to_string(), "report": report }))
}

fn table(report: &Report) -> String {
    let policy = &report.policy;
    let mut text = format!("{}: report {} of {}", policy.domain, report.report_id, report.org_name);
    let day = |seconds: Option<i64>| {
        let time = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
        time.map_or("?".to_owned(), |time| time.to_string())
    };
    let _ = write!(text, ", {} to {}", day(report.begin), day(report.end));
    for (name, value) in [("p", &policy.p), ("sp", &policy.sp), ("np", &policy.np)] {
        if !value.is_empty() {
            let _ = write!(text, " {name}={value}");
        }
    }
    let mut text = plain(&text);
    text.push('\n');
    for error in &report.errors {
        let _ = writeln!(text, "  error: {}", plain(error));
    }
    let _ = writeln!(
        text,
        "  {:>7}  {:<39}  {:<11} {:<5} {:<5} FROM, RESULTS",
        "MAILS", "SOURCE", "DISPOSITION", "DKIM", "SPF"
    );
    for record in &report.records {
        text.push_str(&row(record));
    }
    text
}

fn row(record: &Record) -> String {
    let Record { source_ip, count, disposition, dkim, spf, header_from, reasons, .. } = record;
    let [source, disposition, dkim, spf] = [source_ip, disposition, dkim, spf].map(|value| plain(value));
    let mut text = format!("  {count:>7}  {source:<39}  {disposition:<11} {dkim:<5} {spf:<5} {}", plain(header_from));
    let named = |kind: &str, Checked { domain, selector, result }: &Checked| match selector.is_empty() {
        true => plain(&format!(" {kind}={result} {domain}")),
        false => plain(&format!(" {kind}={result} {selector}._domainkey.{domain}")),
    };
    let results = record.dkim_results.iter().map(|one| named("dkim", one));
    text.extend(results.chain(record.spf_results.iter().map(|one| named("spf", one))));
    text.extend(reasons.iter().map(|reason| plain(&format!(" ({reason})"))));
    text.push('\n');
    text
}

/// Text of others as a terminal may show it.
fn plain(text: &str) -> String {
    text.chars().map(|letter| if is_hazard(letter) { '?' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const XML: &str = "<?xml version=\"1.0\"?>\r\n<feedback><report_metadata><org_name>example.net</org_name><report_id>7</report_id>\
        <date_range><begin>0</begin><end>86400</end></date_range></report_metadata><policy_published><domain>example.org</domain>\
        <p>none</p></policy_published><record><row><source_ip>192.0.2.1</source_ip><count>3</count><policy_evaluated>\
        <disposition>none</disposition><dkim>pass</dkim><spf>fail</spf></policy_evaluated></row><identifiers>\
        <header_from>example.org</header_from></identifiers></record></feedback>\r\n";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// An archive with one stored file.
    fn zip(bytes: &[u8]) -> Vec<u8> {
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        let size = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        let facts =
            [&[20, 0, 0, 0, 0, 0, 0, 0, 33, 0][..], &crc.sum().to_le_bytes(), &size, &size, &[5, 0, 0, 0]].concat();
        let local = [b"PK\x03\x04", &facts[..], b"a.xml", bytes].concat();
        let central = [b"PK\x01\x02\x14\0", &facts[..], &[0; 14], b"a.xml"].concat();
        let [at, length] = [local.len(), central.len()].map(|size| u32::try_from(size).unwrap().to_le_bytes());
        [&local[..], &central, b"PK\x05\x06\0\0\0\0\x01\0\x01\0", &length, &at, &[0, 0]].concat()
    }

    /// A mail with this attachment.
    fn mail(bytes: &[u8], name: &str) -> Vec<u8> {
        let coded = text::base64::encode(bytes);
        let lines: Vec<&str> = coded.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
        format!(
            "From: a@example.net\r\nTo: b@example.org\r\nSubject: Report Domain: example.org\r\nMIME-Version: 1.0\r\n\
             Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: text/plain\r\n\r\nhello\r\n--x\r\n\
             Content-Type: application/octet-stream; name=\"{name}\"\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n--x--\r\n",
            lines.join("\r\n")
        )
        .into_bytes()
    }

    #[test]
    fn a_report_is_found_however_it_is_packed() {
        let xml = XML.as_bytes();
        let wanted = Report::read(xml).unwrap();
        let marked = [b"\xef\xbb\xbf\n", xml].concat();
        let single = [
            b"From: a@example.net\r\nSubject: x\r\nMIME-Version: 1.0\r\nContent-Type: application/gzip\r\nContent-Transfer-Encoding: base64\r\n\r\n",
            text::base64::encode(&gzip(xml)).as_bytes(),
            b"\r\n",
        ]
        .concat();
        for (name, bytes) in [
            ("xml", xml.to_vec()),
            ("marked", marked),
            ("gz", gzip(xml)),
            ("zip", zip(xml)),
            ("mail with gz", mail(&gzip(xml), "a.xml.gz")),
            ("mail with zip", mail(&zip(xml), "a.zip")),
            ("mail with xml", mail(xml, "a.xml")),
            ("mail that is gz", single),
        ] {
            let documents = Documents::of(&bytes);
            let reports: Vec<Report> = documents.found.iter().filter_map(|one| Report::read(one)).collect();
            assert!(!documents.is_cut && reports.len() == 1 && reports[0] == wanted, "{name}: {reports:?}");
        }
        let table = table(&wanted);
        assert!(
            table.starts_with(
                "example.org: report 7 of example.net, 1970-01-01T00:00:00Z to 1970-01-02T00:00:00Z p=none\n"
            ),
            "{table}"
        );
        assert!(
            table.contains("        3  192.0.2.1 ") && table.ends_with("none        pass  fail  example.org\n"),
            "{table}"
        );
    }

    #[test]
    fn hostile_files_end_within_bounds() {
        let mut nested = XML.as_bytes().to_vec();
        for _ in 0..8 {
            nested = gzip(&nested);
        }
        let documents = Documents::of(&nested);
        assert!(documents.found.is_empty() && documents.is_cut, "packed too often");
        let mut torn = gzip(XML.as_bytes());
        let crc = torn.len() - 8;
        torn[crc] ^= 1;
        for bytes in [&torn[..], &torn[..torn.len() - 12]] {
            let documents = Documents::of(bytes);
            assert!(documents.is_cut && documents.found.len() == 1, "torn");
        }
        let bomb = gzip(&vec![b' '; 1 << 20]);
        assert!(Documents::within(&bomb, 64 << 10).is_cut, "larger than what is read");
        for bytes in
            [&b""[..], b"\x1f\x8b", b"PK\x03\x04", b"text", &gzip(XML.as_bytes())[..40], &zip(XML.as_bytes())[..50]]
        {
            assert!(
                Documents::of(bytes)
                    .found
                    .iter()
                    .all(|one| Report::read(one).is_none_or(|report| report.records.is_empty()))
            );
        }
        let odd = Report { org_name: "a\x1b[2Jb\n".into(), ..Report::default() };
        assert_eq!(table(&odd).lines().count(), 2);
        assert!(!table(&odd).contains('\x1b'));
    }
}
