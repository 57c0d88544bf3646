//! What an HTTP request of a manifest is: its parts, who asks, and who chose its host.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One HTTP request.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpCall {
    /// The method.
    pub method: String,
    /// The address, parameters escaped.
    pub url: String,
    /// Whether the manifest names the host (or the socket) itself, without templates.
    pub host_is_named: bool,
    /// The only other hosts that may be contacted.
    pub allow_hosts: Option<Vec<String>>,
    /// Hosts that the chain's permissions declare, those that a parameter has a say in left out.
    pub declared_hosts: Vec<String>,
    /// Headers.
    pub headers: BTreeMap<String, String>,
    /// Query parameters.
    pub query: Vec<(String, String)>,
    /// What is sent.
    pub body: HttpBody,
    /// Who asks.
    pub auth: Option<AuthCall>,
    /// Seconds it may take.
    pub timeout: Option<f64>,
    /// How often it is made again.
    pub retries: u32,
    /// Bytes the answer may have.
    pub max_response: Option<u64>,
    /// Whether redirects are followed.
    pub follow_redirects: bool,
    /// JSON pointer of the part of the answer that is the result.
    pub response: Option<String>,
}

/// The body of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum HttpBody {
    /// None.
    Empty,
    /// JSON.
    Json(Value),
    /// Plain text.
    Text(String),
    /// A form.
    Form(Vec<(String, String)>),
}

/// Who asks. Secrets are named here and known elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthCall {
    /// The name of the secret.
    pub secret: String,
    /// What is done with it.
    pub scheme: AuthScheme,
}

/// What is done with a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthScheme {
    /// Sent as a token.
    Bearer,
    /// Sent as a password.
    Basic {
        /// The user it belongs to.
        username: String,
    },
    /// Sent in a header.
    KeyInHeader {
        /// The header.
        name: String,
    },
    /// Sent in the query.
    KeyInQuery {
        /// The field.
        name: String,
    },
    /// Exchanged for a token, which is sent.
    OAuth2 {
        /// Where.
        token_url: String,
        /// The client it belongs to.
        client_id: String,
        /// What the token is to allow.
        scopes: Vec<String>,
    },
}

impl HttpCall {
    /// The request in a form that is equal for equal plans. Secrets have names here and nothing else.
    pub(crate) fn describe(&self) -> Value {
        let body = match &self.body {
            HttpBody::Empty => Value::Null,
            HttpBody::Json(value) => value.clone(),
            HttpBody::Text(text) => json!(text),
            HttpBody::Form(fields) => json!(fields),
        };
        let mut would = json!({"method": self.method, "url": self.url, "headers": self.headers, "query": self.query, "body": body});
        let mut add = |key: &str, value: Option<Value>| {
            if let (Some(value), Some(would)) = (value, would.as_object_mut()) {
                would.insert(key.into(), value);
            }
        };
        add("auth", self.auth.as_ref().map(AuthCall::describe));
        add("allow_hosts", self.allow_hosts.as_ref().map(|hosts| json!(hosts)));
        add("retries", (self.retries > 0).then(|| json!(self.retries)));
        would
    }
}

impl AuthCall {
    fn describe(&self) -> Value {
        let secret = &self.secret;
        match &self.scheme {
            AuthScheme::Bearer => json!({"type": "bearer", "secret": secret}),
            AuthScheme::Basic { username } => {
                json!({"type": "basic", "username": username, "secret": secret})
            }
            AuthScheme::KeyInHeader { name } => {
                json!({"type": "api_key", "in": "header", "name": name, "secret": secret})
            }
            AuthScheme::KeyInQuery { name } => {
                json!({"type": "api_key", "in": "query", "name": name, "secret": secret})
            }
            AuthScheme::OAuth2 { token_url, client_id, scopes } => {
                json!({"type": "oauth2_client_credentials", "token_url": token_url, "client_id": client_id, "scopes": scopes, "secret": secret})
            }
        }
    }
}

/// Who says which host is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostChoice {
    /// The manifest.
    Manifest,
    /// The machine: a variable.
    Machine,
    /// The caller: a parameter.
    Caller,
}

impl HostChoice {
    /// Reads it off an address whose templates are not rendered yet.
    pub fn of(url: &str) -> Self {
        let host = if let Some(rest) = url.strip_prefix("unix:") {
            rest.split_once(":/").map(|(socket, _)| socket)
        } else {
            let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
            rest.and_then(|rest| rest.split(['/', '\\', '?', '#']).next())
        };
        match host {
            Some(host) if !host.is_empty() && !host.contains(['{', '}', '$']) => Self::Manifest,
            Some(host) if !host.replace("${", "").contains('{') => Self::Machine,
            _ => Self::Caller,
        }
    }
}

/// What to do about a configuration that `http_client` does not accept because of the part at this pointer.
pub(crate) fn advice(config: &Map<String, Value>, pointer: &str) -> Option<String> {
    const INLINE: [&str; 7] =
        ["token", "password", "value", "key", "client_secret", "api_key", "access_token"];
    const BODIES: [&str; 3] = ["json", "body", "form"];
    let key = pointer.split('/').nth(1).unwrap_or_default();
    if key == "auth" {
        let auth = config.get("auth")?;
        if INLINE.iter().any(|key| auth.get(key).is_some()) {
            return Some("a manifest names a secret and never holds one: write `secret: NAME`, and `kiwi auth set NAME` stores it".into());
        }
        return Some("`auth` is {type: bearer, secret}, {type: basic, username, secret}, {type: api_key, in: header or query, name, secret} or {type: oauth2_client_credentials, token_url, client_id, secret, scopes}".into());
    }
    if key == "url" {
        return Some(
            "an address starts with `http://` or `https://` and names a host, or is `unix:/SOCKET:/PATH`"
                .into(),
        );
    }
    let is_doubled =
        BODIES.contains(&key) && BODIES.iter().filter(|body| config.contains_key(**body)).count() > 1;
    is_doubled.then(|| "a request has one body: give `json`, `body` or `form`".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_chooses_the_host_is_read_off_the_address() {
        for (url, expected) in [
            ("http://127.0.0.1:1/{x}", HostChoice::Manifest),
            ("https://api.example.org?{x}", HostChoice::Manifest),
            ("https://api.example.org#{x}", HostChoice::Manifest),
            ("http://localhost\\{x}", HostChoice::Manifest),
            ("unix:/run/x.sock:/v1/{x}", HostChoice::Manifest),
            ("http://localhost:{port}/", HostChoice::Caller),
            ("http://{host}/", HostChoice::Caller),
            ("http://a{x}", HostChoice::Caller),
            ("http://${HOST}.{x}/", HostChoice::Caller),
            ("http://${HOST}/{x}", HostChoice::Machine),
            ("unix:/run/{x}.sock:/", HostChoice::Caller),
            ("unix:/run/x.sock", HostChoice::Caller),
            ("http:///x", HostChoice::Machine),
            ("{url}", HostChoice::Caller),
        ] {
            assert_eq!(HostChoice::of(url), expected, "{url}");
        }
    }
}
