//! The core tools through the whole program: `filesystem.*` and `shell.run`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use support::kernel::{call, kernel, request};
use support::{TestEnvironment, write};

fn ok(env: &TestEnvironment, tool: &str, words: &[&str]) -> Value {
    let (code, outcome) = env.json(&[&["run", tool][..], words].concat());
    assert_eq!(code, 0, "{tool} {words:?}: {outcome}");
    outcome["result"].clone()
}

fn fails(env: &TestEnvironment, tool: &str, words: &[&str], because: &str) {
    let (code, outcome) = env.json(&[&["run", tool][..], words].concat());
    assert_ne!(code, 0, "{tool} {words:?}: {outcome}");
    let message = outcome["error"]["message"].as_str().unwrap();
    assert!(message.contains(because), "{tool} {words:?}: {message}");
}

/// A sandbox has a `/tmp` of its own, in which a tool may do anything: what is allowed elsewhere shows elsewhere.
#[test]
fn files_are_made_replaced_read_and_deleted_outside_of_temporary_folders() {
    let env = TestEnvironment::new();
    let folder = tempfile::Builder::new().prefix("kiwi-test-").tempdir_in("/var/tmp").unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let path = |name: &str| format!("path={}", folder.join(name).display());
    assert_eq!(ok(&env, "filesystem.write", &[&path("a"), "content=one"])["created"], true);
    assert_eq!(ok(&env, "filesystem.write", &[&path("a"), "content=two"])["created"], false);
    assert_eq!(ok(&env, "filesystem.read", &[&path("a")])["content"], "two");
    assert_eq!(ok(&env, "filesystem.create", &[&path("b"), "content=three"])["bytes"], 5);
    ok(&env, "filesystem.delete", &[&path("b")]);
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["a"]);
}

#[test]
fn a_file_is_read_whole_and_in_parts() {
    let env = TestEnvironment::new();
    write(&env.project().join("notes.txt"), "one\ntwo\nthree\n");
    write(&env.project().join("app/[id]/page.tsx"), "page");
    write(&env.project().join("data.bin"), [0xff, 0xfe, 0x00, 0x01]);
    let whole = ok(&env, "filesystem.read", &["path=notes.txt"]);
    let expected = json!({"path": "notes.txt", "content": "one\ntwo\nthree\n", "bytes": 14, "truncated": false, "encoding": "utf-8"});
    assert_eq!(whole, expected);
    let part = ok(&env, "filesystem.read", &["path=./notes.txt", "offset=2", "limit=1"]);
    assert_eq!((part["content"].as_str(), part["truncated"].as_bool()), (Some("two\n"), Some(true)));
    let binary = ok(&env, "filesystem.read", &["path=data.bin"]);
    assert_eq!((binary["content"].as_str(), binary["encoding"].as_str()), (Some("//4AAQ=="), Some("base64")));
    // What a caller gives is a name, not a pattern.
    assert_eq!(ok(&env, "filesystem.read", &["path=app/[id]/page.tsx"])["content"], "page");
    fails(&env, "filesystem.read", &["path=*.txt"], "no such file");
    fails(&env, "filesystem.read", &["path=none"], "no such file");
    // By way of a folder, and by its whole name.
    let absolute = format!("path={}", env.project().join("notes.txt").display());
    assert_eq!(ok(&env, "filesystem.read", &[&absolute])["bytes"], 14);
    assert_eq!(ok(&env, "filesystem.read", &["path=app/../notes.txt"])["bytes"], 14);
}

#[test]
fn a_link_is_found_under_the_name_that_was_given() {
    let env = TestEnvironment::new();
    let outside = write(&env.home().join("outside/file"), "outside");
    write(&env.project().join("real/file"), "inside");
    symlink("real/file", env.project().join("link")).unwrap();
    symlink("real", env.project().join("folder")).unwrap();
    symlink(&outside, env.project().join("away")).unwrap();
    for (path, text) in [("link", "inside"), ("folder/file", "inside"), ("away", "outside")] {
        assert_eq!(ok(&env, "filesystem.read", &[&format!("path={path}")])["content"], text, "{path}");
    }
    ok(&env, "filesystem.write", &["path=link", "content=new"]);
    ok(&env, "filesystem.create", &["path=folder/more", "content=x"]);
    assert_eq!(std::fs::read_to_string(env.project().join("real/file")).unwrap(), "new");
    assert!(env.project().join("link").is_symlink() && env.project().join("real/more").is_file());
    fails(&env, "filesystem.delete", &["path=link"], "symbolic link");
    ok(&env, "filesystem.delete", &["path=folder/more"]);
    assert!(!env.project().join("real/more").exists() && env.project().join("real/file").exists());
}

