//! Text with its transfer coding, for mails that are written here.

use alloc::format;
use alloc::vec::Vec;

/// Columns of a line of quoted-printable.
const LINE_MAX: usize = 76;

/// Text with the field of its transfer coding (RFC 2045, section 6): as it stands if it is short lines of ASCII, quoted-printable otherwise.
pub fn encoded_text(value: &str) -> Vec<u8> {
    let value = value.replace("\r\n", "\n").replace('\r', "\n");
    let is_plain = value.split('\n').all(|line| {
        line.len() < 900
            && !line.ends_with(' ')
            && !line.starts_with("From ")
            && line.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
    });
    if is_plain {
        return format!("Content-Transfer-Encoding: 7bit\r\n\r\n{}\r\n", value.replace('\n', "\r\n")).into_bytes();
    }
    let mut out = b"Content-Transfer-Encoding: quoted-printable\r\n\r\n".to_vec();
    for line in value.split('\n') {
        let (mut columns, bytes) = (0usize, line.as_bytes());
        for (at, &byte) in bytes.iter().enumerate() {
            let is_last = at.saturating_add(1) == bytes.len();
            let is_from = at == 0 && line.starts_with("From ");
            let stands =
                (matches!(byte, b'!'..=b'<' | b'>'..=b'~') || (matches!(byte, b' ' | b'\t') && !is_last)) && !is_from;
            let width = if stands { 1 } else { 3 };
            if columns.saturating_add(width) >= LINE_MAX {
                out.extend_from_slice(b"=\r\n");
                columns = 0;
            }
            columns = columns.saturating_add(width);
            match stands {
                true => out.push(byte),
                false => out.extend_from_slice(format!("={byte:02X}").as_bytes()),
            }
        }
        out.extend_from_slice(b"\r\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::encoded_text;

    #[test]
    fn text_stands_or_is_quoted() {
        let written = |text| String::from_utf8(encoded_text(text)).unwrap();
        assert_eq!(written("a\nb"), "Content-Transfer-Encoding: 7bit\r\n\r\na\r\nb\r\n");
        let quoted = "Content-Transfer-Encoding: quoted-printable\r\n\r\n";
        assert_eq!(written("gr\u{fc}n = \r\nx"), format!("{quoted}gr=C3=BCn =3D=20\r\nx\r\n"));
        assert_eq!(written("From x"), format!("{quoted}=46rom x\r\n"));
        assert!(written(&"\u{fc}".repeat(99)).lines().all(|line| line.len() <= 76));
    }
}
