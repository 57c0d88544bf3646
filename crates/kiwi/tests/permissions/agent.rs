//! Agents: trust, what they never touch, the floor they stand on, and whoever tries to lift it.

use serde_json::json;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::TestEnvironment;
use crate::support::kernel::{call, host, kernel, kernel_of, request};
use crate::support::server::Server;
use crate::support::write;
use crate::{agent, agent_with, bash, by_agent, policy, trusted};

#[test]
fn a_project_is_trusted_before_an_agent_calls_anything_in_it() {
    let env = TestEnvironment::new();
    bash(&env, "greet", "", "echo '\"hello\"'");
    let untrusted = |because: &str| {
        for (tool, params) in
            [("greet", json!({})), ("kiwi.info", json!({})), ("filesystem.list", json!({"path": "."}))]
        {
            let outcome = agent(&env, tool, params);
            let (id, reason) = policy(&outcome);
            assert_eq!(id, "trust", "{reason}");
            assert!(reason.contains(because), "{reason}");
            assert!(outcome.error.unwrap().hint.unwrap().contains("kiwi trust add"));
        }
    };
    let runs = || assert_eq!(agent(&env, "greet", json!({})).result, "hello");
    untrusted("is not trusted");
    assert_eq!(env.run(&["trust", "add"]).code, 0);
    runs();
    env.write("config/kiwi.toml", "[limits]\ntimeout = 60\n");
    untrusted("has changed");
    assert_eq!(agent_with(&env, ("KIWI_TRUST", "1"), "greet", json!({})).result, "hello");
    let zero = agent_with(&env, ("KIWI_TRUST", "0"), "greet", json!({}));
    assert_eq!(policy(&zero).0, "trust");
    assert_eq!(env.run(&["trust", "add"]).code, 0);
    runs();
    bash(&env, "greet", "description: another", "echo '\"hello\"'");
    bash(&env, "new", "", "echo '\"new\"'");
    runs();
    assert_eq!(agent(&env, "new", json!({})).result, "new");
    // A file beside the one that is read counts as well: what it is for may be known tomorrow.
    env.write("config/servers/more.toml", "x = 1\n");
    untrusted("has changed");
    // A person needs no such step.
    assert_eq!(env.run(&["run", "greet"]).code, 0);
}

#[test]
fn a_kiwi_that_stays_goes_on_by_no_configuration_that_was_replaced() {
    let env = trusted();
    bash(&env, "greet", "", "echo '\"hello\"'");
    for variables in [&[][..], &[("KIWI_TRUST", "1")]] {
        let before = kernel_of(host(&env, variables), &env);
        let call_by = |kernel: &_| call(kernel, by_agent("greet", json!({})));
        let replaced = || {
            let outcome = call_by(&before);
            let (id, reason) = policy(&outcome);
            assert!(id == "trust" && reason.contains("has changed since this Kiwi began"), "{reason}");
            assert!(outcome.error.unwrap().hint.unwrap().contains("start it again"));
        };
        assert_eq!(call_by(&before).result, "hello");
        env.write("config/kiwi.toml", "[profiles.mcp.permissions]\ntools = [\"nothing\"]\n");
        if variables.is_empty() {
            assert!(policy(&call_by(&before)).1.contains("since it was trusted"));
            assert_eq!(env.run(&["trust", "add"]).code, 0);
        }
        replaced();
        // Whoever begins now holds to what was added.
        assert_eq!(policy(&call_by(&kernel_of(host(&env, variables), &env))).0, "permission");
        // A person is not held by profiles of agents, and asks for nothing that was tightened.
        assert_eq!(call(&before, request("greet", json!({}))).result, "hello");
        std::fs::remove_file(env.project().join(".ai/config/kiwi.toml")).unwrap();
        assert_eq!(env.run(&["trust", "add"]).code, 0);
        assert_eq!(call_by(&before).result, "hello");
    }
}

#[test]
fn a_change_before_the_first_call_is_a_change_too() {
    let env = trusted();
    bash(&env, "greet", "", "echo '\"hello\"'");
    let kernel = kernel(&env);
    env.write("config/kiwi.toml", "[profiles.mcp.permissions]\ntools = [\"nothing\"]\n");
    assert_eq!(env.run(&["trust", "add"]).code, 0);
    let (id, reason) = policy(&call(&kernel, by_agent("greet", json!({}))));
    assert!(id == "trust" && reason.contains("has changed since this Kiwi began"), "{reason}");
}

