//! Stand-in for builds without the feature `mysql`: a table with MySQL is refused.

use std::path::Path;

use crate::pattern::Key;
use crate::row::{Error, Row};
use crate::server::Server;
use crate::settings::Settings;

/// Never exists.
pub enum Plan {}

/// Never exists.
pub enum Connection {}

impl Plan {
    pub fn new(_: &Settings, _: &Path) -> Result<Plan, String> {
        Err("this program was built without MySQL (the feature mysql)".into())
    }

    pub fn servers(&self) -> usize {
        match *self {}
    }
}

impl Connection {
    pub async fn open(plan: &Plan, _: Server<'_>) -> Result<Connection, Error> {
        match *plan {}
    }

    pub async fn rows(&mut self, plan: &Plan, _: &Key) -> Result<Vec<Row>, Error> {
        match *plan {}
    }
}
