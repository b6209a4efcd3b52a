//! One authority: our account there, and the way from an order to a certificate.
//!
//! ```text
//!  account ─► order ─► a question for each name ─► answered at port 80 ─► key and request ─► certificate
//! ```

use std::time::Duration;

use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, CertificateIdentifier, ChallengeType, Error, Identifier,
    NewAccount, NewOrder, Order, OrderStatus, RetryPolicy,
};
use tokio::time::sleep;
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::challenge::{self, Answers, Responder};
use super::https::Https;
use super::store;
use crate::settings::{Acme, Tls};

/// How long the authority may take to look at our answers, and again to make the certificate.
const PROCESSING_WAIT: Duration = Duration::from_secs(120);

/// How long other machines may take to answer challenges.
const SHARED_WAIT: Duration = Duration::from_secs(10);

/// The file of an account that the authority does not know any more.
const FORGOTTEN: &[u8] = b"null";

/// Where certificates come from.
pub struct Authority {
    settings: Acme,
    https: Https,
}

impl Authority {
    /// As the configuration says.
    ///
    /// # Errors
    /// When it cannot be spoken to.
    pub fn new(settings: &Tls) -> Result<Authority, String> {
        Ok(Authority { settings: settings.acme.clone(), https: Https::new(&settings.authorities)? })
    }

    /// When it wants this certificate to be renewed (RFC 9773), from then to then, in seconds since 1970; none if it
    /// does not say.
    pub async fn window(&self, certificate: &CertificateDer<'_>) -> Option<(i64, i64)> {
        let id = CertificateIdentifier::try_from(certificate).ok()?;
        let (info, _) = self.account().await.ok()?.renewal_info(&id).await.ok()?;
        Some((info.suggested_window.start.unix_timestamp(), info.suggested_window.end.unix_timestamp()))
    }

    /// Gets a certificate for these names: its key and its chain in PEM. `old` is the one that it replaces. Other machines answer
    /// challenges, too, if they are shared.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn certificate(
        &self,
        names: &[String],
        old: Option<&CertificateDer<'_>>,
        is_shared: bool,
    ) -> Result<String, String> {
        let account = self.account().await?;
        let identifiers: Vec<_> = names.iter().cloned().map(Identifier::Dns).collect();
        let replaced = old.and_then(|old| CertificateIdentifier::try_from(old).ok());
        let order = match replaced {
            Some(id) => match account.new_order(&NewOrder::new(&identifiers).replaces(id)).await {
                // It does not know that, or not this certificate.
                Err(_) => account.new_order(&NewOrder::new(&identifiers)).await,
                order => order,
            },
            None => account.new_order(&NewOrder::new(&identifiers)).await,
        };
        let mut order = order.map_err(|error| self.refused(&error))?;
        let responder = self.answer(&mut order, is_shared).await?;
        let retries = RetryPolicy::default().timeout(PROCESSING_WAIT);
        match order.poll_ready(&retries).await {
            Ok(OrderStatus::Ready) => {}
            Ok(_) => return Err(unproved(&mut order).await),
            Err(error) => return Err(error.to_string()),
        }
        drop(responder);
        let key = order.finalize().await.map_err(|error| error.to_string())?;
        let chain = order.poll_certificate(&retries).await.map_err(|error| error.to_string())?;
        Ok(key + &chain)
    }

    /// Puts a certificate with its key where it is found at the next start.
    ///
    /// # Errors
    /// When it cannot be written; the message names the file.
    pub fn keep(&self, name: &str, pem: &str) -> Result<(), String> {
        let path = store::path(&self.settings.folder, name);
        store::keep(&path, pem.as_bytes()).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Answers what is asked about each name.
    async fn answer(&self, order: &mut Order, is_shared: bool) -> Result<Responder, String> {
        let mut answers = Answers::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.map_err(|error| error.to_string())?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let name = authorization.identifier().to_string();
            let challenge = authorization.challenge(ChallengeType::Http01);
            let challenge = challenge.ok_or_else(|| format!("{name}: the authority does not ask by HTTP-01"))?;
            answers.insert(challenge::path(&challenge.token), challenge.key_authorization().as_str().into());
        }
        let address = self.settings.http;
        let responder = Responder::open(address, answers.clone()).await;
        let mut responder = responder.map_err(|error| format!("cannot listen on {address}: {error}"))?;
        if is_shared {
            let folder = &self.settings.folder;
            responder.share(folder, &answers).map_err(|error| format!("{}: {error}", folder.display()))?;
            sleep(SHARED_WAIT).await;
        }
        let mut authorizations = order.authorizations();
        while let Some(Ok(mut authorization)) = authorizations.next().await {
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            if let Some(mut challenge) = authorization.challenge(ChallengeType::Http01) {
                challenge.set_ready().await.map_err(|error| error.to_string())?;
            }
        }
        Ok(responder)
    }

    /// Our account; it is opened at the first time.
    async fn account(&self) -> Result<Account, String> {
        let Acme { directory, folder, contact, .. } = &self.settings;
        let path = store::account(folder, directory);
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let builder = Account::builder_with_http(Box::new(self.https.clone()));
        let kept = store::read(&path).map_err(|error| failed(&error))?;
        if let Some(kept) = kept.filter(|kept| kept != FORGOTTEN) {
            let credentials: AccountCredentials = serde_json::from_slice(&kept).map_err(|error| failed(&error))?;
            return builder.from_credentials(credentials).await.map_err(|error| self.refused(&error));
        }
        let contact = contact.as_ref().map(|address| format!("mailto:{address}"));
        let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
        let wanted = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
        let made = builder.create(&wanted, directory.clone(), None).await;
        let (account, credentials) = made.map_err(|error| self.refused(&error))?;
        let text = serde_json::to_vec(&credentials).map_err(|error| failed(&error))?;
        store::keep(&path, &text).map_err(|error| failed(&error))?;
        tracing::info!(directory, account = account.id(), "account opened");
        Ok(account)
    }

    /// Why a server did not do what it was asked. An account that it does not know any more is forgotten.
    fn refused(&self, error: &Error) -> String {
        const UNKNOWN: &str = "urn:ietf:params:acme:error:accountDoesNotExist";
        if matches!(error, Error::Api(problem) if problem.r#type.as_deref() == Some(UNKNOWN)) {
            // A file that is missing would come back from other machines that share it.
            let _ = store::keep(&store::account(&self.settings.folder, &self.settings.directory), FORGOTTEN);
        }
        format!("{}: {error}", self.settings.directory)
    }
}

/// Reasons of the authority for a failed challenge.
async fn unproved(order: &mut Order) -> String {
    let mut reasons = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let Ok(state) = authorization.refresh().await else { continue };
        reasons
            .extend(state.challenges.iter().filter_map(|challenge| challenge.error.as_ref()).map(ToString::to_string));
    }
    if reasons.is_empty() { "the authority refuses the order".into() } else { reasons.join("; ") }
}
