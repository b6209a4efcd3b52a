//! Conversations with the clamd half, written as they stand on the wire.

use proto::clamd::{Config, Reply, Request, Scan, Server, ServerEvent, Tag, fuzz_server};

/// A host that finds what contains "bad", and answers when it is told to.
struct Host {
    server: Server,
    now: u64,
    waiting: Vec<(Tag, Request)>,
    content: Vec<u8>,
    events: Vec<ServerEvent>,
}

impl Host {
    fn new(config: Config) -> Host {
        Host { server: Server::new(config, 0), now: 0, waiting: Vec::new(), content: Vec::new(), events: Vec::new() }
    }

    /// Hears all of `input`, in pieces, as far as it is listened to; returns how much that was.
    fn hear(&mut self, input: &[u8], piece: usize) -> usize {
        let mut at = 0;
        while at < input.len() {
            let end = input.len().min(at + piece);
            let (taken, event) = self.server.step(self.now, &input[at..end]);
            if event == ServerEvent::Content {
                self.content.extend_from_slice(&input[at..at + taken]);
            }
            at += taken;
            let stuck = taken == 0;
            self.note(event);
            if stuck {
                break;
            }
        }
        at
    }

    fn note(&mut self, event: ServerEvent) {
        if let ServerEvent::Asked(tag, request) = &event {
            self.waiting.push((*tag, request.clone()));
        }
        if !matches!(event, ServerEvent::Idle | ServerEvent::Content) {
            self.events.push(event);
        }
    }

    /// Answers the request that has waited for `index` others.
    fn answer(&mut self, index: usize) {
        let (tag, request) = self.waiting.remove(index);
        let infected = |bytes: &[u8]| bytes.windows(3).any(|three| three == b"bad");
        let (subject, found) = match &request {
            Request::Scan { path, .. } => (path.clone(), infected(path)),
            Request::Stream => (b"stream".to_vec(), infected(&self.content)),
            other => (format!("{other:?}").into_bytes(), false),
        };
        let reply = if found { Reply::Found(&subject, "Test.Bad") } else { Reply::Clean(&subject) };
        self.server.answer(tag, &reply);
        self.server.done(self.now);
    }

    fn said(&mut self) -> String {
        let said = String::from_utf8(self.server.outbox().to_vec()).unwrap();
        self.server.sent(said.len());
        said
    }
}

/// Replies to `input`, each request answered at once, whatever the cut.
fn reply(input: &[u8]) -> (String, bool) {
    let run = |piece| {
        let mut host = Host::new(Config { stream_bytes_max: 20, ..Config::default() });
        let mut at = 0;
        loop {
            let count = host.hear(&input[at..], piece);
            at += count;
            let streaming = host.waiting.last().is_some_and(|(_, request)| *request == Request::Stream)
                && host.events.last() != Some(&ServerEvent::StreamEnd);
            if !host.waiting.is_empty() && !streaming {
                host.answer(0);
            } else if count == 0 || at == input.len() {
                break;
            }
        }
        (host.said(), host.server.is_closed())
    };
    let whole = run(usize::MAX >> 1);
    (1..=7).for_each(|piece| assert_eq!(run(piece), whole, "cut into {piece}"));
    whole
}

#[test]
fn what_is_answered_ends_as_the_command_did() {
    assert_eq!(reply(b"nPING\n"), ("PONG\n".into(), true));
    assert_eq!(reply(b"zPING\0"), ("PONG\0".into(), true));
    assert_eq!(reply(b"PING\n"), ("PONG\n".into(), true));
    assert_eq!(reply(b"nPING\r\n"), ("PONG\n".into(), true));
    assert_eq!(reply(b"zSCAN /a/bad\0"), ("/a/bad: Test.Bad FOUND\0".into(), true));
    assert_eq!(reply(b"SCAN /a/good\n"), ("/a/good: OK\n".into(), true));
}

#[test]
fn what_is_no_command_is_the_last() {
    for wrong in
        ["nFOO\n", "\n", "n\n", "nPING x\n", "nPINGX\n", "nSCAN\n", "ping\n", "nEND\n", "STATS\n", "INSTREAM\n"]
    {
        assert_eq!(reply(wrong.as_bytes()), ("UNKNOWN COMMAND\n".into(), true), "{wrong:?}");
    }
    for wrong in ["IDSESSION\n", "ALLMATCHSCAN /x\n", "nRAWSCAN /x\n", "nSTREAM\n", "GET / HTTP/1.1\r\n"] {
        assert_eq!(reply(wrong.as_bytes()), ("UNKNOWN COMMAND\n".into(), true), "{wrong:?}");
    }
    assert_eq!(reply(b"zPING\n\0"), ("UNKNOWN COMMAND\0".into(), true));
}

