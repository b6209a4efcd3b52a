//! docs/start/mail-server.md, pasted block by block into a machine of its own: a network and folders that nobody else has. What
//! systemd does is done by a function of the same name.

use std::path::Path;
use std::process::Command;

/// The blocks of a page in a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((_, behind)) = rest.split_once(&format!("```{language}\n")) {
        let (block, behind) = behind.split_once("```").expect("an end");
        blocks.push(block.to_owned());
        rest = behind;
    }
    blocks
}

/// The machine: nothing of Sluice is there, and credentials are read when the service is started.
const MACHINE: &str = r#"
set -eu
ip link set lo up
for folder in /etc/sluice /var/lib/sluice /run; do mkdir -p "$folder"; mount -t tmpfs tmpfs "$folder"; done
apt() { :; }
systemctl() {
    mkdir -p /run/credentials/sluice.service
    sed -n 's/^LoadCredential=//p' "$HERE/drop-in" | while IFS=: read -r name path; do
        cp "$path" "/run/credentials/sluice.service/$name"
    done
    sluice check --no-signatures /etc/sluice/sluice.toml
    sluice serve --allow-root --config /etc/sluice/sluice.toml >/run/log 2>&1 &
    service=$!
    until grep -q '^sluice: ready:' /run/log; do kill -0 "$service"; sleep 0.05; done
    # The first mail is answered when the store is open.
    until [ -e /var/lib/sluice/store/accounts ]; do kill -0 "$service"; sleep 0.05; done
}
trap 'cat /run/log; kill "$service"; wait "$service"' EXIT
"#;

#[test]
fn a_fresh_machine_becomes_a_mail_server() {
    let may = Command::new("unshare").args(["--net", "--mount", "ip", "link", "set", "lo", "up"]).status();
    if !may.is_ok_and(|done| done.success()) || !Path::new("/usr/share/spamassassin").is_dir() {
        return eprintln!("skipped: no namespaces for us, or no rules of SpamAssassin");
    }
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/start/mail-server.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (drop_in, configuration, pasted) = (blocks(&page, "ini"), blocks(&page, "toml"), blocks(&page, "sh"));
    assert_eq!((drop_in.len(), configuration.len(), pasted.len()), (1, 1, 6), "a block that nothing goes through");
    std::fs::write(folder.path().join("drop-in"), &drop_in[0]).unwrap();
    // A file of 10 GiB is not for a test.
    let configuration = configuration[0].replace("size = \"10G\"", "size = \"64M\"");
    std::fs::write(folder.path().join("configuration"), configuration).unwrap();
    let (before, after) = pasted.split_at(2);
    // The server looks at its accounts once a second; whoever types these commands is slower.
    let (accounts, mails) = after.split_at(2);
    let script = format!(
        "{MACHINE}\n{}\ncp \"$HERE/configuration\" /etc/sluice/sluice.toml\n{}\n\
         until curl -s --cacert /etc/sluice/fullchain.pem --connect-to mail.example.org:993:127.0.0.1:993 \
         -u bob@example.org:b-password imaps://mail.example.org/ >/dev/null; do sleep 0.2; done\n{}\n\
         ! curl -sS smtp://127.0.0.1 --mail-from a@b.test --mail-rcpt nobody@example.org -T /etc/sluice/sluice.toml\n",
        before.join("\n"),
        accounts.join("\n"),
        mails.join("\n"),
    );
    let program = Path::new(env!("CARGO_BIN_EXE_sluice")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "bash", "-c", &script]).env("PATH", path).env("HERE", folder.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // The mail in bob's INBOX, then the one in ann's folder for spam.
    let (inbox, junk) = said.split_once("It works.").expect(&said);
    assert!(inbox.contains("Subject: hello"), "{said}");
    assert!(junk.contains("X-Spam-Flag: YES") && junk.contains("Subject: buy"), "{said}");
    assert!(said.contains("RCPT failed: 550"), "{said}");
}
