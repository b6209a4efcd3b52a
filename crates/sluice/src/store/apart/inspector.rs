//! Inspections that the store has the gateway make: one on each socket, until it is closed.
//!
//! Of a context counts what a search index and a guard need: rules of spam, authentication, pages and conversations are nothing that
//! the store may ask for, and its passwords are the gateway's.

use std::future::poll_fn;
use std::io::{self, ErrorKind};

use flow::{Context, Inspecting, Progress, wire};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::frames::{self, ASKED_BYTES_MAX, Broken, Frames, Kind};
use crate::store::gateway::Lender;

/// Makes the inspection that a socket asks for.
///
/// # Errors
/// When the connection breaks, or makes no sense.
pub async fn serve(mut stream: UnixStream, (inspector, passwords): Lender) -> io::Result<()> {
    let mut input = Frames::new(ASKED_BYTES_MAX);
    let Some((Kind::Open, context)) = next(&mut stream, &mut input).await? else { return Err(Broken.into()) };
    let Context { flow, policy, object, rules, wants, all_findings, .. } =
        wire::read(&context).map_err(io::Error::other)?;
    let context = Context { flow, policy, object, rules, passwords, wants, all_findings, ..Context::default() };
    let mut inspecting = inspector.open(context);
    while let Some((kind, payload)) = next(&mut stream, &mut input).await? {
        match kind {
            Kind::Feed => {}
            Kind::Finish => inspecting.finish(),
            _ => return Err(Broken.into()),
        }
        let progress = work(&mut stream, &mut *inspecting, &payload).await?;
        let mut output = Vec::new();
        frames::write(Kind::Progress, &[frames::told(progress)], &mut output);
        stream.write_all(&output).await?;
    }
    Ok(())
}

/// The next frame; none at the end.
async fn next(stream: &mut UnixStream, input: &mut Frames) -> io::Result<Option<(Kind, Vec<u8>)>> {
    loop {
        if let Some(frame) = input.next()? {
            return Ok(Some(frame));
        }
        if stream.read_buf(input.input()).await? == 0 {
            return Ok(None);
        }
    }
}

/// Has content inspected, and reports until all of it is.
async fn work(stream: &mut UnixStream, inspecting: &mut dyn Inspecting, content: &[u8]) -> io::Result<Progress> {
    let mut rest = content;
    loop {
        rest = &rest[inspecting.feed(rest)..];
        let progress = tokio::select! {
            progress = poll_fn(|context| inspecting.poll(context)) => progress,
            gone = hung_up(stream) => return Err(gone),
        };
        while let Some(out) = inspecting.hear() {
            let mut output = Vec::new();
            frames::write(Kind::Out, &wire::write(&out, Vec::new()), &mut output);
            stream.write_all(&output).await?;
        }
        match progress {
            Progress::Tired => tokio::task::yield_now().await,
            Progress::Hungry if !rest.is_empty() => {}
            progress => return Ok(progress),
        }
    }
}

