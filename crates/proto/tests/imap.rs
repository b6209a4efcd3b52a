//! Conversations with both IMAP halves, as on the wire.

use proto::imap::states::Phase;
use proto::imap::{Client, ClientEvent, Command, Config, Fetch, Kind, Message, Piece, Server, ServerEvent, Verb};

/// Events for a client's input, up to the first that the host has to decide.
fn hear(server: &mut Server, mut input: &[u8]) -> (Vec<ServerEvent>, usize) {
    let (mut events, whole) = (Vec::new(), input.len());
    loop {
        let (taken, event) = server.step(0, input);
        input = &input[taken..];
        match event {
            ServerEvent::Idle if taken == 0 => return (events, whole - input.len()),
            ServerEvent::Idle => {}
            event => {
                let stops = event == ServerEvent::Closed;
                events.push(event);
                if stops {
                    return (events, whole - input.len());
                }
            }
        }
    }
}

/// A half whose client has selected a mailbox.
fn selected() -> Server {
    let mut server = Server::new(Config::default(), 0);
    server.logged_in(0);
    hear(&mut server, b"0 SELECT x\r\n");
    server.answered(0, Kind::Ok);
    server
}

fn command(line: &str) -> Command {
    match hear(&mut selected(), format!("{line}\r\n").as_bytes()).0.pop() {
        Some(ServerEvent::Command(command)) => command,
        other => panic!("{line}: {other:?}"),
    }
}

/// Events for a server's responses while a command is in flight under `s1`.
fn told(responses: &[u8]) -> String {
    let mut client = Client::new();
    client.command(&command("a FETCH 1 BODY[]"));
    let (mut input, mut text) = (responses, String::new());
    loop {
        let (taken, event) = client.step(input);
        let run = String::from_utf8_lossy(&input[..taken]);
        match event {
            ClientEvent::Idle if taken == 0 => return text,
            ClientEvent::Idle => {}
            ClientEvent::Pass | ClientEvent::PassText => text += &run,
            ClientEvent::Content => text += &format!("<{run}>"),
            ClientEvent::Quoted(bytes) => text += &format!("<{}>", String::from_utf8_lossy(&bytes)),
            ClientEvent::Data(start) => text += &String::from_utf8_lossy(&start),
            ClientEvent::Fetch(number) => text += &format!("FETCH {number}:"),
            ClientEvent::Item(name) => text += &format!(" {} ", String::from_utf8_lossy(&name)),
            ClientEvent::Uid(uid) => text += &format!(" uid={uid}"),
            ClientEvent::Fact(fact, value) => text += &format!(" {}={}", fact.name(), String::from_utf8_lossy(&value)),
            ClientEvent::Short(name, value) => text += &format!(" {name} {}", String::from_utf8_lossy(&value)),
            ClientEvent::Section(section, message) => {
                let mut name = Vec::new();
                section.name(&mut name);
                let len = message.map(|message| message.len);
                text += &format!(" {}={len:?}", String::from_utf8_lossy(&name));
            }
            ClientEvent::End => text += ";",
            ClientEvent::Status(status) => {
                let tagged = if status.tagged { "!" } else { "" };
                let (code, rest) = (String::from_utf8_lossy(&status.code), String::from_utf8_lossy(&status.text));
                text += &format!("{tagged}{}[{code}]{rest};", status.kind.name());
            }
            ClientEvent::Capability(words) => text += &format!("{} capabilities;", words.len()),
            ClientEvent::Continue(more) => text += &format!("+{};", String::from_utf8_lossy(&more)),
            ClientEvent::Broken(reason) => return format!("{text}BROKEN {reason}"),
        }
        input = &input[taken..];
    }
}

