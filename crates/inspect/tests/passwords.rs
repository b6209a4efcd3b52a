//! Encrypted archives whose password is in the mail, or configured.

use std::sync::Arc;

use crate::pipeline::{Drive, drive_in, inspect};
use flow::{Context, Policy};
use inspect::Engine;
use scan::Database;
use stream::Limits;

/// Made with pyzipper and with `zip -P`: the test virus, encrypted with `Geheim-42`.
const AES: &str = "UEsDBBQAAQBjABmzdV0AAAAAYgAAAEQAAAAJAAsAZWljYXIuY29tAZkHAAIAQUUDCADeaSuKv/Wg/23rCMvHE4u0EMXad0mp
KwliBtZUoMV+ZcgQR59IXQDCyOZQp6M8ouKGYmuy0wRE9mS9zL7TaqMT0isua58GtC1tGCCRIX8OfbEGAXTSVuR2ZjefM+1M0tbAcFBLAQIUAxQAAQBj
ABmzdV0AAAAAYgAAAEQAAAAJAAsAAAAAAAAAAACAAQAAAABlaWNhci5jb20BmQcAAgBBRQMIAFBLBQYAAAAAAQABAEIAAACUAAAAAAA=";
const TRADITIONAL: &str =
    "UEsDBAoACQAAABmzdV08z1FoUAAAAEQAAAAJABwAZWljYXIuY29tVVQJAAMyGgJrMhoCa3V4CwABBAAAAAAEAAAAAMEeeqNQ
XJARUX6ogw6jXnRlDThLhvTtkWECI24sXOPlAsOR9Z4m595vp/Kb8oxSQRo5i/B2c1YE6/fB8KNcenLbzv8MWRg4Ulsj745jbKrEUEsHCDzPUWhQAAAA
RAAAAFBLAQIeAwoACQAAABmzdV08z1FoUAAAAEQAAAAJABgAAAAAAAEAAACkgQAAAABlaWNhci5jb21VVAUAAzIaAmt1eAsAAQQAAAAABAAAAABQSwUG
AAAAAAEAAQBPAAAAowAAAAAA";

const EICAR: &str = "Eicar-Test-Signature";
const ENCRYPTED: &str = "Heuristics.Encrypted.Zip";

fn engine() -> Arc<Engine> {
    Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() })
}

fn mail(subject: &str, text: &str, file_name: &str, archive: &str) -> Vec<u8> {
    let archive = archive.replace('\n', "\r\n");
    format!(
        "From: a@example.org\r\nSubject: {subject}\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\
         Content-Type: text/html\r\n\r\n{text}\r\n--b\r\nContent-Type: application/zip\r\n\
         Content-Disposition: attachment; filename=\"{file_name}\"\r\nContent-Transfer-Encoding: base64\r\n\r\n\
         {archive}\r\n--b--\r\n"
    )
    .into_bytes()
}

#[test]
fn the_password_is_found_in_text_subject_and_name() {
    for archive in [AES, TRADITIONAL] {
        for (subject, text, name) in [
            ("hello", "<p>The password is <b>Geheim-42</b>.</p>", "a.zip"),
            ("hello", "<p>Geheim-42</p>", "a.zip"),
            ("archive (pass Geheim-42)", "see subject", "a.zip"),
            ("=?utf-8?B?cGFzcyBHZWhlaW0tNDI=?=", "see subject", "a.zip"),
            ("hello", "解压密码是Geheim-42。", "a.zip"),
            ("hello", "<p>Password: Geh<b>ei</b>m-&#52;2</p>", "a.zip"),
            ("hello", "see the name", "Geheim-42.zip"),
        ] {
            let mail = mail(subject, text, name, archive);
            let seen = inspect(&engine(), Policy::default(), &mail);
            assert_eq!(seen.names(), [EICAR], "{subject} {text} {name}");
        }
    }
}

#[test]
fn what_no_word_opens_is_encrypted() {
    for archive in [AES, TRADITIONAL] {
        let seen = inspect(&engine(), Policy::default(), &mail("hello", "geheim-42 is not it", "a.zip", archive));
        assert_eq!(seen.names(), [ENCRYPTED]);
    }
}

#[test]
fn a_configured_password_opens_it() {
    let passwords = ["infected", "Geheim-42"].map(|word| word.as_bytes().into());
    let context = Context { passwords: passwords.into(), ..Context::default() };
    let how = Drive { piece: 7, fuel: 50, mail: true };
    let seen = drive_in(&engine(), context, &mail("hello", "text", "a.zip", AES), how);
    assert_eq!(seen.names(), [EICAR]);
}

#[test]
fn tries_end_with_the_work_that_is_granted() {
    let limits = Limits { key_bytes_max: 400_000, ..Limits::default() };
    let engine = Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits });
    let mail = mail("hello", "password: Geheim-42", "a.zip", AES);
    assert_eq!(inspect(&engine, Policy::default(), &mail).names(), ["Heuristics.Encrypted.Tries", ENCRYPTED]);
}

#[test]
fn the_passwords_of_a_database_open_archives() {
    let mut builder = scan::Builder::new();
    builder.add_builtin();
    builder.add("a.pwdb", b"Usual;Engine:81-255,Container:CL_TYPE_ZIP;1;47656865696d2d3432\n").expect("a list");
    let engine = Arc::new(Engine { database: Arc::new(builder.build()), limits: Limits::default() });
    for archive in [AES, TRADITIONAL] {
        let seen = inspect(&engine, Policy::default(), &mail("hello", "no word of it", "a.zip", archive));
        assert_eq!(seen.names(), [EICAR]);
    }
}
