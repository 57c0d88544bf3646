//! Sharing through a registry, as two people and a server do it: real processes, both engines.

use crate::support::TestEnvironment;
use crate::support::registry::{ADMIN, Person, Registry, postgres};
use serde_json::{Value, json};
use std::path::Path;

/// A runtime of one's own: Bash by another name.
fn runtime(version: &str, word: &str) -> String {
    format!(
        r#"tool_id: loud_runtime
version: "{version}"
tool_type: runtime
executor: subprocess
description: Runs a script of Bash and says {word} first
config:
  command: bash
  args: ["-c", "echo {word}; . \"$1\"", "loud", "{{entrypoint}}"]
validation:
  child_schemas:
    - match: {{tool_type: loud}}
      schema: {{type: object}}
"#
    )
}

fn script(version: &str, executor: &str) -> String {
    format!(
        "tool_id: greeter\nversion: \"{version}\"\ntool_type: loud\nexecutor: {executor}\ndescription: Greets whoever comes\nentrypoint: greet.sh\nparameters:\n  type: object\n  properties:\n    name: {{type: string, description: Who comes}}\n"
    )
}

fn write_tools(env: &TestEnvironment, runtime_version: &str, word: &str, script_version: &str) {
    env.write("tools/loud_runtime/tool.yaml", runtime(runtime_version, word));
    env.write("tools/greeter/tool.yaml", script(script_version, "loud_runtime"));
    env.write("tools/greeter/greet.sh", "echo hello\n");
}

fn said(ran: &crate::support::Ran) -> String {
    format!("{}\n{}", ran.stdout, ran.stderr)
}

fn sqlite(env: &TestEnvironment) -> String {
    env.tmp().join("registry.db").display().to_string()
}

/// The story of the two machines; on either engine.
fn two_machines(database: &str, ground: &TestEnvironment) {
    let registry = Registry::start(ground, database);
    let a = Person::new(&registry, "publisher", "publish");
    let b = Person::new(&registry, "reader", "read");
    write_tools(&a.env, "1.0.0", "one", "1.0.0");
    // What it runs on has to be there first.
    let refused = a.json(&["publish", "greeter"], 2);
    assert_eq!(refused["error"]["kind"], "not_found", "{refused}");
    assert!(refused["error"]["hint"].as_str().unwrap().contains("kiwi publish loud_runtime"), "{refused}");
    let rehearsed = a.json(&["publish", "loud_runtime", "--dry-run"], 0);
    assert_eq!(rehearsed["outcome"], "rehearsed", "{rehearsed}");
    let published = a.json(&["publish", "loud_runtime"], 0);
    assert_eq!(published["outcome"], "published", "{published}");
    let greeter = a.json(&["publish", "greeter"], 0);
    assert_eq!(a.json(&["publish", "greeter"], 0)["outcome"], "unchanged");
    // Another content under the same version changes nothing.
    a.env.write("tools/greeter/greet.sh", "echo changed\n");
    let conflict = a.json(&["publish", "greeter"], 2);
    assert_eq!(conflict["error"]["kind"], "version_conflict", "{conflict}");
    a.env.write("tools/greeter/greet.sh", "echo hello\n");

    let installed = b.json(&["install", "greeter"], 0);
    let chain = installed["installed"][0]["chain"].as_array().unwrap();
    assert_eq!(chain.len(), 2, "{installed}");
    assert_eq!(chain[0]["integrity"], greeter["integrity"]);
    assert!(Path::new(installed["installed"][0]["lockfile"].as_str().unwrap()).is_file());
    let run = |person: &Person, words: &[&str]| {
        let ran = person.env.run(&[&["run", "greeter"], words].concat());
        assert_eq!(ran.code, 0, "{}", said(&ran));
        ran.stdout
    };
    assert_eq!(run(&b, &[]), "one\nhello\n");
    assert_eq!(run(&b, &["--strict"]), "one\nhello\n");
    assert!(b.json(&["outdated"], 0)["outdated"].as_array().unwrap().is_empty());

    // A breaking runtime: who has agreed to the old one keeps it.
    a.env.write("tools/loud_runtime/tool.yaml", runtime("2.0.0", "two"));
    a.json(&["publish", "loud_runtime"], 0);
    assert_eq!(run(&b, &["--strict"]), "one\nhello\n");
    let outdated = b.json(&["outdated"], 0);
    assert_eq!(
        outdated["outdated"],
        json!([{"tool_id": "loud_runtime", "current": "1.0.0", "compatible": null, "latest": "2.0.0", "yanked": null}])
    );
    let preview = b.json(&["update", "--dry-run"], 0);
    assert_eq!(
        preview["updates"],
        json!([{"tool_id": "greeter", "changes": [{"tool_id": "loud_runtime", "from": "1.0.0", "to": "2.0.0"}]}])
    );
    assert_eq!(run(&b, &["--strict"]), "one\nhello\n");
    b.json(&["update"], 0);
    assert_eq!(run(&b, &["--strict"]), "two\nhello\n");
    assert!(b.json(&["update", "--dry-run"], 0)["updates"].as_array().unwrap().is_empty());

    // With the registry gone everything that is here still runs, and a second project has it from the cache.
    let url = registry.url.clone();
    assert_eq!(registry.stop(), Some(0));
    assert_eq!(run(&b, &["--strict"]), "two\nhello\n");
    let elsewhere = b.env.tmp().join("second");
    std::fs::create_dir_all(elsewhere.join(".ai")).unwrap();
    let mut command = b.command(&["install", "greeter", "--json"]);
    let again = crate::support::ran(&command.current_dir(&elsewhere).output().unwrap());
    assert_eq!(again.code, 0, "{}", said(&again));
    let told: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(told["installed"][0]["offline"], true, "{told}");
    assert!(again.stderr.contains(&url), "{}", again.stderr);
    let mut command = b.command(&["run", "greeter", "--strict"]);
    let ran = crate::support::ran(&command.current_dir(&elsewhere).output().unwrap());
    assert_eq!(ran.stdout, "two\nhello\n", "{}", said(&ran));
    // What was never fetched cannot be had.
    let never = b.json(&["install", "other_tool"], 1);
    assert_eq!(never["error"]["kind"], "upstream_unavailable", "{never}");
}