#[test]
fn strings_that_are_as_long_as_messages_are_faults() {
    let long = "x".repeat(70_000);
    for response in [
        format!("* 1 FETCH (ENVELOPE (NIL {{{}}}\r\n{long}))\r\n", long.len()),
        format!("* 1 FETCH (PREVIEW \"{long}\")\r\n"),
        format!("* 1 FETCH (EMAILID ({long}))\r\n"),
        format!("* LIST () \"/\" {{{}}}\r\n{long}\r\n", long.len()),
    ] {
        let (mut client, mut rest) = (Client::new(), response.as_bytes());
        let is_fault = loop {
            match client.step(rest) {
                (_, ClientEvent::Broken(_)) => break true,
                (0, ClientEvent::Idle) => break false,
                (taken, _) => rest = &rest[taken..],
            }
        };
        assert!(is_fault, "{}", &response[..40]);
    }
}

#[test]
fn a_command_waits_for_its_answer_and_the_next_is_not_taken_before() {
    let mut server = selected();
    let input = b"a1 NOOP\r\na2 CHECK\r\n";
    let (events, taken) = hear(&mut server, input);
    assert!(matches!(events.as_slice(), [ServerEvent::Command(command)] if command.tag == b"a1"));
    assert_eq!(taken, 9);
    server.answered(0, Kind::Ok);
    let (events, _) = hear(&mut server, &input[taken..]);
    assert!(matches!(events.as_slice(), [ServerEvent::Command(command)] if command.tag == b"a2"));
}

