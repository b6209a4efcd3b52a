//! Questions of a check, asked of resolvers side by side ([`lookup`](crate::resolver::lookup)) until time is up.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use ::auth::Check;
use flow::{Answer, Ask};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::resolver::lookup::look_up;

/// Questions under way.
const LOOKUPS_MAX: usize = 32;

/// Answers all that a check asks, as far as it can be until time is up.
///
/// # Errors
/// When the operating system has no event loop for us.
pub fn answer(check: &mut Check, resolvers: &[SocketAddr], wait: Duration) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let deadline = Instant::now() + wait;
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < LOOKUPS_MAX {
                let Some(Ask { id, question }) = check.ask() else { break };
                let resolvers = resolvers.to_vec();
                under_way.spawn(async move {
                    let found = look_up(&question, &resolvers, wait).await;
                    Answer { id, outcome: found.outcome, security: found.security }
                });
            }
            match timeout_at(deadline, under_way.join_next()).await {
                Ok(Some(Ok(answer))) => check.answer(answer),
                Ok(Some(Err(_))) => {}
                Ok(None) => break,
                Err(_) => {
                    check.give_up();
                    break;
                }
            }
        }
        Ok(())
    })
}
