//! The hash of a body as it streams (RFC 6376 sections 3.4.3, 3.4.4, 3.7), with any cut.
//!
//! However many signatures there are, each byte is canonicalised at most twice and hashed at most four times: those that
//! hash alike but stop at different lengths (`l=`) take their digests on the way.
//!
//! The plain way, for one line at a time: take white space off its end and make one space of each run within (relaxed); count
//! it if it is empty; else hash the line ends that were counted, then the line. Here there are no lines, but runs of bytes
//! between white space and line ends, and what was counted are three values.

use aws_lc_rs::digest::{Context, Digest, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

use crate::header::Canonicalization;

/// Hash algorithms of signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hash {
    /// Broken, and not to be used (RFC 8301).
    Sha1,
    /// The one of all others.
    Sha256,
}

impl Hash {
    fn context(self) -> Context {
        Context::new(match self {
            Hash::Sha1 => &SHA1_FOR_LEGACY_USE_ONLY,
            Hash::Sha256 => &SHA256,
        })
    }
}

/// A wanted hash of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// Its form.
    pub form: Canonicalization,
    /// Its algorithm.
    pub hash: Hash,
    /// Number of bytes of the canonical form to hash; `None` for all of them.
    pub len: Option<u64>,
}

/// Hashes of a body.
#[derive(Debug, Clone, Default)]
pub struct BodyHashes {
    forms: Vec<Form>,
}

impl BodyHashes {
    /// All hashes that are wanted.
    pub fn new(wanted: impl IntoIterator<Item = Wanted>) -> BodyHashes {
        let mut hashes = BodyHashes::default();
        for wanted in wanted {
            hashes.form(wanted.form).running(wanted.hash).want(wanted.len);
        }
        hashes
    }

    fn form(&mut self, form: Canonicalization) -> &mut Form {
        let at = self.forms.iter().position(|known| known.canonical.form == form).unwrap_or_else(|| {
            self.forms.push(Form { canonical: Canonical::new(form), staged: Staged::default() });
            self.forms.len() - 1
        });
        &mut self.forms[at]
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        for Form { canonical, staged } in &mut self.forms {
            canonical.feed(bytes, staged);
        }
    }

    /// The body is complete.
    pub fn finish(&mut self) {
        for Form { canonical, staged } in &mut self.forms {
            canonical.finish(staged);
            staged.finish();
        }
    }

    /// Returns the digest of a complete body, and the number of uncovered bytes of its form; `None` if the form is
    /// shorter than requested.
    pub fn digest(&self, wanted: Wanted) -> Option<(&[u8], u64)> {
        let form = self.forms.iter().find(|form| form.canonical.form == wanted.form)?;
        let running = form.staged.running.iter().find(|running| running.hash == wanted.hash)?;
        let limit = wanted.len.unwrap_or(u64::MAX);
        let cut = running.cuts.iter().find(|cut| cut.limit == limit)?;
        Some((cut.digest.as_ref()?.as_ref(), running.taken.saturating_sub(limit)))
    }
}

#[derive(Debug, Clone)]
struct Form {
    canonical: Canonical,
    staged: Staged,
}

impl Form {
    fn running(&mut self, hash: Hash) -> &mut Running {
        let running = &mut self.staged.running;
        let at = running.iter().position(|known| known.hash == hash).unwrap_or_else(|| {
            running.push(Running { hash, context: hash.context(), taken: 0, cuts: Vec::new() });
            running.len() - 1
        });
        &mut running[at]
    }
}

/// Bytes of a body that were seen and not yet hashed.
#[derive(Debug, Clone)]
struct Canonical {
    form: Canonicalization,
    /// Line ends.
    ends: u64,
    /// White space behind them, of relaxed bodies.
    space: bool,
    /// A carriage return that may be half of a line end.
    half: bool,
    /// Whether anything but line ends has come.
    begun: bool,
}

/// Line ends in a row.
const ENDS: &[u8; 128] = b"\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\
\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n";

impl Canonical {
    fn new(form: Canonicalization) -> Canonical {
        Canonical { form, ends: 0, space: false, half: false, begun: false }
    }