#[test]
fn what_holds_an_agent_is_not_written_by_one() {
    let env = trusted();
    let project = env.project();
    env.write("rules/own.kappa", "rule own { guards { else -> admit } effects { } }\n");
    for folder in [".git", ".ai/logs", ".ai/sessions", ".ai/lockfiles", "src"] {
        std::fs::create_dir_all(project.join(folder)).unwrap();
    }
    write(&project.join(".git/config"), "[core]\n");
    symlink(".ai/rules", project.join("notes")).unwrap();
    symlink("../.ai", project.join("src/up")).unwrap();
    symlink("../.git/config", project.join("src/file")).unwrap();
    let absolute = project.join(".ai/rules/x.kappa").display().to_string();
    let kernel = kernel(&env);
    let paths = [
        ".ai/rules/x.kappa",
        "./.ai//rules/x.kappa",
        ".ai/tools/../rules/x.kappa",
        ".AI/Rules/x.kappa",
        "notes/x.kappa",
        "src/../notes/x.kappa",
        "src/up/rules/x.kappa",
        ".ai/config/kiwi.toml",
        ".ai/logs/x",
        ".ai/sessions/x",
        ".ai/lockfiles/x",
        ".git/config",
        ".git/hooks/pre-commit",
        "src/file",
        &absolute,
    ];
    for tool in ["filesystem.write", "filesystem.create"] {
        for path in paths {
            let outcome = call(&kernel, by_agent(tool, json!({"path": path, "content": "x"})));
            assert_eq!(policy(&outcome).0, "permission", "{tool} {path}");
        }
    }
    for path in [".ai", ".git", ".", "..", ".ai/rules", ".ai/rules/own.kappa", "notes/own.kappa", "src/up"] {
        let outcome = call(&kernel, by_agent("filesystem.delete", json!({"path": path, "recursive": true})));
        assert_eq!(policy(&outcome).0, "permission", "{path}");
    }
    assert_eq!(std::fs::read_to_string(project.join(".git/config")).unwrap(), "[core]\n");
    assert!(project.join(".ai/rules/own.kappa").exists() && !project.join(".ai/rules/x.kappa").exists());
    assert!(!project.join(".ai/config/kiwi.toml").exists());
    // Beside it an agent works.
    for path in ["src/a.txt", "top.txt", "src/../b.txt", ".ai/tools/own.txt", ".gitignore"] {
        let outcome = call(&kernel, by_agent("filesystem.write", json!({"path": path, "content": "x"})));
        assert!(outcome.error.is_none(), "{path}: {outcome:?}");
        assert_eq!(std::fs::read_to_string(project.join(path)).unwrap(), "x");
    }
    let outcome = call(&kernel, by_agent("filesystem.delete", json!({"path": "src/a.txt"})));
    assert!(outcome.error.is_none() && !project.join("src/a.txt").exists(), "{outcome:?}");
    // A person may.
    assert_eq!(env.run(&["run", "filesystem.write", "path=.ai/rules/note.txt", "content=x"]).code, 0);
}

/// One server, one profile for both, and the person first: what holds the agent is not the person's.
#[test]
fn an_agent_with_a_persons_profile_is_still_an_agent() {
    let env = trusted();
    env.write("rules/own.kappa", "rule own { guards { else -> admit } effects { } }\n");
    env.write_user("config/kiwi.toml", "[transports]\nmcp = \"cli\"\n");
    let kernel = kernel(&env);
    let write = json!({"path": ".ai/rules/own.kappa", "content": "# gone\n"});
    let allowed = call(&kernel, request("filesystem.write", json!({"path": "a.txt", "content": "a"})));
    assert!(allowed.error.is_none(), "{allowed:?}");
    assert_eq!(policy(&call(&kernel, by_agent("filesystem.write", write.clone()))).0, "permission");
    let rules = env.project().join(".ai/rules/own.kappa");
    assert!(std::fs::read_to_string(&rules).unwrap().contains("rule own"));
    assert!(call(&kernel, request("filesystem.write", write)).error.is_none(), "a person may");
}

