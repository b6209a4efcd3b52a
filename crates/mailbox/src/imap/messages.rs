//! Commands on the messages of the selected mailbox.

use std::io;

use keep::find::{Key, Message};
use keep::sort::{self, By};
use keep::thread::{self, Forest, Piece, Pieces, Post};
use keep::view::View;
use proto::imap::acl::Rights;
use proto::imap::operation::{Change, Operation, Store};
use proto::imap::response;
use proto::imap::search::{self, Criterion, Threading};
use proto::imap::syntax::Set;
use store::{Error, Flags, Refused, Uids};

use super::find::{finder, in_view};
use super::rights::not_permitted;
use super::{Done, NO_QRESYNC, REPLY_BYTES, Refusal, Session, User, done, no, render};
use crate::acl;
use crate::labour::labour;
use crate::learner;
use crate::site::seconds;
use crate::turns::Turn;
use crate::wire::Stream;
use crate::writer::Handle;

/// Messages of one change that needs a turn.
const MANY: usize = 100;

const NOT_SELECTED: Refusal = Refusal::Bad("Select a mailbox first");

impl<S: Stream> Session<'_, S> {
    pub(super) async fn on_messages(&mut self, user: &User, operation: Operation) -> Result<Done, Refusal> {
        let view = self.view()?;
        let stays = matches!(operation, Operation::Close | Operation::Unselect);
        if !stays {
            self.permit(Rights::READ)?;
        }
        let changes =
            matches!(operation, Operation::Expunge(_) | Operation::Store(_) | Operation::Copy { moves: true, .. });
        if changes && view.read_only {
            return Err(no("[READ-ONLY] The mailbox was only examined"));
        }
        match operation {
            Operation::Close => {
                if !view.read_only && self.rights_here().has(Rights::EXPUNGE) {
                    self.expunge(None).await?;
                }
                self.leave().await;
                done("Closed")
            }
            Operation::Unselect => {
                self.leave().await;
                done("Unselected")
            }
            Operation::Expunge(set) => {
                self.permit(Rights::EXPUNGE)?;
                let uids = set.map(|set| self.uids_of(&set, true)).transpose()?;
                let modseq = self.expunge(uids).await?;
                Ok(self.gone(modseq, "Expunged"))
            }
            Operation::Search { search, .. } if search.has_charset && self.enabled.utf8 => {
                Err(Refusal::Bad("UTF-8 is enabled: no charset"))
            }
            Operation::Search { by_uid, mut search } => {
                if self.enabled.rev2 {
                    // SEARCH is answered by ESEARCH alone (RFC 9051, section 6.4.4).
                    search.returns.get_or_insert(search::Returns { all: true, ..search::Returns::default() });
                }
                self.search(by_uid, &search).await
            }
            Operation::Sort { by_uid, criteria, search } => self.sort(by_uid, &criteria, &search).await,
            Operation::Thread { by_uid, threading, search } => self.thread(by_uid, threading, &search).await,
            Operation::Fetch { vanished: true, .. } if !self.enabled.qresync => Err(NO_QRESYNC),
            Operation::Fetch { by_uid, set, items, changed_since, vanished } => {
                let asks_for_modseq = items.contains(&proto::imap::items::FetchItem::Modseq);
                self.enable_condstore(changed_since.is_some() || asks_for_modseq);
                let uids = self.uids_of(&set, by_uid)?;
                if let (Some(since), true, Some(view)) = (changed_since, vanished, &self.selected) {
                    let last = view.mailbox.uid_next.saturating_sub(1);
                    let mut told = Vec::new();
                    render::vanished(view, since, &set.runs(last).collect(), &mut told);
                    self.server.bytes(&told);
                }
                self.fetch(by_uid, uids, &items, changed_since).await
            }
            Operation::Store(store) => self.store(store).await,
            Operation::Copy { by_uid, set, mailbox, moves } => {
                let uids = self.uids_of(&set, by_uid)?;
                self.copy(user, uids, &mailbox, moves).await
            }
            _ => Err(Refusal::Bad("Not now")),
        }
    }

    pub(super) fn view(&self) -> Result<&View, Refusal> {
        self.selected.as_ref().ok_or(NOT_SELECTED)
    }

    fn uids_of(&self, set: &Set, by_uid: bool) -> Result<Vec<u32>, Refusal> {
        render::uids_of(self.view()?, set, by_uid).ok_or(Refusal::Bad("No such message"))
    }

    /// A turn for a change of so many messages; few need none.
    async fn turn(&self, count: usize) -> Option<Turn<u32>> {
        if count < MANY {
            return None;
        }
        let number = self.view().ok()?.number;
        let account = self.site.store.state().mailbox(number)?.account;
        Some(self.site.changes.turn(account).await)
    }

    /// Removes what is marked, among `uids` or all; the transaction that did.
    async fn expunge(&mut self, uids: Option<Vec<u32>>) -> Result<Option<u64>, Refusal> {
        let number = self.view()?.number;
        let _turn = self.turn(uids.as_ref().map_or(MANY, Vec::len)).await;
        let gone = self.site.store.transact(move |transaction| {
            let mailbox = transaction.state().mailbox(number).ok_or(Refused::NoSuchMailbox)?;
            let is_meant = |uid: &u32| uids.as_ref().is_none_or(|uids| uids.binary_search(uid).is_ok());
            let marked = mailbox.from(0).filter(|(uid, entry)| entry.flags.has(Flags::DELETED) && is_meant(uid));
            let marked: Uids = marked.map(|(uid, _)| uid).collect();
            match marked.is_empty() {
                true => Ok(Vec::new()),
                false => transaction.expunge(number, &marked),
            }
        });
        let gone = gone.await?;
        let state = self.site.store.state();
        Ok(state.mailbox(number).filter(|_| !gone.is_empty()).map(|mailbox| mailbox.highest_modseq))
    }

    /// The end of a command that messages have gone by (RFC 7162, section 3.2.7).
    fn gone(&self, modseq: Option<u64>, word: &str) -> Done {
        let code = modseq.filter(|_| self.enabled.condstore).map(|modseq| format!("[HIGHESTMODSEQ {modseq}] "));
        Done { text: code.unwrap_or_default() + word, untold: Vec::new() }
    }

    async fn store(&mut self, store: Store) -> Result<Done, Refusal> {
        self.enable_condstore(store.unchanged_since.is_some());
        let uids = self.uids_of(&store.set, store.by_uid)?;
        let number = self.view()?.number;
        let set: Uids = uids.iter().copied().collect();
        let named = uids.clone();
        let Store { mut flags, change, silent, unchanged_since, by_uid, .. } = store;
        let rights = self.rights_here();
        if !rights.has_any(Rights::SEEN.with(Rights::WRITE).with(Rights::MARK)) {
            return Err(not_permitted());
        }
        // What may not be changed stays as it is (RFC 4314, section 4).
        flags.system &= acl::flags(rights);
        if !rights.has(Rights::WRITE) {
            flags.keywords.clear();
        }
        let change = match change {
            Change::Add => store::Change::Add,
            Change::Remove => store::Change::Remove,
            Change::Replace => store::Change::Replace,
        };
        let _turn = self.turn(uids.len()).await;
        let (_, late) = self
            .site
            .store
            .transact(move |transaction| {
                let keywords: Vec<&str> = flags.keywords.iter().map(String::as_str).collect();
                let since = unchanged_since.unwrap_or(u64::MAX);
                if change != store::Change::Replace || rights == Rights::ALL {
                    return transaction.store(number, &set, change, (flags.system, &keywords), since);
                }
                let (_, late) = acl::withdraw(transaction, number, &set, rights, since)?;
                let set: Uids = named.iter().copied().filter(|uid| late.binary_search(uid).is_err()).collect();
                let added = store::Change::Add;
                Ok((transaction.store(number, &set, added, (flags.system, &keywords), u64::MAX)?.0, late))
            })
            .await?;
        let mut text = String::from("Stored");
        if !late.is_empty() {
            let view = self.view()?;
            let named = late.iter().filter_map(|&uid| if by_uid { Some(uid) } else { view.number_of(uid) });
            let mut list = Vec::new();
            response::set(named, &mut list);
            text = format!("[MODIFIED {}] Some were changed meanwhile", String::from_utf8_lossy(&list));
        }
        let untold = match silent {
            true => uids.into_iter().filter(|uid| late.binary_search(uid).is_err()).collect(),
            false => Vec::new(),
        };
        Ok(Done { text, untold })
    }

    async fn copy(&mut self, user: &User, uids: Vec<u32>, name: &[u8], moves: bool) -> Result<Done, Refusal> {
        let place = self.place(user, name, Rights::INSERT).map_err(|refusal| try_create(refusal, name))?;
        if moves {
            self.permit(Rights::MARK.with(Rights::EXPUNGE))?;
        }
        let (to, validity, from) = (place.number, place.mailbox.uid_validity, self.view()?.number);
        let rights = place.rights;
        if uids.is_empty() {
            return done("Nothing to copy");
        }
        let _turn = self.turn(uids.len()).await;
        let set: Uids = uids.into_iter().collect();
        let pairs = self
            .site
            .store
            .transact(move |transaction| {
                let pairs = match moves {
                    true => transaction.move_to(from, to, &set, seconds())?,
                    false => transaction.copy(from, to, &set, seconds())?,
                };
                if pairs.is_empty() {
                    return Err(Error::Refused(Refused::NoSuchMessage));
                }
                if rights != Rights::ALL {
                    let copies: Uids = pairs.iter().map(|pair| pair.1).collect();
                    acl::withdraw(transaction, to, &copies, Rights::ALL.without(rights), u64::MAX)?;
                }
                Ok(pairs)
            })
            .await?;
        if let Some(learner) = &self.site.learner {
            let (state, copies) = (self.site.store.state(), pairs.iter().map(|pair| pair.1));
            learner::tell(&**learner, &state, &user.account.name, [from, to], copies);
        }
        let mut code = format!("[COPYUID {validity} ").into_bytes();
        response::set(pairs.iter().map(|pair| pair.0), &mut code);
        code.push(b' ');
        response::set(pairs.iter().map(|pair| pair.1), &mut code);
        code.push(b']');
        let code = String::from_utf8_lossy(&code).into_owned();
        if moves {
            // Before the numbers change (RFC 6851, section 4.3).
            self.server.line(format!("* OK {code} Moved").as_bytes());
            let state = self.site.store.state();
            let modseq = state.mailbox(from).map(|mailbox| mailbox.highest_modseq);
            return Ok(self.gone(modseq, "Moved"));
        }
        Ok(Done { text: format!("{code} Copied"), untold: Vec::new() })
    }

    /// Reports MODSEQ from here on; when first enabled, with HIGHESTMODSEQ (RFC 7162, section 3.1).
    fn enable_condstore(&mut self, wanted: bool) {
        if !wanted || std::mem::replace(&mut self.enabled.condstore, true) {
            return;
        }
        if let Some(view) = &self.selected {
            self.server.line(format!("* OK [HIGHESTMODSEQ {}] Highest", view.mailbox.highest_modseq.max(1)).as_bytes());
        }
    }

    async fn sort(&mut self, by_uid: bool, criteria: &[Criterion], search: &search::Search) -> Result<Done, Refusal> {
        self.begin_search(search)?;
        let criteria: Vec<sort::Criterion> = criteria.iter().map(criterion).collect();
        let mut lines = Vec::new();
        let key = in_view(&search.key, self.view()?);
        self.find(&key, |message| lines.push(sort::Line::new(message, &criteria))).await?;
        let (numbers, uids) = tokio::task::block_in_place(|| sort::in_order(lines, &criteria));
        let told = if by_uid { &uids } else { &numbers };
        let Some(returns) = search.returns else {
            self.tell_numbers("* SORT", told).await?;
            self.server.bytes(b"\r\n");
            return done("Sort completed");
        };
        self.tell_found(by_uid, told, returns, None).await?;
        self.save(&uids, returns);
        done("Sort completed")
    }

    async fn thread(&mut self, by_uid: bool, threading: Threading, search: &search::Search) -> Result<Done, Refusal> {
        known(search)?;
        let refers = threading == Threading::References;
        let (mut forest, mut posts) = (Forest::default(), Vec::new());
        let key = in_view(&search.key, self.view()?);
        let find = self.find(&key, |message| {
            let post = Post::new(message, if by_uid { message.uid() } else { message.number() }, refers);
            if refers { forest.place(post) } else { posts.push(post) }
        });
        find.await?;
        let threads = || if refers { forest.threads() } else { thread::by_subject(posts) };
        let threads = tokio::task::block_in_place(threads);
        self.server.bytes(b"* THREAD");
        self.tell_threads(threads).await?;
        self.server.bytes(b"\r\n");
        done("Thread completed")
    }

    /// Hands out the messages that fit, in turns with other accounts.
    async fn find(&mut self, key: &Key, mut found: impl FnMut(&Message<'_, Handle>)) -> Result<(), Refusal> {
        let account = self.user()?.number;
        let view = self.selected.as_ref().ok_or(NOT_SELECTED)?;
        let mut finder = finder(self.site, view, key);
        labour(self.site, &mut self.wire, account, |slice| finder.go_on(|| slice.is_over(), &mut found)).await?;
        Ok(())
    }

    /// Sends threads: `(1 (2)(3 4))`.
    async fn tell_threads(&mut self, threads: Pieces) -> io::Result<()> {
        // The first thread, and whatever is below a message, stands behind a blank.
        let mut is_apart = true;
        for piece in threads {
            let separator = if is_apart && piece != Piece::Close { " " } else { "" };
            let text = match piece {
                Piece::Open => format!("{separator}("),
                Piece::Message(name) => format!("{separator}{name}"),
                Piece::Close => ")".into(),
            };
            is_apart = matches!(piece, Piece::Message(_));
            self.server.bytes(text.as_bytes());
            self.flush_much().await?;
        }
        Ok(())
    }

    /// Sends numbers behind a word.
    async fn tell_numbers(&mut self, word: &str, numbers: &[u32]) -> io::Result<()> {
        self.server.bytes(word.as_bytes());
        for number in numbers {
            self.server.bytes(format!(" {number}").as_bytes());
            self.flush_much().await?;
        }
        Ok(())
    }

    /// Sends bytes of a reply, a piece at a time.
    pub(super) async fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(REPLY_BYTES) {
            self.server.bytes(piece);
            self.flush_much().await?;
        }
        Ok(())
    }

    async fn search(&mut self, by_uid: bool, search: &search::Search) -> Result<Done, Refusal> {
        self.begin_search(search)?;
        let key = in_view(&search.key, self.view()?);
        let asks_for_modseq = key.asks_for_modseq();
        let (mut uids, mut numbers, mut modseqs) = (Vec::new(), Vec::new(), Vec::new());
        let find = self.find(&key, |message| {
            uids.push(message.uid());
            numbers.push(message.number());
            if asks_for_modseq {
                modseqs.push(message.entry().modseq);
            }
        });
        find.await?;
        // Of the first and the last alone only theirs is told (RFC 4731, section 3.2).
        let is_ends =
            search.returns.is_some_and(|returns| (returns.min || returns.max) && !returns.all && !returns.count);
        let modseq = asks_for_modseq.then_some(modseqs).and_then(|modseqs| match search.returns {
            Some(returns) if is_ends => {
                let first = modseqs.first().filter(|_| returns.min);
                first.max(modseqs.last().filter(|_| returns.max)).copied()
            }
            _ => modseqs.into_iter().max(),
        });
        let told = if by_uid { &uids } else { &numbers };
        let Some(returns) = search.returns else {
            self.tell_numbers("* SEARCH", told).await?;
            let modseq = modseq.filter(|_| !numbers.is_empty()).map(|modseq| format!(" (MODSEQ {modseq})"));
            self.server.bytes(format!("{}\r\n", modseq.unwrap_or_default()).as_bytes());
            return done("Search completed");
        };
        self.tell_found(by_uid, told, returns, modseq).await?;
        self.save(&uids, returns);
        done("Search completed")
    }

    /// Refuses a search that cannot be done, before it begins.
    fn begin_search(&mut self, search: &search::Search) -> Result<(), Refusal> {
        let returns = search.returns.unwrap_or_default();
        if let (true, Some(view)) = (returns.save && search.is_foreign, &mut self.selected) {
            // A search that fails leaves nothing (RFC 5182, section 2.1).
            view.saved = Uids::default();
        }
        known(search)?;
        if returns.update {
            let mut line = b"* NO [NOUPDATE ".to_vec();
            response::string(&self.tag, &mut line);
            line.extend_from_slice(b"] Changes are not told\r\n");
            self.server.bytes(&line);
        }
        Ok(())
    }

    /// ESEARCH (RFC 4731, 5267): of `numbers`, in their order.
    async fn tell_found(
        &mut self,
        by_uid: bool,
        numbers: &[u32],
        returns: search::Returns,
        modseq: Option<u64>,
    ) -> io::Result<()> {
        let search::Returns { min, max, all, count, partial, .. } = returns;
        if !(min || max || all || count || partial.is_some()) {
            // Only to be saved.
            return Ok(());
        }
        let mut line = b"* ESEARCH (TAG ".to_vec();
        response::string(&self.tag, &mut line);
        line.extend_from_slice(if by_uid { b") UID" } else { b")" });
        let mut item = |text: String| line.extend_from_slice(text.as_bytes());
        if let (Some(first), Some(last)) = (numbers.first(), numbers.last()) {
            min.then(|| item(format!(" MIN {first}")));
            max.then(|| item(format!(" MAX {last}")));
        }
        count.then(|| item(format!(" COUNT {}", numbers.len())));
        if all && !numbers.is_empty() {
            line.extend_from_slice(b" ALL ");
            response::set(numbers.iter().copied(), &mut line);
        }
        if let Some((first, last)) = partial {
            line.extend_from_slice(format!(" PARTIAL ({first}:{last} ").as_bytes());
            let to = usize::try_from(last).unwrap_or(usize::MAX).min(numbers.len());
            let between = numbers.get(first as usize - 1..to).unwrap_or_default();
            match between.is_empty() {
                true => line.extend_from_slice(b"NIL"),
                false => response::set(between.iter().copied(), &mut line),
            }
            line.push(b')');
        }
        if let Some(modseq) = modseq.filter(|_| !numbers.is_empty()) {
            line.extend_from_slice(format!(" MODSEQ {modseq}").as_bytes());
        }
        line.extend_from_slice(b"\r\n");
        self.pass(&line).await
    }

    /// Saves the result as `$`, if the command asks for it.
    fn save(&mut self, uids: &[u32], returns: search::Returns) {
        if let (true, Some(view)) = (returns.save, &mut self.selected) {
            view.saved = saved(uids, returns);
        }
    }
}