    fn feed(&mut self, bytes: &[u8], out: &mut Staged) {
        let mut rest = bytes;
        while let Some((&first, behind)) = rest.split_first() {
            if self.half {
                self.half = false;
                if first == b'\n' {
                    self.ends = self.ends.saturating_add(1);
                    self.space = false;
                    rest = behind;
                    continue;
                }
                self.content(b"\r", out);
            }
            match first {
                b'\r' => {
                    self.half = true;
                    rest = behind;
                }
                b' ' | b'\t' if self.form == Canonicalization::Relaxed => {
                    self.space = true;
                    rest = behind;
                }
                _ => {
                    let (run, behind) = rest.split_at(self.run(rest));
                    self.content(run, out);
                    rest = behind;
                }
            }
        }
    }

    /// How many bytes from the first on are hashed as they are.
    fn run(&self, bytes: &[u8]) -> usize {
        let end = match self.form {
            Canonicalization::Simple => memchr::memchr(b'\r', bytes),
            Canonicalization::Relaxed => memchr::memchr3(b'\r', b' ', b'\t', bytes),
        };
        end.unwrap_or(bytes.len())
    }

    fn content(&mut self, run: &[u8], out: &mut Staged) {
        let mut bytes = self.ends.saturating_mul(2);
        while bytes > 0 {
            let len = bytes.min(ENDS.len() as u64);
            out.put(&ENDS[..len as usize]);
            bytes -= len;
        }
        if self.space {
            out.put(b" ");
        }
        out.put(run);
        (self.ends, self.space, self.begun) = (0, false, true);
    }

    /// Line ends at the end do not count, but one; an empty relaxed body has none.
    fn finish(&mut self, out: &mut Staged) {
        if core::mem::take(&mut self.half) {
            self.content(b"\r", out);
        }
        if self.begun || self.form == Canonicalization::Simple {
            out.put(b"\r\n");
        }
    }
}

/// Short runs are gathered before they are hashed.
#[derive(Debug, Clone, Default)]
struct Staged {
    bytes: Vec<u8>,
    running: Vec<Running>,
}

/// From how many bytes on it is hashed at once.
const STAGE_BYTES: usize = 4 << 10;

impl Staged {
    fn put(&mut self, run: &[u8]) {
        if self.bytes.len() + run.len() > STAGE_BYTES {
            self.flush();
        }
        match run.len() > STAGE_BYTES {
            true => self.running.iter_mut().for_each(|running| running.update(run)),
            false => self.bytes.extend_from_slice(run),
        }
    }

    fn flush(&mut self) {
        self.running.iter_mut().for_each(|running| running.update(&self.bytes));
        self.bytes.clear();
    }

    fn finish(&mut self) {
        self.flush();
        self.running.iter_mut().for_each(Running::finish);
    }
}

/// A hash and where it is read off.
#[derive(Clone)]
struct Running {
    hash: Hash,
    context: Context,
    taken: u64,
    /// By limit.
    cuts: Vec<Cut>,
}

#[derive(Clone)]
struct Cut {
    /// `u64::MAX` for the end.
    limit: u64,
    digest: Option<Digest>,
}

impl core::fmt::Debug for Running {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?} of {}", self.hash, self.taken)
    }
}

