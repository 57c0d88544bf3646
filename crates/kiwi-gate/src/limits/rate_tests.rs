use super::*;
use jiff::SignedDuration;
use serde_json::json;

fn config(value: serde_json::Value) -> RateConfig {
    serde_json::from_value(value).unwrap()
}

fn id(text: &str) -> ToolId {
    ToolId::parse(text).unwrap()
}

struct Place {
    folder: tempfile::TempDir,
    now: Timestamp,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), now: Timestamp::from_second(1_800_000_000).unwrap() }
    }

    fn limits(&self, value: serde_json::Value) -> RateLimits {
        RateLimits::new(&config(value), Some(self.folder.path().join("limits"))).unwrap()
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path().join("limits")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

fn admitted(limits: &RateLimits, session: Session, tool: &str, now: Timestamp) -> usize {
    let caller = Caller::cli("me");
    let one = || limits.reserve(session, &caller, &id(tool), false, now).map(Reservation::keep);
    (0..1000).take_while(|_| one().is_ok()).count()
}

#[test]
fn the_defaults_and_what_they_say() {
    let place = Place::new();
    let limits = place.limits(json!({}));
    let session = Session::start();
    // An hour of minutes is no more than the session has.
    let mut total = 0;
    for minute in 0..60 {
        total += admitted(&limits, session, "shell.run", place.now + SignedDuration::from_mins(minute));
    }
    assert_eq!(total, 50);
    let error = limits.reserve(session, &Caller::cli("me"), &id("shell.run"), false, place.now).unwrap_err();
    assert_eq!(error.kind, ErrorKind::RateLimited);
    assert_eq!(error.judge, Judge::RateLimit);
    let details = error.fault().details;
    assert_eq!(details["retry_after_ms"], Value::Null, "{details}");
    assert_eq!((&details["window"], &details["limit"]), (&json!("session"), &json!(50)));
    assert_eq!(details["selector"], "shell.run");
    assert_eq!(details["reason"]["policy_id"], "rate_limit");
    // Reconnecting gives a new session and the same minute.
    let fresh = Place::new();
    let limits = fresh.limits(json!({}));
    assert_eq!(admitted(&limits, Session::start(), "filesystem.write", fresh.now), 100);
    let again = RateLimits::new(&config(json!({})), Some(fresh.folder.path().join("limits"))).unwrap();
    assert_eq!(admitted(&again, Session::start(), "filesystem.write", fresh.now), 0);
    let error =
        again.reserve(Session::start(), &Caller::cli("me"), &id("filesystem.write"), false, fresh.now);
    let details = error.unwrap_err().fault().details;
    assert_eq!((&details["window"], &details["limit"]), (&json!("minute"), &json!(100)));
    let wait = details["retry_after_ms"].as_i64().unwrap();
    assert!((1..=1001).contains(&wait), "{wait}");
    let then = fresh.now + SignedDuration::from_millis(wait);
    assert_eq!(admitted(&again, Session::start(), "filesystem.write", then), 1);
    // Somebody else has their own minute.
    assert!(
        again
            .reserve(Session::start(), &Caller::cli("you"), &id("filesystem.write"), false, fresh.now)
            .is_ok()
    );
}

#[test]
fn a_tool_without_a_limit_touches_nothing() {
    let place = Place::new();
    let limits = place.limits(json!({}));
    assert_eq!(admitted(&limits, Session::start(), "filesystem.read", place.now), 1000);
    assert!(place.files().is_empty() && !place.folder.path().join("limits").exists());
    let (caller, session) = (Caller::cli("me"), Session::start());
    let upstream = limits.reserve(session, &caller, &id("mcp.server.tool"), true, place.now).unwrap();
    assert_eq!(upstream.taken.len(), 1);
    let one = limits.reserve(session, &caller, &id("mcp.server.tool"), false, place.now).unwrap();
    assert!(one.taken.is_empty());
}

#[test]
fn a_call_that_does_not_happen_uses_nothing_up() {
    let place = Place::new();
    let limits =
        place.limits(json!({"a.*": {"session": 3, "minute": 3}, "a.b": {"session": 1, "minute": 9}}));
    let (caller, session) = (Caller::cli("me"), Session::start());
    for _ in 0..20 {
        drop(limits.reserve(session, &caller, &id("a.b"), false, place.now).unwrap());
    }
    limits.reserve(session, &caller, &id("a.b"), false, place.now).unwrap().keep();
    // Refused by the second of two limits, it is given back to the first.
    for _ in 0..20 {
        assert!(limits.reserve(session, &caller, &id("a.b"), false, place.now).is_err());
    }
    assert_eq!(admitted(&limits, session, "a.c", place.now), 2);
}

#[test]
fn a_state_that_makes_no_sense_refuses_and_says_which_file() {
    let place = Place::new();
    let limits = place.limits(json!({"t": {"minute": 5}}));
    assert_eq!(admitted(&limits, Session::start(), "t", place.now), 5);
    let [path] = place.files().try_into().unwrap();
    for garbage in
        ["{", "null", "\0\0\0\0", "{\"caller\":\"x\",\"selector\":\"t\",\"full_at\":0,\"seen_at\":0}"]
    {
        std::fs::write(&path, garbage).unwrap();
        let error = limits.reserve(Session::start(), &Caller::cli("me"), &id("t"), false, place.now);
        let error = error.unwrap_err();
        assert_eq!((error.judge, error.kind), (Judge::RateLimit, ErrorKind::Denied), "{garbage}");
        assert!(error.sentence().contains(&path.display().to_string()), "{}", error.sentence());
        assert!(error.hint.is_some());
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(admitted(&limits, Session::start(), "t", place.now), 5);
    let homeless = RateLimits::new(&config(json!({"t": {"minute": 5}})), None).unwrap();
    assert_eq!(admitted(&homeless, Session::start(), "t", place.now), 0);
    assert!(RateLimits::new(&config(json!({"a[": {"minute": 5}})), None).is_err());
}

#[test]
fn a_limit_of_zero_is_never_and_a_directive_is_one_caller() {
    let place = Place::new();
    let limits = place.limits(json!({"t": {"minute": 0}, "u": {"session": 0}}));
    assert_eq!(admitted(&limits, Session::start(), "t", place.now), 0);
    assert_eq!(admitted(&limits, Session::start(), "u", place.now), 0);
    // One run of a directive after another is still the same caller.
    let limits = place.limits(json!({"t": {"minute": 1}}));
    let run = |number: u32| {
        let caller = Caller::cli(&format!("x#{number}"));
        limits.reserve(Session::start(), &caller, &id("t"), false, place.now).map(Reservation::keep)
    };
    assert!(run(1).is_ok() && run(2).is_err());
}

#[test]
fn many_at_once_get_exactly_the_limit() {
    let place = Place::new();
    let path = place.folder.path().join("limits");
    let all: usize = std::thread::scope(|scope| {
        let counted = |_: usize| {
            // Each with state of its own in memory, as processes have.
            let limits = RateLimits::new(&config(json!({"t": {"minute": 40}})), Some(path.clone())).unwrap();
            let now = place.now;
            scope.spawn(move || admitted(&limits, Session::start(), "t", now))
        };
        (0..8).map(counted).collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(all, 40);
}