#[test]
fn two_machines_on_sqlite() {
    let ground = TestEnvironment::new();
    two_machines(&sqlite(&ground), &ground);
}

#[test]
fn two_machines_on_postgres() {
    let ground = TestEnvironment::new();
    two_machines(&postgres("machines"), &ground);
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn what_comes_with_kiwi_need_not_be_installed() {
    let ground = TestEnvironment::new();
    let registry = Registry::start(&ground, &sqlite(&ground));
    let a = Person::new(&registry, "reader", "read");
    for id in ["filesystem.read", "python_runtime", "python_runtime@^9"] {
        let refused = a.json(&["install", id], 2);
        let name = id.split('@').next().unwrap();
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("`{name}` comes with Kiwi")), "{refused}");
    }
}

#[test]
fn what_is_no_registry_is_told_without_words_of_the_source() {
    let env = TestEnvironment::new();
    for body in ["<html>Welcome</html>", "\"hello\"", "[1]", "{\"links\": 7}"] {
        let server = crate::support::server::Server::start(move |_| ("200 OK", body.to_owned()));
        let (code, out) = env.json(&["install", "greeter", "--registry", &server.url("")]);
        assert_eq!((code, &out["error"]["kind"]), (1, &json!("upstream_unavailable")), "{body}: {out}");
        let message = out["error"]["message"].as_str().unwrap();
        assert!(message.contains("does not answer like a registry"), "{body}: {message}");
        assert!(!message.contains("struct") && !message.contains("Chain"), "{body}: {message}");
    }
}

