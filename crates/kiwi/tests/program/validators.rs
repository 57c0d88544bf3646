//! `kiwi tool check`: what would go wrong is found without running anything, with file and line.

use crate::support::TestEnvironment;
use serde_json::Value;

/// The one item for a tool.
#[track_caller]
fn check(env: &TestEnvironment, id: &str) -> Value {
    let (_, said) = env.json(&["tool", "check", id]);
    said["items"][0].clone()
}

/// Its one issue: kind, where, and a part of what it says.
#[track_caller]
fn one_issue(env: &TestEnvironment, id: &str, kind: &str, file: &str, line: Option<u64>, says: &str) {
    let item = check(env, id);
    let issues = item["issues"].as_array().unwrap();
    assert_eq!(issues.len(), 1, "{item}");
    let issue = &issues[0];
    assert_eq!(issue["kind"], kind, "{issue}");
    assert!(issue["file"].as_str().unwrap().ends_with(file), "{issue}");
    assert_eq!(issue["line"].as_u64(), line, "{issue}");
    assert!(issue["message"].as_str().unwrap().contains(says), "{issue}");
}

#[test]
fn shell_scripts_are_read_by_their_shell() {
    let env = TestEnvironment::new();
    env.write("tools/good.sh", "#!/usr/bin/env bash\n# kiwi: version: 1.0.0\nif true; then echo a; fi\n");
    assert_eq!(check(&env, "good")["issues"].as_array().unwrap().len(), 0);
    env.write("tools/open.sh", "#!/usr/bin/env bash\n# kiwi: version: 1.0.0\necho a\nfi\n");
    one_issue(&env, "open", "invalid_manifest", "tools/open.sh", Some(4), "syntax error");
    env.write("tools/first.sh", "#!/usr/bin/python3\n# kiwi: version: 1.0.0\necho a\n");
    one_issue(&env, "first", "invalid_manifest", "tools/first.sh", Some(1), "`python3`");
    env.write("tools/silent.sh", "# kiwi: version: 1.0.0\necho a\n");
    one_issue(&env, "silent", "invalid_manifest", "tools/silent.sh", Some(1), "what runs this file");
    env.write("tools/marked.sh", "\u{feff}#!/usr/bin/env bash\n# kiwi: version: 1.0.0\necho a\n");
    one_issue(&env, "marked", "invalid_manifest", "tools/marked.sh", Some(1), "byte order mark");
    env.write(
        "tools/parts/tool.yaml",
        "tool_id: parts\nversion: \"1.0.0\"\ntool_type: bash\nentrypoint: main.sh\n",
    );
    env.write("tools/parts/main.sh", "#!/usr/bin/env bash\nsource \"$(dirname \"$0\")/part.sh\"\n");
    env.write("tools/parts/part.sh", "echo part\n");
    assert_eq!(
        check(&env, "parts")["issues"].as_array().unwrap().len(),
        0,
        "what is sourced needs no first line"
    );
    let ran = env.run(&["tool", "check", "open"]);
    assert!(ran.stdout.contains("open.sh:4: "), "{}", ran.stdout);
}

#[test]
fn python_is_compiled_and_never_run() {
    let env = TestEnvironment::new();
    let touched = env.tmp().join("touched");
    let good = format!("__version__ = \"1.0.0\"\nopen({touched:?}, \"w\")\ndef execute():\n    return 1\n");
    env.write("tools/good.py", good);
    assert_eq!(check(&env, "good")["ok"], true);
    assert!(!touched.exists(), "checking must not run the tool");
    env.write(
        "tools/parts/tool.yaml",
        "tool_id: parts\nversion: \"1.0.0\"\ntool_type: python\nentrypoint: main.py\n",
    );
    env.write("tools/parts/main.py", "import part\ndef execute():\n    return part.x\n");
    env.write("tools/parts/part.py", "x = 1\n\ny = = 2\n");
    one_issue(&env, "parts", "invalid_manifest", "tools/parts/part.py", Some(3), "syntax error");
    let made: Vec<_> = std::fs::read_dir(env.project().join(".ai/tools/parts")).unwrap().flatten().collect();
    assert_eq!(made.len(), 3, "nothing is written beside the files: {made:?}");
}

#[test]
fn node_is_parsed_as_what_it_is() {
    let env = TestEnvironment::new();
    env.write("tools/good.js", "// kiwi: version: 1.0.0\nexports.execute = () => 1;\n");
    env.write("tools/module.mjs", "// kiwi: version: 1.0.0\nexport const execute = () => 1;\n");
    // A module without saying so in its name, as Node runs it.
    env.write(
        "tools/unsaid.js",
        "// kiwi: version: 1.0.0\nimport os from 'node:os';\nexport const execute = () => os.EOL.length;\n",
    );
    env.write("tools/waits.js", "// kiwi: version: 1.0.0\nawait 1;\nexport const execute = () => 1;\n");
    // Types beside a tool that is started without them.
    env.write(
        "tools/built/tool.yaml",
        "tool_id: built\nversion: \"1.0.0\"\ntool_type: node\nentrypoint: main.js\n",
    );
    env.write("tools/built/main.js", "exports.execute = () => 1;\n");
    env.write("tools/built/main.ts", "export const execute = (): number => 1;\n");
    for id in ["good", "module", "unsaid", "waits", "built"] {
        assert_eq!(check(&env, id)["ok"], true, "{id}: {}", check(&env, id));
    }
    env.write("tools/badly.js", "// kiwi: version: 1.0.0\nimport os from 'node:os';\n\nconst a = ;\n");
    one_issue(&env, "badly", "invalid_manifest", "tools/badly.js", Some(4), "syntax error");
    env.write("tools/bad.js", "// kiwi: version: 1.0.0\n\nconst a = ;\n");
    one_issue(&env, "bad", "invalid_manifest", "tools/bad.js", Some(3), "syntax error");
}

