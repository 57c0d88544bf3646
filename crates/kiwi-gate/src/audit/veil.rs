//! Parameters as the record keeps them: without what looks like a secret.

use kiwi_model::{Digest, canonical_object};
use serde_json::{Map, Value};
use std::fmt::Write as _;

use crate::redact::Redactor;

/// What stands for a secret.
const VEIL: &str = "<redacted>";
/// Larger parameters are known by their hash alone.
const LARGEST: usize = 64 << 10;
/// Deeper than any sensible schema.
const DEEPEST: usize = 64;
/// What a name of a secret has in it, separators left out.
const NAMES: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
    "accesskey",
    "signingkey",
    "cookie",
];
/// How known keys begin, and how many characters must follow.
const KEYS: [(&str, usize); 17] = [
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("sk-", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("xoxa-", 8),
    ("xoxb-", 8),
    ("xoxp-", 8),
    ("xoxr-", 8),
    ("xoxs-", 8),
    ("AIza", 30),
    ("npm_", 30),
];

/// Parameters as the record keeps them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Veiled {
    /// What may be shown; `None` where they are too large.
    pub params: Option<Value>,
    /// Where something was left out, as JSON pointers.
    pub redacted: Vec<String>,
    /// Digest of all of it.
    pub hash: Option<Digest>,
}

/// Takes out what the schema says is secret, what looks like it, and what is in the vault.
pub(crate) fn veil(params: &Map<String, Value>, schema: Option<&Value>, vault: &Redactor) -> Veiled {
    veiled(params, schema, vault, Names::Any)
}

/// The same for parameters that do not fit their schema: under a name that it does not know, anything may stand.
pub(crate) fn veil_unchecked(
    params: &Map<String, Value>,
    schema: Option<&Value>,
    vault: &Redactor,
) -> Veiled {
    veiled(params, schema, vault, Names::Known)
}

/// Under which names values are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Any,
    /// Those that a schema says something about, where there is one.
    Known,
}

fn veiled(params: &Map<String, Value>, schema: Option<&Value>, vault: &Redactor, names: Names) -> Veiled {
    let text = canonical_object(params).ok();
    let hash = text.as_ref().map(|text| Digest::of(text.as_bytes()));
    if text.is_none_or(|text| text.len() > LARGEST) {
        return Veiled { params: None, redacted: Vec::new(), hash };
    }
    let mut walk = Walk { root: schema, vault, names, path: String::new(), redacted: Vec::new() };
    let schemas: Vec<&Value> = schema.into_iter().collect();
    let params = walk.value(Value::Object(params.clone()), &schemas, 0);
    Veiled { params: Some(params), redacted: walk.redacted, hash }
}

/// One step of a JSON pointer.
fn push_token(pointer: &mut String, name: &str) {
    for c in name.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

struct Walk<'a> {
    root: Option<&'a Value>,
    vault: &'a Redactor,
    names: Names,
    path: String,
    redacted: Vec<String>,
}

