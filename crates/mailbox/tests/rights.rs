//! Rights (RFC 4314) against a small model of them: no command that is made up succeeds without its right, none that has it fails,
//! and nothing changes but what whoever did it may change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use store::{Flags, State};

use crate::harness::{Client, Server};

const NAMES: [&str; 3] = ["ann", "bob", "eve"];
const LETTERS: &str = "lrswipkxtea";

/// A mailbox, and what its list says: letters by whom they are given to.
#[derive(Debug, Clone)]
struct Shared {
    owner: usize,
    name: String,
    list: BTreeMap<String, BTreeSet<char>>,
}

impl Shared {
    fn rights(&self, who: usize) -> BTreeSet<char> {
        if who == self.owner {
            return LETTERS.chars().collect();
        }
        let of = |name: String| self.list.get(&name).cloned().unwrap_or_default();
        let given: BTreeSet<char> = &of(NAMES[who].into()) | &of("anyone".into());
        let denied = &of(format!("-{}", NAMES[who])) | &of("-anyone".into());
        &given - &denied
    }

    /// Name of the mailbox as `by` sees it.
    fn called(&self, by: usize) -> String {
        match by == self.owner {
            true => format!("\"{}\"", self.name),
            false => format!("\"Other Users/{}/{}\"", NAMES[self.owner], self.name),
        }
    }
}

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn pick<'a, T>(&mut self, among: &'a [T]) -> &'a T {
        &among[self.below(among.len())]
    }

    fn letters(&mut self) -> BTreeSet<char> {
        let few = self.below(3) > 0;
        LETTERS.chars().filter(|_| self.below(4) < if few { 1 } else { 3 }).collect()
    }
}

