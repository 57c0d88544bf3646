//! What lies in a space is told without reading it, and every change of an item shows in its stamp.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

mod agree;
#[path = "../common/mod.rs"]
mod common;
mod links;
mod stamps;
mod still;
mod watcher;

use common::{Ground, id, manifest, version};
use kiwi_model::Space;
use kiwi_space::{Install, NewFile, Spaces, Staged};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

const DIRECTIVE: &str =
    "```xml\n<directive name=\"deploy\" version=\"1.0.0\"><metadata/><process/></directive>\n```\n";
const SKILL: &str = "---\nname: review\ndescription: Review code\n---\nRead it.\n";

/// Long enough for every file to be trusted.
fn settle() {
    std::thread::sleep(Duration::from_millis(40));
}

/// The stamps of a project, by key.
fn stamps(spaces: &Spaces) -> BTreeMap<String, u64> {
    let seen = spaces.sightings(Space::Project).unwrap_or_else(|error| panic!("{error}"));
    let count = seen.len();
    let stamps: BTreeMap<String, u64> =
        seen.into_iter().map(|sighting| (sighting.key.into(), sighting.stamp)).collect();
    assert_eq!(stamps.len(), count, "a key names one item");
    stamps
}

/// A project with an item of every form.
fn project() -> Ground {
    let ground = Ground::new();
    ground.write("tools/data/one.sh", "# kiwi: version: \"1.0.0\"\necho\n");
    ground.write("tools/data/two.sh", "# kiwi: version: \"1.0.0\"\necho\n");
    ground.write("tools/top.sh", "# kiwi: version: \"1.0.0\"\necho\n");
    ground.write("tools/data/pack/tool.yaml", manifest("pack", "1.0.0"));
    ground.write("tools/data/pack/main.sh", "echo\n");
    ground.write("tools/data/pack/deep/er/table.csv", "a,b\n");
    ground.write("directives/ops/deploy.md", DIRECTIVE);
    ground.write("directives/code/review/SKILL.md", SKILL);
    ground.write("knowledge/art/colours.md", "# Colours\nRed is warm.\n");
    let text = manifest("packed", "1.0.0");
    let file = |path, bytes, is_executable| NewFile { path, bytes, is_executable };
    let files = [file("tool.yaml", text.as_bytes(), false), file("main.sh", b"echo\n", true)];
    let install = Install {
        id: &id("packed"),
        version: &version("1.0.0"),
        files: Staged::Memory(&files),
        source: "registry.example",
        at: "2026-01-24T12:00:00Z",
        expected: None,
    };
    let spaces = ground.spaces();
    spaces.packages(Space::Project).expect("packages").install(&install).expect("installed");
    settle();
    ground
}

fn note(ground: &Ground) -> PathBuf {
    let spaces = ground.spaces();
    let packages = spaces.packages(Space::Project).expect("packages");
    packages.note_file(&id("packed"), &version("1.0.0")).expect("note")
}
