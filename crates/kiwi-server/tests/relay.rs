//! What an upstream server says and asks while it works reaches the client, in every revision. A stage of the test stands
//! in for the server: it speaks through the request's relay as the pool does.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::needless_pass_by_value,
    clippy::format_push_string,
    clippy::similar_names,
    reason = "a test fails by panicking, and connects to its own server"
)]

use kiwi_gate::{Call, Host, Kernel, Next, Reply, Stage, StageFuture};
use kiwi_mcp::{Asked, Capability};
use kiwi_model::{ErrorKind, Fault};
use kiwi_server::{Http, HttpOptions, Server};
use kiwi_space::{Locations, Spaces};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Stands in for an upstream server.
struct Upstream;

impl Stage for Upstream {
    fn run<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> StageFuture<'a> {
        let relay = Arc::clone(&call.request.relay);
        let tool = call.plan().links()[0].tool_id.to_string();
        Box::pin(async move {
            let person = |name: Option<&str>, message: &str| Asked {
                name: name.map(str::to_owned),
                capability: Capability::Elicitation,
                params: json!({"mode": "form", "message": message, "requestedSchema": {"type": "object", "properties": {"x": {"type": "string"}}}}),
            };
            let reply = |content: Value| Ok(Reply { content: Some(content), ..Reply::default() });
            match tool.as_str() {
                "asks" => {
                    relay.progress(json!({"progress": 1, "total": 2}));
                    relay.log(json!({"level": "warning", "data": "careful"}));
                    let can: Vec<&str> = relay.capabilities().into_iter().map(Capability::method).collect();
                    let first = relay.ask(vec![person(Some("user_name"), "first"), person(None, "second")]).await;
                    let then = relay.ask(vec![person(Some("again"), "third")]).await;
                    let said = |it: &Result<Value, _>| it.as_ref().map_or(Value::Null, |it| it["content"]["x"].clone());
                    let answers: Vec<Value> = first.iter().chain(&then).map(said).collect();
                    let text = json!({"can": can, "answers": answers}).to_string();
                    reply(json!({"content": [{"type": "text", "text": text}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]}))
                }
                "refuses" => Err(Fault::new(ErrorKind::ToolFailed, "the MCP server `x` refused: sampling is needed")
                    .with_details(json!({"server": "x", "code": -32021, "data": {"requiredCapabilities": {"sampling": {}}}}))),
                _ => next.run(call).await,
            }
        })
    }
}

fn kernel(folder: &Path) -> Arc<Kernel> {
    let project = folder.join("project");
    for name in ["asks", "refuses"] {
        let file = project.join(format!(".ai/tools/{name}.sh"));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "# kiwi: version: \"1.0.0\"\necho never\n").unwrap();
    }
    let locations = Locations { project: None, cwd: project.clone(), user: Some(folder.join("home")) };
    let spaces = Arc::new(Spaces::open(locations).unwrap());
    spaces.trust().unwrap().add(&project.canonicalize().unwrap(), jiff::Timestamp::now()).unwrap();
    let host = Host {
        environment: BTreeMap::new(),
        kiwi: "/nonexistent".into(),
        launcher: None,
        cwd: project,
        scratch: folder.to_owned(),
        has_terminal: false,
        authorize: None,
    };
    Arc::new(Kernel::new(spaces, host).unwrap().guarded_by(Box::new(Upstream)))
}

/// Sends a request and gives the status, the headers and every message of the answer.
async fn post(port: u16, headers: &[(&str, &str)], body: &Value) -> (u16, String, Vec<Value>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let body = body.to_string();
    let mut text = format!(
        "POST /mcp/direct HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{text}\r\n{body}").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let line = |line: &str| serde_json::from_str(line.trim_start_matches("data:").trim()).ok();
    (status, head.to_ascii_lowercase(), body.lines().filter_map(line).filter(Value::is_object).collect())
}

async fn served<F: Future<Output = ()>>(test: impl FnOnce(u16) -> F) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(kernel(folder.path()));
    let http = Http::bind(server, HttpOptions::at("127.0.0.1:0".parse().unwrap())).await.unwrap();
    let port = http.address().port();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(http.serve(async move { drop(stopped.await) }));
    test(port).await;
    stop.send(()).unwrap();
    serving.await.unwrap();
}

