//! The first stage of the gate, as a face sees it: what is admitted happens once, what is denied leaves one record, tells
//! one callback, and happens not at all.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and drives the real program"
)]

mod support;

use kiwi_gate::{Call, Kernel, Next, Session, Stage, ToolAdmissionDenied};
use kiwi_model::{ErrorKind, Fault};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::TestEnvironment;
use support::kernel::{block_on, call, kernel, refusal, request};

/// A tool that leaves a file behind, and fails when it is told to.
const MARK: &str = "#!/usr/bin/env bash\n# kiwi: version: \"1.0.0\"\n# kiwi: parameters:\n# kiwi:   type: object\n# kiwi:   properties:\n# kiwi:     name: {type: string}\n# kiwi:     fail: {type: boolean, default: false}\ncat > input.json\necho run >> marks\nif grep -q '\"fail\":true' input.json || grep -q '\"fail\": true' input.json; then echo broken >&2; exit 7; fi\necho '{\"made\": 1}'\n";

fn place(rules: &str) -> TestEnvironment {
    let env = TestEnvironment::new();
    env.write("tools/mark.sh", MARK);
    env.write("rules/test.kappa", rules);
    env.write_user("config/kiwi.toml", "[rules]\ndefault = false\n");
    env
}

fn marks(env: &TestEnvironment) -> usize {
    std::fs::read_to_string(env.project().join("marks")).unwrap_or_default().lines().count()
}

const ADMIT: &str = "rule r { guards { else -> admit } effects { } }";
const REJECT: &str =
    "rule r { guards { $tool == \"mark\" -> reject \"not today\" else -> admit } effects { } }";

/// Counts how often the stages behind admission are reached.
struct Behind(Arc<AtomicUsize>);

impl Stage for Behind {
    fn run<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> kiwi_gate::StageFuture<'a> {
        self.0.fetch_add(1, Ordering::SeqCst);
        next.run(call)
    }
}

fn watched(env: &TestEnvironment) -> (Kernel, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    (kernel(env).guarded_by(Box::new(Behind(Arc::clone(&count)))), count)
}

#[test]
fn what_is_admitted_goes_on_exactly_once_and_its_result_comes_back() {
    let env = place(ADMIT);
    let (kernel, behind) = watched(&env);
    let outcome = call(&kernel, request("mark", json!({})));
    assert_eq!(outcome.result, json!({"made": 1}), "{outcome:?}");
    assert_eq!((behind.load(Ordering::SeqCst), marks(&env)), (1, 1));
}

#[test]
fn what_is_admitted_and_fails_comes_back_as_its_own_failure() {
    let env = place(ADMIT);
    let (kernel, behind) = watched(&env);
    let outcome = call(&kernel, request("mark", json!({"fail": true})));
    let fault = outcome.error.unwrap();
    assert_eq!((fault.kind, &fault.details["exit_code"]), (ErrorKind::ToolFailed, &json!(7)));
    assert_eq!((behind.load(Ordering::SeqCst), marks(&env)), (1, 1));
}

#[test]
fn what_is_denied_leaves_one_record_tells_one_callback_and_goes_no_further() {
    let env = place(REJECT);
    let (kernel, behind) = watched(&env);
    let told: Arc<Mutex<Vec<ToolAdmissionDenied>>> = Arc::default();
    let recorded_before_told = Arc::new(AtomicUsize::new(0));
    {
        let (told, recorded) = (Arc::clone(&told), Arc::clone(&recorded_before_told));
        let logs = env.project().join(".ai/logs/audit");
        kernel.on_deny(Arc::new(move |denied| {
            recorded.fetch_add(usize::from(logs.exists()), Ordering::SeqCst);
            told.lock().unwrap().push(denied.clone());
        }));
    }
    let outcome = call(&kernel, request("mark", json!({})));
    let (kind, reason) = refusal(&outcome);
    assert_eq!(kind, "denied");
    assert_eq!(reason, json!({"kind": "rule_rejected", "rule": "r", "rule_reason": "not today"}));
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 1);
    assert_eq!(
        (told[0].caller.as_str(), told[0].tool.as_str(), told[0].http_status),
        ("cli:tester", "mark", 403)
    );
    assert_eq!(recorded_before_told.load(Ordering::SeqCst), 1);
    assert_eq!((behind.load(Ordering::SeqCst), marks(&env)), (0, 0));
    let records = env.audit();
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!((&records[0]["event"], &records[0]["decision"]["answer"]), (&json!("denied"), &json!("deny")));
    assert_eq!(records[0]["decision"]["reasons"][0]["rule"], "r");
}

#[test]
fn the_callback_is_not_told_of_what_is_admitted() {
    let env = place(ADMIT);
    let kernel = kernel(&env);
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    kernel.on_deny(Arc::new(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    }));
    assert!(call(&kernel, request("mark", json!({}))).error.is_none());
    assert_eq!(told.load(Ordering::SeqCst), 0);
}

