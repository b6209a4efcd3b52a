//! Mails that are built to cost much: they are read in bounded time, and what is left out is told.

use std::time::{Duration, Instant};

use rules::spam::message::{Message, MessageLimits, Reading};

/// What no mail here takes by far, on a machine that does other things, too.
const LONG: Duration = Duration::from_secs(5);

fn read(mail: &[u8]) -> Message {
    let tlds = ["com", "org"].iter().map(|name| name.as_bytes().into()).collect();
    let reading = Reading { tlds, ..Reading::default() };
    let begun = Instant::now();
    let message = Message::read(mail, &reading, &MessageLimits::default());
    let taken = begun.elapsed();
    eprintln!("{:?} for {} bytes, cut: {}", taken, mail.len(), message.is_cut());
    assert!(taken < LONG, "{taken:?}");
    message
}

fn html(page: &str) -> Message {
    read(format!("Content-Type: text/html\n\n{page}").as_bytes())
}

#[test]
fn many_fields_and_long_ones_are_cut() {
    let many = "X-A: b\n".repeat(20_000) + "\nbody";
    let message = read(many.as_bytes());
    assert!(message.is_cut() && message.fields().len() == 10_000);
    let long = format!("To: {}\n\nbody", "a@b.com, ".repeat(100_000));
    let message = read(long.as_bytes());
    assert!(message.structure().header_cut);
    let words = format!("Subject:{}\n\nbody", " =?utf-8?q?a?=\n".repeat(60_000));
    read(words.as_bytes());
}

#[test]
fn many_addresses_are_cut() {
    let text: String = (0..100_000).map(|at| format!("http://host{at}.com/ x{at}@y.org\n")).collect();
    // As much of a part is looked at.
    let message = read(format!("\n{text}").as_bytes());
    assert!(message.uris().len() > 1000);
    let links: String = (0..100_000).map(|at| format!("<a href=http://host{at}.com/>{at}</a>")).collect();
    let message = html(&links);
    assert!(message.is_cut() && message.uris().len() <= 10_000);
    html(&"<a href=http://a.com/>x</a>".repeat(50_000));
    let redirects = "http://a.com/?".repeat(4000);
    html(&format!("<a href='{redirects}'>x</a>"));
}

#[test]
fn long_lines_and_deep_pages_cost_little() {
    read(format!("\n{}", "x".repeat(1 << 20)).as_bytes());
    read(format!("\n{}", "a@".repeat(1 << 19)).as_bytes());
    read(format!("\n{}", "a.".repeat(1 << 19)).as_bytes());
    let deep = html(&"<div><font>".repeat(100_000));
    assert!(deep.is_cut());
    html(&("<div>".repeat(50_000) + &"</span></p>".repeat(50_000)));
    html(&("<td>".repeat(100_000) + &"<tr>".repeat(100_000)));
    html(&"<![INCLUDE[<b>".repeat(50_000));
    html(&format!("<a {}>", "b=c ".repeat(200_000)));
    html(&"<a href=\"".repeat(100_000));
    html(&"<!--".repeat(200_000));
    html(&"&#".repeat(200_000));
    html(&"<title>".repeat(100_000));
    html(&"</".repeat(300_000));
    html(&"<a href=x>".repeat(20_000));
}

#[test]
fn many_parts_are_cut() {
    let parts = "--b\n\nx\n".repeat(5000);
    let message = read(format!("Content-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n").as_bytes());
    assert!(message.is_cut() && message.parts().len() <= 1001);
    let nested: String =
        (0..2000).map(|at| format!("--b{at}\nContent-Type: multipart/mixed; boundary=b{}\n\n", at + 1)).collect();
    let message = read(format!("Content-Type: multipart/mixed; boundary=b0\n\n{nested}").as_bytes());
    assert!(message.parts().iter().all(|part| part.depth <= 21));
    let messages = "Content-Type: message/rfc822\n\n".repeat(5000);
    read(messages.as_bytes());
}
