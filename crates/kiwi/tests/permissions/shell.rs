//! Shell commands, judged by what they really run.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::support::{TestEnvironment, write};
use crate::{granted, refused, run};

const GIT_AND_LS: &str = "tools: [shell.run]\nshell_commands: [git, ls]\n";

fn place() -> TestEnvironment {
    let env = TestEnvironment::new();
    let project = env.project();
    write(&project.join("x"), "still here");
    for name in ["ls", "git"] {
        let own = write(&project.join(name), "#!/bin/sh\nrm x\n");
        std::fs::set_permissions(own, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let made = Command::new("git").args(["init", "--quiet"]).current_dir(&project).status().unwrap();
    assert!(made.success());
    env
}

#[test]
fn nothing_but_what_is_listed_runs() {
    let env = place();
    let traps = [
        "rm x",
        "git status; rm -rf x",
        "git status && rm x",
        "git status || rm x",
        "git status & rm x",
        "git status | rm x",
        "git status\nrm x",
        "git status <<EOF\n$(rm x)\nEOF",
        "sh <<EOF\nrm x\nEOF",
        "git status <<'EOF'\ntext\nEOF\nrm x",
        "ls $(rm x)",
        "ls `rm x`",
        "ls \"$(rm x)\"",
        "ls <(rm x)",
        "env X=Y rm x",
        "env -S 'rm x'",
        "sh -c 'rm x'",
        "bash -c 'rm x'",
        "/bin/sh -c 'rm x'",
        "echo x | xargs rm",
        "ls x | xargs rm",
        "find . -name x -exec rm {} +",
        "find . -name x -delete",
        "timeout 5 rm x",
        "nohup rm x",
        "nice rm x",
        "command rm x",
        "exec rm x",
        "eval rm x",
        "PATH=. ls",
        "PATH=.:$PATH; ls",
        "export PATH=.; ls",
        "LD_PRELOAD=./x ls",
        "IFS=x ls",
        "BASH_ENV=x ls",
        "./ls",
        "\"$PWD/ls\"",
        "l\\s; r\\m x",
        "r''m x",
        "$0 -c 'rm x'",
        "if true; then rm x; fi",
        "f() { rm x; }; f",
        "git -c alias.y='!rm x' y",
        "git -c core.pager='rm x' --paginate status",
        "git --exec-path=. status",
        "git status > x",
        "ls 2> x",
        "{ rm x; }",
        "(rm x)",
        "ls; (rm x",
        "cd /; ls; rm x",
    ];
    for trap in traps {
        let why = refused(run(&env, GIT_AND_LS, &["shell.run", &format!("command={trap}")]));
        assert!(!why.is_empty());
        let text = std::fs::read_to_string(env.project().join("x")).unwrap();
        assert_eq!(text, "still here", "{trap}");
    }
    for words in [
        r#"["rm","x"]"#,
        r#"["/bin/rm","x"]"#,
        r#"["./ls"]"#,
        r#"["sh","-c","rm x"]"#,
        r#"["env","rm","x"]"#,
        r#"["env","PATH=.","ls"]"#,
        r#"["xargs","rm"]"#,
        r#"["find",".","-exec","rm","{}","+"]"#,
        r#"["git","-c","alias.y=!rm x","y"]"#,
        r#"["","x"]"#,
    ] {
        refused(run(&env, GIT_AND_LS, &["shell.run", &format!("command={words}")]));
        assert!(env.project().join("x").exists(), "{words}");
    }
}

#[test]
fn what_is_listed_runs() {
    let env = place();
    let done = |command: &str| granted(run(&env, GIT_AND_LS, &["shell.run", &format!("command={command}")]));
    assert!(done("git status")["stdout"].as_str().unwrap().contains("On branch"));
    assert!(done("git status --short; ls")["stdout"].as_str().unwrap().contains('x'));
    assert!(done("[\"ls\"]")["stdout"].as_str().unwrap().contains('x'));
    assert_eq!(done("[\"ls\", \"x\"]")["stdout"], "x\n");
    assert_eq!(done("ls x | ls > /dev/null")["exit_code"], 0);
    // A word that looks like an operator is a word.
    let (_, outcome) = run(&env, GIT_AND_LS, &["shell.run", "command=[\"ls\", \"; rm x\"]"]);
    assert_eq!(outcome["error"]["kind"], "tool_failed", "{outcome:#}");
    assert!(env.project().join("x").exists());
}

#[test]
fn what_is_listed_with_arguments_runs_with_those() {
    let env = place();
    let status = "tools: [shell.run]\nshell_commands: [git status]\n";
    granted(run(&env, status, &["shell.run", "command=git status --short"]));
    for command in ["git log", "git -C . status", "git", "ls", "git $X status"] {
        refused(run(&env, status, &["shell.run", &format!("command={command}")]));
    }
}
