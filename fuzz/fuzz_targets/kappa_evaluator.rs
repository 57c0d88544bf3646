#![no_main]

#[path = "../src/rules.rs"]
#[allow(dead_code, reason = "each target uses one of the bodies")]
mod rules;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rules::evaluator(bytes));
