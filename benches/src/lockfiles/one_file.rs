//! The peer: all entries in one JSON file, as `package-lock.json` has it. To find one, all are read and parsed.

use anyhow::{Context, Result, bail};
use kiwi_model::Digest;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

use crate::stats::{Samples, time};

const TURNS: usize = 15;

/// A lock with so many entries. Each says less than one of our lockfiles: a version, an address, a hash, one dependency.
pub fn write(folder: &Path, count: usize) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let mut packages = Map::new();
    for number in 0..count {
        let entry = json!({
            "version": "1.0.0",
            "resolved": format!("https://packages.example/{}/-/{}-1.0.0.tgz", name(number), name(number)),
            "integrity": Digest::of(name(number).as_bytes()),
            "dependencies": {"runtime": "^1.0.0"},
        });
        packages.insert(format!("node_modules/{}", name(number)), entry);
    }
    let lock = json!({"name": "bench", "version": "1.0.0", "lockfileVersion": 3, "packages": packages});
    let file = folder.join("package-lock.json");
    fs::write(&file, serde_json::to_string_pretty(&lock)? + "\n")?;
    Ok(file)
}

/// Finds one entry, again and again, each time from the file.
pub fn find(file: &Path, count: usize) -> Result<Samples> {
    let mut samples = Samples::default();
    for turn in 0..TURNS {
        let wanted = name(count / 2 + turn);
        let (took, version) = time(|| version_of(file, &wanted))?;
        if version != "1.0.0" {
            bail!("`{wanted}` has version {version}");
        }
        samples.push(took);
    }
    Ok(samples)
}

fn version_of(file: &Path, wanted: &str) -> Result<String> {
    let lock: Value = serde_json::from_slice(&fs::read(file)?)?;
    let entry = lock.get("packages").and_then(|all| all.get(format!("node_modules/{wanted}")));
    let version = entry.and_then(|entry| entry.get("version")).and_then(Value::as_str);
    Ok(version.with_context(|| format!("`{wanted}` is not in the lock"))?.to_owned())
}

fn name(number: usize) -> String {
    format!("tool_{number:06}")
}
