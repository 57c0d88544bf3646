//! Embeds `system/`: every file as it is, with its digest at build time, what each manifest says in JSON, which is read
//! many times faster, and a sorted table of the tools.

/// The reader of manifests itself, so that what is read here is what would be read at run time. As a file, since all of
/// `kiwi-model` would have to be built once more for this script.
#[path = "../kiwi-model/src/yaml.rs"]
#[allow(dead_code, reason = "only reading is needed here")]
mod yaml;

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Extensions that make a file below `tools/` a one-file tool; `kind.rs` knows the same.
const EXTENSIONS: [&str; 7] = ["py", "sh", "js", "mjs", "ts", "yaml", "yml"];

fn main() -> io::Result<()> {
    // From the folder of this package, where cargo runs it: this script may have been compiled in another checkout.
    let system = Path::new("../../system");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../kiwi-model/src/yaml.rs");
    println!("cargo:rerun-if-changed={}", system.display());
    let mut paths = Vec::new();
    if system.is_dir() {
        walk(system, system, &mut paths)?;
    }
    paths.sort();

    // Copied first: digest and bytes come from one reading, even while somebody edits the originals.
    let copies = out_folder().join("system");
    fs::create_dir_all(&copies)?;
    let mut files = String::new();
    for (number, path) in paths.iter().enumerate() {
        let full = system.join(path);
        let bytes = fs::read(&full)?;
        let copy = copies.join(number.to_string());
        fs::write(&copy, &bytes)?;
        let is_executable = fs::metadata(&full)?.permissions().mode() & 0o100 != 0;
        let is_manifest =
            tool_of(path, &paths).is_some() && matches!(path.rsplit_once('.'), Some((_, "yaml" | "yml")));
        let reading = if is_manifest {
            reading(path, &bytes, &copy.with_extension("json"))?
        } else {
            "None".to_owned()
        };
        let _ = writeln!(
            files,
            "    Embedded {{ path: {path:?}, bytes: include_bytes!({:?}), sha256: {:?}, is_executable: {is_executable}, reading: {reading} }},",
            copy.to_string_lossy(),
            digest(&bytes)
        );
    }
    let mut tools: Vec<(String, &str)> =
        paths.iter().filter_map(|path| tool_of(path, &paths).map(|id| (id, path.as_str()))).collect();
    tools.sort();
    let mut table = String::new();
    for (id, path) in tools {
        let _ = writeln!(table, "    ({id:?}, {path:?}),");
    }
    let out = out_folder().join("system.rs");
    let text = format!(
        "/// Every file of the system space, by path.\npub(crate) static FILES: &[Embedded] = &[\n{files}];\n\n\
         /// Every tool of the system space: its id and its manifest or script, by id.\npub(crate) static TOOLS: &[(&str, &str)] = &[\n{table}];\n"
    );
    fs::write(out, text)
}

/// What a manifest says, written as JSON to `copy`: the expression that embeds it.
fn reading(path: &str, bytes: &[u8], copy: &Path) -> io::Result<String> {
    let refused = |error: yaml::YamlError| {
        let place = error.place;
        io::Error::other(format!("system/{path}:{}:{}: {error}", place.line, place.column))
    };
    let json = serde_json::to_vec(&yaml::parse(bytes).map_err(refused)?.value)?;
    fs::write(copy, &json)?;
    Ok(format!(
        "Some(Reading {{ json: include_bytes!({:?}), sha256: {:?} }})",
        copy.to_string_lossy(),
        digest(&json)
    ))
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold("sha256:".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[expect(clippy::disallowed_methods, reason = "this is how cargo says where generated files go")]
fn out_folder() -> PathBuf {
    PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default())
}

/// Hidden files and bytecode are nobody's source.
fn walk(root: &Path, folder: &Path, paths: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "__pycache__" {
            continue;
        }
        if path.is_dir() {
            walk(root, &path, paths)?;
        } else if let Ok(relative) = path.strip_prefix(root) {
            let relative = relative
                .to_str()
                .ok_or_else(|| io::Error::other(format!("{} is not UTF-8", path.display())))?;
            paths.push(relative.to_owned());
        }
    }
    Ok(())
}

/// The id of the tool whose manifest or script this is.
fn tool_of(path: &str, all: &[String]) -> Option<String> {
    let below = path.strip_prefix("tools/")?;
    if below.starts_with("lib/") {
        return None;
    }
    let (folder, name) = path.rsplit_once('/')?;
    let in_tool =
        |folder: &str| folder != "tools" && all.iter().any(|other| *other == format!("{folder}/tool.yaml"));
    if name == "tool.yaml" && folder != "tools" {
        return folder.rsplit('/').next().map(str::to_owned);
    }
    let mut around = Some(folder);
    while let Some(folder) = around {
        if in_tool(folder) {
            return None;
        }
        around = folder.rsplit_once('/').map(|(outer, _)| outer);
    }
    let (stem, extension) = name.rsplit_once('.')?;
    EXTENSIONS.contains(&extension).then(|| stem.to_owned())
}
