//! How the binary is linked.
#![expect(clippy::disallowed_methods, reason = "cargo tells a build script its target this way")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Every call starts this binary again, as its launcher. A program at a fixed address needs no relocation when it is
    // loaded, which is a third of its start; libraries, heap and stack still lie at random addresses.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-link-arg-bin=kiwi=-no-pie");
    }
}
