//! Keys, certificates and signed messages, made by OpenSSL and put together here.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use sha1::Digest as _;

use super::hex;

/// A folder of keys and certificates, removed at the end.
pub struct Office(pub PathBuf);

impl Drop for Office {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub const AUTHORITY: &str = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign";
pub const SIGNER: &str = "basicConstraints=CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=codeSigning";

impl Office {
    /// A root, an authority below it, and who signs.
    pub fn open(name: &str) -> Option<Office> {
        if Command::new("openssl").arg("version").output().is_err() {
            eprintln!("skipped: openssl is not installed");
            return None;
        }
        let office = Office(std::env::temp_dir().join(format!("sluice-office-{name}-{}", std::process::id())));
        fs::create_dir_all(&office.0).expect("a scratch folder");
        let extensions = "-addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign";
        office.run(&format!(
            "req -x509 -newkey rsa:2048 -nodes -keyout root.key -out root.crt -days 30 -subj /CN=Root {extensions}"
        ));
        office.certify("middle", "root", AUTHORITY, 20);
        office.certify("signer", "middle", SIGNER, 10);
        Some(office)
    }

    pub fn run(&self, arguments: &str) -> Vec<u8> {
        let done = Command::new("openssl").args(arguments.split(' ')).current_dir(&self.0).output().expect("openssl");
        assert!(done.status.success(), "{arguments}: {}", String::from_utf8_lossy(&done.stderr));
        done.stdout
    }

