//! Who asks: secrets that were looked up, and how a request carries them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kiwi_model::Secret;
use reqwest::header::{self, HeaderName, HeaderValue};

use super::target::encode;
use super::veil::Veil;
use crate::error::ExecError;

/// How a request shows who it comes from. Secrets are sent to the service of the address and to no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// `Authorization: Bearer …`.
    Bearer {
        /// The token.
        token: Secret,
    },
    /// `Authorization: Basic …`.
    Basic {
        /// The user's name.
        username: String,
        /// The user's password.
        password: Secret,
    },
    /// A key in a header or in the query.
    ApiKey {
        /// Where it goes.
        place: KeyPlace,
        /// The name of the header or of the field.
        name: String,
        /// The key.
        key: Secret,
    },
    /// A token that is fetched first, with a client's own credentials.
    OAuth2(OAuth2Client),
}

/// Where an API key goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlace {
    /// Into a header.
    Header,
    /// Into the query.
    Query,
}

/// A client of an authorization server (OAuth 2.0, client credentials).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuth2Client {
    /// Where tokens are given out. The manifest names it, as it names the address itself.
    pub token_url: String,
    /// The client's name.
    pub client_id: String,
    /// The client's secret.
    pub client_secret: Secret,
    /// What the token is to allow; empty for what the server gives by itself.
    pub scopes: Vec<String>,
}

/// What a request carries.
#[derive(Clone)]
pub(super) struct Credential {
    form: Form,
    /// Hides it in whatever comes back.
    pub veil: Veil,
}

#[derive(Clone)]
enum Form {
    Header(HeaderName, HeaderValue),
    Query(String, Secret),
}

impl Credential {
    pub fn bearer(token: &Secret) -> Result<Self, ExecError> {
        let veil = Veil::over(&[token.expose()]);
        Self::header(header::AUTHORIZATION, &format!("Bearer {}", token.expose()), veil)
    }

    pub fn basic(username: &str, password: &Secret) -> Result<Self, ExecError> {
        let pair = STANDARD.encode(format!("{username}:{}", password.expose()));
        let veil = Veil::over(&[password.expose(), &pair]);
        Self::header(header::AUTHORIZATION, &format!("Basic {pair}"), veil)
    }

    pub fn key(place: KeyPlace, name: &str, key: &Secret) -> Result<Self, ExecError> {
        let veil = Veil::over(&[key.expose(), &form_encoded(key.expose())]);
        match place {
            KeyPlace::Header => {
                let name = HeaderName::try_from(name)
                    .map_err(|_| ExecError::BadRequest { what: "header", value: name.to_owned() })?;
                Self::header(name, key.expose(), veil)
            }
            KeyPlace::Query => Ok(Self { form: Form::Query(name.to_owned(), key.clone()), veil }),
        }
    }

    /// The same, with one more secret to hide.
    pub fn veiling(self, secret: &Secret) -> Self {
        let veil = self.veil.and(secret.expose());
        Self { veil, ..self }
    }

    fn header(name: HeaderName, value: &str, veil: Veil) -> Result<Self, ExecError> {
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| ExecError::BadRequest { what: "header", value: name.to_string() })?;
        value.set_sensitive(true);
        Ok(Self { form: Form::Header(name, value), veil })
    }

    pub fn apply(&self, request: &mut reqwest::Request) {
        match &self.form {
            Form::Header(name, value) => {
                request.headers_mut().insert(name, value.clone());
            }
            Form::Query(name, key) => {
                // A redirect may have brought it along, and a parameter may not take its place.
                let url = request.url_mut();
                if url.query_pairs().any(|(own, _)| own == name.as_str()) {
                    let others = url.query_pairs().into_owned().filter(|(own, _)| own != name);
                    let others: Vec<(String, String)> = others.collect();
                    url.query_pairs_mut().clear().extend_pairs(others);
                }
                url.query_pairs_mut().append_pair(name, key.expose());
            }
        }
    }

    /// The field of the query that holds a key.
    pub fn query_name(&self) -> Option<&str> {
        match &self.form {
            Form::Header(..) => None,
            Form::Query(name, _) => Some(name),
        }
    }
}

/// One value as a form or a query has it.
pub(super) fn form_encoded(value: &str) -> String {
    encode(&[("", value)]).trim_start_matches('=').to_owned()
}
