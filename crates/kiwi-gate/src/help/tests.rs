use super::*;
use kiwi_space::Locations;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("project/.ai")).unwrap();
        Self { folder }
    }

    fn spaces(&self) -> Spaces {
        let (project, user) = (self.folder.path().join("project"), self.folder.path().join("home"));
        Spaces::open(Locations { project: None, cwd: project, user: Some(user) }).unwrap()
    }
}

fn now(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn signal(spaces: &Spaces, session: Session, params: &Value, at: i64) -> Result<Value, Fault> {
    let help = Help::new(spaces, ApprovalConfig::default()).unwrap();
    help.signal(&HelpRequest::parse(params)?, session, &Caller::cli("agent"), now(at))
}

#[test]
fn guidance_is_there_for_every_topic_and_near_misses_are_named() {
    let place = Place::new();
    let spaces = place.spaces();
    let session = Session::start();
    let list = signal(&spaces, session, &json!({"action": "guidance"}), 0).unwrap();
    let topics: Vec<&str> = list["topics"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for topic in [
        "getting_started",
        "tools",
        "chains",
        "lockfiles",
        "isolation",
        "permissions",
        "rules",
        "approvals",
        "audit",
        "stuck",
    ] {
        assert!(topics.contains(&topic), "{topic}");
        let answer = signal(&spaces, session, &json!({"action": "guidance", "topic": topic}), 1).unwrap();
        let lines = answer["text"].as_str().unwrap().lines().count();
        assert!((15..=40).contains(&lines), "{topic} has {lines} lines");
    }
    assert!(signal(&spaces, session, &json!({"action": "guidance", "topic": "Getting started"}), 1).is_ok());
    let fault = signal(&spaces, session, &json!({"action": "guidance", "topic": "lockfile"}), 2).unwrap_err();
    assert_eq!((fault.kind, &fault.details["nearest"][0]), (ErrorKind::NotFound, &json!("lockfiles")));
    assert_eq!(fault.details["topics"].as_array().unwrap().len(), topics.len());
    let climbing = signal(&spaces, session, &json!({"action": "guidance", "topic": "../rules/default"}), 2);
    assert_eq!(climbing.unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn a_session_that_is_stuck_is_queued_past_three_attempts_and_answered() {
    let place = Place::new();
    let spaces = place.spaces();
    let session = Session::start();
    let stuck = |attempts: Value, at| {
        let params = json!({"action": "stuck", "reason": "it will not build", "attempts": attempts, "context": {"tool": "make"}});
        signal(&spaces, session, &params, at).unwrap()
    };
    let first = stuck(json!(3), 0);
    assert_eq!(
        (&first["status"], &first["action"]),
        (&json!("stuck_acknowledged"), &json!("retry_suggested"))
    );
    assert_eq!(first["session_id"], session.to_string());
    let help = Help::new(&spaces, ApprovalConfig::default()).unwrap();
    assert!(help.stuck().unwrap().is_empty());
    assert_eq!(stuck(json!(4), 1)["action"], "awaiting_intervention");
    assert_eq!(stuck(json!(["a", "b", "c", "d"]), 2)["action"], "awaiting_intervention");
    // The fourth signal counts as the fourth attempt, whatever it says.
    let last = stuck(json!(0), 3);
    assert_eq!(last["action"], "awaiting_intervention");
    let waiting = help.stuck().unwrap();
    assert_eq!(waiting.len(), 1, "one line for each session");
    assert_eq!(
        (&waiting[0].id, waiting[0].signal.body["context"]["tool"].as_str()),
        (&last["id"].as_str().unwrap().to_owned(), Some("make"))
    );
    help.answer(
        waiting[0].id.get(..5).unwrap(),
        Verdict::Approved,
        "cli:me",
        Some("install gcc first"),
        now(4),
    )
    .unwrap();
    assert!(help.stuck().unwrap().is_empty());
    assert_eq!(
        help.answer(&waiting[0].id, Verdict::Approved, "x", None, now(5)).unwrap_err().kind,
        ErrorKind::NotFound
    );
    assert_eq!(stuck(json!(0), 6)["advice"]["reason"], "install gcc first");

    let detail = help.session(session.to_string().get(..20).unwrap()).unwrap();
    assert_eq!((detail.summary.signals, detail.signal_list.len()), (5, 6));
    assert_eq!(detail.summary.caller.as_deref(), Some("cli:agent"));
}

#[test]
fn questions_and_checkpoints_have_names() {
    let place = Place::new();
    let spaces = place.spaces();
    let session = Session::start();
    let ask =
        json!({"action": "escalate", "question": "delete the old data?", "options": ["yes", "archive"]});
    let asked = signal(&spaces, session, &ask, 0).unwrap();
    let approvals = Approvals::open(&spaces, ApprovalConfig::default()).unwrap();
    let id = asked["id"].as_str().unwrap();
    assert_eq!(approvals.all().unwrap()[0].id, id);
    let answer = crate::approvals::Answer {
        by: "cli:me".into(),
        reason: Some("keep it".into()),
        option: Some("archive".into()),
        remember: None,
    };
    approvals.approve(id, answer, now(1)).unwrap();
    let answered = signal(&spaces, session, &ask, 2).unwrap();
    assert_eq!(
        (&answered["status"], &answered["answer"]["option"], &answered["answer"]["reason"]),
        (&json!("answered"), &json!("archive"), &json!("keep it"))
    );
    let kept =
        signal(&spaces, session, &json!({"action": "checkpoint", "reason": "before the move"}), 3).unwrap();
    let help = Help::new(&spaces, ApprovalConfig::default()).unwrap();
    let detail = help.session(&session.to_string()).unwrap();
    let last = detail.signal_list.last().unwrap();
    assert_eq!((last.signal.as_str(), last.id.as_deref()), ("checkpoint", kept["checkpoint_id"].as_str()));
}

#[test]
fn what_makes_no_sense_is_refused_or_shown() {
    let place = Place::new();
    let spaces = place.spaces();
    let session = Session::start();
    for params in [
        json!({}),
        json!({"action": "dance"}),
        json!({"action": "stuck"}),
        json!({"action": "stuck", "reason": "  "}),
        json!({"action": "stuck", "reason": "x", "session_id": "../../etc/passwd"}),
        json!({"action": "escalate", "question": ""}),
        json!({"action": "escalate", "question": "x", "more": 1}),
        json!({"action": "checkpoint", "reason": "x".repeat(70_000)}),
    ] {
        assert_eq!(
            signal(&spaces, session, &params, 0).unwrap_err().kind,
            ErrorKind::InvalidParams,
            "{params}"
        );
    }
    // Half a line of a crash spoils none but itself.
    signal(&spaces, session, &json!({"action": "checkpoint"}), 0).unwrap();
    let file = place.folder.path().join(format!("project/.ai/sessions/{session}.jsonl"));
    let mut text = std::fs::read_to_string(&file).unwrap();
    text.push_str("{\"at\": \"20");
    std::fs::write(&file, text).unwrap();
    signal(&spaces, session, &json!({"action": "checkpoint"}), 1).unwrap();
    let help = Help::new(&spaces, ApprovalConfig::default()).unwrap();
    let summary = help.session(&session.to_string()).unwrap().summary;
    assert_eq!((summary.signals, summary.unreadable), (2, 1));
    assert_eq!(help.unreadable().unwrap().len(), 1);
    // What cannot be recorded is not answered.
    let folder = place.folder.path().join("project/.ai/sessions");
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "").unwrap();
    assert!(signal(&spaces, session, &json!({"action": "checkpoint"}), 2).is_err());
}