/// Waits until the store is gone: it says nothing before it has its answer.
async fn hung_up(stream: &UnixStream) -> io::Error {
    loop {
        let outcome = match stream.readable().await {
            Ok(()) => stream.try_read(&mut [0]),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(0) => return ErrorKind::UnexpectedEof.into(),
            Ok(_) => return Broken.into(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return error,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task;

    use flow::{Out, Sought, Unfinished, Wants};
    use inspect::Engine;
    use jail::Local;
    use scan::Database;
    use stream::{Limits, Object};

    use super::super::inspecting::Distant;
    use super::*;

    const MAIL: &str = concat!(
        "Subject: a mail\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n",
        "--b\r\nContent-Type: text/plain\r\n\r\nSome words of a text, and others.\r\n",
        "--b\r\nContent-Type: application/octet-stream\r\n\r\n",
        "X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD-ANTIVIRUS-TEST-",
        "FILE!$H+H*\r\n--b--\r\n"
    );

    fn lender() -> Lender {
        let engine = Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() };
        (Arc::new(Local::new(Arc::new(engine), None)), Arc::default())
    }

    /// The context of a mail, for an index or for a guard.
    fn context(sought: Option<Sought>) -> Context {
        let object = Object { media_type: Some("message/rfc822".into()), ..Object::default() };
        Context { object, wants: Wants { sought, ..Wants::default() }, ..Context::default() }
    }

    /// Reports about content that is fed in pieces; without how far it is cleared, which depends on those.
    async fn inspect(mut inspecting: Box<dyn Inspecting>, content: &[u8], size: usize) -> (Progress, Vec<Out>) {
        let (mut outs, mut pieces) = (Vec::new(), content.chunks(size));
        let (mut rest, mut is_over): (&[u8], bool) = (&[], false);
        loop {
            if rest.is_empty() && !is_over {
                rest = pieces.next().unwrap_or_default();
                is_over = rest.is_empty();
                if is_over {
                    inspecting.finish();
                }
            }
            rest = &rest[inspecting.feed(rest)..];
            let progress = poll_fn(|context| inspecting.poll(context)).await;
            let heard = std::iter::from_fn(|| inspecting.hear());
            outs.extend(heard.filter(|out| !matches!(out, Out::Cleared(_))));
            if let Progress::Done | Progress::Lost(_) = progress {
                return (progress, outs);
            }
        }
    }

    fn text(outs: &[Out]) -> String {
        let terms = outs.iter().filter_map(|out| if let Out::Terms(terms) = out { Some(&**terms) } else { None });
        let mut all: Vec<&str> = terms.flat_map(str::lines).collect();
        all.sort_unstable();
        all.dedup();
        all.join(" ")
    }

    #[tokio::test]
    async fn an_inspection_in_another_process_reports_the_same_wherever_content_is_cut() {
        let long = format!("{MAIL}{}", "x y z\r\n".repeat(40_000));
        for (content, size) in [(MAIL, 1), (MAIL, 7), (MAIL, 4_096), (&*long, 100_000), (&*long, 1 << 20)] {
            for sought in [Some(Sought::Terms), None] {
                let here = inspect(lender().0.open(context(sought.clone())), content.as_bytes(), size).await;
                let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
                theirs.set_nonblocking(true).unwrap();
                let serving = serve(UnixStream::from_std(theirs).unwrap(), lender());
                let distant = Distant::new(ours, &context(sought.clone()));
                let (served, there) = tokio::join!(serving, inspect(Box::new(distant), content.as_bytes(), size));
                served.unwrap();
                assert_eq!(there.0, Progress::Done);
                assert_eq!(there.1.last(), here.1.last(), "in pieces of {size}");
                assert_eq!(text(&there.1), text(&here.1), "in pieces of {size}");
                match (sought, there.1.last()) {
                    (Some(_), _) => assert!(text(&there.1).contains("words")),
                    (None, Some(Out::Verdict(verdict))) => assert_eq!(verdict.findings.len(), 1),
                    (None, last) => panic!("{last:?}"),
                }
            }
        }
    }

    #[tokio::test]
    async fn an_inspection_is_lost_with_the_process_that_makes_it() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut inspecting = Distant::new(ours, &context(None));
        assert_eq!(inspecting.feed(b"Subject: x\r\n"), 12);
        let waker = task::Waker::noop();
        assert!(inspecting.poll(&mut task::Context::from_waker(waker)).is_pending());
        drop(theirs);
        let progress = poll_fn(|context| inspecting.poll(context)).await;
        assert_eq!(progress, Progress::Lost(Unfinished::Gone));
    }

    #[tokio::test]
    async fn an_inspection_ends_with_the_process_that_has_asked() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let mut inspecting = Distant::new(ours, &context(None));
        let serving = tokio::spawn(serve(UnixStream::from_std(theirs).unwrap(), lender()));
        inspecting.feed(&[b'a'; PIECE]);
        let _ = poll_fn(|context| inspecting.poll(context)).await;
        drop(inspecting);
        let _ = serving.await.unwrap();
    }

    const PIECE: usize = 1 << 10;
}
