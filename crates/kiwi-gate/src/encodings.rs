//! The shapes a secret takes on its way: as addresses, headers, JSON, pages, traces and dumps carry it.

use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::collections::BTreeSet;

/// Fewer characters in the middle of other base64 are there by chance.
const LEAST_INSIDE: usize = 8;
/// Fewer characters at its beginning.
const LEAST: usize = 4;

/// What different libraries leave as it is: nothing, the unreserved characters, those and slashes, and what JavaScript
/// spares.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const PATH: &AsciiSet = &UNRESERVED.remove(b'/');
const SCRIPT: &AsciiSet = &UNRESERVED.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');

/// Every shape of a text, itself among them.
pub(crate) fn shapes(text: &str) -> BTreeSet<String> {
    let mut shapes = BTreeSet::from([text.to_owned()]);
    for spared in [NON_ALPHANUMERIC, UNRESERVED, PATH, SCRIPT] {
        let encoded = utf8_percent_encode(text, spared).to_string();
        // Forms write a space as a plus sign; the digits of a code are small in some libraries.
        shapes.extend([encoded.replace("%20", "+"), small_codes(&encoded), encoded]);
    }
    for offset in 0..3 {
        shapes.extend([&STANDARD, &URL_SAFE].into_iter().flat_map(|kind| base64(text, offset, kind)));
    }
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    let hex: String = text.bytes().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    shapes.extend([hex.to_uppercase(), hex]);
    if let Ok(quoted) = serde_json::to_string(text) {
        let inner = quoted.trim_start_matches('"');
        let inner = inner.strip_suffix('"').unwrap_or(inner).to_owned();
        shapes.extend([ascii(&inner), inner.replace('/', "\\/"), inner]);
    }
    // Python's `repr`, and what Bash shows under `set -x` and by `printf %q`.
    let doubled = text.replace('\\', "\\\\");
    shapes.extend([doubled.replace('\'', "\\'"), text.replace('\'', "'\\''"), doubled, escaped(text)]);
    let page = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let quoted = page.replace('"', "&quot;");
    shapes.extend([quoted.replace('\'', "&#39;"), quoted.replace('\'', "&#x27;"), quoted, page]);
    shapes
}

/// With a backslash before everything that a shell would take for something else.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() && !c.is_ascii_alphanumeric() && !"%+-./:=@_".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// As it stands in base64 that begins so many bytes before it: at its end, and without the ends that depend on what is around
/// it.
fn base64(text: &str, offset: usize, kind: &impl base64::Engine) -> Vec<String> {
    let bytes: Vec<u8> = std::iter::repeat_n(0, offset).chain(text.bytes()).collect();
    let encoded = kind.encode(&bytes);
    // Six bits each: the first ones have bits of what is before it.
    let (first, last) = ((offset * 8).div_ceil(6), bytes.len() * 8 / 6);
    let needed = if offset == 0 { LEAST } else { LEAST_INSIDE };
    let is_enough = last.saturating_sub(first) >= needed;
    let shapes = [encoded.get(first..last), encoded.get(first..), encoded.trim_end_matches('=').get(first..)];
    shapes.into_iter().flatten().filter(|_| is_enough).map(str::to_owned).collect()
}

/// The same with small letters in its percent codes.
fn small_codes(encoded: &str) -> String {
    let mut left = 0_u8;
    let small = |c: char| {
        if c == '%' {
            left = 2;
            return c;
        }
        let is_code = left > 0;
        left = left.saturating_sub(1);
        if is_code { c.to_ascii_lowercase() } else { c }
    };
    encoded.chars().map(small).collect()
}

/// JSON in which everything beyond ASCII is a code.
fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            out.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;

    #[test]
    fn shapes_are_those_that_others_make() {
        let all = shapes("s3 é/\"+x-y");
        // Python's quote and quote_plus, JavaScript's encodeURIComponent, json.dumps, bytes.hex; Bash's %q; a page.
        for shape in [
            "s3%20%C3%A9/%22%2Bx-y",
            "s3+%C3%A9%2F%22%2Bx-y",
            "s3%20%C3%A9%2F%22%2Bx-y",
            "s3%20%c3%a9%2f%22%2bx-y",
            "s3 \\u00e9/\\\"+x-y",
            "s3 é/\\\"+x-y",
            "733320c3a92f222b782d79",
            "s3\\ é/\\\"+x-y",
            "s3 é/&quot;+x-y",
        ] {
            assert!(all.contains(shape), "{shape} is not in {all:?}");
        }
        assert!(shapes("it's \\").contains("it\\'s \\\\"), "repr");
        assert!(shapes("it's \\").contains("it'\\''s \\"), "set -x");
    }

    #[test]
    fn base64_is_found_wherever_it_begins() {
        let secret = "planted-S3CRET/value+1";
        let all = shapes(secret);
        for (before, after) in ["", "a", "ab", "abc", "Bearer ", "user:"]
            .into_iter()
            .flat_map(|before| ["", "\n", " after"].map(|after| (before, after)))
        {
            for kind in [&STANDARD, &URL_SAFE] {
                let encoded = kind.encode(format!("{before}{secret}{after}"));
                let found =
                    all.iter().filter(|shape| encoded.contains(shape.as_str())).map(String::len).max();
                // Every character that has bits of nothing else.
                assert!(found >= Some(secret.len() * 8 / 6 - 1), "{before}{after}: {encoded} {found:?}");
            }
        }
    }
}
