//! HTTPS for ACME: the client that fetches signatures, on threads apart.

use std::path::Path;
use std::pin::Pin;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use ureq::Agent;
use ureq::http::{Method, Request};

/// Seconds for a request with its answer.
const SECONDS_MAX: u64 = 60;

/// The largest answer.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Asks a server.
#[derive(Clone)]
pub struct Https(Agent);

impl Https {
    /// Servers have to show a certificate from `authorities`.
    ///
    /// # Errors
    /// When these cannot be read.
    pub fn new(authorities: &Path) -> Result<Https, String> {
        crate::net::agent::new(authorities, true, SECONDS_MAX).map(Https)
    }
}

impl HttpClient for Https {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let agent = self.0.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(|never| Error::Other(never.into()))?.to_bytes();
            let asked = tokio::task::spawn_blocking(move || ask(&agent, Request::from_parts(parts, body))).await;
            asked.map_err(|error| Error::Other(error.into()))?.map_err(|error| Error::Other(error.into()))
        })
    }
}

fn ask(agent: &Agent, request: Request<Bytes>) -> Result<BytesResponse, ureq::Error> {
    let response = match *request.method() {
        Method::POST => agent.run(request.map(Vec::from))?,
        _ => agent.run(request.map(drop))?,
    };
    let (parts, mut body) = response.into_parts();
    let bytes = body.with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
    Ok(BytesResponse { parts, body: Box::new(Bytes::from(bytes)) })
}
