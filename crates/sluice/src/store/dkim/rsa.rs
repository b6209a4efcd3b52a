//! Keys of RSA: two random primes (FIPS 186-5, appendix A.1.3, but for its proofs), and the key in DER (RFC 8017, appendix A.1).
//!
//! Made once, by a command; the time that it takes says nothing to anybody.

use num_bigint::BigUint;
use ring::rand::SecureRandom;
use ring::signature::RsaKeyPair;

/// Bits of a prime: keys have 2,048, which fit into a record of the DNS and are taken by all.
const PRIME_BITS: u64 = 1_024;

/// Rounds of Miller and Rabin: a number that is no prime passes one in four at the most, and random ones far less often.
const ROUNDS: usize = 8;

const EXPONENT: u32 = 65_537;

/// A new private key, `RSAPrivateKey`; none without randomness.
pub fn private_key(random: &dyn SecureRandom) -> Option<Vec<u8>> {
    let (one, e) = (BigUint::from(1u8), BigUint::from(EXPONENT));
    loop {
        let (a, b) = (prime(random)?, prime(random)?);
        let (p, q) = if a > b { (a, b) } else { (b, a) };
        let (p1, q1) = (&p - &one, &q - &one);
        let n = &p * &q;
        let Some(d) = e.modinv(&(&p1 * &q1)) else { continue };
        let Some(coefficient) = q.modinv(&p) else { continue };
        let (dp, dq) = (&d % &p1, &d % &q1);
        let numbers = [&BigUint::from(0u8), &n, &e, &d, &p, &q, &dp, &dq, &coefficient];
        let key = sequence(&numbers.map(integer).concat());
        // The two primes have to be far enough from each other, among other things.
        if RsaKeyPair::from_der(&key).is_ok() {
            return Some(key);
        }
    }
}

/// The public key of a private one, `SubjectPublicKeyInfo`.
pub fn public_key(private: &[u8]) -> Option<Vec<u8>> {
    let pair = RsaKeyPair::from_der(private).ok()?;
    // This is `RSAPublicKey` already.
    let key = pair.public().as_ref();
    // The identifier of rsaEncryption, without parameters.
    let algorithm = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
    Some(sequence(&[sequence(&algorithm), tagged(0x03, &[&[0], key].concat())].concat()))
}

fn prime(random: &dyn SecureRandom) -> Option<BigUint> {
    loop {
        let mut bytes = [0; (PRIME_BITS / 8) as usize];
        random.fill(&mut bytes).ok()?;
        let mut number = BigUint::from_bytes_be(&bytes);
        // The product of two has all its bits, and none is even.
        for bit in [0, PRIME_BITS - 1, PRIME_BITS - 2] {
            number.set_bit(bit, true);
        }
        if is_prime(&number, random)? {
            return Some(number);
        }
    }
}

/// Whether a number, which is odd and large, is a prime; none without randomness.
fn is_prime(number: &BigUint, random: &dyn SecureRandom) -> Option<bool> {
    let small = (3u32..2_000).step_by(2);
    if small.into_iter().any(|small| number % small == BigUint::from(0u8)) {
        return Some(false);
    }
    let one = BigUint::from(1u8);
    let before = number - &one;
    let twos = before.trailing_zeros().unwrap_or(0);
    let odd = &before >> twos;
    for _ in 0..ROUNDS {
        let mut bytes = [0; (PRIME_BITS / 8 - 1) as usize];
        random.fill(&mut bytes).ok()?;
        let witness = BigUint::from_bytes_be(&bytes) + BigUint::from(2u8);
        let mut power = witness.modpow(&odd, number);
        if power == one || power == before {
            continue;
        }
        let mut is_composite = true;
        for _ in 1..twos {
            power = power.modpow(&BigUint::from(2u8), number);
            if power == before {
                is_composite = false;
                break;
            }
        }
        if is_composite {
            return Some(false);
        }
    }
    Some(true)
}

fn integer(number: &BigUint) -> Vec<u8> {
    let mut bytes = number.to_bytes_be();
    // The first bit would be a sign.
    if bytes.first().is_some_and(|&first| first >= 0x80) {
        bytes.insert(0, 0);
    }
    tagged(0x02, &bytes)
}

fn sequence(content: &[u8]) -> Vec<u8> {
    tagged(0x30, content)
}

fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let significant: Vec<u8> = length.into_iter().skip_while(|&byte| byte == 0).collect();
    let mut out = vec![tag];
    match content.len() {
        0..0x80 => out.push(content.len() as u8),
        _ => {
            out.push(0x80 | significant.len() as u8);
            out.extend(significant);
        }
    }
    out.extend(content);
    out
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;

    use super::*;

    #[test]
    fn primes_are_told_from_others() {
        let random = SystemRandom::new();
        let number = |text: &str| text.parse::<BigUint>().unwrap();
        // 2^127 - 1 and 2^521 - 1 are primes; the product of two, and a number of Carmichael's, are none.
        let first = (BigUint::from(1u8) << 127) - 1u8;
        let second = (BigUint::from(1u8) << 521) - 1u8;
        for prime in [&first, &second] {
            assert_eq!(is_prime(prime, &random), Some(true));
        }
        for composite in [&first * &second, &first * &first, number("340561"), number("3215031751")] {
            assert_eq!(is_prime(&composite, &random), Some(false), "{composite}");
        }
    }
}
