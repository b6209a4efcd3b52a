//! The buffers that rules look into: their names in Suricata and in Snort, and when a host fills them.

/// Direction of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the client.
    ToServer,
    /// From the server.
    ToClient,
}

impl Direction {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Direction {
        match self {
            Direction::ToServer => Direction::ToClient,
            Direction::ToClient => Direction::ToServer,
        }
    }
}

/// The sides on which a buffer is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Request,
    Response,
    Both,
}

/// The protocol of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum App {
    /// HTTP/1.
    Http,
    /// HTTP/2.
    Http2,
    /// SMTP and LMTP.
    Smtp,
    /// TLS.
    Tls,
    /// DNS.
    Dns,
    /// POP3.
    Pop3,
    /// IMAP.
    Imap,
    /// FTP.
    Ftp,
    /// SSH.
    Ssh,
    /// A protocol whose name is known, and that nothing here speaks.
    Other,
}

impl App {
    /// Its name in records, as Suricata has it.
    pub const fn name(self) -> &'static str {
        match self {
            App::Http => "http",
            App::Http2 => "http2",
            App::Smtp => "smtp",
            App::Tls => "tls",
            App::Dns => "dns",
            App::Pop3 => "pop3",
            App::Imap => "imap",
            App::Ftp => "ftp",
            App::Ssh => "ssh",
            App::Other => "failed",
        }
    }
}

macro_rules! buffers {
    ($($(#[$doc:meta])* $variant:ident $side:ident $multi:literal [$($name:literal)*] $old:expr;)*) => {
        /// A buffer.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Buffer { $($(#[$doc])* $variant,)* }

        impl Buffer {
            /// The buffer of a keyword that stands before contents.
            pub(super) fn sticky(name: &str) -> Option<Buffer> {
                match name { $($($name)|* => Some(Buffer::$variant),)* _ => None }
            }

            /// The buffer of a keyword that stands behind a content: Snort's before 3, and Suricata's before 5.
            pub(super) fn modifier(name: &str) -> Option<Buffer> {
                $(if $old == Some(name) { return Some(Buffer::$variant); })*
                None
            }

            pub(super) fn side(self) -> Side {
                match self { $(Buffer::$variant => Side::$side,)* }
            }

            /// Whether each use of its keyword looks for an instance of its own.
            pub(super) fn is_multi(self) -> bool {
                match self { $(Buffer::$variant => $multi,)* }
            }

            /// The names of all keywords that stand before contents.
            pub(super) const NAMES: &'static [&'static str] = &[$($($name,)*)*];

            /// Its first name.
            pub fn name(self) -> &'static str {
                match self { $(Buffer::$variant => [$($name,)*][0],)* }
            }
        }
    };
}

