//! How the binary is linked.
#![expect(clippy::disallowed_methods, reason = "cargo tells a build script its target this way")]

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Every call starts this binary again, as its launcher, so how long it takes to load counts.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        // A program at a fixed address needs no relocation when it is loaded, which is a third of its start; libraries, heap
        // and stack still lie at random addresses.
        println!("cargo::rustc-link-arg-bin=kiwi=-no-pie");
        // A library less to find, to map and to relocate is a tenth of it.
        if has_unwinder() {
            println!("cargo::rustc-link-arg-bin=kiwi=-Wl,--whole-archive,-l:{UNWINDER},--no-whole-archive");
        }
    }
}

/// What unwinds after a panic, to be part of the binary.
const UNWINDER: &str = "libgcc_eh.a";

/// Whether whoever links has it; otherwise it stays a library.
fn has_unwinder() -> bool {
    let linker = std::env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let asked = Command::new(linker).arg(format!("-print-file-name={UNWINDER}")).output();
    // It answers with the name alone if there is none.
    asked.is_ok_and(|answer| Path::new(String::from_utf8_lossy(&answer.stdout).trim()).is_file())
}