#[test]
fn a_callback_that_panics_or_hangs_undoes_neither_the_denial_nor_its_record() {
    for misbehaviour in
        [|| panic!("a callback that misbehaves"), || std::thread::sleep(Duration::from_hours(1))]
    {
        let env = place(REJECT);
        let kernel = kernel(&env);
        kernel.on_deny(Arc::new(move |_| misbehaviour()));
        let begun = Instant::now();
        let outcome = call(&kernel, request("mark", json!({})));
        assert_eq!(refusal(&outcome).0, "denied");
        assert!(begun.elapsed() < Duration::from_mins(1));
        assert_eq!((env.audit().len(), marks(&env)), (1, 0));
    }
}

#[test]
fn the_version_of_the_rules_is_attested_defaulted_or_mismatched() {
    let env = place(ADMIT);
    let kernel = kernel(&env);
    let version = kernel.rules().active().unwrap().version_hash().to_string();
    let mut attested = request("mark", json!({}));
    attested.rules_version = Some(version.clone());
    assert!(call(&kernel, attested).error.is_none());
    assert!(call(&kernel, request("mark", json!({}))).error.is_none());
    assert_eq!(marks(&env), 2);
    let mut mistaken = request("mark", json!({}));
    let other = format!("sha256:{}", "0".repeat(64));
    mistaken.rules_version = Some(other.clone());
    let (_, reason) = refusal(&call(&kernel, mistaken));
    assert_eq!(reason, json!({"kind": "rule_version_mismatch", "expected": other, "actual": version}));
    assert_eq!(marks(&env), 2);
    let enter = env.audit().into_iter().find(|line| line["event"] == "enter").unwrap();
    assert_eq!(enter["rules_version"], json!(version));
}

/// Every kind of denial, by a ruleset that brings it about.
#[test]
fn every_kind_of_denial_is_reached_through_the_gate() {
    let heavy = (0..40).map(|_| "decay(1000000, 1, 300) >= 0").collect::<Vec<_>>().join(" and ");
    let cases: Vec<(&str, String)> = vec![
        ("no_rule_matched", "rule r { guards { $tool == \"other\" -> admit } effects { } }".into()),
        ("budget", format!("rule r {{ guards {{ {heavy} -> admit }} effects {{ }} }}")),
        ("effect_invariant_violated", "rule r { guards { else -> admit } effects { apply(\"calls\", -1) } }".into()),
        ("axiom_violation", "rule r { guards { else -> admit } effects { set(\"audit.head\", 1) } }".into()),
        ("policy", "rule r { guards {".into()),
        (
            "ambiguous_ruleset",
            "rule a { guards { $tool == \"mark\" -> admit } effects { } } rule b { guards { $tool == \"mark\" -> reject \"x\" } effects { } }".into(),
        ),
        ("rule_rejected", REJECT.into()),
    ];
    for (kind, rules) in cases {
        let env = place(&rules);
        let kernel = kernel(&env);
        let (error, reason) = refusal(&call(&kernel, request("mark", json!({}))));
        assert_eq!((error.as_str(), &reason["kind"]), ("denied", &json!(kind)), "{reason}");
        assert_eq!(marks(&env), 0);
        let records = env.audit();
        assert_eq!((records.len(), &records[0]["event"]), (1, &json!("denied")), "{kind}");
        assert_eq!(records[0]["decision"]["reasons"][0]["kind"], kind);
    }
    // The eighth needs no ruleset of its own: see the test about versions.
}

#[test]
fn a_stage_that_panics_has_refused() {
    struct Panics;
    impl Stage for Panics {
        fn run<'a>(&'a self, _: Call<'a>, _: Next<'a>) -> kiwi_gate::StageFuture<'a> {
            Box::pin(async { panic!("a stage that misbehaves") })
        }
    }
    let env = place(ADMIT);
    let kernel = kernel(&env).guarded_by(Box::new(Panics));
    let outcome = call(&kernel, request("mark", json!({})));
    assert_eq!(outcome.error.unwrap().kind, ErrorKind::Internal);
    assert_eq!(marks(&env), 0);
    let records = env.audit();
    assert_eq!((records.len(), &records[0]["result"]["kind"]), (1, &json!("internal")), "{records:?}");
}

