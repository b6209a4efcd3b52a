//! Conversations with the filter's half of the milter protocol: a packet a line, its letter first, `|` for NUL.

use proto::milter::{Decision, Server, ServerEvent};
use proto::smtp::Reply;

/// A filter that refuses messages with "virus" in their body.
struct Filter {
    server: Server,
    body: Vec<u8>,
    told: Vec<ServerEvent>,
}

impl Filter {
    /// One that has agreed on everything, with a mail server that asks for these protocol flags.
    fn agreed(flags: u32) -> Filter {
        let mut filter = Filter { server: Server::new(), body: Vec::new(), told: Vec::new() };
        let offer = [&6u32.to_be_bytes()[..], &0x1ffu32.to_be_bytes(), &flags.to_be_bytes()].concat();
        let said = filter.hear(&packet('O', &offer), usize::MAX);
        assert_eq!(&said[..5], b"\0\0\0\x0dO");
        filter
    }

    fn hear(&mut self, input: &[u8], piece: usize) -> Vec<u8> {
        for piece in input.chunks(piece.min(input.len()).max(1)) {
            let mut at = 0;
            loop {
                let (taken, event) = self.server.step(&piece[at..]);
                at += taken;
                match &event {
                    ServerEvent::Idle if taken == 0 => break,
                    ServerEvent::Idle => continue,
                    ServerEvent::Body(count) => self.body.extend_from_slice(&piece[at - count..at]),
                    ServerEvent::LastBody(body) => self.body.extend_from_slice(body),
                    ServerEvent::End => {
                        let body = std::mem::take(&mut self.body);
                        let is_infected = body.windows(5).any(|five| five == b"virus");
                        self.server.decide(&match is_infected {
                            true => Decision::Reply(Reply::new(554, (5, 7, 1), "100% no")),
                            false => Decision::Accept,
                        });
                    }
                    ServerEvent::Closed | ServerEvent::Broken(_) => {
                        self.told.push(event);
                        break;
                    }
                    _ => {}
                }
                self.told.push(event);
            }
        }
        let said = self.server.outbox().to_vec();
        self.server.sent();
        said
    }
}

fn packet(letter: char, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len() + 1).unwrap().to_be_bytes();
    [&length[..], &[letter as u8], data].concat()
}

/// Plays `C:` (the mail server's) and `S:` (our) packets; the former come in pieces of five bytes.
fn play(flags: u32, script: &str) -> Filter {
    let mut filter = Filter::agreed(flags);
    let mut said: Vec<u8> = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut text = line[2..].strip_prefix(' ').unwrap_or(&line[2..]).replace('|', "\0").replace("\\n", "\r\n");
        let letter = text.remove(0);
        let wanted = packet(letter, text.as_bytes());
        if line.starts_with("C:") {
            said.extend(filter.hear(&wanted, 5));
        } else {
            assert!(said.starts_with(&wanted), "{line}: got {:?}", String::from_utf8_lossy(&said));
            said.drain(..wanted.len());
        }
    }
    assert_eq!(String::from_utf8_lossy(&said), "");
    filter
}

const SILENT: u32 = 0x1f_ffff;

#[test]
fn a_mail_server_that_wants_answers_gets_one_to_each_packet() {
    play(
        0,
        "C: Cclient.test|4xx192.0.2.7|
         S: c
         C: Hclient.test|
         S: c
         C: M<a@b>|SIZE=10|
         S: c
         C: R<c@d>|
         S: c
         C: LSubject|a virus|
         S: c
         C: N
         S: c
         C: BHello\\n
         S: c
         C: E
         S: a",
    );
}

#[test]
fn one_that_does_not_gets_the_decision_alone() {
    let filter = play(
        SILENT,
        "C: Hclient.test|
         C: M<a@b>|
         C: R<c@d>|
         C: LSubject| x|
         C: N
         C: Ba vir
         C: Bus\\n
         C: E
         S: y554 5.7.1 100%% no|
         C: M<>|
         C: R<c@d>|
         C: N
         C: Bclean\\n
         C: E
         S: a",
    );
    assert!(filter.told.contains(&ServerEvent::Mail(String::new())), "{:?}", filter.told);
    assert!(filter.told.contains(&ServerEvent::Header(b"Subject: x\r\n".to_vec())), "{:?}", filter.told);
}

#[test]
fn the_end_may_bring_the_last_of_the_body() {
    let filter = play(
        SILENT,
        "C: M<a@b>|
         C: N
         C: Ba vir
         C: Eus
         S: y554 5.7.1 100%% no|
         C: M<a@b>|
         C: N
         C: Ea virus
         S: y554 5.7.1 100%% no|
         C: Q",
    );
    assert_eq!(filter.told.iter().filter(|event| matches!(event, ServerEvent::LastBody(_))).count(), 2);
}

#[test]
fn a_nul_within_a_value_does_not_end_it() {
    let filter = play(SILENT, "C: M<a@b>|\nC: LSubject| x|y|\nC: LTo| z\nC: Q");
    for field in [&b"Subject: x\0y\r\n"[..], b"To: z\r\n"] {
        assert!(filter.told.contains(&ServerEvent::Header(field.to_vec())), "{:?}", filter.told);
    }
}

#[test]
fn an_aborted_message_is_told_and_the_next_is_heard() {
    let filter = play(SILENT, "C: M<a@b>|\nC: Ba virus\nC: A\nC: M<e@f>|\nC: R<c@d>|\nC: N\nC: Q");
    let told: Vec<&ServerEvent> =
        filter.told.iter().filter(|event| !matches!(event, ServerEvent::Body(_) | ServerEvent::Header(_))).collect();
    assert_eq!(told[1], &ServerEvent::Abort);
    assert_eq!(told.last(), Some(&&ServerEvent::Closed));
}

#[test]
fn what_is_not_the_protocol_breaks_the_connection() {
    for rubbish in [
        b"EHLO client.test\r\n".to_vec(),
        vec![0; 64],
        packet('?', b""),
        // More than a packet may have, announced and never sent.
        b"\x7f\xff\xff\xffM".to_vec(),
    ] {
        let mut filter = Filter::agreed(SILENT);
        filter.hear(&rubbish, usize::MAX);
        assert!(matches!(filter.told.last(), Some(ServerEvent::Broken(_))), "{rubbish:?}: {:?}", filter.told);
    }
}

#[test]
fn a_changed_value_has_the_octets_that_it_is_given() {
    let mut filter = Filter::agreed(0);
    filter.server.change_field(1, "Subject", b"[SPAM] Gr\xfc\xdfe");
    assert_eq!(filter.server.outbox(), packet('m', b"\0\0\0\x01Subject\0[SPAM] Gr\xfc\xdfe\0"));
}
