//! A client that the official conformance suite drives: it uses the pool as Kiwi does. The address of the suite's server
//! is its last argument; which scenario is played comes by the environment.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program for one test suite, which reads its words and its exit code"
)]

use kiwi_exec::{Confinement, HostPattern, HttpClient, Launcher, Reach as HttpReach};
use kiwi_mcp::{
    Answer, Asked, Authorize, Capability, Connection, Definition, HttpAuth, Identity, McpError, Pool, Reach,
    Refusal, Relay, RelayFuture, Server, ServerName, Surroundings,
};
use kiwi_model::{Isolation, Space};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Where the suite's authorization servers send people back to; nobody listens there.
const REDIRECT: &str = "http://localhost:3000/callback";
/// The document by which the suite expects clients to describe themselves.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

fn main() -> ExitCode {
    let url = std::env::args().next_back().unwrap_or_default();
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match runtime.block_on(play(&url, &scenario, context)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn play(url: &str, scenario: &str, context: Value) -> Result<(), McpError> {
    let folder = tempfile::tempdir().unwrap();
    let http = Arc::new(HttpClient::new());
    let pool = Pool::new(Surroundings {
        launcher: Launcher::new("kiwi", folder.path().join("scratch")),
        http: Arc::clone(&http),
        environment: Vec::new(),
        lookup: Arc::new(|_| None),
        search_path: String::new(),
        project: folder.path().to_owned(),
        confinement: Confinement::default(),
        tokens: folder.path().join("tokens"),
        authorize: Some(Arc::new(Visitor { http, context: context.clone() })),
        on_change: Arc::new(|_, _| {}),
    });
    let auth = if scenario.starts_with("auth/") { HttpAuth::Oauth } else { HttpAuth::None };
    let server = Server {
        name: ServerName::parse("suite").unwrap(),
        space: Space::User,
        reach: Reach::Http { url: url.to_owned(), headers: BTreeMap::new(), auth },
        description: None,
        isolation: Isolation::Standard,
        idle_timeout: Duration::from_mins(5),
        start_timeout: Duration::from_secs(20),
        timeout: Duration::from_secs(20),
        schema_ttl: Duration::from_hours(1),
        trusts_annotations: false,
    };
    let played = talk(&pool, &server, scenario, &context).await;
    pool.close().await;
    played
}

async fn talk(pool: &Pool, server: &Server, scenario: &str, context: &Value) -> Result<(), McpError> {
    let connection = pool.connect(server).await?;
    let listing = connection.list().await?;
    println!("{} tools, revision {}", listing.tools.len(), listing.protocol_version);
    if let Some(calls) = context.get("toolCalls").and_then(Value::as_array) {
        for asked in calls {
            call(&connection, asked.clone()).await?;
        }
        return Ok(());
    }
    if scenario == "json-schema-2020-12-preservation" {
        let told = listing.tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
        let arguments = json!({"schema": told.map(|tool| &tool.input_schema)});
        return call(&connection, json!({"name": "json_schema_echo", "arguments": arguments}))
            .await
            .map(|_| ());
    }
    let calls = listing.tools.iter().map(|tool| call(&connection, example_of(tool)));
    let mut outcomes = Vec::new();
    for asked in calls {
        outcomes.push(asked.await);
    }
    if scenario == "http-standard-headers" {
        for (method, params) in [
            ("resources/list", json!({})),
            ("resources/read", json!({"uri": "file:///path/to/file%20name.txt"})),
            ("prompts/list", json!({})),
            ("prompts/get", json!({"name": "test_prompt"})),
        ] {
            let _ = connection.request(method, params, Arc::new(Person), std::future::pending()).await;
        }
    }
    // With authorization the suite takes the token away once, and wants to see it asked for again.
    if scenario.starts_with("auth/") {
        for tool in &listing.tools {
            outcomes.push(call(&connection, example_of(tool)).await);
        }
    }
    outcomes.into_iter().try_for_each(|outcome| outcome.map(|answer| println!("{}", answer.text())))
}

async fn call(connection: &Connection, params: Value) -> Result<Answer, McpError> {
    connection.request("tools/call", params, Arc::new(Person), std::future::pending()).await
}

/// A call with something for each required parameter.
fn example_of(tool: &Definition) -> Value {
    let mut arguments = Map::new();
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        arguments.insert(name.clone(), example(schema));
    }
    json!({"name": tool.name, "arguments": arguments})
}

fn example(schema: &Value) -> Value {
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("number" | "integer") => json!(5),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("text"),
    }
}

/// Somebody who answers everything, and leaves what has a default as it is.
struct Person;

impl Relay for Person {
    fn capabilities(&self) -> Vec<Capability> {
        vec![Capability::Sampling, Capability::Elicitation, Capability::Roots]
    }
    fn progress(&self, progress: Value) {
        println!("progress {progress}");
    }
    fn log(&self, message: Value) {
        println!("log {message}");
    }
    fn ask(&self, questions: Vec<Asked>) -> RelayFuture<'_, Vec<Result<Value, Refusal>>> {
        let answer = |asked: Asked| {
            Ok(match asked.capability {
                Capability::Sampling => json!({
                    "role": "assistant", "model": "none", "stopReason": "endTurn",
                    "content": {"type": "text", "text": "an answer"},
                }),
                Capability::Roots => json!({"roots": [{"uri": "file:///work", "name": "work"}]}),
                Capability::Elicitation => {
                    let fields =
                        asked.params.pointer("/requestedSchema/properties").and_then(Value::as_object);
                    let content: Map<String, Value> = fields
                        .into_iter()
                        .flatten()
                        .map(|(name, schema)| (name.clone(), example(schema)))
                        .collect();
                    json!({"action": "accept", "content": content})
                }
            })
        };
        Box::pin(std::future::ready(questions.into_iter().map(answer).collect()))
    }
}

/// Somebody who agrees to everything: the suite's authorization servers send them straight back.
struct Visitor {
    http: Arc<HttpClient>,
    context: Value,
}

impl Authorize for Visitor {
    fn redirect_uri(&self) -> String {
        REDIRECT.to_owned()
    }

    fn identity(&self, _: &ServerName) -> Identity {
        let text = |name: &str| self.context.get(name).and_then(Value::as_str).map(str::to_owned);
        Identity {
            client_id: text("client_id"),
            client_secret: text("client_secret"),
            metadata_url: Some(DOCUMENT.to_owned()),
        }
    }

    fn authorize(&self, _: &ServerName, url: String) -> RelayFuture<'_, Result<String, String>> {
        Box::pin(async move {
            let host: HostPattern = "localhost".parse().unwrap();
            let reach = HttpReach { is_named: true, allow_hosts: Some(vec![host]) };
            let client = self.http.streaming(&url, &reach).map_err(|error| error.to_string())?;
            let answer = client.get(&url).send().await.map_err(|error| error.to_string())?;
            let location = answer.headers().get("location").and_then(|to| to.to_str().ok());
            location.map(str::to_owned).ok_or_else(|| format!("HTTP {}", answer.status()))
        })
    }
}
