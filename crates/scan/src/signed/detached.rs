//! Signatures in files of their own (`.sign`, from ClamAV 1.5 on) of containers and of incremental updates.
//!
//! ```text
//!  #clamsign-1.0
//!  230::pkcs7-pem:MIIP...       least and highest level, format, a CMS message without content in base 64
//! ```
//! One line that is signed by somebody whom the authorities vouch for is enough; a signature of other bytes makes the whole
//! file worthless. The certificate of who signed must be valid now, may sign code or mail, and leads over at most
//! [`STEPS_MAX`] others in the message to an authority.

use super::base64;
use super::certificate::Certificate;
use super::message::{DATA, Message};
use super::rsa::Algorithm;

/// The level from which on there are such files: lines for older engines only are left out.
const LEVEL: u32 = 230;
/// The longest file.
const FILE_BYTES_MAX: usize = 1 << 20;
/// The most certificates between who signed and an authority.
const STEPS_MAX: usize = 8;

/// Certificates of those who are trusted to say who may sign databases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Authorities {
    /// In DER.
    certificates: Vec<Box<[u8]>>,
}

impl Authorities {
    /// Adds those of a file in PEM. Returns how many there were.
    ///
    /// # Errors
    /// If there are none, or one cannot be read.
    pub fn add_pem(&mut self, text: &[u8]) -> Result<usize, String> {
        let text = String::from_utf8_lossy(text);
        let mut count = 0;
        for piece in text.split("-----BEGIN CERTIFICATE-----").skip(1) {
            let (inner, _) = piece.split_once("-----END CERTIFICATE-----").ok_or("a certificate without an end")?;
            let der = base64(inner.as_bytes()).ok_or("a certificate that is not in base 64")?;
            Certificate::read(&der).ok_or("a certificate that cannot be read: only those with RSA keys are")?;
            self.certificates.push(der.into());
            count += 1;
        }
        if count == 0 { Err("no certificate".to_owned()) } else { Ok(count) }
    }

    /// Whether `sign`, the content of a `.sign` file, signs a file with this SHA-256, at the time `now` in seconds since
    /// 1970. Returns who signed it.
    ///
    /// # Errors
    /// If it does not; the message says why.
    pub fn verify(&self, sign: &[u8], sha256: &[u8; 32], now: i64) -> Result<String, String> {
        let text = std::str::from_utf8(sign).ok().filter(|text| text.len() <= FILE_BYTES_MAX).ok_or("no signature")?;
        let mut lines = text.lines();
        if lines.next().map(str::trim_end) != Some("#clamsign-1.0") {
            return Err("no signature of the form clamsign-1.0".to_owned());
        }
        let mut reason = "no signature for this engine".to_owned();
        for line in lines.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let Some(der) = message(line)? else { continue };
            match self.signed(&der, sha256, now) {
                Ok(name) => return Ok(name),
                Err(Wrong::Bytes) => return Err("the signature is of other bytes".to_owned()),
                Err(Wrong::Signer(why)) => reason = why.to_owned(),
            }
        }
        Err(reason)
    }

    fn signed(&self, der: &[u8], sha256: &[u8; 32], now: i64) -> Result<String, Wrong> {
        let message = Message::read(der).ok_or(Wrong::Signer("the signature cannot be read"))?;
        let signer = message.signer.as_ref().ok_or(Wrong::Signer("the signature cannot be read"))?;
        let certificate =
            message.signers_certificate().ok_or(Wrong::Signer("the certificate of the signer is missing"))?;
        if signer.algorithm != Algorithm::Sha256 || signer.content_type != DATA || message.content_type != DATA {
            return Err(Wrong::Signer("a signature of another form"));
        }
        if signer.message_digest != sha256 || !signer.is_by(certificate) {
            return Err(Wrong::Bytes);
        }
        let may = certificate.purposes.is_none_or(|purposes| purposes.code || purposes.mail || purposes.any);
        if !may || !certificate.may_sign() {
            return Err(Wrong::Signer("the signer's certificate is for another purpose"));
        }
        self.vouch(certificate, &message.certificates, now)?;
        Ok(certificate.common_name())
    }

    /// Whether certificates lead from this one to an authority.
    fn vouch(&self, first: &Certificate<'_>, others: &[Certificate<'_>], now: i64) -> Result<(), Wrong> {
        let mut current = *first;
        for _ in 0..STEPS_MAX {
            if !current.is_valid(now) {
                return Err(Wrong::Signer("a certificate is not valid at this time"));
            }
            if current.is_beyond {
                return Err(Wrong::Signer("a certificate with a critical extension that is not known"));
            }
            let roots = self.certificates.iter().filter_map(|der| Certificate::read(der));
            for root in roots {
                if root.whole == current.whole || root.signed(&current) {
                    let valid = root.is_valid(now);
                    return valid.then_some(()).ok_or(Wrong::Signer("the authority's certificate is not valid"));
                }
            }
            let above =
                others.iter().find(|one| one.whole != current.whole && one.is_authority() && one.signed(&current));
            current = *above.ok_or(Wrong::Signer("the signer's certificate does not chain to a trusted authority"))?;
        }
        Err(Wrong::Signer("too many certificates up to an authority"))
    }
}

/// Reason to refuse a signature.
enum Wrong {
    /// It was made of other bytes, or is damaged.
    Bytes,
    /// It is of no use here.
    Signer(&'static str),
}

/// The message of a line, if it is for this engine.
fn message(line: &str) -> Result<Option<Vec<u8>>, String> {
    let fields: Vec<&str> = line.split(':').collect();
    let [least, highest, format, text] = fields.as_slice() else {
        return Err("a line with another number of fields than four".to_owned());
    };
    let level = |text: &str, or| if text.is_empty() { Some(or) } else { text.parse::<u32>().ok() };
    let (least, highest) = (level(least, 0), level(highest, u32::MAX));
    let (Some(least), Some(highest)) = (least, highest) else { return Err("a level is no number".to_owned()) };
    if *format != "pkcs7-pem" || highest < LEVEL || least > LEVEL {
        return Ok(None);
    }
    base64(text.as_bytes()).map(Some).ok_or_else(|| "the signature is not in base 64".to_owned())
}

/// Verifies signatures from `input`, for a fuzzer: what was flipped is never signed.
#[doc(hidden)]
pub fn fuzz_detached(input: &[u8]) {
    let mut authorities = Authorities::default();
    let _ = authorities.add_pem(input);
    if let Some(der) = base64(input) {
        let _ = Certificate::read(&der);
        let _ = authorities.signed(&der, &[7; 32], 0);
    }
    assert!(authorities.verify(input, &[7; 32], 1_750_000_000).is_err());
}
