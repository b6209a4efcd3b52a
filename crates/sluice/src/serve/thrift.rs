//! Event loops give memory back that they have freed.

use std::sync::Arc;
use std::time::Duration;

use jail::{Bells, Thrift};

/// How often one looks whether it works little.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Goes on as long as the event loop does, in whose thread it is polled.
pub async fn go_on(bells: Arc<Bells>) {
    let mut thrift = Thrift::default();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if thrift.look() {
            bells.rest();
        }
    }
}
