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