#[test]
fn requests_are_complete_and_say_who_asks() {
    let env = TestEnvironment::new();
    let head = "version: \"1.0.0\"\ntool_type: api\n";
    let api = |id: &str, config: &str| {
        env.write(&format!("tools/{id}.yaml"), format!("tool_id: {id}\n{head}config:\n{config}"));
    };
    api("hostless", "  method: GET\n  url: \"https:///path\"\n");
    one_issue(&env, "hostless", "invalid_manifest", "hostless.yaml", Some(6), "`url`: \"https:///path\"");
    api("unknown", "  url: \"https://example.org\"\n  auth: {type: magic, secret: a}\n");
    one_issue(&env, "unknown", "invalid_manifest", "unknown.yaml", Some(6), "`auth.type`: \"magic\"");
    api("nameless", "  url: \"https://example.org\"\n  auth: {type: bearer}\n");
    one_issue(
        &env,
        "nameless",
        "invalid_manifest",
        "nameless.yaml",
        Some(6),
        "`auth`: \"secret\" is a required",
    );
    api("keyless", "  url: \"https://example.org\"\n  auth: {type: api_key, name: k, secret: a}\n");
    one_issue(&env, "keyless", "invalid_manifest", "keyless.yaml", Some(6), "`auth`: \"in\" is a required");

    api("unstored", "  url: \"https://example.org\"\n  auth: {type: bearer, secret: my_token}\n");
    one_issue(&env, "unstored", "missing_requirement", "unstored.yaml", Some(6), "`my_token`");
    let hint = check(&env, "unstored")["issues"][0]["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("kiwi auth set my_token"), "{hint}");
    assert_eq!(env.run_with_input(&["auth", "set", "my_token"], "s3cret\n").code, 0);
    assert_eq!(check(&env, "unstored")["ok"], true);
}

#[test]
fn what_is_missing_is_named_with_what_would_help() {
    let env = TestEnvironment::new();
    env.write(
        "tools/needy.yaml",
        "tool_id: needy\nversion: \"1.0.0\"\ntool_type: script\nexecutor: subprocess\nrequires_commands: [no_such_command]\nrequires_env: [NO_SUCH_NAME]\nrequires_secret: [no_such_secret]\nconfig: {command: echo}\n",
    );
    let item = check(&env, "needy");
    let issues = item["issues"].as_array().unwrap();
    let found: Vec<_> = issues
        .iter()
        .map(|it| (it["kind"].as_str().unwrap(), it["line"].as_u64().unwrap(), it["hint"].as_str().unwrap()))
        .collect();
    assert_eq!(found.len(), 3, "{item}");
    for ((kind, line, hint), (at, help)) in
        found.iter().zip([(5, "install"), (6, "NO_SUCH_NAME=…"), (7, "kiwi auth set no_such_secret")])
    {
        assert_eq!((*kind, *line), ("missing_requirement", at), "{item}");
        assert!(hint.contains(help), "{hint}");
    }
}

#[test]
fn a_missing_interpreter_or_engine_is_an_issue() {
    let env = TestEnvironment::new();
    env.write("tools/hello.py", "__version__ = \"1.0.0\"\ndef execute():\n    return 1\n");
    let boxed = "tool_id: boxed\nversion: \"1.0.0\"\ntool_type: docker\nexecutor:\n  image: a:1\n";
    env.write("tools/boxed.yaml", boxed);
    let empty = env.tmp().join("empty");
    std::fs::create_dir(&empty).unwrap();
    for (id, program) in [("hello", "Python"), ("boxed", "Docker")] {
        let output = env.command(&["tool", "check", id, "--json"]).env("PATH", &empty).output().unwrap();
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        let issue = &said["items"][0]["issues"][0];
        assert_eq!(issue["kind"], "missing_requirement", "{said}");
        assert!(issue["hint"].as_str().unwrap().contains(program), "{issue}");
    }
}

#[test]
fn a_container_is_built_from_files_that_are_there() {
    let env = TestEnvironment::new();
    env.write(
        "tools/made/tool.yaml",
        "tool_id: made\nversion: \"1.0.0\"\ntool_type: docker\nconfig:\n  build: {context: image}\n",
    );
    env.write("tools/made/image/readme", "no build file\n");
    one_issue(&env, "made", "invalid_manifest", "tools/made/tool.yaml", Some(5), "image/Dockerfile");
    env.write(
        "tools/empty.yaml",
        "tool_id: empty\nversion: \"1.0.0\"\ntool_type: docker\nconfig: {command: [ls]}\n",
    );
    assert_eq!(check(&env, "empty")["issues"][0]["kind"], "chain_invalid");
}

#[test]
fn a_slip_in_a_configuration_is_told() {
    let env = TestEnvironment::new();
    let tool = "tool_id: slip\nversion: \"1.0.0\"\ntool_type: docker\nconfig: {image: \"kiwi-none:1\", volumns: []}\n";
    env.write("tools/slip.yaml", tool);
    let said = check(&env, "slip")["warnings"].to_string();
    assert!(said.contains("`config.volumns` means nothing; did you mean `volumes`?"), "{said}");
}

#[test]
fn slips_are_told_with_what_was_meant() {
    let env = TestEnvironment::new();
    env.write("tools/slip/main.py", "def execute():\n    pass\n");
    let manifest = |tool_type: &str, entrypoint: &str, more: &str| {
        let head = format!("tool_id: slip\nversion: \"1.0.0\"\ntool_type: {tool_type}\n");
        env.write("tools/slip/tool.yaml", format!("{head}entrypoint: {entrypoint}\n{more}\n"));
    };
    for (tool_type, entrypoint, more, hint) in [
        ("python", "main.py", "requires: pandas", "write a list: `requires: [\"pandas\"]`"),
        (
            "python",
            "main.py",
            "permissions: {filesystem_read: data}",
            "write a list: `filesystem_read: [\"data\"]`",
        ),
        ("python", "main.py", "mutates_state: yes", "write `true` or `false`"),
        ("python", "main.py", "description: 12", "put the value in quotes"),
        ("python", "main.py", "permissions: [filesystem_read]", "`permissions: {filesystem_read: [data]}`"),
        ("pyton", "main.py", "", "did you mean `tool_type: python`?"),
        ("python", "mian.py", "", "did you mean `main.py`?"),
        ("python", "main.py", "config: {limits: {memory: 256m}}", "bytes, such as 268435456"),
        ("python", "main.py", "config: {limits: {mem: 1}}", "any of cpu, memory, pids, files and output"),
        ("python", "main.py", "config: {network: no}", "`none`, or a list of hosts"),
        ("python", "main.py", "config: {mounts: [{path: data, mode: rx}]}", "{path: …, mode: rw}"),
    ] {
        manifest(tool_type, entrypoint, more);
        let issue = &check(&env, "slip")["issues"][0];
        assert!(issue["hint"].as_str().unwrap_or_default().contains(hint), "{hint}: {issue}");
    }
    manifest("python", "main.py", "parameters: {type: object, properties: {n: {type: int}}}");
    let issue = &check(&env, "slip")["issues"][0];
    let says = "`properties.n.type`: \"int\" is no type; there are string, integer";
    assert!(issue["message"].as_str().unwrap().contains(says), "{issue}");
    for (more, warning) in [
        ("require: [x]", "require (did you mean `requires`?)"),
        ("timeout: 3", "timeout (it belongs in `config`)"),
        ("parameters: {name: {type: string}}", "this one accepts anything"),
        (
            "parameters: {type: object, propertes: {n: {}}}",
            "`propertes` of `parameters` means nothing; did you mean `properties`?",
        ),
        (
            "parameters: [{name: n, requried: true}]",
            "`requried` of `n` means nothing; did you mean `required`?",
        ),
        (
            "executor: {id: python_runtime, versoin: \"^1\"}",
            "`executor.versoin` means nothing; did you mean `version`?",
        ),
    ] {
        manifest("python", "main.py", more);
        let checked = env.run(&["tool", "check", "slip"]);
        assert!(checked.stderr.contains(warning), "{warning}: {}", checked.stderr);
    }
    for more in
        ["parameters: {}", "parameters: {type: object}", "parameters: {$ref: \"#/$defs/x\", $defs: {x: {}}}"]
    {
        manifest("python", "main.py", more);
        assert!(!env.run(&["tool", "check", "slip"]).stderr.contains("anything"), "{more}");
    }
    let bash = "tool_id: slip\nversion: \"1.0.0\"\ntool_type: bash\nentrypoint: main.sh\nrequires: [jq]\n";
    env.write("tools/slip/tool.yaml", bash);
    env.write("tools/slip/main.sh", "#!/usr/bin/env bash\n");
    let told = env.run(&["tool", "check", "slip"]).stderr;
    assert!(told.contains("`bash_runtime` installs none; commands are `requires_commands`"), "{told}");
    let api = "tool_id: slip\nversion: \"1.0.0\"\ntool_type: api\nconfig: {url: \"https://localhost/\", method: FETCH}\n";
    env.write("tools/slip/tool.yaml", api);
    let told = check(&env, "slip").to_string();
    assert!(told.contains("PATCH") && told.contains("OPTIONS"), "all methods: {told}");
}
