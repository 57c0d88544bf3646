#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kiwi_fuzz::audit_line(bytes));
