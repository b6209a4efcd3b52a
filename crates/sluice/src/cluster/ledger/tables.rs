//! The tables of a ledger, and what its sessions are set to.
//!
//! Names, ids and owners are bytes: they may hold any. A later form of the tables is refused, so that a node that was not upgraded yet
//! does not write into them.

use tokio_postgres::Client;

use crate::cluster::postgres::describe;

/// The form of the tables.
const FORM: i32 = 1;

/// A node that is paused in a transaction keeps others waiting for so long; statements of one that is gone end by themselves. Plans do
/// not depend on values: one is made for each statement.
const SETTINGS: &str = "
    set synchronous_commit = off;
    set idle_in_transaction_session_timeout = '10s';
    set statement_timeout = '600s';
    set plan_cache_mode = force_generic_plan;
    set jit = off;
    set client_min_messages = error;";

/// Nodes that start at the same time make them one after the other, and those of the store, too: the schema is one.
const TABLES: &str = "
    begin;
    select pg_advisory_xact_lock(7599087);
    create schema if not exists sluice;
    create table if not exists sluice.learner (
        id bigint generated always as identity primary key, name bytea not null unique,
        spam bigint not null default 0, ham bigint not null default 0, expired bigint not null default 0);
    create table if not exists sluice.word (
        owner bigint, key bigint, spam bigint not null, ham bigint not null, at bigint not null,
        primary key (owner, key)) with (fillfactor = 80);
    create table if not exists sluice.lesson (
        owner bigint, id bytea, spam bool not null, at bigint not null, primary key (owner, id));
    create table if not exists sluice.mark (
        id bytea primary key, first bigint not null, last bigint not null, count bigint not null) with (fillfactor = 80);
    create table if not exists sluice.sender (
        owner bigint, name bytea, count bigint not null, total float8 not null, last bigint not null, added bytea,
        primary key (owner, name)) with (fillfactor = 80);
    create table if not exists sluice.report (
        id bigint generated always as identity primary key, owner bigint not null, count bigint not null, last bigint not null);
    create table if not exists sluice.shingle (owner bigint, value bigint, report bigint, primary key (owner, value, report));
    create index if not exists shingle_report on sluice.shingle (report);
    create table if not exists sluice.part (
        owner bigint, digest bytea, count bigint not null, last bigint not null, primary key (owner, digest));
    create table if not exists sluice.learned (form int primary key);
    insert into sluice.learned values (1) on conflict do nothing;
    commit;";

/// Whether this user may change all tables.
pub async fn check(client: &Client) -> Result<(), tokio_postgres::Error> {
    const CHANGES: [&str; 8] = [
        "with gone as (delete from sluice.learner where false) update sluice.learner set spam = 0 where false",
        "with gone as (delete from sluice.word where false) update sluice.word set at = 0 where false",
        "with gone as (delete from sluice.lesson where false) update sluice.lesson set at = 0 where false",
        "with gone as (delete from sluice.mark where false) update sluice.mark set last = 0 where false",
        "with gone as (delete from sluice.sender where false) update sluice.sender set last = 0 where false",
        "with gone as (delete from sluice.report where false) update sluice.report set last = 0 where false",
        "with gone as (delete from sluice.part where false) update sluice.part set last = 0 where false",
        "insert into sluice.shingle select 1, 1, 1 where false",
    ];
    for change in CHANGES {
        client.batch_execute(change).await?;
    }
    Ok(())
}

/// Makes a connection ready, and the tables if they are not there.
pub async fn prepare(client: &Client) -> Result<(), String> {
    let failed = |error: tokio_postgres::Error| describe(&error);
    client.batch_execute(SETTINGS).await.map_err(failed)?;
    let has_tables = client.query_one("select to_regclass('sluice.learned') is not null", &[]).await.map_err(failed)?;
    if !has_tables.get::<_, bool>(0) {
        client.batch_execute(TABLES).await.map_err(failed)?;
    }
    let form = client.query_one("select max(form) from sluice.learned", &[]).await.map_err(failed)?;
    match form.get::<_, Option<i32>>(0) {
        Some(FORM) => Ok(()),
        _ => Err("the tables of what was learned are those of a later version".into()),
    }
}