#[test]
fn the_first_space_divides_and_the_next_belongs_to_the_path() {
    let mut host = Host::new(Config::default());
    host.hear(b"nALLMATCHSCAN  /a b \n", 3);
    let request = Request::Scan { scan: Scan::AllMatches, path: b" /a b ".to_vec() };
    assert_eq!(host.waiting[0].1, request);
}

#[test]
fn a_stream_ends_with_an_empty_chunk() {
    assert_eq!(reply(b"zINSTREAM\0\0\0\0\x05xbady\0\0\0\0"), ("stream: Test.Bad FOUND\0".into(), true));
    assert_eq!(reply(b"nINSTREAM\n\0\0\0\x02xb\0\0\0\x03ady\0\0\0\0"), ("stream: Test.Bad FOUND\n".into(), true));
    assert_eq!(reply(b"zINSTREAM\0\0\0\0\0"), ("stream: OK\0".into(), true));
}

#[test]
fn a_stream_has_its_limit() {
    assert_eq!(reply(&[b"zINSTREAM\0\0\0\0\x14", &[b'a'; 20][..], &[0; 4]].concat()).0, "stream: OK\0");
    let refused = ("INSTREAM size limit exceeded. ERROR\0".into(), true);
    assert_eq!(reply(b"zINSTREAM\0\xff\xff\xff\xffaaa"), refused);
    assert_eq!(reply(&[b"zINSTREAM\0\0\0\0\x14", &[b'a'; 20][..], &[0, 0, 0, 1]].concat()), refused);
}

#[test]
fn a_stream_without_a_limit_goes_beyond_four_gigabytes() {
    let mut host = Host::new(Config::default());
    host.hear(b"zINSTREAM\0", 100);
    let piece = vec![0; 1 << 20];
    for _ in 0..3 {
        host.hear(&[0xff, 0xff, 0xff, 0xff], 4);
        let mut left = u32::MAX as usize;
        while left > 0 {
            let count = left.min(piece.len());
            let (taken, event) = host.server.step(0, &piece[..count]);
            assert_eq!((taken, event), (count, ServerEvent::Content));
            left -= count;
        }
    }
    host.hear(&[0; 4], 4);
    assert_eq!(host.events.last(), Some(&ServerEvent::StreamEnd));
}

#[test]
fn a_session_answers_in_any_order() {
    let mut host = Host::new(Config::default());
    host.hear(b"zIDSESSION\0nSCAN /bad\nzSCAN /good\0zPING\0zEND\0", 4);
    assert_eq!(host.said(), "3: PONG\0");
    host.answer(1);
    assert_eq!(host.said(), "2: /good: OK\0");
    assert!(!host.server.is_closed());
    host.answer(0);
    assert_eq!(host.said(), "1: /bad: Test.Bad FOUND\n");
    assert!(host.server.is_closed());
}

#[test]
fn a_session_takes_no_more_than_it_can_answer() {
    let mut host = Host::new(Config { requests_max: 2, ..Config::default() });
    let input = b"nIDSESSION\nnSCAN /a\nnSCAN /b\nnSCAN /c\n";
    let taken = host.hear(input, 100);
    assert_eq!((taken, host.waiting.len()), (input.len() - 9, 2));
    host.answer(0);
    assert_eq!(host.hear(&input[taken..], 100), 9);
}

#[test]
fn what_a_session_does_not_know_is_the_last() {
    for wrong in ["nFOO\n", "nRELOAD\n", "nCONTSCAN /\n", "nIDSESSION\n", "PING\n"] {
        let told = reply(format!("nIDSESSION\nnPING\n{wrong}nPING\n").as_bytes());
        assert_eq!(told, ("1: PONG\n2: Command invalid inside IDSESSION. ERROR\n".into(), true), "{wrong:?}");
    }
}

#[test]
fn a_descriptor_comes_with_one_byte() {
    let mut host = Host::new(Config::default());
    host.hear(b"zIDSESSION\0zFILDES\0", 100);
    assert!(host.waiting.is_empty());
    host.hear(b"\0zFILDES\0xzPING\0", 1);
    assert_eq!(host.waiting.iter().map(|(_, request)| request).collect::<Vec<_>>(), [&Request::Descriptor; 2]);
    assert_eq!(host.said(), "3: PONG\0");
}

