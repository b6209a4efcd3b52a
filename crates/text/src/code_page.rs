//! Code pages of DOS, which browsers do not read, and mails have that were written with old programs, and names in archives.

use alloc::string::String;

/// A code page: its characters for bytes from 128 on.
#[derive(Debug, Clone, Copy)]
pub struct CodePage(&'static str);

impl CodePage {
    /// Code page 437, of names in zip archives.
    pub const IBM437: CodePage = CodePage(
        "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
    );
    const IBM850: CodePage = CodePage(
        "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}",
    );
    const IBM852: CodePage = CodePage(
        "ÇüéâäůćçłëŐőîŹÄĆÉĹĺôöĽľŚśÖÜŤťŁ×čáíóúĄąŽžĘę¬źČş«»░▒▓│┤ÁÂĚŞ╣║╗╝Żż┐└┴┬├─┼Ăă╚╔╩╦╠═╬¤đĐĎËďŇÍÎě┘┌█▄ŢŮ▀ÓßÔŃńňŠšŔÚŕŰýÝţ´\u{ad}˝˛ˇ˘§÷¸°¨˙űŘř■\u{a0}",
    );
    /// Code page 850 with a euro sign.
    const IBM858: CodePage = CodePage(
        "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈ€ÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}",
    );

    /// Finds the code page of a label in lower case.
    pub(crate) fn find(label: &str) -> Option<CodePage> {
        Some(match label {
            "ibm437" | "cp437" | "437" | "cspc8codepage437" => CodePage::IBM437,
            "ibm850" | "cp850" | "850" | "cspc850multilingual" => CodePage::IBM850,
            "ibm852" | "cp852" | "852" | "cspcp852" => CodePage::IBM852,
            "ibm858" | "cp858" | "ibm00858" | "ccsid00858" | "cp00858" => CodePage::IBM858,
            _ => return None,
        })
    }

    /// Decodes a text. No byte is invalid.
    pub fn decode(self, bytes: &[u8]) -> String {
        let mut upper = ['\0'; 128];
        upper.iter_mut().zip(self.0.chars()).for_each(|(place, character)| *place = character);
        let character = |&byte: &u8| if byte < 128 { char::from(byte) } else { upper[usize::from(byte & 127)] };
        bytes.iter().map(character).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_128_characters_beyond_ascii() {
        for (label, word) in [
            ("437", "Gr\u{fc}\u{df}e"),
            ("ibm850", "Gr\u{fc}\u{df}e"),
            ("cp852", "Gr\u{fc}\u{df}e"),
            ("ibm858", "Gr\u{fc}\u{df}e"),
        ] {
            let page = CodePage::find(label).unwrap();
            assert_eq!(page.0.chars().count(), 128, "{label}");
            assert_eq!(page.decode(b"Gr\x81\xe1e"), word, "{label}");
        }
        assert_eq!(CodePage::find("ibm858").unwrap().decode(b"\xd5"), "\u{20ac}");
        assert!(CodePage::find("ibm866").is_none(), "browsers read it");
    }
}