#[test]
fn what_is_the_users_own_is_not_read_by_an_agent() {
    let env = trusted();
    let home = env.home();
    for path in [".ai/credentials/x", ".ai/keys/approval.key", ".ai/config/kiwi.toml", ".ssh/id"] {
        write(&home.join(path), "");
    }
    symlink(home.join(".ai"), env.project().join("mine")).unwrap();
    // Whatever its profile allows.
    let wide = "[profiles.mcp.permissions]\ntools = [\"**\"]\nfilesystem_read = [\"/**\"]\nfilesystem_write = [\"/**\"]\n";
    for (profile, is_wide) in [("", false), (wide, true)] {
        env.write_user("config/kiwi.toml", profile);
        let kernel = kernel(&env);
        let read = |path: &str| call(&kernel, by_agent("filesystem.read", json!({"path": path})));
        for path in ["credentials/x", "keys/approval.key", "keys/../keys/approval.key", "config/kiwi.toml"] {
            for path in [home.join(".ai").join(path), env.project().join("mine").join(path)] {
                assert_eq!(policy(&read(path.to_str().unwrap())).0, "permission", "{}", path.display());
            }
        }
        for path in [home.join(".ai"), home.clone()] {
            let listed = call(&kernel, by_agent("filesystem.list", json!({"path": path, "depth": 5})));
            assert_eq!(policy(&listed).0, "permission");
        }
        let outside = read(home.join(".ssh/id").to_str().unwrap());
        assert_eq!(outside.error.is_none(), is_wide, "{outside:?}");
    }
}

