//! What was agreed to run: the scenarios of a team that commits its lockfiles.

use crate::support::{TestEnvironment, write};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Publishes a version of a runtime that greets with its version, side by side with the others.
fn runtime(env: &TestEnvironment, id: &str, version: &str) {
    let manifest = format!(
        "tool_id: {id}\nversion: \"{version}\"\ntool_type: runtime\nexecutor: subprocess\nconfig: {{command: sh, \
         base_args: [\"-c\", 'echo {id} {version}: \"$(basename \"$1\")\"', sh]}}\nentrypoint_is_file: true\nvalidation: \
         {{child_schemas: [{{match: {{tool_type: script}}, schema: {{type: object}}}}]}}\n"
    );
    env.install(id, version, &[("tool.yaml", &manifest)]);
}

/// A tool of the project that rests on a runtime.
fn processor(env: &TestEnvironment, executor: &str) -> PathBuf {
    let manifest = format!(
        "tool_id: data_processor\nversion: \"1.2.0\"\ntool_type: script\nexecutor: {executor}\ncategory: \
         data\nentrypoint: job.txt\nparameters: {{type: object, properties: {{day: {{type: string}}}}}}\n"
    );
    env.write("tools/data/data_processor/job.txt", "job\n");
    env.write("tools/data/data_processor/tool.yaml", manifest)
}

fn lockfile(env: &TestEnvironment, name: &str) -> PathBuf {
    env.project().join(".ai/lockfiles").join(format!("{name}.lock.json"))
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        .unwrap()
}

fn chain(out: &Value) -> Vec<String> {
    let link =
        |link: &Value| format!("{}@{}", link["tool_id"].as_str().unwrap(), link["version"].as_str().unwrap());
    out["chain"].as_array().unwrap().iter().map(link).collect()
}

#[track_caller]
fn ok(env: &TestEnvironment, words: &[&str]) -> String {
    let ran = env.run(words);
    assert_eq!(ran.code, 0, "{words:?}\n{}\n{}", ran.stdout, ran.stderr);
    ran.stdout
}

#[test]
fn production_drift_a_newer_runtime_appears_and_locked_runs_keep_the_old_one() {
    let env = TestEnvironment::new();
    processor(&env, "day_runtime");
    runtime(&env, "day_runtime", "3.11.0");
    ok(&env, &["lockfile", "freeze", "data_processor"]);
    let lock = read(&lockfile(&env, "data/data_processor@1.2.0"));
    assert_eq!(lock["resolved_chain"][1]["version"], "3.11.0");

    // Day 30.
    runtime(&env, "day_runtime", "3.12.0");
    for words in [&["run", "data_processor", "--locked"][..], &["run", "data_processor"]] {
        let (code, out) = env.json(words);
        assert_eq!((code, &out["warnings"]), (0, &json!([])), "{out:#}");
        assert_eq!(chain(&out), ["data_processor@1.2.0", "day_runtime@3.11.0", "subprocess@1.0.0"]);
        assert!(out["result"].as_str().unwrap().starts_with("day_runtime 3.11.0:"), "{out:#}");
    }
    // Without the lockfile everything validates and something else runs: what hashes alone cannot see.
    let (code, out) = env.json(&["run", "data_processor", "--lock", "off"]);
    assert_eq!((code, chain(&out)[1].as_str()), (0, "day_runtime@3.12.0"), "{out:#}");
    assert!(ok(&env, &["chain", "data_processor"]).contains("3.11.0"));
    let diff = ok(&env, &["lockfile", "diff", "data_processor"]);
    assert!(diff.contains("link 2 `day_runtime`: version 3.11.0 → 3.12.0"), "{diff}");
}