#[test]
fn decisions_are_numbered_whatever_the_clock_says() {
    let env = place("rule r { guards { $args.name == \"no\" -> reject \"x\" else -> admit } effects { } }");
    let kernel = kernel(&env);
    let session = Session::start();
    for name in ["no", "yes", "no", "also"] {
        let mut request = request("mark", json!({"name": name}));
        request.session = session;
        call(&kernel, request);
    }
    let mut lines = env.audit();
    lines.sort_by_key(|line| line["seq"].as_u64());
    let numbers: Vec<u64> = lines
        .iter()
        .filter(|line| line["event"] != "exit")
        .map(|line| line["decision"]["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
}

#[test]
fn what_rules_remember_is_changed_by_what_was_admitted_and_by_nothing_else() {
    let rules = "rule r { guards { has($state.calls) and $state.calls >= 2 -> reject \"twice is enough\" $args.name == \"no\" -> reject \"no\" else -> admit } effects { apply(\"calls\", 1) emit(\"called\", $tool) } }";
    let env = place(rules);
    let kernel = kernel(&env);
    let kinds: Vec<Option<Value>> = ["a", "no", "b", "c"]
        .into_iter()
        .map(|name| call(&kernel, request("mark", json!({"name": name}))))
        .map(|outcome| outcome.error.map(|fault| fault.details["reason"]["rule_reason"].clone()))
        .collect();
    assert_eq!(kinds, [None, Some(json!("no")), None, Some(json!("twice is enough"))]);
    let entered: Vec<Value> = env.audit().into_iter().filter(|line| line["event"] == "enter").collect();
    assert_eq!(entered[1]["decision"]["judged"]["state"], json!({"calls": 1}));
    assert_eq!(entered[1]["decision"]["events"][0]["name"], "called");
}

#[test]
fn rules_that_go_while_kiwi_runs_take_no_rejection_with_them() {
    let env = place(REJECT);
    env.write("rules/admit.kappa", "rule all { guards { true -> admit } effects { } }");
    let kernel = kernel(&env);
    assert_eq!(refusal(&call(&kernel, request("mark", json!({})))).1["kind"], "rule_rejected");
    std::fs::remove_file(env.project().join(".ai/rules/test.kappa")).unwrap();
    let (_, reason) = refusal(&call(&kernel, request("mark", json!({}))));
    assert_eq!((&reason["kind"], &reason["policy_id"]), (&json!("policy"), &json!("ruleset")));
    // An edit is an edit: it comes into force at once.
    env.write("rules/test.kappa", "rule r { guards { $tool == \"else\" -> reject \"no\" } effects { } }");
    assert!(call(&kernel, request("mark", json!({}))).error.is_none());
    env.write("rules/test.kappa", "rule r { guards { $tool == \"mark\" -> reject \"no\" } effects { } }");
    assert_eq!(refusal(&call(&kernel, request("mark", json!({})))).1["kind"], "rule_rejected");
    assert_eq!(marks(&env), 1);
}

#[test]
fn an_exclusive_tool_runs_one_call_at_a_time_between_kernels_too() {
    let env = place(ADMIT);
    let tool = "#!/usr/bin/env bash\n# kiwi: version: \"1.0.0\"\n# kiwi: exclusive: true\ncat >/dev/null\nif mkdir busy 2>/dev/null; then sleep 0.05; rmdir busy; else echo overlap; exit 1; fi\n";
    env.write("tools/alone.sh", tool);
    let kernels = [kernel(&env), kernel(&env)];
    let failures: Vec<Fault> = block_on(async {
        let call = |number: usize| kernels[number % 2].call(request("alone", json!({})));
        let (a, b, c, d) = tokio::join!(call(0), call(1), call(2), call(3));
        [a, b, c, d].into_iter().filter_map(|outcome| outcome.error).collect()
    });
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn a_session_in_circles_is_told_and_then_stopped() {
    let env = place(ADMIT);
    let kernel = kernel(&env);
    let session = Session::start();
    let outcomes: Vec<_> = (0..4)
        .map(|_| {
            let mut request = request("mark", json!({"name": "again"}));
            request.session = session;
            call(&kernel, request)
        })
        .collect();
    assert!(outcomes[..2].iter().all(|outcome| outcome.error.is_none() && outcome.loop_notice.is_none()));
    assert!(outcomes[2].error.is_none());
    assert!(outcomes[2].loop_notice.as_ref().unwrap()["suggestion"].as_str().unwrap().contains("stuck"));
    assert_eq!(refusal(&outcomes[3]).0, "loop_detected");
    assert_eq!(marks(&env), 3);
}

#[test]
fn a_session_has_its_budget_and_a_caller_its_rate() {
    let env = place(ADMIT);
    env.write("config/kiwi.toml", "[budget]\ncalls = 2\n[rates.mark]\nminute = 3\n");
    let kernel = kernel(&env);
    let session = Session::start();
    let kinds: Vec<Option<ErrorKind>> = (0..3)
        .map(|number| {
            let mut request = request("mark", json!({"name": format!("call {number}")}));
            request.session = session;
            call(&kernel, request).error.map(|fault| fault.kind)
        })
        .collect();
    assert_eq!(kinds, [None, None, Some(ErrorKind::Denied)]);
    // The minute is counted over sessions; what was denied used nothing up.
    assert!(call(&kernel, request("mark", json!({}))).error.is_none());
    let fault = call(&kernel, request("mark", json!({}))).error.unwrap();
    assert_eq!(fault.kind, ErrorKind::RateLimited, "{fault:?}");
    assert!(fault.details["retry_after_ms"].as_u64().unwrap() > 0);
    assert_eq!(marks(&env), 3);
}
