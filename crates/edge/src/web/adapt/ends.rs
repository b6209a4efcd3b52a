//! Both ends between which services are asked: the pipe to the session, and the connection to the origin.

use proto::http::{ClientEvent, Fields, Framing, Limits, Request, Response, Server, ServerEvent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use std::rc::Rc;

use crate::net::stream::Stream;
use crate::porch::shared::Shared;
use crate::upstream::destination::Failure;
use crate::upstream::origin::Origin;
use crate::upstream::origins::Route;
use crate::web::session::SILENCE_WAIT;

/// A side of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The session.
    Client,
    /// The origin.
    Origin,
}

/// More of a body.
pub enum More {
    /// Content.
    Content(Vec<u8>),
    /// Its end, with the trailer.
    End(Fields),
}

/// The end of the pipe.
pub struct Pipe {
    stream: Stream,
    server: Server,
    input: Vec<u8>,
}

/// Both ends.
pub struct Ends {
    pub pipe: Pipe,
    /// None once it was given back, to be kept for this route.
    pub origin: Option<Origin>,
    pub shared: Rc<Shared>,
    pub route: Route,
}

impl Pipe {
    pub fn new(stream: Stream) -> Pipe {
        Pipe { stream, server: Server::new(Limits::default()), input: Vec::new() }
    }

    /// The request, when its head has come; none where nobody asks.
    pub async fn request(&mut self) -> Result<Option<Box<Request>>, Failure> {
        loop {
            let (taken, event) = self.server.step(&self.input);
            self.input.drain(..taken);
            match event {
                ServerEvent::Request(request) => return Ok(Some(request)),
                ServerEvent::Idle if taken > 0 => {}
                ServerEvent::Idle if self.stream.read_buf(&mut self.input).await? == 0 => return Ok(None),
                ServerEvent::Idle => {}
                _ => return Err(Failure::Ended),
            }
        }
    }

    /// More of the request's body. Nothing is lost when the wait is given up.
    async fn more(&mut self) -> Result<More, Failure> {
        loop {
            let (taken, event) = self.server.step(&self.input);
            let content = self.input.drain(..taken).collect();
            match event {
                ServerEvent::Content => return Ok(More::Content(content)),
                ServerEvent::End(trailer) => return Ok(More::End(trailer)),
                ServerEvent::Idle if taken > 0 => {}
                ServerEvent::Idle if self.stream.read_buf(&mut self.input).await? > 0 => {}
                _ => return Err(Failure::Ended),
            }
        }
    }

    async fn send(&mut self) -> Result<(), Failure> {
        self.stream.write_all(self.server.outbox()).await?;
        self.server.sent();
        Ok(self.stream.flush().await?)
    }
}

impl Ends {
    fn origin(&mut self) -> Result<&mut Origin, Failure> {
        self.origin.as_mut().ok_or(Failure::Ended)
    }

    /// More of the body that comes from this side. Nothing is lost when the wait is given up.
    pub async fn more(&mut self, from: Side) -> Result<More, Failure> {
        if from == Side::Client {
            return self.pipe.more().await;
        }
        let origin = self.origin()?;
        let (taken, event) = origin.next(SILENCE_WAIT).await?;
        let content = origin.wire.input()[..taken].to_vec();
        origin.wire.take(taken);
        match event {
            ClientEvent::Content => Ok(More::Content(content)),
            ClientEvent::End(trailer) => Ok(More::End(trailer)),
            _ => Err(Failure::Ended),
        }
    }

    /// Sends on content of a body; false where the origin takes no more: it may have said why.
    pub async fn content(&mut self, to: Side, content: &[u8]) -> Result<bool, Failure> {
        if to == Side::Client {
            self.pipe.server.content(content);
            return self.pipe.send().await.map(|()| true);
        }
        let origin = self.origin()?;
        origin.client.content(content);
        Ok(!origin.has_spoken().await && origin.send().await.is_ok())
    }

    /// Sends on the end of a body.
    pub async fn end(&mut self, to: Side, trailer: &Fields) -> Result<(), Failure> {
        if to == Side::Client {
            // With the end, the session drops its pipe, and ends the task.
            if let Some(origin) = self.origin.take() {
                self.shared.origins.give(&self.route, origin);
            }
            self.pipe.server.end(trailer);
            return self.pipe.send().await;
        }
        let origin = self.origin()?;
        origin.client.end(trailer);
        // Who has not taken it may have said why.
        let _ = origin.send().await;
        Ok(())
    }

    /// Begins the request to the origin.
    pub fn begin_request(&mut self, request: &Request) -> Result<(), Failure> {
        self.origin()?.request(request);
        Ok(())
    }

    /// Begins the response to the session.
    pub async fn begin_response(&mut self, response: &Response) -> Result<(), Failure> {
        self.pipe.server.respond(response);
        self.pipe.send().await
    }

    /// Hands the request on, which no service is asked about.
    pub async fn pass_request(&mut self, request: &Request) -> Result<(), Failure> {
        self.begin_request(request)?;
        self.pass(Side::Client, Side::Origin).await
    }

    /// Hands the response on, which no service is asked about.
    pub async fn pass_response(&mut self, response: &Response) -> Result<(), Failure> {
        self.begin_response(response).await?;
        self.pass(Side::Origin, Side::Client).await
    }

    /// Hands on all of a body that is still to come.
    pub async fn pass(&mut self, from: Side, to: Side) -> Result<(), Failure> {
        loop {
            match self.more(from).await? {
                More::Content(content) if !self.content(to, &content).await? => return Ok(()),
                More::Content(_) => {}
                More::End(trailer) => return self.end(to, &trailer).await,
            }
        }
    }

    /// The head of the response; interim ones go on.
    pub async fn response(&mut self) -> Result<Box<Response>, Failure> {
        loop {
            let origin = self.origin()?;
            origin.send().await?;
            let (taken, event) = origin.next(SILENCE_WAIT).await?;
            origin.wire.take(taken);
            match event {
                ClientEvent::Response(mut response) => {
                    if response.framing == Framing::Close {
                        // A body that ends with the connection could not be broken off so that the session sees it.
                        response.framing = Framing::Chunked;
                    }
                    return Ok(response);
                }
                ClientEvent::Interim(interim) => {
                    self.pipe.server.interim(&interim);
                    self.pipe.send().await?;
                }
                _ => return Err(Failure::Ended),
            }
        }
    }
}
