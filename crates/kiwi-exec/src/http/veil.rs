//! Secrets that come back: a service may repeat what it was sent, and what comes back is shown and recorded.

use serde_json::Value;

use super::answer::{HttpResponse, Payload};
use super::failure::Failure;
use crate::error::ExecError;

const MASK: &str = "***";
/// Shorter texts would be found everywhere; hiding them would spoil answers and hide nothing.
const SHORTEST: usize = 4;

/// Replaces secrets in texts.
#[derive(Clone)]
pub(super) struct Veil(Vec<String>);

impl Veil {
    pub fn over(secrets: &[&str]) -> Self {
        secrets.iter().fold(Self(Vec::new()), |veil, secret| veil.and(secret))
    }

    pub fn and(mut self, secret: &str) -> Self {
        if secret.len() >= SHORTEST {
            self.0.push(secret.to_owned());
        }
        // The longest first: one may be a part of another.
        self.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        self
    }

    /// Hides secrets in an outcome, whatever it is.
    pub fn outcome(&self, outcome: Result<HttpResponse, Failure>) -> Result<HttpResponse, Failure> {
        outcome
            .map(|answer| self.answer(answer))
            .map_err(|Failure { error, wish }| Failure { error: self.error(error), wish })
    }

    fn answer(&self, answer: HttpResponse) -> HttpResponse {
        let headers = answer.headers.into_iter().map(|(name, value)| (name, self.text(value))).collect();
        let body = match answer.body {
            Payload::Json(value) => Payload::Json(self.value(value)),
            Payload::Text(text) => Payload::Text(self.text(text)),
            Payload::Bytes(bytes) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let hidden = self.text(text.clone());
                if hidden == text { Payload::Bytes(bytes) } else { Payload::Text(hidden) }
            }
        };
        HttpResponse { status: answer.status, headers, body }
    }

    pub fn error(&self, error: ExecError) -> ExecError {
        match error {
            ExecError::BadUrl { url, why } => ExecError::BadUrl { url: self.text(url), why: self.text(why) },
            ExecError::ResponseLimit { url, limit } => {
                ExecError::ResponseLimit { url: self.text(url), limit }
            }
            ExecError::HttpStatus { url, status, body } => {
                ExecError::HttpStatus { url: self.text(url), status, body: self.value(body) }
            }
            ExecError::TooManyRedirects { url, limit } => {
                ExecError::TooManyRedirects { url: self.text(url), limit }
            }
            ExecError::Unreachable { url, why } => {
                ExecError::Unreachable { url: self.text(url), why: self.text(why) }
            }
            ExecError::Untrusted { url, why } => ExecError::Untrusted { url: self.text(url), why },
            ExecError::HostRefused { host, address, why } => {
                ExecError::HostRefused { host: self.text(host), address, why }
            }
            ExecError::NoToken { url, why, body } => {
                ExecError::NoToken { url, why: self.text(why), body: self.value(body) }
            }
            other => other,
        }
    }

    fn text(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), MASK) } else { text }
        })
    }

    fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Number(number) if self.0.contains(&number.to_string()) => MASK.into(),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(map) => {
                map.into_iter().map(|(key, item)| (self.text(key), self.value(item))).collect()
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_hidden_wherever_they_come_back() {
        let veil = Veil::over(&["hush", "hush-hush", "12345", "a"]);
        let value = json!({"hush-hush": ["a hush", 12345, 123_456], "n": {"x": null}});
        assert_eq!(veil.value(value), json!({"***": ["a ***", "***", 123_456], "n": {"x": null}}));
        let answer = |body| HttpResponse { status: 200, headers: vec![("x".into(), "hush".into())], body };
        let hidden = veil.answer(answer(Payload::Bytes(b"\xff hush".to_vec())));
        assert_eq!(hidden.body, Payload::Text("\u{fffd} ***".into()));
        assert_eq!(hidden.headers, [("x".to_owned(), "***".to_owned())]);
        let plain = Payload::Bytes(b"\xff".to_vec());
        assert_eq!(veil.answer(answer(plain.clone())).body, plain);
    }
}
