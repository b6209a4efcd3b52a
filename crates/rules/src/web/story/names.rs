//! The names of states and actions.

use crate::web::list::Kind;

/// Something that a line asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    True,
    /// The line before did something that came to something.
    Returned,
    Url,
    Site,
    Search,
    Embedded,
    Referer,
    Header,
    FullUrl,
    Extension,
    Type,
    Client,
    UserAgent,
    Flag(Flag),
    /// Known to E2Guardian; never holds here.
    Foreign,
}

/// A state without a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flag {
    Connect,
    Post,
    Get,
    SiteIsAddress,
    Tls,
    Exception,
    Grey,
    Block,
    Intercept,
    Done,
    HasServerName,
    Redirect,
    VirusCheck,
    BypassAllowed,
    ScanBypassAllowed,
}

/// Something that a line does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    True,
    False,
    Exception,
    Grey,
    Block,
    ChangeUrl,
    Done,
    Intercept,
    DoNotIntercept,
    LogCategory,
    AddHeader,
    Redirect,
    NoCertificateCheck,
    SearchTerm,
    ChangeHeader,
    Direct,
    NoLog,
    NoVirusCheck,
    NoBypass,
    NoScanBypass,
    ConnectSite,
    /// Known to E2Guardian; does nothing here.
    Foreign,
}

impl Action {
    /// Whether it exempts a request from something.
    pub fn exempts(self) -> bool {
        matches!(
            self,
            Action::Exception
                | Action::Grey
                | Action::DoNotIntercept
                | Action::NoCertificateCheck
                | Action::Direct
                | Action::NoLog
                | Action::NoVirusCheck
        )
    }
}

impl State {
    /// Whether it depends on the host of the request, or may do so.
    pub fn is_by_host(self) -> bool {
        matches!(self, State::Url | State::Site | State::FullUrl | State::Returned)
    }

    /// The state of a name.
    pub fn of(name: &str) -> Option<State> {
        Some(match name {
            "true" => State::True,
            "returnset" => State::Returned,
            "urlin" => State::Url,
            "sitein" => State::Site,
            "searchin" => State::Search,
            "embeddedin" => State::Embedded,
            "refererin" => State::Referer,
            "headerin" => State::Header,
            "fullurlin" => State::FullUrl,
            "extensionin" => State::Extension,
            "mimein" => State::Type,
            "clientin" => State::Client,
            "useragentin" => State::UserAgent,
            "connect" => State::Flag(Flag::Connect),
            "post" => State::Flag(Flag::Post),
            "get" => State::Flag(Flag::Get),
            "siteisip" => State::Flag(Flag::SiteIsAddress),
            "tls" => State::Flag(Flag::Tls),
            "exceptionset" => State::Flag(Flag::Exception),
            "greyset" => State::Flag(Flag::Grey),
            "blockset" => State::Flag(Flag::Block),
            "mitmset" => State::Flag(Flag::Intercept),
            "doneset" => State::Flag(Flag::Done),
            "hassniset" => State::Flag(Flag::HasServerName),
            "redirectset" => State::Flag(Flag::Redirect),
            "viruscheckset" => State::Flag(Flag::VirusCheck),
            "bypassallowset" => State::Flag(Flag::BypassAllowed),
            "infectionbypassallowset" => State::Flag(Flag::ScanBypassAllowed),
            "bypassset" | "semiexceptionset" | "timein" | "userin" | "listenportin" | "responseheaderin"
            | "categoryin" | "alertset" => State::Foreign,
            _ => return None,
        })
    }

    /// The kinds of lists that it looks into, in their order.
    pub fn kinds(self) -> &'static [Kind] {
        match self {
            State::Url => &[Kind::AddressSite, Kind::Site, Kind::Url, Kind::Network, Kind::Extension, Kind::Expression],
            State::Embedded | State::Referer => &[Kind::AddressSite, Kind::Site, Kind::Url, Kind::Expression],
            State::Site => &[Kind::AddressSite, Kind::Site, Kind::Network, Kind::Expression],
            State::Search => &[Kind::Search],
            State::Header => &[Kind::Expression, Kind::Replacement],
            State::FullUrl => &[Kind::Replacement, Kind::Expression],
            State::Extension => &[Kind::Extension],
            State::Type => &[Kind::Type],
            State::Client => &[Kind::Address],
            State::UserAgent => &[Kind::Expression],
            State::True | State::Returned | State::Flag(_) | State::Foreign => &[],
        }
    }
}

impl Action {
    /// The action of a name.
    pub fn of(name: &str) -> Option<Action> {
        Some(match name {
            "true" => Action::True,
            "false" => Action::False,
            "setexception" => Action::Exception,
            "setgrey" => Action::Grey,
            "setblock" => Action::Block,
            "setmodurl" => Action::ChangeUrl,
            "setdone" => Action::Done,
            "setgomitm" => Action::Intercept,
            "setnomitm" => Action::DoNotIntercept,
            "setlogcategory" => Action::LogCategory,
            "setaddheader" => Action::AddHeader,
            "setredirect" => Action::Redirect,
            "setnocheckcert" => Action::NoCertificateCheck,
            "setsearchterm" => Action::SearchTerm,
            "setmodheader" => Action::ChangeHeader,
            "setgodirect" => Action::Direct,
            "setnolog" => Action::NoLog,
            "unsetviruscheck" => Action::NoVirusCheck,
            "setconnectsite" => Action::ConnectSite,
            "unsetbypassallow" => Action::NoBypass,
            "unsetinfectionbypassallow" => Action::NoScanBypass,
            "unsetbypass" | "setalert" | "setautomitm" | "unsetautomitm" | "setgroup" | "setsemiexception"
            | "unsetsemiexception" => Action::Foreign,
            _ => return None,
        })
    }
}
