//! A bucket on a server with faults.

use super::fake::{FAULTS, Fault, Server};
use super::*;

const SECRET: &str = "the-secret-of-the-access-key";

fn store(server: &Server) -> Store {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    let settings = ObjectSettings {
        endpoint: format!("http://127.0.0.1:{}/", server.port),
        bucket: "mail".into(),
        region: "us-east-1".into(),
        access_key: "id".into(),
        access_secret_file: file,
        path_style: true,
        prefix: "a/".into(),
        keep_days: 7,
        write: true,
    };
    Store::new(&settings, Path::new("/none")).unwrap()
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn blocks(count: u8) -> Vec<(String, Vec<u8>)> {
    (0..count).map(|number| (format!("v/{number:08x}"), vec![number; 100_000 + usize::from(number)])).collect()
}

/// Writes, lists, reads and deletes, while each request of a kind has a fault the first two times.
fn survives(fault: Fault, knows_sums: bool) {
    let server = Server::start();
    server.lock().knows_sums = knows_sums;
    let mut seen = std::collections::BTreeMap::<String, u32>::new();
    server.weather(move |method, path| {
        let count = seen.entry(format!("{method} {path}")).or_default();
        *count += 1;
        (*count <= 2).then_some(fault)
    });
    let mut store = store(&server);
    wait(async {
        let put = store.put(blocks(20)).await.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert!(put.iter().zip(blocks(20)).all(|(object, (name, bytes))| {
            object.name == name && object.sum == sign::sum(&bytes) && object.length as usize == bytes.len()
        }));
        let read = store.get(&put).await.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert!(read.iter().zip(blocks(20)).all(|(read, (_, bytes))| *read == bytes), "{fault:?}");
        let mut names: Vec<String> = Vec::new();
        loop {
            let page = store.list("v", names.last().map_or("", |name| name)).await;
            match page.unwrap_or_else(|error| panic!("{fault:?}: {error}")) {
                page if page.is_empty() => break,
                page => names.extend(page),
            }
        }
        // A list has no sum: a damaged one is the list of other names, which are nobody's.
        assert!(fault == Fault::Damaged || names.len() == 20, "{fault:?}: {names:?}");
        let all: Vec<String> = put.iter().map(|object| object.name.clone()).collect();
        store.delete(&all).await.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
    });
    assert!(server.lock().overwritten.is_empty(), "{fault:?}");
    assert!(server.lock().objects.is_empty() || fault == Fault::Stale, "{fault:?}");
}

#[test]
fn each_fault_of_a_server_is_survived() {
    std::thread::scope(|scope| {
        for fault in FAULTS {
            scope.spawn(move || survives(fault, true));
        }
    });
}

#[test]
fn a_server_without_sums_has_its_objects_read_back() {
    survives(Fault::Status(500, "InternalError"), false);
    let server = Server::start();
    server.lock().knows_sums = false;
    // It says that it has taken what it has damaged.
    server.weather(|method, _| (method == "GET").then_some(Fault::Damaged));
    let error = wait(store(&server).put(blocks(1))).map(drop).unwrap_err();
    assert_eq!(error, "object v/00000000: the object is damaged: its sum is another one");
}

#[test]
fn what_lasts_is_an_error_that_names_the_object() {
    let fails = |fault: Fault, wanted: &str| {
        let server = Server::start();
        let mut store = store(&server);
        let put = wait(store.put(blocks(2))).unwrap();
        server.weather(move |_, path| path.ends_with('1').then_some(fault));
        let error = wait(store.get(&put)).map(drop).unwrap_err();
        assert!(error.starts_with("object v/00000001: ") && error.contains(wanted), "{fault:?}: {error}");
        let error = wait(store.put(blocks(2))).map(drop);
        let fails_too = matches!(fault, Fault::Status(..) | Fault::Stale);
        assert_eq!(error.is_err(), fails_too, "{fault:?}");
        assert!(!format!("{error:?}").contains(SECRET));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| fails(Fault::Status(503, "SlowDown"), "503 SlowDown So it is."));
        scope.spawn(|| fails(Fault::Status(403, "AccessDenied"), "access_key may not do this in the bucket: 403"));
        scope.spawn(|| fails(Fault::Stale, "the object is not there"));
        scope.spawn(|| fails(Fault::Damaged, "the object is damaged: its sum is another one"));
    });
}

#[test]
fn a_check_says_that_a_bucket_can_be_used() {
    let server = Server::start();
    assert_eq!(wait(store(&server).check("check-1".into())), Ok("bucket mail is written and read".into()));
    assert!(server.lock().objects.is_empty());
    server.weather(|method, _| (method == "DELETE").then_some(Fault::Status(403, "AccessDenied")));
    let said = wait(store(&server).check("check-1".into()));
    assert!(said.unwrap_err().starts_with("deleting: access_key may not"));
}
