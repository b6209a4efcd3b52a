//! The one stream that every door and every connection to a server stands on: TCP, a UNIX socket, or TLS over TCP.
//!
//! A stream begins in the clear or encrypted and may become encrypted once. What has been read from it before and not
//! been looked at is the caller's to throw away: it was said by nobody knows whom.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{CipherSuite, ClientConfig, ProtocolVersion, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// How long a handshake may take.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(30);

/// How long the other side may take to take our farewell.
const FAREWELL_WAIT: Duration = Duration::from_secs(1);

/// Bytes read at a time by way of the buffer that streams share.
pub const SHARED_BYTES: usize = 32 << 10;

thread_local! {
    /// Read buffer of an event loop, for streams without room of their own; nothing stays in it.
    static SHARED: RefCell<Box<[u8]>> = RefCell::new(vec![0; SHARED_BYTES].into_boxed_slice());
}

/// A connection.
pub enum Stream {
    /// In the clear.
    Tcp(TcpStream),
    /// On this machine.
    Unix(UnixStream),
    /// Encrypted.
    Tls(Box<TlsStream<Begun>>),
    /// Within the program.
    Within(DuplexStream),
}

/// A connection below TLS, of which some bytes may have been read already.
pub struct Begun {
    said: Vec<u8>,
    at: usize,
    stream: Stream,
}

/// Encryption of a connection, in the names that mail servers log: `TLSv1.3 TLS_AES_256_GCM_SHA384`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cipher {
    version: ProtocolVersion,
    suite: CipherSuite,
}

impl Cipher {
    /// The number of its version of TLS.
    pub fn version(&self) -> u16 {
        self.version.into()
    }
}

impl fmt::Display for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (version, suite) = (self.version.as_str().unwrap_or("TLS"), self.suite.as_str().unwrap_or("unknown"));
        write!(f, "{} {}", version.replace('_', "."), suite.replace("TLS13_", "TLS_"))
    }
}