buffers! {
    /// What a stream or a datagram carries.
    Payload Both false ["pkt_data" "raw_data"] None;
    /// What one packet carries, for rules that ask for its size. The name is no keyword: it has a blank.
    Packet Both false ["the packet"] None;
    /// The URI, normalised.
    Uri Request false ["http.uri" "http_uri"] Some("http_uri");
    /// The URI as it was sent.
    UriRaw Request false ["http.uri.raw" "http_raw_uri"] Some("http_raw_uri");
    /// The method.
    Method Request false ["http.method" "http_method"] Some("http_method");
    /// The host, in lower case and without a port.
    Host Request false ["http.host" "http_host"] Some("http_host");
    /// The host as it was sent.
    HostRaw Request false ["http.host.raw" "http_raw_host"] Some("http_raw_host");
    /// Fields of the head, each with its line end; cookies are left out.
    Header Both false ["http.header" "http_header"] Some("http_header");
    /// The head as it was sent, without its first line.
    HeaderRaw Both false ["http.header.raw" "http_raw_header"] Some("http_raw_header");
    /// The names of fields, with line ends around them.
    HeaderNames Both false ["http.header_names" "http_header_names"] None;
    /// One field of a request, as `name: value`.
    RequestHeader Request true ["http.request_header"] None;
    /// One field of a response, as `name: value`.
    ResponseHeader Response true ["http.response_header"] None;
    /// The user agent.
    UserAgent Request false ["http.user_agent" "http_user_agent"] Some("http_user_agent");
    /// Cookies of either side.
    Cookie Both false ["http.cookie" "http_cookie" "http_raw_cookie"] Some("http_cookie");
    /// The body of a request, decoded.
    RequestBody Request false ["http.request_body" "http_client_body"] Some("http_client_body");
    /// The body of a response, decoded.
    ResponseBody Response false ["http.response_body" "http_server_body"] Some("http_server_body");
    /// The media type of either side.
    ContentType Both false ["http.content_type" "http_content_type"] None;
    /// The length that either side says.
    ContentLength Both false ["http.content_len" "http_content_len"] None;
    /// The request line, with its line end.
    RequestLine Request false ["http.request_line" "http_request_line" "http_raw_request"] None;
    /// The status line, with its line end.
    ResponseLine Response false ["http.response_line" "http_response_line" "http_raw_status"] None;
    /// The status code.
    StatCode Response false ["http.stat_code" "http_stat_code"] Some("http_stat_code");
    /// The reason.
    StatMsg Response false ["http.stat_msg" "http_stat_msg"] Some("http_stat_msg");
    /// The version of either side.
    Protocol Both false ["http.protocol" "http_protocol" "http_version"] None;
    /// `Referer`.
    Referer Request false ["http.referer" "http_referer"] None;
    /// `Location`.
    Location Response false ["http.location" "http_location"] None;
    /// `Server`.
    Server Response false ["http.server" "http_server"] None;
    /// `Connection`.
    Connection Both false ["http.connection" "http_connection"] None;
    /// `Accept`.
    Accept Request false ["http.accept" "http_accept"] None;
    /// `Accept-Encoding`.
    AcceptEncoding Request false ["http.accept_enc" "http_accept_enc"] None;
    /// `Accept-Language`.
    AcceptLanguage Request false ["http.accept_lang" "http_accept_lang"] None;
    /// The first line and the head of either side.
    Start Both false ["http.start" "http_start"] None;
    /// The content of a file: a response, an upload, a part of a mail.
    FileData Both true ["file.data" "file_data"] None;
    /// The name of a file.
    FileName Both true ["file.name" "filename"] None;
    /// The server that a TLS client asks for.
    TlsSni Request false ["tls.sni" "tls_sni"] None;
    /// The subject of the server's certificate.
    TlsSubject Response false ["tls.cert_subject" "tls_cert_subject"] None;
    /// The issuer of the server's certificate.
    TlsIssuer Response false ["tls.cert_issuer" "tls_cert_issuer"] None;
    /// The serial number of the server's certificate.
    TlsSerial Response false ["tls.cert_serial" "tls_cert_serial"] None;
    /// The SHA-1 of the server's certificate.
    TlsFingerprint Response false ["tls.cert_fingerprint" "tls_cert_fingerprint"] None;
    /// A certificate of the server's chain.
    TlsCerts Response true ["tls.certs"] None;
    /// A name that the server's certificate is for besides its subject.
    TlsAltName Response true ["tls.subjectaltname"] None;
    /// As many bytes as the server's chain has certificates. The name is no keyword.
    TlsChain Response false ["tls.a chain"] None;
    /// The random bytes of either side.
    TlsRandom Both true ["tls.random" "tls.random_time" "tls.random_bytes"] None;
    /// A fact of the handshake in words. The name is no keyword.
    TlsFact Both true ["tls.a fact"] None;
    /// JA3 of a client's offer.
    Ja3 Request false ["ja3.hash" "ja3_hash"] None;
    /// The numbers of JA3.
    Ja3String Request false ["ja3.string" "ja3_string"] None;
    /// JA4 of a client's offer.
    Ja4 Request false ["ja4.hash"] None;
    /// JA3S of a server's choice.
    Ja3s Response false ["ja3s.hash"] None;
    /// The numbers of JA3S.
    Ja3sString Response false ["ja3s.string"] None;
    /// The name in a question.
    DnsQuery Request true ["dns.query" "dns_query" "dns.query.name" "dns.queries.rrname"] None;
    /// The name of an SMTP client.
    SmtpHelo Request false ["smtp.helo"] None;
    /// The sender in an envelope.
    SmtpMailFrom Request false ["smtp.mail_from"] None;
    /// A recipient in an envelope.
    SmtpRcptTo Request true ["smtp.rcpt_to"] None;
    /// `From` of a mail.
    EmailFrom Both false ["email.from"] None;
    /// `To` of a mail.
    EmailTo Both false ["email.to"] None;
    /// `Cc` of a mail.
    EmailCc Both false ["email.cc"] None;
    /// `Subject` of a mail.
    EmailSubject Both false ["email.subject"] None;
    /// `Date` of a mail.
    EmailDate Both false ["email.date"] None;
    /// `Message-ID` of a mail.
    EmailMessageId Both false ["email.message_id"] None;
    /// `X-Mailer` of a mail.
    EmailXMailer Both false ["email.x_mailer"] None;
    /// `Received` of a mail.
    EmailReceived Both true ["email.received"] None;
    /// A URL in the text of a mail.
    EmailUrl Both true ["email.url"] None;
    /// The body of a mail as one line of MD5, where a host makes it.
    EmailBodyMd5 Both false ["email.body_md5"] None;
    /// A fault of a message, by the name that `app-layer-event` has for it. The name is no keyword: it has a blank.
    Event Both true ["an event"] None;
    /// A digest of a file. The name is no keyword.
    FileDigest Both true ["a digest of the file"] None;
    /// The name of a field of HTTP/2.
    Http2HeaderName Both true ["http2.header_name"] None;
}

/// A set of buffers, a bit each.
pub(super) type Buffers = u128;

impl Buffer {
    /// The bit that stands for it in a set of buffers.
    pub(super) fn bit(self) -> Buffers {
        const { assert!((Buffer::Http2HeaderName as u32) < Buffers::BITS, "the last one has a bit") };
        1 << self as u32
    }

    /// The protocols that fill it; empty where any may.
    pub(super) fn apps(self) -> &'static [App] {
        let name = self.name();
        match name.split_once('.').map_or(name, |(family, _)| family) {
            "http" => &[App::Http, App::Http2],
            "http2" => &[App::Http2],
            "tls" | "ja3" | "ja3s" | "ja4" => &[App::Tls],
            "dns" => &[App::Dns],
            "smtp" => &[App::Smtp],
            "email" => &[App::Smtp, App::Pop3, App::Imap],
            _ => &[],
        }
    }

    /// The buffer of one field of a head, where it has one.
    pub(super) fn of_field(name: &[u8]) -> Option<Buffer> {
        Some(match name.to_ascii_lowercase().as_slice() {
            b"host" => Buffer::Host,
            b"user-agent" => Buffer::UserAgent,
            b"cookie" | b"set-cookie" => Buffer::Cookie,
            b"content-type" => Buffer::ContentType,
            b"content-length" => Buffer::ContentLength,
            b"referer" => Buffer::Referer,
            b"location" => Buffer::Location,
            b"server" => Buffer::Server,
            b"connection" => Buffer::Connection,
            b"accept" => Buffer::Accept,
            b"accept-encoding" => Buffer::AcceptEncoding,
            b"accept-language" => Buffer::AcceptLanguage,
            _ => return None,
        })
    }
}
