//! The official conformance suite against our server: what a revision requires passes, and the table in the guide says
//! so. `KIWI_UPDATE=1` writes the table anew.

use crate::support::TestEnvironment;
use crate::support::mcp::components;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Revisions, and how many scenarios of a server each requires.
const REVISIONS: [(&str, usize); 2] = [("2026-07-28", 37), ("2025-11-25", 30)];
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/conformance.md");

/// An example of another crate: built with every test of the workspace.
fn example(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_kiwi")).with_file_name("examples").join(name);
    assert!(path.is_file(), "{} is missing: `cargo build --workspace --examples` builds it", path.display());
    path
}

struct Served {
    process: Child,
    address: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A project with the fixtures of the suite: manifests, directives, knowledge, and one upstream server for the rest.
fn serve(env: &TestEnvironment) -> Served {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../kiwi-server/tests/conformance/.ai");
    copy(Path::new(fixtures), &env.project().join(".ai"));
    let upstream = example("upstream").display().to_string();
    env.write_user("config/mcp_registry.yaml", format!("mcps:\n  fixture: {{command: {upstream:?}}}\n"));
    for words in [&["trust", "add"][..], &["mcp", "refresh"]] {
        let ran = env.run(words);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let mut command = env.command(&["serve", "--port", "0", "--json"]);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let said: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = said["url"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned();
    Served { process, address }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn suite(env: &TestEnvironment, words: &[&str]) -> Command {
    let folder = components();
    let mut command = Command::new(folder.join("node_modules/.bin/conformance"));
    let node = folder.join("node_modules/node/bin");
    command.args(words).current_dir(env.tmp()).env("PATH", format!("{}:/usr/bin:/bin", node.display()));
    command
}

/// The scenarios that a revision requires, by side.
fn required(env: &TestEnvironment, revision: &str) -> BTreeMap<&'static str, Vec<String>> {
    let output = suite(env, &["list", "--requirements", revision]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let mut scenarios: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut side = None;
    for line in said.lines() {
        match line {
            line if line.starts_with("Server scenarios") => side = Some("server"),
            line if line.starts_with("Client scenarios") => side = Some("client"),
            line if line.starts_with("Run and reported") => side = None,
            line => {
                if let (Some(side), Some(name)) = (side, line.strip_prefix("  - ")) {
                    scenarios.entry(side).or_default().push(name.to_owned());
                }
            }
        }
    }
    scenarios
}

/// How many checks of each scenario passed, as the suite's summary says.
fn passed(said: &str, heading: &str) -> BTreeMap<String, usize> {
    let summary = said.split(heading).nth(1).unwrap_or_else(|| panic!("no summary: {said}"));
    summary
        .lines()
        .filter_map(|line| {
            let (name, counts) = line.strip_prefix("✓ ")?.split_once(": ")?;
            Some((name.to_owned(), counts.split(' ').next()?.parse().ok()?))
        })
        .collect()
}

#[test]
fn everything_that_a_revision_requires_passes_and_the_table_says_so() {
    let env = TestEnvironment::new();
    let server = serve(&env);
    let url = server.address.replace("/mcp", "/mcp/direct");
    let client = example("conformance_client").display().to_string();
    let mut table = String::from(
        "# Conformance\n\nThe official conformance suite (`@modelcontextprotocol/conformance`), every scenario that a revision\n\
         requires, none excused. The server is `kiwi serve` at `/mcp/direct`, the client is the pool that Kiwi itself uses.\n\
         `cargo xtask test` runs it and compares it with this page; `KIWI_UPDATE=1` writes the page anew.\n",
    );
    for (revision, count) in REVISIONS {
        let required = required(&env, revision);
        assert_eq!(required["server"].len(), count);
        let out = env.tmp().join(revision).display().to_string();
        let runs = [
            (
                "server",
                vec!["server", "--url", &url, "--requirements", revision, "--output-dir", &out],
                "=== SUMMARY ===",
            ),
            (
                "client",
                vec!["client", "--command", &client, "--requirements", revision, "--output-dir", &out],
                "=== SUITE SUMMARY ===",
            ),
        ];
        for (side, words, heading) in runs {
            let output = suite(&env, &words).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{revision} {side}: {said}");
            let passed = passed(&said, heading);
            write!(
                table,
                "\n## {revision}, {side}: {} of {} scenarios\n\n| scenario | result |\n|---|---|\n",
                required[side].len(),
                required[side].len()
            )
            .unwrap();
            for scenario in &required[side] {
                // A scenario that checked nothing counts as passed, to the suite.
                let checks = passed.get(scenario).copied().unwrap_or(0);
                assert!(checks > 0, "{revision} {side} {scenario}: {said}");
                writeln!(table, "| {scenario} | passed |").unwrap();
            }
        }
    }
    if std::env::var_os("KIWI_UPDATE").is_some() {
        std::fs::write(TABLE, &table).unwrap();
    }
    assert_eq!(std::fs::read_to_string(TABLE).unwrap_or_default(), table, "run with KIWI_UPDATE=1");
}
