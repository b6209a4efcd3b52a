//! Base64 for URLs, without padding (RFC 4648, section 5), as browsers write bytes.

/// Bytes as text.
pub(super) fn encode(bytes: &[u8]) -> String {
    text::base64::encode(bytes).trim_end_matches('=').replace('+', "-").replace('/', "_")
}

/// The bytes of a text; `None` if another character is in it.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    text::base64::decode(text.bytes().map(|byte| match byte {
        b'-' => b'+',
        b'_' => b'/',
        b'+' | b'/' => b'=',
        byte => byte,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_to_text_and_back() {
        for length in 0..70 {
            let bytes: Vec<u8> = (0..length).map(|at: u8| at.wrapping_mul(251)).collect();
            let text = encode(&bytes);
            assert!(!text.contains(['+', '/', '=']));
            assert_eq!(decode(&text), Some(bytes));
        }
        assert_eq!((encode(b"\xfb\xff"), decode("-_8")), ("-_8".into(), Some(b"\xfb\xff".to_vec())));
        for text in ["Zg==", "+A", "/A", "Z g"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
