//! Canonical JSON: byte for byte what CPython prints for
//! `json.dumps(value, sort_keys=True, separators=(",", ":"))`.
//!
//! One reference implementation that everybody has beats a private format: anyone can recompute an integrity.

use serde_json::{Map, Number, Value};
use std::fmt::Write;

use crate::Digest;

/// A value that has no canonical form.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CanonicalError {
    /// NaN or an infinity.
    #[error("a number that is not finite cannot be hashed")]
    NotFinite,
    /// Outside ±(2^63−1).
    #[error("the integer {0} is outside ±(2^63−1) and cannot be hashed")]
    IntegerRange(String),
}

/// The canonical text of a value.
pub fn canonical(value: &Value) -> Result<String, CanonicalError> {
    let mut out = String::new();
    write_value(&mut out, value)?;
    Ok(out)
}

/// The canonical text of an object.
pub fn canonical_object(map: &Map<String, Value>) -> Result<String, CanonicalError> {
    let mut out = String::new();
    write_object(&mut out, map)?;
    Ok(out)
}

fn write_object(out: &mut String, map: &Map<String, Value>) -> Result<(), CanonicalError> {
    // UTF-8 byte order is code-point order. Sorted here, so that no feature of the map type matters.
    if map.keys().is_sorted() {
        return write_members(out, map.iter());
    }
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
    write_members(out, entries.into_iter())
}

fn write_members<'a>(
    out: &mut String,
    members: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Result<(), CanonicalError> {
    out.push('{');
    for (i, (key, item)) in members.enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_string(out, key);
        out.push(':');
        write_value(out, item)?;
    }
    out.push('}');
    Ok(())
}

pub(crate) fn write_value(out: &mut String, value: &Value) -> Result<(), CanonicalError> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number)?,
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_value(out, item)?;
            }
            out.push(']');
        }
        Value::Object(map) => write_object(out, map)?,
    }
    Ok(())
}

pub(crate) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    // Most of most texts needs no escape: it is copied in runs.
    while let Some(at) =
        rest.bytes().position(|byte| !matches!(byte, b' '..=b'~') || byte == b'"' || byte == b'\\')
    {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let mut characters = special.chars();
        if let Some(character) = characters.next() {
            write_escape(out, character);
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

/// A digest, quoted.
pub(crate) fn write_digest(out: &mut String, digest: Digest) {
    digest.spell(|digits| ["\"sha256:", digits, "\""].iter().for_each(|part| out.push_str(part)));
}

fn write_escape(out: &mut String, character: char) {
    match character {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        _ => {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
}

fn write_number(out: &mut String, number: &Number) -> Result<(), CanonicalError> {
    if let Some(integer) = number.as_i64() {
        if integer == i64::MIN {
            return Err(CanonicalError::IntegerRange(integer.to_string()));
        }
        let _ = write!(out, "{integer}");
    } else if number.is_u64() {
        return Err(CanonicalError::IntegerRange(number.to_string()));
    } else {
        match number.as_f64() {
            Some(float) if float.is_finite() => write_float(out, float),
            _ => return Err(CanonicalError::NotFinite),
        }
    }
    Ok(())
}

/// `repr(float)`: the shortest digits that round-trip, in positional form for exponents −4 … 15.
fn write_float(out: &mut String, float: f64) {
    // Where two shortest forms are equally near, CPython takes the even digit. Rust's shortest form does not; its
    // rounded form does.
    let shortest = format!("{float:e}");
    let digits = shortest.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    let even = format!("{float:.0$e}", digits.saturating_sub(1));
    let scientific = if even.parse() == Ok(float) { even } else { shortest };
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    out.push_str(sign);
    if (-4..16).contains(&exponent) {
        if exponent < 0 {
            out.push_str("0.");
            out.extend(std::iter::repeat_n('0', exponent.unsigned_abs() as usize - 1));
            out.push_str(&digits);
        } else {
            let whole = exponent.unsigned_abs() as usize + 1;
            out.extend(digits.chars().chain(std::iter::repeat('0')).take(whole));
            out.push('.');
            if digits.len() > whole {
                out.extend(digits.chars().skip(whole));
            } else {
                out.push('0');
            }
        }
    } else {
        let mut rest = digits.chars();
        out.extend(rest.next());
        if digits.len() > 1 {
            out.push('.');
            out.extend(rest);
        }
        let _ = write!(out, "e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(value: &Value, expect: &str) {
        assert_eq!(canonical(value).as_deref(), Ok(expect));
    }

    // The broad comparison is against the real CPython, in `tests/canonical_vs_cpython.rs`.
    #[test]
    fn the_forms_that_are_easy_to_get_wrong() {
        check(
            &json!({"b": 1, "a": [true, null], "é": "ü\u{1F600}\u{7f}"}),
            r#"{"a":[true,null],"b":1,"\u00e9":"\u00fc\ud83d\ude00\u007f"}"#,
        );
        for (float, expect) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (1e-5, "1e-05"),
            (1.5e-4, "0.00015"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (123_456_789.125, "123456789.125"),
        ] {
            check(&json!(float), expect);
        }
    }

    #[test]
    fn what_cannot_be_hashed_is_an_error() {
        assert!(canonical(&json!(i64::MIN)).is_err());
        assert!(canonical(&json!(u64::MAX)).is_err());
        check(&json!(i64::MAX), "9223372036854775807");
        check(&json!(-i64::MAX), "-9223372036854775807");
    }
}
