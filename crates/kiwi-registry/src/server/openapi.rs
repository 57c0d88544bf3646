//! The protocol as programs read it: OpenAPI 3.1, from one table and the types themselves.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::protocol::{
    ATTEMPT, Blobs, Chain, Found, LockfileChange, LockfileSet, MadeToken, Namespace, NewToken, Publication,
    Release, SharedLockfile, Status, Tokens, ToolChange, ToolInfo, Whoami, Yank,
};

const ID: &str = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$";
const VERSION: &str = r"^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$";
const DIGEST: &str = r"^sha256:[0-9a-f]{64}$";
const SET: &str = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}$";
const KEY: &str = r"^[A-Za-z0-9_+@-][A-Za-z0-9_.+@-]{0,254}(/[A-Za-z0-9_+@-][A-Za-z0-9_.+@-]{0,254})*$";
const USER: &str = r"^[a-z][a-z0-9_-]{0,63}$";
const NAMESPACE: &str = r"^[a-z][a-z0-9_]*$";
const TOKEN: &str = r"^[0-9a-f]{16}$";

/// What is sent.
enum Sent {
    Nothing,
    Json(Value),
    Bytes,
}

/// One method of one address.
struct Endpoint {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    needs_token: bool,
    sent: Sent,
    /// Statuses of success, and what comes with them.
    answers: Vec<(u16, Option<Value>)>,
    /// Statuses of failure beside those that every address has.
    failures: Vec<u16>,
}

/// The document.
pub(super) fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let endpoints = endpoints(&mut generator);
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in &endpoints {
        let path =
            paths.entry(endpoint.path).or_insert_with(|| json!({"parameters": parameters(endpoint.path)}));
        if let Some(path) = path.as_object_mut() {
            path.insert(endpoint.method.to_owned(), operation(endpoint));
        }
    }
    let mut schemas: Map<String, Value> = generator.take_definitions(true).into_iter().collect();
    schemas.insert("Failed".to_owned(), failed());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Kiwi registry",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

