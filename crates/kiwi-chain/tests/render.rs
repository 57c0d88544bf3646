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
    assert_eq!(plan.warnings(), Vec::<String>::new());
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
    assert_eq!(plan.warnings(), Vec::<String>::new());
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
            Invocation::Http(_) | Invocation::Upstream(_) => panic!("{tool}"),
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
        "invalid_manifest: t.yaml: the merged configuration does not suit `subprocess`",
    );
    let missing = render(&awk("requires_env: [ABSENT]\nentrypoint: main.x\n"), "t", &json!({})).unwrap_err();
    assert!(missing.starts_with("missing_requirement: the environment variable `ABSENT`"), "{missing}");
}

#[test]
fn a_parameter_that_was_left_out_leaves_out_what_it_names() {
    let rest = "entrypoint: main.x\nparameters: {properties: {a: {}, tool_dir: {}}}\npermissions: {filesystem_read: [\"{a}\", data], network_hosts: [\"{a}\"]}\nconfig: {env: {A: \"{a}\", B: \"b{{a}}\", D: \"{tool_dir}\"}, cwd: \"{a}\", timeout: \"{a}\", mounts: [\"{a}\"]}\n";
    let tool = awk(rest);
    let plan = tool.plan("t").unwrap();
    let call = |params: Value| match invocation(&plan, params.as_object().unwrap(), &|_| None).unwrap() {
        Invocation::Process(call) => call,
        other => panic!("{other:?}"),
    };
    let without = call(json!({}));
    // A name of ours is never left out.
    assert_eq!(without.env.keys().collect::<Vec<_>>(), ["B", "D"]);
    assert_eq!((without.cwd.is_none(), without.timeout), (true, None));
    assert_eq!((without.needs.read.len(), without.needs.hosts.len()), (1, 0));
    let with = call(json!({"a": 7}));
    assert_eq!(with.env["A"].to_string(), "7");
    assert_eq!((with.cwd.unwrap().to_string().as_str(), with.timeout), ("7", Some(7.0)));
    assert_eq!((with.needs.read.len(), with.needs.hosts.len()), (3, 1));
    // Within a longer text, in a list of arguments, or for a name that nothing declares, something would be missing.
    for config in [
        "{env: {A: \"x{a}\"}}",
        "{args: [\"{a}\"]}",
        "{stdin: \"{a}\"}",
        "{env: {A: \"{b}\"}}",
        "{timeout: \"{b}\"}",
    ] {
        let tool =
            awk(&format!("entrypoint: main.x\nparameters: {{properties: {{a: {{}}}}}}\nconfig: {config}\n"));
        assert!(render(&tool, "t", &json!({})).is_err(), "{config}");
    }
}

#[test]
fn a_timeout_that_is_none_is_refused() {
    let script = awk("entrypoint: main.x\nconfig: {timeout: \"{s}\"}\n");
    let api =
        "tool_id: api\nversion: \"1.0.0\"\ntool_type: api\nconfig: {url: \"http://h/\", timeout: \"{s}\"}\n";
    let api = Memory::system().with(Space::Project, api, &[]);
    let timeout = |tool: &Memory, id: &str, given: &Value| {
        let params = json!({"s": given}).as_object().cloned().unwrap();
        match invocation(&tool.plan(id).unwrap(), &params, &|_| None) {
            Ok(Invocation::Process(call)) => Ok(call.timeout),
            Ok(Invocation::Http(call)) => Ok(call.timeout),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.kind()),
        }
    };
    for (tool, id) in [(&script, "t"), (&api, "api")] {
        for (given, seconds) in [(json!(2), 2.0), (json!(0.5), 0.5), (json!("3"), 3.0), (json!(" 1.5 "), 1.5)]
        {
            assert_eq!(timeout(tool, id, &given), Ok(Some(seconds)), "{id} {given}");
        }
        for given in [
            json!(0),
            json!(-1),
            json!("soon"),
            json!("nan"),
            json!("inf"),
            json!(4e7),
            json!([1]),
            json!(null),
        ] {
            assert_eq!(timeout(tool, id, &given), Err(ErrorKind::InvalidParams), "{id} {given}");
        }
    }
}

#[test]
fn a_parameter_that_was_left_out_is_not_asked_for() {
    let api = |body: &str| {
        let api = format!(
            "tool_id: api\nversion: \"1.0.0\"\ntool_type: api\nparameters: {{properties: {{a: {{}}, b: {{}}}}}}\nconfig: {{url: \"http://h/\", method: POST, query: {{a: \"{{a}}\", b: \"{{b}}\"}}, headers: {{X-A: \"{{a}}\", X-B: \"{{b}}\"}}, {body}}}\n"
        );
        render(&Memory::system().with(Space::Project, &api, &[]), "api", &json!({"b": 1})).unwrap()
    };
    let got = api("json: {a: \"{a}\", b: \"{b}\", deep: {a: \"{a}\", b: [\"{b}\"]}}");
    assert_eq!((&got["query"], &got["headers"]), (&json!([["b", "1"]]), &json!({"X-B": "1"})));
    assert_eq!(got["body"], json!({"b": 1, "deep": {"b": [1]}}));
    assert_eq!(api("json: \"{a}\"")["body"], Value::Null);
    assert_eq!(api("body: \"{a}\"")["body"], Value::Null);
    assert_eq!(api("form: {a: \"{a}\", b: \"{b}\"}")["body"], json!([["b", "1"]]));
}