#[test]
fn files_are_made_replaced_and_removed() {
    let env = TestEnvironment::new();
    assert_eq!(
        ok(&env, "filesystem.write", &["path=a/b/c.txt", "content=one"]),
        json!({"path": "a/b/c.txt", "bytes": 3, "created": true})
    );
    let file = env.project().join("a/b/c.txt");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
    assert_eq!(ok(&env, "filesystem.write", &["path=a/b/c.txt", "content=two"])["created"], false);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two");
    assert_eq!(std::fs::read_dir(env.project().join("a/b")).unwrap().count(), 1, "nothing is left beside it");
    fails(&env, "filesystem.create", &["path=a/b/c.txt", "content=x"], "there already");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two");
    ok(&env, "filesystem.create", &["path=top.txt"]);
    assert_eq!(std::fs::read_to_string(env.project().join("top.txt")).unwrap(), "");
    fails(&env, "filesystem.write", &["path=a", "content=x"], "a folder");
    fails(&env, "filesystem.delete", &["path=a"], "not empty");
    ok(&env, "filesystem.delete", &["path=a/b/c.txt"]);
    ok(&env, "filesystem.write", &["path=a/b/d", "content=x"]);
    ok(&env, "filesystem.delete", &["path=a", "recursive=true"]);
    ok(&env, "filesystem.delete", &["path=top.txt"]);
    assert!(!env.project().join("a").exists() && !env.project().join("top.txt").exists());
    fails(&env, "filesystem.delete", &["path=none"], "no such file");
    assert!(env.project().join(".ai").is_dir());
}

