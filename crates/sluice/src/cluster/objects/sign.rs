//! Signatures of requests, AWS Signature Version 4: a request is hashed in a canonical form, with the hash of its body, and signed with a key that
//! is derived from the secret for a day and a region.
//!
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use text::{date, hex};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// An access key for a region.
pub struct Signer {
    id: String,
    secret: String,
    region: String,
}

/// A request without its body.
pub struct Head<'a> {
    pub method: &'a str,
    /// Path, encoded.
    pub path: &'a str,
    /// Names and values, not encoded.
    pub query: &'a [(&'a str, &'a str)],
    /// Names in lower case, with `host`.
    pub headers: BTreeMap<&'a str, String>,
    /// SHA-256 of the body.
    pub sum: [u8; 32],
    /// Seconds since 1970.
    pub seconds: i64,
}

/// SHA-256.
pub fn sum(bytes: &[u8]) -> [u8; 32] {
    let mut sum = [0; 32];
    sum.copy_from_slice(digest(&SHA256, bytes).as_ref());
    sum
}

/// Encodes all but letters, digits and `-._~`.
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte.into()),
            _ => _ = write!(out, "%{byte:02X}"),
        }
    }
    out
}

/// The query as it is sent and signed.
pub fn query(pairs: &[(&str, &str)]) -> String {
    let mut pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    pairs.sort_unstable();
    pairs.join("&")
}

impl Signer {
    /// Reads the secret of an access key from its file.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub fn read(id: &str, file: &Path, region: &str) -> Result<Signer, String> {
        let secret = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let secret = secret.trim();
        if secret.is_empty() || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("{}: not one line with the secret of an access key", file.display()));
        }
        Ok(Signer { id: id.into(), secret: secret.into(), region: region.into() })
    }

    /// Returns all header fields of a request but `host`, with its signature.
    pub fn fields<'a>(&self, mut head: Head<'a>) -> BTreeMap<&'a str, String> {
        let time: String =
            date::timestamp(head.seconds).chars().filter(|letter| !matches!(letter, '-' | ':')).collect();
        let day = &time[..8.min(time.len())];
        head.headers.insert("x-amz-content-sha256", hex::encode(&head.sum));
        head.headers.insert("x-amz-date", time.clone());
        let names = head.headers.keys().copied().collect::<Vec<_>>().join(";");
        let mut canonical = format!("{}\n{}\n{}\n", head.method, head.path, query(head.query));
        head.headers.iter().for_each(|(name, value)| _ = writeln!(canonical, "{name}:{}", value.trim()));
        let _ = write!(canonical, "\n{names}\n{}", hex::encode(&head.sum));

        let scope = format!("{day}/{}/s3/aws4_request", self.region);
        let text = format!("{ALGORITHM}\n{time}\n{scope}\n{}", hex::encode(&sum(canonical.as_bytes())));
        let first = format!("AWS4{}", self.secret).into_bytes();
        let steps = [day, &self.region, "s3", "aws4_request", &text];
        let signature = steps.iter().fold(first, |key, step| mac(&key, step.as_bytes()));
        let authorization = format!(
            "{ALGORITHM} Credential={}/{scope},SignedHeaders={names},Signature={}",
            self.id,
            hex::encode(&signature)
        );
        head.headers.remove("host");
        head.headers.insert("authorization", authorization);
        head.headers
    }
}

fn mac(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    sign(&Key::new(HMAC_SHA256, key), bytes).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of AWS's page, of 2013-05-24.
    fn signature(
        method: &str,
        path: &str,
        query: &[(&str, &str)],
        fields: &[(&'static str, &str)],
        body: &[u8],
    ) -> String {
        let signer = Signer {
            id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            region: "us-east-1".into(),
        };
        let mut headers: BTreeMap<_, _> = fields.iter().map(|&(name, value)| (name, value.to_owned())).collect();
        headers.insert("host", "examplebucket.s3.amazonaws.com".into());
        let fields = signer.fields(Head { method, path, query, headers, sum: sum(body), seconds: 1_369_353_600 });
        assert_eq!(fields["x-amz-date"], "20130524T000000Z");
        fields["authorization"].clone()
    }

    #[test]
    fn requests_are_signed_as_in_the_examples_of_aws() {
        let range = [("range", "bytes=0-9")];
        assert_eq!(
            signature("GET", "/test.txt", &[], &range, b""),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,\
             Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        let put = [("date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")];
        let path = format!("/{}", encoded("test$file.text"));
        for (signed, wanted) in [
            (
                signature("PUT", &path, &[], &put, b"Welcome to Amazon S3."),
                "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
            ),
            (
                signature("GET", "/", &[("lifecycle", "")], &[], b""),
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
            ),
            (
                signature("GET", "/", &[("prefix", "J"), ("max-keys", "2")], &[], b""),
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
        ] {
            assert!(signed.ends_with(&format!("Signature={wanted}")), "{signed}");
        }
    }
}
