use super::*;
use crate::admission::{Objection, Why};
use crate::request::Cancel;
use jiff::Timestamp;
use kiwi_model::{Digest, ErrorKind, ToolId, Version};
use kiwi_rules::DenialReason;
use kiwi_space::Locations;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A new instance, as another process has one.
    fn approvals(&self) -> Approvals {
        let user = self.folder.path().to_owned();
        let spaces = Spaces::open(Locations { project: None, cwd: user.clone(), user: Some(user) }).unwrap();
        Approvals::open(&spaces, ApprovalConfig::default()).unwrap()
    }

    fn file(&self, path: &str) -> PathBuf {
        self.folder.path().join(".ai").join(path)
    }

    fn edit(&self, path: &str, edit: impl FnOnce(&mut Value)) {
        let path = self.file(path);
        let mut value: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        edit(&mut value);
        std::fs::write(&path, value.to_string()).unwrap();
    }

    fn pending(&self, bound: &Bound) -> Pending {
        self.approvals().ask(bound, &questions(), now(0)).unwrap()
    }

    /// What a call comes to that asks and does not wait.
    fn call(&self, bound: &Bound, at: i64) -> Result<Approved, Box<Objection>> {
        block_on(self.approvals().decide(bound, &questions(), AskMode::Pending, &|| now(at)))
    }

    fn call_in_ci(&self, bound: &Bound, at: i64) -> Result<Approved, Box<Objection>> {
        block_on(self.approvals().decide(bound, &questions(), AskMode::DenyUnlessGranted, &|| now(at)))
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn now(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn questions() -> Vec<Question> {
    vec![Question { by: "default".into(), question: "it changes state".into() }]
}

fn bound() -> Bound {
    let params = json!({"target": "staging/eu", "count": 2, "key": "hidden"});
    Bound {
        project: Some("/p".into()),
        session: "s1".into(),
        caller: "mcp:agent".into(),
        tool: ToolId::parse("deploy").unwrap(),
        version: Version::new(1, 0, 0),
        integrity: Digest::of(b"tool"),
        chain_hash: Digest::of(b"chain"),
        params: params.as_object().unwrap().clone(),
        shown: json!({"target": "staging/eu", "count": 2, "key": "[redacted]"}),
        rules_version: Digest::of(b"rules"),
    }
}

fn with(name: &str, value: impl Into<Value>) -> Bound {
    let mut bound = bound();
    bound.params.insert(name.to_owned(), value.into());
    bound
}

fn yes() -> Answer {
    Answer { by: "cli:me".into(), reason: None, option: None, remember: None }
}

fn remember(remember: Remember) -> Answer {
    Answer { remember: Some(remember), ..yes() }
}

#[track_caller]
fn denied(result: Result<Approved, Box<Objection>>) -> String {
    let objection = result.expect_err("it was admitted");
    match &objection.why {
        Why::Denied(DenialReason::Policy { policy_id, policy_reason }) if policy_id == "approval" => {
            assert_eq!(objection.kind, ErrorKind::Denied);
            policy_reason.clone()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_asks_once_is_approved_once_and_runs_once() {
    let place = Place::new();
    let objection = place.call(&bound(), 0).unwrap_err();
    assert_eq!(objection.kind, ErrorKind::ApprovalRequired);
    let fault = objection.fault();
    let id = fault.details["id"].as_str().unwrap().to_owned();
    assert!(fault.hint.unwrap().contains(&format!("kiwi approve {id}")));
    assert_eq!(fault.details["expires_at"], "2027-01-15T09:00:00Z");
    // The same call, from another session, is the same question.
    let again = Bound { session: "s2".into(), ..bound() };
    assert_eq!(place.call(&again, 10).unwrap_err().details["id"], id.as_str());
    assert_ne!(place.call(&with("count", 3), 10).unwrap_err().details["id"], id.as_str());
    let file = std::fs::read_to_string(place.file(&format!("approvals/{id}.json"))).unwrap();
    assert!(!file.contains("hidden") && file.contains("[redacted]"), "{file}");

    place.approvals().approve(id.get(..4).unwrap(), yes(), now(20)).unwrap();
    let approved = place.call(&again, 30).unwrap();
    assert_eq!(approved, Approved { by: "cli:me".into(), approval: id.clone(), grant: None });
    let next = place.call(&bound(), 40).unwrap_err();
    assert_eq!(next.kind, ErrorKind::ApprovalRequired);
    assert_ne!(next.details["id"], id.as_str());
    let told = place.approvals().approve(&id, yes(), now(50)).unwrap_err();
    assert_eq!(told.kind, ErrorKind::Usage);
    assert!(
        told.message.contains("was approved by `cli:me`") && told.message.contains("used"),
        "{}",
        told.message
    );
}

#[test]
fn it_is_bound_to_everything_that_could_differ() {
    let place = Place::new();
    let id = place.pending(&bound()).id;
    place.approvals().approve(&id, yes(), now(1)).unwrap();
    let other = Digest::of(b"other");
    for bound in [
        Bound { caller: "mcp:other".into(), ..bound() },
        Bound { project: None, ..bound() },
        Bound { chain_hash: other, ..bound() },
        Bound { integrity: other, ..bound() },
        Bound { rules_version: other, ..bound() },
        Bound { tool: ToolId::parse("deploy2").unwrap(), ..bound() },
        with("target", "production"),
        with("extra", 1),
    ] {
        assert_eq!(place.call(&bound, 2).unwrap_err().kind, ErrorKind::ApprovalRequired, "{bound:?}");
    }
    assert!(place.call(&bound(), 2).is_ok());
}

#[test]
fn a_no_holds_and_time_settles_the_rest() {
    let place = Place::new();
    let id = place.pending(&bound()).id;
    let no = Answer { reason: Some("not on a Friday".into()), ..yes() };
    place.approvals().reject(&id, no, now(1)).unwrap();
    assert!(denied(place.call(&bound(), 2)).contains("not on a Friday"));
    let told = place.approvals().reject(&id, yes(), now(3)).unwrap_err();
    assert!(told.kind == ErrorKind::Usage && told.message.contains("was rejected"), "{}", told.message);
    // An hour later it may be asked again.
    assert_eq!(place.call(&bound(), 3602).unwrap_err().kind, ErrorKind::ApprovalRequired);

    let place = Place::new();
    let id = place.pending(&bound()).id;
    let late = place.approvals().approve(&id, yes(), now(3600)).unwrap_err();
    assert!(late.kind == ErrorKind::Usage && late.message.contains("expired"), "{}", late.message);
    assert_ne!(place.call(&bound(), 3600).unwrap_err().details["id"], id.as_str());
    // A yes that nobody used in time is none.
    let place = Place::new();
    let id = place.pending(&bound()).id;
    place.approvals().approve(&id, yes(), now(3599)).unwrap();
    assert_eq!(place.call(&bound(), 3599 + 3600).unwrap_err().kind, ErrorKind::ApprovalRequired);
    // What is settled goes after a week; what waits stays.
    place.call(&bound(), 3600 * 24 * 30).unwrap_err();
    assert_eq!(place.approvals().all().unwrap().len(), 1);
}

#[test]
fn nobody_can_answer_without_the_key() {
    let place = Place::new();
    let id = place.pending(&bound()).id;
    let file = format!("approvals/{id}.json");
    let forged = json!({"verdict": "approved", "by": "cli:me", "at": "2027-01-15T08:00:01Z",
                        "until": "2027-01-15T09:00:00Z", "signature": "ab".repeat(64)});
    place.edit(&file, |value| {
        value["state"] = "approved".into();
        value["decided"] = forged;
    });
    let objection = place.call(&bound(), 2).unwrap_err();
    assert_eq!((objection.kind, &objection.details["id"]), (ErrorKind::ApprovalRequired, &json!(id)));
    assert_eq!(objection.details["unsigned"], true);
    assert!(objection.hint.unwrap().contains("did not sign"));
    // The person still decides; and what they signed cannot be bent to anything else.
    place.approvals().approve(&id, yes(), now(3)).unwrap();
    let whole = std::fs::read(place.file(&file)).unwrap();
    for (name, value) in [
        ("params_hash", json!(with("count", 3).params_hash().unwrap())),
        ("caller", json!("mcp:other")),
        ("expires_at", json!("2099-01-01T00:00:00Z")),
        ("project", json!(null)),
    ] {
        place.edit(&file, |approval| approval[name] = value.clone());
        let bent = Bound {
            caller: if name == "caller" { "mcp:other".into() } else { "mcp:agent".into() },
            project: if name == "project" { None } else { Some("/p".into()) },
            ..if name == "params_hash" { with("count", 3) } else { bound() }
        };
        assert_eq!(place.call(&bent, 4).unwrap_err().kind, ErrorKind::ApprovalRequired, "{name}");
        std::fs::write(place.file(&file), &whole).unwrap();
    }
    place.edit(&file, |approval| approval["decided"]["until"] = "2099-01-01T00:00:00Z".into());
    assert_eq!(place.call(&bound(), 4).unwrap_err().kind, ErrorKind::ApprovalRequired);
    std::fs::write(place.file(&file), &whole).unwrap();
    // Another user's key signs for another user.
    std::fs::rename(place.file("keys/approval.key"), place.file("keys/aside")).unwrap();
    assert_eq!(place.call(&bound(), 4).unwrap_err().kind, ErrorKind::ApprovalRequired);
    std::fs::rename(place.file("keys/aside"), place.file("keys/approval.key")).unwrap();
    assert!(place.call(&bound(), 4).is_ok());

    // A no that was turned into a yes is neither.
    let place = Place::new();
    let id = place.pending(&bound()).id;
    place.approvals().reject(&id, yes(), now(1)).unwrap();
    place.edit(&format!("approvals/{id}.json"), |approval| approval["state"] = "approved".into());
    assert_eq!(place.call(&bound(), 2).unwrap_err().kind, ErrorKind::ApprovalRequired);
}

#[test]
fn what_cannot_be_read_denies_and_can_be_removed() {
    let place = Place::new();
    let id = place.pending(&bound()).id;
    place.approvals().approve(&id, yes(), now(1)).unwrap();
    for (name, text) in
        [("zzzzzzzz.json", "{"), ("note.txt", "hello"), ("yyyyyyyy.json", "{\"id\": \"other\"}")]
    {
        let path = place.file(&format!("approvals/{name}"));
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let stem = name.strip_suffix(".json").unwrap_or(name);
        let objection = place.call(&bound(), 2).unwrap_err();
        assert!(objection.hint.clone().unwrap().contains(&format!("kiwi reject {stem}")), "{objection:?}");
        assert!(denied(Err(objection)).contains(stem));
        assert!(place.approvals().approve(stem, yes(), now(2)).is_err());
        let undone = place.approvals().reject(stem, yes(), now(2)).unwrap();
        assert!(matches!(undone, Undone::Removed { .. }) && !path.exists());
    }
    // Open to others, or somebody else's folder.
    let path = place.file(&format!("approvals/{id}.json"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    denied(place.call(&bound(), 2));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let folder = place.file("approvals");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    denied(place.call(&bound(), 2));
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    let key = place.file("keys/approval.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    denied(place.call(&bound(), 2));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    // A grant that cannot be read could be any grant.
    std::fs::create_dir(place.file("grants")).unwrap();
    std::fs::write(place.file("grants/xxxxxxxx.json"), "[]").unwrap();
    denied(place.call(&bound(), 2));
    denied(place.call_in_ci(&bound(), 2));
    place.approvals().revoke("xxxxxxxx").unwrap();
    assert!(place.call(&bound(), 2).is_ok());
    // A file where the folder should be.
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "").unwrap();
    denied(place.call(&bound(), 3));
}

#[test]
fn a_grant_covers_what_it_says_and_no_more() {
    let place = Place::new();
    denied(place.call_in_ci(&bound(), 0));
    assert!(!place.file("approvals").exists(), "nobody is asked in CI");
    let id = place.pending(&bound()).id;
    let kept = Remember {
        uses: 3,
        any: vec!["count".into()],
        matching: vec![("target".into(), "staging/*".into())],
        ..Remember::default()
    };
    let grant = place.approvals().approve(&id, remember(kept), now(1)).unwrap().grant.unwrap();
    // Another run of the ruleset, another chain below the same tool, another session.
    let covered =
        Bound { rules_version: Digest::of(b"new"), chain_hash: Digest::of(b"new"), ..with("count", 99) };
    let approved = place.call_in_ci(&covered, 2).unwrap();
    assert_eq!(
        (approved.grant.as_deref(), approved.approval.as_str()),
        (Some(grant.id.as_str()), id.as_str())
    );
    let mut without = bound();
    without.params.remove("count");
    for other in [
        Bound { integrity: Digest::of(b"changed"), ..bound() },
        Bound { caller: "mcp:other".into(), ..bound() },
        Bound { project: Some("/q".into()), ..bound() },
        with("key", "other"),
        with("target", "production/eu"),
        with("target", "staging/eu/west"),
        with("target", "staging/.."),
        with("target", json!(["staging/eu"])),
        with("extra", true),
    ] {
        denied(place.call_in_ci(&other, 3));
    }
    assert!(place.call_in_ci(&without, 4).is_ok());
    // The call it was made from counts too, and then it is used up.
    assert!(place.call(&bound(), 5).is_ok());
    assert_eq!(place.call(&bound(), 6).unwrap_err().kind, ErrorKind::ApprovalRequired);
    denied(place.call_in_ci(&bound(), 6));
}

#[test]
fn a_grant_ends_and_cannot_be_made_by_hand() {
    let place = Place::new();
    let id = place.pending(&bound()).id;
    let days = Remember { expires: Duration::from_hours(24 * 7), ..Remember::default() };
    let grant = place.approvals().approve(&id, remember(days), now(1)).unwrap().grant.unwrap();
    assert_eq!(grant.uses, 100);
    let file = format!("grants/{}.json", grant.id);
    let whole = std::fs::read(place.file(&file)).unwrap();
    for (name, value) in [
        ("uses", json!(100_000)),
        ("expires_at", json!("2099-01-01T00:00:00Z")),
        ("integrity", json!(Digest::of(b"mine"))),
        ("predicate", json!({"target": "any", "count": "any", "key": "any"})),
    ] {
        place.edit(&file, |grant| grant[name] = value.clone());
        let mut mine = bound();
        if name == "integrity" {
            mine.integrity = Digest::of(b"mine");
        }
        denied(place.call_in_ci(&mine, 2));
        std::fs::write(place.file(&file), &whole).unwrap();
    }
    assert!(place.call_in_ci(&bound(), 2).is_ok());
    denied(place.call_in_ci(&bound(), 1 + 7 * 24 * 3600));
    denied(place.call_in_ci(&bound(), -10));
    place.approvals().revoke(grant.id.get(..5).unwrap()).unwrap();
    denied(place.call_in_ci(&bound(), 3));
    assert_eq!(place.approvals().revoke(&grant.id).unwrap_err().kind, ErrorKind::NotFound);

    let place = Place::new();
    let id = place.pending(&bound()).id;
    for (name, pattern) in [("target", "production/*"), ("key", "hid*"), ("target", "a["), ("nothing", "*")] {
        let bad = Remember { matching: vec![(name.into(), pattern.into())], ..Remember::default() };
        let told = place.approvals().approve(&id, remember(bad), now(1)).unwrap_err();
        assert_eq!(told.kind, ErrorKind::Usage, "{name}={pattern}: {}", told.message);
    }
    assert!(place.approvals().grants().unwrap().is_empty());
}

#[test]
fn one_answer_is_used_by_one_of_many() {
    let place = Place::new();
    let id = place.pending(&bound()).id;
    place.approvals().approve(&id, yes(), now(1)).unwrap();
    let race = || {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    let approvals = place.approvals();
                    scope.spawn(move || approvals.find(&bound(), now(2)).unwrap().is_some())
                })
                .collect();
            threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum::<usize>()
        })
    };
    assert_eq!(race(), 1);
    let id = place.pending(&bound()).id;
    let three = Remember { uses: 3, ..Remember::default() };
    place.approvals().approve(&id, remember(three), now(1)).unwrap();
    assert_eq!(race(), 3);
    // Many who ask at once ask one question, and one of many answers counts.
    let place = Place::new();
    let ids: std::collections::BTreeSet<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| place.pending(&bound()).id)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 1);
    let id = ids.first().unwrap();
    let answered = std::thread::scope(|scope| {
        let one = || place.approvals().approve(id, yes(), now(1)).is_ok();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum::<usize>()
    });
    assert_eq!(answered, 1);
}

/// Waits for an answer; what happens meanwhile happens when the wait is told of.
fn wait(
    place: &Place,
    cancel: &Cancel,
    meanwhile: impl Fn(&str) + Send + Sync + 'static,
    at: i64,
) -> Result<Approved, Box<Objection>> {
    let told = Arc::new(move |pending: &Pending| meanwhile(&pending.id));
    let is_told = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&is_told);
    let told = Arc::new(move |pending: &Pending| {
        told(pending);
        noted.store(true, Ordering::SeqCst);
    });
    let clock = move || now(if is_told.load(Ordering::SeqCst) { at } else { 0 });
    let mode = AskMode::Wait { cancel: cancel.clone(), told };
    block_on(place.approvals().decide(&bound(), &questions(), mode, &clock))
}

