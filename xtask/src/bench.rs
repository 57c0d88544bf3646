//! `cargo xtask bench`: sets the peers up, builds in release, hands over to the benchmark crate.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

use crate::shell::{Shell, cache, find, root};

/// The kernel's bars: planning, launching, looking up, hashing.
pub fn kernel() -> Result<()> {
    for program in ["bash", "openssl", "python3"] {
        if find(program).is_none() {
            bail!("`{program}` is needed to measure against; `cargo xtask test` installs it");
        }
    }
    let python = peer_environment("ryeos", &root()?.join("benches/peers/ryeos.txt"))?;
    let script = root()?.join("benches/peers/ryeos.py");
    measure("kernel", &[("--peer-python", python), ("--peer-script", script)])
}

/// The bars of lockfiles: loading, running, listing and freezing among a hundred thousand.
pub fn lockfiles() -> Result<()> {
    if find("bash").is_none() {
        bail!("`bash` is needed to run tools; `cargo xtask test` installs it");
    }
    measure("lockfiles", &[])
}

/// The bars of running: starts, walls, whole tools.
pub fn exec() -> Result<()> {
    for program in ["bash", "busybox", "bwrap", "python3"] {
        if find(program).is_none() {
            bail!("`{program}` is needed to measure with; `cargo xtask test` installs it");
        }
    }
    let python = peer_environment("ryeos", &root()?.join("benches/peers/ryeos.txt"))?;
    let script = root()?.join("benches/peers/ryeos_run.py");
    let uv = peer_environment("uv", &root()?.join("benches/peers/uv.txt"))?.with_file_name("uv");
    measure("exec", &[("--peer-python", python), ("--peer-script", script), ("--uv", uv)])
}

/// The bars of the gate: rules, the whole path, records; beside other policy engines.
pub fn gate() -> Result<()> {
    measure("gate", &[])
}

/// The bars of MCP: calls through Kiwi, beside the same calls without it and through other proxies.
pub fn mcp() -> Result<()> {
    let scripts = root()?.join("benches/peers");
    let peer = |name: &str| peer_environment(name, &scripts.join(format!("{name}.txt")));
    Shell::cargo()?
        .args(["build", "--quiet", "--release", "--package", "kiwi-server", "--example", "upstream"])
        .run()?;
    let files = [
        ("--upstream", target()?.join("release/examples/upstream")),
        ("--mcp-proxy", peer("mcp_proxy")?),
        ("--fastmcp", peer("fastmcp")?),
        ("--contextforge", peer("contextforge")?),
        ("--ryeos", peer("ryeos")?),
        ("--scripts", scripts),
    ];
    measure("mcp", &files)
}

/// The bars of finding: how good the list is, how fast it comes among a million items, beside other ways to find them.
pub fn search() -> Result<()> {
    let Some(sets) = std::env::var_os("KIWI_SEARCH_SETS") else {
        bail!(
            "how good a list is cannot be measured without questions and their answers; they are not part of the project: set KIWI_SEARCH_SETS to a folder with `BFCL` and `MetaTool`, each with a `corpus.jsonl` and a `queries.jsonl`"
        );
    };
    let sets = std::path::absolute(&sets)?;
    for set in ["BFCL", "MetaTool"] {
        if !sets.join(set).join("queries.jsonl").is_file() {
            bail!("{} has no `{set}/queries.jsonl` (KIWI_SEARCH_SETS)", sets.display());
        }
    }
    let scripts = root()?.join("benches/peers");
    let python = peer_environment("search", &scripts.join("search.txt"))?;
    measure(
        "search",
        &[("--sets", sets), ("--peer-python", python), ("--peer-script", scripts.join("search.py"))],
    )
}

/// The bars of a registry, on both of its engines.
pub fn registry() -> Result<()> {
    if find("bash").is_none() {
        bail!("`bash` is needed to run tools; `cargo xtask test` installs it");
    }
    let postgres = crate::postgres::Postgres::start()?;
    measure("registry", &[("--postgres", PathBuf::from(postgres.url()))])
}

/// Every area; one that fails stops no other.
pub fn all() -> Result<()> {
    let areas = [
        ("kernel", kernel()),
        ("lockfiles", lockfiles()),
        ("exec", exec()),
        ("gate", gate()),
        ("mcp", mcp()),
        ("search", search()),
        ("registry", registry()),
    ];
    let failed: Vec<String> = areas
        .into_iter()
        .filter_map(|(area, result)| result.err().map(|error| format!("{area}: {error:#}")))
        .collect();
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("; ")) }
}

/// Builds in release mode and measures one area.
fn measure(area: &str, files: &[(&str, PathBuf)]) -> Result<()> {
    println!("building in release mode");
    Shell::cargo()?
        .args(["build", "--quiet", "--release", "--package", "kiwi", "--package", "kiwi-bench"])
        // Other policy engines take longer to build than everything else together.
        .args(if area == "gate" { &["--features", "kiwi-bench/peers"][..] } else { &[] })
        .run()?;
    let target = target()?;
    let out = target.join("bench");
    std::fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let mut shell = Shell::new(target.join("release/kiwi-bench"))?
        .args([area, "--kiwi"])
        .args([target.join("release/kiwi")])
        .args(["--out"])
        .args([out.join(format!("{area}.json"))]);
    for (option, file) in files {
        shell = shell.args([option]).args([file]);
    }
    shell.run().context("a bar was missed, or the run failed")
}

/// Where cargo builds; not always `target/`.
fn target() -> Result<PathBuf> {
    let said =
        Shell::cargo()?.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]).read()?;
    let metadata: serde_json::Value = serde_json::from_str(&said)?;
    let folder = metadata.get("target_directory").and_then(serde_json::Value::as_str);
    Ok(PathBuf::from(folder.context("cargo does not say where it builds")?))
}

/// The interpreter of a peer's virtual environment.
fn peer_environment(name: &str, requirements: &Path) -> Result<PathBuf> {
    let peers = cache()?.join("peers");
    std::fs::create_dir_all(&peers)?;
    crate::mcp::environment(&peers.join(name), requirements)
}
