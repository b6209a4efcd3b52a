//! A filter group: its lists, its phrases, its storyboard.

use std::sync::Arc;

use super::bypass::{Bypass, Carried, Subject};
use super::list::Bound;
use super::manner::{Level, Manner};
use super::moment::Moment;
use super::phrase::{Outcome, Page, Phrases, Score};
use super::request::{Decision, Entry, Field, Identity, Reason, Request, Response, Verdict};
use super::shared::Shared;
use super::squidguard::Rules;
use super::story::Story;
use super::trial::{Scene, Trial};

/// A filter group. Immutable, to be asked by any number of doors.
#[derive(Debug)]
pub struct Group {
    pub(super) number: u32,
    pub(super) name: Box<str>,
    pub(super) shared: Arc<Shared>,
    pub(super) lists: Vec<Bound>,
    pub(super) story: Story,
    /// The access rules of squidGuard, in place of a storyboard.
    pub(super) rules: Option<Rules>,
    /// The points beyond which a page is blocked.
    pub(super) limit: i32,
    /// The sum of points below which a category is not named.
    pub(super) category_points_min: i32,
    pub(super) phrases: Arc<Phrases>,
    /// The points beyond which search terms are blocked, and their phrases.
    pub(super) search: Option<(i32, Arc<Phrases>)>,
    pub(super) bypass: Option<Bypass>,
    /// The terms on which one URL is spared the scan for malware.
    pub(super) scan_bypass: Option<Bypass>,
    /// By that, content passes that cannot be inspected, but no malware.
    pub(super) bypasses_faults_alone: bool,
    pub(super) manner: Manner,
    /// Connections of TLS may be read.
    pub(super) intercepts: bool,
}

impl Group {
    /// Its number, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The points beyond which a page is blocked.
    pub fn limit(&self) -> i32 {
        self.limit
    }

    /// Its phrases.
    pub fn phrases(&self) -> &Arc<Phrases> {
        &self.phrases
    }

    /// Whether blocks are logged alone.
    pub fn is_stealthy(&self) -> bool {
        self.manner.level == Level::Stealth
    }

    /// Decides on a request. Tokens that it carries are taken out of it.
    pub fn request(&self, request: &Request<'_>) -> Decision {
        if request.tokens.is_none() || self.bypass.is_none() && self.scan_bypass.is_none() {
            return self.decide(request);
        }
        let carried = Carried::take(request.url, request.fields);
        let mut fields: Vec<Field<'_>> = request.fields.to_vec();
        for (place, value) in &carried.fields {
            fields[*place].1 = value;
        }
        let clean = Request { url: carried.url.as_deref().unwrap_or(request.url), fields: &fields, ..*request };
        let mut decision = self.decide(&clean);
        self.let_past(&clean, &carried, &mut decision);
        decision.url = decision.url.or(carried.url);
        for (place, value) in carried.fields {
            if !decision.fields.iter().any(|(changed, _)| *changed == place) {
                decision.fields.push((place, value));
            }
        }
        decision
    }

    /// Lets a request past a block, by a token that it carries.
    fn let_past(&self, request: &Request<'_>, carried: &Carried, decision: &mut Decision) {
        let Some(tokens) = &request.tokens else { return };
        let who = request.who();
        let holds = |bypass: &Bypass, (subject, token): &(Subject, String)| {
            *subject == bypass.subject && bypass.accepts(token, request.url, who, tokens)
        };
        // A token of the URL is new, and its cookie stands for it from now on.
        let held = |bypass: &Bypass| match carried.of_url.iter().any(|token| holds(bypass, token)) {
            true => Some(Some(bypass.cookie(request.url, who, tokens))),
            false => carried.of_cookies.iter().any(|token| holds(bypass, token)).then_some(None),
        };
        if let Some(cookie) = self.bypass.as_ref().filter(|_| decision.may_bypass).and_then(held) {
            decision.is_bypassed = true;
            decision.cookie = cookie;
            decision.verdict = Verdict::Exception;
            decision.redirect = None;
        }
        if let Some(cookie) = self.scan_bypass.as_ref().filter(|_| decision.may_bypass_scan).and_then(held) {
            decision.skips_faults = true;
            decision.skips_scan |= !self.bypasses_faults_alone;
            decision.cookie = decision.cookie.take().or(cookie);
        }
        let is_safe = [&b"GET"[..], b"HEAD"].contains(&request.method);
        if is_safe && decision.cookie.is_some() && decision.verdict != Verdict::Block {
            decision.redirect = Some(request.url.to_vec());
        }
    }

    fn decide(&self, request: &Request<'_>) -> Decision {
        let mut decision = self.once(request);
        if request.identity == Identity::Awaited && !decision.intercepts {
            // A host that exempts from something has to be proved, by the certificate that an opened tunnel shows.
            let claimed = self.once(&Request { identity: Identity::Claimed, ..*request });
            if !self.intercepts {
                decision = claimed;
            } else {
                decision.intercepts = claimed.intercepts || claimed.verdict != decision.verdict;
            }
        }
        let Some(url) = decision.url.clone().filter(|_| decision.verdict != Verdict::Block) else { return decision };
        // What a URL was changed to may be blocked itself.
        let again = self.once(&Request { url: &url, ..*request });
        if again.verdict != Verdict::Block {
            return decision;
        }
        Decision { verdict: again.verdict, reason: again.reason, categories: again.categories, ..decision }
    }

