//! The clamd door: conversations on the wire, hostile ones among them, and a real clamd beside it where there is one.

use std::io::{IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Gateway, PATIENCE, eicar, wait_for};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// Content that the signatures of the tests match.
const BAD: &[u8] = b"x clamd-test-marker y";
const MARKER: &str = "Test.Marker.UNOFFICIAL FOUND";

/// A gateway with the clamd door alone, on TCP and on a UNIX socket, that may scan its own folder.
fn door(settings: &str) -> Gateway {
    door_with("threads = 2", settings)
}

fn door_with(head: &str, settings: &str) -> Gateway {
    let signatures = tempfile::tempdir().unwrap();
    let file = signatures.path().join("test.ndb");
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (marker, other) = (hex("clamd-test-marker"), hex("other-marker-here"));
    std::fs::write(&file, format!("Test.Marker:0:*:{marker}\nTest.Other:0:*:{other}\n")).unwrap();
    let gateway = Gateway::with(&format!(
        "{head}\n[database]\npaths = [\"{}\"]\n[clamd]\naddresses = [\"127.0.0.1:0\", \"unix:FOLDER/clamd.sock\"]\n\
         paths = [\"FOLDER/files\"]\n{settings}\n",
        file.display()
    ));
    std::fs::write(gateway.folder.path().join("signatures"), signatures.path().display().to_string()).unwrap();
    // They are needed for a reload.
    let gateway = gateway.owning(signatures);
    let files = gateway.folder.path().join("files");
    for folder in ["sub", "empty"] {
        std::fs::create_dir_all(files.join(folder)).unwrap();
    }
    for (name, content) in [("bad", BAD), ("clean", b"clean"), ("zero", b""), ("sub/bad2", BAD), ("sub/clean2", b"-")] {
        std::fs::write(files.join(name), content).unwrap();
    }
    std::fs::write(files.join("both"), "other-marker-here clamd-test-marker").unwrap();
    gateway
}

trait Door {
    fn unix(&self) -> UnixStream;
    fn file(&self, name: &str) -> String;
    fn say(&self, command: &[u8]) -> String;
    fn resident_bytes(&self) -> u64;
}

