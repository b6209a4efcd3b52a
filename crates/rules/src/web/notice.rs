//! Replacement of blocked content by `reportinglevel`: a page of the host, one of a template, or another site.

use super::bypass::Bypass;
use super::group::Group;
use super::manner::Level;
use super::request::{Decision, Request};
use super::squidguard::Block;
use super::template::{self, Filling, Told};

/// A page in the place of what is blocked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Notice {
    /// The host's own, with the reason.
    #[default]
    Own,
    /// The host's own, without the reason.
    Bare,
    /// This page.
    Page(Vec<u8>),
    /// The page at this URL.
    Redirect(String),
}

/// The cause of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Lists, or the phrases of a page.
    Lists,
    /// Malware.
    Malware,
    /// It could not be inspected.
    Fault,
}

impl Group {
    /// The URL by which a client comes past a block of this cause; `None` where it does not.
    pub fn link(&self, request: &Request<'_>, decision: &Decision, cause: Cause) -> Option<String> {
        let is_url = [&b"http://"[..], b"https://"].iter().any(|scheme| request.url.starts_with(scheme));
        let bypass = self.way_past(decision, cause).filter(|_| is_url)?;
        bypass.link(request.url, request.who(), request.tokens.as_ref()?)
    }

    fn way_past(&self, decision: &Decision, cause: Cause) -> Option<&Bypass> {
        match cause {
            Cause::Lists => self.bypass.as_ref().filter(|_| decision.may_bypass),
            Cause::Malware if self.bypasses_faults_alone => None,
            Cause::Malware | Cause::Fault => self.scan_bypass.as_ref().filter(|_| decision.may_bypass_scan),
        }
    }

    /// What stands in the place of what is blocked; `link` leads past the block.
    pub fn notice(&self, request: &Request<'_>, told: Told<'_>, link: Option<&str>) -> Notice {
        let block = Block { request, source: &self.name, destination: told.list };
        if let Some(url) = self.manner.redirects.url(&block).filter(|_| !told.list.is_empty()) {
            return Notice::Redirect(url);
        }
        match self.manner.level {
            Level::Stealth => Notice::Own,
            Level::Bare => Notice::Bare,
            Level::Reason | Level::Full => match &self.manner.address {
                Some(address) => Notice::Redirect(self.address(address, request, told, link)),
                None => Notice::Own,
            },
            Level::Template => match &self.manner.template {
                Some(template) => Notice::Page(template.filled(&self.filling(request, told, link))),
                None => Notice::Own,
            },
        }
    }

    /// The words that the client is told of a block.
    pub fn shown<'t>(&self, told: Told<'t>) -> &'t str {
        if self.manner.level == Level::Full { told.log } else { told.text }
    }

    fn filling<'t>(&'t self, request: &Request<'t>, told: Told<'t>, link: Option<&'t str>) -> Filling<'t> {
        Filling {
            url: String::from_utf8_lossy(request.url),
            told,
            user: request.user,
            client: request.client,
            group: &self.name,
            number: self.number,
            link: link.unwrap_or_default(),
        }
    }

    /// The address of the site that shows the reason, with its parameters.
    fn address(&self, address: &str, request: &Request<'_>, told: Told<'_>, link: Option<&str>) -> String {
        let (between, is) = if self.manner.has_own_delimiters { ("::", "==") } else { ("&", "=") };
        let token = link.and_then(|link| link.rsplit(['?', '&']).next()?.split_once('='));
        let client = request.client.map(|client| client.to_canonical().to_string()).unwrap_or_default();
        let pairs = [
            ("DENIEDURL", &*String::from_utf8_lossy(template::cut(request.url))),
            ("IP", &client),
            ("USER", request.user.unwrap_or_default()),
            ("FILTERGROUP", &self.name),
            token.unwrap_or_default(),
            ("CATEGORIES", told.categories),
            ("REASON", self.shown(told)),
        ];
        let pairs = pairs.iter().filter(|(name, _)| !name.is_empty());
        let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}{is}{}", template::encoded(value))).collect();
        let sign = if address.contains('?') { between } else { "?" };
        format!("{address}{sign}{}", pairs.join(between))
    }
}
