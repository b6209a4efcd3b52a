//! Links of mails that show one address and lead to another, against clamscan where it is installed.

mod pipeline;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use inspect::{Engine, Policy};
use pipeline::{Drive, drive, inspect};
use scan::Builder;
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

/// What links show.
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
    seen.names().into_iter().find(|name| name.contains("Phishing")).map(str::to_owned)
}

/// What clamscan says of each file of a folder.
fn clamscan(folder: &Path) -> Option<BTreeMap<String, String>> {
    let mut command = Command::new("clamscan");
    command.arg("--no-summary").arg("-d").arg(folder.join("db")).arg(folder.join("in"));
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = text.lines().filter_map(|line| line.strip_suffix(" FOUND")?.rsplit_once(": "));
    Some(told.map(|(path, name)| (path.rsplit('/').next().unwrap_or_default().to_owned(), name.to_owned())).collect())
}

#[test]
fn links_are_judged_as_clamscan_does() {
    let folder = std::env::temp_dir().join(format!("sluice-phishing-{}", std::process::id()));
    fs::create_dir_all(folder.join("db")).expect("a folder");
    fs::create_dir_all(folder.join("in")).expect("a folder");
    fs::write(folder.join("db/a.pdb"), DISPLAY).expect("a list");
    fs::write(folder.join("db/a.wdb"), ALLOW).expect("a list");
    // Of expressions clamscan wants a scheme, and tells no NUL.
    let differs = |real: &str, shown: &str| shown.contains("only.org") && (real == "evil.net" || real.contains("%00"));
    let links = REAL.iter().flat_map(|real| SHOWN.iter().map(move |shown| (real, shown)));
    let links = links.filter(|(real, shown)| !differs(real, shown));
    let links = links.map(|(real, shown)| format!("<a href=\"{real}\">{shown}</a>"));
    let pages: Vec<String> = links.chain(PAGES.iter().map(ToString::to_string)).collect();
    for (number, page) in pages.iter().enumerate() {
        fs::write(folder.join(format!("in/{number}.eml")), mail(page)).expect("a mail");
    }
    let theirs = clamscan(&folder);
    fs::remove_dir_all(&folder).expect("the folder goes");
    let Some(theirs) = theirs else {
        eprintln!("skipped: clamscan is not installed");
        return;
    };
    let engine = engine();
    let mut wrong = String::new();
    for (number, page) in pages.iter().enumerate() {
        let (ours, theirs) = (ours(&engine, &mail(page)), theirs.get(&format!("{number}.eml")).cloned());
        if ours != theirs {
            wrong.push_str(&format!("{page}: {ours:?}, clamscan {theirs:?}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(theirs.len() > 100, "the generator hits too little: {}", theirs.len());
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
