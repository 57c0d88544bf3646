//! Tokens from an authorisation server: renewed, asked for in the client's own name, or granted by a person elsewhere.

use jiff::{SignedDuration, Timestamp};
use kiwi_exec::{Body, HttpClient, HttpRequest, Reach, Redirects};
use kiwi_model::{ErrorKind, Explain, Fault, Secret};
use kiwi_space::{Credential, Refresh};
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_ANSWER: u64 = 1 << 20;
const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// A token as the server gives it.
#[derive(Deserialize)]
pub(crate) struct Token {
    #[serde(rename = "access_token")]
    access: String,
    expires_in: Option<u64>,
    #[serde(rename = "refresh_token")]
    refresh: Option<String>,
    scope: Option<String>,
}

impl Token {
    /// As it is stored. Where the server says nothing about scopes, those that were asked for were granted.
    pub fn into_credential(self, mut refresh: Refresh, asked: &[String]) -> Credential {
        let now = Timestamp::now();
        let lives =
            self.expires_in.and_then(|seconds| i64::try_from(seconds).ok()).map(SignedDuration::from_secs);
        let renewable = self.refresh.is_some() || refresh.token.is_some() || refresh.client_secret.is_some();
        refresh.token = self.refresh.map(Secret::new).or(refresh.token);
        let scopes = self.scope.map(|scope| scope.split_whitespace().map(str::to_owned).collect());
        Credential {
            secret: Secret::new(self.access),
            expires_at: lives.and_then(|lives| now.checked_add(lives).ok()),
            refresh: renewable.then_some(refresh),
            scopes: scopes.unwrap_or_else(|| asked.to_vec()),
            stored_at: now,
        }
    }
}

/// A person is asked to go somewhere and enter a code.
#[derive(Debug, Clone, Deserialize)]
pub struct DeviceCode {
    #[serde(rename = "device_code")]
    code: String,
    /// What to enter.
    pub user_code: String,
    /// Where.
    pub verification_uri: String,
    #[serde(default = "five")]
    interval: u64,
    #[serde(default = "quarter_of_an_hour")]
    expires_in: u64,
}

fn five() -> u64 {
    5
}

fn quarter_of_an_hour() -> u64 {
    900
}

/// A new token for an old one, or in the client's own name.
pub(crate) async fn renew(http: &HttpClient, refresh: &Refresh) -> Result<Token, Fault> {
    let mut form = match &refresh.token {
        Some(token) => vec![("grant_type", "refresh_token"), ("refresh_token", token.expose())],
        None => vec![("grant_type", "client_credentials")],
    };
    form.extend(client(refresh));
    read(post(http, &refresh.token_url, &form).await?)
}

/// A first token in the client's own name.
pub(crate) async fn client_token(
    http: &HttpClient,
    refresh: &Refresh,
    scopes: &[String],
) -> Result<Token, Fault> {
    let scope = scopes.join(" ");
    let mut form = vec![("grant_type", "client_credentials")];
    form.extend(client(refresh));
    if !scope.is_empty() {
        form.push(("scope", &scope));
    }
    read(post(http, &refresh.token_url, &form).await?)
}

/// Begins a login that a person finishes in a browser.
pub(crate) async fn begin_device(
    http: &HttpClient,
    device_url: &str,
    refresh: &Refresh,
    scopes: &[String],
) -> Result<DeviceCode, Fault> {
    let scope = scopes.join(" ");
    read(post(http, device_url, &[("client_id", &refresh.client_id), ("scope", &scope)]).await?)
}

/// Waits until the person has finished it.
pub(crate) async fn finish_device(
    http: &HttpClient,
    code: &DeviceCode,
    refresh: &Refresh,
) -> Result<Token, Fault> {
    let mut pause = Duration::from_secs(code.interval.clamp(1, 60));
    let deadline = tokio::time::Instant::now() + Duration::from_secs(code.expires_in.min(3600));
    loop {
        tokio::time::sleep(pause).await;
        let mut form = vec![("grant_type", DEVICE_GRANT), ("device_code", &code.code)];
        form.extend(client(refresh));
        let fault = match post(http, &refresh.token_url, &form).await {
            Ok(answer) => return read(answer),
            Err(fault) => fault,
        };
        match error_of(&fault) {
            Some("authorization_pending") => {}
            Some("slow_down") => pause += Duration::from_secs(5),
            _ => return Err(fault),
        }
        if tokio::time::Instant::now() > deadline {
            return Err(Fault::new(ErrorKind::Timeout, "nobody entered the code in time"));
        }
    }
}

fn client(refresh: &Refresh) -> Vec<(&str, &str)> {
    let secret = refresh.client_secret.as_ref().map(|secret| ("client_secret", secret.expose()));
    std::iter::once(("client_id", refresh.client_id.as_str())).chain(secret).collect()
}

async fn post(http: &HttpClient, url: &str, form: &[(&str, &str)]) -> Result<Value, Fault> {
    let form = form.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let request = HttpRequest {
        method: "POST".into(),
        url: url.to_owned(),
        headers: vec![("Accept".into(), "application/json".into())],
        query: Vec::new(),
        body: Body::Form(form),
        auth: None,
        // The user named it.
        reach: Reach { is_named: true, allow_hosts: None },
        timeout: TIMEOUT,
        max_response: MAX_ANSWER,
        redirects: Redirects::Keep,
        retries: 0,
    };
    http.send(request).await.map(|answer| answer.body.into_value()).map_err(|error| error.fault())
}

/// The error code of an answer that carries one.
fn error_of(fault: &Fault) -> Option<&str> {
    fault.details.get("body")?.get("error")?.as_str()
}

fn read<T: for<'de> Deserialize<'de>>(answer: Value) -> Result<T, Fault> {
    serde_json::from_value(answer).map_err(|_| {
        Fault::new(
            ErrorKind::UpstreamUnavailable,
            "the authorisation server's answer is not what OAuth promises",
        )
    })
}
