//! Bytes that change, at rest and in flight.

use crate::support::{TestEnvironment, rounds};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn greeter(env: &TestEnvironment) -> PathBuf {
    let manifest =
        "tool_id: greeter\nversion: \"1.0.0\"\ntool_type: bash\nexecutor: {entrypoint: greet.sh}\n";
    env.install(
        "greeter",
        "1.0.0",
        &[
            ("tool.yaml", manifest),
            ("greet.sh", ". \"$(dirname \"$0\")/lib.sh\"; say good\n"),
            ("lib.sh", "say() { echo \"$1\"; }\n"),
        ],
    )
}

#[test]
fn any_byte_of_any_file_of_an_installed_package() {
    let env = TestEnvironment::new();
    let folder = greeter(&env);
    assert_eq!(env.run(&["run", "greeter"]).stdout, "good\n");
    for name in ["tool.yaml", "greet.sh", "lib.sh"] {
        let path = folder.join(name);
        let good = std::fs::read(&path).unwrap();
        for at in (0..good.len()).step_by(if good.len() > 40 { 13 } else { 7 }) {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            let (code, out) = env.json(&["run", "greeter"]);
            assert_eq!(
                (code, &out["error"]["kind"]),
                (3, &json!("integrity_mismatch")),
                "{name} at {at}: {out:#}"
            );
            let message = out["error"]["message"].as_str().unwrap();
            assert!(
                message.contains(&format!("`{name}`"))
                    && message.contains("integrity mismatch for greeter@1.0.0: computed sha256:"),
                "{message}"
            );
        }
        std::fs::write(&path, &good).unwrap();
    }
    std::fs::write(folder.join("extra.sh"), "").unwrap();
    let (_, out) = env.json(&["verify", "greeter"]);
    assert_eq!(
        (&out["ok"], &out["items"][0]["issues"][0]["kind"]),
        (&json!(false), &json!("integrity_mismatch")),
        "{out:#}"
    );
    std::fs::remove_file(folder.join("extra.sh")).unwrap();
    assert_eq!(env.json(&["verify", "--all"]).0, 0);
}

#[test]
fn a_package_whose_record_is_gone_is_not_a_hand_made_tool() {
    let env = TestEnvironment::new();
    greeter(&env);
    std::fs::remove_dir_all(env.project().join(".ai/packages/.records")).unwrap();
    let (code, out) = env.json(&["run", "greeter"]);
    assert_eq!((code, &out["error"]["kind"]), (3, &json!("integrity_mismatch")), "{out:#}");
}

#[test]
fn a_patched_system_file_inside_the_binary() {
    let env = TestEnvironment::new();
    env.write("tools/t.py", "def execute():\n    return 'ran'\n");
    let binary = std::fs::read(env!("CARGO_BIN_EXE_kiwi")).unwrap();
    for (needle, file) in [
        ("Starts a Python tool: calls its", "runner.py"),
        ("Run a Python file, in an environment", "tool.yaml"),
    ] {
        let places: Vec<usize> = binary
            .windows(needle.len())
            .enumerate()
            .filter(|(_, window)| *window == needle.as_bytes())
            .map(|(at, _)| at)
            .collect();
        assert!(!places.is_empty(), "{needle} is not in the binary");
        let mut patched = binary.clone();
        for at in places {
            patched[at] ^= 0x20;
        }
        let path = env.tmp().join("kiwi-patched");
        std::fs::write(&path, &patched).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let out = std::process::Command::new(&path)
            .args(["run", "t", "--json"])
            .current_dir(env.project())
            .env("HOME", env.home())
            .output()
            .unwrap();
        let out: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(out["error"]["kind"], "integrity_mismatch", "{out:#}");
        assert!(out["error"]["message"].as_str().unwrap().contains(file), "{out:#}");
        std::fs::remove_file(&path).unwrap();
    }
}

/// Swaps a file between two contents, in place and at changing intervals, until told to stop.
fn racing_writer(
    path: &Path,
    contents: [&'static str; 2],
    stop: &Arc<AtomicBool>,
) -> std::thread::JoinHandle<()> {
    let (path, stop) = (path.to_owned(), Arc::clone(stop));
    std::thread::spawn(move || {
        for round in 0_u64.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            std::fs::write(&path, if round % 2 == 0 { contents[0] } else { contents[1] }).unwrap();
            std::thread::sleep(std::time::Duration::from_micros(round % 700));
        }
    })
}

