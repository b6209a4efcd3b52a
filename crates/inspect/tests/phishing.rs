//! Links of mails that show one address and lead to another, against clamscan where it is installed.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use crate::pipeline::{Drive, drive, inspect};
use flow::Policy;
use inspect::Engine;
use scan::Builder;
use sha2::{Digest as _, Sha256};
use stream::Limits;

const DISPLAY: &str =
    "H:bank.com\nH:www.pay.co.uk\nH:shop.de:17-\nH:late.com:500-\nR:.+evil\\.net([/?].*)?:.+only\\.org([/?].*)?\n";
const ALLOW: &str = "M:ok.net:bank.com\nM:sub.fine.org:bank.com\nX:.+\\.trusted\\.net([/?].*)?:.+\\.bank\\.com([/?].*)?\n\
    M:old.net:bank.com:5-6\n";

/// Where links lead.
const REAL: [&str; 24] = [
    "http://evil.net/",
    "https://evil.net/x?y=1",
    "ftp://evil.net",
    "evil.net",
    "//evil.net/",
    "/x",
    "#x",
    "mailto:a@evil.net",
    "cid:x",
    "http://bank.com.evil.net/",
    "http://bank.com@evil.net/",
    "http://bank.com%00.evil.net/",
    "http://www2.bank.com/",
    "http://BANK.com/",
    "http://1.2.3.4/",
    "http://2130706433/",
    "http://ok.net/x",
    "http://a.ok.net/",
    "http://sub.fine.org/",
    "http://fine.org/",
    "http://a.trusted.net/",
    "http://old.net/",
    "http://login.pay.co.uk/",
    "http://other.co.uk/",
];

/// Displayed texts of links.
const SHOWN: [&str; 22] = [
    "bank.com",
    "http://bank.com/",
    "https://bank.com/login",
    "HTTP://Www.Bank.COM/",
    "www.bank.com/login",
    "mybank.com",
    "bank.comx",
    "see bank.com now",
    "Click here",
    "user@bank.com",
    "ftp://bank.com",
    " <b>bank</b>. com<br>",
    "bank.com<!-- x -->",
    "https://bank.com:80/x?y",
    "www.pay.co.uk",
    "http://x.www.pay.co.uk",
    "pay.co.uk",
    "shop.de",
    "http://late.com",
    "http://only.org",
    "http://www.only.org/x",
    "",
];

/// Pages of other forms.
const PAGES: [&str; 12] = [
    "<form action=\"http://evil.net/\"><a href=\"http://bank.com\">x</a></form>",
    "<form action=\"http://evil.net/\">http://bank.com</form>",
    "<a href=\"http://evil.net/\" title=\"bank.com\">x</a>",
    "<a href=\"http://evil.net/\"><img src=\"http://bank.com/x.png\"></a>",
    "<a href=\"http://bank.com/\"><img src=\"http://evil.net/x.png\"></a>",
    "<img src=\"http://evil.net/x.png\" title=\"bank.com\">",
    "<a href=http://evil.net/>bank.com",
    "<a href=\"http://evil&#46;net/\">bank.com</a>",
    "<a name=x href=' http://evil.net/ '>bank.com</a>",
    "<a href=\"http://evil.net/\"><a href=\"http://other.net/\">bank.com</a></a>",
    "<div href=\"http://evil.net/\">bank.com</div>",
    "<a href=\"http://evil.net\"></a>bank.com",
];

fn mail(page: &str) -> Vec<u8> {
    let head = "From: a@example.org\r\nTo: b@example.org\r\nMIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n";
    format!("{head}<html><body>{page}</body></html>\r\n").into_bytes()
}

fn engine() -> Arc<Engine> {
    let mut builder = Builder::new();
    builder.add("a.pdb", DISPLAY.as_bytes()).expect("a list");
    builder.add("a.wdb", ALLOW.as_bytes()).expect("a list");
    let database = builder.build();
    assert_eq!((database.census().refused.len(), database.census().other_engine), (0, 2));
    Arc::new(Engine { database: Arc::new(database), limits: Limits::default() })
}

fn ours(engine: &Arc<Engine>, mail: &[u8]) -> Option<String> {
    let seen = inspect(engine, Policy::default(), mail);
    seen.names().into_iter().find(|name| name.starts_with("Heuristics.")).map(str::to_owned)
}

/// Verdicts of clamscan on each mail with these lists.
fn clamscan(name: &str, lists: &[(&str, &str)], mails: &[Vec<u8>]) -> Option<Vec<Option<String>>> {
    let folder = std::env::temp_dir().join(format!("sluice-{name}-{}", std::process::id()));
    let (database, input) = (folder.join("db"), folder.join("in"));
    fs::create_dir_all(&database).expect("a folder");
    fs::create_dir_all(&input).expect("a folder");
    lists.iter().for_each(|(name, text)| fs::write(database.join(name), text).expect("a list"));
    for (number, mail) in mails.iter().enumerate() {
        fs::write(input.join(number.to_string()), mail).expect("a mail");
    }
    let output = Command::new("clamscan").arg("--no-summary").arg("-d").arg(database).arg(input).output();
    fs::remove_dir_all(&folder).expect("the folder goes");
    let Ok(output) = output else {
        eprintln!("skipped: clamscan is not installed");
        return None;
    };
    let mut told = vec![None; mails.len()];
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some((path, name)) = line.strip_suffix(" FOUND").and_then(|line| line.rsplit_once(": ")) else { continue };
        let number: usize = path.rsplit('/').next().and_then(|number| number.parse().ok()).expect("a file of ours");
        told[number] = Some(name.to_owned());
    }
    Some(told)
}

