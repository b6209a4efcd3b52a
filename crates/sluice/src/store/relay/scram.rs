//! SCRAM-SHA-256 (RFC 5802, 7677), the client's side: the server does not learn the password, and proves that it knows its keys.
//!
//! There is no channel binding. Names and passwords are taken as they are: characters that have several forms (RFC 4013) work in the form in
//! which the server has them. Bounds: [`ITERATIONS_MAX`] rounds of hashing, about half a second.

use std::num::NonZeroU32;

use aws_lc_rs::{digest, hmac, pbkdf2};
use text::base64;

/// The rounds of hashing that a server may ask for.
const ITERATIONS_MAX: u32 = 1_000_000;

/// The longest salt, in bytes.
const SALT_BYTES_MAX: usize = 1_024;

const HASH_BYTES: usize = digest::SHA256_OUTPUT_LEN;

/// An exchange that has begun.
pub struct Exchange {
    nonce: String,
    bare: String,
}

/// The last response of a client.
pub struct Proof {
    /// The message.
    pub message: String,
    /// The message by which the server proves that it knows the keys of the password.
    pub wanted: String,
}

impl Exchange {
    /// For a name; `random` makes the nonce.
    pub fn new(name: &str, random: &[u8]) -> Exchange {
        let nonce = base64::encode(random);
        let bare = format!("n={},r={nonce}", name.replace('=', "=3D").replace(',', "=2C"));
        Exchange { nonce, bare }
    }

    /// The first message.
    pub fn first(&self) -> String {
        format!("n,,{}", self.bare)
    }

    /// Answers the first message of the server. The work takes as long as the server asks for.
    ///
    /// # Errors
    /// When the message is wrong, or asks for too much.
    pub fn prove(&self, password: &[u8], challenge: &[u8]) -> Result<Proof, &'static str> {
        const WRONG: &str = "its challenge is not one of SCRAM-SHA-256";
        let said = std::str::from_utf8(challenge).map_err(|_| WRONG)?;
        let mut attributes = said.split(',');
        let mut next = |name: &str| attributes.next().and_then(|text| text.strip_prefix(name)).ok_or(WRONG);
        let (nonce, salt, iterations) = (next("r=")?, next("s=")?, next("i=")?);
        let is_ours = nonce.len() > self.nonce.len() && nonce.starts_with(&self.nonce);
        let salt = base64::decode(salt.trim_end_matches('=').bytes()).filter(|salt| salt.len() <= SALT_BYTES_MAX);
        let (true, Some(salt), Ok(iterations)) = (is_ours, salt, iterations.parse::<NonZeroU32>()) else {
            return Err(WRONG);
        };
        if iterations.get() > ITERATIONS_MAX {
            return Err("it asks for more hashing than a password is worth");
        }
        let mut salted = [0; HASH_BYTES];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, &salt, password, &mut salted);
        let without = format!("c=biws,r={nonce}");
        let all = format!("{},{said},{without}", self.bare);
        let client = keyed(&salted, b"Client Key");
        let stored = digest::digest(&digest::SHA256, client.as_ref());
        let signature = keyed(stored.as_ref(), all.as_bytes());
        let proof: Vec<u8> = client.as_ref().iter().zip(signature.as_ref()).map(|(key, sign)| key ^ sign).collect();
        let server = keyed(keyed(&salted, b"Server Key").as_ref(), all.as_bytes());
        Ok(Proof {
            message: format!("{without},p={}", base64::encode(&proof)),
            wanted: format!("v={}", base64::encode(server.as_ref())),
        })
    }
}

fn keyed(key: &[u8], message: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3.
    fn example() -> Exchange {
        Exchange { nonce: "rOprNGfwEbeRWgbNEkqO".into(), bare: "n=user,r=rOprNGfwEbeRWgbNEkqO".into() }
    }

    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";

    #[test]
    fn the_example_of_the_standard_is_spoken() {
        let exchange = example();
        assert_eq!(exchange.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let challenge = format!("r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        let Proof { message, wanted } = exchange.prove(b"pencil", challenge.as_bytes()).unwrap();
        assert_eq!(message, format!("c=biws,r={NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="));
        assert_eq!(wanted, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn challenges_that_are_wrong_or_cost_too_much_are_refused() {
        let salt = "W22ZaJ0SNY7soEsUEjb6gQ==";
        for wrong in [
            String::new(),
            "r=other,s=AAAA,i=4096".into(),
            format!("r=rOprNGfwEbeRWgbNEkqO,s={salt},i=4096"),
            format!("m=x,r={NONCE},s={salt},i=4096"),
            format!("r={NONCE},s=!,i=4096"),
            format!("r={NONCE},s={salt},i=0"),
            format!("r={NONCE},s={salt},i=4294967295"),
            format!("r={NONCE},s={salt}"),
        ] {
            assert!(example().prove(b"pencil", wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert_eq!(Exchange::new("a,b=c", b"").first(), "n,,n=a=2Cb=3Dc,r=");
    }
}
