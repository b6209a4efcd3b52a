//! Detached signatures of databases: made by OpenSSL, and the makers' own where they are at hand.

use std::fs;
use std::path::{Path, PathBuf};

use crate::peer::office::{Office, SIGNER};
use scan::Authorities;
use sha2::{Digest, Sha256};

/// Further methods of this office.
trait Signs {
    fn sign(&self, name: &str, bytes: &[u8], more: &str) -> String;
    fn authorities(&self, name: &str) -> Authorities;
}

impl Signs for Office {
    /// The content of a `.sign` file of `bytes`.
    fn sign(&self, name: &str, bytes: &[u8], more: &str) -> String {
        fs::write(self.path("file"), bytes).expect("written");
        self.run(&format!(
            "cms -sign -binary -in file -signer {name}.crt -inkey {name}.key -certfile middle.crt \
            -outform PEM -out file.pem{more}"
        ));
        let pem = fs::read_to_string(self.path("file.pem")).expect("a signature");
        let lines = pem.lines().filter(|line| !line.starts_with('-'));
        format!("#clamsign-1.0\n230::pkcs7-pem:{}\n", lines.collect::<String>())
    }

    fn authorities(&self, name: &str) -> Authorities {
        let mut authorities = Authorities::default();
        assert_eq!(authorities.add_pem(&self.read(name)), Ok(1));
        authorities
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    since.as_secs() as i64 + 5
}

const DAY: i64 = 86_400;

#[test]
fn a_signature_counts_for_its_bytes_its_time_and_its_authority() {
    let Some(office) = Office::open("counts") else { return };
    let (sign, root) = (office.sign("signer", b"database", ""), office.authorities("root.crt"));
    let verify = |sign: &str, bytes: &[u8], time| root.verify(sign.as_bytes(), &digest(bytes), time);
    assert_eq!(verify(&sign, b"database", now()), Ok("signer".to_owned()));
    assert_eq!(
        office.authorities("middle.crt").verify(sign.as_bytes(), &digest(b"database"), now()),
        Ok("signer".into())
    );
    for (sign, bytes, time, reason) in [
        (&*sign, &b"databasf"[..], now(), "other bytes"),
        (&sign, b"database", now() + 11 * DAY, "not valid at this time"),
        (&sign, b"database", now() - DAY, "not valid at this time"),
        (&sign.replace("230::", "231::"), b"database", now(), "no signature for this engine"),
        (&sign.replace("230::", ":229:"), b"database", now(), "no signature for this engine"),
        (&sign.replace("230::", "x::"), b"database", now(), "no number"),
        (&sign.replace("sign-1.0", "sign-2.0"), b"database", now(), "clamsign-1.0"),
        (&sign.replace("MII", "MI-"), b"database", now(), "base 64"),
        ("#clamsign-1.0\n", b"database", now(), "no signature for this engine"),
        ("", b"database", now(), "clamsign-1.0"),
    ] {
        let error = verify(sign, bytes, time).expect_err(reason);
        assert!(error.contains(reason), "{error} is not {reason}");
    }
    // One of two lines is enough.
    let both = format!("{sign}\n# note\n300::pkcs7-pem:AAAA\n");
    assert!(verify(&both, b"database", now()).is_ok());
}

#[test]
fn nobody_else_may_sign() {
    let Some(office) = Office::open("nobody") else { return };
    let root = office.authorities("root.crt");
    office.certify("mails", "middle", &SIGNER.replace("codeSigning", "serverAuth"), 10);
    office.certify("below", "signer", SIGNER, 10);
    fs::write(office.path("both.crt"), [office.read("middle.crt"), office.read("signer.crt")].concat())
        .expect("written");
    office.certify("strange", "middle", &format!("{SIGNER}\nnameConstraints=critical,permitted;DNS:example.org"), 10);
    office.run("req -x509 -newkey rsa:2048 -nodes -keyout own.key -out own.crt -days 30 -subj /CN=Root");
    for (name, more, reason) in [
        ("mails", "", "for another purpose"),
        ("own", "", "does not chain"),
        ("below", " -certfile both.crt", "does not chain"),
        ("strange", "", "critical extension"),
        ("signer", " -nocerts", "signer is missing"),
        ("signer", " -noattr", "cannot be read"),
        ("signer", " -md sha1", "another form"),
        ("signer", " -keyopt rsa_padding_mode:pss", "cannot be read"),
    ] {
        let sign = office.sign(name, b"database", more);
        let error = root.verify(sign.as_bytes(), &digest(b"database"), now()).expect_err(reason);
        assert!(error.contains(reason), "{name}{more}: {error}");
    }
}

#[test]
fn every_byte_of_a_signature_counts() {
    let Some(office) = Office::open("bytes") else { return };
    let (sign, root) = (office.sign("signer", b"database", ""), office.authorities("root.crt"));
    let start = sign.find("MII").expect("the message");
    let mut passed = Vec::new();
    for at in (start..sign.len() - 1).step_by(7) {
        let mut changed = sign.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        if root.verify(&changed, &digest(b"database"), now()).is_ok() {
            passed.push(at - start);
        }
    }
    // Versions and the list of digests are said twice and looked at once; the serial number's authority is not used, and neither are
    // parameters of algorithms, two bytes at a time, of which serial numbers of other lengths show some.
    let (head, rest): (Vec<usize>, Vec<usize>) = passed.iter().partition(|&&at| at < 60);
    assert!(head.len() < 6 && rest.len() <= 2, "{passed:?}");
}

#[test]
fn certificates_that_cannot_be_read_are_told() {
    let mut authorities = Authorities::default();
    let one = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    for (text, reason) in [("", "no certificate"), (one, "cannot be read"), (&one[..40], "without an end")] {
        assert!(authorities.add_pem(text.as_bytes()).expect_err(reason).contains(reason));
    }
}

#[test]
fn the_makers_signatures_are_of_their_files() {
    let root = std::env::var_os("SLUICE_DATA")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../data")), PathBuf::from);
    let folder = root.join("av-clamav/clamav-scanfiles/freshclam_testfiles");
    let read = |name: &str| fs::read(Path::new(&folder).join(name));
    let Some(office) = Office::open("makers") else { return };
    let authorities = office.authorities("root.crt");
    for name in ["test-4.cvd", "test-4.cdiff"] {
        let (Ok(bytes), Ok(sign)) = (read(name), read(&format!("{name}.sign"))) else {
            eprintln!("no pack: {}/{name}", folder.display());
            continue;
        };
        let time = 1_750_000_000;
        let error = authorities.verify(&sign, &digest(&bytes), time).expect_err("another authority");
        assert!(error.contains("does not chain"), "{name}: {error}");
        let error = authorities.verify(&sign, &digest(&bytes[1..]), time).expect_err("other bytes");
        assert!(error.contains("other bytes"), "{name}: {error}");
    }
}
