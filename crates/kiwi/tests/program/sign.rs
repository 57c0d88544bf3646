//! Signing tools by hand.

use crate::isolation::bash;
use crate::support::TestEnvironment;
use serde_json::json;

/// A project whose owner calls only what is signed.
fn place() -> TestEnvironment {
    let env = TestEnvironment::new();
    env.write_user("config/kiwi.toml", "[trust]\nrequire_signature = [\"project\", \"user\"]\n");
    bash(&env, "file", "", "echo ran");
    env.write_user("tools/mine.sh", "# kiwi: version: 1.0.0\necho ran\n");
    env.write(
        "tools/data/folder/tool.yaml",
        "tool_id: folder\nversion: \"1.0.0\"\ntool_type: script\nexecutor: bash_runtime\nentrypoint: go.sh\n",
    );
    env.write("tools/data/folder/go.sh", "echo ran\n");
    env
}

#[test]
fn what_is_signed_may_be_called_until_it_changes() {
    let env = place();
    for (tool, file, signature) in [
        ("file", "tools/file.sh", ".ai/tools/file.sh.kiwi.sig"),
        ("folder", "tools/data/folder/go.sh", ".ai/tools/data/folder/kiwi.sig"),
        ("mine", "../../home/.ai/tools/mine.sh", "home/.ai/tools/mine.sh.kiwi.sig"),
    ] {
        let kind = || env.json(&["run", tool]).1["error"]["kind"].clone();
        assert_eq!(kind(), json!("denied"));
        let (code, said) = env.json(&["tool", "sign", tool]);
        assert_eq!((code, &said["status"], &said["tool_id"]), (0, &json!("success"), &json!(tool)), "{said}");
        assert!(said["signature_file"].as_str().unwrap().ends_with(signature), "{said}");
        assert!(said["key"].as_str().unwrap().starts_with("ed25519:"), "{said}");
        assert_eq!(said["integrity"], env.json(&["tool", "show", tool]).1["integrity"]);
        assert_eq!(env.run(&["run", tool]).stdout, "ran\n");
        let path = env.project().join(".ai").join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text + "# and more\n").unwrap();
        assert_eq!(kind(), json!("integrity_mismatch"));
        let hint = env.json(&["run", tool]).1["error"]["hint"].to_string();
        assert!(hint.contains("kiwi tool sign"), "{hint}");
        let ran = env.run(&["tool", "sign", tool]);
        assert!(ran.code == 0 && ran.stdout.contains("kiwi.sig"), "{}{}", ran.stdout, ran.stderr);
        assert_eq!(env.run(&["run", tool]).stdout, "ran\n");
    }
}

#[test]
fn only_what_is_there_and_sound_and_written_here_is_signed() {
    let env = place();
    bash(&env, "broken", "requires: 5", "echo ran");
    let manifest =
        "tool_id: got\nversion: \"1.0.0\"\ntool_type: script\nexecutor: bash_runtime\nentrypoint: go.sh\n";
    env.install("got", "1.0.0", &[("tool.yaml", manifest), ("go.sh", "echo ran\n")]);
    for (tool, code, kind) in [
        ("nobody", 2, "not_found"),
        ("file@^2", 2, "version_conflict"),
        ("broken", 2, "invalid_manifest"),
        ("got", 3, "space_violation"),
        ("filesystem.read", 3, "space_violation"),
    ] {
        let (exit, said) = env.json(&["tool", "sign", tool]);
        assert_eq!((exit, &said["error"]["kind"]), (code, &json!(kind)), "{tool}: {said}");
    }
    assert!(!env.project().join(".ai/tools/file.sh.kiwi.sig").exists());
    assert!(!env.project().join(".ai/tools/broken.sh.kiwi.sig").exists());
}
