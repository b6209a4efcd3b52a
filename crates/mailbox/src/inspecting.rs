//! A mail of the store, or a file that was fetched, through an inspection, which the host lends.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::time::Duration;

use flow::{Action, Context, Flow, Inspector, Out, Policy, Progress, Protocol, Unfinished, Verdict};
use stream::Object;
use tokio::time::timeout;

use crate::content::Body;

/// Bytes of a mail that are read at a time.
const PIECE_BYTES: usize = 32 << 10;

/// How long the inspection of a mail that goes out, or of a file, may take.
const VERDICT_WAIT: Duration = Duration::from_secs(300);

/// Why a mail was not read to its end.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It cannot be read, or is gone.
    Store,
    /// The inspection has not ended.
    Inspection(#[expect(dead_code, reason = "shown where it is logged")] Unfinished),
}

/// Content that is inspected.
trait Source: Send {
    /// Reads at an offset; 0 is the end.
    fn read_at(&mut self, at: u64, piece: &mut [u8]) -> Result<usize, Unread>;
}

impl Source for Body<'_> {
    fn read_at(&mut self, at: u64, piece: &mut [u8]) -> Result<usize, Unread> {
        self.read_in_session(at, piece).map_err(|_| Unread::Store)
    }
}

impl Source for &[u8] {
    fn read_at(&mut self, at: u64, piece: &mut [u8]) -> Result<usize, Unread> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let count = rest.len().min(piece.len());
        piece[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// Has an inspection read a mail from `at` on, until `hear` has heard enough. A break is what was not read whole.
pub(crate) async fn read(
    inspector: &dyn Inspector,
    context: Context,
    body: &mut Body<'_>,
    at: u64,
    hear: &mut (impl FnMut(Out) -> ControlFlow<()> + Send),
) -> Result<ControlFlow<()>, Unread> {
    let object = Object { media_type: Some("message/rfc822".into()), ..Object::default() };
    read_source(inspector, Context { object, ..context }, body, at, hear).await
}

async fn read_source(
    inspector: &dyn Inspector,
    context: Context,
    source: &mut impl Source,
    mut at: u64,
    hear: &mut (impl FnMut(Out) -> ControlFlow<()> + Send),
) -> Result<ControlFlow<()>, Unread> {
    let mut inspecting = inspector.open(context);
    let (mut piece, mut is_over, mut is_whole) = (vec![0; PIECE_BYTES], false, true);
    let (mut from, mut to) = (0, 0);
    loop {
        if from == to && !is_over {
            (from, to) = (0, source.read_at(at, &mut piece)?);
            at += to as u64;
            if to == 0 {
                is_over = true;
                inspecting.finish();
            }
        }
        from += inspecting.feed(&piece[from..to]);
        let progress = poll_fn(|context| inspecting.poll(context)).await;
        while let Some(out) = inspecting.hear() {
            if hear(out).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        match progress {
            // It has ended before its content; the verdict follows upon the end.
            Progress::Stopped if is_over => return Ok(ControlFlow::Break(())),
            Progress::Stopped => {
                (is_over, is_whole) = (true, false);
                (from, to) = (0, 0);
                inspecting.finish();
            }
            Progress::Done if is_whole => return Ok(ControlFlow::Continue(())),
            Progress::Done => return Ok(ControlFlow::Break(())),
            Progress::Lost(unfinished) => return Err(Unread::Inspection(unfinished)),
            Progress::Tired => tokio::task::yield_now().await,
            Progress::Hungry | Progress::Waiting => {}
        }
    }
}

/// Inspects a mail from `at` on, under the policy that doors have by default: the name of what it may not hold, if there is such a thing.
pub(crate) async fn forbidden(
    inspector: &dyn Inspector,
    body: &mut Body<'_>,
    at: u64,
) -> Result<Option<String>, Unread> {
    let object = Object { media_type: Some("message/rfc822".into()), ..Object::default() };
    judged(inspector, (Protocol::Smtp, object), body, at).await
}

/// Inspects a file that was fetched, in the same way.
pub(crate) async fn forbidden_in(inspector: &dyn Inspector, mut file: &[u8]) -> Result<Option<String>, Unread> {
    judged(inspector, (Protocol::Http, Object::default()), &mut file, 0).await
}

async fn judged(
    inspector: &dyn Inspector,
    (protocol, object): (Protocol, Object),
    source: &mut impl Source,
    at: u64,
) -> Result<Option<String>, Unread> {
    let policy = Policy::default();
    let flow = Flow { protocol, ..Flow::default() };
    let context = Context { flow, object, policy: policy.clone(), ..Context::default() };
    let mut verdict: Option<Verdict> = None;
    let mut hear = |out| {
        if let Out::Verdict(given) = out {
            verdict = Some(given);
        }
        ControlFlow::Continue(())
    };
    let reading = read_source(inspector, context, source, at, &mut hear);
    let _ = timeout(VERDICT_WAIT, reading).await.unwrap_or(Err(Unread::Inspection(Unfinished::Late)))?;
    let verdict = verdict.ok_or(Unread::Inspection(Unfinished::Gone))?;
    let is_refused = matches!(verdict.action, Action::Blank | Action::Quarantine | Action::Reject);
    let name = || {
        verdict.reason(&policy).map_or_else(|| "what is not allowed".into(), |spotted| spotted.finding.name.to_string())
    };
    Ok(is_refused.then(name))
}