#[test]
fn a_racing_writer_never_gets_its_bytes_run() {
    let env = TestEnvironment::new();
    let folder = greeter(&env);
    let stop = Arc::new(AtomicBool::new(false));
    let writer =
        racing_writer(&folder.join("lib.sh"), ["say() { echo EVIL; }\n", "say() { echo \"$1\"; }\n"], &stop);
    let (mut good, mut refused) = (0, 0);
    for _ in 0..rounds(10_000) {
        let (code, out) = env.json(&["run", "greeter"]);
        match (code, out["error"]["kind"].as_str()) {
            (0, None) => {
                assert_eq!(out["result"], "good\n");
                good += 1;
            }
            (3, Some("integrity_mismatch")) => refused += 1,
            other => unreachable_outcome(&other, &out),
        }
    }
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    assert!(good > 0 && refused > 0, "the race was not one: {good} good, {refused} refused");
}

/// Flips a file of link number `link` while `tool` runs: what it prints must be what that link's reported identity says.
fn what_ran_is_what_was_reported(env: &TestEnvironment, tool: &str, link: usize, path: &Path) {
    let identity = |text: &str| {
        std::fs::write(path, text).unwrap();
        env.json(&["run", tool]).1["chain"][link]["integrity"].as_str().unwrap().to_owned()
    };
    let (a, b) = (identity("echo A\n"), identity("echo B\n"));
    let stop = Arc::new(AtomicBool::new(false));
    let writer = racing_writer(path, ["echo A\n", "echo B\n"], &stop);
    let mut seen = [0, 0];
    for _ in 0..rounds(2_000) {
        let (code, out) = env.json(&["run", tool]);
        // A write in place can be caught half done: an empty file is another tool, which prints nothing.
        if code != 0 || out["result"].is_null() {
            continue;
        }
        let reported = &out["chain"][link]["integrity"];
        let expected = usize::from(*reported != a.as_str());
        assert!(expected == 0 || *reported == b.as_str());
        assert_eq!(out["result"], ["A\n", "B\n"][expected]);
        seen[expected] += 1;
    }
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

#[test]
fn a_flipped_tool_runs_as_it_was_reported() {
    let env = TestEnvironment::new();
    let path = env.write("tools/flip.sh", "echo A\n");
    what_ran_is_what_was_reported(&env, "flip", 0, &path);
}

#[test]
fn a_flipped_runner_of_a_runtime_runs_as_it_was_reported() {
    let env = TestEnvironment::new();
    let runtime = "tool_id: rt\nversion: \"1.0.0\"\ntool_type: runtime\nexecutor: subprocess\nrunner: run.sh\nconfig: {command: bash}\nvalidation: {child_schemas: [{schema: {}}]}\n";
    env.write_user("tools/rt/tool.yaml", runtime);
    let path = env.write_user("tools/rt/run.sh", "echo A\n");
    env.write(
        "tools/t/tool.yaml",
        "tool_id: t\nversion: \"1.0.0\"\ntool_type: script\nexecutor: rt\nentrypoint: t.x\n",
    );
    env.write("tools/t/t.x", "");
    what_ran_is_what_was_reported(&env, "t", 1, &path);
}

#[track_caller]
fn unreachable_outcome(got: &(i32, Option<&str>), out: &serde_json::Value) -> ! {
    panic!("{got:?}: {out:#}")
}

const SAY: &str = "# kiwi: version: \"1.0.0\"\n# kiwi: description: Says something\necho said\n";

fn sign(env: &TestEnvironment) {
    let words = ["run", "kiwi.sign", "item_type=tool", "item_id=say", "path=.ai/tools/say.sh"];
    let (code, signed) = env.json(&words);
    assert_eq!((code, &signed["result"]["signed"]), (0, &true.into()), "{signed}");
}

/// Whether it was signed or not, whoever asks for signatures or not: a signature that is there is one of the tool.
#[test]
fn a_wrong_signature_stops_a_tool() {
    let env = TestEnvironment::new();
    let tool = env.write("tools/say.sh", SAY);
    sign(&env);
    assert_eq!(env.run(&["run", "say"]).stdout, "said\n");
    let file = tool.with_file_name("say.sh.kiwi.sig");
    let signature = std::fs::read_to_string(&file).unwrap();
    let other = signature.replace("\"signature\": \"", "\"signature\": \"00");
    for (text, script) in [
        ("nonsense", SAY),
        (other.as_str(), SAY),
        (signature.as_str(), "# kiwi: version: \"1.0.0\"\necho other\n"),
    ] {
        std::fs::write(&file, text).unwrap();
        std::fs::write(&tool, script).unwrap();
        let (code, refused) = env.json(&["run", "say"]);
        assert_eq!((code, &refused["error"]["kind"]), (3, &"integrity_mismatch".into()), "{refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains(".ai/tools/say.sh.kiwi.sig"), "{message}");
        let (_, found) = env.json(&["search", "says something"]);
        assert!(!found.to_string().contains("\"say\""), "{found}");
    }
    // Signed again it is itself again, and so it is without a signature.
    sign(&env);
    assert_eq!(env.run(&["run", "say"]).stdout, "other\n");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(env.run(&["run", "say"]).stdout, "other\n");
}

#[test]
fn a_deleted_tool_takes_its_signature_along() {
    let env = TestEnvironment::new();
    let tool = env.write("tools/say.sh", SAY);
    sign(&env);
    let file = tool.with_file_name("say.sh.kiwi.sig");
    assert!(file.is_file());
    let (code, gone) =
        env.json(&["run", "kiwi.delete", "item_type=tool", "item_id=say", "path=.ai/tools/say.sh"]);
    assert_eq!((code, tool.exists(), file.exists()), (0, false, false), "{gone}");
    // What comes to lie there afterwards is another tool, and nobody's.
    env.write("tools/say.sh", "# kiwi: version: \"1.0.0\"\necho other\n");
    assert_eq!(env.run(&["run", "say"]).stdout, "other\n");
}

#[test]
fn where_signatures_are_asked_for_tools_without_one_do_not_run() {
    for (section, refused) in [("project", true), ("user", false), ("registry", false)] {
        let env = TestEnvironment::new();
        env.write("tools/say.sh", SAY);
        env.write_user("config/kiwi.toml", format!("[trust]\nrequire_signature = [\"{section}\"]\n"));
        let (code, ran) = env.json(&["run", "say"]);
        let (_, found) = env.json(&["search", "says something"]);
        assert_eq!(found.to_string().contains("\"say\""), !refused, "{section}: {found}");
        if refused {
            assert_eq!((code, &ran["error"]["kind"]), (3, &"denied".into()), "{ran}");
            sign(&env);
            let (_, found) = env.json(&["search", "says something"]);
            assert!(found.to_string().contains("\"say\""), "{found}");
        }
        assert_eq!(env.run(&["run", "say"]).stdout, "said\n", "{section}");
    }
}

/// A key that nobody here trusts signs nothing, and that is said.
#[test]
fn a_signature_by_an_unknown_key_is_none() {
    let (author, env) = (TestEnvironment::new(), TestEnvironment::new());
    let tool = author.write("tools/say.sh", SAY);
    sign(&author);
    let copy = env.write("tools/say.sh", SAY);
    let file = "say.sh.kiwi.sig";
    std::fs::copy(tool.with_file_name(file), copy.with_file_name(file)).unwrap();
    let (code, ran) = env.json(&["run", "say"]);
    assert_eq!((code, &ran["result"]), (0, &"said\n".into()), "{ran}");
    assert!(ran["warnings"].to_string().contains("is not trusted here"), "{ran}");
    env.write_user("config/kiwi.toml", "[trust]\nrequire_signature = [\"project\"]\n");
    let (code, ran) = env.json(&["run", "say"]);
    assert_eq!((code, &ran["error"]["kind"]), (3, &"denied".into()), "{ran}");
    let signature: kiwi_space::ItemSignature =
        serde_json::from_slice(&std::fs::read(copy.with_file_name(file)).unwrap()).unwrap();
    assert_eq!(env.run(&["trust", "key", "add", &signature.key, "--name", "author"]).code, 0);
    let (code, ran) = env.json(&["run", "say"]);
    assert_eq!((code, ran["warnings"].as_array().map_or(0, Vec::len)), (0, 0), "{ran}");
}
