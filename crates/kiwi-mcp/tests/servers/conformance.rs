//! The official conformance suite against our client: every scenario that a revision requires passes.

use std::path::PathBuf;
use std::process::Command;

fn check(revision: &str, required: usize) {
    let Some(folder) = std::env::var_os("KIWI_TEST_MCP").map(PathBuf::from) else {
        panic!(
            "KIWI_TEST_MCP is not set: this suite needs the conformance suite, which `cargo xtask test` sets up"
        )
    };
    let results = tempfile::tempdir().unwrap();
    let node = folder.join("node_modules/node/bin");
    let output = Command::new(folder.join("node_modules/.bin/conformance"))
        .args(["client", "--requirements", revision, "--command"])
        .arg(crate::support::example("conformance_client"))
        .arg("--output-dir")
        .arg(results.path())
        .current_dir(results.path())
        .env("PATH", format!("{}:/usr/bin:/bin", node.display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let summary = said.split("=== SUITE SUMMARY ===").nth(1).unwrap();
    // A scenario that checked nothing counts as passed, to the suite.
    assert!(!summary.contains(": 0 passed"), "{summary}");
    let passed = summary.lines().filter(|line| line.starts_with('✓')).count();
    assert!(passed >= required, "{passed} of {required}: {summary}");
}

#[test]
fn the_revision_of_2026_07_28() {
    check("2026-07-28", 32);
}

#[test]
fn the_revision_of_2025_11_25() {
    check("2025-11-25", 18);
}
