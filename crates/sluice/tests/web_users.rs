//! Users of the web: they log in at a proxy, and their group of the lists decides.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::databases::{Database, Kind};
use crate::harness::web::{Origin, response};
use crate::harness::{Gateway, base64, wait_for};

/// A folder with lists of two groups, of which the first has a banned site, and accounts.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let banned = |path: &str| format!("sitelist = 'name=banned,messageno=500,path={path}'\n");
    for (name, text) in [
        ("e2guardian.conf", format!("filtergroups = 2\nfiltergroupslist = '{}'\n", at("users"))),
        ("e2guardianf1.conf", format!("groupname = 'pupils'\n{}", banned(&at("sites")))),
        ("e2guardianf2.conf", "groupname = 'staff'\n".into()),
        ("users", "ann=filter2\n".into()),
        ("sites", "localhost\n".into()),
        // As `htpasswd` writes lines, and with a group.
        ("accounts", "tim:{PLAIN}tims\nann:$apr1$ab$S6Hx2K.U9wiN2bVXGfH6S/\nbea:{PLAIN}beas:group=staff\n".into()),
    ] {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

fn gateway(folder: &Path, origin: &Origin, web: &str, listener: &str) -> Gateway {
    let port = origin.address.port();
    Gateway::with(&format!(
        "hostname = \"proxy.test\"\nthreads = 1\n[web]\nconfig = \"{}\"\n{web}\n\
         [[listener]]\nprotocol = \"http\"\naddress = \"127.0.0.1:0\"\ndestinations = [\"127.0.0.0/8\"]\n\
         ports = [{port}]\nconnect_ports = [{port}]\n{listener}\n",
        folder.display()
    ))
}

fn get(url: &str, login: &str) -> String {
    let host = url.split('/').nth(2).unwrap_or_default();
    let login = match login {
        "" => String::new(),
        pair => format!("Proxy-Authorization: Basic {}\r\n", base64(pair.as_bytes()).replace("\r\n", "")),
    };
    format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n{login}\r\n")
}

/// An origin that answers with the head of the request.
fn echo() -> Origin {
    Origin::start(|head, _| Some(response("Content-Type: text/plain\r\n", head.as_bytes())))
}

#[test]
fn a_user_logs_in_and_the_group_of_the_name_decides() {
    let (folder, origin) = (folder(), echo());
    let accounts = folder.path().join("accounts");
    let web = format!("accounts = \"{}\"\nrealm = \"School\"", accounts.display());
    let gateway = gateway(folder.path(), &origin, &web, "login = true");
    let url = format!("http://localhost:{}/x", origin.address.port());
    let mut wire = gateway.connect();
    for login in ["", "tim:wrong", "nobody:x", &format!("{}:x", "n".repeat(10_000))] {
        let answer = wire.ask(&get(&url, login));
        assert_eq!(answer.status(), "407", "{login}: {answer:?}");
        assert!(answer.head.contains("Proxy-Authenticate: Basic realm=\"School\", charset=\"UTF-8\"\n"), "{answer:?}");
    }
    assert_eq!(wire.ask(&get(&url, "tim:tims")).status(), "403", "a pupil");
    for login in ["ann:anns", "Bea:beas"] {
        let answer = wire.ask(&get(&url, login));
        assert_eq!(answer.status(), "200", "{login}: {answer:?}");
        assert!(!answer.text().to_ascii_lowercase().contains("authorization"), "{answer:?}");
    }
    let log = gateway.wait_for_log("user=\"bea\"");
    assert!(log.contains("user=\"tim\"") && !log.contains("tims"), "{log}");
    // A tunnel is a user's, too.
    let connect = |login: &str| {
        let login = base64(login.as_bytes()).replace("\r\n", "");
        let to = format!("localhost:{}", origin.address.port());
        let head = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\nProxy-Authorization: Basic {login}\r\n\r\n");
        gateway.connect().ask(&head).status().to_owned()
    };
    assert_eq!(["x:y", "tim:tims", "ann:anns"].map(connect), ["407", "403", "200"]);
    // Who leaves the file is no user from then on.
    fs::write(&accounts, "tim:{PLAIN}tims\n").expect("a file");
    wait_for(
        || (gateway.connect().ask(&get(&url, "ann:anns")).status() == "407").then_some(()),
        "the file is read anew",
    );
}

#[test]
fn curl_logs_in_and_networks_need_not() {
    let (folder, origin) = (folder(), echo());
    let web = format!("accounts = \"{}\"", folder.path().join("accounts").display());
    let gateway = gateway(folder.path(), &origin, &web, "login = true\nlogin_free = [\"127.0.0.2\"]");
    let curl = |words: &[&str]| {
        let proxy = gateway.addresses[0].to_string();
        let output = Command::new("curl")
            .args(["-s", "-o", "/dev/null", "-w", "%{http_code} %{http_connect}", "--noproxy", "", "-x", &proxy])
            .args(words)
            .output()
            .expect("curl");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let url = origin.url("/x");
    assert_eq!(curl(&[&url]), "407 000");
    assert_eq!(curl(&["-U", "ann:anns", &url]), "200 000");
    assert_eq!(curl(&["-U", "ann:anns", "--proxy-anyauth", &url]), "200 000");
    assert_eq!(curl(&["-U", "ann:anns", "-p", &url]), "200 200");
    assert_eq!(curl(&["-U", "ann:anns", "--proxy-anyauth", "-p", &url]), "200 200");
    assert_eq!(curl(&["--interface", "127.0.0.2", &url]), "200 000");
}

#[test]
fn browsers_find_the_proxy_by_its_script_before_they_log_in() {
    let (folder, origin) = (folder(), echo());
    let web = format!("accounts = \"{}\"", folder.path().join("accounts").display());
    let settings = "login = true\npac = \"proxy.test:3128\"\npac_direct = [\"intern.test\", \"10.0.0.0/8\"]";
    let gateway = gateway(folder.path(), &origin, &web, settings);
    let mut wire = gateway.connect();
    for path in ["/proxy.pac", "/wpad.dat?x=1"] {
        let answer = wire.ask(&format!("GET {path} HTTP/1.1\r\nHost: wpad\r\n\r\n"));
        assert!(answer.head.contains("Content-Type: application/x-ns-proxy-autoconfig\n"), "{answer:?}");
        assert!(answer.text().contains("return \"PROXY proxy.test:3128\";"), "{answer:?}");
    }
    for (path, status) in [("/other", "407"), ("http://wpad/proxy.pac", "407")] {
        assert_eq!(wire.ask(&format!("GET {path} HTTP/1.1\r\nHost: wpad\r\n\r\n")).status(), status, "{path}");
    }
    // As a browser would run it, where there is a program for that.
    let script = wire.ask("GET /proxy.pac HTTP/1.1\r\nHost: wpad\r\n\r\n").text();
    let helpers = "function isPlainHostName(h) { return h.indexOf('.') < 0; } function dnsDomainIs(h, d) { return h.endsWith(d); }\n\
                   function isInNet(h, a, m) { return h.startsWith('10.'); }\n";
    let asked = "for (const h of ['x', 'A.intern.test', 'xintern.test', '10.1.1.1', '10.a.test']) console.log(FindProxyForURL('', h));";
    let Ok(output) = Command::new("node").arg("-e").arg(format!("{helpers}{script}{asked}")).output() else {
        println!("skipped: node is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout).replace("PROXY proxy.test:3128", "PROXY");
    assert_eq!(said.lines().collect::<Vec<_>>(), ["DIRECT", "DIRECT", "PROXY", "DIRECT", "PROXY"]);
}

/// Users of a directory or a database, whose group is a column of theirs.
fn a_table_knows_users_and_their_groups(kind: Kind) {
    let Some(database) = Database::start(kind) else { return };
    let (folder, origin) = (folder(), echo());
    fs::write(folder.path().join("e2guardianf2.conf"), "groupname = 'tim'\n").expect("a file");
    let table = database.table("").replace("quota FROM", "'Tim' AS \\\"group\\\" FROM");
    let table = table.replace("quota = 'employeeNumber'", "group = 'sn'");
    let gateway = gateway(folder.path(), &origin, "lookups = [\"people\"]", &format!("login = true\n{table}"));
    let url = format!("http://localhost:{}/x", origin.address.port());
    let ask = |login: &str| gateway.connect().ask(&get(&url, login)).status().to_owned();
    assert_eq!(["tim@a.test:wrong", "nobody@a.test:secret", "tim@a.test:secret"].map(ask), ["407", "407", "200"]);
    gateway.wait_for_log("user=\"tim\"");
}

#[test]
fn a_directory_knows_users_and_their_groups() {
    a_table_knows_users_and_their_groups(Kind::Ldap);
}

#[test]
fn a_database_knows_users_and_their_groups() {
    a_table_knows_users_and_their_groups(Kind::Sqlite);
}

#[test]
fn a_group_that_the_lists_do_not_have_is_told() {
    let (folder, origin) = (folder(), echo());
    let accounts = folder.path().join("accounts");
    let web = format!("accounts = \"{}\"", accounts.display());
    fs::write(&accounts, "# users\ntim:{PLAIN}tims:group=nosuch\nbea:{PLAIN}beas:group=STAFF\n").expect("a file");
    let gateway = gateway(folder.path(), &origin, &web, "login = true");
    let check = || {
        let config = gateway.folder.path().join("sluice.toml");
        let output = Command::new(env!("CARGO_BIN_EXE_sluice")).arg("check").arg(config).output().expect("sluice");
        (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (passed, text) = check();
    assert!(!passed && text.contains("accounts:2: the web lists have no group \"nosuch\""), "{text}");
    let url = origin.url("/x");
    assert_eq!(gateway.connect().ask(&get(&url, "tim:tims")).status(), "200");
    assert!(gateway.wait_for_log("no such group").contains("group=\"nosuch\" user=\"tim\""));
    fs::write(&accounts, "tim:{PLAIN}tims:group=filter2\nbea:{PLAIN}beas:group=STAFF\nwrong\n").expect("a file");
    let (passed, text) = check();
    assert!(passed && text.contains("2 accounts of the web") && text.contains("accounts: line 3: "), "{text}");
    fs::remove_file(&accounts).expect("a file");
    let (passed, text) = check();
    assert!(!passed && text.contains("web.accounts: "), "{text}");
}