#[test]
fn literals_are_collected_and_leave_is_given_where_it_is_asked_for() {
    let mut server = Server::new(Config::default(), 0);
    let (events, _) = hear(&mut server, b"a LOGIN {3}\r\ntim {6+}\r\nse\r\nre\r\n");
    assert_eq!(server.outbox(), b"+ Go on\r\n");
    let [ServerEvent::Command(login)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(login.user().as_deref(), Some("tim"));
    assert!(matches!(login.pieces.last(), Some(Piece::Literal { bytes, .. }) if bytes == b"se\r\nre"));
    // Towards the server it waits for leave at each literal.
    let mut client = Client::new();
    client.command(login);
    assert_eq!(client.outbox(), b"s1 LOGIN {3}\r\n");
    client.sent();
    assert_eq!(client.step(b"+ "), (2, ClientEvent::Idle));
    assert_eq!(client.step(b"\r\n"), (2, ClientEvent::Idle));
    assert_eq!(client.outbox(), b"tim {6}\r\n");
}

#[test]
fn floods_of_literals_and_lines_without_end_are_bounded() {
    let closed = |input: &[u8]| {
        let mut server = Server::new(Config::default(), 0);
        let events = hear(&mut server, input).0;
        (events.last() == Some(&ServerEvent::Closed), events.len(), server)
    };
    // A line without an end is noticed before its end.
    assert!(closed(&[b'x'; 9_000]).0);
    // So is a literal that is too long and comes unasked, if it is not small enough to be passed over.
    assert!(closed(b"a LOGIN {2000000+}\r\n").0);
    let mut passed_over = b"a LOGIN {9000+}\r\n".to_vec();
    passed_over.extend([b'x'; 9_000]);
    passed_over.extend(b" y\r\n");
    let (over, _, _) = closed(&passed_over);
    assert!(!over);
    let mut server = Server::new(Config::default(), 0);
    assert_eq!(hear(&mut server, &passed_over).0, [ServerEvent::Wrong(b"a".to_vec(), "[TOOBIG] Too much")]);
    // One that waits for leave does not get it.
    let mut server = Server::new(Config::default(), 0);
    let wrong = hear(&mut server, b"a LOGIN {9000}\r\n").0;
    assert_eq!(wrong, [ServerEvent::Wrong(b"a".to_vec(), "[TOOBIG] Too much")]);
    assert!(server.outbox().is_empty());
    // Many small ones are one command.
    let many = b"a LOGIN ".iter().copied().chain(b"{100+}\r\n".iter().copied().chain([b'x'; 100]).cycle().take(20_000));
    assert!(closed(&many.collect::<Vec<u8>>()).1 <= 1);
}

#[test]
fn wrong_commands_are_told_under_their_tags_until_there_are_too_many() {
    let mut server = Server::new(Config { errors_max: 3, ..Config::default() }, 0);
    for line in ["a COMPRESS DEFLATE\r\n", "a LOGIN \"x\r\n"] {
        let events = hear(&mut server, line.as_bytes()).0;
        assert!(matches!(events.as_slice(), [ServerEvent::Wrong(tag, _)] if tag == b"a"), "{events:?}");
        server.answered(0, Kind::Ok);
    }
    assert_eq!(hear(&mut server, b"b NOOP NOOP\x01\r\n").0, [ServerEvent::Closed]);
}

#[test]
fn what_stands_behind_a_wrong_literal_is_no_command() {
    let mut server = Server::new(Config::default(), 0);
    let events = hear(&mut server, b"a XFOO {9+}\r\nb LOGOUT\n\r\n").0;
    assert_eq!(events, [ServerEvent::Wrong(b"a".to_vec(), "Unknown command")]);
}

#[test]
fn what_is_out_of_turn_is_refused_before_its_literals_and_is_no_wrong_command() {
    let mut server = Server::new(Config { errors_max: 2, ..Config::default() }, 0);
    for _ in 0..3 {
        let events = hear(&mut server, b"a APPEND x {5}\r\n").0;
        assert_eq!(events, [ServerEvent::Wrong(b"a".to_vec(), "Log in first")]);
        server.answered(0, Kind::Bad);
    }
    assert!(server.outbox().is_empty(), "leave is given");
    server.logged_in(0);
    let events = hear(&mut server, b"b UID FETCH 1 {3+}\r\nall\r\n").0;
    assert_eq!(events, [ServerEvent::Wrong(b"b".to_vec(), "Select a mailbox first")]);
}

#[test]
fn a_mailbox_is_left_for_one_that_cannot_be_entered_but_not_for_what_is_no_command() {
    for (line, kind, phase) in [
        ("a SELECT y", Kind::Ok, Phase::Selected),
        ("a SELECT y", Kind::Bad, Phase::Selected),
        ("a SELECT y", Kind::No, Phase::Authenticated),
        ("a SELECT {999999}", Kind::No, Phase::Selected),
        ("a CLOSE", Kind::No, Phase::Selected),
        ("a APPEND x {5}", Kind::No, Phase::Selected),
        ("a LOGOUT", Kind::Bad, Phase::Selected),
    ] {
        let mut server = selected();
        hear(&mut server, format!("{line}\r\n").as_bytes());
        server.answered(0, kind);
        assert_eq!(server.phase(), phase, "{line} {kind:?}");
    }
    let mut server = selected();
    server.unselected();
    assert_eq!(server.phase(), Phase::Authenticated);
}

#[test]
fn messages_are_appended_one_after_the_other() {
    let mut server = selected();
    let (events, _) = hear(&mut server, b"a APPEND {3+}\r\nbox (\\Seen) {5}\r\n");
    let [ServerEvent::Append(append, message)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((message.len, append.verb), (5, Verb::Append));
    let mut client = Client::new();
    client.append(append, *message);
    assert_eq!(client.outbox(), b"s1 APPEND {3}\r\n");
    server.accept();
    let (events, _) = hear(&mut server, b"hello (\\Flagged) ~{0+}\r\n");
    let more = Message { len: 0, binary: true };
    assert_eq!(events, [ServerEvent::Content, ServerEvent::Message(b" (\\Flagged) ".to_vec(), more)]);
    server.accept();
    assert_eq!(hear(&mut server, b"\r\n").0, [ServerEvent::AppendEnd(Vec::new())]);
    // One that is refused before it is sent is the end; one that comes all the same is not.
    for (line, over) in [("a APPEND x {5}\r\n", true), ("a APPEND x {5+}\r\n", false)] {
        let mut server = selected();
        hear(&mut server, line.as_bytes());
        assert_eq!(server.refuse(), over);
    }
    let events = hear(&mut selected(), b"a APPEND x CATENATE (TEXT {5}\r\n").0;
    assert_eq!(events, [ServerEvent::Wrong(b"a".to_vec(), "Not an APPEND that can be inspected")]);
}

#[test]
fn only_done_ends_idle() {
    let mut server = selected();
    hear(&mut server, b"a IDLE\r\n");
    server.idle(b"idling");
    assert_eq!(hear(&mut server, b"done\r\nb NOOP\r\n"), (vec![ServerEvent::Done], 6));
    server.idle(b"");
    assert_eq!(hear(&mut server, b"b NOOP\r\n").0, [ServerEvent::Closed]);
}

#[test]
fn slow_clients_do_not_gain_time_by_saying_little() {
    let mut server = Server::new(Config::default(), 0);
    assert_eq!(server.deadline(), 120_000);
    server.step(100_000, b"a NOO");
    server.step(110_000, b"P\r\n");
    server.answered(110_000, Kind::Ok);
    assert_eq!(server.deadline(), 120_000, "only who has logged in may take time");
    server.step(111_000, b"b LOGIN tim secret\r\n");
    server.answered(115_000, Kind::Ok);
    server.step(500_000, b"a");
    assert_eq!(server.deadline(), 115_000 + 1_860_000);
}

#[test]
fn the_items_of_a_fetch_are_told_in_any_order() {
    assert_eq!(
        told(b"* 3 FETCH (FLAGS (\\Seen) BODY[] {5}\r\na)\r\nb UID 7 BODY[1] \"q\\\"\" RFC822.HEADER nil)\r\ns1 OK done\r\n"),
        "FETCH 3: FLAGS (\\Seen) BODY[]=Some(5)<a)\r\nb> uid=7 BODY[1]=Some(2)<q\"> RFC822.HEADER=None;!OK[]done;"
    );
    assert_eq!(
        told(
            b"* 1 FETCH (ENVELOPE (\"a)\" {3}\r\n(\"x NIL) BODY[HEADER.FIELDS (A B)] ~{0}\r\n X-ODD (1 (2)) UID 1)\r\n"
        ),
        "FETCH 1: ENVELOPE (\"a)\" {3}\r\n(\"x NIL) BODY[HEADER.FIELDS (A B)]=Some(0) uid=1;"
    );
    assert_eq!(
        told(b"* 1 FETCH (rfc822.size 120 INTERNALDATE \" 1-Feb-2026 10:00:00 +0000\" BODY[1] {1}\r\nx)\r\n"),
        "FETCH 1: RFC822.SIZE=120 INTERNALDATE=\" 1-Feb-2026 10:00:00 +0000\" BODY[1]=Some(1)<x>;"
    );
}

#[test]
fn what_is_not_known_is_left_out_and_the_rest_passes() {
    assert_eq!(
        told(
            b"* SEARCH 1 2 3\r\n* METADATA \"\" (/x {5}\r\n* 1 \")\r\n* 5 EXISTS\r\n* 4 X-ODD\r\n* SEARCH\r\n+ go\r\n"
        ),
        "* SEARCH 1 2 3;* 5 EXISTS;* SEARCH;+go;"
    );
    assert_eq!(
        told(b"* OK [UIDVALIDITY 7] fine {5}\r\n* CAPABILITY IMAP4rev1 X\r\ns1 NO [X] no\r\n"),
        "OK[UIDVALIDITY 7]fine {5);2 capabilities;!NO[X]no;"
    );
}

#[test]
fn a_hostile_server_is_not_believed() {
    for responses in [
        &b"s2 OK not asked\r\n"[..],
        b"s1 OK one\r\ns1 OK two\r\n",
        b"* 1 FETCH BODY[] {3}\r\n",
        b"* 1 FETCH (BODY[] {3}x\r\n",
        b"* 1 FETCH (BODY[] {-3}\r\n",
        b"* 1 FETCH (BODY[] {99999999999999999999}\r\n",
        b"* 1 FETCH (BODY[] {3}\r\nabcd)\r\n",
        b"* 1 FETCH (BODY[] atom)\r\n",
        b"* 1 FETCH (BODY[1.\r\n",
        b"* 1 FETCH (BODY[HEADER.FIELDS ({1}\r\n",
        b"* 1 FETCH (BODY[] \"a\r\nb\")\r\n",
        b"* 1 FETCH (FLAGS (\\Seen)\r\n",
        b"* 1 FETCH (UID x)\r\n",
        b"* 1 FETCH (INTERNALDATE {4}\r\na\r\nb)\r\n",
        b"* 1 FETCH (INTERNALDATE \"1\r\n2\")\r\n",
        b"* 1 FETCH (RFC822.SIZE {4}\r\na\r\nb)\r\n",
        b"* 1 FETCH (RFC822.SIZE  UID 1)\r\n",
        b"* 1 FETCH (RFC822.SIZE 11111111111111111111111111111111111111111111111111111111111111111)\r\n",
        b"* 99999999999 EXISTS\r\n",
        b"* SEARCH \"open\r\n",
        b"* LIST () \"/\" {5\r\n",
        b"* SEARCH 1\r 2\r\n",
        b"* OK \0\r\n",
        b"OK\r\n",
        b"\r\n",
    ] {
        assert!(told(responses).contains("BROKEN"), "{}", String::from_utf8_lossy(responses));
    }
    let endless = [&b"* OK "[..], &[b'x'; 300_000]].concat();
    assert!(told(&endless).contains("BROKEN a line is too long"));
    assert!(told(&[b'x'; 1_000]).contains("BROKEN"));
    assert!(told(&[&b"* 1 FETCH (BODY["[..], &[b'1'; 20_000]].concat()).contains("BROKEN a word is too long"));
    assert!(told(&[&b"* LIST "[..], &[b'('; 2_000]].concat()).contains("BROKEN too many parentheses"));
}

#[test]
fn ids_and_numbers_pass_and_text_in_their_place_does_not() {
    let long = "a".repeat(255);
    for (items, wanted) in [
        ("EMAILID (M6d99ac3275bb4e_-) THREADID (T1)", " EMAILID (M6d99ac3275bb4e_-) THREADID (T1)"),
        ("emailid (M1) THREADID NIL", " EMAILID (M1) THREADID NIL"),
        (&format!("EMAILID ({long})"), &format!(" EMAILID ({long})")),
        ("MODSEQ (12) X-GM-MSGID 1278455344230334865", " MODSEQ (12) X-GM-MSGID 1278455344230334865"),
        ("SAVEDATE \" 1-Feb-2026 10:00:00 +0100\"", " SAVEDATE \" 1-Feb-2026 10:00:00 +0100\""),
        ("EMAILID (X5O!P%@AP[4\\PZX54(P^)7CC7}$) THREADID (T1)", " THREADID (T1)"),
        ("EMAILID () THREADID (a.b) MODSEQ (1)", " MODSEQ (1)"),
        ("EMAILID (a b) THREADID \"T1\" MODSEQ x X-GM-THRID (1) SAVEDATE \"<x>\" UID 7", " uid=7"),
        ("EMAILID NIL SAVEDATE NIL", " SAVEDATE NIL"),
    ] {
        let told = told(format!("* 1 FETCH ({items})\r\n").as_bytes());
        assert_eq!(told, format!("FETCH 1:{wanted};"), "{items}");
    }
    let too_long = told(format!("* 1 FETCH (EMAILID ({long}a))\r\n").as_bytes());
    assert!(too_long.contains("BROKEN a word is too long"), "{too_long}");
}

#[test]
fn a_literal_is_text_on_one_line_where_it_is_no_content() {
    for responses in [&b"* 1 FETCH (FLAGS {4}\r\na\r\nb)\r\n"[..], b"* 1 FETCH (EMAILID ({4}\r\na\r\nb))\r\n"] {
        assert!(told(responses).contains("BROKEN a literal where none can be"), "{}", told(responses));
    }
    let responses = b"* 1 FETCH (ENVELOPE (NIL {4}\r\na\r\nb NIL) PREVIEW {3}\r\nc\nd X {3}\r\ne\nf)\r\n* LIST () \"/\" {3}\r\ng\nh\r\n";
    let mut client = Client::new();
    let (mut input, mut text) = (&responses[..], String::new());
    while !input.is_empty() {
        let (taken, event) = client.step(input);
        if event == ClientEvent::PassText {
            text += &format!("<{}>", String::from_utf8_lossy(&input[..taken]));
        }
        assert!(taken > 0 || event != ClientEvent::Idle, "it waits, and there is more: {input:?}");
        input = &input[taken..];
    }
    assert_eq!(text, "<a\r\nb><c\nd><g\nh>");
}

#[test]
fn a_response_may_be_long_but_not_endless() {
    let mut client = Client::new();
    let mut start = &b"* SEARCH "[..];
    while !start.is_empty() {
        start = &start[client.step(start).0..];
    }
    let numbers = b"123456 ".repeat(100_000);
    let mut told = 0;
    loop {
        match client.step(&numbers) {
            (taken, ClientEvent::Pass | ClientEvent::PassText) => told += taken,
            (_, ClientEvent::Broken(reason)) => {
                assert_eq!(reason, "a response is too long");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!((60 << 20..70 << 20).contains(&told), "{told}");
}

#[test]
fn a_value_of_a_fetch_may_be_long_but_not_endless() {
    let responses = [&b"* 1 FETCH (ENVELOPE ("[..], &b"\"abcdef\" ".repeat(1_000_000)].concat();
    let (mut client, mut input) = (Client::new(), &responses[..]);
    let reason = loop {
        match client.step(input) {
            (_, ClientEvent::Broken(reason)) => break reason,
            (taken, _) => input = &input[taken..],
        }
        assert!(!input.is_empty(), "all of it passed");
    };
    assert_eq!(reason, "a value is too long");
}

#[test]
fn nothing_of_content_is_kept_however_long_it_is() {
    let mut client = Client::new();
    let (mut taken, mut input) = (0, &b"* 1 FETCH (BODY[] {99000000000}\r\n"[..]);
    while !input.is_empty() {
        let step = client.step(input);
        input = &input[step.0..];
    }
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..200 {
        assert_eq!(client.step(&piece), (1 << 20, ClientEvent::Content));
        taken += 1 << 20;
    }
    assert_eq!(taken, 200 << 20);
}

#[test]
fn a_fetch_of_our_own_asks_for_one_message() {
    let fetch = Fetch::parse(&command("a UID FETCH 1:* (FLAGS BODY[1])")).unwrap();
    let mut client = Client::new();
    client.command(&Command::fetch(&fetch.of_one(9, fetch.sections.clone())));
    assert_eq!(client.outbox(), b"s1 UID FETCH 9 (UID RFC822.SIZE INTERNALDATE BODY[1])\r\n");
    assert_eq!(Kind::Bye.name(), "BYE");
}

#[test]
fn a_search_goes_under_the_clients_tag_which_its_result_repeats() {
    for (line, sent) in [
        ("A7 SEARCH RETURN (COUNT) ALL", "A7 SEARCH RETURN (COUNT) ALL\r\n"),
        ("A7 UID SORT RETURN (ALL) (DATE) UTF-8 ALL", "A7 UID SORT RETURN (ALL) (DATE) UTF-8 ALL\r\n"),
        ("A7 NOOP", "s1 NOOP\r\n"),
    ] {
        let mut client = Client::new();
        client.command(&command(line));
        assert_eq!(core::str::from_utf8(client.outbox()).unwrap(), sent);
    }
    let mut client = Client::new();
    client.command(&command("A7 SEARCH ALL"));
    assert!(matches!(client.step(b"s1 OK not asked\r\n").1, ClientEvent::Broken(_)));
}