#[test]
fn waiting_ends_with_an_answer_by_time_or_from_outside() {
    let never = Cancel::default();
    let (place, there) = (Place::new(), |place: &Place| place.approvals());
    let approvals = there(&place);
    let approved = wait(&place, &never, move |id| drop(approvals.approve(id, yes(), now(4)).unwrap()), 5);
    assert_eq!(approved.unwrap().by, "cli:me");
    let place = Place::new();
    let approvals = there(&place);
    let rejected = wait(&place, &never, move |id| drop(approvals.reject(id, yes(), now(4)).unwrap()), 5);
    assert!(denied(rejected).contains("rejected"));
    assert!(denied(wait(&Place::new(), &never, |_| {}, 3600)).contains("timed out"));
    let cancel = Cancel::default();
    let fire = cancel.clone();
    assert!(denied(wait(&Place::new(), &cancel, move |_| fire.fire(), 5)).contains("cancelled"));
    let place = Place::new();
    let folder = place.file("approvals");
    let gone = move |id: &str| std::fs::remove_file(folder.join(format!("{id}.json"))).unwrap();
    assert!(denied(wait(&place, &never, gone, 5)).contains("gone"));
    // A yes that comes while somebody looks elsewhere is found at the next glance.
    let place = Place::new();
    let approvals = there(&place);
    let later = move |id: &str| {
        let (id, by_then) = (id.to_owned(), Duration::from_millis(20));
        let answer = approvals.approve(&id, remember(Remember::default()), now(4));
        std::thread::sleep(by_then);
        answer.unwrap();
    };
    assert!(wait(&place, &never, later, 5).unwrap().grant.is_some());
}