#[test]
fn a_folder_is_listed() {
    let env = TestEnvironment::new();
    for path in ["src/a.rs", "src/deep/b.rs", "src/c.txt"] {
        write(&env.project().join(path), "x");
    }
    symlink("/etc", env.project().join("src/etc")).unwrap();
    let names = |words: &[&str]| -> Vec<String> {
        let listed = ok(&env, "filesystem.list", words);
        listed["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["path"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&["path=src"]), ["a.rs", "c.txt", "deep", "etc"]);
    assert_eq!(names(&["path=src", "depth=2"]), ["a.rs", "c.txt", "deep", "deep/b.rs", "etc"]);
    assert_eq!(names(&["path=src", "depth=9", "glob=**/*.rs"]), ["a.rs", "deep/b.rs"]);
    let listed = ok(&env, "filesystem.list", &["path=src"]);
    assert_eq!(listed["entries"][0], json!({"path": "a.rs", "type": "file", "bytes": 1}));
    assert_eq!(listed["entries"][3]["type"], "link");
    fails(&env, "filesystem.list", &["path=src/a.rs"], "not a folder");
    fails(&env, "filesystem.list", &["path=none"], "no such file");
}

#[test]
fn a_command_runs_in_the_project() {
    let env = TestEnvironment::new();
    write(&env.project().join("sub/file"), "text");
    let result = ok(&env, "shell.run", &["command=echo hi; echo err >&2; pwd"]);
    let project = env.project().canonicalize().unwrap();
    assert_eq!(result["exit_code"], 0);
    assert_eq!(result["stdout"], format!("hi\n{}\n", project.display()));
    assert_eq!(result["stderr"], "err\n");
    let words = ok(&env, "shell.run", &["command=[\"echo\", \"a b\", \"$HOME\", \";\"]"]);
    assert_eq!(words["stdout"], "a b $HOME ;\n");
    assert_eq!(ok(&env, "shell.run", &["command=cat file", "cwd=sub"])["stdout"], "text");
    let (code, outcome) = env.json(&["run", "shell.run", "command=echo out; echo why >&2; exit 3"]);
    assert_eq!((code, outcome["status"].as_str()), (1, Some("error")), "{outcome}");
    assert_eq!(outcome["result"], json!({"exit_code": 3, "stdout": "out\n", "stderr": "why\n"}));
    assert_eq!(outcome["error"]["kind"], "tool_failed");
    assert_eq!(outcome["error"]["details"]["exit_code"], 3);
    let (_, outcome) = env.json(&["run", "shell.run", "command=sleep 30", "timeout=0.5"]);
    assert_eq!(outcome["error"]["kind"], "timeout", "{outcome}");
    fails(&env, "shell.run", &["command=[\"no-such-program-here\"]"], "no-such-program-here");
}

#[test]
fn redirections_start_from_the_folder_the_command_runs_in() {
    let env = TestEnvironment::new();
    write(&env.project().join("sub/in"), "text");
    let list = write(
        &env.tmp().join("list.yaml"),
        "tools: [shell.run]\nshell_commands: [cat]\nfilesystem_read: [\"sub/*\"]\nfilesystem_write: [\"sub/*\"]\n",
    );
    for level in ["standard", "sandboxed", "restricted"] {
        for (at, command) in ["cat < in > out", "sh -c 'cat < in > out'"].into_iter().enumerate() {
            let out = env.project().join("sub/out");
            let command = format!("command={command}");
            let words = [&command, "cwd=sub", "--isolation", level, "--permissions", list.to_str().unwrap()];
            ok(&env, "shell.run", &words);
            assert_eq!(std::fs::read_to_string(&out).unwrap(), "text", "{level} {at}");
            std::fs::remove_file(out).unwrap();
            assert!(!env.project().join("out").exists());
            // From another folder the same names are others.
            let words = [&command, "--isolation", level, "--permissions", list.to_str().unwrap()];
            fails(&env, "shell.run", &words, "is not allowed");
        }
    }
}

/// An agent whose user lets it run some commands.
fn commanding(read: &str, written: &str) -> TestEnvironment {
    let env = TestEnvironment::new();
    for path in
        ["src/a.txt", "src/deep/b.txt", "secret/s.txt", "out/old", ".git/config", ".ai/rules/own.kappa"]
    {
        write(&env.project().join(path), format!("in {path}\n"));
    }
    write(&env.project().join(".ai/rules/own.kappa"), "rule own { guards { else -> admit } effects { } }\n");
    write(&env.home().join("mine"), "the secret");
    env.write_user(
        "config/kiwi.toml",
        format!(
            "[profiles.mcp.permissions]\ntools = [\"**\"]\nshell_commands = [\"cat\", \"ls\", \"touch\", \"pwd\"]\nfilesystem_read = {read}\nfilesystem_write = {written}\n"
        ),
    );
    assert_eq!(env.run(&["trust", "add"]).code, 0);
    env
}

fn commanded(env: &TestEnvironment, command: &str, cwd: &str) -> (i64, String, String) {
    let mut asked = request("shell.run", json!({"command": command, "cwd": cwd}));
    asked.transport = kiwi_space::Transport::Mcp;
    let outcome = call(&kernel(env), asked);
    let text = |name: &str| outcome.result[name].as_str().unwrap_or_default().to_owned();
    let message = outcome.error.as_ref().map(|fault| fault.message.clone()).unwrap_or_default();
    (
        outcome.result["exit_code"].as_i64().unwrap_or(-1),
        text("stdout"),
        format!("{}{message}", text("stderr")),
    )
}

#[test]
fn an_agents_command_sees_what_the_agent_may_read() {
    let env = commanding("[\"**\"]", "[\"out/**\"]");
    let run = |command: &str, cwd: &str| commanded(&env, command, cwd);
    assert_eq!(run("cat src/a.txt", "."), (0, "in src/a.txt\n".into(), String::new()));
    assert_eq!(run("ls", ".").1, "out\nsecret\nsrc\n");
    assert_eq!(
        run("cat a.txt deep/b.txt", "src"),
        (0, "in src/a.txt\nin src/deep/b.txt\n".into(), String::new())
    );
    assert_eq!(
        run("pwd; ls", "src/deep").1,
        format!("{}\nb.txt\n", env.project().join("src/deep").display())
    );
    assert_eq!(run("touch out/new; ls out", ".").1, "new\nold\n");
    assert_eq!(run("ls > list; cat list", "out").1, "list\nnew\nold\n");
    assert!(env.project().join("out/new").exists());
    // Nothing else is written, and nothing else is seen.
    for command in ["touch src/new", "touch top", "touch .ai/rules/x", "touch src/a.txt"] {
        assert_ne!(run(command, ".").0, 0, "{command}");
    }
    let (code, _, why) = run("ls > src/new", ".");
    assert!(code == -1 && why.contains("writing `"), "{why}");
    let outside = run(&format!("cat {}", env.home().join("mine").display()), ".");
    assert!(outside.0 != 0 && !outside.1.contains("the secret"), "{outside:?}");
    assert!(!env.project().join("src/new").exists() && !env.project().join("top").exists());
}

#[test]
fn an_agents_command_sees_no_more_than_that() {
    let env = commanding("[\"src/*\", \"out/**\"]", "[]");
    let run = |command: &str| commanded(&env, command, ".");
    assert_eq!(run("cat src/a.txt").1, "in src/a.txt\n");
    assert_eq!(run("ls . src").1, ".:\nout\nsrc\n\nsrc:\na.txt\n");
    for command in ["cat src/deep/b.txt", "cat secret/s.txt", "cat .ai/rules/own.kappa", "touch out/x"] {
        let (code, seen, _) = run(command);
        assert!(code != 0 && seen.is_empty(), "{command}: {seen}");
    }
    // An agent that may write everything writes beside what holds it.
    let env = commanding("[\"**\"]", "[\"**\"]");
    let run = |command: &str| commanded(&env, command, ".");
    assert_eq!(run("touch src/new secret/new").0, 0);
    for command in ["touch .ai/rules/x", "touch .git/x", "touch .git/config", "touch .ai/x"] {
        assert_ne!(run(command).0, 0, "{command}");
    }
    assert!(env.project().join("src/new").exists() && !env.project().join(".git/x").exists());
}

#[test]
fn a_person_who_asks_for_walls_reads_the_project() {
    let env = TestEnvironment::new();
    write(&env.project().join("sub/file"), "text");
    let result = ok(&env, "shell.run", &["command=cat file", "cwd=sub", "--isolation", "sandboxed"]);
    assert_eq!(result["stdout"], "text");
    let (_, outcome) = env.json(&["run", "shell.run", "command=touch sub/new", "--isolation", "sandboxed"]);
    assert_eq!(outcome["error"]["kind"], "tool_failed", "{outcome}");
    assert!(!env.project().join("sub/new").exists());
}
