//! The RSA signatures of official containers, and of their incremental updates.
//!
//! All are RFC 8017 with the makers' public keys, written as numbers of base 64 whose lowest digit comes first. The
//! header's has 1024 bits and holds the MD5 of what follows the header, without any padding; those of info files and updates
//! have 2048 bits and are RSASSA-PSS (section 9.1.2) with SHA-256 and a salt of 32 bytes.

use num_bigint::BigUint;
use sha2::{Digest, Sha256};

/// A public key.
struct Key {
    modulus: &'static str,
    exponent: u32,
}

/// Signs headers.
const HEADER_KEY: Key = Key {
    modulus: "118640995551645342603070001658453189751527774412027743746599405743243142607464144767361060640655844749760788890022283424922762488917565551002467771109669598189410434699034532232228621591089508178591428456220796841621637175567590476666928698770143328137383952820383197532047771780196576957695822641224262693037",
    exponent: 100_001_027,
};

/// Signs info files.
const INFO_KEY: Key = Key {
    modulus: "11088894983048545473659556106627194923928941791795047620591658697413581043322715912172496806525381055880964520618400224333320534660299233983755341740679502866829909679955734391392668378361221524205396631090105151641270857277080310734320951653700508941717419168723942507890702904702707587451621691050754307850383399865346487203798464178537392211402786481359824461197231102895415093770394216666324484593935762408468516826633192140826667923494822045805347809932848454845886971706424360558667862775876072059437703365380209101697738577515476935085469455279994113145977994084618328482151013142393373316337519977244732747977",
    exponent: 100_002_049,
};

/// Signs incremental updates.
const UPDATE_KEY: Key = Key {
    modulus: "14783905874077467090262228516557917570254599638376203532031989214105552847269687489771975792123442185817287694951949800908791527542017115600501303394778618535864845235700041590056318230102449612217458549016089313306591388590790796515819654102320725712300822356348724011232654837503241736177907784198700834440681124727060540035754699658105895050096576226753008596881698828185652424901921668758326578462003247906470982092298106789657211905488986281078346361469524484829559560886227198091995498440676639639830463593211386055065360288422394053998134458623712540683294034953818412458362198117811990006021989844180721010947",
    exponent: 100_002_053,
};

/// The longest text of a signature: 2048 bits are 342 digits.
const DIGITS_MAX: usize = 512;

/// Whether `text` is the signature of a header for content with this MD5.
pub(super) fn signs_header(text: &str, md5: &[u8; 16]) -> bool {
    open(text, &HEADER_KEY).is_some_and(|opened| opened == BigUint::from_bytes_be(md5))
}

/// Whether `text` is the signature of an info file whose signed part has this SHA-256.
pub(super) fn signs_info(text: &str, sha256: &[u8; 32]) -> bool {
    signs(text, sha256, &INFO_KEY)
}

/// Whether `text` is the signature of an incremental update whose signed part has this SHA-256.
pub(super) fn signs_update(text: &str, sha256: &[u8; 32]) -> bool {
    signs(text, sha256, &UPDATE_KEY)
}

fn signs(text: &str, sha256: &[u8; 32], key: &Key) -> bool {
    let Some(opened) = open(text, key) else {
        return false;
    };
    let bytes = opened.to_bytes_be();
    let mut encoded = [0; 256];
    let Some(start) = encoded.len().checked_sub(bytes.len()) else {
        return false;
    };
    encoded[start..].copy_from_slice(&bytes);
    is_pss(&encoded, sha256)
}

/// The number that was signed.
fn open(text: &str, key: &Key) -> Option<BigUint> {
    let modulus: BigUint = key.modulus.parse().ok()?;
    let digits: Option<Vec<u8>> = text.bytes().map(digit).collect();
    let digits = digits.filter(|digits| digits.len() <= DIGITS_MAX)?;
    let number = BigUint::from_radix_le(&digits, 64).filter(|number| *number < modulus)?;
    Some(number.modpow(&BigUint::from(key.exponent), &modulus))
}

fn digit(letter: u8) -> Option<u8> {
    Some(match letter {
        b'a'..=b'z' => letter - b'a',
        b'A'..=b'Z' => letter - b'A' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

/// EMSA-PSS-VERIFY for 2047 bits: masked block, hash, `0xbc`.
fn is_pss(encoded: &[u8; 256], message: &[u8; 32]) -> bool {
    let (masked, rest) = encoded.split_at(223);
    let (hash, trailer) = rest.split_at(32);
    if trailer != [0xbc] || masked[0] & 0x80 != 0 {
        return false;
    }
    let mut block: Vec<u8> = masked.iter().zip(mask(hash)).map(|(byte, mask)| byte ^ mask).collect();
    block[0] &= 0x7f;
    let (padding, salt) = block.split_at(223 - 32);
    let Some((1, zeros)) = padding.split_last() else {
        return false;
    };
    let expected = Sha256::new().chain_update([0; 8]).chain_update(message).chain_update(salt).finalize();
    zeros.iter().all(|&byte| byte == 0) && expected.as_slice() == hash
}

/// MGF1 with SHA-256 (RFC 8017, B.2.1), without end.
fn mask(seed: &[u8]) -> impl Iterator<Item = u8> {
    (0u32..).flat_map(move |counter| {
        let block: [u8; 32] = Sha256::new().chain_update(seed).chain_update(counter.to_be_bytes()).finalize().into();
        block
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of the makers' own test container.
    const TEXT: &str = "Z+xkU7ZILVNHKD7H8FYeI00CTNnxDfstKeTPcNIR/5Qa/5yZbt1JeSmcbw8OFqHDUmMORx/GRwZXiAagP8Gvs8OwkLfFYgiCDxkK6zoGu8DxMZ3MvB6HsgUxJ2LdkCh1aSzs88tsTaEhPnpHJzKs/XlNjTX+s8DWrCTtaVLBtPf";

    #[test]
    fn a_header_is_signed_for_its_own_digest_only() {
        let mut md5 = 0x2c64_5dd8_1c87_e460_91e0_cc13_6ae0_b217_u128.to_be_bytes();
        assert!(signs_header(TEXT, &md5));
        md5[3] ^= 1;
        assert!(!signs_header(TEXT, &md5));
        assert!(!signs_header(&TEXT.replacen('Z', "a", 1), &md5));
    }

    #[test]
    fn what_is_no_number_below_the_modulus_signs_nothing() {
        for text in ["", "a", "Z-xk", &"/".repeat(172), &"/".repeat(100_000)] {
            assert!(!signs_header(text, &[1; 16]), "{text}");
            assert!(!signs_info(text, &[1; 32]), "{text}");
        }
    }
}