/// Asserts that clamscan says the same of links that stand in mails, and something of more than `least`.
fn assert_same(engine: &Arc<Engine>, name: &str, lists: &[(&str, &str)], pages: &[String], least: usize) {
    let mails: Vec<Vec<u8>> = pages.iter().map(|page| mail(page)).collect();
    let Some(theirs) = clamscan(name, lists, &mails) else { return };
    let mut wrong = String::new();
    for ((page, mail), theirs) in pages.iter().zip(&mails).zip(&theirs) {
        let ours = ours(engine, mail);
        if ours != *theirs {
            wrong.push_str(&format!("{page}: {ours:?}, clamscan {theirs:?}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let told = theirs.iter().flatten().count();
    assert!(told > least, "the generator hits too little: {told}");
}

#[test]
fn links_are_judged_as_clamscan_does() {
    // Of expressions clamscan wants a scheme, and tells no NUL.
    let differs = |real: &str, shown: &str| shown.contains("only.org") && (real == "evil.net" || real.contains("%00"));
    let links = REAL.iter().flat_map(|real| SHOWN.iter().map(move |shown| (real, shown)));
    let links = links.filter(|(real, shown)| !differs(real, shown));
    let links = links.map(|(real, shown)| format!("<a href=\"{real}\">{shown}</a>"));
    let pages: Vec<String> = links.chain(PAGES.iter().map(ToString::to_string)).collect();
    assert_same(&engine(), "links", &[("a.pdb", DISPLAY), ("a.wdb", ALLOW)], &pages, 100);
}

/// Forms of addresses that are told, as malware, blocked, as phishing, and allowed.
const TOLD: [(&str, &str); 9] = [
    ("S1:F", "bad.com/"),
    ("S2:F", "evil.net/a/b/"),
    ("S:F", "evil.net/x?y=1"),
    ("S1:F", "www.some.org/page.html"),
    ("S1:F", "1.2.3.4/x"),
    ("S1:F", "good.org/bad/"),
    ("S:W", "good.org/"),
    ("S1:F", "twice.org/"),
    ("S:W", "twice.org/"),
];

/// Where links lead.
const LEADS: [&str; 30] = [
    "http://bad.com",
    "http://bad.com/",
    "http://BAD.com/any/thing?at=all",
    "https://a.b.c.bad.com/x",
    "ftp://bad.com",
    "http://a.b.c.d.e.f.bad.com/",
    "http://notbad.com/",
    "http://bad.com.evil.org/",
    "http://evil.net/a/b/",
    "http://evil.net/a/b/c.html?x=y",
    "http://evil.net/a/b",
    "http://www.evil.net/a/./b/c",
    "http://evil.net/x?y=1",
    "http://evil.net/x?y=2",
    "http://evil.net/x",
    "http://evil.net/%78?y=1",
    "http://evil.net/x#there",
    "http://www.some.org/page.html",
    "http://www.some.org/page.html?id=7",
    "http://some.org/page.html",
    "http://1.2.3.4/x",
    "http://1.2.3.4/y",
    "http://good.org/bad/x",
    "http://good.org/",
    "http://twice.org/",
    "http://twice.org/x",
    "mailto:a@bad.com",
    "bad.com",
    "//bad.com/",
    "javascript:bad.com",
];

#[test]
fn addresses_are_looked_up_as_clamscan_does() {
    let digest = |form: &str| Sha256::digest(form).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let list: Vec<String> = TOLD.iter().map(|(kind, form)| format!("{kind}:{}\n", digest(form))).collect();
    let list = list.concat();
    let mut builder = Builder::new();
    builder.add("a.gdb", list.as_bytes()).expect("a list");
    let engine = Arc::new(Engine { database: Arc::new(builder.build()), limits: Limits::default() });
    let pages = LEADS.map(|lead| format!("<a href=\"{lead}\">here</a>"));
    assert_same(&engine, "addresses", &[("a.gdb", &list)], &pages, 10);
}

#[test]
fn what_a_page_shows_is_read_as_browsers_do() {
    let engine = engine();
    let spoofed = Some("Heuristics.Phishing.Email.SpoofedDomain".to_owned());
    for page in
        ["<a href=\"http://evil.net/\">bank&#46;com</a>", "<a href=http://evil.net/>b<script>\"</a>\"</script>ank.com"]
    {
        assert_eq!(ours(&engine, &mail(page)), spoofed, "{page}");
        for (piece, fuel) in [(1, u64::MAX), (7, 3), (4096, 50)] {
            let seen = drive(&engine, Policy::default(), &mail(page), Drive { piece, fuel, mail: true });
            assert!(seen.names().contains(&"Heuristics.Phishing.Email.SpoofedDomain"), "{page} {piece}");
        }
    }
    // Only in mails.
    let page = "<html><body><a href=\"http://evil.net/\">bank.com</a></body></html>";
    assert_eq!(ours(&engine, page.as_bytes()), None);
}