    /// A certificate of `name` by `by`.
    pub fn certify(&self, name: &str, by: &str, extensions: &str, days: u32) {
        fs::write(self.path("extensions"), extensions).expect("written");
        self.run(&format!("req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /O=Test/CN={name}"));
        self.run(&format!(
            "x509 -req -in {name}.csr -CA {by}.crt -CAkey {by}.key -CAcreateserial -days {days} -extfile extensions \
             -out {name}.crt"
        ));
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a file")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A certificate in DER.
    pub fn certificate(&self, name: &str) -> Vec<u8> {
        self.run(&format!("x509 -in {name}.crt -outform DER"))
    }

    /// A rule on a certificate: may it sign code, times, certificates?
    pub fn rule(&self, rule: &str, trusts: u8, name: &str, uses: [u8; 3], with_serial: bool) -> String {
        let der = self.certificate(name);
        let (_, certificate, _) = element(&der);
        let (_, to_be_signed, _) = element(certificate);
        let parts = elements(to_be_signed);
        let sha1 = |part: &[u8]| hex(&sha1::Sha1::digest(part));
        // Version, serial, algorithm, issuer, validity, subject, key.
        let serial = if with_serial { sha1(parts[1]) } else { String::new() };
        let (_, numbers, _) = element(&elements(parts[6])[1][1..]);
        let modulus = hex(elements(numbers)[0]);
        let [code, time, certificates] = uses;
        let (subject, modulus) = (sha1(parts[5]), modulus.trim_start_matches("00"));
        format!("{rule};{trusts};{subject};{serial};{modulus};010001;{code};{time};{certificates};0;note\n")
    }

    /// The signature of bytes by RSA, with the digest of that name.
    pub fn signature(&self, name: &str, algorithm: &str, bytes: &[u8]) -> Vec<u8> {
        fs::write(self.path("bytes"), bytes).expect("written");
        self.run(&format!("dgst -{algorithm} -sign {name}.key bytes"))
    }

    /// Signer of `content`, which is of type `content_type`, for a message.
    pub fn signer(
        &self,
        name: &str,
        algorithm: &str,
        content_type: &[u8],
        content: &[u8],
        time: Option<&str>,
    ) -> Vec<u8> {
        let attribute = |id: &[u8], value: Vec<u8>| sequence(&[object(id), der(0x31, &[value])]);
        let now = Command::new("date").args(["-u", "+%y%m%d%H%M%SZ"]).output().expect("date").stdout;
        let time = time.map_or(now.trim_ascii_end().to_vec(), |time| time.as_bytes().to_vec());
        let attributes = [
            attribute(b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x03", object(content_type)),
            attribute(b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x05", der(0x17, &[time])),
            attribute(b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x04", der(4, &[digest(algorithm, content)])),
        ];
        let signature = self.signature(name, algorithm, &der(0x31, &attributes));
        let der_of = self.certificate(name);
        let (_, certificate, _) = element(&der_of);
        let (_, to_be_signed, _) = element(certificate);
        let parts = elements(to_be_signed);
        let identity = sequence(&[der(0x30, &[parts[3].to_vec()]), der(2, &[parts[1].to_vec()])]);
        sequence(&[
            der(2, &[vec![1]]),
            identity,
            algorithm_of(algorithm),
            der(0xa0, &attributes),
            sequence(&[object(b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01"), vec![5, 0]]),
            der(4, &[signature]),
        ])
    }

    /// A countersignature of a signature, as an attribute.
    fn countersignature(&self, name: &str, signature: &[u8], time: Option<&str>) -> Vec<u8> {
        let counter = self.signer(name, "sha1", b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01", signature, time);
        sequence(&[object(b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x06"), der(0x31, &[counter])])
    }

    /// A time-stamp token about a signature (RFC 3161), by `name`, with the certificates in the file `chain`, as an attribute.
    pub fn token(&self, name: &str, chain: &str, signature: &[u8]) -> Vec<u8> {
        fs::write(self.path("stamped"), signature).expect("written");
        fs::write(self.path("serial"), "01\n").expect("written");
        let settings = format!(
            "[tsa]\nserial = serial\nsigner_cert = {name}.crt\nsigner_key = {name}.key\ncerts = {chain}\n\
             signer_digest = sha256\ndefault_policy = 1.2.3.4\ndigests = sha256\ness_cert_id_alg = sha256\n\
             accuracy = millisecs:500\nclock_precision_digits = 3\n"
        );
        fs::write(self.path("tsa.cnf"), settings).expect("written");
        self.run("ts -query -data stamped -sha256 -cert -out query");
        self.run("ts -reply -config tsa.cnf -section tsa -queryfile query -token_out -out token");
        sequence(&[object(b"\x2b\x06\x01\x04\x01\x82\x37\x03\x03\x01"), der(0x31, &[self.read("token")])])
    }

    /// A message with another attribute that nobody signed.
    pub fn with_attribute(message: &[u8], attribute: &[u8]) -> Vec<u8> {
        let mut outer = whole_elements(element(message).1);
        let (_, inner, _) = element(&outer[1]);
        let mut data = whole_elements(element(inner).1);
        let signers = data.pop().expect("signers");
        let mut signer = whole_elements(element(element(&signers).1).1);
        let unsigned = if signer.len() > 6 { element(&signer.remove(6)).1.to_vec() } else { Vec::new() };
        signer.push(der(0xa1, &[unsigned, attribute.to_vec()]));
        data.push(der(0x31, &[sequence(&signer)]));
        outer[1] = der(0xa0, &[sequence(&data)]);
        sequence(&outer)
    }

    /// The signature in a message.
    pub fn signature_in(message: &[u8]) -> Vec<u8> {
        let outer = elements(element(message).1);
        let data = elements(element(outer[1]).1);
        elements(element(data[data.len() - 1]).1)[5].to_vec()
    }

    /// A message with these certificates, signed by the first; countersigned by the second,
    /// or by it for these other bytes, or at that time.
    pub fn message(
        &self,
        signers: &[&str],
        algorithm: &str,
        kind: &[u8],
        content: &[u8],
        certificates: &[&str],
    ) -> Vec<u8> {
        let mut signer = self.signer(signers[0], algorithm, kind, content, None);
        if let Some(by) = signers.get(1) {
            let inside = elements(element(&signer).1);
            let signature =
                signers.get(2).filter(|other| !other.is_empty()).map_or(inside[5], |other| other.as_bytes()).to_vec();
            let all: Vec<Vec<u8>> = whole_elements(element(&signer).1);
            let counter = der(0xa1, &[self.countersignature(by, &signature, signers.get(3).copied())]);
            signer = sequence(&[all.concat(), counter]);
        }
        let certificates: Vec<Vec<u8>> = certificates.iter().map(|name| self.certificate(name)).collect();
        let data = sequence(&[
            der(2, &[vec![1]]),
            der(0x31, &[algorithm_of(algorithm)]),
            sequence(&[object(kind), der(0xa0, &[der(0x30, &[content.to_vec()])])]),
            der(0xa0, &certificates),
            der(0x31, &[signer]),
        ]);
        sequence(&[object(b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02"), der(0xa0, &[data])])
    }
}

pub fn digest(algorithm: &str, bytes: &[u8]) -> Vec<u8> {
    match algorithm {
        "sha1" => sha1::Sha1::digest(bytes).to_vec(),
        _ => sha2::Sha256::digest(bytes).to_vec(),
    }
}

pub fn algorithm_of(name: &str) -> Vec<u8> {
    let id: &[u8] = if name == "sha1" { b"\x2b\x0e\x03\x02\x1a" } else { b"\x60\x86\x48\x01\x65\x03\x04\x02\x01" };
    sequence(&[object(id), vec![5, 0]])
}

/// An element with these inside.
pub fn der(tag: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    let inside = parts.concat();
    let mut out = vec![tag];
    match inside.len() {
        short @ 0..0x80 => out.push(short as u8),
        long => {
            out.push(0x83);
            out.extend(&(long as u32).to_be_bytes()[1..]);
        }
    }
    out.extend(inside);
    out
}

pub fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    der(0x30, parts)
}

pub fn object(id: &[u8]) -> Vec<u8> {
    der(6, &[id.to_vec()])
}

/// The first element: its tag, its content, and what is behind it.
pub fn element(bytes: &[u8]) -> (u8, &[u8], &[u8]) {
    let (length, start) = match bytes[1] {
        short @ 0..0x80 => (usize::from(short), 2),
        long => {
            let count = usize::from(long & 0x7f);
            (bytes[2..2 + count].iter().fold(0, |length, &byte| length << 8 | usize::from(byte)), 2 + count)
        }
    };
    (bytes[0], &bytes[start..start + length], &bytes[start + length..])
}

/// The contents of all elements.
pub fn elements(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (_, content, rest) = element(bytes);
        all.push(content);
        bytes = rest;
    }
    all
}

fn whole_elements(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (_, _, rest) = element(bytes);
        all.push(bytes[..bytes.len() - rest.len()].to_vec());
        bytes = rest;
    }
    all
}
