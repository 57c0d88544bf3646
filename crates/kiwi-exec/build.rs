//! Makes the launcher, which is a program of its own, for Kiwi to carry along.
#![expect(clippy::disallowed_methods, reason = "a build asks its environment, and has cargo build")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The processors whose system calls it knows.
const KNOWN: [&str; 2] = ["x86_64", "aarch64"];
/// Nothing of a C library, and the same place in memory always: it has nobody who could move it.
const FLAGS: [&str; 5] = [
    "-Crelocation-model=static",
    "-Ctarget-feature=+crt-static",
    "-Clink-arg=-nostartfiles",
    "-Clink-arg=-nodefaultlibs",
    "-Cstrip=symbols",
];
/// What was said about building Kiwi, which is not about this program.
const NOT_MEANT: [&str; 5] = [
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
];

fn main() -> Result<(), String> {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let out = PathBuf::from(variable("OUT_DIR"));
    let launcher = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../kiwi-launcher");
    for input in ["src", "Cargo.toml", "../../Cargo.lock", "../../Cargo.toml"] {
        println!("cargo::rerun-if-changed={}", launcher.join(input).display());
    }
    println!("cargo::rerun-if-changed=build.rs");
    let is_known = variable("CARGO_CFG_TARGET_OS") == "linux"
        && KNOWN.contains(&variable("CARGO_CFG_TARGET_ARCH").as_str());
    // Where there is none, `kiwi __launch` is the only one.
    let program = if is_known { build(&launcher, &out.join("launcher"), &variable)? } else { Vec::new() };
    let made = out.join("kiwi-launcher");
    fs::write(&made, program).map_err(|error| format!("{}: {error}", made.display()))
}

/// The program's bytes.
fn build(launcher: &Path, folder: &Path, variable: &impl Fn(&str) -> String) -> Result<Vec<u8>, String> {
    let target = variable("TARGET");
    let mut cargo = Command::new(variable("CARGO"));
    cargo.args(["build", "--quiet", "--profile", "launcher", "--bin", "kiwi-launcher"]);
    cargo.args(["--features", "freestanding", "--target", target.as_str()]);
    cargo.arg("--target-dir").arg(folder).arg("--manifest-path").arg(launcher.join("Cargo.toml"));
    for name in NOT_MEANT {
        cargo.env_remove(name);
    }
    let done = cargo.env("RUSTFLAGS", FLAGS.join(" ")).status();
    if !done.is_ok_and(|done| done.success()) {
        return Err(format!("the launcher cannot be built: {cargo:?}"));
    }
    let program = folder.join(target).join("launcher/kiwi-launcher");
    fs::read(&program).map_err(|error| format!("{}: {error}", program.display()))
}
