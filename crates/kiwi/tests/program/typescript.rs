//! TypeScript runs where Node itself takes the types away, and is refused before anything starts where it does not.

use crate::support::mcp::components;
use crate::support::{TestEnvironment, ran};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const MODULE: &str = "\
// kiwi: version: 1.0.0
// kiwi: parameters: {type: object, properties: {n: {type: integer}}}
export const execute = ({ n }: { n: number }): { double: number } => ({ double: n * 2 });
";
const SCRIPT: &str = "\
// kiwi: version: 1.0.0
// kiwi: parameters: {type: object, properties: {n: {type: integer}}}
exports.execute = ({ n }: { n: number }): { double: number } => ({ double: n * 2 });
";

/// The program, with the programs of one folder before all others.
fn with(env: &TestEnvironment, folder: &Path, words: &[&str]) -> Command {
    let mut command = env.command(words);
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    command.env("PATH", path);
    command
}

/// What `tool check` finds in one tool: the line, and what it says.
fn issues(command: &mut Command) -> Vec<(Option<u64>, String)> {
    let said: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let issues = said["items"][0]["issues"].as_array().unwrap().iter();
    issues.map(|it| (it["line"].as_u64(), it["message"].as_str().unwrap().to_owned())).collect()
}

#[test]
fn it_runs_at_every_level_as_a_file_and_as_a_folder() {
    let env = TestEnvironment::new();
    let node = components().join("node_modules/node/bin");
    env.write("tools/module.ts", MODULE);
    env.write("tools/script.ts", SCRIPT);
    let manifest = "version: \"1.0.0\"\ntool_type: script\nexecutor: node_runtime\nentrypoint: main.ts\n\
                    requires: [left-pad@1.3.0]\n";
    env.write("tools/folder/tool.yaml", format!("tool_id: folder\n{manifest}"));
    env.write("tools/folder/times.mts", "export const times: number = await Promise.resolve(2);\n");
    env.write(
        "tools/folder/main.ts",
        "import { times } from './times.mts';\nimport pad from 'left-pad';\n\
         export const execute = ({ n }: { n: number }) => ({ double: Number(pad(n * times, 9)) });\n",
    );
    for tool in ["module", "script", "folder"] {
        for level in ["trusted", "standard", "sandboxed", "restricted"] {
            let said =
                ran(&with(&env, &node, &["run", tool, "n=21", "--isolation", level]).output().unwrap());
            assert_eq!(
                (said.code, said.stdout.trim()),
                (0, r#"{"double":42}"#),
                "{tool} at {level}: {}",
                said.stderr
            );
            assert!(!said.stderr.contains("Warning"), "{tool} at {level}: {}", said.stderr);
        }
    }
}

#[test]
fn it_is_checked_as_what_it_becomes() {
    let env = TestEnvironment::new();
    let node = components().join("node_modules/node/bin");
    env.write("tools/module.ts", MODULE);
    env.write("tools/script.ts", SCRIPT);
    env.write("tools/typed.ts", "// kiwi: version: 1.0.0\n\nconst a: number = ;\n");
    env.write("tools/other.ts", "// kiwi: version: 1.0.0\nenum A { B }\n");
    env.write("tools/late.ts", "// kiwi: version: 1.0.0\nexport const a: number = 1;\n\nreturn a;\n");
    let found = |tool: &str| issues(&mut with(&env, &node, &["tool", "check", tool, "--json"]));
    assert_eq!(found("module"), []);
    assert_eq!(found("script"), []);
    for (tool, line, part) in
        [("typed", 3, "syntax error"), ("other", 2, "enum"), ("late", 4, "eturn statement")]
    {
        let found = found(tool);
        assert_eq!(found.len(), 1, "{tool}: {found:?}");
        assert_eq!(found[0].0, Some(line), "{tool}: {found:?}");
        assert!(found[0].1.contains(part), "{tool}: {found:?}");
    }
}

#[test]
fn a_node_that_is_too_old_is_told_before_anything_starts() {
    let env = TestEnvironment::new();
    env.write("tools/module.ts", MODULE);
    env.write("tools/plain.js", "// kiwi: version: 1.0.0\nexports.execute = () => 1;\n");
    // One that only knows how old it is; whatever else it is asked for leaves a trace.
    let started = env.tmp().join("started");
    let old = env.tmp().join("old");
    std::fs::create_dir(&old).unwrap();
    let script =
        format!("#!/bin/sh\ncase $1 in --version) echo v20.20.2;; *) : > '{}';; esac\n", started.display());
    std::fs::write(old.join("node"), script).unwrap();
    std::fs::set_permissions(old.join("node"), std::fs::Permissions::from_mode(0o755)).unwrap();

    let said = ran(&with(&env, &old, &["run", "module", "n=1", "--json"]).output().unwrap());
    let answer: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(answer["error"]["kind"], "missing_requirement", "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("`module.ts` is TypeScript") && message.contains("Node 20.20.2"), "{message}");
    assert!(answer["error"]["hint"].as_str().unwrap().contains("Node 22.18"), "{answer}");
    assert!(!started.exists(), "nothing was to start");
    assert_eq!(said.code, 3);

    let found = issues(&mut with(&env, &old, &["tool", "check", "module", "--json"]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].1.contains("Node 20.20.2"), "{found:?}");
    assert!(!started.exists(), "nothing was to start");
    // It is the file that is started that counts.
    assert_eq!(ran(&with(&env, &old, &["run", "plain"]).output().unwrap()).code, 0);
    assert!(started.exists());
}
