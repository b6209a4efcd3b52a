//! Passkeys at the webmail and at the administrator's page: registered, asked for as the second step and alone, refused, and reset.

use crate::admin::entered;
use crate::admin_store::{self, send};
use crate::harness::authenticator::Authenticator;
use crate::harness::browser::{Browser, Page};
use crate::harness::wait_for;
use crate::webmail::Site;

/// The browser that a page has given a cookie.
fn with_cookie(browser: Browser, page: &Page) -> Browser {
    let cookie = page.field("set-cookie").split(';').next().unwrap().into();
    Browser { cookie, ..browser }
}

/// A webmail, a user in a browser, and a passkey that she has added.
fn added() -> (Site, Browser, Authenticator) {
    let site = Site::start(false);
    let (ann, mut key) = (site.user("ann"), Authenticator::new(&site.browser().address.to_string()));
    let page = ann.get("/passkeys");
    let form = format!("token={}&do=add&name=My+key&password=secret&{}", page.token(), key.create(&page));
    assert_eq!(ann.post("/passkeys", &form).field("location"), "/passkeys?told=kept");
    (site, ann, key)
}

/// Asks for a passkey without a password, in a new browser: the form, and the browser.
fn asked(site: &Site) -> (Page, Browser) {
    let page = site.browser().get("/login/passkey");
    let browser = with_cookie(site.browser(), &page);
    assert!(browser.cookie.starts_with("sluice-passkey=") && page.field("set-cookie").contains("SameSite=Strict"));
    assert!(page.field("content-security-policy").contains("; script-src 'self';"), "{page:?}");
    (page, browser)
}

#[test]
fn a_passkey_is_added_with_the_password_for_its_session_and_once() {
    let site = Site::start(false);
    let (ann, bob) = (site.user("ann"), site.user("bob"));
    let mut key = Authenticator::new(&site.browser().address.to_string());
    let page = ann.get("/passkeys");
    let (token, add) = (page.token(), |more: &str| format!("token={}&do=add&name=Key&{more}", page.token()));
    let answer = key.create(&page);
    assert!(ann.post("/passkeys", &add(&format!("password=x&{answer}"))).text().contains("The password is wrong."));
    let right = add(&format!("password=secret&{answer}"));
    let others = key.create(&bob.get("/passkeys"));
    let refused = "The passkey was not added";
    assert!(ann.post("/passkeys", &add(&format!("password=secret&{others}"))).text().contains(refused));
    assert!(ann.post("/passkeys", &add("password=secret")).text().contains(refused));
    assert_eq!(ann.post("/passkeys", &right).status, 303);
    assert!(ann.post("/passkeys", &right).text().contains(refused), "a replay");
    let page = ann.get("/passkeys");
    assert!(page.text().contains("<bdi>Key</bdi>") && !bob.get("/passkeys").text().contains("<bdi>Key"), "{page:?}");
    let again = format!("token={token}&do=add&name=Key&password=secret&{}", key.create(&page));
    assert!(ann.post("/passkeys", &again).text().contains("is added once"));
    assert_eq!(ann.post("/passkeys", &format!("token={token}&do=end&id=1")).status, 303);
    assert_eq!(ann.post("/passkeys", &format!("token={token}&do=end&id=1")).status, 400);
}

#[test]
fn a_passkey_logs_in_alone_where_all_of_its_answer_is_right() {
    let (site, _, mut key) = added();
    let log_in = |browser: &Browser, form: &str| browser.post("/login/passkey", form);
    let wrong = |page: &Page| page.text().contains("This passkey does not log in here.") && page.status == 400;

    let (page, browser) = asked(&site);
    let right = key.get(&page);
    assert!(wrong(&log_in(&site.browser(), &right)), "without the cookie");
    assert!(wrong(&log_in(&asked(&site).1, &right)), "in another browser");
    let within = log_in(&browser, &right);
    assert_eq!((within.status, within.field("location")), (303, "/"), "{within:?}");
    let ann = with_cookie(site.browser(), &within);
    assert!(ann.get("/sessions").text().contains("This browser"));
    assert!(wrong(&log_in(&browser, &right)), "a replay");
    let (page, browser) = asked(&site);
    assert_eq!(log_in(&browser, &key.get(&page)).status, 303);

    key.verifies = false;
    let (page, browser) = asked(&site);
    assert!(wrong(&log_in(&browser, &key.get(&page))), "the user is not verified");
    key.verifies = true;
    let origin = std::mem::replace(&mut key.origin, "https://evil.test".into());
    assert!(wrong(&log_in(&browser, &key.get(&page))), "a page of another site");
    key.origin = origin;
    key.counter = 0;
    assert!(wrong(&log_in(&browser, &key.get(&page))), "a copy of the authenticator");
    key.counter = 9;
    assert_eq!(log_in(&browser, &key.get(&page)).status, 303);
    let foreign = browser.post_with("/login/passkey", &key.get(&asked(&site).0), "Sec-Fetch-Site: cross-site");
    assert_eq!(foreign.status, 403);
    assert_eq!(site.browser().post("/login", "name=ann&password=secret").status, 303, "the password is enough, too");
}