#[test]
fn two_developers_with_different_runtimes_run_the_same() {
    let (alice, bob) = (TestEnvironment::new(), TestEnvironment::new());
    for (env, own) in [(&alice, "3.11.0"), (&bob, "3.12.0")] {
        processor(env, "day_runtime");
        runtime(env, "day_runtime", own);
    }
    ok(&alice, &["lock", "data_processor"]);
    // What git carries over: the lockfile, not the index.
    let text = std::fs::read(lockfile(&alice, "data/data_processor@1.2.0")).unwrap();
    write(&lockfile(&bob, "data/data_processor@1.2.0"), &text);

    let ran = bob.run(&["run", "data_processor"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("link 2 `day_runtime`: version 3.11.0 → 3.12.0"), "{}", ran.stderr);
    let (code, out) = bob.json(&["run", "data_processor", "--strict"]);
    assert_eq!(
        (code, &out["error"]["kind"], &out["status"]),
        (3, &json!("lockfile_mismatch"), &json!("refused"))
    );
    let fields: Vec<&str> = out["error"]["details"]["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["version", "integrity", "file"], "{out:#}");
    assert!(
        out["error"]["hint"].as_str().unwrap().contains("kiwi lockfile update data_processor"),
        "{out:#}"
    );

    // Bob installs what was agreed, beside his own: both run the very same chain.
    runtime(&bob, "day_runtime", "3.11.0");
    let [a, b] = [&alice, &bob].map(|env| env.json(&["run", "data_processor", "--locked"]).1);
    assert_eq!(a["status"], "success");
    assert_eq!((&a["chain"], &a["chain_hash"], &a["result"]), (&b["chain"], &b["chain_hash"], &b["result"]));
}

#[test]
fn an_audit_can_prove_which_chain_ran() {
    let env = TestEnvironment::new();
    processor(&env, "day_runtime");
    runtime(&env, "day_runtime", "3.11.0");
    ok(&env, &["lock", "data_processor"]);
    ok(&env, &["run", "data_processor", "--locked"]);
    let path = lockfile(&env, "data/data_processor@1.2.0");
    let lock = read(&path);
    let enter = env.audit().into_iter().find(|line| line["event"] == "enter").unwrap();
    assert!(enter["at"].as_str().unwrap() >= lock["generated_at"].as_str().unwrap().trim_end_matches('Z'));
    let recorded: Vec<Value> = enter["chain"].as_array().unwrap().clone();
    let agreed: Vec<Value> = lock["resolved_chain"]
        .as_array()
        .unwrap()
        .iter()
        .map(|link| json!({"tool_id": link["tool_id"], "version": link["version"], "integrity": link["integrity"]}))
        .collect();
    assert_eq!(recorded, agreed);
    let short = lock["chain_hash"].as_str().unwrap();
    assert!(enter["chain_hash"].as_str().unwrap().starts_with(&format!("sha256:{short}")), "{enter:#}");
    let digest = kiwi_model::Digest::of(&std::fs::read(&path).unwrap()).to_string();
    assert_eq!(
        enter["lockfile"],
        json!({"key": "data/data_processor@1.2.0", "scope": "project", "digest": digest, "mode": "strict", "agrees": true})
    );
}

#[test]
fn an_alternative_chain_is_agreed_beside_the_default_one() {
    let (native, docker) = (TestEnvironment::new(), TestEnvironment::new());
    for (env, version) in [(&native, "1.0.0"), (&docker, "2.0.0")] {
        processor(env, "day_runtime");
        runtime(env, "day_runtime", version);
    }
    ok(&native, &["lockfile", "freeze", "data_processor"]);
    let default = std::fs::read(lockfile(&native, "data/data_processor@1.2.0")).unwrap();
    write(&lockfile(&docker, "data/data_processor@1.2.0"), &default);
    assert_eq!(docker.run(&["run", "data_processor", "--strict"]).code, 3);
    ok(&docker, &["lockfile", "freeze", "data_processor", "--alternative"]);
    let (_, out) = docker.json(&["chain", "data_processor"]);
    let hash = out["chain_hash"].as_str().unwrap()["sha256:".len()..][..12].to_owned();
    let alternative = lockfile(&docker, &format!("data/data_processor@1.2.0.{hash}"));
    assert_eq!(read(&alternative)["chain_hash"], json!(hash));
    // The default is untouched, and each machine is strict about its own.
    assert_eq!(std::fs::read(lockfile(&docker, "data/data_processor@1.2.0")).unwrap(), default);
    let (code, out) = docker.json(&["run", "data_processor", "--strict"]);
    assert_eq!((code, chain(&out)[1].as_str()), (0, "day_runtime@2.0.0"), "{out:#}");
    // Drift there is stopped there, and the alternative's own version is preferred.
    runtime(&docker, "day_runtime", "3.0.0");
    let (code, out) = docker.json(&["run", "data_processor", "--strict"]);
    assert_eq!((code, chain(&out)[1].as_str()), (0, "day_runtime@2.0.0"), "{out:#}");
    let (_, out) = docker.json(&["lockfile", "list"]);
    let keys: Vec<&str> =
        out["lockfiles"].as_array().unwrap().iter().map(|it| it["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["data/data_processor@1.2.0", &*format!("data/data_processor@1.2.0.{hash}")]);
    // Where both are installed the default one runs.
    runtime(&docker, "day_runtime", "1.0.0");
    assert_eq!(chain(&docker.json(&["run", "data_processor", "--strict"]).1)[1], "day_runtime@1.0.0");
}

/// Makes the store believe that a lockfile was last good some days ago.
fn age(env: &TestEnvironment, key: &str, days: i64) {
    let index = env.project().join(".ai/lockfiles/.index.json");
    let mut value = read(&index);
    let then = days_ago(days);
    assert!(value["lockfiles"][key].is_object(), "{value:#}");
    value["lockfiles"][key]["last_validated"] = json!(then);
    std::fs::write(&index, serde_json::to_string_pretty(&value).unwrap()).unwrap();
}

fn days_ago(days: i64) -> String {
    let mut date = std::process::Command::new("date");
    output_of(date.args(["-u", "-d", &format!("{days} days ago"), "+%Y-%m-%dT%H:%M:%SZ"])).trim().to_owned()
}

fn output_of(command: &mut std::process::Command) -> String {
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn prune_goes_by_the_last_validation() {
    let env = TestEnvironment::new();
    for name in ["used", "idle", "fresh"] {
        env.write(&format!("tools/jobs/{name}.sh"), "echo hi\n");
    }
    ok(&env, &["lockfile", "freeze", "--all"]);
    age(&env, "jobs/used@0.0.0", 200);
    age(&env, "jobs/idle@0.0.0", 200);
    age(&env, "jobs/fresh@0.0.0", 50);
    // Whoever validates keeps.
    ok(&env, &["lockfile", "validate", "used"]);
    let (_, out) = env.json(&["lockfile", "prune", "--dry-run"]);
    assert_eq!(
        (out["pruned"].as_array().unwrap().len(), &out["pruned"][0]["key"]),
        (1, &json!("jobs/idle@0.0.0"))
    );
    assert!(lockfile(&env, "jobs/idle@0.0.0").exists());
    assert!(ok(&env, &["lockfile", "prune"]).contains("jobs/idle@0.0.0"));
    assert!(!lockfile(&env, "jobs/idle@0.0.0").exists());
    assert!(lockfile(&env, "jobs/used@0.0.0").exists() && lockfile(&env, "jobs/fresh@0.0.0").exists());
    let (_, out) = env.json(&["lockfile", "prune", "--older-than", "30"]);
    assert_eq!(out["pruned"][0]["key"], "jobs/fresh@0.0.0");
    // An index that is gone is built from the files, and nothing looks older for it.
    std::fs::remove_file(env.project().join(".ai/lockfiles/.index.json")).unwrap();
    let (_, out) = env.json(&["lockfile", "prune", "--older-than", "30"]);
    assert_eq!(out["pruned"], json!([]));
    assert!(lockfile(&env, "jobs/used@0.0.0").exists());
}

#[test]
fn bulk_update_after_an_upgrade_shows_what_changes_before_it_changes() {
    let env = TestEnvironment::new();
    runtime(&env, "day_runtime", "1.0.0");
    for name in ["one", "two"] {
        let manifest = format!(
            "tool_id: {name}\nversion: \"1.0.0\"\ntool_type: script\nexecutor: day_runtime\ncategory: bulk\nentrypoint: x.txt\n"
        );
        env.write(&format!("tools/bulk/{name}/tool.yaml"), manifest);
        env.write(&format!("tools/bulk/{name}/x.txt"), "x");
    }
    env.write("tools/other/plain.sh", "echo hi\n");
    ok(&env, &["lockfile", "freeze", "--all"]);
    let before = std::fs::read(lockfile(&env, "bulk/one@1.0.0")).unwrap();
    runtime(&env, "day_runtime", "1.1.0");

    let (code, out) = env.json(&["lockfile", "update", "--all", "--dry-run"]);
    let keys: Vec<&Value> = out["updated"].as_array().unwrap().iter().map(|it| &it["key"]).collect();
    // The runtime is a package of the project too: its own lockfile moves with it.
    assert_eq!((code, keys), (0, vec![&json!("bulk/one@1.0.0"), &json!("bulk/two@1.0.0")]), "{out:#}");
    let version = &out["updated"][0]["differences"][0];
    assert_eq!(
        *version,
        json!({"position": 1, "tool": "day_runtime", "field": "version", "old": "1.0.0", "new": "1.1.0"})
    );
    assert_eq!(std::fs::read(lockfile(&env, "bulk/one@1.0.0")).unwrap(), before);

    let ran = env.run(&["lockfile", "update", "--all"]);
    assert!(ran.stdout.contains("link 2 `day_runtime`: version 1.0.0 → 1.1.0"), "{}", ran.stdout);
    assert!(ran.stderr.contains("2 updated, 2 unchanged"), "{}", ran.stderr);
    let (code, out) = env.json(&["run", "one", "--strict"]);
    assert_eq!((code, chain(&out)[1].as_str()), (0, "day_runtime@1.1.0"), "{out:#}");
}

#[test]
fn a_version_that_was_bumped_in_place_moves_its_lockfile() {
    let env = TestEnvironment::new();
    let tool = env.write("tools/jobs/job.sh", "# kiwi: version: 1.0.0\necho hi\n");
    ok(&env, &["lock", "job"]);
    std::fs::write(tool, "# kiwi: version: 1.1.0\necho hi\n").unwrap();
    let (code, out) = env.json(&["run", "job", "--locked"]);
    assert_eq!((code, &out["error"]["kind"]), (3, &json!("lockfile_missing")), "{out:#}");
    assert_eq!(out["error"]["message"], "`job@1.1.0` has no lockfile; there is one for 1.0.0");
    ok(&env, &["lockfile", "update", "job"]);
    assert!(!lockfile(&env, "jobs/job@1.0.0").exists() && lockfile(&env, "jobs/job@1.1.0").exists());
    ok(&env, &["run", "job", "--locked"]);
}

#[test]
fn an_agreed_version_that_is_gone_is_told() {
    let env = TestEnvironment::new();
    let tool = env.write("tools/jobs/job.sh", "# kiwi: version: 1.0.0\necho hi\n");
    ok(&env, &["lock", "job"]);
    std::fs::write(&tool, "# kiwi: version: 1.1.0\necho hi\n").unwrap();
    for words in [&["run", "job"][..], &["run", "job", "--dry-run"], &["chain", "job"]] {
        let (code, out) = env.json(words);
        let warnings = out["warnings"].as_array().unwrap();
        assert_eq!((code, warnings.len()), (0, 1), "{words:?}: {out:#}");
        let warning = warnings[0].as_str().unwrap();
        assert!(warning.contains("`job@1.1.0` has no lockfile; there is one for 1.0.0"), "{warning}");
        assert!(warning.contains("`kiwi lockfile update job`"), "{warning}");
    }
    assert_eq!(env.json(&["run", "job", "--lock", "off"]).1["warnings"], json!([]));
    assert_eq!(env.json(&["run", "job", "--strict"]).1["error"]["kind"], "lockfile_missing");
    let diff = ok(&env, &["lockfile", "diff", "job"]);
    assert!(diff.contains("link 1 `job`: version 1.0.0 → 1.1.0"), "{diff}");

    // A version that is there was agreed: whoever asks for another one gets it.
    env.install(
        "job",
        "1.0.0",
        &[
            (
                "tool.yaml",
                "tool_id: job\nversion: \"1.0.0\"\ntool_type: bash\ncategory: \
         jobs\nentrypoint: a.sh\n",
            ),
            ("a.sh", "echo old\n"),
        ],
    );
    let (code, out) = env.json(&["run", "job@1.1.0"]);
    assert_eq!((code, &out["warnings"]), (0, &json!([])), "{out:#}");
}

#[test]
fn the_modes_are_as_the_table_says() {
    let env = TestEnvironment::new();
    let tool = env.write("tools/jobs/job.sh", "# kiwi: version: 1.0.0\necho hi\n");
    env.write("tools/jobs/other.sh", "# kiwi: version: 1.0.0\necho other\n");
    let code = |mode: &str| env.run(&["run", "job", "--lock", mode]).code;
    // No lockfile.
    assert_eq!([code("off"), code("warn"), code("strict")], [0, 0, 3]);
    let (_, out) = env.json(&["run", "job", "--locked"]);
    assert_eq!(
        (&out["error"]["kind"], &out["error"]["message"], &out["error"]["hint"]),
        (
            &json!("lockfile_missing"),
            &json!("`job@1.0.0` has no lockfile"),
            &json!("`kiwi lockfile freeze job` makes one")
        )
    );
    // In CI nothing changes as long as nobody freezes anything.
    let in_ci = |words: &[&str]| {
        let output = env.command(words).env("CI", "true").output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(in_ci(&["run", "job"]).0, 0);
    ok(&env, &["lock", "job"]);
    assert_eq!([code("off"), code("warn"), code("strict")], [0, 0, 0]);
    assert_eq!(in_ci(&["run", "job"]), (0, String::new()));
    assert_eq!(in_ci(&["run", "other"]).0, 3);
    assert_eq!(in_ci(&["run", "other", "--lock", "warn"]).0, 0);
    // A difference.
    std::fs::write(&tool, "# kiwi: version: 1.0.0\necho changed\n").unwrap();
    let off = env.run(&["run", "job", "--lock", "off"]);
    assert_eq!((off.code, off.stderr.as_str()), (0, ""));
    let warn = env.run(&["run", "job"]);
    assert_eq!((warn.code, warn.stdout.as_str()), (0, "changed\n"));
    assert!(warn.stderr.contains("link 1 `job`: file `job.sh` sha256:"), "{}", warn.stderr);
    let (strict, said) = in_ci(&["run", "job"]);
    assert!(strict == 3 && said.contains("link 1 `job`: integrity"), "{said}");
    assert_eq!(env.run(&["run", "job", "--dry-run", "--strict"]).code, 3);
    // The configuration is a floor that no call gets below.
    env.write("config/kiwi.toml", "[lockfiles]\nmode = \"strict\"\n");
    assert_eq!([code("off"), code("warn"), code("strict")], [3, 3, 3]);
    assert_eq!(env.run(&["run", "other"]).code, 3);
    env.write("config/kiwi.toml", "[lockfiles]\nmode = \"off\"\n");
    assert_eq!((env.run(&["run", "job"]).stderr.as_str(), in_ci(&["run", "job"]).0), ("", 0));
    env.write_user("config/kiwi.toml", "[lockfiles]\nmode = \"strict\"\n");
    assert_eq!(env.run(&["run", "job"]).code, 3);
}

#[test]
fn a_lockfile_that_cannot_be_used_is_a_mismatch_with_the_command_that_mends_it() {
    let env = TestEnvironment::new();
    env.write("tools/jobs/job.sh", "echo hi\n");
    env.write("tools/jobs/jab.sh", "echo hi\n");
    ok(&env, &["lock", "job", "jab"]);
    let path = lockfile(&env, "jobs/job@0.0.0");
    let other = std::fs::read_to_string(lockfile(&env, "jobs/jab@0.0.0")).unwrap();
    std::fs::remove_file(lockfile(&env, "jobs/jab@0.0.0")).unwrap();
    let good = std::fs::read_to_string(&path).unwrap();
    let link = good.find("    {\n      \"tool_id\": \"subprocess\"").unwrap();
    let doubled =
        format!("{}{},\n{}", &good[..link], good[link..].split("\n  ]").next().unwrap(), &good[link..]);
    let cases = [
        ("conflict", format!("<<<<<<< HEAD\n{good}=======\n{good}>>>>>>> theirs\n"), "conflict markers"),
        ("truncated", good[..good.len() / 2].to_owned(), "line"),
        ("empty", String::new(), "line 1"),
        (
            "short hash",
            good.replacen("\"integrity\": \"sha256:", "\"integrity\": \"sha256:0", 1),
            "64 lowercase hex",
        ),
        ("twice", doubled, "`subprocess` twice"),
        ("not for this", other, "jab@0.0.0"),
    ];
    for (name, text, part) in cases {
        std::fs::write(&path, &text).unwrap();
        let (code, out) = env.json(&["run", "job", "--strict"]);
        assert_eq!((code, &out["error"]["kind"]), (3, &json!("lockfile_mismatch")), "{name}: {out:#}");
        let message = out["error"]["message"].as_str().unwrap();
        assert!(message.contains(part) && message.contains("job@0.0.0.lock.json"), "{name}: {message}");
        assert!(out["error"]["hint"].as_str().unwrap().contains("kiwi lockfile "), "{name}: {out:#}");
        let warned = env.run(&["run", "job"]);
        assert_eq!((warned.code, warned.stdout.as_str()), (0, "hi\n"), "{name}");
        assert!(warned.stderr.contains(part), "{name}: {}", warned.stderr);
        let listed = env.run(&["lockfile", "list"]);
        assert!(listed.code == 0 && listed.stdout.contains("lockfile_mismatch"), "{name}: {}", listed.stdout);
        let (code, out) = env.json(&["lockfile", "validate", "--strict"]);
        assert_eq!((code, &out["lockfiles"][0]["valid"]), (3, &json!(false)), "{name}: {out:#}");
        if name == "conflict" {
            // Somebody's unfinished merge is settled by whoever says so, and not by the way.
            let (code, out) = env.json(&["lock", "job"]);
            assert_eq!(
                (code, &out["errors"][0]["error"]["kind"]),
                (3, &json!("lockfile_mismatch")),
                "{out:#}"
            );
            let hint = out["errors"][0]["error"]["hint"].as_str().unwrap();
            assert!(hint.contains("`kiwi lockfile update job`"), "{hint}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        ok(&env, &["lockfile", "update", "job"]);
        ok(&env, &["run", "job", "--strict"]);
    }
    // What a newer Kiwi wrote is not touched.
    let newer = good.replace("\"lockfile_version\": 1", "\"lockfile_version\": 2");
    std::fs::write(&path, &newer).unwrap();
    let (code, out) = env.json(&["run", "job", "--strict"]);
    assert_eq!((code, &out["error"]["kind"]), (3, &json!("lockfile_mismatch")), "{out:#}");
    assert!(out["error"]["message"].as_str().unwrap().contains("lockfile_version 2"), "{out:#}");
    for words in [&["lockfile", "update", "job"][..], &["lockfile", "freeze", "job"]] {
        assert_ne!(env.run(words).code, 0, "{words:?}");
    }
    // Nor is it said that it would be.
    for words in [&["lockfile", "update", "job"][..], &["lockfile", "update", "job", "--dry-run"]] {
        let (code, out) = env.json(words);
        assert_eq!((code, &out["updated"]), (3, &json!([])), "{out:#}");
        assert_eq!(out["errors"][0]["error"]["kind"], "lockfile_mismatch", "{out:#}");
        assert!(!env.run(words).stdout.contains("made again"), "{words:?}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), newer);
    // A folder in its place is a lockfile that cannot be read.
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let (code, out) = env.json(&["lockfile", "validate", "--strict"]);
    assert_eq!((code, &out["checked"], &out["valid"]), (3, &json!(1), &json!(false)), "{out:#}");
    let (_, out) = env.json(&["lockfile", "list"]);
    assert!(out.to_string().contains("is a folder, not a file"), "{out:#}");
    assert_eq!(env.json(&["run", "job", "--strict"]).1["error"]["kind"], "lockfile_mismatch");
    for words in [&["lockfile", "freeze", "job"][..], &["lockfile", "update", "job"]] {
        let (code, out) = env.json(words);
        assert_eq!((code, &out["error"]["kind"]), (3, &json!("lockfile_mismatch")), "{words:?}: {out:#}");
        assert!(
            out["error"]["hint"].as_str().unwrap().contains("move the folder away"),
            "{words:?}: {out:#}"
        );
    }
    std::fs::remove_dir(&path).unwrap();
    ok(&env, &["lock", "job"]);
    ok(&env, &["run", "job", "--strict"]);
}

#[test]
fn a_category_alone_means_every_tool_in_it() {
    let env = TestEnvironment::new();
    for path in ["tools/etl/one.sh", "tools/etl/deep/two.sh", "tools/other/three.sh"] {
        env.write(path, "# kiwi: version: 1.0.0\necho hi\n");
    }
    env.write_user("tools/etl/four.sh", "echo hi\n");
    ok(&env, &["lockfile", "freeze", "--category", "etl"]);
    let frozen = ["etl/one@1.0.0", "etl/deep/two@1.0.0", "other/three@1.0.0", "etl/four@0.0.0"];
    assert_eq!(frozen.map(|name| lockfile(&env, name).exists()), [true, true, false, false]);
    let (code, said) = env.json(&["lockfile", "freeze", "--category", "elt"]);
    assert_eq!((code, &said["error"]["kind"]), (2, &json!("not_found")), "{said}");
}

#[test]
fn names_round_trip_through_the_program() {
    let env = TestEnvironment::new();
    for (id, version) in [("deep.tool_x", "1.0.0-beta.1"), ("built", "1.0.0+build.5"), ("plain", "2.0.0")] {
        let manifest = format!(
            "tool_id: {id}\nversion: \"{version}\"\ntool_type: bash\ncategory: a/b/c\nexecutor: {{entrypoint: x.sh}}\n"
        );
        env.install(id, version, &[("tool.yaml", &manifest), ("x.sh", "echo hi\n")]);
    }
    ok(&env, &["lockfile", "freeze", "--all"]);
    for name in ["deep.tool_x@1.0.0-beta.1", "built@1.0.0+build.5", "plain@2.0.0"] {
        assert!(lockfile(&env, &format!("a/b/c/{name}")).exists(), "{name}");
        let id = name.split('@').next().unwrap();
        ok(&env, &["run", id, "--locked"]);
        ok(&env, &["run", name, "--locked"]);
        ok(&env, &["lockfile", "validate", name, "--strict"]);
        ok(&env, &["lockfile", "diff", id]);
    }
    let (_, out) = env.json(&["lockfile", "list", "--category", "a/b"]);
    assert_eq!(out["lockfiles"].as_array().unwrap().len(), 3);
    let (_, out) = env.json(&["lockfile", "list", "--category", "a/bc"]);
    assert_eq!(out["lockfiles"], json!([]));
    // The newest of two builds does not take over.
    let newer = "tool_id: built\nversion: \"1.0.0+build.6\"\ntool_type: bash\ncategory: a/b/c\nexecutor: {entrypoint: x.sh}\n";
    env.install("built", "1.0.0+build.6", &[("tool.yaml", newer), ("x.sh", "echo new\n")]);
    assert_eq!(ok(&env, &["run", "built", "--locked"]), "hi\n");
    assert!(ok(&env, &["lockfile", "update", "built"]).is_empty());
}

#[test]
fn freezing_again_changes_no_byte_and_unknown_keys_stay() {
    let env = TestEnvironment::new();
    let tool = env.write("tools/jobs/job.sh", "echo hi\n");
    ok(&env, &["lock", "job"]);
    let path = lockfile(&env, "jobs/job@0.0.0");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.ends_with("}\n"));
    let noted = text.replacen("\"lockfile_version\"", "\"note\": \"ours\",\n  \"lockfile_version\"", 1);
    std::fs::write(&path, &noted).unwrap();
    assert!(ok(&env, &["lock", "job"]).contains("unchanged"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), noted);
    std::fs::write(tool, "echo changed\n").unwrap();
    assert!(ok(&env, &["lock", "job"]).contains("rewritten"));
    assert_eq!(read(&path)["note"], "ours");
}

#[test]
fn an_invalid_chain_is_never_frozen() {
    let env = TestEnvironment::new();
    env.write("tools/bad.yaml", "tool_id: bad\nversion: \"1.0.0\"\ntool_type: script\nexecutor: nobody\n");
    env.write(
        "tools/shy.yaml",
        "tool_id: shy\nversion: \"1.0.0\"\ntool_type: runtime\nexecutor: subprocess\nconfig: {command: sh}\n",
    );
    env.write("tools/rests.yaml", "tool_id: rests\nversion: \"1.0.0\"\ntool_type: script\nexecutor: shy\n");
    env.write("tools/good.sh", "echo hi\n");
    for (tool, kind) in [("bad", "not_found"), ("rests", "chain_invalid")] {
        let (code, out) = env.json(&["lockfile", "freeze", tool]);
        assert!(code != 0 && out["errors"][0]["error"]["kind"] == kind, "{out:#}");
    }
    assert_eq!(env.run(&["lockfile", "freeze", "--all"]).code, 3);
    let (_, out) = env.json(&["lockfile", "list"]);
    let keys: Vec<&Value> = out["lockfiles"].as_array().unwrap().iter().map(|it| &it["tool_id"]).collect();
    assert_eq!(keys, [&json!("good"), &json!("shy")], "{out:#}");
    let package = env.install(
        "pack",
        "1.0.0",
        &[
            (
                "tool.yaml",
                "tool_id: pack\nversion: \"1.0.0\"\ntool_type: bash\nexecutor: {entrypoint: x.sh}\n",
            ),
            ("x.sh", "echo\n"),
        ],
    );
    std::fs::write(package.join("x.sh"), "echo evil\n").unwrap();
    let (code, out) = env.json(&["lockfile", "freeze", "pack"]);
    assert_eq!((code, &out["errors"][0]["error"]["kind"]), (3, &json!("integrity_mismatch")), "{out:#}");
}

#[test]
fn the_users_lockfiles_hold_where_the_project_has_none() {
    let env = TestEnvironment::new();
    env.write_user("tools/jobs/mine.sh", "echo mine\n");
    ok(&env, &["lockfile", "freeze", "--all", "--scope", "user"]);
    let path = env.home().join(".ai/lockfiles/jobs/mine@0.0.0.lock.json");
    assert!(path.exists() && !lockfile(&env, "jobs/mine@0.0.0").exists());
    ok(&env, &["run", "mine", "--locked"]);
    let (_, out) = env.json(&["lockfile", "list"]);
    assert_eq!(out["lockfiles"][0]["scope"], "user");
    // The project's wins.
    ok(&env, &["lockfile", "freeze", "mine"]);
    std::fs::write(&path, "broken").unwrap();
    ok(&env, &["run", "mine", "--locked"]);
    std::fs::remove_file(lockfile(&env, "jobs/mine@0.0.0")).unwrap();
    assert_eq!(env.run(&["run", "mine", "--locked"]).code, 3);
}

#[test]
fn what_changed_between_two_files_and_two_revisions() {
    let env = TestEnvironment::new();
    let git = |words: &[&str]| {
        let mut command = std::process::Command::new("git");
        command
            .args(["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"])
            .args(words);
        let ran = command.current_dir(env.project()).env("HOME", env.home()).output().unwrap();
        assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
    };
    git(&["init", "-q"]);
    env.write("tools/jobs/gone.sh", "echo gone\n");
    let tool = env.write("tools/jobs/job.sh", "echo hi\n");
    ok(&env, &["lockfile", "freeze", "--all"]);
    git(&["add", ".ai/lockfiles"]);
    git(&["commit", "-q", "-m", "one"]);
    // The index and the lock of the store are this machine's own.
    let tracked = output_of(std::process::Command::new("git").args(["ls-files"]).current_dir(env.project()));
    assert!(!tracked.contains(".index.json") && tracked.contains("jobs/job@0.0.0.lock.json"), "{tracked}");

    let old = env.project().join("old.lock.json");
    std::fs::copy(lockfile(&env, "jobs/job@0.0.0"), &old).unwrap();
    std::fs::write(tool, "echo changed\n").unwrap();
    let (code, out) = env.json(&["lockfile", "diff", "old.lock.json"]);
    assert_eq!((code, &out["changed"]), (0, &json!(true)), "{out:#}");
    ok(&env, &["lockfile", "update", "job"]);
    let words = ["lockfile", "diff", "old.lock.json", ".ai/lockfiles/jobs/job@0.0.0.lock.json"];
    assert!(ok(&env, &words).contains("link 1 `job`: file `job.sh` sha256:"));

    std::fs::remove_file(lockfile(&env, "jobs/gone@0.0.0")).unwrap();
    env.write("tools/jobs/new.sh", "echo new\n");
    ok(&env, &["lock", "new"]);
    git(&["add", "-A", ".ai/lockfiles"]);
    git(&["commit", "-q", "-m", "two"]);
    let (code, out) = env.json(&["lockfile", "diff", "HEAD~1..HEAD"]);
    let states: Vec<String> = out["lockfiles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{} {}", it["lockfile"].as_str().unwrap(), it["state"].as_str().unwrap()))
        .collect();
    let expect = [
        "jobs/gone@0.0.0.lock.json removed",
        "jobs/job@0.0.0.lock.json changed",
        "jobs/new@0.0.0.lock.json added",
    ];
    assert_eq!((code, states), (0, expect.map(str::to_owned).to_vec()), "{out:#}");
    assert_eq!(out["lockfiles"][1]["differences"][0]["field"], "integrity");
    let (_, out) = env.json(&["lockfile", "diff", "HEAD~1..HEAD", "job"]);
    assert_eq!(out["lockfiles"].as_array().unwrap().len(), 1);
    let (code, out) = env.json(&["lockfile", "diff", "nope..HEAD"]);
    assert!(code != 0 && out["error"]["message"].as_str().unwrap().contains("nope"), "{out:#}");
}

#[test]
fn what_is_broken_in_another_space_does_not_disturb_a_call() {
    let env = TestEnvironment::new();
    env.write("tools/jobs/job.sh", "# kiwi: version: 1.0.0\necho hi\n");
    env.write_user("tools/jobs/job.yaml", "tool_id: [broken\n");
    let ran = env.run(&["run", "job"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "hi\n", ""));
    ok(&env, &["lock", "job"]);
    ok(&env, &["run", "job", "--locked"]);
}

/// A tool that says exactly what it was given.
const WITNESS: &str = "tool_id: witness
version: \"1.0.0\"
tool_type: script
category: proof
executor: day_runtime
entrypoint: x.txt
requires_env: [REGION]
config:
  args: [\"{day}\", \"{project_dir}/data\", \"{tool_dir}\", \"literal\"]
  env: {WHERE: \"{project_dir}/w\", PLACE: \"${REGION}\"}
parameters: {type: object, properties: {day: {type: string}, count: {type: integer, default: 3}}}
";

#[test]
fn same_lockfile_and_params_give_the_same_call_on_every_machine() {
    let hash = |env: &TestEnvironment, day: &str| {
        let out = env
            .command(&["run", "witness", &format!("day={day}"), "--dry-run", "--locked", "--json"])
            .env("REGION", env.home())
            .output()
            .unwrap();
        let out: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(out["status"], "success", "{out:#}");
        let would = &out["result"]["would"];
        for part in ["program", "args", "env", "cwd", "stdin"] {
            assert!(!would[part].is_null(), "{out:#}");
        }
        // Nothing of this machine is in what is compared.
        assert!(!would.to_string().contains(env.home().parent().unwrap().to_str().unwrap()), "{would:#}");
        let text = kiwi_model::canonical(would).unwrap();
        assert_eq!(out["result"]["hash"], json!(kiwi_model::Digest::of(text.as_bytes()).to_string()));
        out["result"]["hash"].as_str().unwrap().to_owned()
    };
    let machine = || {
        let env = TestEnvironment::new();
        env.write("tools/proof/witness/tool.yaml", WITNESS);
        env.write("tools/proof/witness/x.txt", "x");
        runtime(&env, "day_runtime", "1.0.0");
        env
    };
    let (here, there) = (machine(), machine());
    let freeze = here.command(&["lock", "witness"]).env("REGION", "x").output().unwrap();
    assert!(freeze.status.success());
    let name = "proof/witness@1.0.0";
    write(&lockfile(&there, name), std::fs::read(lockfile(&here, name)).unwrap());
    let first = hash(&here, "monday");
    assert_eq!(hash(&there, "monday"), first);
    assert_ne!(hash(&there, "tuesday"), first);
    // Newer versions are published everywhere, of the runtime and of the tool.
    for env in [&here, &there] {
        runtime(env, "day_runtime", "9.0.0");
        let newer = WITNESS.replace("1.0.0", "2.0.0").replace("literal", "other");
        env.install("witness", "2.0.0", &[("tool.yaml", &newer), ("x.txt", "x")]);
        assert_eq!(hash(env, "monday"), first);
    }
    let free = here
        .command(&["run", "witness", "day=monday", "--dry-run", "--lock", "off", "--json"])
        .env("REGION", "x")
        .output()
        .unwrap();
    let free: Value = serde_json::from_slice(&free.stdout).unwrap();
    assert_ne!(free["result"]["hash"], json!(first), "{free:#}");
}

#[test]
fn python_packages_are_pinned_with_their_hashes() {
    let env = TestEnvironment::new();
    let manifest = "tool_id: sixes\nversion: \"1.0.0\"\ntool_type: script\nexecutor: python_runtime\nmanifest:\n  \
                    entrypoint: main.py\n  requires: [six]\n";
    env.write("tools/data/sixes/tool.yaml", manifest);
    env.write("tools/data/sixes/main.py", "import six\ndef execute(params):\n    return six.__version__\n");
    ok(&env, &["lock", "sixes"]);
    let path = lockfile(&env, "data/sixes@1.0.0");
    let lock = read(&path);
    let pin = lock["environment"]["requires"][0].as_str().unwrap().to_owned();
    let version = pin.strip_prefix("six==").unwrap().split(' ').next().unwrap().to_owned();
    assert!(
        pin.contains(" sha256:") && lock["environment"]["python"].as_str().unwrap().starts_with('3'),
        "{lock:#}"
    );
    assert_eq!(ok(&env, &["run", "sixes", "--locked"]).trim(), version);
    let environments = || {
        let folders = std::fs::read_dir(env.home().join(".ai/cache/python")).unwrap().flatten();
        folders.filter(|entry| entry.path().join(".complete").exists()).count()
    };
    assert_eq!(environments(), 1, "what was frozen is there already");

    // Yesterday's agreement holds although the index has something newer.
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace(&pin, "six==1.15.0")).unwrap();
    assert_eq!(ok(&env, &["run", "sixes", "--locked"]).trim(), "1.15.0");
    assert_eq!(environments(), 2);

    // Other files under the same version are refused, and named.
    let other = format!("six==1.15.0 {}", kiwi_model::Digest::of(b"other"));
    std::fs::write(&path, text.replace(&pin, &other)).unwrap();
    let (code, out) = env.json(&["run", "sixes", "--locked"]);
    assert_eq!((code, &out["error"]["kind"]), (3, &json!("lockfile_mismatch")), "{out:#}");
    assert!(out["error"]["message"].as_str().unwrap().contains("package `six` 1.15.0 sha256:"), "{out:#}");
    let warned = env.run(&["run", "sixes"]);
    assert_eq!((warned.code, warned.stdout.trim()), (0, version.as_str()));
    assert!(warned.stderr.contains("package `six` 1.15.0"), "{}", warned.stderr);

    // Another interpreter is a difference too.
    let python = lock["environment"]["python"].as_str().unwrap();
    std::fs::write(&path, text.replace(&format!("\"{python}\""), "\"3.1.4\"")).unwrap();
    let (code, out) = env.json(&["run", "sixes", "--locked"]);
    assert_eq!((code, &out["error"]["kind"]), (3, &json!("lockfile_mismatch")), "{out:#}");
    assert!(
        out["error"]["message"].as_str().unwrap().contains(&format!("python 3.1.4 → {python}")),
        "{out:#}"
    );
    let (code, out) = env.json(&["lockfile", "validate", "--strict"]);
    assert_eq!(
        (code, &out["lockfiles"][0]["differences"][0]["field"]),
        (3, &json!("interpreter")),
        "{out:#}"
    );
    // Unless it was agreed as an alternative.
    ok(&env, &["lockfile", "freeze", "sixes", "--alternative"]);
    assert_eq!(ok(&env, &["run", "sixes", "--locked"]).trim(), version);
}

#[test]
fn pinned_packages_that_cannot_be_had_do_not_hold() {
    let env = TestEnvironment::new();
    env.write(
        "tools/data/sixes.py",
        "# kiwi: requires: [six]\nimport six\ndef execute():\n    return six.__version__\n",
    );
    ok(&env, &["lock", "sixes"]);
    ok(&env, &["lockfile", "validate", "sixes", "--strict"]);
    let path = lockfile(&env, "data/sixes@0.0.0");
    let text = std::fs::read_to_string(&path).unwrap();
    let pin = read(&path)["environment"]["requires"][0].as_str().unwrap().to_owned();
    let (version, _) = pin.split_once(' ').unwrap();

    let zeros = format!("{version} sha256:{}", "0".repeat(64));
    std::fs::write(&path, text.replace(&pin, &zeros)).unwrap();
    for words in [&["lockfile", "validate", "sixes", "--strict"][..], &["chain", "sixes"]] {
        let (_, out) = env.json(words);
        let lock = if words[0] == "chain" { &out["lockfile"] } else { &out["lockfiles"][0] };
        let difference = &lock["differences"][0];
        assert_eq!(
            (&difference["field"], &difference["name"]),
            (&json!("package"), &json!("six")),
            "{out:#}"
        );
    }
    assert_eq!(env.run(&["lockfile", "validate", "sixes", "--strict"]).code, 3);
    assert_eq!(env.run(&["run", "sixes", "--strict"]).code, 3);
    assert!(ok(&env, &["chain", "sixes"]).contains("sixes@0.0.0.lock.json ✗"));

    std::fs::write(&path, text.replace(&pin, "six==0.0.99")).unwrap();
    let (code, out) = env.json(&["lockfile", "validate", "sixes", "--strict"]);
    assert_eq!((code, &out["valid"]), (3, &json!(false)), "{out:#}");
    assert!(out["lockfiles"][0]["error"]["message"].as_str().unwrap().contains("six==0.0.99"), "{out:#}");

    // Another version that can be had holds, whatever is prepared.
    std::fs::write(&path, text.replace(&pin, "six==1.15.0")).unwrap();
    assert_eq!(env.json(&["chain", "sixes"]).1["lockfile"]["differences"], json!([]));
    ok(&env, &["lockfile", "validate", "sixes", "--strict"]);
}

#[test]
fn the_interpreter_is_told_with_all_that_differs() {
    let env = TestEnvironment::new();
    let tool = env.write("tools/jobs/p.py", "__version__ = \"1.0.0\"\ndef execute():\n    return 1\n");
    env.write("tools/jobs/b.sh", "# kiwi: version: 1.0.0\necho hi\n");
    ok(&env, &["lock", "p", "b"]);
    let fields = |differences: &Value| -> Vec<String> {
        let differences = differences.as_array().unwrap_or_else(|| panic!("{differences:#}"));
        differences.iter().map(|it| it["field"].as_str().unwrap().to_owned()).collect()
    };
    let refused = |words: &[&str]| {
        let (code, out) = env.json(words);
        assert_eq!((code, &out["error"]["kind"]), (3, &json!("lockfile_mismatch")), "{words:?}: {out:#}");
        fields(&out["error"]["details"]["differences"])
    };
    let warned = |words: &[&str]| {
        let (code, out) = env.json(words);
        assert_eq!((code, out["warnings"].as_array().unwrap().len()), (0, 1), "{words:?}: {out:#}");
        out["warnings"][0].as_str().unwrap().to_owned()
    };
    let path = lockfile(&env, "jobs/p@1.0.0");
    let text = std::fs::read_to_string(&path).unwrap();
    let python = read(&path)["environment"]["python"].as_str().unwrap().to_owned();
    std::fs::write(&path, text.replace(&format!("\"{python}\""), "\"3.1.4\"")).unwrap();
    let line = format!("python 3.1.4 → {python}");
    for words in [&["run", "p"][..], &["run", "p", "--dry-run"], &["chain", "p"]] {
        assert!(warned(words).contains(&line), "{words:?}");
    }
    for words in [&["run", "p", "--strict"][..], &["run", "p", "--strict", "--dry-run"]] {
        assert_eq!(refused(words), ["interpreter"], "{words:?}");
    }
    assert_eq!(fields(&env.json(&["chain", "p"]).1["lockfile"]["differences"]), ["interpreter"]);
    assert!(ok(&env, &["chain", "p"]).contains("p@1.0.0.lock.json ✗"));

    // With a file that changed: all at once, and one warning.
    std::fs::write(&tool, "__version__ = \"1.0.0\"\ndef execute():\n    return 2\n").unwrap();
    let all = ["integrity", "file", "interpreter"];
    for words in [&["run", "p", "--strict"][..], &["run", "p", "--strict", "--dry-run"]] {
        assert_eq!(refused(words), all, "{words:?}");
    }
    let warning = warned(&["run", "p"]);
    assert!(warning.contains("file `p.py`") && warning.contains(&line), "{warning}");
    assert_eq!(fields(&env.json(&["chain", "p"]).1["lockfile"]["differences"]), all);
    assert_eq!(fields(&env.json(&["lockfile", "validate", "p"]).1["lockfiles"][0]["differences"]), all);

    // A tool that has no interpreter to prepare anything for.
    let path = lockfile(&env, "jobs/b@1.0.0");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.replacen(
            "\"resolved_chain\"",
            "\"environment\": {\"python\": \"3.9.1\"},\n  \"resolved_chain\"",
            1,
        ),
    )
    .unwrap();
    assert_eq!(refused(&["run", "b", "--strict"]), ["interpreter"]);
    assert!(warned(&["run", "b"]).contains("python 3.9.1 → none"));
    assert_eq!(fields(&env.json(&["chain", "b"]).1["lockfile"]["differences"]), ["interpreter"]);
}

#[test]
fn node_packages_are_pinned_with_their_hashes() {
    let env = TestEnvironment::new();
    env.write(
        "tools/web/pads.js",
        "// kiwi: requires: [left-pad@1.3.0]\nexports.execute = () => require('left-pad')('x', 3);\n",
    );
    ok(&env, &["lock", "pads"]);
    let path = lockfile(&env, "web/pads@0.0.0");
    let lock = read(&path);
    let pin = lock["environment"]["requires"][0].as_str().unwrap().to_owned();
    assert!(
        pin.starts_with("left-pad==1.3.0 sha256:") && lock["environment"]["node"].is_string(),
        "{lock:#}"
    );
    assert_eq!(ok(&env, &["run", "pads", "--locked"]), "  x\n");
    let other = format!("left-pad==1.3.0 {}", kiwi_model::Digest::of(b"other"));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace(&pin, &other)).unwrap();
    let (code, out) = env.json(&["run", "pads", "--locked"]);
    assert_eq!((code, &out["error"]["kind"]), (3, &json!("lockfile_mismatch")), "{out:#}");
}