impl Stream {
    /// Connects to `host:port`, or to the path of a UNIX socket.
    pub async fn connect(address: &str) -> io::Result<Stream> {
        if address.starts_with('/') {
            return Ok(Stream::Unix(UnixStream::connect(address).await?));
        }
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Stream::Tcp(stream))
    }

    /// Connects to `server` under another's address; what comes back to it has to be brought to us by the packet filter.
    ///
    /// # Errors
    /// When the server cannot be reached, or we may not do that.
    pub async fn connect_from(source: IpAddr, server: SocketAddr) -> io::Result<Stream> {
        let socket = Socket::new(Domain::for_address(server), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        set_transparent(&socket, server.is_ipv4())?;
        socket.bind(&SocketAddr::new(source, 0).into())?;
        let stream = TcpSocket::from_std_stream(socket.into()).connect(server).await?;
        stream.set_nodelay(true)?;
        Ok(Stream::Tcp(stream))
    }

    /// Shakes hands with a client.
    ///
    /// # Errors
    /// When that fails or takes too long; the connection is of no more use.
    pub async fn accept_tls(self, config: Arc<ServerConfig>) -> io::Result<Stream> {
        self.accept_begun_tls(Vec::new(), config).await
    }

    /// As [`Stream::accept_tls`], where the client has said this already.
    pub async fn accept_begun_tls(self, said: Vec<u8>, config: Arc<ServerConfig>) -> io::Result<Stream> {
        let begun = self.begun(said)?;
        let stream = timeout(HANDSHAKE_WAIT, TlsAcceptor::from(config).accept(begun)).await??;
        Ok(Stream::Tls(Box::new(stream.into())))
    }

    /// Shakes hands with a server.
    ///
    /// # Errors
    /// As [`Stream::accept_tls`], and when the server does not prove who it is.
    pub async fn connect_tls(self, config: Arc<ClientConfig>, name: ServerName<'static>) -> io::Result<Stream> {
        let handshake = TlsConnector::from(config).connect(name, self.begun(Vec::new())?);
        Ok(Stream::Tls(Box::new(timeout(HANDSHAKE_WAIT, handshake).await??.into())))
    }

    /// Whether nothing has come that is not read yet, not even the end.
    pub fn is_quiet(&self) -> bool {
        let mut byte = [0];
        let read = match self {
            Stream::Tcp(stream) => stream.try_read(&mut byte),
            Stream::Unix(stream) => stream.try_read(&mut byte),
            Stream::Tls(stream) => return stream.get_ref().0.stream.is_quiet(),
            Stream::Within(_) => return false,
        };
        matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    fn begun(self, said: Vec<u8>) -> io::Result<Begun> {
        match self {
            Stream::Unix(_) | Stream::Within(_) => Err(io::Error::other("no TLS over this stream")),
            stream => Ok(Begun { said, at: 0, stream }),
        }
    }

    /// Both ends of a stream within the program, which holds so many bytes in each direction.
    pub fn within(bytes: usize) -> (Stream, Stream) {
        let (one, other) = tokio::io::duplex(bytes);
        (Stream::Within(one), Stream::Within(other))
    }

    /// The connection under all of it; none on a UNIX socket and within the program.
    fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Stream::Tcp(stream) => Some(stream),
            Stream::Tls(stream) => stream.get_ref().0.stream.tcp(),
            Stream::Unix(_) | Stream::Within(_) => None,
        }
    }

    /// Its encryption; none in the clear.
    pub fn cipher(&self) -> Option<Cipher> {
        let Stream::Tls(stream) = self else { return None };
        let state = stream.get_ref().1;
        Some(Cipher { version: state.protocol_version()?, suite: state.negotiated_cipher_suite()?.suite() })
    }

    /// The protocol that both sides have agreed on in their handshake (RFC 7301).
    pub fn agreed_protocol(&self) -> Option<&[u8]> {
        match self {
            Stream::Tls(stream) => stream.get_ref().1.alpn_protocol(),
            Stream::Tcp(_) | Stream::Unix(_) | Stream::Within(_) => None,
        }
    }

    /// Whether it is encrypted.
    pub const fn is_encrypted(&self) -> bool {
        matches!(self, Stream::Tls(_))
    }

    /// Our end of a connection in the clear; none on a UNIX socket.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.local_addr().ok(),
            Stream::Unix(_) | Stream::Tls(_) | Stream::Within(_) => None,
        }
    }

    /// The certificates that the server has shown, its own first; none where we are the server.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        match self {
            Stream::Tls(stream) => match &**stream {
                TlsStream::Client(stream) => stream.get_ref().1.peer_certificates().unwrap_or_default(),
                TlsStream::Server(_) => &[],
            },
            Stream::Tcp(_) | Stream::Unix(_) | Stream::Within(_) => &[],
        }
    }

    /// The name that the client has asked for in its handshake.
    pub fn server_name(&self) -> Option<&str> {
        match self {
            Stream::Tls(stream) => match &**stream {
                TlsStream::Server(stream) => stream.get_ref().1.server_name(),
                TlsStream::Client(_) => None,
            },
            Stream::Tcp(_) | Stream::Unix(_) | Stream::Within(_) => None,
        }
    }

    /// Appends what has come already, without waiting; none if nothing has.
    pub async fn read_ready(&mut self, input: &mut Vec<u8>) -> io::Result<Option<usize>> {
        std::future::poll_fn(|context| match self.poll_append(context, input) {
            Poll::Ready(outcome) => Poll::Ready(outcome.map(Some)),
            Poll::Pending => Poll::Ready(Ok(None)),
        })
        .await
    }

    /// Waits for more and appends it; 0 at the end of the stream. Nothing is lost when the wait is given up.
    pub async fn append(&mut self, input: &mut Vec<u8>) -> io::Result<usize> {
        std::future::poll_fn(|context| self.poll_append(context, input)).await
    }

    /// Appends to the room that `input` has; where it has none, by way of a buffer that all streams of the event loop
    /// share, so that whoever waits holds no buffer.
    pub fn poll_append(&mut self, context: &mut Context<'_>, input: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        if input.capacity() > input.len() {
            return std::pin::pin!(self.read_buf(input)).poll(context);
        }
        SHARED.with_borrow_mut(|shared| {
            let mut read = ReadBuf::new(shared);
            std::task::ready!(Pin::new(self).poll_read(context, &mut read))?;
            input.extend_from_slice(read.filled());
            Poll::Ready(Ok(read.filled().len()))
        })
    }

    /// Writes as much as there is room for, without waiting; 0 if there is none.
    pub async fn write_ready(&mut self, bytes: &[u8]) -> io::Result<usize> {
        std::future::poll_fn(|context| match Pin::new(&mut *self).poll_write(context, bytes) {
            Poll::Ready(outcome) => Poll::Ready(outcome),
            Poll::Pending => Poll::Ready(Ok(0)),
        })
        .await
    }

    /// The last words follow, and then [`Stream::close`]: they go out as one packet (TCP_CORK, see tcp(7)). Where the end does
    /// not follow they may be lost: a socket that is dropped with unread input forgets what it has not sent.
    pub fn conclude(&self) {
        let Some(tcp) = self.tcp() else { return };
        // Where that cannot be they are two.
        let _ = SockRef::from(tcp).set_tcp_cork(true);
    }

    /// Ends it by a reset: whoever reads gets an error, and no end.
    pub fn reset(self) {
        let Some(tcp) = self.tcp() else { return };
        // Where that cannot be it ends without the farewell of TLS, or as any other does.
        let _ = SockRef::from(tcp).set_linger(Some(Duration::ZERO));
    }

    /// Ends it in good order, as far as the other side goes along.
    pub async fn close(mut self) {
        let _ = timeout(FAREWELL_WAIT, self.shutdown()).await;
    }
}

/// Lets a socket have addresses that are not this machine's.
pub fn set_transparent(socket: &Socket, ipv4: bool) -> io::Result<()> {
    let set = if ipv4 { socket.set_ip_transparent_v4(true) } else { socket.set_ip_transparent_v6(true) };
    set.map_err(|error| io::Error::new(error.kind(), format!("not without CAP_NET_ADMIN: {error}")))
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Within(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Within(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Stream::Unix(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
            Stream::Within(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Within(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

impl AsyncRead for Begun {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let begun = self.get_mut();
        if begun.at == begun.said.len() {
            begun.said = Vec::new();
            begun.at = 0;
            return Pin::new(&mut begun.stream).poll_read(context, buffer);
        }
        let piece = &begun.said[begun.at..];
        let piece = &piece[..piece.len().min(buffer.remaining())];
        buffer.put_slice(piece);
        begun.at += piece.len();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Begun {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;

    #[tokio::test]
    async fn what_says_something_unasked_or_hangs_up_is_not_quiet() {
        let (mut server, ours) = UnixStream::pair().expect("a pair");
        let stream = Stream::Unix(ours);
        assert!(stream.is_quiet());
        server.write_all(b"250 late\r\n").await.expect("room");
        stops_being_quiet(&stream).await;
        let (server, ours) = UnixStream::pair().expect("a pair");
        let stream = Stream::Unix(ours);
        drop(server);
        stops_being_quiet(&stream).await;
    }

    /// The event loop hears of it at its next turn.
    async fn stops_being_quiet(stream: &Stream) {
        let heard = async {
            while stream.is_quiet() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), heard).await.expect("it is heard of");
    }
}
