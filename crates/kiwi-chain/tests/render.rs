//! Merging and rendering: the example of document 000 and the traps around templates.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and drives the real program"
)]

mod support;

use kiwi_chain::{Invocation, invocation};
use kiwi_model::{ErrorKind, Explain, Language, Space};
use serde_json::{Value, json};
use support::{Memory, runtime, script};

const DATA_PROCESSOR: &str = "tool_id: data_processor\nversion: \"2.1.0\"\ntool_type: script\nexecutor: python_runtime\nmanifest:\n  language: python\n  entrypoint: process_data.py\n  requires:\n    - pandas>=2.0\n    - numpy\nconfig:\n  timeout: 1800\n  env:\n    PYTHONPATH: \"/app/lib\"\n";

/// The invocation as a value, or `kind: message`.
fn render(catalog: &Memory, ask: &str, params: &Value) -> Result<Value, String> {
    let say = |error: kiwi_chain::ChainError| format!("{}: {error}", error.kind());
    let plan = catalog.plan(ask).map_err(say)?;
    plan.require().map_err(say)?;
    let params = plan.check_params(params.as_object().cloned().unwrap()).map_err(say)?;
    let environment = |name: &str| (name == "TOKEN").then(|| "{name}${TOKEN}".to_owned());
    invocation(&plan, &params, &environment).map(|invocation| invocation.describe()).map_err(say)
}

fn awk(rest: &str) -> Memory {
    Memory::system().with(Space::Project, &runtime("rt", "1.0.0", ""), &[]).with(
        Space::Project,
        &script("t", "1.0.0", "rt", rest),
        &["main.x"],
    )
}

#[test]
fn document_000_merges_to_what_it_shows() {
    let catalog = Memory::system().with(Space::Project, DATA_PROCESSOR, &["tool.yaml", "process_data.py"]);
    let plan = catalog.plan("data_processor").unwrap();
    plan.require().unwrap();
    let mut config = plan.merged().unwrap().config();
    let venv = config.as_object_mut().unwrap().remove("venv");
    assert_eq!(
        config,
        json!({"command": "python3", "args": ["-u", "process_data.py"], "env": {"PYTHONPATH": "/app/lib"}, "timeout": 1800})
    );
    assert_eq!(venv.unwrap()["enabled"], true);
    let chain: Vec<String> =
        plan.links().iter().map(|link| format!("{}@{}", link.tool_id, link.version)).collect();
    assert_eq!(chain, ["data_processor@2.1.0", "python_runtime@1.4.0", "subprocess@1.0.0"]);
}

#[test]
fn document_000s_own_runtime_without_a_mark_puts_the_entrypoint_behind_base_args() {
    let own = "tool_id: python_runtime\nversion: \"1.4.0\"\ntool_type: runtime\nexecutor: subprocess\nconfig: {command: python3, base_args: [\"-u\"], install_deps: true, venv: {enabled: true, path: .venv}}\nvalidation: {child_schemas: [{match: {tool_type: script}, schema: {type: object}}]}\n";
    let catalog = Memory::system().with(Space::Project, own, &[]).with(
        Space::Project,
        DATA_PROCESSOR,
        &["tool.yaml", "process_data.py"],
    );
    let plan = catalog.plan("data_processor").unwrap();
    assert_eq!(plan.merged().unwrap().config()["args"], json!(["-u", "process_data.py"]));
}

#[test]
fn the_runtime_says_whose_packages_go_into_an_environment() {
    for (runtime, file, rest, expected) in [
        ("python_runtime", "main.py", "", Some(Language::Python)),
        ("python_runtime", "main.py", "config: {venv: {enabled: false}}\n", None),
        ("node_runtime", "main.js", "", Some(Language::Node)),
        ("node_runtime", "main.js", "config: {node_modules: {enabled: false}}\n", None),
        ("bash_runtime", "main.sh", "", None),
    ] {
        let tool = script("t", "1.0.0", runtime, &format!("manifest: {{entrypoint: {file}}}\n{rest}"));
        let catalog = Memory::system().with(Space::Project, &tool, &[file]);
        let plan = catalog.plan("t").unwrap();
        match invocation(&plan, &serde_json::Map::new(), &|_| None).unwrap() {
            Invocation::Process(call) => assert_eq!(call.environment, expected, "{tool}"),
            Invocation::Http(_) => panic!("{tool}"),
        }
    }
}

#[test]
fn maps_merge_lists_replace_base_args_precede() {
    let catalog = Memory::system()
        .with(Space::Project, &runtime("rt", "1.0.0", "").replace("config: {command: rt}", "config: {command: rt, base_args: [-a, \"{entrypoint}\", -b], args: [gone], env: {A: \"1\", B: \"2\"}, limits: {output: 5}}"), &[])
        .with(Space::Project, &script("t", "1.0.0", "rt", "entrypoint: main.x\nconfig: {args: [x, y], env: {B: \"3\"}, limits: {pids: 4}}\n"), &["main.x"]);
    let config = catalog.plan("t").unwrap().merged().unwrap().config();
    assert_eq!(
        config,
        json!({"command": "rt", "args": ["-a", "main.x", "-b", "x", "y"], "env": {"A": "1", "B": "3"}, "limits": {"output": 5, "pids": 4}})
    );
}

