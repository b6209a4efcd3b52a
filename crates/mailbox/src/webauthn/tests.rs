//! Answers of authenticators that were made with another program: `vectors.txt` has lines of a kind of request, the outcome, and the fields in
//! Base64 for URLs. The challenge in them is of [`KEY`], for the purpose `test`, at 1,000 seconds.

use super::*;

const VECTORS: &str = include_str!("vectors.txt");
const KEY: [u8; 32] = [7; 32];
const NOW: i64 = 1_010;

/// The outcomes and the fields of a kind of request.
fn vectors(kind: &str) -> Vec<(&'static str, Vec<&'static str>)> {
    let fields = |line: &'static str| {
        let mut words = line.split(' ');
        let (known, outcome) = words.next().unwrap().split_once('/').unwrap();
        (known == kind).then(|| (outcome, words.collect()))
    };
    VECTORS.lines().filter_map(fields).collect()
}

/// Asks as the site of the vectors does, once.
fn asked<T>(work: impl FnOnce(&Ceremony<'_>) -> T) -> T {
    asked_by("mail.test:8443", work)
}

fn asked_by<T>(host: &str, work: impl FnOnce(&Ceremony<'_>) -> T) -> T {
    let (challenges, origin) = (Challenges::of(&KEY), Origin::new(host, true));
    work(&Ceremony { challenges: &challenges, purpose: "test", origin: &origin, now: NOW })
}

/// A passkey of an algorithm.
fn passkey(algorithm: &str) -> Passkey {
    let (_, fields) = vectors("register").into_iter().find(|(outcome, _)| *outcome == algorithm).unwrap();
    let credential = asked(|site| site.register(fields[0], fields[1])).unwrap();
    let mut all = Vec::new();
    assert!(add(&mut all, " my\u{202e} key ", credential, 5));
    all.remove(0)
}

fn assertion<'a>(fields: &[&'a str]) -> Assertion<'a> {
    Assertion { client: fields[0], data: fields[1], signature: fields[2] }
}

#[test]
fn registrations_come_out_as_they_should() {
    for (outcome, fields) in vectors("register") {
        let found = asked(|site| site.register(fields[0], fields[1]));
        match &found {
            Ok(_) => assert!(outcome.starts_with(char::is_lowercase), "{outcome}"),
            Err(why) => assert_eq!(format!("{why:?}"), outcome),
        }
    }
    let count = |wanted: char| vectors("register").iter().filter(|(outcome, _)| outcome.starts_with(wanted)).count();
    assert_eq!((count('e'), count('U')), (3, 7), "the vectors are there");
}

#[test]
fn logins_come_out_as_they_should() {
    for (outcome, fields) in vectors("login") {
        let algorithm = if outcome.starts_with(char::is_lowercase) { outcome } else { "es256" };
        let found = asked(|site| site.check(&passkey(algorithm), &assertion(&fields), true));
        match found {
            Ok(counter) => assert_eq!((outcome, counter), (algorithm, 2)),
            Err(why) => assert_eq!(format!("{why:?}"), outcome),
        }
    }
    assert_eq!(vectors("login").len(), 16);
}

#[test]
fn a_key_of_another_algorithm_or_site_and_a_second_use_are_refused() {
    let (_, fields) = vectors("login").remove(0);
    let key = passkey("es256");
    let check = |key: &Passkey| asked(|site| site.check(key, &assertion(&fields), true));
    assert_eq!(
        (check(&passkey("eddsa")), check(&passkey("rs256"))),
        (Err(Refused::Signature), Err(Refused::Signature))
    );
    assert_eq!(asked_by("evil.test", |site| site.check(&key, &assertion(&fields), true)), Err(Refused::Party));
    let twice = asked(|site| [0, 1].map(|_| site.check(&key, &assertion(&fields), true)));
    assert_eq!(twice, [Ok(2), Err(Refused::Challenge)]);
    let (_, registration) = vectors("register").remove(0);
    let twice = asked(|site| [0, 1].map(|_| site.register(registration[0], registration[1]).map(drop)));
    assert_eq!(twice, [Ok(()), Err(Refused::Challenge)]);
}

#[test]
fn a_user_who_is_not_verified_counts_beside_a_password() {
    let (_, fields) = vectors("login").into_iter().find(|(outcome, _)| *outcome == "Unverified").unwrap();
    assert_eq!(asked(|site| site.check(&passkey("es256"), &assertion(&fields), false)), Ok(2));
}

#[test]
fn a_counter_that_was_used_in_between_is_not_kept() {
    let mut key = passkey("es256");
    assert!(key.note(2, 9) && !key.note(2, 10) && !key.note(0, 10) && key.note(3, 11));
    assert_eq!(key.used, Some(11));
    let mut synced = passkey("statement");
    assert!(synced.note(0, 9) && synced.note(0, 10) && synced.note(1, 11) && !synced.note(0, 12));
}

#[test]
fn truncated_and_long_fields_are_refused() {
    let (_, registration) = vectors("register").remove(0);
    let (_, login) = vectors("login").remove(0);
    let key = passkey("es256");
    for cut in 0..registration[1].len() {
        let found = asked(|site| site.register(registration[0], &registration[1][..cut]));
        assert_eq!(found, Err(Refused::Unreadable), "{cut}");
    }
    for cut in 0..login[1].len() {
        let fields = [login[0], &login[1][..cut], login[2]];
        let found = asked(|site| site.check(&key, &assertion(&fields), true));
        assert!(found == Err(Refused::Unreadable), "{cut}: {found:?}");
    }
    for cut in 0..login[2].len() - 1 {
        let fields = [login[0], login[1], &login[2][..cut]];
        assert_eq!(asked(|site| site.check(&key, &assertion(&fields), true)), Err(Refused::Signature), "{cut}");
    }
    let long = "A".repeat(30_000);
    let padded = |blanks| {
        let client = [base64::decode(registration[0]).unwrap(), vec![b' '; blanks]].concat();
        asked(|site| site.register(&base64::encode(&client), registration[1])).map(drop)
    };
    assert_eq!((padded(9), padded(CLIENT_BYTES_MAX)), (Ok(()), Err(Refused::Unreadable)));
    assert_eq!(asked(|site| site.register(registration[0], &long)), Err(Refused::Unreadable));
    assert_eq!(asked(|site| site.register("!", registration[1])), Err(Refused::Unreadable));
}

#[test]
fn passkeys_go_to_lines_and_back_and_are_so_many() {
    let mut all = vec![passkey("es256"), Passkey { id: 7, used: Some(8), ..passkey("rs256") }];
    assert_eq!(all[0].name, "my key");
    assert_eq!(read(&write(&all)), all);
    assert_eq!(read(&format!("x\n1 2 3\n{}", write(&all))), all, "lines that cannot be read are none");
    assert_eq!(find(&all, &all[1].credential()).map(|one| one.id), Some(7));
    assert!(find(&all, "").is_none() && find(&all, "!").is_none());
    let (known, mut more) = (all[0].credential.clone(), all.clone());
    let like = known.clone();
    let one = |number: u8| Credential { id: vec![number], ..like.clone() };
    assert!(!add(&mut all, "x", known, 1), "it is there already");
    assert!(!add(&mut more, " \u{200b} ", one(0), 1), "without a name");
    let added = (0..20).filter(|&number| add(&mut more, "x", one(number), 1)).count();
    assert_eq!((added, more.len(), more[2].id), (PASSKEYS_MAX - 2, PASSKEYS_MAX, 8));
}