#[expect(clippy::too_many_lines, reason = "a table: one entry for each method of each address")]
fn endpoints(generator: &mut SchemaGenerator) -> Vec<Endpoint> {
    macro_rules! schema {
        ($type:ty) => {
            generator.subschema_for::<$type>().to_value()
        };
    }
    let endpoint = |method, path, summary, needs_token, sent, answers, failures: &[u16]| Endpoint {
        method,
        path,
        summary,
        needs_token,
        sent,
        answers,
        failures: failures.to_vec(),
    };
    let ok = |schema: Value| vec![(200, Some(schema))];
    let tagged = |schema: Value| vec![(200, Some(schema)), (304, None)];
    let changed: &[u16] = &[403, 404, 408, 413, 415, 422];
    vec![
        endpoint("get", "/v1/status", "Who answers", false, Sent::Nothing, ok(schema!(Status)), &[]),
        endpoint(
            "get",
            "/v1/whoami",
            "Whose token this is",
            true,
            Sent::Nothing,
            ok(schema!(Whoami)),
            &[403],
        ),
        endpoint("get", "/v1/search", "Find tools", false, Sent::Nothing, ok(schema!(Found)), &[]),
        endpoint(
            "get",
            "/v1/resolve/{id}",
            "A tool with everything it runs on",
            false,
            Sent::Nothing,
            tagged(schema!(Chain)),
            &[404, 422],
        ),
        endpoint(
            "get",
            "/v1/tools/{id}",
            "A tool and its versions",
            false,
            Sent::Nothing,
            tagged(schema!(ToolInfo)),
            &[404],
        ),
        endpoint(
            "patch",
            "/v1/tools/{id}",
            "Change who sees a tool",
            true,
            Sent::Json(schema!(ToolChange)),
            ok(schema!(ToolInfo)),
            changed,
        ),
        endpoint(
            "get",
            "/v1/tools/{id}/versions/{version}",
            "One version",
            false,
            Sent::Nothing,
            tagged(schema!(Release)),
            &[404],
        ),
        endpoint(
            "put",
            "/v1/tools/{id}/versions/{version}",
            "Publish a version whose blobs were uploaded",
            true,
            Sent::Json(schema!(Publication)),
            vec![(201, Some(schema!(Release))), (200, Some(schema!(Release)))],
            &[403, 404, 408, 409, 413, 415, 422],
        ),
        endpoint(
            "put",
            "/v1/tools/{id}/versions/{version}/yanked",
            "Yank a version, or take the yank back",
            true,
            Sent::Json(schema!(Yank)),
            ok(schema!(Release)),
            changed,
        ),
        endpoint(
            "post",
            "/v1/blobs/missing",
            "Which of these have to be uploaded",
            true,
            Sent::Json(schema!(Blobs)),
            ok(schema!(Blobs)),
            &[403, 408, 413, 415, 422],
        ),
        endpoint(
            "get",
            "/v1/blobs/{digest}",
            "The bytes of a file",
            false,
            Sent::Nothing,
            vec![(200, None), (304, None)],
            &[404],
        ),
        endpoint(
            "put",
            "/v1/blobs/{digest}",
            "Upload the bytes of a file",
            true,
            Sent::Bytes,
            vec![(204, None)],
            &[403, 408, 413, 415, 422],
        ),
        endpoint(
            "get",
            "/v1/lockfiles/{set}",
            "The lockfiles of a set",
            true,
            Sent::Nothing,
            tagged(schema!(LockfileSet)),
            &[403],
        ),
        endpoint(
            "put",
            "/v1/lockfiles/{set}/{key}",
            "Share a lockfile",
            true,
            Sent::Json(schema!(LockfileChange)),
            ok(schema!(SharedLockfile)),
            &[403, 404, 408, 409, 413, 415, 422],
        ),
        endpoint(
            "delete",
            "/v1/lockfiles/{set}/{key}",
            "Take a lockfile out of its set",
            true,
            Sent::Nothing,
            vec![(204, None)],
            &[403, 404],
        ),
        endpoint(
            "get",
            "/v1/tokens",
            "The tokens there are",
            true,
            Sent::Nothing,
            ok(schema!(Tokens)),
            &[403],
        ),
        endpoint(
            "post",
            "/v1/tokens",
            "Make a token",
            true,
            Sent::Json(schema!(NewToken)),
            vec![(201, Some(schema!(MadeToken)))],
            &[403, 408, 413, 415, 422],
        ),
        endpoint(
            "delete",
            "/v1/tokens/{token_id}",
            "End a token",
            true,
            Sent::Nothing,
            vec![(204, None)],
            &[403, 404],
        ),
        endpoint(
            "get",
            "/v1/namespaces/{name}",
            "Who owns a namespace",
            false,
            Sent::Nothing,
            ok(schema!(Namespace)),
            &[404],
        ),
        endpoint(
            "put",
            "/v1/namespaces/{name}",
            "Claim a namespace",
            true,
            Sent::Nothing,
            ok(schema!(Namespace)),
            &[403, 422],
        ),
        endpoint(
            "put",
            "/v1/namespaces/{name}/owners/{user}",
            "Make somebody an owner",
            true,
            Sent::Nothing,
            ok(schema!(Namespace)),
            &[403, 404, 422],
        ),
        endpoint(
            "delete",
            "/v1/namespaces/{name}/owners/{user}",
            "Make somebody an owner no more",
            true,
            Sent::Nothing,
            ok(schema!(Namespace)),
            &[403, 404, 409],
        ),
        endpoint(
            "get",
            "/v1/openapi.json",
            "This document",
            false,
            Sent::Nothing,
            ok(json!({"type": "object"})),
            &[],
        ),
    ]
}

/// The parts of an address.
fn parameters(path: &str) -> Vec<Value> {
    let part = |name: &str, pattern: &str, longest: usize| {
        json!({
            "name": name, "in": "path", "required": true,
            "schema": {"type": "string", "pattern": pattern, "minLength": 1, "maxLength": longest},
        })
    };
    let mut parts = Vec::new();
    for (name, pattern, longest) in [
        ("id", ID, 128),
        ("version", VERSION, 128),
        ("digest", DIGEST, 71),
        ("set", SET, 128),
        ("key", KEY, 512),
        ("token_id", TOKEN, 16),
        ("name", NAMESPACE, 128),
        ("user", USER, 64),
    ] {
        if path.contains(&format!("{{{name}}}")) {
            parts.push(part(name, pattern, longest));
        }
    }
    parts
}

