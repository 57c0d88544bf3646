#![no_main]

#[path = "../src/shell.rs"]
mod shell;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shell::command(bytes));