struct Test {
    server: Server,
    clients: Vec<Client>,
    /// Mailbox that each client has selected.
    selected: [Option<u32>; 3],
    boxes: BTreeMap<u32, Shared>,
    random: Random,
    tag: usize,
    log: String,
    /// How many commands were answered by OK, and by NO.
    counts: (usize, usize),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_does_what_he_may_not_and_everybody_what_he_may() {
    let steps = std::env::var("SLUICE_RIGHTS_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(1_500);
    let seed = std::env::var("SLUICE_RIGHTS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let server = Server::start();
    let clients = vec![server.imap("ann").await, server.imap("bob").await, server.imap("eve").await];
    let (boxes, random) = (BTreeMap::new(), Random(seed));
    let mut test =
        Test { server, clients, selected: [None; 3], boxes, random, tag: 0, log: String::new(), counts: (0, 0) };
    for owner in 0..2 {
        for name in ["A", "B"] {
            test.make(owner, owner, name).await;
        }
    }
    for _ in 0..steps {
        test.step().await;
    }
    let (done, refused) = test.counts;
    assert!(done > steps / 5 && refused > steps / 5, "{done} done, {refused} refused");
}

impl Test {
    async fn step(&mut self) {
        let who = self.random.below(3);
        let all: Vec<u32> = self.boxes.keys().copied().collect();
        let number = *self.random.pick(&all);
        let place = self.boxes[&number].clone();
        let (rights, name) = (place.rights(who), place.called(who));
        match self.random.below(20) {
            0..4 => self.share(number, place.owner).await,
            4 => self.share(number, who).await,
            5 => {
                let right = self.random.below(3);
                let (command, needs) = [("GETACL", "a"), ("MYRIGHTS", ""), ("STATUS", "r")][right];
                let more = if command == "STATUS" { " (MESSAGES)" } else { "" };
                self.expect(who, &rights, needs, &format!("{command} {name}{more}")).await;
            }
            6 => self.list(who).await,
            7 | 8 => {
                let count = self.entries(number).len();
                let done = self
                    .expect(who, &rights, "i", &format!("APPEND {name} (\\Seen \\Deleted \\Flagged) {{1+}}\r\nx"))
                    .await;
                let entries = self.entries(number);
                assert_eq!(entries.len(), count + usize::from(done), "{}", self.log);
                if done {
                    let flags = entries.last_key_value().unwrap().1.0;
                    let has =
                        |letter, flag| assert_eq!(rights.contains(&letter), flags & flag != 0, "{letter} {}", self.log);
                    has('s', Flags::SEEN);
                    has('t', Flags::DELETED);
                    has('w', Flags::FLAGGED);
                }
            }
            9..14 => self.on_messages(who, number).await,
            14 | 15 => {
                let name = format!("{}/{}", place.name, self.random.pick(&["x", "y"]));
                let is_deep = name.matches('/').count() > 2;
                if !is_deep && !self.boxes.values().any(|other| other.owner == place.owner && other.name == name) {
                    self.make(who, place.owner, &name).await;
                }
            }
            16 => {
                let is_last = self.boxes.values().filter(|other| other.owner == place.owner).count() < 2;
                if !is_last && self.expect(who, &rights, "x", &format!("DELETE {name}")).await {
                    self.gone(number).await;
                }
            }
            17 => self.rename(who, number).await,
            18 => {
                let right = self.random.below(2);
                let uses = "rswip".chars().any(|letter| rights.contains(&letter));
                let (needs, command) = [
                    (
                        if uses { "l" } else { "lr" },
                        format!("SETMETADATA {name} (/private/comment \"{}\")", NAMES[who]),
                    ),
                    ("lw", format!("SETMETADATA {name} (/shared/comment \"{}\")", NAMES[who])),
                ][right]
                    .clone();
                self.expect(who, &rights, needs, &command).await;
            }
            _ => {
                self.expect(who, &rights, "r", &format!("SELECT {name}")).await;
                self.selected[who] = rights.contains(&'r').then_some(number);
            }
        }
    }

    /// Sends a command of which it is known what it takes; whether it was done.
    async fn expect(&mut self, who: usize, rights: &BTreeSet<char>, needs: &str, command: &str) -> bool {
        let may = !rights.is_empty() && needs.chars().all(|letter| rights.contains(&letter));
        let (_, answer) = self.say(who, command).await;
        let wanted = match (may, rights.contains(&'l')) {
            (true, _) => "OK",
            (false, true) => "NO [NOPERM]",
            (false, false) => "NO [NONEXISTENT]",
        };
        assert!(answer.starts_with(wanted), "{wanted} was expected of {rights:?}, {needs:?}:\n{}", self.log);
        may
    }

    /// Sends a command; what was told, and the answer without its tag.
    async fn say(&mut self, who: usize, command: &str) -> (Vec<String>, String) {
        self.tag += 1;
        let tag = format!("t{} ", self.tag);
        self.clients[who].send(format!("{tag}{command}\r\n").as_bytes()).await;
        let mut lines = self.clients[who].skip_to(&tag).await;
        let answer = lines.pop().unwrap()[tag.len()..].to_owned();
        *if answer.starts_with("OK") { &mut self.counts.0 } else { &mut self.counts.1 } += 1;
        let _ = writeln!(self.log, "{}: {command} -> {answer}", NAMES[who]);
        // The end of it is what is looked at.
        if self.log.len() > 8_000 {
            self.log.drain(..4_000);
        }
        (lines, answer)
    }

    fn state(&self) -> State {
        self.server.store().state()
    }

    fn entries(&self, number: u32) -> BTreeMap<u32, Flags> {
        let state = self.state();
        state.mailbox(number).unwrap().from(0).map(|(uid, entry)| (uid, entry.flags)).collect()
    }

    /// Somebody changes what somebody may.
    async fn share(&mut self, number: u32, who: usize) {
        let mut place = self.boxes[&number].clone();
        let whom = match self.random.below(8) {
            0 => "anyone".into(),
            1 => "-anyone".into(),
            2 => format!("-{}", self.random.pick(&NAMES)),
            _ => (*self.random.pick(&NAMES)).to_string(),
        };
        if whom.trim_start_matches('-') == NAMES[place.owner] {
            return;
        }
        let letters = self.random.letters();
        let text: String = letters.iter().collect();
        let (name, held) = (place.called(who), place.list.get(&whom).cloned().unwrap_or_default());
        let (command, after) = match self.random.below(4) {
            0 => (format!("DELETEACL {name} {whom}"), BTreeSet::new()),
            1 => (format!("SETACL {name} {whom} +{text}"), &held | &letters),
            2 => (format!("SETACL {name} {whom} -{text}"), &held - &letters),
            _ => (format!("SETACL {name} {whom} \"{text}\""), letters.clone()),
        };
        place.list.insert(whom, after);
        place.list.retain(|_, letters| !letters.is_empty());
        let rights = self.boxes[&number].rights(who);
        if self.expect(who, &rights, "a", &command).await {
            self.boxes.insert(number, place);
        }
        self.same_list(number);
    }

    fn same_list(&self, number: u32) {
        let place = &self.boxes[&number];
        let told = mailbox::acl::told(&self.state(), NAMES[place.owner], &place.name).unwrap();
        let told: BTreeMap<String, BTreeSet<char>> =
            told.into_iter().map(|(who, letters)| (who, letters.chars().collect())).collect();
        assert_eq!(told, place.list, "of {}:\n{}", place.name, self.log);
    }

    /// Makes a mailbox in an account; at the top only its owner does.
    async fn make(&mut self, who: usize, owner: usize, name: &str) {
        let above = name.rsplit_once('/').map(|(above, _)| above);
        let parent = self.boxes.values().find(|place| place.owner == owner && Some(&*place.name) == above).cloned();
        let list = parent.as_ref().map(|parent| parent.list.clone()).unwrap_or_default();
        let made = Shared { owner, name: name.into(), list };
        let rights = parent.map_or_else(|| made.rights(owner), |parent| parent.rights(who));
        if self.expect(who, &rights, "k", &format!("CREATE {}", made.called(who))).await {
            let account = self.state().account_named(NAMES[owner].as_bytes()).unwrap().0;
            let number = self.state().mailbox_named(account, name.as_bytes()).unwrap().0;
            self.boxes.insert(number, made);
            self.same_list(number);
        }
    }

    /// Removes a mailbox: clients that had it selected are disconnected and connect again.
    async fn gone(&mut self, number: u32) {
        self.boxes.remove(&number);
        for (who, name) in NAMES.iter().enumerate() {
            if self.selected[who] == Some(number) {
                self.clients[who] = self.server.imap(name).await;
                self.selected[who] = None;
            }
        }
    }

    async fn rename(&mut self, who: usize, number: u32) {
        let place = self.boxes[&number].clone();
        let siblings: Vec<Shared> = self.boxes.values().filter(|other| other.owner == place.owner).cloned().collect();
        let parent = self.random.pick(&siblings).clone();
        let to = Shared { name: format!("{}/{}", parent.name, self.random.pick(&["x", "y"])), ..place.clone() };
        let is_below =
            |name: &str, top: &str| name.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let is_taken = siblings.iter().any(|other| is_below(&other.name, &to.name));
        if is_taken || is_below(&to.name, &place.name) || to.name.matches('/').count() > 2 {
            return;
        }
        let (from, into) = (place.rights(who), parent.rights(who));
        let (_, answer) = self.say(who, &format!("RENAME {} {}", place.called(who), to.called(who))).await;
        let may = from.contains(&'x') && into.contains(&'k');
        assert_eq!(answer.starts_with("OK"), may, "{from:?} {into:?}\n{}", self.log);
        if may {
            for other in
                self.boxes.values_mut().filter(|other| other.owner == place.owner && is_below(&other.name, &place.name))
            {
                other.name = other.name.replacen(&place.name, &to.name, 1);
            }
        }
    }

    /// Checks that LIST names exactly the mailboxes with the right `l`.
    async fn list(&mut self, who: usize) {
        let (lines, _) = self.say(who, "LIST \"\" \"Other Users/*\"").await;
        let told: BTreeSet<String> = lines
            .iter()
            .filter(|line| line.starts_with("* LIST") && !line.contains("\\NonExistent"))
            .map(|line| line.rsplit_once("\"/\" ").unwrap().1.to_owned())
            .collect();
        let others = self.boxes.values().filter(|place| place.owner != who && place.rights(who).contains(&'l'));
        assert_eq!(told, others.map(|place| place.called(who)).collect(), "{}", self.log);
    }

    /// Something is done with messages of a mailbox, which may have been selected while more was allowed.
    async fn on_messages(&mut self, who: usize, number: u32) {
        let number = match self.selected[who].filter(|_| self.random.below(2) == 0) {
            Some(selected) => selected,
            None => {
                let rights = self.boxes[&number].rights(who);
                let name = self.boxes[&number].called(who);
                self.selected[who] = None;
                if !self.expect(who, &rights, "r", &format!("SELECT {name}")).await {
                    return;
                }
                self.selected[who] = Some(number);
                number
            }
        };
        let (all, rights) = (self.boxes.keys().copied().collect::<Vec<_>>(), self.boxes[&number].rights(who));
        let target = *self.random.pick(&all);
        let into = self.boxes[&target].rights(who);
        let before = (self.entries(number), self.entries(target));
        let to = self.boxes[&target].called(who);
        let has = |letters: &str| letters.chars().all(|letter| rights.contains(&letter));
        let flag = *self.random.pick(&["\\Seen", "\\Deleted", "\\Flagged", "$Work"]);
        let sign = *self.random.pick(&["+", "-", ""]);
        let (command, may) = match self.random.below(6) {
            0 => ("UID FETCH * (FLAGS BODY[])".into(), has("r")),
            1 => ("UID SEARCH ALL".into(), has("r")),
            2 => (
                format!("UID STORE * {sign}FLAGS ({flag})"),
                has("r") && "swt".chars().any(|one| rights.contains(&one)),
            ),
            3 => ("EXPUNGE".into(), has("re")),
            4 => (format!("UID COPY * {to}"), has("r") && into.contains(&'i')),
            _ => (format!("UID MOVE * {to}"), has("rte") && into.contains(&'i')),
        };
        let (lines, answer) = self.say(who, &command).await;
        let is_done = answer.starts_with("OK");
        // Rights that came since do not make it writable before it is selected anew; messages may be gone; there may be one mailbox.
        let is_odd = ["NO [READ-ONLY]", "NO [EXPUNGEISSUED]", "BAD"].iter().any(|odd| answer.starts_with(odd))
            || number == target;
        assert!(
            is_done == may || is_odd && !is_done || number == target && (may || !is_done),
            "{rights:?} {into:?}\n{}",
            self.log
        );
        if !has("r") {
            let told = lines.iter().find(|line| !line.starts_with("* LIST"));
            assert_eq!(told, None, "{rights:?}\n{}", self.log);
        }
        self.only_what_may_change(&rights, &before.0, &self.entries(number), number == target && into.contains(&'i'));
        if number != target {
            let (entries, came) = (self.entries(target), into.contains(&'i'));
            let others: BTreeSet<char> = into.difference(&BTreeSet::from(['e'])).copied().collect();
            self.only_what_may_change(&others, &before.1, &entries, came);
            for (uid, flags) in entries.iter().filter(|(uid, _)| !before.1.contains_key(uid)) {
                let all = [('s', Flags::SEEN), ('t', Flags::DELETED), ('w', Flags::FLAGGED)];
                let without = all.iter().filter(|(letter, flag)| !into.contains(letter) && flags.0 & flag != 0);
                assert_eq!(without.count(), 0, "{uid} {flags:?} {into:?}\n{}", self.log);
            }
        }
    }

    fn only_what_may_change(
        &self,
        rights: &BTreeSet<char>,
        before: &BTreeMap<u32, Flags>,
        after: &BTreeMap<u32, Flags>,
        may_come: bool,
    ) {
        assert!(may_come || after.keys().all(|uid| before.contains_key(uid)), "came\n{}", self.log);
        for (uid, flags) in before {
            let Some(now) = after.get(uid) else {
                assert!(rights.contains(&'e'), "{uid} went\n{}", self.log);
                continue;
            };
            let changed = flags.0 ^ now.0;
            for (letter, bits) in [('s', Flags::SEEN), ('t', Flags::DELETED), ('w', !(Flags::SEEN | Flags::DELETED))] {
                assert!(
                    changed & bits == 0 || rights.contains(&letter),
                    "{letter} of {rights:?}: {flags:?} {now:?}\n{}",
                    self.log
                );
            }
        }
    }
}
