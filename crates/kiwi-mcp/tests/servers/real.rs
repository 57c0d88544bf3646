//! Real servers, as their makers ship them. `cargo xtask test` installs them and says where they are.

use crate::support::{Bench, Witness, block_on, call, call_as, server};
use kiwi_mcp::{Capability, Reach, Server};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

#[track_caller]
fn components() -> PathBuf {
    let Some(folder) = std::env::var_os("KIWI_TEST_MCP") else {
        panic!("KIWI_TEST_MCP is not set: this suite needs MCP servers, which `cargo xtask test` sets up")
    };
    folder.into()
}

/// A pool that finds Node.js where the servers are.
fn bench() -> Bench {
    let path = format!("{}:/usr/bin:/bin", components().join("node_modules/node/bin").display());
    Bench::with(|around| {
        around.search_path.clone_from(&path);
        around.environment =
            vec![("PATH".into(), path), ("HOME".into(), around.project.to_str().unwrap().into())];
    })
}

fn installed(name: &str, program: &str, args: &[&str]) -> Server {
    let command = components().join(program).to_str().unwrap().to_owned();
    let args = args.iter().map(|text| (*text).to_owned()).collect();
    server(name, Reach::Stdio { command, args, env: BTreeMap::new(), cwd: None })
}

#[test]
fn everything() {
    let bench = bench();
    block_on(async {
        let server = installed("everything", "node_modules/.bin/mcp-server-everything", &["stdio"]);
        let connection = bench.pool.connect(&server).await.unwrap();
        let listing = connection.list().await.unwrap();
        let names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert!(names.contains(&"echo") && names.contains(&"get-structured-content"), "{names:?}");
        assert!(call(&connection, "echo", json!({"message": "hi"})).await.unwrap().text().contains("hi"));
        let weather =
            call(&connection, "get-structured-content", json!({"location": "New York"})).await.unwrap();
        assert!(weather.value()["temperature"].is_number(), "{:?}", weather.0);
        let image = call(&connection, "get-tiny-image", json!({})).await.unwrap();
        let kinds: Vec<&Value> =
            image.0["content"].as_array().unwrap().iter().map(|part| &part["type"]).collect();
        assert!(kinds.contains(&&json!("image")), "{kinds:?}");
        let hears = Arc::new(Witness::default());
        let params = json!({"duration": 0.4, "steps": 4});
        call_as(&connection, "trigger-long-running-operation", params, hears.clone()).await.unwrap();
        assert_eq!(hears.progress.lock().unwrap().len(), 4);
        for (method, key) in [
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ] {
            let answer =
                connection.request(method, json!({}), hears.clone(), std::future::pending()).await.unwrap();
            assert!(!answer.0[key].as_array().unwrap().is_empty(), "{method}");
        }
        bench.pool.close().await;
    });
}

/// It offers more tools to clients that can answer its questions.
#[test]
fn everything_asks_questions() {
    let bench = bench();
    block_on(async {
        let server = installed("everything", "node_modules/.bin/mcp-server-everything", &["stdio"]);
        let connection = bench.pool.connect(&server).await.unwrap();
        // It looks at what a client can do after the greeting, and then adds tools.
        let begun = std::time::Instant::now();
        let tool = loop {
            let listing = connection.list().await.unwrap();
            let found = listing.tools.iter().find(|tool| tool.name.contains("sampling-request"));
            if let Some(found) = found {
                break found.name.clone();
            }
            assert!(begun.elapsed().as_secs() < 10, "it adds no tool");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        };
        let model = Witness::answering(
            Capability::Sampling,
            json!({
                "role": "assistant", "model": "none", "content": {"type": "text", "text": "forty-two"},
            }),
        );
        let answer = call_as(&connection, &tool, json!({"prompt": "what?", "maxTokens": 10}), model.clone())
            .await
            .unwrap();
        assert!(answer.text().contains("forty-two"), "{}", answer.text());
        assert_eq!(model.asked.lock().unwrap()[0].capability, Capability::Sampling);
        bench.pool.close().await;
    });
}

