#![no_main]

#[path = "../src/embed.rs"]
mod embed;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| embed::text(bytes));