    fn once(&self, request: &Request<'_>) -> Decision {
        let mut trial = Trial::new(
            self.scene(),
            *request,
            Decision {
                group: self.number,
                may_bypass: request.tokens.is_some() && self.bypass.is_some(),
                may_bypass_scan: request.tokens.is_some() && self.scan_bypass.is_some(),
                ..Decision::default()
            },
        );
        if let Some(rules) = &self.rules {
            rules.decide(&mut trial);
            return trial.finish();
        }
        let before = if self.shared.preauth.has("pre-authcheck") { &self.shared.preauth } else { &self.story };
        trial.scene.lists = if self.shared.preauth.has("pre-authcheck") { &self.shared.lists } else { &self.lists };
        before.run("pre-authcheck", &mut trial);
        trial.scene.lists = &self.lists;
        if !trial.is_over() {
            self.story.run(self.function(request.entry, ["checkrequest", "icap-checkrequest"]), &mut trial);
        } else {
            // The client itself is blocked.
            trial.forbid_bypass();
        }
        let mut decision = trial.finish();
        if let Some(search) = decision.search.clone() {
            self.weigh_search(&search, request.now, &mut decision);
        }
        decision
    }

    /// The function for a door, where the storyboard has it, else that for a proxy.
    fn function(&self, entry: Entry, [proxy, icap]: [&'static str; 2]) -> &'static str {
        if entry == Entry::Icap && self.story.has(icap) { icap } else { proxy }
    }

    /// Blocks search terms by phrases.
    fn weigh_search(&self, terms: &str, now: Moment, decision: &mut Decision) {
        let Some((limit, phrases)) = &self.search else { return };
        if matches!(decision.verdict, Verdict::Block | Verdict::Exception) {
            return;
        }
        let mut page = Page::new(phrases);
        page.feed(b" ");
        page.feed(terms.as_bytes());
        page.feed(b" ");
        self.weigh(&page.finish(now), *limit, decision);
    }

    /// Decides on the head of a response to a request that was let through.
    pub fn response(&self, request: &Request<'_>, response: &Response<'_>, decided: Decision) -> Decision {
        if matches!(decided.verdict, Verdict::Block | Verdict::Exception) {
            return decided;
        }
        let mut trial = Trial::new(self.scene(), *request, decided);
        trial.response = Some(*response);
        self.story.run(self.function(request.entry, ["checkresponse", "icap-checkresponse"]), &mut trial);
        trial.finish()
    }

    /// A page to feed the content of a response to; `None` where it is not looked at.
    pub fn page(&self, response: &Response<'_>, decided: &Decision) -> Option<Page> {
        let charset = response.content_type.and_then(text::encoding::parameter).unwrap_or_default();
        self.scores(response, decided).then(|| Page::labelled(&self.phrases, charset))
    }

    /// Whether the content of a response is scored.
    pub fn scores(&self, response: &Response<'_>, decided: &Decision) -> bool {
        let is_free = matches!(decided.verdict, Verdict::Block | Verdict::Exception);
        !is_free && self.limit > 0 && self.shared.is_text(response.content_type)
    }

    /// Decides on a page by its score.
    pub fn scored(&self, score: &Score, mut decided: Decision) -> Decision {
        self.weigh(score, self.limit, &mut decided);
        decided
    }

    fn weigh(&self, score: &Score, limit: i32, decision: &mut Decision) {
        let (verdict, number, about) = match &score.outcome {
            Outcome::Passed => return,
            Outcome::Exception { phrase, is_together } => {
                (Verdict::Exception, 604 + u32::from(*is_together), phrase.clone())
            }
            Outcome::Banned { phrase, is_together } => {
                (Verdict::Block, 300 + 100 * u32::from(*is_together), phrase.clone())
            }
            Outcome::Dense => (Verdict::Block, 402, "too many phrases to count".to_owned()),
            Outcome::Weighted => {
                let names: Vec<&str> = score.found.iter().map(|found| &*found.phrase).collect();
                (Verdict::Block, 402, format!("{limit} : {} ({})", score.points, names.join("+")))
            }
        };
        let text = self.shared.messages.text(number, &about);
        // The log alone names the phrases of a block.
        let shown = match verdict {
            Verdict::Block => self.shared.messages.alone(number + 1),
            _ => text.clone(),
        };
        decision.verdict = verdict;
        decision.reason = Some(Reason { message: number, text: shown, log: text, list: "".into(), entry: about });
        let named = score.categories.iter().filter(|(_, points)| *points >= self.category_points_min);
        let most = if self.category_points_min < 0 { 1 } else { usize::MAX };
        decision.categories = named.take(most).map(|(name, _)| name.clone()).collect();
    }

    /// State of the group for storyboards.
    fn scene(&self) -> Scene<'_> {
        Scene {
            lists: &self.lists,
            messages: &self.shared.messages,
            dialect: self.shared.settings.dialect,
            intercepts: self.intercepts,
            searches_addresses: !self.shared.leaves_addresses,
        }
    }
}