#[test]
fn a_file_that_is_no_database_is_told_and_left_alone() {
    let env = TestEnvironment::new();
    let file = env.tmp().join("notes.txt");
    let text = "Some notes of mine, which are longer than the head of a database is.\n".repeat(20);
    std::fs::write(&file, &text).unwrap();
    let database = file.display().to_string();
    let (code, out) = env.json(&["registry", "serve", "--database", &database, "--listen", "127.0.0.1:0"]);
    assert_eq!((code, &out["error"]["kind"]), (2, &json!("usage")), "{out}");
    assert_eq!(out["error"]["message"], format!("`{database}` is not a database"), "{out}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    assert!(!env.tmp().join("notes.txt.blobs").exists());
}

#[test]
fn a_yanked_version_is_chosen_no_more_and_kept_by_who_has_it() {
    let ground = TestEnvironment::new();
    let registry = Registry::start(&ground, &sqlite(&ground));
    let a = Person::new(&registry, "publisher", "publish");
    let b = Person::new(&registry, "reader", "read");
    write_tools(&a.env, "1.0.0", "one", "1.0.0");
    a.json(&["publish", "loud_runtime"], 0);
    a.json(&["publish", "greeter"], 0);
    a.env.write("tools/greeter/tool.yaml", script("1.1.0", "loud_runtime"));
    a.json(&["publish", "greeter"], 0);
    b.json(&["install", "greeter"], 0);
    let denied = b.json(&["yank", "greeter@1.1.0"], 3);
    assert_eq!(denied["error"]["kind"], "denied", "{denied}");
    a.json(&["yank", "greeter@1.1.0", "--reason", "it shouts"], 0);
    assert_eq!(b.env.run(&["run", "greeter", "--strict"]).code, 0);
    let outdated = b.json(&["outdated"], 0);
    assert_eq!(outdated["outdated"][0]["yanked"], "it shouts", "{outdated}");
    let fresh = Person::new(&registry, "third", "read");
    assert_eq!(fresh.json(&["install", "greeter"], 0)["installed"][0]["version"], "1.0.0");
    let refused = fresh.json(&["install", "greeter@1.1.0"], 2);
    assert_eq!(refused["error"]["message"], "greeter@1.1.0 was yanked: it shouts", "{refused}");
    let refused = fresh.json(&["install", "greeter@^1.1"], 2);
    let told = "every version of `greeter` that is `^1.1` was yanked";
    assert_eq!(refused["error"]["message"], told, "{refused}");
    assert!(!fresh.env.project().join(".ai/packages/greeter/1.1.0").exists());
    // Who has it in a lockfile gets it, wherever that lockfile came from.
    let locks = |person: &Person| person.env.project().join(".ai/lockfiles");
    copy(&locks(&b), &locks(&fresh));
    assert_eq!(fresh.json(&["install", "greeter@1.1.0"], 0)["installed"][0]["version"], "1.1.0");
    a.json(&["yank", "greeter@1.1.0", "--undo"], 0);
    let late = Person::new(&registry, "fourth", "read");
    assert_eq!(late.json(&["install", "greeter"], 0)["installed"][0]["version"], "1.1.0");
}

#[test]
fn what_is_uninstalled_is_gone_unless_somebody_needs_it() {
    let ground = TestEnvironment::new();
    let registry = Registry::start(&ground, &sqlite(&ground));
    let a = Person::new(&registry, "publisher", "publish");
    write_tools(&a.env, "1.0.0", "one", "1.0.0");
    a.json(&["publish", "loud_runtime"], 0);
    a.json(&["publish", "greeter"], 0);
    let b = Person::new(&registry, "reader", "read");
    b.json(&["install", "greeter", "--scope", "project"], 0);
    let needed = b.json(&["uninstall", "loud_runtime"], 2);
    assert_eq!(needed["error"]["kind"], "version_conflict", "{needed}");
    let gone = b.json(&["uninstall", "greeter"], 0);
    assert_eq!(gone["uninstalled"][0]["versions"], json!(["1.0.0"]), "{gone}");
    b.json(&["uninstall", "loud_runtime"], 0);
    assert_eq!(b.json(&["uninstall", "greeter"], 2)["error"]["kind"], "not_found");
    let ai = b.env.project().join(".ai");
    assert!(!ai.join("packages/greeter").exists() && !ai.join("packages/loud_runtime").exists());
    assert_eq!(b.env.json(&["run", "greeter"]).0, 2);
}

#[test]
fn signatures_count_where_they_are_asked_for() {
    let ground = TestEnvironment::new();
    let registry = Registry::start(&ground, &sqlite(&ground));
    let a = Person::new(&registry, "publisher", "publish");
    a.env.write(
        "tools/say.sh",
        "# kiwi: version: \"1.0.0\"\n# kiwi: description: Says something\necho said\n",
    );
    let published = a.json(&["publish", "say"], 0);
    let key = published["key"].as_str().unwrap();
    let b = Person::new(&registry, "reader", "read");
    b.env.write_user("config/kiwi.toml", "[trust]\nrequire_signature = [\"registry\"]\n");
    let refused = b.json(&["install", "say"], 3);
    assert_eq!(refused["error"]["kind"], "denied", "{refused}");
    assert!(!b.env.project().join(".ai/packages/say").exists());
    assert_eq!(b.run(&["trust", "key", "add", key, "--name", "the publisher"]).code, 0);
    let installed = b.json(&["install", "say"], 0);
    assert!(installed["installed"][0]["warnings"].as_array().unwrap().is_empty(), "{installed}");
    assert_eq!(b.env.run(&["run", "say"]).stdout, "said\n");
    let listed = b.env.json(&["trust", "key", "list"]).1;
    assert_eq!(listed["keys"][0]["name"], "the publisher", "{listed}");
    assert_eq!(b.run(&["trust", "key", "remove", "the publisher"]).code, 0);
    // What is installed is asked for its signature again when it is called.
    let refused = b.json(&["run", "say"], 3);
    assert_eq!(refused["error"]["kind"], "denied", "{refused}");
    let c = Person::new(&registry, "third", "read");
    let installed = c.json(&["install", "say"], 0);
    let warned = installed["installed"][0]["warnings"][0].as_str().unwrap_or_default();
    assert!(warned.contains(key), "{installed}");
}

#[test]
fn a_token_is_kept_and_forgotten() {
    let ground = TestEnvironment::new();
    let registry = Registry::start(&ground, &sqlite(&ground));
    let a = Person::new(&registry, "publisher", "publish");
    let env = TestEnvironment::new();
    let on = |words: &[&str]| {
        let mut all = words.to_vec();
        all.extend(["--registry", &registry.url]);
        all.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>()
    };
    let words = on(&["login", "--json"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let wrong = env.run_with_input(&words, "kiwi_nonsense\n");
    assert_eq!(wrong.code, 3, "{}", said(&wrong));
    let logged = env.run_with_input(&words, &format!("{}\n", a.token));
    assert_eq!(logged.code, 0, "{}", said(&logged));
    assert_eq!(serde_json::from_str::<Value>(&logged.stdout).unwrap()["user"], "publisher");
    let who = on(&["registry", "whoami"]);
    let who: Vec<&str> = who.iter().map(String::as_str).collect();
    assert_eq!(env.json(&who).1["user"], "publisher");
    for root in [env.home(), env.project()] {
        let all = std::process::Command::new("grep").args(["-r", &a.token]).arg(root).output().unwrap();
        assert!(all.stdout.is_empty(), "the token lies open");
    }
    let out = on(&["login", "--logout"]);
    let out: Vec<&str> = out.iter().map(String::as_str).collect();
    assert_eq!(env.run(&out).code, 0);
    assert_eq!(env.json(&who).0, 3);
}

#[test]
fn whoever_owns_a_name_publishes_under_it() {
    let ground = TestEnvironment::new();
    let registry = Registry::start(&ground, &sqlite(&ground));
    let a = Person::new(&registry, "publisher", "publish");
    let b = Person::new(&registry, "reader", "publish");
    let tool = "# kiwi: version: \"1.0.0\"\n# kiwi: description: Says something\necho said\n";
    a.env.write("tools/team.say.sh", tool);
    b.env.write("tools/team.shout.sh", tool);
    b.env.write("tools/other.sh", tool);
    a.json(&["publish", "team.say"], 0);
    let denied = b.json(&["publish", "team.shout"], 3);
    assert_eq!(denied["error"]["kind"], "denied", "{denied}");
    a.json(&["registry", "namespace", "add-owner", "team", "reader"], 0);
    b.json(&["publish", "team.shout"], 0);
    // Without a dot, the first publisher's.
    b.json(&["publish", "other", "--visibility", "private"], 0);
    assert_eq!(a.json(&["install", "other"], 2)["error"]["kind"], "not_found");
    b.json(&["install", "other", "--scope", "user"], 0);
    // Nobody publishes what every client has.
    assert_eq!(a.json(&["publish", "bash_runtime"], 3)["error"]["kind"], "space_violation");
    let reader = Person::new(&registry, "third", "read");
    reader.env.write("tools/mine.sh", tool);
    assert_eq!(reader.json(&["publish", "mine"], 3)["error"]["kind"], "denied");
}

#[test]
fn lockfiles_are_shared_and_conflicts_are_told() {
    let ground = TestEnvironment::new();
    let registry = Registry::start(&ground, &sqlite(&ground));
    let a = Person::new(&registry, "publisher", "publish");
    let b = Person::new(&registry, "reader", "publish");
    let tool =
        |word: &str| format!("# kiwi: version: \"1.0.0\"\n# kiwi: description: Says {word}\necho {word}\n");
    for (person, word) in [(&a, "one"), (&b, "one")] {
        person.env.write("tools/say.sh", tool(word));
    }
    assert_eq!(a.env.run(&["lock", "say"]).code, 0);
    let state = |answer: &Value| answer["lockfiles"][0]["state"].as_str().unwrap().to_owned();
    assert_eq!(state(&a.json(&["lockfile", "push"], 0)), "pushed");
    assert_eq!(state(&a.json(&["lockfile", "push"], 0)), "unchanged");
    assert_eq!(state(&b.json(&["lockfile", "push"], 0)), "behind");
    assert_eq!(state(&b.json(&["lockfile", "pull"], 0)), "pulled");
    assert_eq!(b.env.run(&["run", "say", "--strict"]).code, 0);
    // One side changes: no conflict.
    a.env.write("tools/say.sh", tool("two"));
    assert_eq!(a.env.run(&["lock", "say"]).code, 0);
    assert_eq!(state(&a.json(&["lockfile", "pull"], 0)), "ahead");
    assert_eq!(state(&a.json(&["lockfile", "push"], 0)), "pushed");
    // Both sides do.
    b.env.write("tools/say.sh", tool("three"));
    assert_eq!(b.env.run(&["lock", "say"]).code, 0);
    let conflict = b.json(&["lockfile", "push"], 3);
    assert_eq!(
        (state(&conflict).as_str(), &conflict["error"]["kind"]),
        ("conflict", &json!("lockfile_mismatch"))
    );
    assert_eq!(state(&b.json(&["lockfile", "pull"], 3)), "conflict");
    assert_eq!(state(&b.json(&["lockfile", "push", "--ours"], 0)), "pushed");
    assert_eq!(state(&a.json(&["lockfile", "pull"], 0)), "pulled");
    assert_eq!(a.env.run(&["run", "say", "--strict"]).code, 3);
    // Sets are apart.
    assert!(a.json(&["lockfile", "pull", "--set", "other"], 0)["lockfiles"][0]["state"] == "ahead");
}

#[test]
fn without_a_registry_everybody_is_told_what_to_do() {
    let env = TestEnvironment::new();
    for words in [&["install", "x"][..], &["publish", "x"], &["outdated"], &["update"], &["lockfile", "push"]]
    {
        let (code, told) = env.json(words);
        assert_eq!((code, &told["error"]["kind"]), (3, &json!("missing_requirement")), "{words:?} {told}");
        assert!(told["error"]["hint"].as_str().unwrap().contains("--registry"), "{told}");
    }
    let (code, told) = env.json(&["install", "x", "--registry", "not an address"]);
    assert_eq!((code, &told["error"]["kind"]), (2, &json!("usage")), "{told}");
    let (code, told) = env.json(&["install", "x", "--registry", "http://127.0.0.1:9"]);
    assert_eq!((code, &told["error"]["kind"]), (1, &json!("upstream_unavailable")), "{told}");
}

#[test]
fn an_agent_publishes_when_a_person_agrees() {
    let ground = TestEnvironment::new();
    let registry = Registry::start(&ground, &sqlite(&ground));
    let a = Person::new(&registry, "publisher", "publish");
    a.env.write(
        "tools/say.sh",
        "# kiwi: version: \"1.0.0\"\n# kiwi: description: Says something\necho said\n",
    );
    // The same tool through the gate, by a person.
    let params = r#"{"item_type": "tool", "item_id": "say", "path": ".ai/tools/say.sh"}"#;
    let ran = a.json(&["run", "kiwi.publish", "--params", params], 0);
    assert_eq!(ran["result"]["outcome"], "published", "{ran}");
    let b = Person::new(&registry, "reader", "read");
    b.json(&["install", "say"], 0);
}

#[test]
fn what_a_registry_has_is_found_among_the_rest() {
    let ground = TestEnvironment::new();
    let registry = Registry::start(&ground, &sqlite(&ground));
    let a = Person::new(&registry, "publisher", "publish");
    for (name, what) in
        [("pdf_merge", "Join several PDF documents into one"), ("sky", "Tell the weather of a city")]
    {
        let text = format!("# kiwi: version: \"1.0.0\"\n# kiwi: description: {what}\necho\n");
        a.env.write(&format!("tools/{name}.sh"), text);
        a.json(&["publish", name], 0);
    }
    let text = "# kiwi: version: \"1.0.0\"\n# kiwi: description: Join PDF files, for owners alone\necho\n";
    a.env.write("tools/hidden_join.sh", text);
    a.json(&["publish", "hidden_join", "--visibility", "private"], 0);
    let b = Person::new(&registry, "reader", "read");
    let found = b.json(&["search", "combine pdf files"], 0);
    let of = |found: &Value, id: &str| {
        let hits = found["hits"].as_array().unwrap();
        hits.iter().find(|hit| hit["item_id"] == id).map(|hit| hit["source"].as_str().unwrap().to_owned())
    };
    assert_eq!(found["hits"][0]["item_id"], "pdf_merge", "{found}");
    assert_eq!(of(&found, "pdf_merge").as_deref(), Some("registry"), "{found}");
    assert_eq!(of(&found, "hidden_join"), None, "{found}");
    let only = b.json(&["search", "weather", "--tier", "registry"], 0);
    assert!(only["hits"].as_array().unwrap().iter().all(|hit| hit["source"] == "registry"), "{only}");
    assert_eq!(only["hits"][0]["item_id"], "sky");
    // What is here hides what is there.
    b.json(&["install", "sky"], 0);
    let here = b.json(&["search", "sky"], 0);
    assert_eq!(of(&here, "sky").as_deref(), Some("project"), "{here}");
    assert_eq!(b.json(&["search", "combine pdf files", "--tier", "system"], 0)["status"], "success");
    // Whoever does not answer is left out, and that is told; asked for by name, it is an error.
    let url = registry.url.clone();
    drop(registry);
    let ran = b.run(&["search", "sky", "--json"]);
    assert_eq!(ran.code, 0, "{}", said(&ran));
    assert!(ran.stderr.contains(&url), "{}", said(&ran));
    assert_eq!(b.json(&["search", "sky", "--tier", "registry"], 1)["error"]["kind"], "upstream_unavailable");
    assert_eq!(b.env.json(&["search", "sky", "--tier", "registry"]).0, 3);
}

#[test]
fn whatever_is_asked_of_it_a_registry_does_not_fail() {
    let program = std::env::var_os("KIWI_TEST_SCHEMATHESIS")
        .expect("KIWI_TEST_SCHEMATHESIS names the client: `cargo xtask test` installs it");
    let ground = TestEnvironment::new();
    for database in [sqlite(&ground), postgres("asked")] {
        let registry = Registry::start(&ground, &database);
        let a = Person::new(&registry, "publisher", "publish");
        write_tools(&a.env, "1.0.0", "one", "1.0.0");
        a.json(&["publish", "loud_runtime"], 0);
        let most = if std::env::var_os("KIWI_SOAK").is_some() { "200" } else { "10" };
        let asked = std::process::Command::new(&program)
            .args(["run", &format!("{}/v1/openapi.json", registry.url), "--checks", "not_a_server_error"])
            .args([
                "--max-examples",
                most,
                "--phases",
                "coverage,fuzzing",
                "--no-color",
                "--generation-database",
                "none",
            ])
            .args(["-H", &format!("Authorization: Bearer {ADMIN}")])
            .current_dir(ground.tmp())
            .env("HOME", ground.home())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&asked.stdout);
        assert!(asked.status.success(), "{told}{}", String::from_utf8_lossy(&asked.stderr));
        assert!(told.contains("Tested: 2"), "it asked too little: {told}");
        assert!(a.json(&["publish", "loud_runtime"], 0)["outcome"] == "unchanged");
    }
}

#[test]
fn a_server_takes_the_token_it_is_given_and_says_what_is_wrong_with_its_database() {
    let ground = TestEnvironment::new();
    let mut registry = Registry::start_with(&ground, &sqlite(&ground), "127.0.0.1:0", "t");
    let mut command = ground.command(&["registry", "whoami", "--json"]);
    let known = crate::support::ran(
        &command.env("KIWI_REGISTRY", &registry.url).env("KIWI_TOKEN", "t").output().unwrap(),
    );
    assert_eq!(known.code, 0, "{}", said(&known));
    registry.kill();
    let (code, told) = ground.json(&["registry", "serve", "--database", "postgres://127.0.0.1:9/x"]);
    let message = told["error"]["message"].as_str().unwrap();
    assert!(code == 1 && message.contains("refused"), "{told}");
    let (_, told) = ground.json(&["registry", "serve", "--database", "/proc/nowhere/r.db"]);
    assert!(told["error"]["hint"].as_str().unwrap().contains("folder"), "{told}");
}

/// What was touched since it was installed is hashed, found to be something else, and put right; what was not is left.
#[test]
fn an_installation_that_was_touched_is_mended() {
    let ground = TestEnvironment::new();
    let registry = Registry::start(&ground, &sqlite(&ground));
    let a = Person::new(&registry, "publisher", "publish");
    let manifest = "tool_id: say\nversion: \"1.0.0\"\ntool_type: bash\ndescription: Says something\nexecutor: {entrypoint: run.sh}\n";
    a.env.write("tools/say/tool.yaml", manifest);
    a.env.write("tools/say/run.sh", "echo said\n");
    a.json(&["publish", "say"], 0);
    let b = Person::new(&registry, "reader", "read");
    let state = |installed: &Value| installed["installed"][0]["chain"][0]["state"].clone();
    assert_eq!(state(&b.json(&["install", "say"], 0)), "installed");
    let folder = b.env.project().join(".ai/packages/say/1.0.0");
    let script = folder.join("run.sh");
    let times = std::fs::metadata(&script).unwrap().modified().unwrap();
    let changes: [&dyn Fn(); 4] = [
        &|| {
            // As long as before, and as old.
            std::fs::write(&script, "echo evil\n").unwrap();
            std::fs::File::options().write(true).open(&script).unwrap().set_modified(times).unwrap();
        },
        &|| std::fs::remove_file(&script).unwrap(),
        &|| std::fs::write(folder.join("more.sh"), "").unwrap(),
        &|| std::fs::write(folder.join("kiwi.sig"), "nonsense").unwrap(),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        for _ in 0..3 {
            assert_eq!(state(&b.json(&["install", "say"], 0)), "present", "{number}");
            // So that what is noted is settled.
            std::thread::sleep(std::time::Duration::from_millis(60));
        }
        change();
        assert_ne!(b.env.run(&["run", "say"]).code, 0, "{number}");
        assert_eq!(state(&b.json(&["install", "say"], 0)), "installed", "{number}");
        assert_eq!(b.env.run(&["run", "say"]).stdout, "said\n", "{number}");
    }
    // A lockfile that is gone comes back.
    let locks = b.env.project().join(".ai/lockfiles");
    let lock =
        std::fs::read_dir(&locks).unwrap().flatten().find(|it| it.path().extension().is_some()).unwrap();
    assert!(lock.path().to_string_lossy().contains("say@1.0.0"), "{lock:?}");
    std::fs::remove_file(lock.path()).unwrap();
    assert_eq!(state(&b.json(&["install", "say"], 0)), "present");
    assert!(lock.path().exists());
}
