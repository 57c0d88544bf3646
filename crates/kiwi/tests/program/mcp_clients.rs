//! Real clients: the Python SDK, the TypeScript SDK and the inspector, against the real program.

use crate::support::TestEnvironment;
use crate::support::mcp::{Served, components, trusted};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

fn project() -> TestEnvironment {
    let env = TestEnvironment::new();
    env.write("tools/hello.sh", "# kiwi: version: \"1.0.0\"\n# kiwi: description: Says hello\necho hello\n");
    env.write("knowledge/colours.md", "---\nid: colours\n---\nRed is warm.\n");
    trusted(&env);
    env
}

/// Runs a client in the project's surroundings.
fn run(env: &TestEnvironment, program: PathBuf, words: &[&str]) -> String {
    let node = components().join("node_modules/node/bin");
    let path = format!("{}:{}", node.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(program);
    command.args(words).current_dir(env.project()).env_clear();
    command.env("PATH", path).env("HOME", env.home()).env("TMPDIR", env.tmp());
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{words:?}\n{out}\n{err}");
    out.into_owned()
}

const KIWI: &str = env!("CARGO_BIN_EXE_kiwi");

#[test]
fn the_inspector_speaks_over_both_transports() {
    let env = project();
    let inspector = components().join("node_modules/.bin/mcp-inspector");
    let arguments = r#"{"item_type": "tool", "item_id": "hello"}"#;
    let call = ["--method", "tools/call", "--tool-name", "execute", "--tool-args-json", arguments];
    let listed = run(&env, inspector.clone(), &["--cli", KIWI, "mcp", "--method", "tools/list"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["tools"].as_array().unwrap().len(), 4);
    let ran = run(&env, inspector.clone(), &[&["--cli", KIWI, "mcp"], &call[..]].concat());
    let ran: Value = serde_json::from_str(&ran).unwrap();
    assert_eq!(ran["structuredContent"]["result"], "hello\n", "{ran}");
    let served = Served::start(&env, &["--token", "s3cret"]);
    let url = format!("http://127.0.0.1:{}/mcp", served.port);
    let http = ["--cli", &url, "--transport", "http", "--header", "Authorization: Bearer s3cret"];
    let ran = run(&env, inspector, &[&http, &call[..]].concat());
    let ran: Value = serde_json::from_str(&ran).unwrap();
    assert_eq!(ran["structuredContent"]["result"], "hello\n", "{ran}");
    assert_eq!(served.stop(), Some(0));
}

#[test]
fn the_typescript_sdk_speaks_over_both_transports() {
    let env = project();
    let served = Served::start(&env, &[]);
    let sdk = components().join("node_modules/@modelcontextprotocol/sdk/dist/esm/client");
    let script = format!(
        r#"
import {{ Client }} from "{sdk}/index.js";
import {{ StdioClientTransport }} from "{sdk}/stdio.js";
import {{ StreamableHTTPClientTransport }} from "{sdk}/streamableHttp.js";
const transports = [
  new StdioClientTransport({{ command: "{KIWI}", args: ["mcp", "--direct"], env: process.env }}),
  new StreamableHTTPClientTransport(new URL("http://127.0.0.1:{port}/mcp/direct")),
];
for (const transport of transports) {{
  const client = new Client({{ name: "typescript", version: "1.0.0" }});
  await client.connect(transport);
  const tools = (await client.listTools()).tools.map((tool) => tool.name);
  const ran = await client.callTool({{ name: "hello", arguments: {{}} }});
  const read = await client.readResource({{ uri: "kiwi://knowledge/colours" }});
  console.log(JSON.stringify({{ has: tools.includes("hello"), said: ran.content[0].text, text: read.contents[0].text }}));
  await client.close();
}}
"#,
        sdk = sdk.display(),
        port = served.port
    );
    let file = env.tmp().join("client.mjs");
    std::fs::write(&file, script).unwrap();
    let out = run(&env, components().join("node_modules/node/bin/node"), &[file.to_str().unwrap()]);
    check(&out);
    assert_eq!(served.stop(), Some(0));
}

#[test]
fn the_python_sdk_speaks_over_both_transports() {
    let env = project();
    let served = Served::start(&env, &[]);
    let script = format!(
        r#"
import asyncio, json, os
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

async def check(target):
    async with Client(target) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        ran = await client.call_tool("hello", {{}})
        read = await client.read_resource("kiwi://knowledge/colours")
        print(json.dumps({{"has": "hello" in tools, "said": ran.content[0].text, "text": read.contents[0].text}}))

async def main():
    await check(stdio_client(StdioServerParameters(command="{KIWI}", args=["mcp", "--direct"], env=dict(os.environ))))
    await check("http://127.0.0.1:{port}/mcp/direct")

asyncio.run(main())
"#,
        port = served.port
    );
    let file = env.tmp().join("client.py");
    std::fs::write(&file, script).unwrap();
    check(&run(&env, components().join("venv/bin/python"), &[file.to_str().unwrap()]));
    assert_eq!(served.stop(), Some(0));
}

/// Both transports said the same.
#[track_caller]
fn check(out: &str) {
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{out}");
    for line in lines {
        assert_eq!(line["has"], true);
        assert_eq!(line["said"], "hello\n");
        assert!(line["text"].as_str().unwrap().contains("Red is warm."));
    }
}