#[test]
fn templates_render_once_and_never_again() {
    let rest = "entrypoint: main.x\nrequires_env: [TOKEN]\nparameters: {properties: {n: {type: integer, default: 7}, s: {type: string}, missing: {}}}\nconfig:\n  args: [\"--n={n}\", \"{s}\", \"{{literal}} $5 ${TOKEN}\", \"{tool_dir}/x\", \"{project_dir}\"]\n  env: {WHERE: \"{project_dir}/out\"}\n";
    let got = render(&awk(rest), "t", &json!({"s": "{n} ${TOKEN} {{"})).unwrap();
    assert_eq!(
        got["args"],
        json!([
            "<tool:0>/main.x",
            "--n=7",
            "{n} ${TOKEN} {{",
            "{literal} $5 {name}${TOKEN}",
            "<tool:0>/x",
            "<project>"
        ])
    );
    assert_eq!(got["env"]["WHERE"], "<project>/out");
    assert_eq!(got["env"]["KIWI_PARAM_N"], "7");
    assert_eq!(got["env"]["KIWI_PARAM_S"], "{n} ${TOKEN} {{");
    assert_eq!(got["env"]["TOKEN"], "{name}${TOKEN}");
    assert_eq!(got["stdin"], r#"{"n":7,"s":"{n} ${TOKEN} {{"}"#);
}

#[test]
fn a_caller_cannot_choose_the_entrypoint() {
    let got =
        render(&awk("entrypoint: main.x\n"), "t", &json!({"entrypoint": "/etc/passwd", "tool_dir": "/"}))
            .unwrap();
    assert_eq!(got["args"], json!(["<tool:0>/main.x"]));
}

#[test]
fn what_cannot_be_rendered_is_an_error() {
    let check = |config: &str, params: Value, expect: &str| {
        let rest =
            format!("entrypoint: main.x\nparameters: {{properties: {{known: {{}}}}}}\nconfig: {config}\n");
        let got = render(&awk(&rest), "t", &params).unwrap_err();
        assert!(got.contains(expect), "{got}");
    };
    check(
        "{args: [\"{nope}\"]}",
        json!({}),
        "invalid_manifest: t.yaml:1:1: the template `{nope}` stands for nothing",
    );
    check("{args: [\"{known}\"]}", json!({}), "invalid_params: `known` is needed");
    check(
        "{args: [\"{print $1}\"]}",
        json!({}),
        "invalid_manifest: t.yaml:1:1: a brace in `{print $1}` starts no template",
    );
    check("{args: [\"}\"]}", json!({}), "starts no template");
    check("{args: [\"${HOME}\"]}", json!({}), "does not list `HOME`");
    check("{args: [\"{kiwi}\"]}", json!({}), "stands for nothing");
    check("{args: [\"{known}\"]}", json!({"known": "a\0b"}), "invalid_params: `known` holds a NUL");
    check(
        "{args: text}",
        json!({}),
        "invalid_manifest: t.yaml:1:1: the merged configuration does not suit `subprocess`",
    );
    let missing = render(&awk("requires_env: [ABSENT]\nentrypoint: main.x\n"), "t", &json!({})).unwrap_err();
    assert!(missing.starts_with("missing_requirement: the environment variable `ABSENT`"), "{missing}");
}

#[test]
fn an_entrypoint_that_is_no_file_is_refused_where_the_runtime_runs_files() {
    let catalog = Memory::system().with(Space::Project, DATA_PROCESSOR, &["tool.yaml"]);
    let error = catalog.plan("data_processor").unwrap().require().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidManifest);
    assert!(error.to_string().contains("`process_data.py` is not a file of the package"), "{error}");
}

#[test]
fn large_values_reach_a_tool_on_standard_input_only() {
    let got = render(&awk("entrypoint: main.x\n"), "t", &json!({"big": "x".repeat(5000), "a-b": [1, "é"]}))
        .unwrap();
    assert!(got["env"].get("KIWI_PARAM_BIG").is_none());
    assert_eq!(got["env"]["KIWI_PARAM_A_B"], "[1,\"\\u00e9\"]");
    assert!(got["stdin"].as_str().unwrap().contains(&"x".repeat(5000)));
}

#[test]
fn parameters_are_checked_all_at_once() {
    let rest = "entrypoint: main.x\nparameters:\n  - {name: input, type: str, required: true}\n  - {name: count, type: int, default: 3}\n";
    let error = render(&awk(rest), "t", &json!({"count": "many", "typo": 1})).unwrap_err();
    assert!(error.starts_with("invalid_params: "), "{error}");
    for part in ["count", "typo", "input"] {
        assert!(error.contains(part), "{error} does not name {part}");
    }
}

#[test]
fn http_requests_escape_what_they_insert() {
    let api = "tool_id: weather\nversion: \"1.0.0\"\ntool_type: api\nparameters: {properties: {city: {type: string}, n: {type: integer}}}\nconfig: {url: \"http://127.0.0.1:1/v1/{city}\", method: POST, headers: {X-N: \"{n}\"}, query: {n: \"{n}\", list: [a, b]}, json: {n: \"{n}\", text: \"n={n}\"}}\n";
    let catalog = Memory::system().with(Space::Project, api, &[]);
    let plan = catalog.plan("weather").unwrap();
    plan.require().unwrap();
    let params = json!({"city": "../a b?x=1#é", "n": 3}).as_object().cloned().unwrap();
    let Invocation::Http(call) = invocation(&plan, &params, &|_| None).unwrap() else { panic!("not http") };
    assert_eq!(call.url, "http://127.0.0.1:1/v1/..%2Fa%20b%3Fx%3D1%23%C3%A9");
    assert_eq!(
        call.query,
        [("list".into(), "a".into()), ("list".into(), "b".into()), ("n".into(), "3".into())]
    );
    assert_eq!(call.body, kiwi_chain::HttpBody::Json(json!({"n": 3, "text": "n=3"})));
    assert_eq!(call.headers.get("X-N").map(String::as_str), Some("3"));
}