#[test]
fn filesystem_and_memory() {
    let bench = bench();
    block_on(async {
        let folder = std::fs::canonicalize(bench.folder.path()).unwrap();
        let place = folder.to_str().unwrap();
        let files = installed("files", "node_modules/.bin/mcp-server-filesystem", &[place]);
        let connection = bench.pool.connect(&files).await.unwrap();
        assert!(connection.list().await.unwrap().tools.len() > 5);
        let note = folder.join("note.txt");
        call(&connection, "write_file", json!({"path": note, "content": "kept"})).await.unwrap();
        assert_eq!(std::fs::read_to_string(&note).unwrap(), "kept");
        let outside = call(&connection, "read_text_file", json!({"path": "/etc/hostname"})).await.unwrap();
        assert!(outside.is_error(), "{:?}", outside.0);

        let mut memory = installed("memory", "node_modules/.bin/mcp-server-memory", &[]);
        if let Reach::Stdio { env, .. } = &mut memory.reach {
            env.insert("MEMORY_FILE_PATH".into(), format!("{place}/memory.jsonl"));
        }
        let connection = bench.pool.connect(&memory).await.unwrap();
        let ada = json!({"entities": [{"name": "Ada", "entityType": "person", "observations": ["counts"]}]});
        call(&connection, "create_entities", ada).await.unwrap();
        bench.pool.stop(&memory.name).await;
        let connection = bench.pool.connect(&memory).await.unwrap();
        let graph = call(&connection, "read_graph", json!({})).await.unwrap();
        assert_eq!(graph.value()["entities"][0]["name"], "Ada");
        bench.pool.close().await;
    });
}

#[test]
fn git_and_time() {
    let bench = bench();
    block_on(async {
        let time = installed("time", "venv/bin/mcp-server-time", &["--local-timezone", "UTC"]);
        let connection = bench.pool.connect(&time).await.unwrap();
        let answer = call(&connection, "get_current_time", json!({"timezone": "Asia/Tokyo"})).await.unwrap();
        assert!(answer.text().contains("Asia/Tokyo"), "{}", answer.text());
        let git = installed("git", "venv/bin/mcp-server-git", &[]);
        let connection = bench.pool.connect(&git).await.unwrap();
        let listing = connection.list().await.unwrap();
        assert!(listing.tools.iter().any(|tool| tool.name == "git_status"));
        let nowhere = call(&connection, "git_status", json!({"repo_path": bench.folder.path()})).await;
        assert!(nowhere.is_err() || nowhere.unwrap().is_error());
        bench.pool.close().await;
    });
}

#[test]
fn everything_over_http() {
    let bench = bench();
    block_on(async {
        // The launcher of the tests starts it, so that nothing of it stays.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let launcher = kiwi_exec::Launcher::new(
            crate::support::example("mcp_launcher"),
            bench.folder.path().join("web"),
        );
        let path = format!("{}:/usr/bin:/bin", components().join("node_modules/node/bin").display());
        let program = components().join("node_modules/.bin/mcp-server-everything");
        let process = kiwi_exec::Process {
            program: kiwi_model::Text::literal(program.to_str().unwrap()),
            args: vec![kiwi_model::Text::literal("streamableHttp")],
            env: vec![
                ("PATH".into(), kiwi_model::Text::literal(path.as_str())),
                ("PORT".into(), kiwi_model::Text::literal(port.to_string())),
            ],
            cwd: "/".into(),
            stdin: Vec::new(),
            timeout: std::time::Duration::MAX,
            output_cap: 0,
            isolation: kiwi_model::Isolation::Standard,
            confinement: kiwi_exec::Confinement::default(),
            has_secrets: false,
            packages: Vec::new(),
            search_path: path,
            project: "/".into(),
        };
        let serving =
            launcher.with_grace(std::time::Duration::from_millis(300)).serve(process).await.unwrap();
        let web = crate::support::endpoint("web", &format!("http://127.0.0.1:{port}/mcp"));
        let begun = std::time::Instant::now();
        let connection = loop {
            bench.pool.reset(&web.name);
            match bench.pool.connect(&web).await {
                Ok(connection) => break connection,
                Err(error) => assert!(begun.elapsed().as_secs() < 15, "{error} {}", serving.said()),
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        };
        assert!(connection.list().await.unwrap().tools.len() > 5);
        let hears = Arc::new(Witness::default());
        let params = json!({"duration": 0.4, "steps": 4});
        call_as(&connection, "trigger-long-running-operation", params, hears.clone()).await.unwrap();
        assert_eq!(hears.progress.lock().unwrap().len(), 4);
        assert!(call(&connection, "echo", json!({"message": "hi"})).await.unwrap().text().contains("hi"));
        bench.pool.close().await;
        let _ = serving.kill().await;
    });
}
