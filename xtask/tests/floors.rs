//! The invariants of the house that no lint can see: who imports whom, and what a crate's sources may hold.
#![expect(clippy::disallowed_methods, reason = "asks cargo for the workspace's own metadata")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test states what must hold by panicking"
)]

mod sources;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The floors of the house. A crate imports crates of lower floors only; nobody imports sideways.
const FLOORS: [(&str, u8); 13] = [
    ("kiwi-model", 1),
    ("kiwi-rules", 2),
    ("kiwi-chain", 2),
    ("kiwi-launcher", 2),
    ("kiwi-space", 3),
    ("kiwi-exec", 3),
    ("kiwi-search", 3),
    ("kiwi-mcp", 4),
    ("kiwi-registry", 4),
    ("kiwi-gate", 5),
    ("kiwi-agent", 6),
    ("kiwi-server", 7),
    ("kiwi", 8),
];
/// Beside the house: they may look into every room, and no room knows them.
const OUTSIDE: [&str; 2] = ["xtask", "kiwi-bench"];
/// Libraries that one room owns. Where none is named, no room may have it.
const OWNED: [(&str, &[&str]); 17] = [
    // `kiwi-mcp` reads answers of connections that `kiwi-exec` opens; `kiwi-server` answers those that come in.
    ("reqwest", &["kiwi-exec", "kiwi-mcp"]),
    ("hyper", &["kiwi-exec", "kiwi-registry", "kiwi-server"]),
    ("rmcp", &["kiwi-mcp", "kiwi-server"]),
    ("ureq", &["kiwi-exec"]),
    ("rustls", &["kiwi-exec"]),
    ("process-wrap", &["kiwi-exec"]),
    ("nix", &["kiwi-exec"]),
    ("tantivy", &["kiwi-search"]),
    ("safetensors", &["kiwi-search"]),
    // The registry's server keeps its tables; nobody else has a database.
    ("rusqlite", &["kiwi-registry"]),
    ("sqlx", &["kiwi-registry"]),
    ("clap", &["kiwi"]),
    ("anstream", &["kiwi"]),
    ("anyhow", &[]),
    ("rand", &[]),
    ("serde_yaml", &[]),
    ("chrono", &[]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What cargo knows of the workspace's own crates.
fn packages() -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

/// Every crate of the workspace and what it names as a dependency, of any kind.
fn imports() -> BTreeMap<String, Vec<String>> {
    let name = |value: &Value| value["name"].as_str().expect("a name").to_owned();
    packages()
        .iter()
        .map(|package| {
            (name(package), package["dependencies"].as_array().expect("a list").iter().map(name).collect())
        })
        .collect()
}

fn floor(name: &str) -> Option<u8> {
    FLOORS.iter().find(|(known, _)| *known == name).map(|(_, floor)| *floor)
}

/// Everything wrong with a set of imports.
fn faults(imports: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, dependencies) in imports {
        let own = floor(name);
        if own.is_none() && !OUTSIDE.contains(&name.as_str()) {
            faults.push(format!("`{name}` has no floor: give it one in 01-house's table and in this test"));
        }
        for dependency in dependencies {
            match (own, floor(dependency)) {
                (Some(own), Some(other)) if other > own => faults
                    .push(format!("`{name}` (floor {own}) imports upward: `{dependency}` (floor {other})")),
                (Some(own), Some(other)) if other == own => {
                    faults.push(format!("`{name}` imports sideways: `{dependency}`, both on floor {own}"));
                }
                (Some(_), None) if OUTSIDE.contains(&dependency.as_str()) => {
                    faults.push(format!("`{name}` imports `{dependency}`, which is never shipped"));
                }
                (Some(_), None) => {
                    let owners =
                        OWNED.iter().find(|(library, _)| library == dependency).map(|(_, owners)| owners);
                    if let Some(owners) = owners.filter(|owners| !owners.contains(&name.as_str())) {
                        faults.push(format!(
                            "`{name}` depends on `{dependency}`, which belongs to: {owners:?}"
                        ));
                    }
                }
                _ => {}
            }
        }
    }
    faults
}

/// The README's first command names no program.
#[test]
fn cargo_run_means_kiwi() {
    let packages = packages();
    let named: Vec<&str> = packages.iter().filter_map(|package| package["default_run"].as_str()).collect();
    assert_eq!(named, ["kiwi"]);
}

#[test]
fn nobody_imports_upward_or_sideways() {
    let faults = faults(&imports());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_test_itself_sees_what_it_should() {
    let check = |name: &str, dependency: &str, expect: &str| {
        let found = faults(&BTreeMap::from([(name.to_owned(), vec![dependency.to_owned()])])).join("\n");
        assert!(
            found.contains(expect) && found.is_empty() == expect.is_empty(),
            "{name} → {dependency}: {found}"
        );
    };
    check("kiwi-model", "kiwi-chain", "imports upward");
    check("kiwi-space", "kiwi-exec", "imports sideways");
    check("kiwi-chain", "kiwi-rules", "imports sideways");
    check("kiwi-gate", "xtask", "never shipped");
    check("kiwi-attic", "serde", "has no floor");
    check("kiwi-space", "reqwest", "belongs to");
    check("kiwi-gate", "kiwi-exec", "");
    check("kiwi-bench", "kiwi-server", "");
}