#[test]
fn an_agent_stands_on_the_floor_of_its_profile() {
    let env = trusted();
    write(&env.project().join("secret"), "the secret");
    let look = "cat secret 2>/dev/null || true; cat ~/.ai/keys/k 2>/dev/null || true; touch made 2>/dev/null || true; echo '{\"done\": 1}'";
    env.write_user("keys/k", "the key");
    for (name, keys) in [("plain", ""), ("bold", "isolation: trusted"), ("middling", "isolation: standard")] {
        bash(&env, name, keys, look);
        let outcome = agent(&env, name, json!({}));
        assert_eq!(outcome.result, json!({"done": 1}), "{name}: {outcome:?}");
        assert!(!env.project().join("made").exists());
        let explained = kernel(&env).explain(&by_agent(name, json!({}))).unwrap();
        assert_eq!((explained.isolation.as_str(), explained.profile.as_str()), ("sandboxed", "mcp"));
    }
    // A person who runs the same tool is not held like that.
    assert!(env.run(&["run", "bold"]).stdout.contains("the secret"));
    // Tools of the user's space, commands, and the network are not an agent's.
    env.write_user("tools/mine.sh", "# kiwi: version: 1.0.0\necho '\"mine\"'\n");
    let (id, reason) = policy(&agent(&env, "mine", json!({})));
    assert_eq!(id, "permission");
    assert!(reason.contains("tools of the user space"), "{reason}");
    for command in [json!("ls"), json!(["ls"]), json!("true"), json!(":")] {
        let (id, _) = policy(&agent(&env, "shell.run", json!({ "command": command })));
        assert_eq!(id, "permission");
    }
    let server = Server::start(|_| ("200 OK", "{}".into()));
    let url = server.url("/x");
    env.write(
        "tools/ask.yaml",
        format!("tool_id: ask\nversion: \"1.0.0\"\ntool_type: api\nconfig: {{url: \"{url}\"}}\n"),
    );
    assert_eq!(policy(&agent(&env, "ask", json!({}))).0, "permission");
    assert!(server.asked().is_empty());
    assert_eq!(env.run(&["run", "ask"]).code, 0);
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_project_does_not_widen_what_its_user_allows() {
    let env = TestEnvironment::new();
    write(&env.project().join("x"), "");
    env.write_user("tools/mine.sh", "# kiwi: version: 1.0.0\necho '\"mine\"'\n");
    bash(
        &env,
        "bold",
        "isolation: trusted",
        "cat x >/dev/null 2>&1 && echo '\"outside\"' || echo '\"inside\"'",
    );
    let holds = || {
        assert_eq!(policy(&agent(&env, "shell.run", json!({"command": ["ls"]}))).0, "permission");
        assert_eq!(policy(&agent(&env, "mine", json!({}))).0, "permission");
        let written = agent(&env, "filesystem.write", json!({"path": ".ai/rules/x.kappa", "content": ""}));
        assert_eq!(policy(&written).0, "permission");
        assert_eq!(agent(&env, "bold", json!({})).result, "inside");
    };
    for config in [
        "[profiles.mcp]\neverything = true\nagent = false\nisolation = \"trusted\"\nspaces = [\"user\", \"project\", \"system\"]\nask = []\n",
        "[profiles.mcp.permissions]\ntools = [\"**\"]\nshell_commands = [\"*\"]\nfilesystem_write = [\"/**\"]\nfilesystem_read = [\"/**\"]\n",
        "[transports]\nmcp = \"cli\"\n",
        "[transports]\nmcp = \"cli\"\n[profiles.cli]\neverything = true\n",
    ] {
        env.write("config/kiwi.toml", config);
        assert_eq!(env.run(&["trust", "add"]).code, 0);
        holds();
    }
    // One that only a project defines allows nothing at all.
    env.write("config/kiwi.toml", "[transports]\nmcp = \"own\"\n[profiles.own]\neverything = true\n");
    assert_eq!(env.run(&["trust", "add"]).code, 0);
    assert!(agent(&env, "bold", json!({})).error.is_some());
    // A project narrows.
    env.write("config/kiwi.toml", "[profiles.mcp.permissions]\ntools = [\"kiwi.*\"]\n");
    assert_eq!(env.run(&["trust", "add"]).code, 0);
    assert_eq!(policy(&agent(&env, "bold", json!({}))).0, "permission");
    assert!(agent(&env, "kiwi.info", json!({})).error.is_none());
    // The user widens.
    env.write("config/kiwi.toml", "");
    assert_eq!(env.run(&["trust", "add"]).code, 0);
    env.write_user("config/kiwi.toml", "[profiles.mcp]\nspaces = [\"user\", \"project\", \"system\"]\n");
    assert_eq!(agent(&env, "mine", json!({})).result, "mine");
    env.write_user("config/kiwi.toml", "[transports]\nmcp = \"cli\"\n");
    assert_eq!(agent(&env, "bold", json!({})).result, "outside");
}

/// The way to a file is exchanged again and again while the file is read: by a link in the place of a folder, and by a
/// link in the place of the file itself.
#[test]
fn whoever_exchanges_a_folder_while_it_is_read_gets_nothing() {
    let env = trusted();
    let project = env.project();
    let outside = env.home().join("outside");
    write(&outside.join("file"), "the secret");
    write(&project.join("src/file"), "open");
    write(&project.join("kept/file"), "open");
    symlink(&outside, project.join("trap")).unwrap();
    let kernel = kernel(&env);
    let is_over = AtomicBool::new(false);
    let (mut reads, mut opened) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (src, aside) = (project.join("src"), project.join("aside"));
            // Now and then it rests for so long that a slow reader finds something too.
            for round in (0..).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                let pause = Duration::from_micros(if round % 50 == 0 { 20_000 } else { 300 });
                for other in ["trap", "kept"] {
                    let other = project.join(other);
                    std::fs::rename(&src, &aside).unwrap();
                    std::fs::rename(&other, &src).unwrap();
                    std::thread::sleep(pause);
                    std::fs::rename(&src, &other).unwrap();
                    std::fs::rename(&aside, &src).unwrap();
                }
            }
        });
        let begun = Instant::now();
        let enough = |opened, reads| Duration::from_secs(if opened > 0 && opened < reads { 3 } else { 60 });
        while begun.elapsed() < enough(opened, reads) {
            let outcome = call(&kernel, by_agent("filesystem.read", json!({"path": "src/file"})));
            let said = format!("{outcome:?}");
            if said.contains("the secret") {
                is_over.store(true, Ordering::Relaxed);
                panic!("it came out: {said}");
            }
            reads += 1;
            opened += usize::from(outcome.result["content"] == "open");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    // Both have happened: it was there, and it had been exchanged.
    assert!(opened > 0 && opened < reads, "{opened} of {reads}");
}