#[test]
fn a_bare_command_ends_with_silence_or_with_the_input() {
    let mut host = Host::new(Config::default());
    host.hear(b"SCAN /go", 3);
    host.now = 50;
    host.hear(b"od", 1);
    assert_eq!(host.server.deadline(), Some(100), "silence is counted from the first byte");
    host.now = 100;
    let event = host.server.timeout(100);
    host.note(event);
    host.answer(0);
    assert_eq!(host.said(), "/good: OK\n");

    let mut host = Host::new(Config::default());
    host.hear(b"PING", 1);
    assert_eq!(host.server.finish(0), ServerEvent::Closed);
    assert_eq!(host.said(), "PONG\n");
}

#[test]
fn patience_has_an_end() {
    let config = Config { command_ms_max: 5, read_ms_max: 9, ..Config::default() };
    for (input, deadline) in
        [(&b""[..], 5), (b"nPI", 5), (b"nFILDES\n", 12), (b"zINSTREAM\0", 16), (b"nIDSESSION\n", 16)]
    {
        let mut host = Host::new(config);
        host.now = 7;
        host.hear(input, 100);
        assert_eq!(host.server.deadline(), Some(deadline), "{input:?}");
        host.server.timeout(deadline);
        assert_eq!((host.said().as_str(), host.server.is_closed()), ("COMMAND READ TIMED OUT\n", true));
    }
    let mut host = Host::new(config);
    host.hear(b"nIDSESSION\nnSCAN /a\n", 100);
    assert_eq!(host.server.deadline(), None, "it waits for us");
}

#[test]
fn half_a_conversation_is_none() {
    for input in [&b"nPI"[..], b"zINSTREAM\0\0\0", b"zINSTREAM\0\0\0\0\x05bad", b"nFILDES\n", b""] {
        let mut host = Host::new(Config::default());
        host.hear(input, 100);
        assert_eq!(host.server.finish(0), ServerEvent::Closed, "{input:?}");
        assert_eq!(host.said(), "");
    }
    let mut host = Host::new(Config::default());
    host.hear(b"nSCAN /bad\n", 100);
    assert_eq!(host.server.finish(0), ServerEvent::Idle, "the answer is still wanted");
    host.answer(0);
    assert_eq!(host.said(), "/bad: Test.Bad FOUND\n");
    assert!(host.server.is_closed());
}

#[test]
fn an_endless_command_is_refused() {
    let path = vec![b'a'; Server::COMMAND_BYTES_MAX];
    assert_eq!(reply(&[b"nSCAN /", &path[..]].concat()), ("UNKNOWN COMMAND\n".into(), true));
    let fits = [b"zSCAN /", &path[..Server::COMMAND_BYTES_MAX - 8], b"\0"].concat();
    assert!(reply(&fits).0.ends_with(": OK\0"));
}

#[test]
fn a_file_name_cannot_answer_for_another_file() {
    let mut host = Host::new(Config::default());
    host.hear(b"nCONTSCAN /x\n", 100);
    let (tag, _) = host.waiting[0];
    host.server.answer(tag, &Reply::Clean(b"/x/a: OK\n/x/b"));
    assert_eq!(host.said(), "/x/a: OK?/x/b: OK\n");
}

#[test]
fn every_cut_of_a_long_session_tells_the_same() {
    let session =
        b"\x00zIDSESSION\0zINSTREAM\0\0\0\0\x03bad\0\0\0\x02xx\0\0\0\0nSCAN /a b\nzFILDES\0\0zPING\0nVERSION\n\
        zVERSIONCOMMANDS\0zSTATS\0zINSTREAM\0\0\0\0\0zEND\0";
    for seed in 0..=255 {
        let mut input = session.to_vec();
        input[0] = seed;
        fuzz_server(&input);
    }
}

proptest::proptest! {
    #[test]
    fn any_words_in_any_cut_tell_the_same(
        seed: u8,
        words in proptest::collection::vec(proptest::sample::select(vec![
            &b"zIDSESSION\0"[..], b"nIDSESSION\n", b"zINSTREAM\0", b"\0\0\0\x03bad", b"\0\0\0\0", b"nSCAN /a\n", b"SCAN /b",
            b"zPING\0", b"zFILDES\0", b"\0", b"\n", b"z", b"n", b"zEND\0", b"nSTATS\n", b"\xff\xff\xff\xff", b"\0\0\x03\xe8",
        ]), 0..20),
    ) {
        fuzz_server(&[&[seed][..], &words.concat()].concat());
    }
}
