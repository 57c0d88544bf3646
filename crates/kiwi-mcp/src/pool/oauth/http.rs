//! The requests of the OAuth flow. They go to addresses that a server named, so only to hosts outside, or to the
//! server's own.

use kiwi_exec::{HostPattern, HttpClient, Reach};
use reqwest::header::LOCATION;
use reqwest::{Request, Url};
use rmcp::transport::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
};
use std::sync::Arc;
use std::time::Duration;

/// The longest answer: metadata and tokens are small.
const LONGEST: usize = 1 << 20;
const MOST_REDIRECTS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(30);

/// Makes the requests of one server's OAuth flow.
pub(super) struct Requests {
    http: Arc<HttpClient>,
    server: Option<Url>,
}

impl Requests {
    pub fn new(http: Arc<HttpClient>, server: &str) -> Self {
        Self { http, server: Url::parse(server).ok() }
    }

    /// Where a request may go. A server on this machine may have its authorization server on this machine.
    fn reach(&self, url: &Url) -> Reach {
        let own = self.server.as_ref();
        let is_own = own.is_some_and(|own| own.host_str() == url.host_str());
        let is_near = own.is_some_and(is_here) && is_here(url);
        if !is_own && !is_near {
            return Reach::default();
        }
        let host = url.host_str().and_then(|host| host.parse::<HostPattern>().ok());
        Reach { is_named: true, allow_hosts: Some(host.into_iter().collect()) }
    }

    async fn send(&self, asked: OAuthHttpRequest) -> Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
        let OAuthHttpRequest { request, redirect_policy, timeout, .. } = asked;
        let request = Request::try_from(request)?;
        let work = self.follow(request, redirect_policy);
        tokio::time::timeout(timeout.unwrap_or(PATIENCE), work).await?
    }

    async fn follow(
        &self,
        mut request: Request,
        policy: OAuthHttpRedirectPolicy,
    ) -> Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
        for _ in 0..=MOST_REDIRECTS {
            let url = request.url().clone();
            let next = request.try_clone();
            let client = self.http.streaming(url.as_str(), &self.reach(&url))?;
            let mut response = client.execute(request).await?;
            let location = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let location = location.and_then(|to| url.join(to).ok());
            if let (Some(to), Some(mut again), OAuthHttpRedirectPolicy::Follow) = (location, next, policy)
                && response.status().is_redirection()
            {
                if to.origin() != url.origin() {
                    return Err(format!("`{url}` leads to another host, `{to}`").into());
                }
                *again.url_mut() = to;
                request = again;
                continue;
            }
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await? {
                if body.len() + chunk.len() > LONGEST {
                    return Err("the answer is too long".into());
                }
                body.extend_from_slice(&chunk);
            }
            let mut answer = http::Response::new(body);
            *answer.status_mut() = response.status();
            *answer.headers_mut() = std::mem::take(response.headers_mut());
            return Ok(answer);
        }
        Err("too many redirects".into())
    }
}

impl OAuthHttpClient for Requests {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.send(request))
    }
}

/// Whether an address is this machine's own.
fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
