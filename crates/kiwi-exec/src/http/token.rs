//! Tokens of OAuth 2.0 clients: fetched when needed, kept while they last.

use kiwi_model::Secret;
use serde_json::Value;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::HttpClient;
use super::answer::HttpResponse;
use super::asked::Asked;
use super::auth::{Auth, Credential, OAuth2Client, form_encoded};
use super::failure::Failure;
use super::reach::Reach;
use super::request::{Body, HttpRequest, Redirects};
use crate::error::ExecError;

/// A token is given up this long before its end, or after half its life if that is short.
const MARGIN: Duration = Duration::from_secs(30);
/// A token is small; whatever is larger is none.
const MAX_ANSWER: u64 = 1 << 20;
/// How many are kept.
const MOST_KEPT: usize = 256;

/// The tokens that are good for now.
#[derive(Debug, Default)]
pub(super) struct Tokens(Mutex<Vec<Kept>>);

#[derive(Debug)]
struct Kept {
    client: OAuth2Client,
    token: Secret,
    until: Option<Instant>,
}

impl Tokens {
    fn find(&self, client: &OAuth2Client) -> Option<Secret> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        kept.retain(|it| it.until.is_none_or(|until| now < until));
        kept.iter().find(|it| it.client == *client).map(|it| it.token.clone())
    }

    fn keep(&self, client: &OAuth2Client, token: &Secret, life: Option<Duration>) {
        let lasts = life.map(|life| life.saturating_sub(MARGIN.min(life / 2)));
        let until = lasts.and_then(|lasts| Instant::now().checked_add(lasts));
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|it| it.client != *client);
        if kept.len() == MOST_KEPT {
            kept.remove(0);
        }
        kept.push(Kept { client: client.clone(), token: token.clone(), until });
    }

    /// Another one may have come in the meantime; that one stays.
    fn forget(&self, client: &OAuth2Client, token: &Secret) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|it| it.client != *client || it.token != *token);
    }
}

impl HttpClient {
    /// One try by whoever asks. A token that is refused is fetched once more.
    pub(super) async fn attempt(
        &self,
        asked: &Asked,
        request: &HttpRequest,
    ) -> Result<HttpResponse, Failure> {
        let credential = match &request.auth {
            None => return self.exchange(asked.clone(), request).await,
            Some(Auth::Bearer { token }) => Credential::bearer(token)?,
            Some(Auth::Basic { username, password }) => Credential::basic(username, password)?,
            Some(Auth::ApiKey { place, name, key }) => Credential::key(*place, name, key)?,
            Some(Auth::OAuth2(client)) => {
                let token = self.token(client, request).await?;
                let outcome = self.attempt_by(Credential::bearer(&token)?, asked, request).await;
                match outcome {
                    Err(Failure { error: ExecError::HttpStatus { status: 401, .. }, .. }) => {
                        self.tokens.forget(client, &token);
                        Credential::bearer(&self.token(client, request).await?)?
                    }
                    other => return other,
                }
            }
        };
        self.attempt_by(credential, asked, request).await
    }

    async fn attempt_by(
        &self,
        credential: Credential,
        asked: &Asked,
        request: &HttpRequest,
    ) -> Result<HttpResponse, Failure> {
        let veil = credential.veil.clone();
        veil.outcome(self.exchange(asked.by(Some(credential)), request).await)
    }

    async fn token(&self, client: &OAuth2Client, request: &HttpRequest) -> Result<Secret, Failure> {
        if let Some(token) = self.tokens.find(client) {
            return Ok(token);
        }
        let mut fields = vec![("grant_type".to_owned(), "client_credentials".to_owned())];
        if !client.scopes.is_empty() {
            fields.push(("scope".into(), client.scopes.join(" ")));
        }
        // The manifest names where tokens come from, so the same list applies as for the address itself.
        let wanted = HttpRequest {
            method: "POST".into(),
            url: client.token_url.clone(),
            headers: vec![("accept".into(), "application/json".into())],
            query: Vec::new(),
            body: Body::Form(fields),
            auth: None,
            reach: Reach { is_named: true, allow_hosts: request.reach.allow_hosts.clone() },
            timeout: request.timeout,
            max_response: MAX_ANSWER,
            redirects: Redirects::Keep,
            retries: 0,
        };
        // RFC 6749, 2.3.1: both are written as a form has them.
        let (id, secret) = (form_encoded(&client.client_id), form_encoded(client.client_secret.expose()));
        let credential = Credential::basic(&id, &Secret::new(secret))?;
        let asked = Asked::new(&wanted)?;
        let url = asked.shown();
        let answer = self.attempt_by(credential.veiling(&client.client_secret), &asked, &wanted).await;
        let answer = answer.map_err(|failure| Failure { error: no_token(failure.error), ..failure })?;
        let (token, life) = read(&answer.body.into_value()).map_err(|why| {
            // What was given instead may hold a token of another kind: it is not shown.
            ExecError::NoToken { url, why: why.into(), body: Value::Null }
        })?;
        self.tokens.keep(client, &token, life);
        Ok(token)
    }
}

fn no_token(error: ExecError) -> ExecError {
    match error {
        ExecError::HttpStatus { url, status, body } => {
            ExecError::NoToken { url, why: format!("it answered with status {status}"), body }
        }
        other => other,
    }
}

/// The token and how long it lasts.
fn read(answer: &Value) -> Result<(Secret, Option<Duration>), &'static str> {
    let kind = answer.get("token_type").and_then(Value::as_str).unwrap_or("bearer");
    if !kind.eq_ignore_ascii_case("bearer") {
        return Err("the token is not a bearer token");
    }
    let token = answer.get("access_token").and_then(Value::as_str).filter(|token| !token.is_empty());
    let token = token.ok_or("the answer holds no `access_token`")?;
    let life = answer.get("expires_in");
    let life = life.and_then(|life| life.as_f64().or_else(|| life.as_str()?.parse().ok()));
    let life = life.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Ok((Secret::new(token), life))
}
