//! A program that is nothing but the launcher: what the tests use in place of the Kiwi binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    kiwi_exec::launcher_main()
}