fn operation(endpoint: &Endpoint) -> Value {
    let mut operation = Map::new();
    let mut set = |key: &str, value: Value| drop(operation.insert(key.to_owned(), value));
    set("operationId", operation_id(endpoint).into());
    set("summary", endpoint.summary.into());
    set("responses", responses(endpoint));
    // Where none is needed, one still shows what is private.
    let token = json!({"token": []});
    set("security", if endpoint.needs_token { json!([token]) } else { json!([{}, token]) });
    match &endpoint.sent {
        Sent::Nothing => {}
        Sent::Json(schema) => {
            set(
                "requestBody",
                json!({"required": true, "content": {"application/json": {"schema": schema}}}),
            );
        }
        Sent::Bytes => {
            set("requestBody", json!({"required": true, "content": {"application/octet-stream": {}}}));
        }
    }
    match (endpoint.method, endpoint.path) {
        ("get", "/v1/search") => set(
            "parameters",
            json!([
                {"name": "q", "in": "query", "required": true, "schema": {"type": "string", "maxLength": 1000}},
                {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 200}},
            ]),
        ),
        ("get", "/v1/resolve/{id}") => set(
            "parameters",
            json!([{"name": "requirement", "in": "query", "schema": {"type": "string", "maxLength": 256}}]),
        ),
        ("put", "/v1/tools/{id}/versions/{version}") => set(
            "parameters",
            json!([{"name": ATTEMPT, "in": "header", "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"}}]),
        ),
        _ => {}
    }
    Value::Object(operation)
}

fn operation_id(endpoint: &Endpoint) -> String {
    let words = endpoint.path.trim_start_matches("/v1").replace(['/', '.'], "_").replace(['{', '}'], "");
    format!("{}{words}", endpoint.method)
}

fn responses(endpoint: &Endpoint) -> Value {
    let mut responses = Map::new();
    for (status, schema) in &endpoint.answers {
        let description = described(*status);
        let response = match schema {
            Some(schema) => {
                json!({"description": description, "content": {"application/json": {"schema": schema}}})
            }
            None if *status == 200 => {
                json!({"description": description, "content": {"application/octet-stream": {}}})
            }
            None => json!({"description": description}),
        };
        responses.insert(status.to_string(), response);
    }
    // Anything can be misspelt, and any token can be bad.
    for status in endpoint.failures.iter().chain(&[400, 401, 429, 500, 503]) {
        let schema = json!({"schema": {"$ref": "#/components/schemas/Failed"}});
        let response = json!({"description": described(*status), "content": {"application/json": schema}});
        responses.insert(status.to_string(), response);
    }
    Value::Object(responses)
}

fn described(status: u16) -> &'static str {
    match status {
        200 => "What was asked for",
        201 => "It was made",
        204 => "It was done",
        304 => "What the client has is still so",
        400 => "The request cannot be read",
        401 => "A token is needed, or the one that was shown is not good",
        403 => "The token may not do that",
        404 => "It is not there, or the caller may not see it",
        408 => "The body did not arrive in time",
        409 => "Somebody was first",
        413 => "The body is too long",
        415 => "The body is of another kind",
        422 => "The request can be read and not be done",
        429 => "Too many requests",
        503 => "The database does not answer",
        _ => "The registry failed",
    }
}

/// A failure: the vocabulary's own type has no schema.
fn failed() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {"error": {
            "type": "object",
            "required": ["kind", "message", "hint", "details"],
            "properties": {
                "kind": {"type": "string", "enum": kiwi_model::ErrorKind::ALL.map(kiwi_model::ErrorKind::as_str)},
                "message": {"type": "string"},
                "hint": {"type": ["string", "null"]},
                "details": {},
            },
        }},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::route::Route;
    use std::collections::BTreeSet;

    /// An address with every variable part filled in.
    fn example(path: &str) -> String {
        path.replace("{id}", "a.b")
            .replace("{version}", "1.0.0")
            .replace("{digest}", &kiwi_model::Digest::of(b"").to_string())
            .replace("{token_id}", "0123456789abcdef")
            .replace(['{', '}'], "")
    }

    #[test]
    fn the_table_has_exactly_the_methods_that_are_answered() {
        let document = document();
        let paths = document["paths"].as_object().unwrap();
        for (path, item) in paths {
            let route = Route::parse(&example(path)).unwrap();
            assert_eq!(route.pattern(), path);
            let told: BTreeSet<String> =
                item.as_object().unwrap().keys().filter(|key| *key != "parameters").cloned().collect();
            let known = route.methods().iter().map(|method| method.as_str().to_lowercase()).collect();
            assert_eq!(told, known, "{path}");
        }
        assert_eq!(paths.len(), 16);
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document();
        let text = document.to_string();
        for part in text.split("\"$ref\":\"#/components/schemas/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
        }
        assert!(!text.contains("$defs"));
    }
}