impl<'a> Walk<'a> {
    fn value(&mut self, value: Value, schemas: &[&'a Value], depth: usize) -> Value {
        let schemas = self.all(schemas);
        // What nests this deep nobody reads; what cannot be looked into is left out.
        if depth > DEEPEST || schemas.iter().any(|schema| is_marked(schema)) {
            return self.hide();
        }
        match value {
            Value::Object(map) => {
                let walked = map.into_iter().map(|(name, value)| {
                    let before = self.path.len();
                    self.path.push('/');
                    push_token(&mut self.path, &name);
                    let inner: Vec<&Value> =
                        schemas.iter().flat_map(|schema| members(schema, &name)).collect();
                    let is_unknown =
                        self.names == Names::Known && !schemas.is_empty() && !says_something(&inner);
                    let value = if is_unknown || is_secret_name(&name, &value) {
                        self.hide()
                    } else {
                        self.value(value, &inner, depth + 1)
                    };
                    self.path.truncate(before);
                    (self.vault.owned(name), value)
                });
                Value::Object(walked.collect())
            }
            Value::Array(items) => {
                let walked = items.into_iter().enumerate().map(|(index, value)| {
                    let before = self.path.len();
                    let _ = write!(self.path, "/{index}");
                    let inner: Vec<&Value> = schemas.iter().flat_map(|schema| item(schema, index)).collect();
                    let value = self.value(value, &inner, depth + 1);
                    self.path.truncate(before);
                    value
                });
                Value::Array(walked.collect())
            }
            Value::String(text) if looks_secret(&text) || self.vault.finds_in(&text) => self.hide(),
            other => other,
        }
    }

    fn hide(&mut self) -> Value {
        self.redacted.push(self.vault.text(&self.path));
        VEIL.into()
    }

    /// These schemas, and all that they are made of.
    fn all(&self, schemas: &[&'a Value]) -> Vec<&'a Value> {
        let mut all: Vec<&'a Value> = schemas.to_vec();
        let mut next = 0;
        while let Some(schema) = all.get(next).copied() {
            next += 1;
            let lists = ["allOf", "anyOf", "oneOf"]
                .into_iter()
                .filter_map(|word| schema.get(word)?.as_array())
                .flatten();
            let single = ["if", "then", "else"].into_iter().filter_map(|word| schema.get(word));
            let reference = schema.get("$ref").and_then(Value::as_str).and_then(|at| at.strip_prefix('#'));
            let referred = reference.and_then(|at| self.root?.pointer(at));
            for part in lists.chain(single).chain(referred) {
                if all.len() < 256 && !all.iter().any(|known| std::ptr::eq(*known, part)) {
                    all.push(part);
                }
            }
        }
        all
    }
}

fn is_marked(schema: &Value) -> bool {
    let says = |word: &str| schema.get(word).and_then(Value::as_bool) == Some(true);
    says("writeOnly")
        || says("x-kiwi-secret")
        || schema.get("format").and_then(Value::as_str) == Some("password")
}

fn members<'a>(schema: &'a Value, name: &str) -> Vec<&'a Value> {
    let declared = schema.get("properties").and_then(|properties| properties.get(name));
    // Patterns are not matched here: any of them may be meant.
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    let others = schema.get("additionalProperties").filter(|_| declared.is_none());
    declared.into_iter().chain(patterns.into_iter().flat_map(Map::values)).chain(others).collect()
}

/// Whether one of these is more than a yes or no to whatever may stand there.
fn says_something(schemas: &[&Value]) -> bool {
    schemas.iter().any(|schema| !schema.is_boolean())
}

fn item(schema: &Value, index: usize) -> Vec<&Value> {
    let first = schema.get("prefixItems").and_then(|items| items.get(index));
    first.into_iter().chain(schema.get("items")).collect()
}

fn is_secret_name(name: &str, value: &Value) -> bool {
    let bare: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    match value {
        Value::Null | Value::Bool(_) => false,
        // `max_tokens` is a count.
        Value::Number(_) if bare.ends_with("tokens") => false,
        _ => NAMES.iter().any(|word| bare.contains(word)),
    }
}

fn looks_secret(text: &str) -> bool {
    (text.contains("-----BEGIN ") && text.contains("PRIVATE KEY"))
        || has_user_info(text)
        || has_authorization(text)
        || text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))).any(is_key)
}

fn is_key(word: &str) -> bool {
    let follows = |(begins, least): &(&str, usize)| {
        word.strip_prefix(begins).is_some_and(|rest| {
            rest.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).count() >= *least
        })
    };
    KEYS.iter().any(follows) || is_jwt(word)
}

/// Two parts that begin like an encoded `{"`, and a third.
fn is_jwt(word: &str) -> bool {
    let mut parts = word.split('.');
    let is_object = |part: Option<&str>| part.is_some_and(|part| part.len() > 8 && part.starts_with("eyJ"));
    is_object(parts.next()) && is_object(parts.next()) && parts.next().is_some()
}

/// `scheme://user:password@host`.
fn has_user_info(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ', '"', '\'', '\n']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| !user.is_empty())
    })
}

