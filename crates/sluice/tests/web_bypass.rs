//! Blocks of the lists as clients see them: pages of templates and of our own, links past a block, and what goes on of those.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::harness::web::{Answered, Origin, response};
use crate::harness::{Gateway, eicar};

/// A configuration whose first group, of 127.0.0.1, has these options and a banned site.
fn lists(main: &str, group: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let banned = format!("sitelist = 'name=banned,messageno=500,path={}'\n", at("sites"));
    let weighted = format!("naughtynesslimit = 50\nweightedphraselist = '{}'\n", at("weighted"));
    for (name, text) in [
        ("e2guardian.conf", format!("languagedir = '{}'\n{main}", folder.path().display())),
        ("e2guardianf1.conf", format!("groupname = 'pupils'\n{banned}{weighted}{group}")),
        ("sites", "localhost\n".into()),
        ("weighted", "#listcategory: \"Games\"\n<zork><60>\n".into()),
        ("messages", "\"500\",\"Gesperrte Site &uuml;ber \"\n".into()),
    ] {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    fs::create_dir(folder.path().join("german")).expect("a folder");
    fs::rename(folder.path().join("messages"), folder.path().join("german/messages")).expect("a file");
    folder
}

fn gateway(lists: &TempDir, origin: &Origin) -> Gateway {
    let port = origin.address.port();
    Gateway::with(&format!(
        "hostname = \"proxy.test\"\nthreads = 1\n[web]\nconfig = \"{}\"\n[[listener]]\nprotocol = \"http\"\n\
         address = \"127.0.0.1:0\"\ndestinations = [\"127.0.0.0/8\"]\nports = [{port}]\n",
        lists.path().display()
    ))
}

fn origin() -> Origin {
    Origin::start(|head, _| {
        Some(match head.split(' ').nth(1).unwrap() {
            "/page" => response("Content-Type: text/html\r\n", b"<html><p>A zork.</p></html>"),
            "/eicar" => response("Content-Type: application/octet-stream\r\n", &eicar()),
            _ => response("Content-Type: text/plain\r\n", head.as_bytes()),
        })
    })
}

fn get(gateway: &Gateway, url: &str, fields: &str) -> Answered {
    let host = url.split('/').nth(2).unwrap_or_default();
    gateway.connect().ask(&format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"))
}

/// The link of a page past its block.
fn link(answer: &Answered) -> Option<String> {
    let page = answer.text();
    let link = page.split("<a href=\"").nth(1)?.split('"').next()?;
    Some(link.replace("&amp;", "&"))
}

/// Goes where a link leads, with the cookie that is handed out on the way.
fn follow(gateway: &Gateway, link: &str) -> Answered {
    let answer = get(gateway, link, "");
    let of_head = |name: &str| Some(answer.head.split(name).nth(1)?.split(['\n', ';']).next()?.trim().to_owned());
    let (Some(location), Some(cookie)) = (of_head("\nLocation: "), of_head("\nSet-Cookie: ")) else {
        panic!("{answer:?}")
    };
    get(gateway, &location, &format!("Cookie: {cookie}\r\n"))
}

#[test]
fn a_link_leads_past_a_block_and_its_token_does_not_go_on() {
    let (lists, origin) = (lists("", "bypass = 300\nbypasskey = 'a secret of the group'\n"), origin());
    let gateway = gateway(&lists, &origin);
    let port = origin.address.port();
    let url = format!("http://localhost:{port}/x?a=1");
    let blocked = get(&gateway, &url, "");
    assert_eq!(blocked.status(), "403");
    let link = link(&blocked).expect("a link");
    assert!(link.starts_with(&format!("{url}&GBYPASS=")), "{link}");
    // The client is sent to the URL without the token, so that no site reads it in `Referer`.
    let answer = get(&gateway, &link, "Cookie: own=1\r\n");
    assert!(answer.status() == "302" && answer.head.contains(&format!("\nLocation: {url}\n")), "{answer:?}");
    let cookie = answer.head.split("Set-Cookie: ").nth(1).and_then(|rest| rest.split(';').next()).expect("a cookie");
    let said = format!("Cookie: own=1; {cookie}\r\nReferer: {link}\r\n");
    let answer = get(&gateway, &url, &said);
    assert!(answer.status() == "200" && answer.text().starts_with("GET /x?a=1 HTTP/1.1\r\n"), "{answer:?}");
    assert!(answer.text().contains(&format!("\r\nReferer: {url}\r\n")), "{answer:?}");
    let answer = get(&gateway, &format!("http://localhost:{port}/y"), &said);
    assert!(answer.status() == "200" && answer.text().contains("\r\nCookie: own=1\r\n"), "{answer:?}");
    assert!(!origin.said().concat().contains("GBYPASS"), "{:?}", origin.said());
    // A token is of one client, of one site, and nobody makes one.
    let mut other = Command::new("curl");
    other.args(["-s", "--interface", "127.0.0.2", "--noproxy", "", "-x", &gateway.addresses[0].to_string()]);
    let output = other.args(["-L", "-o", "/dev/null", "-w", "%{http_code}", &link]).output().expect("curl");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "403");
    for wrong in [link.replace("GBYPASS=", "GBYPASS=0"), format!("{link}0"), format!("{url}&GBYPASS=")] {
        assert_eq!(get(&gateway, &wrong, "").status(), "403", "{wrong}");
    }
}

#[test]
fn curl_goes_past_a_block_with_its_cookies() {
    let (lists, origin) = (lists("", "bypass = 300\n"), origin());
    let gateway = gateway(&lists, &origin);
    let url = format!("http://localhost:{}/x", origin.address.port());
    let jar = lists.path().join("jar");
    let curl = |url: &str| {
        let mut command = Command::new("curl");
        command.args(["-s", "--noproxy", "", "-x", &gateway.addresses[0].to_string(), "-b"]).arg(&jar).arg("-c");
        let output = command.arg(&jar).args(["-L", "-w", " %{http_code}", url]).output().expect("curl");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let page = curl(&url);
    assert!(page.ends_with(" 403"), "{page}");
    let link = page.split("<a href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a link");
    assert!(curl(&link.replace("&amp;", "&")).ends_with(" 200"));
    let page = curl(&url);
    assert!(page.ends_with(" 200") && !page.contains("GBYPASS"), "{page}");
}

#[test]
fn a_page_of_phrases_and_malware_have_links_where_the_group_lets_past_them() {
    let group = "bypass = 60\ninfectionbypass = 60\ninfectionbypasserrorsonly = off\n";
    let (lists, origin) = (lists("", group), origin());
    let gateway = gateway(&lists, &origin);
    let page = get(&gateway, &origin.url("/page"), "");
    assert_eq!(page.status(), "403");
    let past = link(&page).expect("a link");
    assert_eq!(follow(&gateway, &past).text(), "<html><p>A zork.</p></html>");
    let found = get(&gateway, &origin.url("/eicar"), "");
    let past_scan = link(&found).expect("a link");
    assert!(found.status() == "403" && past_scan.contains("?GIBYPASS="), "{found:?}");
    assert_eq!(follow(&gateway, &past_scan).body, eicar());
    let other = past.replace("/page", "/eicar");
    assert_eq!(follow(&gateway, &other).status(), "403", "a block of lists is another matter");
    assert!(!origin.said().concat().contains("BYPASS="), "{:?}", origin.said());
}

#[test]
fn without_an_option_there_is_no_link_and_malware_stays_blocked() {
    let (lists, origin) = (lists("", "infectionbypass = 60\n"), origin());
    let gateway = gateway(&lists, &origin);
    for url in [format!("http://localhost:{}/x", origin.address.port()), origin.url("/eicar")] {
        let answer = get(&gateway, &url, "");
        assert!(answer.status() == "403" && link(&answer).is_none(), "{answer:?}");
    }
}

#[test]
fn the_page_is_of_the_template_with_all_that_is_filled_in_escaped() {
    let (lists, origin) = (lists("language = 'german'\n", "bypass = 60\n"), origin());
    let template =
        "<meta charset=utf-8><b>-URL-</b> -REASONGIVEN- [-CATEGORIES-] -FILTERGROUP- -IP- <a href=\"-BYPASS-\">";
    fs::write(lists.path().join("german/template.html"), template).expect("a file");
    let gateway = gateway(&lists, &origin);
    let answer = get(&gateway, &format!("http://localhost:{}/?'<b>", origin.address.port()), "");
    assert!(answer.status() == "403" && answer.head.contains("\nContent-Type: text/html\n"), "{answer:?}");
    let page = answer.text();
    assert!(
        page.contains("/?&#39;&#60;b&#62;</b> Gesperrte Site &#252;ber localhost [N/A] pupils 127.0.0.1 "),
        "{page}"
    );
    assert!(link(&answer).is_some_and(|link| link.contains("GBYPASS=")), "{page}");
    // The phrases of a page, and malware.
    assert!(get(&gateway, &origin.url("/page"), "").text().contains("[Games] pupils"));
    let found = get(&gateway, &origin.url("/eicar"), "").text();
    assert!(found.contains("This was found in it: Eicar") && found.ends_with("<a href=\"\">"), "{found}");
}

#[test]
fn a_block_may_lead_elsewhere_or_tell_nothing_or_be_logged_alone() {
    let origin = origin();
    let url = format!("http://localhost:{}/x", origin.address.port());
    let ask = |group: &str, url: &str| {
        let lists = lists("", group);
        let gateway = gateway(&lists, &origin);
        let answer = get(&gateway, url, "");
        (answer, gateway)
    };
    let (answer, _) = ask("reportinglevel = 1\naccessdeniedaddress = 'http://why.test/x.pl'\n", &url);
    assert_eq!(answer.status(), "302");
    let location = "\nLocation: http://why.test/x.pl?DENIEDURL==http%3A//localhost%3A";
    assert!(answer.head.contains(location) && answer.head.contains("::IP==127.0.0.1::USER==::"), "{answer:?}");
    let (answer, _) = ask("reportinglevel = 0\n", &url);
    assert!(answer.status() == "403" && !answer.text().contains("The site is blocked"), "{answer:?}");
    let (answer, gateway) = ask("reportinglevel = -1\n", &url);
    assert_eq!(answer.status(), "200");
    let log = gateway.wait_for_log("The site is blocked: localhost");
    assert!(log.contains("action=\"pass\""), "{log}");
    let (answer, gateway) = ask("reportinglevel = -1\n", &origin.url("/page"));
    assert_eq!(answer.status(), "200");
    let log = gateway.wait_for_log("would_block=");
    assert!(log.contains("points=60") && log.contains("50 : 60 (zork)"), "{log}");
}

#[test]
fn our_own_page_is_in_the_language_of_the_client() {
    let (lists, origin) = (lists("", ""), origin());
    let gateway = gateway(&lists, &origin);
    for (language, words) in [
        ("de-CH,de;q=0.9,en;q=0.8", "Darin wurde gefunden: Eicar"),
        ("fr", "Contenu détecté : Eicar"),
        ("pt, es;q=0.5", "Se ha encontrado en el contenido: Eicar"),
        ("zh-CN", "其中发现：Eicar"),
        ("pt", "This was found in it: Eicar"),
    ] {
        let page = get(&gateway, &origin.url("/eicar"), &format!("Accept-Language: {language}\r\n")).text();
        assert!(page.contains(words), "{language}: {page}");
    }
}