#[test]
fn a_slip_in_a_configuration_is_told_and_nothing_else() {
    let told =
        |rest: &str| awk(&format!("entrypoint: main.x\nconfig: {rest}\n")).plan("t").unwrap().warnings();
    for (slip, meant) in [("tiemout: 3", "timeout"), ("agrs: []", "args"), ("limit: {}", "limits")] {
        let warnings = told(&format!("{{{slip}}}"));
        let expected = format!("did you mean `{meant}`?");
        assert!(matches!(warnings.as_slice(), [one] if one.contains(&expected)), "{slip}: {warnings:?}");
    }
    assert_eq!(told("{timeout: 3, threshold: 0.5, model: small, x: 1}"), Vec::<String>::new());
    let boxes = "tool_id: boxes\nversion: \"1.0.0\"\ntool_type: runtime\nexecutor: subprocess\nconfig: {command: x, container: {volumes: []}}\nvalidation: {child_schemas: [{match: {tool_type: script}, schema: {type: object}}]}\n";
    let tool = script("d", "1.0.0", "boxes", "config: {volumns: []}\n");
    let catalog = Memory::system().with(Space::Project, boxes, &[]).with(Space::Project, &tool, &[]);
    let warnings = catalog.plan("d").unwrap().warnings();
    assert!(warnings.iter().any(|it| it.contains("did you mean `volumes`?")), "{warnings:?}");
    let http = asked("{url: \"http://a/\", retrys: 2}");
    assert!(http.is_ok(), "{http:?}");
    let plan = api("{url: \"http://a/\", retrys: 2}").plan("api").unwrap();
    assert!(plan.warnings().iter().any(|it| it.contains("did you mean `retries`?")), "{:?}", plan.warnings());
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

fn api(config: &str) -> Memory {
    let api = format!(
        "tool_id: api\nversion: \"1.0.0\"\ntool_type: api\nrequires_env: [TOKEN]\nparameters: {{properties: {{x: {{type: string, default: y}}}}}}\nconfig: {config}\n"
    );
    Memory::system().with(Space::Project, &api, &[])
}

/// What would be asked, with the parameter `x` at its default.
fn asked(config: &str) -> Result<Value, String> {
    render(&api(config), "api", &json!({}))
}

fn called(config: &str) -> kiwi_chain::HttpCall {
    let plan = api(config).plan("api").unwrap();
    let params = plan.check_params(serde_json::Map::new()).unwrap();
    match invocation(&plan, &params, &|_| Some("value".into())).unwrap() {
        Invocation::Http(call) => call,
        Invocation::Process(_) | Invocation::Upstream(_) => panic!("not http"),
    }
}

#[test]
fn a_request_names_who_asks_and_never_shows_it() {
    for (auth, expected) in [
        ("{type: bearer, secret: S}", json!({"type": "bearer", "secret": "S"})),
        (
            "{type: basic, username: \"u-{x}\", secret: S}",
            json!({"type": "basic", "username": "u-y", "secret": "S"}),
        ),
        (
            "{type: api_key, in: header, name: X-Key, secret: S}",
            json!({"type": "api_key", "in": "header", "name": "X-Key", "secret": "S"}),
        ),
        (
            "{type: api_key, in: query, name: key, secret: S}",
            json!({"type": "api_key", "in": "query", "name": "key", "secret": "S"}),
        ),
        (
            "{type: oauth2_client_credentials, token_url: \"https://id.example.org/token\", client_id: me, secret: S, scopes: [a, b]}",
            json!({"type": "oauth2_client_credentials", "token_url": "https://id.example.org/token", "client_id": "me", "secret": "S", "scopes": ["a", "b"]}),
        ),
    ] {
        let got = asked(&format!("{{url: \"https://api.example.org/\", auth: {auth}}}")).unwrap();
        assert_eq!(got["auth"], expected);
    }
    // What is not said does not show: descriptions of plain requests stay what they were.
    assert_eq!(
        asked("{url: \"https://api.example.org/\"}").unwrap(),
        json!({"method": "GET", "url": "https://api.example.org/", "headers": {}, "query": [], "body": null})
    );
    let rest =
        asked("{url: \"https://api.example.org/\", retries: 3, allow_hosts: [\"*.example.org\"]}").unwrap();
    assert_eq!((&rest["retries"], &rest["allow_hosts"]), (&json!(3), &json!(["*.example.org"])));
}

#[test]
fn a_secret_is_never_inline() {
    for (auth, expected) in [
        ("{type: bearer, token: hush-hush}", "secret: NAME"),
        ("{type: bearer, secret: S, token: hush-hush}", "secret: NAME"),
        ("{type: basic, username: u, password: hush-hush}", "secret: NAME"),
        ("{type: api_key, in: header, name: n, secret: S, value: hush-hush}", "secret: NAME"),
        (
            "{type: oauth2_client_credentials, token_url: \"https://a/\", client_id: c, client_secret: hush-hush}",
            "secret: NAME",
        ),
        ("{type: bearer}", "`auth` is {type: bearer, secret}"),
        ("{type: digest, secret: S}", "`auth` is "),
        ("{type: basic, secret: S}", "`auth` is "),
        ("{type: api_key, in: cookie, name: n, secret: S}", "`auth` is "),
        ("{type: api_key, secret: S}", "`auth` is "),
        ("{type: bearer, secret: \"${TOKEN}\"}", "`auth` is "),
        ("{type: bearer, secret: S, username: u}", "`auth` is "),
        (
            "{type: oauth2_client_credentials, token_url: \"https://{x}/\", client_id: c, secret: S}",
            "`auth` is ",
        ),
        ("{type: oauth2_client_credentials, client_id: c, secret: S}", "`auth` is "),
    ] {
        let catalog = api(&format!("{{url: \"https://api.example.org/\", auth: {auth}}}"));
        let error = catalog.plan("api").and_then(|plan| plan.require()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidManifest, "{auth}");
        let hint = error.hint().unwrap_or_default();
        assert!(error.to_string().contains("does not suit `http_client`: `auth"), "{auth}: {error}");
        assert!(hint.contains(expected) && !error.to_string().contains("hush"), "{auth}: {error} | {hint}");
    }
}

#[test]
fn what_http_client_does_not_know_is_refused() {
    for (config, expected) in [
        ("url: \"ftp://host/\"", "url"),
        ("url: \"unix:/run/{x}.sock:/\"", "url"),
        ("url: \"unix:/run/x.sock\"", "url"),
        ("url: \"http://a/\", retries: -1", "`retries`"),
        ("url: \"http://a/\", retries: 11", "`retries`"),
        ("url: \"http://a/\", retries: \"2\"", "`retries`"),
        ("url: \"http://a/\", allow_hosts: a", "`allow_hosts`"),
        ("url: \"http://a/\", allow_hosts: [\"{x}\"]", "`allow_hosts.0`"),
        ("url: \"http://a/\", allow_hosts: [\"${TOKEN}\"]", "`allow_hosts.0`"),
        ("url: \"http://a/\", allow_hosts: [\"*\"]", "`allow_hosts.0`"),
        ("url: \"http://a/\", allow_hosts: [\"http://a\"]", "`allow_hosts.0`"),
        ("url: \"http://a/\", json: {}, body: text", "`body`"),
        ("url: \"http://a/\", json: {}, form: {}", "`form`"),
        ("url: \"http://a/\", body: text, form: {}", "`form`"),
    ] {
        let error = asked(&format!("{{{config}}}")).unwrap_err();
        assert!(error.contains(expected), "{config}: {error}");
    }
    let hosts = [
        "a",
        "a.b:80",
        "*.a.b",
        "*.a:1",
        "10.0.0.1",
        "10.0.0.0/8:443",
        "::1",
        "[::1]:80",
        "fc00::/7",
        "[fc00::/7]:1",
    ];
    let call = called(&format!("{{url: \"http://a/\", allow_hosts: {}}}", json!(hosts)));
    assert_eq!(call.allow_hosts.unwrap(), hosts);
}

#[test]
fn a_manifest_names_its_host_or_does_not() {
    for (url, expected) in [
        ("http://127.0.0.1:1/{x}", true),
        ("https://api.example.org/{x}?q=${TOKEN}", true),
        ("unix:/run/x.sock:/v1/{x}", true),
        ("http://{x}/", false),
        ("http://localhost:{x}/", false),
        ("http://${TOKEN}/", false),
    ] {
        assert_eq!(called(&format!("{{url: \"{url}\"}}")).host_is_named, expected, "{url}");
    }
    let call = called("{url: \"unix:/run/x.sock:/v1/{x}\"}");
    assert_eq!(call.url, "unix:/run/x.sock:/v1/y");
}

#[test]
fn a_caller_does_not_choose_who_gets_a_secret() {
    let auth = "auth: {type: bearer, secret: S}";
    let error = asked(&format!("{{url: \"https://{{x}}.example.org/\", {auth}}}")).unwrap_err();
    assert!(error.contains("`auth` would send a secret to whatever host a caller names"), "{error}");
    for config in [
        "url: \"https://{x}.example.org/\", allow_hosts: [\"*.example.org\"]",
        "url: \"https://${TOKEN}/{x}\"",
    ] {
        called(&format!("{{{config}, {auth}}}"));
    }
}