/// `Bearer …` and `Basic …`, as a header has them.
fn has_authorization(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["bearer ", "basic "].iter().any(|scheme| {
        text.split(scheme).skip(1).any(|rest| {
            let word = rest.split_whitespace().next().unwrap_or_default();
            word.len() >= 16 && word.bytes().all(|byte| byte.is_ascii_graphic())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::Secrets;
    use serde_json::json;

    #[track_caller]
    fn check(params: &Value, schema: &Value, expect: &Value, redacted: &[&str]) {
        let vault = Redactor::new(&Secrets::of(&[("hub", "v4ult/secret")]));
        let veiled = veil(params.as_object().unwrap(), Some(schema), &vault);
        assert_eq!(veiled.params.as_ref(), Some(expect));
        assert_eq!(veiled.redacted, redacted);
        assert_eq!(
            veiled.hash,
            Some(Digest::of(kiwi_model::canonical(params).unwrap().as_bytes())),
            "the hash is over the whole"
        );
    }

    #[test]
    fn names_of_secrets_are_veiled_however_they_are_spelt() {
        for name in [
            "password",
            "dbPassword",
            "DB_PASSWD",
            "client-secret",
            "accessToken",
            "api_key",
            "apiKey",
            "X-API-Key",
            "Authorization",
            "aws_credentials",
            "ssh_private_key",
            "mytoken",
        ] {
            let pointer = format!("/{name}");
            check(&json!({name: "x"}), &json!({}), &json!({name: VEIL}), &[&pointer]);
            check(&json!({name: {"a": ["x"]}}), &json!({}), &json!({name: VEIL}), &[&pointer]);
            check(&json!({name: 1234}), &json!({}), &json!({name: VEIL}), &[&pointer]);
        }
        for params in [
            json!({"max_tokens": 9}),
            json!({"key": "x"}),
            json!({"has_password": true}),
            json!({"path": "a"}),
        ] {
            check(&params, &json!({}), &params, &[]);
        }
    }

    #[test]
    fn what_looks_like_a_key_is_veiled_wherever_it_is() {
        for text in [
            "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n",
            "jwt eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
            "use ghp_0123456789abcdefghij please",
            "sk-0123456789abcdefghij",
            "key=AKIAIOSFODNN7EXAMPLE;",
            "xoxb-123456789012-abc",
            "https://user:pass@example.org/x",
            "postgres://me@db/x",
            "curl -H 'Authorization: Bearer 0123456789abcdef0'",
            "a v4ult/secret b",
        ] {
            check(&json!({"a/b": [1, text]}), &json!({}), &json!({"a/b": [1, VEIL]}), &["/a~1b/1"]);
        }
        for text in [
            "ghp_short",
            "task-0123456789abcdefghij",
            "mail me@example.org",
            "https://example.org/@me",
            "bearer of news",
            "eyJ.eyJ.",
        ] {
            check(&json!({"a": text}), &json!({}), &json!({"a": text}), &[]);
        }
    }

    #[test]
    fn what_a_schema_marks_is_veiled() {
        let marks =
            [json!({"writeOnly": true}), json!({"format": "password"}), json!({"x-kiwi-secret": true})];
        for mark in marks {
            let shapes = [
                json!({"properties": {"a": mark}}),
                json!({"properties": {"a": {"anyOf": [{"type": "null"}, mark]}}}),
                json!({"properties": {"a": {"$ref": "#/$defs/s"}}, "$defs": {"s": mark}}),
                json!({"additionalProperties": mark}),
                json!({"allOf": [{"properties": {"a": mark}}]}),
                json!({"patternProperties": {"^a": mark}, "properties": {"b": {}}, "additionalProperties": false}),
            ];
            for schema in shapes {
                check(&json!({"a": 5}), &schema, &json!({"a": VEIL}), &["/a"]);
            }
            let schema = json!({"properties": {"a": {"items": {"properties": {"n": mark}}}}});
            check(
                &json!({"a": [{"n": "x", "m": 1}]}),
                &schema,
                &json!({"a": [{"n": VEIL, "m": 1}]}),
                &["/a/0/n"],
            );
        }
        let circle = json!({"properties": {"a": {"$ref": "#"}}, "$ref": "#"});
        check(&json!({"a": {"a": {"a": 1}}}), &circle, &json!({"a": {"a": {"a": 1}}}), &[]);
    }

    #[test]
    fn under_a_name_that_nobody_knows_nothing_is_shown() {
        let schema = json!({"properties": {"name": {"type": "string"}, "pin": {"writeOnly": true}, "more": {"properties": {"a": {}}}},
            "additionalProperties": false});
        let params = json!({"name": "x", "pin": 1, "pinn": 1234, "more": {"a": 1, "b": 2}});
        let veiled = veil_unchecked(params.as_object().unwrap(), Some(&schema), &Redactor::default());
        let expect = json!({"name": "x", "pin": VEIL, "pinn": VEIL, "more": {"a": 1, "b": VEIL}});
        assert_eq!(veiled.params, Some(expect));
        assert_eq!(veiled.redacted, ["/more/b", "/pin", "/pinn"]);
        let known = veil_unchecked(params.as_object().unwrap(), None, &Redactor::default());
        assert_eq!(known.params, Some(params));
    }

    #[test]
    fn large_parameters_are_known_by_their_hash() {
        let params = json!({"a": "x".repeat(LARGEST)});
        let veiled = veil(params.as_object().unwrap(), None, &Redactor::default());
        assert_eq!((veiled.params, veiled.redacted), (None, Vec::new()));
        assert!(veiled.hash.is_some());
    }
}