impl Running {
    fn want(&mut self, len: Option<u64>) {
        let limit = len.unwrap_or(u64::MAX);
        if let Err(at) = self.cuts.binary_search_by_key(&limit, |cut| cut.limit) {
            self.cuts.insert(at, Cut { limit, digest: None });
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        let end = self.taken.saturating_add(bytes.len() as u64);
        for cut in self.cuts.iter_mut().filter(|cut| cut.digest.is_none() && cut.limit <= end) {
            // At most as long as `rest`: the limit is not beyond its end.
            let (front, back) = rest.split_at((cut.limit - self.taken) as usize);
            self.context.update(front);
            self.taken += front.len() as u64;
            rest = back;
            cut.digest = Some(self.context.clone().finish());
        }
        // No digest is taken after the last cut.
        if self.cuts.last().is_some_and(|last| last.digest.is_none()) {
            self.context.update(rest);
        }
        self.taken = end;
    }

    fn finish(&mut self) {
        let (taken, digest) = (self.taken, self.context.clone().finish());
        // A limit of nothing is never passed where there is nothing.
        for cut in self.cuts.iter_mut().filter(|cut| cut.digest.is_none()) {
            if cut.limit == u64::MAX || cut.limit == taken {
                cut.digest = Some(digest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FORMS: [Canonicalization; 2] = [Canonicalization::Simple, Canonicalization::Relaxed];

    /// Line by line, as the sections say.
    fn plainly(form: Canonicalization, body: &[u8]) -> Vec<u8> {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        let mut rest = body;
        while !rest.is_empty() {
            let end = memchr::memmem::find(rest, b"\r\n").unwrap_or(rest.len());
            lines.push(rest[..end].to_vec());
            rest = rest.get(end + 2..).unwrap_or_default();
        }
        if form == Canonicalization::Relaxed {
            for line in &mut lines {
                let mut relaxed = Vec::new();
                for &byte in line.iter() {
                    let byte = if byte == b'\t' { b' ' } else { byte };
                    if byte != b' ' || relaxed.last() != Some(&b' ') {
                        relaxed.push(byte);
                    }
                }
                if relaxed.last() == Some(&b' ') {
                    relaxed.pop();
                }
                *line = relaxed;
            }
        }
        while lines.last().is_some_and(Vec::is_empty) {
            lines.pop();
        }
        let mut out: Vec<u8> = lines.iter().flat_map(|line| [line, &b"\r\n"[..]].concat()).collect();
        if out.is_empty() && form == Canonicalization::Simple {
            out = b"\r\n".to_vec();
        }
        out
    }

    fn wanted(form: Canonicalization, len: Option<u64>) -> Wanted {
        Wanted { form, hash: Hash::Sha256, len }
    }

    fn hashed(body: &[u8], pieces: usize, all: &[Wanted]) -> Vec<Option<(Vec<u8>, u64)>> {
        let mut hashes = BodyHashes::new(all.iter().copied());
        body.chunks(pieces.max(1)).for_each(|piece| hashes.feed(piece));
        hashes.finish();
        all.iter().map(|&one| hashes.digest(one).map(|(digest, left)| (digest.to_vec(), left))).collect()
    }

    fn digest(bytes: &[u8]) -> Vec<u8> {
        aws_lc_rs::digest::digest(&SHA256, bytes).as_ref().to_vec()
    }

    /// Compares with the plain algorithm, however the body is cut.
    fn holds(body: &[u8]) {
        for form in FORMS {
            let canonical = plainly(form, body);
            let lens = [None, Some(0), Some(1), Some(canonical.len() as u64), Some(canonical.len() as u64 + 1)];
            let all: Vec<Wanted> = lens.into_iter().map(|len| wanted(form, len)).collect();
            let reference: Vec<_> = lens
                .into_iter()
                .map(|len| {
                    let len = usize::try_from(len.unwrap_or(canonical.len() as u64)).unwrap();
                    canonical.get(..len).map(|front| (digest(front), (canonical.len() - len) as u64))
                })
                .collect();
            for pieces in [1, 2, 3, 7, body.len()] {
                assert_eq!(hashed(body, pieces, &all), reference, "{form:?} {pieces} {}", body.escape_ascii());
            }
        }
    }

    #[test]
    fn a_body_is_hashed_as_the_sections_say_with_any_cut() {
        for body in [
            &b""[..],
            b"\r\n",
            b"\r\n\r\n",
            b" \t\r\n",
            b"a",
            b"a\r\n",
            b"a \r\n\r\n",
            b" C \r\nD \t E\r\n\r\n\r\n",
            b"\r",
            b"a\r",
            b"a\r\r\n",
            b"a \rb",
            b"\n",
            b"a\n\nb\n",
            b"\r \n",
            b" ",
            b"a \t ",
            b"\r\n\r\nx",
            b"a\t\r\n \r\nb\r\n \r\n",
        ] {
            holds(body);
        }
        holds(&b"word and  word\t\r\n\r\n".repeat(1_000));
        holds(&[b"a".repeat(10_000), b"\r\n".repeat(10_000), b"b".repeat(5_000)].concat());
    }

    /// Section 3.4.5 and the known hashes of nothing (sections 3.4.3, 3.4.4).
    #[test]
    fn empty_bodies_have_known_hashes() {
        let [simple, relaxed] = FORMS.map(|form| hashed(b"", 1, &[wanted(form, None)]).remove(0).unwrap().0);
        assert_eq!(text::base64::encode(&simple), "frcCV1k9oG9oKj3dpUqdJg1PxRT2RSN/XKdLCPjaYaY=");
        assert_eq!(text::base64::encode(&relaxed), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }

    proptest! {
        #[test]
        fn any_body_is_hashed_as_the_sections_say(body in "[a \t\r\n]{0,40}|(\r\n|a| |\t\r\n| \r\n){0,30}") {
            holds(body.as_bytes());
        }
    }
}
