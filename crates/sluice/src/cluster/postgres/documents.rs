//! Documents in PostgreSQL: a row each, written only over the version that its writer has seen, with a notification to all nodes.

use cluster::{Answer, Digest, Version};

use super::{Session, signed, unsigned};

/// The table of documents, and the node that makes the missing ones.
pub const TABLE: &str = "
    create table if not exists sluice.document (
        name text primary key, version bigint not null, body bytea not null, digest bytea not null,
        changed timestamptz not null default now(), node text not null);
    alter table sluice.document alter body set storage external;
    create table if not exists sluice.held (
        node text, name text, version bigint not null, primary key (node, name));
    alter table sluice.node add column if not exists shares bool not null default false;";

const LIST: &str = "
    select name, version, digest, length(body)::bigint as bytes, extract(epoch from now() - changed)::bigint as seconds, node
    from sluice.document order by name";

const PUT: &str = "
    with put as (insert into sluice.document as d (name, version, body, digest, node) values ($1, $2::bigint + 1, $3, $4, $5)
        on conflict (name) do update set version = excluded.version, body = excluded.body, digest = excluded.digest,
        node = excluded.node, changed = now() where d.version = $2 returning name)
    select pg_notify('sluice_document', name) from put";

const HOLD: &str = "
    insert into sluice.held (node, name, version) values ($1, $2, $3)
    on conflict (node, name) do update set version = excluded.version";

const BEHIND: &str = "
    select n.name as node, d.name as document from sluice.document d cross join sluice.node n
    left join sluice.held h on h.node = n.name and h.name = d.name
    where n.seen > now() - interval '30 seconds' and d.changed < now() - interval '15 seconds'
    and (h.version is not null or d.name in ('accounts', 'dkim')) and h.version is distinct from d.version order by 1, 2";

/// A document without its text.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// Bytes of its sealed text.
    pub bytes: u64,
    /// Seconds since its last change.
    pub seconds: u64,
    /// The node that changed it.
    pub node: String,
}

impl Session {
    /// All documents.
    pub async fn documents(&self) -> Result<Vec<Listed>, String> {
        let rows = self.rows(LIST, &[]).await?;
        let listed = rows.iter().map(|row| {
            let digest: &[u8] = row.get("digest");
            let digest = Digest::try_from(digest).map_err(|_| "a digest has another length".to_owned())?;
            Ok(Listed {
                name: row.get("name"),
                version: Version { number: unsigned(row.get("version")), digest },
                bytes: unsigned(row.get("bytes")),
                seconds: unsigned(row.get("seconds")),
                node: row.get("node"),
            })
        });
        listed.collect()
    }

    /// The version and the sealed text of a document.
    pub async fn document(&self, name: &str) -> Result<Option<(u64, Vec<u8>)>, String> {
        let rows = self.rows("select version, body from sluice.document where name = $1", &[&name]).await?;
        Ok(rows.first().map(|row| (unsigned(row.get(0)), row.get(1))))
    }

    /// Puts the version after `after`, if that is the last; 0 is before the first.
    pub async fn put_document(&self, name: &str, after: u64, (body, digest): (&[u8], &Digest), node: &str) -> Answer {
        self.change(PUT, &[&name, &signed(after), &body, &digest.as_slice(), &node]).await
    }

    /// Notes that a node has a version of a document.
    pub async fn hold_document(&self, node: &str, name: &str, version: u64) -> Result<(), String> {
        self.run(HOLD, &[&node, &name, &signed(version)]).await
    }

    /// Nodes and the documents of which they do not have the last version, a while after its change. A node may be set up without
    /// further files.
    pub async fn behind(&self) -> Result<Vec<(String, String)>, String> {
        Ok(self.rows(BEHIND, &[]).await?.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// The node whose files become the documents that are missing.
    pub async fn sharer(&self) -> Result<Option<String>, String> {
        let rows = self.rows("select name from sluice.node where shares", &[]).await?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    /// Makes a node the one whose files become the documents that are missing.
    pub async fn share(&self, node: &str) -> Result<(), String> {
        self.run("update sluice.node set shares = (name = $1)", &[&node]).await?;
        self.run("select pg_notify('sluice_document', '')", &[]).await
    }

    /// Has changes of documents ring the bell of this session.
    pub async fn listen(&self) -> Result<(), String> {
        self.run("listen sluice_document", &[]).await
    }
}