impl Door for Gateway {
    fn unix(&self) -> UnixStream {
        let stream = UnixStream::connect(self.folder.path().join("clamd.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join("files").join(name).display().to_string()
    }

    /// The whole answer to a command over the UNIX socket.
    fn say(&self, command: &[u8]) -> String {
        talk(self.unix(), command)
    }

    fn resident_bytes(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/statm", self.pid())).unwrap();
        text.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }
}

/// Sends `input`, and reads to the end of what is answered.
fn talk(mut stream: impl Read + Write, input: &[u8]) -> String {
    stream.write_all(input).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

fn chunk(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32).to_be_bytes(), content].concat()
}

fn instream(content: &[u8]) -> Vec<u8> {
    [b"zINSTREAM\0".to_vec(), chunk(content), vec![0; 4]].concat()
}

fn send_with(stream: &UnixStream, bytes: &[u8], files: &[std::fs::File]) {
    let descriptors: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
    sendmsg(stream, &[IoSlice::new(bytes)], &mut control, SendFlags::empty()).unwrap();
}

fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.split_terminator(['\n', '\0']).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn streams_are_scanned_over_both_kinds_of_socket() {
    let door = door("");
    for (content, answer) in [(BAD, MARKER), (b"clean", "OK"), (b"", "OK"), (&eicar(), "Eicar-Test-Signature FOUND")] {
        let input = if content.is_empty() { b"zINSTREAM\0\0\0\0\0".to_vec() } else { instream(content) };
        assert_eq!(door.say(&input), format!("stream: {answer}\0"));
        assert_eq!(talk(TcpStream::connect(door.address).unwrap(), &input), format!("stream: {answer}\0"));
    }
}

#[test]
fn paths_are_scanned_as_they_are_named() {
    let door = door("");
    let (bad, clean, sub) = (door.file("bad"), door.file("clean"), door.file("sub"));
    assert_eq!(door.say(format!("nSCAN {bad}\n").as_bytes()), format!("{bad}: {MARKER}\n"));
    assert_eq!(door.say(format!("SCAN {clean}\n").as_bytes()), format!("{clean}: OK\n"));
    assert_eq!(door.say(format!("zSCAN {sub}/\0").as_bytes()), format!("{sub}/bad2: {MARKER}\0"));
    let empty = door.file("empty");
    assert_eq!(door.say(format!("nCONTSCAN {empty}/\n").as_bytes()), format!("{empty}: OK\n"));
    assert_eq!(door.say(format!("nMULTISCAN {empty}\n").as_bytes()), "");
    let files = door.file("");
    let files = files.trim_end_matches('/');
    let all = [
        format!("{files}/bad: {MARKER}"),
        format!("{files}/both: Test.Other.UNOFFICIAL FOUND"),
        format!("{files}/sub/bad2: {MARKER}"),
    ];
    assert_eq!(lines(&door.say(format!("nCONTSCAN {files}\n").as_bytes())), all);
    assert_eq!(lines(&door.say(format!("zMULTISCAN {files}\0").as_bytes())), all);
    let both = door.file("both");
    let answer = door.say(format!("nALLMATCHSCAN {both}\n").as_bytes());
    assert_eq!(lines(&answer), [format!("{both}: {MARKER}"), format!("{both}: Test.Other.UNOFFICIAL FOUND")]);
}

#[test]
fn what_is_not_permitted_is_not_even_said_to_exist() {
    let door = door("");
    let files = door.file("");
    let outside = door.folder.path().join("sluice.toml").display().to_string();
    std::os::unix::fs::symlink(&outside, door.file("link")).unwrap();
    std::os::unix::fs::symlink("/etc", door.file("folder")).unwrap();
    let denied = "File path check failure: Permission denied. ERROR";
    for path in [
        outside.clone(),
        format!("{files}../sluice.toml"),
        format!("{files}sub/../../sluice.toml"),
        "/nowhere".into(),
        "/etc/passwd".into(),
        format!("{files}link"),
        format!("{files}folder"),
        format!("{files}folder/passwd"),
        "..".into(),
    ] {
        let shown = path.trim_end_matches('/');
        assert_eq!(door.say(format!("nSCAN {path}\n").as_bytes()), format!("{shown}: {denied}\n"));
    }
    let missing = format!("{files}nowhere");
    let answer = door.say(format!("nSCAN {missing}\n").as_bytes());
    assert_eq!(answer, format!("{missing}: File path check failure: No such file or directory. ERROR\n"));
    std::fs::remove_file(door.file("folder")).unwrap();
    std::os::unix::fs::symlink("bad", door.file("inner")).unwrap();
    let answer = door.say(format!("nSCAN {files}inner\n").as_bytes());
    assert_eq!(answer, format!("{files}inner: Symbolic link not followed ERROR\n"));
    assert!(!door.say(format!("nCONTSCAN {files}\n").as_bytes()).contains("inner"), "clamd passes links over, too");
}

#[test]
fn links_are_followed_where_that_is_configured_and_no_further_than_permitted() {
    let door = door("follow_symlinks = true");
    std::os::unix::fs::symlink("bad", door.file("inner")).unwrap();
    std::os::unix::fs::symlink("..", door.file("sub/circle")).unwrap();
    std::os::unix::fs::symlink("/etc", door.file("outer")).unwrap();
    let inner = door.file("inner");
    assert_eq!(door.say(format!("nSCAN {inner}\n").as_bytes()), format!("{inner}: {MARKER}\n"));
    let files = door.file("");
    let answer = door.say(format!("nCONTSCAN {files}\n").as_bytes());
    assert!(answer.contains(&format!("{inner}: {MARKER}\n")), "{answer}");
    assert!(answer.contains("/outer/passwd: File path check failure: Permission denied. ERROR\n"), "{answer}");
}

#[test]
fn what_is_no_file_is_not_read() {
    let door = door("");
    let (pipe, socket) = (door.file("pipe"), door.file("socket"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for path in [&pipe, &socket] {
        let answer = door.say(format!("nSCAN {path}\n").as_bytes());
        assert_eq!(answer, format!("{path}: Not supported file type ERROR\n"));
    }
    assert!(!door.say(format!("nCONTSCAN {}\n", door.file("")).as_bytes()).contains("pipe"));
}

#[test]
fn excluded_paths_are_passed_over() {
    let door = door("exclude = [\"/sub/\", \"/bad$\"]");
    let (bad, files) = (door.file("bad"), door.file(""));
    assert_eq!(door.say(format!("nSCAN {bad}\n").as_bytes()), format!("{bad}: Excluded\n"));
    let answer = door.say(format!("nCONTSCAN {files}\n").as_bytes());
    assert_eq!(answer, format!("{}: Test.Other.UNOFFICIAL FOUND\n", door.file("both")));
}

#[test]
fn descriptors_are_scanned_from_their_beginning() {
    let door = door("");
    let open = |name: &str| std::fs::File::open(door.file(name)).unwrap();
    let scan = |bytes: &[u8], files: &[std::fs::File]| {
        let stream = door.unix();
        send_with(&stream, bytes, files);
        talk(&stream, b"")
    };
    let without_number = |answer: String| {
        let (start, rest) = answer.split_once(']').unwrap_or(("", &answer));
        assert!(start.is_empty() || start.starts_with("fd["), "{start}");
        rest.to_string()
    };
    let mut read = open("bad");
    read.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(without_number(scan(b"zFILDES\0\0", &[read])), format!(": {MARKER}\0"));
    assert_eq!(without_number(scan(b"FILDES\n\0", &[open("clean")])), ": OK\n");
    assert_eq!(without_number(scan(b"nFILDES\n\0", &[open("sub")])), ": Not a regular file ERROR\n");
    let none = "No file descriptor received. ERROR\n";
    assert_eq!(scan(b"nFILDES\n\0", &[open("bad"), open("bad")]), none);
    assert_eq!(door.say(b"nFILDES\n\0"), none);
    assert_eq!(talk(TcpStream::connect(door.address).unwrap(), b"nFILDES\n\0"), none);
    // A descriptor that nobody asked for is closed again.
    let count = || std::fs::read_dir(format!("/proc/{}/fd", door.pid())).unwrap().count();
    let before = count();
    let stream = door.unix();
    for _ in 0..50 {
        send_with(&stream, b"", &[]);
    }
    send_with(&stream, b"nIDSESSION\n", &[open("bad"), open("bad"), open("bad")]);
    for _ in 0..20 {
        send_with(&stream, b"nPING\n", &[open("bad")]);
    }
    (&stream).write_all(b"nEND\n").unwrap();
    let answer = talk(&stream, b"");
    assert_eq!(answer.matches("PONG").count(), 20);
    drop(stream);
    wait_for(|| (count() <= before).then_some(()), "the descriptors to be closed");
}

#[test]
fn a_session_answers_as_it_comes_to_know() {
    let door = door("");
    let mut stream = door.unix();
    let big: Vec<u8> = (0..8 << 20).map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut input = b"zIDSESSION\0".to_vec();
    input.extend(instream(&big));
    input.extend(format!("zSCAN {}\0", door.file("bad")).bytes());
    input.extend(instream(BAD));
    input.extend(b"zPING\0zVERSION\0zEND\0");
    let writer = {
        let mut stream = stream.try_clone().unwrap();
        std::thread::spawn(move || stream.write_all(&input))
    };
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    writer.join().unwrap().unwrap();
    let found = lines(&answer);
    assert_eq!(found[0], "1: stream: OK");
    assert_eq!(found[1], format!("2: {}: {MARKER}", door.file("bad")));
    assert_eq!(found[2], format!("3: stream: {MARKER}"));
    assert_eq!(found[3], "4: PONG");
    assert!(found[4].starts_with("5: ClamAV 1.4.6 (Sluice "), "{answer}");
    assert_eq!(found.len(), 5);
}

#[test]
fn a_session_that_is_not_read_gets_no_more_memory() {
    let door = door("send_seconds_max = 2\nsession_requests_max = 8");
    let mut stream = door.unix();
    stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(b"nIDSESSION\n").unwrap();
    let command = format!("nSCAN {}\n", door.file("bad")).repeat(100);
    let before = door.resident_bytes();
    let failed = (0..100_000).find(|_| stream.write_all(command.as_bytes()).is_err());
    assert!(failed.is_some(), "the session went on");
    assert!(door.resident_bytes() < before + (16 << 20));
    assert_eq!(door.say(b"zPING\0"), "PONG\0");
}

#[test]
fn a_stream_has_the_limit_that_is_set_and_none_otherwise() {
    let limited = door("stream_bytes_max = 1000000");
    let mut stream = limited.unix();
    stream.write_all(b"nINSTREAM\n").unwrap();
    // The reply comes through although the client goes on.
    for _ in 0..40 {
        if stream.write_all(&chunk(&[b'a'; 50_000])).is_err() {
            break;
        }
    }
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert_eq!(answer, "INSTREAM size limit exceeded. ERROR\n");
    assert_eq!(limited.say(b"zINSTREAM\0\xff\xff\xff\xff"), "INSTREAM size limit exceeded. ERROR\0");

    let unlimited = door("");
    let mut stream = unlimited.unix();
    stream.write_all(b"zINSTREAM\0").unwrap();
    let piece = chunk(&[0; 1 << 20]);
    let before = unlimited.resident_bytes();
    for _ in 0..300 {
        stream.write_all(&piece).unwrap();
    }
    assert!(unlimited.resident_bytes() < before + (32 << 20), "a stream is held");
    stream.write_all(&chunk(BAD)).unwrap();
    assert_eq!(talk(stream, &[0; 4]), format!("stream: {MARKER}\0"));
}

#[test]
fn what_is_broken_off_is_not_answered_and_leaves_nothing() {
    let door = door("command_seconds_max = 1\nread_seconds_max = 1");
    for input in [&b"zINSTREAM\0\0\0"[..], b"zINSTREAM\0\0\0\x10\0abc", b"nPI", b"nFILDES\n", b""] {
        let stream = door.unix();
        (&stream).write_all(input).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(talk(&stream, b""), "", "{input:?}");
        // Half open: the client is silent.
        assert_eq!(door.say(input), "COMMAND READ TIMED OUT\n", "{input:?}");
    }
    let stats = door.say(b"zSTATS\0");
    assert!(stats.contains("QUEUE: 0 items\n\tSTATS 0.0"), "{stats}");
    assert_eq!(stats.matches("\n\t").count(), 1, "{stats}");
}

#[test]
fn a_bare_command_needs_no_line_feed() {
    let door = door("");
    assert_eq!(door.say(b"PING"), "PONG\n");
    let stream = door.unix();
    (&stream).write_all(b"VERSION").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(talk(&stream, b"").starts_with("ClamAV 1.4.6 (Sluice "));
    let endless = [b"n".to_vec(), vec![b'A'; 1 << 20]].concat();
    let mut stream = door.unix();
    let _ = stream.write_all(&endless);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert_eq!(answer, "UNKNOWN COMMAND\n");
}

#[test]
fn commands_can_be_switched_off() {
    let door = door("reload = false\nstats = false\nversion = false\nall_matches = false");
    for command in
        ["nRELOAD\n", "nSTATS\n", "nVERSION\n", "nVERSIONCOMMANDS\n", "nSHUTDOWN\n", "nQUIT\n", "nALLMATCHSCAN /\n"]
    {
        assert_eq!(door.say(command.as_bytes()), "COMMAND UNAVAILABLE\n", "{command}");
    }
    assert_eq!(door.say(b"nPING\n"), "PONG\n");
}

#[test]
fn a_client_may_end_the_program_where_that_is_allowed() {
    let mut door = door("shutdown = true");
    let socket = door.folder.path().join("clamd.sock");
    assert_eq!(door.say(b"nSHUTDOWN\n"), "");
    assert!(door.wait().success());
    assert!(!socket.exists());
}

#[test]
fn new_signatures_are_for_what_begins_afterwards() {
    let door = door("");
    let mut old = door.unix();
    old.write_all(b"zINSTREAM\0").unwrap();
    old.write_all(&chunk(b"fresh-")).unwrap();
    wait_for(|| door.say(b"zSTATS\0").contains("\tINSTREAM").then_some(()), "the stream to begin");
    let folder = std::fs::read_to_string(door.folder.path().join("signatures")).unwrap();
    let signatures = Path::new(&folder).join("test.ndb");
    let hex: String = b"fresh-marker".iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::write(&signatures, format!("Test.Fresh:0:*:{hex}\n")).unwrap();
    assert_eq!(door.say(b"zRELOAD\0"), "RELOADING\0");
    // Once or twice: the folder is watched, too.
    let is_found = || door.say(&instream(b"fresh-marker")) == "stream: Test.Fresh.UNOFFICIAL FOUND\0";
    wait_for(|| is_found().then_some(()), "the reload");
    assert!(!door.say(b"zVERSION\0").contains(")/1/"));
    assert_eq!(door.say(&instream(BAD)), "stream: OK\0");
    old.write_all(&chunk(b"marker")).unwrap();
    old.write_all(&chunk(BAD)).unwrap();
    assert_eq!(talk(old, &[0; 4]), format!("stream: {MARKER}\0"), "it goes on with the old ones");
    // What cannot be read leaves the old in force.
    std::fs::write(&signatures, "rubbish\n").unwrap();
    assert_eq!(door.say(b"zRELOAD\0"), "RELOADING\0");
    door.wait_for_log("not reloaded");
    assert_eq!(door.say(&instream(b"fresh-marker")), "stream: Test.Fresh.UNOFFICIAL FOUND\0");
}

#[test]
fn many_scans_go_on_at_once() {
    let door = door("");
    let content: Vec<u8> = (0..1 << 20).map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    std::thread::scope(|scope| {
        for index in 0..32 {
            let (door, mut content) = (&door, content.clone());
            scope.spawn(move || {
                if index % 2 == 0 {
                    content.extend_from_slice(BAD);
                }
                let answer = if index % 2 == 0 { MARKER } else { "OK" };
                assert_eq!(door.say(&instream(&content)), format!("stream: {answer}\0"));
            });
        }
    });
}

#[test]
fn idle_clients_cost_little() {
    let door = door("");
    let before = door.resident_bytes();
    let idle: Vec<UnixStream> = (0..400)
        .map(|_| {
            let stream = door.unix();
            (&stream).write_all(b"zIDSESSION\0zPING\0").unwrap();
            (&stream).read_exact(&mut [0; 8]).unwrap();
            stream
        })
        .collect();
    let each = door.resident_bytes().saturating_sub(before) / idle.len() as u64;
    eprintln!("{each} bytes for each idle client");
    assert!(each < 16 << 10, "{each} bytes for each idle client");
    assert_eq!(door.say(b"zPING\0"), "PONG\0");
}

#[test]
fn a_full_door_lets_in_again_after_one_left() {
    let door = door("connections_max = 2");
    let (first, second) = (door.unix(), door.unix());
    (&first).write_all(b"nIDSESSION\n").unwrap();
    (&second).write_all(b"nIDSESSION\n").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let third = std::thread::spawn({
        let stream = door.unix();
        move || (talk(stream, b"nPING\n"), Instant::now())
    });
    std::thread::sleep(Duration::from_millis(200));
    let left = Instant::now();
    drop(first);
    let (answer, answered) = third.join().unwrap();
    assert_eq!(answer, "PONG\n");
    assert!(answered >= left, "it was let in before there was room");
}

#[test]
fn limits_are_answered_as_configured() {
    let deep = |levels| {
        (0..levels).fold(BAD.to_vec(), |content, _| {
            let mut gzip = Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            gzip.stdin.take().unwrap().write_all(&content).unwrap();
            gzip.wait_with_output().unwrap().stdout
        })
    };
    let name = "Heuristics.Limits.Exceeded.Depth";
    for (setting, answer) in
        [("found", format!("{name} FOUND")), ("error", format!("{name} ERROR")), ("ok", "OK".into())]
    {
        let door = door_with("limits.depth_max = 3", &format!("on_limit = \"{setting}\""));
        assert_eq!(door.say(&instream(&deep(5))), format!("stream: {answer}\0"));
        assert_eq!(door.say(&instream(&deep(1))), format!("stream: {MARKER}\0"));
    }
}

#[test]
fn a_nul_ends_every_command() {
    let door = door("");
    assert_eq!(door.say(b"PING\0"), "PONG\n");
    assert_eq!(door.say(b"nPING\0 and more\n"), "PONG\n");
    assert_eq!(door.say(b"nIDSESSION\nnPING\0\nnEND\n"), "1: PONG\n");
    let bad = door.file("bad");
    assert_eq!(door.say(format!("nSCAN {bad}\0.txt\n").as_bytes()), format!("{bad}: {MARKER}\n"));
}

#[test]
fn clients_that_do_not_read_hold_up_themselves_alone() {
    let door = door("scan_threads = 1");
    let many = door.folder.path().join("files/many");
    std::fs::create_dir(&many).unwrap();
    for number in 0..5_000 {
        std::fs::write(many.join(format!("{number}-{}", "a".repeat(60))), BAD).unwrap();
    }
    // More than there are walks at a time.
    let deaf: Vec<UnixStream> = (0..6)
        .map(|_| {
            let mut stream = door.unix();
            stream.write_all(format!("zCONTSCAN {}\0", many.display()).as_bytes()).unwrap();
            stream
        })
        .collect();
    let started = Instant::now();
    let bad = door.file("bad");
    for _ in 0..20 {
        assert_eq!(door.say(format!("nSCAN {bad}\n").as_bytes()), format!("{bad}: {MARKER}\n"));
    }
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    drop(deaf);
}

#[test]
fn who_may_come_and_how_often_is_a_setting() {
    let door = door("clients = [\"192.0.2.0/24\"]\nconnections_per_client_max = 2");
    let mut stranger = TcpStream::connect(door.address).unwrap();
    let _ = stranger.write_all(b"nPING\n");
    let mut answer = Vec::new();
    let _ = stranger.read_to_end(&mut answer);
    assert!(answer.is_empty(), "turned away unheard");
    let mut kept: Vec<UnixStream> = (0..2).map(|_| door.unix()).collect();
    for stream in &mut kept {
        stream.write_all(b"nIDSESSION\nnPING\n").unwrap();
        let mut pong = [0; 8];
        stream.read_exact(&mut pong).unwrap();
        assert_eq!(&pong, b"1: PONG\n");
    }
    let mut third = door.unix();
    let _ = third.write_all(b"nPING\n");
    let _ = third.read_to_end(&mut answer);
    assert!(answer.is_empty(), "one too many");
    drop(kept);
    wait_for(
        || {
            let mut stream = door.unix();
            let _ = stream.write_all(b"nPING\n");
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            (answer == b"PONG\n").then_some(())
        },
        "room for another",
    );
}
