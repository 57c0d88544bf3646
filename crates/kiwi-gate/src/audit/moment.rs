//! Times as people type them.

use jiff::{SignedDuration, Timestamp};
use kiwi_model::{ErrorKind, Fault};

/// A moment: RFC 3339, or a span before now (`90s`, `15m`, `2h`, `7d`, `4w`).
pub(super) fn parse(text: &str, now: Timestamp) -> Result<Timestamp, Fault> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    let bad = || {
        Fault::new(ErrorKind::Usage, format!("`{text}` is not a time"))
            .with_hint("write `2026-01-31T12:00:00Z`, or a span before now such as `2h` or `7d`")
    };
    let unit = text.chars().last().ok_or_else(bad)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return Err(bad()),
    };
    let count: i64 =
        text.strip_suffix(unit).and_then(|count| count.parse::<u32>().ok()).ok_or_else(bad)?.into();
    now.checked_sub(SignedDuration::from_secs(count * seconds)).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_spans_are_read_and_the_rest_is_refused() {
        let now: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let check =
            |text: &str, expect: &str| assert_eq!(parse(text, now).unwrap().to_string(), expect, "{text}");
        check("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z");
        check("2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z");
        check("90s", "2026-01-31T11:58:30Z");
        check("2h", "2026-01-31T10:00:00Z");
        check("7d", "2026-01-24T12:00:00Z");
        for bad in ["", "h", "2", "-2h", "2y", "2 h", "yesterday", "99999999999d", "4294967295w", "2h "] {
            assert_eq!(parse(bad, now).unwrap_err().kind, ErrorKind::Usage, "{bad}");
        }
    }
}