fn modern(capabilities: Value, more: Value) -> Value {
    let mut params = json!({"name": "asks", "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "new", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/logLevel": "info",
        "progressToken": 7,
    }});
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

fn answer(x: &str) -> Value {
    json!({"action": "accept", "content": {"x": x}})
}

#[tokio::test]
async fn a_new_client_answers_by_coming_back() {
    served(|port| async move {
        let headers = |name| [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", name)];
        let can = json!({"elicitation": {}, "roots": {}});
        let (status, _, heard) = post(port, &headers("asks"), &modern(can.clone(), json!({}))).await;
        assert_eq!(status, 200, "{heard:?}");
        let methods: Vec<&str> = heard.iter().filter_map(|it| it["method"].as_str()).collect();
        assert_eq!(methods, ["notifications/progress", "notifications/message"], "{heard:?}");
        assert_eq!(heard[0]["params"]["progressToken"], 7);
        let asked = &heard.last().unwrap()["result"];
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        assert_eq!(asked["inputRequests"]["user_name"]["params"]["message"], "first");
        let other = asked["inputRequests"].as_object().unwrap().keys().find(|key| *key != "user_name").unwrap();
        let more = json!({"requestState": asked["requestState"], "inputResponses": {"user_name": answer("one"), other: answer("two")}});
        let (_, _, heard) = post(port, &headers("asks"), &modern(can.clone(), more.clone())).await;
        let again = &heard.last().unwrap()["result"];
        assert_eq!(again["inputRequests"]["again"]["method"], "elicitation/create", "{again}");
        let (_, _, replayed) = post(port, &headers("asks"), &modern(can.clone(), more)).await;
        assert_eq!(replayed.last().unwrap()["error"]["code"], -32602, "a state is good for once");
        let more = json!({"requestState": again["requestState"], "inputResponses": {"again": answer("three"), "extra": 1}});
        let (_, _, heard) = post(port, &headers("asks"), &modern(can, more)).await;
        let done = &heard.last().unwrap()["result"];
        let told: Value = serde_json::from_str(done["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(told, json!({"can": ["elicitation/create", "roots/list"], "answers": ["one", "two", "three"]}));
        assert_eq!(done["content"][1], json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}));

        let (status, _, refused) = post(port, &headers("refuses"), &modern(json!({}), json!({"name": "refuses"}))).await;
        assert_eq!((status, &refused[0]["error"]["code"]), (400, &json!(-32021)), "{refused:?}");
        assert_eq!(refused[0]["error"]["data"]["requiredCapabilities"], json!({"sampling": {}}));
    })
    .await;
}

#[tokio::test]
async fn an_old_client_is_asked_on_the_stream_of_its_request() {
    served(|port| async move {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}}, "clientInfo": {"name": "old", "version": "1"}}});
        let (_, head, _) = post(port, &[], &hello).await;
        let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().to_owned();
        let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
        let (status, _, _) = post(port, &headers, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert_eq!(status, 202);
        let call = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "asks", "arguments": {}}}).to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let text = format!(
            "POST /mcp/direct HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, \
             text/event-stream\r\nmcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{call}",
            call.len()
        );
        stream.write_all(text.as_bytes()).await.unwrap();
        let (mut heard, mut seen, mut answered) = (String::new(), 0, Vec::new());
        let mut bytes = vec![0; 1 << 16];
        let done = loop {
            let count = stream.read(&mut bytes).await.unwrap();
            assert!(count > 0, "the stream ended: {heard}");
            heard.push_str(&String::from_utf8_lossy(&bytes[..count]));
            let messages: Vec<Value> = heard
                .lines()
                .filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?.trim()).ok())
                .collect();
            for message in &messages[seen..] {
                if message["method"] == "elicitation/create" {
                    let asked = message["params"]["message"].as_str().unwrap().to_owned();
                    let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": answer(&asked)});
                    assert_eq!(post(port, &headers, &reply).await.0, 202);
                    answered.push(asked);
                }
            }
            seen = messages.len();
            if let Some(done) = messages.into_iter().find(|it| it["id"] == 5 && it.get("result").is_some()) {
                break done;
            }
        };
        assert_eq!(answered, ["first", "second", "third"]);
        let told: Value = serde_json::from_str(done["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(told, json!({"can": ["elicitation/create"], "answers": ["first", "second", "third"]}));
    })
    .await;
}
