//! The turns of a node whose store machines share: it hands clients over until the volume is its own, and again afterwards.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use store::{Options, Volume};
use tokio::runtime::Runtime as Loops;
use tokio::sync::{mpsc, watch};

use super::{Handed, Listening, Parts, Server};
use crate::cluster::{Leave, Member, Owned, Tenure, standby};
use crate::output::Failure;
use crate::store::entrusted::Owner;
use crate::store::maildrop::{self, Intake};
use crate::store::{control, folder};

/// The pause of a node that cannot serve the store which it has.
const TROUBLE_PAUSE: Duration = Duration::from_secs(5);

impl Server {
    /// Hands clients over to the node that has the store, until that is this one; and again when it is not any more.
    pub(super) fn take_turns(
        &self,
        runtime: &Loops,
        member: &Arc<Member>,
        parts: &Parts,
        listening: &Listening,
        waiting: &mut mpsc::Receiver<Handed>,
    ) -> Result<(), Failure> {
        while !*self.end.borrow() {
            let turn = async {
                let (reception, most) = (listening.reception.as_deref(), self.settings.sessions_max);
                let control = control::of_follower(&self.settings.volume());
                let control = control.as_ref().map(|(socket, _)| socket);
                let folder = self.settings.maildrop.as_deref();
                tokio::select! {
                    () = maildrop::watch(folder.unwrap_or(Path::new(""))), if folder.is_some() => None,
                    () = self.entrust(member) => None,
                    owned = member.wait(self.end.subscribe()) => owned,
                    () = standby::serve(member, &listening.doors, (reception, control), waiting, most) => None,
                }
            };
            let Some(owned) = runtime.block_on(turn) else { return Ok(()) };
            let epoch = owned.tenure.epoch;
            let outcome = self.take_turn(runtime, member, owned, parts, listening, waiting);
            runtime.block_on(member.release(epoch));
            if let Err(error) = outcome {
                tracing::error!(%error, "the store cannot be served");
                std::thread::sleep(TROUBLE_PAUSE);
            }
        }
        Ok(())
    }

    /// Hands mail of commands over to the node that has the store, until it is dropped.
    async fn entrust(&self, member: &Arc<Member>) {
        match self.maildrop() {
            Some(maildrop) => {
                let most = self.settings.message_bytes_max;
                maildrop.serve(Intake::Owner(Owner(member.clone()), most)).await;
            }
            None => std::future::pending().await,
        }
    }

    fn take_turn(
        &self,
        runtime: &Loops,
        member: &Arc<Member>,
        owned: Owned,
        parts: &Parts,
        listening: &Listening,
        waiting: &mut mpsc::Receiver<Handed>,
    ) -> Result<(), Failure> {
        let Owned { file, reader, notes, name, is_new, tenure } = owned;
        let file = if is_new { Volume::format(file, &folder::format(self.settings.new_size())?)? } else { file };
        let volume = Volume::open(file, Options::default())?;
        let folds = member.clone();
        let folding = runtime.spawn(async move { folds.fold(tenure.epoch, name, reader, notes).await });
        let outcome = self.own(runtime, volume, parts, listening, waiting, Some((member, tenure)));
        folding.abort();
        outcome
    }
}

/// Renews the lease on a thread of its own, which no session holds up. An owner that is none any more ends at once, with its process: the
/// supervisor starts another, which waits for its turn.
pub(super) fn keep(
    member: Arc<Member>,
    tenure: Tenure,
    end: watch::Sender<bool>,
    holding: watch::Sender<bool>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let work = move || {
        let leave = runtime.block_on(async {
            tokio::select! {
                leave = member.keep(tenure, &holding) => leave,
                () = end.closed() => Leave::Asked,
            }
        });
        if leave == Leave::Lost {
            tracing::error!(epoch = tenure.epoch, "another node has the store: this process ends");
            std::process::exit(1);
        }
        end.send_replace(true);
    };
    std::thread::Builder::new().name("cluster".into()).spawn(work).map(drop)
}