#[test]
fn a_question_of_an_agent_is_answered_with_one_of_its_options() {
    let place = Place::new();
    let asked = Escalation {
        project: None,
        session: "s".into(),
        caller: "mcp:agent".into(),
        question: "which way?".into(),
        options: vec!["left".into(), "right".into()],
    };
    let (first, state) = place.approvals().escalate(&asked, now(0)).unwrap();
    assert_eq!(state, ApprovalState::Pending);
    assert_eq!(place.approvals().escalate(&asked, now(1)).unwrap().0.id, first.id);
    let told = place.approvals().approve(&first.id, yes(), now(2)).unwrap_err();
    assert!(told.hint.unwrap().contains("`left`"));
    let with = |option: &str| Answer { option: Some(option.into()), ..yes() };
    assert!(place.approvals().approve(&first.id, with("up"), now(2)).is_err());
    assert!(
        place
            .approvals()
            .approve(&first.id, Answer { remember: Some(Remember::default()), ..with("left") }, now(2))
            .is_err()
    );
    place.approvals().approve(&first.id, with("left"), now(2)).unwrap();
    let (answered, state) = place.approvals().escalate(&asked, now(3)).unwrap();
    assert_eq!((state, answered.decided.unwrap().option.as_deref()), (ApprovalState::Approved, Some("left")));
    // It is no call, and no call can use it.
    assert_eq!(place.call(&bound(), 3).unwrap_err().kind, ErrorKind::ApprovalRequired);
}
