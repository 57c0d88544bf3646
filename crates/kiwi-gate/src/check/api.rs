//! A request that a manifest describes: where it goes and how it says who asks.

use kiwi_chain::{Merged, Tool};
use kiwi_model::ErrorKind;
use serde_json::{Map, Value};

use super::{Finding, source::line_of};
use crate::kernel::Kernel;

/// The kinds of `auth`, and what each needs beside its secret.
const KINDS: [(&str, &[&str]); 4] = [
    ("bearer", &[]),
    ("basic", &[]),
    ("api_key", &["in", "name"]),
    ("oauth2_client_credentials", &["token_url"]),
];

impl Kernel {
    /// Checks endpoint and auth.
    pub(super) fn check_request(&self, merged: &Merged, leaf: &Tool) -> Vec<Finding> {
        let config = merged.config();
        let invalid = |key: &str, message: String| {
            Finding::new(ErrorKind::InvalidManifest, message, &leaf.path).at(line_of(leaf, key))
        };
        let mut findings = Vec::new();
        match config.get("url").and_then(Value::as_str) {
            None => findings.push(
                invalid("/config", "the request has no `url`".into())
                    .hint("add `config.url` with the address"),
            ),
            Some(url) if !is_absolute(url) => findings.push(
                invalid("/config/url", format!("`{url}` is not an absolute address"))
                    .hint("an address starts with `http://` or `https://` and names a host"),
            ),
            Some(_) => {}
        }
        match config.get("auth") {
            None | Some(Value::Null) => {}
            Some(Value::Object(auth)) => findings.extend(
                self.check_auth(auth, leaf).into_iter().map(|it| it.at(line_of(leaf, "/config/auth"))),
            ),
            Some(_) => findings.push(invalid("/config/auth", "`auth` must be a map with a `type`".into())),
        }
        findings
    }

    fn check_auth(&self, auth: &Map<String, Value>, leaf: &Tool) -> Vec<Finding> {
        let invalid = |message: String| Finding::new(ErrorKind::InvalidManifest, message, &leaf.path);
        let known = KINDS.map(|(name, _)| name).join(", ");
        let Some(kind) = auth.get("type").and_then(Value::as_str) else {
            return vec![invalid("`auth` has no `type`".into()).hint(format!("one of {known}"))];
        };
        let Some((_, needs)) = KINDS.iter().find(|(name, _)| *name == kind) else {
            return vec![invalid(format!("`{kind}` is no type of `auth`")).hint(format!("one of {known}"))];
        };
        let missing = needs.iter().filter(|key| !auth.contains_key(**key));
        let mut findings: Vec<Finding> =
            missing.map(|key| invalid(format!("`auth` of type `{kind}` needs `{key}`"))).collect();
        match auth.get("secret").and_then(Value::as_str) {
            None => findings.push(
                invalid(format!("`auth` of type `{kind}` names no `secret`"))
                    .hint("name a stored secret: `secret: NAME`; `kiwi auth set NAME` stores one"),
            ),
            Some(name) if !self.has_secret(name) => findings.push(Finding {
                is_warning: true,
                ..Finding::new(
                    ErrorKind::MissingRequirement,
                    format!("no secret named `{name}` is stored"),
                    &leaf.path,
                )
                .hint(format!("`kiwi auth set {name}` stores one"))
            }),
            Some(_) => {}
        }
        findings
    }

    fn has_secret(&self, name: &str) -> bool {
        let all = self.spaces().credentials().and_then(|credentials| credentials.all());
        all.is_ok_and(|all| all.contains_key(name))
    }
}

/// Whether an address names a scheme and a host; what stands in braces is filled in by a call.
fn is_absolute(url: &str) -> bool {
    if url.strip_prefix("unix:").is_some_and(|rest| rest.trim_start_matches('/').len() > 1) {
        return true;
    }
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.split(['/', '?', '#']).next().unwrap_or_default().is_empty())
}