#[test]
fn a_passkey_is_the_second_step_with_recovery_codes_and_a_reset_takes_it_away() {
    let (site, ann, mut key) = added();
    let second = ann.get("/second");
    let begin = |password: &str| {
        ann.post("/second", &format!("token={}&do=passkeys&password={password}&programs=closed", second.token()))
    };
    assert!(second.text().contains("You have passkeys") && begin("x").text().contains("The password is wrong."));
    let begun = begin("secret").text();
    let codes: Vec<&str> =
        begun.split("<pre dir=\"ltr\">").nth(1).unwrap().split('<').next().unwrap().lines().collect();
    assert_eq!(codes.len(), 10, "{begun}");
    let last = ann.post("/passkeys", &format!("token={}&do=end&id=1", second.token()));
    assert!(last.text().contains("your last passkey"), "{last:?}");

    let password = || site.browser().post("/login", "name=ann&password=secret");
    let step = |page: &Page, more: &str| {
        let step = page.quoted("name=\"step\" value=\"");
        site.browser().post("/login", &format!("name=ann&step={step}&{more}"))
    };
    let page = password();
    assert!(page.status == 200 && page.field("set-cookie").is_empty() && page.text().contains("data-passkey=\"get\""));
    key.verifies = false;
    let answer = key.get(&page);
    assert_eq!(step(&page, &answer).status, 303, "the password has been proved: who it is need not be verified");
    assert!(step(&page, &answer).text().contains("took too long, or was completed"), "a replay");
    let page = password();
    let again = step(&page, "code=000000");
    assert!(again.text().contains("The code is wrong"), "{again:?}");
    assert_eq!(step(&again, &format!("code={}", codes[0])).status, 303);
    assert!(step(&password(), &format!("code={}", codes[0])).text().contains("The code is wrong"), "a replay");
    let forged = site.browser().post("/login", &format!("name=ann&step=AAAA&code={}", codes[1]));
    assert!(forged.text().contains("took too long") && forged.field("set-cookie").is_empty());
    let of_another = site
        .browser()
        .post("/login", &format!("name=bob&step={}&code={}", password().quoted("name=\"step\" value=\""), codes[1]));
    assert!(of_another.field("set-cookie").is_empty());
    let page = password();
    site.change_password("ann");
    wait_for(|| (ann.get("/settings").status == 303).then_some(()), "the end of sessions of the old password");
    let late = step(&page, &format!("code={}", codes[1]));
    assert!(late.text().contains("took too long"), "the password is another one: {late:?}");

    assert!(site.command(&["account", "reset", "ann"]).0 && !site.command(&["account", "reset", "ann"]).0);
    assert_eq!(password().status, 303);
    key.verifies = true;
    let (page, browser) = asked(&site);
    assert!(browser.post("/login/passkey", &key.get(&page)).text().contains("does not log in here"));
}

#[test]
fn people_of_the_administrators_page_have_passkeys_too() {
    let site = admin_store::start(&[]);
    site.command(&["person", "add", "ann"], "long enough");
    let password = || site.admin.stranger().post("/login", "name=ann&password=long+enough");
    let ann = entered(site.admin.stranger(), &password());
    let mut key = Authenticator::new(&ann.address.to_string());
    let page = ann.get("/you");
    let answer = format!("do=add-passkey&name=Key&{}", key.create(&page));
    assert_eq!(send(&ann, "/you", &format!("{answer}&proof=x")).status, 400);
    assert_eq!(send(&ann, "/you", &format!("{answer}&proof=long+enough")).status, 303);
    assert_eq!(send(&ann, "/you", &format!("{answer}&proof=long+enough")).status, 400, "a replay");
    assert!(ann.get("/you").text().contains("<bdi>Key</bdi>"));

    let asked = || {
        let page = site.admin.stranger().get("/login/passkey");
        let browser = with_cookie(site.admin.stranger(), &page);
        (page, browser)
    };
    let (page, browser) = asked();
    let answer = key.get(&page);
    assert_eq!(site.admin.stranger().post("/login/passkey", &answer).status, 403, "without the cookie");
    entered(site.admin.stranger(), &browser.post("/login/passkey", &answer));
    assert_eq!(browser.post("/login/passkey", &answer).status, 403, "a replay");
    key.verifies = false;
    let (page, browser) = asked();
    assert_eq!(browser.post("/login/passkey", &key.get(&page)).status, 403, "the user is not verified");

    assert_eq!(send(&ann, "/you", "do=by-passkeys&own=x").status, 400);
    let begun = send(&ann, "/you", "do=by-passkeys&own=long+enough").text();
    let code = begun.split("<pre dir=\"ltr\">").nth(1).unwrap().lines().next().unwrap().to_owned();
    assert_eq!(send(&ann, "/you", "do=remove-passkey&id=1").status, 400, "it is the last one");
    let step = |page: &Page, more: &str| {
        let step = page.quoted("name=\"step\" value=\"");
        site.admin.stranger().post("/login", &format!("name=ann&step={step}&{more}"))
    };
    let page = password();
    let answer = key.get(&page);
    entered(site.admin.stranger(), &step(&page, &answer));
    assert_eq!(step(&page, &answer).status, 403, "a replay");
    entered(site.admin.stranger(), &step(&password(), &format!("code={code}")));
    assert!(site.audit().contains("added a passkey of"));
    site.command(&["person", "reset", "ann"], "");
    entered(site.admin.stranger(), &password());
    key.verifies = true;
    let (page, browser) = asked();
    assert_eq!(browser.post("/login/passkey", &key.get(&page)).status, 403, "it is reset");
}