/// The refusal of a mailbox that the client could make, if it is one.
pub(super) fn try_create(refusal: Refusal, name: &[u8]) -> Refusal {
    match refusal {
        Refusal::No(text) if text.starts_with("[NONEXISTENT]") && !name.starts_with(acl::OTHERS) => {
            no("[TRYCREATE] No such mailbox")
        }
        refusal => refusal,
    }
}

/// A criterion of SORT as the keep has it.
fn criterion(given: &Criterion) -> sort::Criterion {
    let by = match given.by {
        search::By::Arrival => By::Arrival,
        search::By::Cc => By::Cc,
        search::By::Date => By::Date,
        search::By::From => By::From,
        search::By::Size => By::Size,
        search::By::Subject => By::Subject,
        search::By::To => By::To,
    };
    sort::Criterion { by, reverse: given.reverse }
}

/// UIDs to save as `$`: for MIN and MAX alone, only those two.
fn saved(uids: &[u32], returns: search::Returns) -> Uids {
    let is_ends = (returns.min || returns.max) && !returns.all && !returns.count;
    match is_ends {
        true => {
            let (first, last) = (uids.first().filter(|_| returns.min), uids.last().filter(|_| returns.max));
            first.into_iter().chain(last).copied().collect()
        }
        false => uids.iter().copied().collect(),
    }
}

fn known(search: &search::Search) -> Result<(), Refusal> {
    match search.is_foreign {
        true => Err(no("[BADCHARSET (US-ASCII UTF-8 ISO-8859-1 UTF-16)] Unknown charset")),
        false => Ok(()),
    }
}
