//! Trying again: when it may help, and after how long.

use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::StatusCode;
use reqwest::header::{self, HeaderMap, HeaderName};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The first pause, when nobody asks for another; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What a failure says about trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// It would fail again.
    Never,
    /// It may have passed in a moment.
    Soon,
    /// The other side says when.
    After(Duration),
}

/// What a status says.
pub(super) fn wish(status: StatusCode, headers: &HeaderMap) -> Wish {
    let passes = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    );
    if passes { retry_after(headers).map_or(Wish::Soon, Wish::After) } else { Wish::Never }
}

/// Seconds, or a date. A date is held against the answer's own: the two clocks need not agree.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let wanted = text(header::RETRY_AFTER)?;
    if let Ok(seconds) = wanted.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let read = |date| DateTimeParser::new().parse_timestamp(date).ok();
    let wait = read(wanted)?.duration_since(read(text(header::DATE)?)?);
    Some(Duration::try_from(wait).unwrap_or_default())
}

/// How often and when a request is made again.
#[derive(Debug)]
pub(super) struct Patience {
    left: u32,
    pause: Duration,
}

impl Patience {
    pub fn new(retries: u32) -> Self {
        Self { left: retries, pause: FIRST_PAUSE }
    }

    /// How long to wait before the next try, if there is to be one.
    pub fn wait(&mut self, wish: Wish) -> Option<Duration> {
        self.left = self.left.checked_sub(1)?;
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        match wish {
            Wish::Never => None,
            Wish::Soon => Some(scattered(pause)),
            // Never before it is welcome, and not all callers at once.
            Wish::After(asked) => Some(asked.saturating_add(scattered(FIRST_PAUSE) / 4)),
        }
    }
}

/// Half of a pause to the whole of it, by chance: callers that failed together do not come back together.
fn scattered(pause: Duration) -> Duration {
    // A fresh hasher is seeded by the system; nothing here needs better chance.
    let chance = RandomState::new().hash_one(()) % 1000;
    pause / 2 + pause * u32::try_from(chance).unwrap_or_default() / 2000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(after: &str, date: Option<&str>) -> Wish {
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, after.parse().unwrap());
        if let Some(date) = date {
            headers.insert(header::DATE, date.parse().unwrap());
        }
        wish(StatusCode::SERVICE_UNAVAILABLE, &headers)
    }

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        let noon = "Sun, 06 Nov 1994 12:00:00 GMT";
        for (after, date, expected) in [
            ("7", None, Wish::After(Duration::from_secs(7))),
            (" 0 ", None, Wish::After(Duration::ZERO)),
            ("Sun, 06 Nov 1994 12:01:30 GMT", Some(noon), Wish::After(Duration::from_secs(90))),
            ("Sun, 06 Nov 1994 11:00:00 GMT", Some(noon), Wish::After(Duration::ZERO)),
            ("Sun, 06 Nov 1994 12:01:30 GMT", None, Wish::Soon),
            ("tomorrow", Some(noon), Wish::Soon),
            ("-1", None, Wish::Soon),
        ] {
            assert_eq!(asked(after, date), expected, "{after}");
        }
    }

    #[test]
    fn only_what_passes_is_tried_again() {
        let headers = HeaderMap::new();
        for (code, expected) in [(429, Wish::Soon), (502, Wish::Soon), (503, Wish::Soon), (504, Wish::Soon)] {
            assert_eq!(wish(StatusCode::from_u16(code).unwrap(), &headers), expected, "{code}");
        }
        for code in [302, 400, 401, 404, 409, 500, 501] {
            assert_eq!(wish(StatusCode::from_u16(code).unwrap(), &headers), Wish::Never, "{code}");
        }
    }

    #[test]
    fn pauses_grow_and_end() {
        let mut patience = Patience::new(3);
        for longest in [200, 400, 800] {
            let pause = patience.wait(Wish::Soon).unwrap().as_millis();
            assert!(pause >= longest / 2 && pause <= longest, "{pause}");
        }
        assert_eq!(patience.wait(Wish::Soon), None);
        assert_eq!(Patience::new(5).wait(Wish::Never), None);
        let pause = Patience::new(1).wait(Wish::After(Duration::from_secs(3))).unwrap();
        assert!(pause >= Duration::from_secs(3) && pause < Duration::from_secs(4), "{pause:?}");
        assert!(Patience::new(1).wait(Wish::After(Duration::MAX)).is_some());
    }
}
