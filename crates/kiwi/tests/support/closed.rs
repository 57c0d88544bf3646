//! Faults that must close the gate, each for one tool: it is seen to run before, and not to run with the fault.

use kiwi_gate::{Answer, Call, Kernel, Next, Outcome, Remember, Request, Stage, StageFuture};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use super::kernel::{block_on, host, kernel_of, request};
use super::subject::{Subject, Type};

const FAULTY: &str = include_str!("faulty.py");
const ASKING: &str = "rule test_ask { guards { else -> ask \"may it?\" } effects { } }";

/// The faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    RulesUnreadable,
    RulesDeletedWhileRunning,
    RuleOverBudget,
    PermissionFileGarbage,
    AuditDiskFull,
    AuditSyncError,
    ClockJump,
    LauncherMissing,
    SandboxMissing,
    ApprovalStoreCorrupt,
    PanicInStage,
    CallbackHang,
    HelperStopped,
}

pub const ALL: [Fault; 13] = [
    Fault::RulesUnreadable,
    Fault::RulesDeletedWhileRunning,
    Fault::RuleOverBudget,
    Fault::PermissionFileGarbage,
    Fault::AuditDiskFull,
    Fault::AuditSyncError,
    Fault::ClockJump,
    Fault::LauncherMissing,
    Fault::SandboxMissing,
    Fault::ApprovalStoreCorrupt,
    Fault::PanicInStage,
    Fault::CallbackHang,
    Fault::HelperStopped,
];

/// What a fault must end a call with.
struct Expect {
    kind: &'static str,
    /// `reason.kind`, and for a policy its id.
    reason: Option<(&'static str, Option<&'static str>)>,
    /// Whether there can be a record of it.
    is_recorded: bool,
}

impl Fault {
    /// Whether the fault concerns this type at all: a request needs no launcher, a container brings its own walls.
    fn concerns(self, kind: Type) -> bool {
        match self {
            Self::LauncherMissing | Self::HelperStopped => kind != Type::Api,
            Self::SandboxMissing => !matches!(kind, Type::Api | Type::Container(_)),
            _ => true,
        }
    }

    fn expect(self, kind: Type) -> Expect {
        let denied =
            |reason, policy| Expect { kind: "denied", reason: Some((reason, policy)), is_recorded: true };
        match self {
            // What counts its calls finds the disk full first.
            Self::AuditDiskFull if kind == Type::Core => {
                Expect { is_recorded: false, ..denied("policy", Some("rate_limit")) }
            }
            // Its walls are what the launcher is missed for.
            Self::LauncherMissing | Self::HelperStopped if kind == Type::Core => {
                Expect { kind: "sandbox_unavailable", reason: None, is_recorded: true }
            }
            Self::RulesUnreadable | Self::RulesDeletedWhileRunning => denied("policy", Some("ruleset")),
            Self::RuleOverBudget => denied("budget", None),
            Self::PermissionFileGarbage => denied("policy", Some("permission")),
            Self::AuditDiskFull | Self::AuditSyncError => {
                Expect { is_recorded: false, ..denied("policy", Some("audit")) }
            }
            Self::ClockJump | Self::ApprovalStoreCorrupt => denied("policy", Some("approval")),
            Self::LauncherMissing | Self::PanicInStage => {
                Expect { kind: "internal", reason: None, is_recorded: true }
            }
            Self::SandboxMissing => Expect { kind: "sandbox_unavailable", reason: None, is_recorded: true },
            Self::CallbackHang => denied("rule_rejected", None),
            Self::HelperStopped => Expect { kind: "timeout", reason: None, is_recorded: true },
        }
    }
}

/// Holds one fault against one type of tool; `variables` are what its engine needs.
pub fn check(fault: Fault, kind: Type, variables: &[(&str, &str)]) {
    if !fault.concerns(kind) {
        return;
    }
    let subject = Subject::new(kind);
    let sound = call(&kernel_of(host(&subject.env, variables), &subject.env), subject_request(&subject));
    assert!(sound.error.is_none(), "{kind:?} does not even run: {:?}", sound.error);
    let before = subject.runs();
    assert!(before > 0, "{kind:?} leaves no mark");
    let records = subject.env.audit().len();
    let error = with(fault, &subject, variables);
    let what = format!("{fault:?} × {kind:?}: {error}");
    assert_eq!(subject.runs(), before, "it ran! {what}");
    let expect = fault.expect(kind);
    assert_eq!(error["kind"], expect.kind, "{what}");
    if let Some((reason, policy)) = expect.reason {
        assert_eq!(error["details"]["reason"]["kind"], reason, "{what}");
        assert_eq!(error["details"]["reason"]["policy_id"].as_str(), policy, "{what}");
    }
    let lines = subject.env.audit();
    if expect.is_recorded {
        assert!(lines.len() > records, "no record: {what}");
        assert_eq!(lines.last().unwrap()["result"]["kind"], expect.kind, "{what}");
    }
}

fn call(kernel: &Kernel, request: Request) -> Outcome {
    block_on(kernel.call(request))
}

fn subject_request(subject: &Subject) -> Request {
    request(subject.tool(), subject.params())
}

/// The call with the fault; what it ended with.
fn with(fault: Fault, subject: &Subject, variables: &[(&str, &str)]) -> Value {
    let env = &subject.env;
    let host = || host(env, variables);
    let in_process = |kernel: &Kernel| told(&call(kernel, subject_request(subject)));
    match fault {
        Fault::RulesUnreadable => {
            std::fs::create_dir(env.project().join(".ai/rules/more.kappa")).unwrap();
            typed(subject, variables, &[], &[])
        }
        Fault::RulesDeletedWhileRunning => {
            let kernel = kernel_of(host(), env);
            kernel.rules().active().unwrap();
            std::fs::remove_file(env.project().join(".ai/rules/test.kappa")).unwrap();
            in_process(&kernel)
        }
        Fault::RuleOverBudget => {
            let heavy = vec!["decay(1000000, 1, 300) >= 0"; 40].join(" and ");
            env.write(
                "rules/heavy.kappa",
                format!("rule heavy {{ guards {{ {heavy} -> admit }} effects {{ }} }}"),
            );
            typed(subject, variables, &[], &[])
        }
        Fault::PermissionFileGarbage => {
            std::fs::write(env.project().join("permissions.yaml"), b"tools: [\"*\"\n\xff").unwrap();
            typed(subject, variables, &[], &["--permissions", "permissions.yaml"])
        }
        Fault::AuditDiskFull => typed(subject, variables, &["full"], &[]),
        Fault::AuditSyncError => typed(subject, variables, &["no-sync"], &[]),
        Fault::ClockJump => {
            env.write("rules/test.kappa", ASKING);
            let kernel = kernel_of(host(), env);
            approve_long_ago(&kernel, subject);
            let mut request = subject_request(subject);
            // Nobody watches: what is not approved any more is denied.
            request.narrower = Some("ci".into());
            told(&call(&kernel, request))
        }
        Fault::LauncherMissing => {
            let mut host = host();
            host.launcher = Some(env.tmp().join("nothing-here"));
            in_process(&kernel_of(host, env))
        }
        Fault::SandboxMissing => typed(subject, variables, &["no-walls"], &["--isolation", "sandboxed"]),
        Fault::ApprovalStoreCorrupt => {
            env.write("rules/test.kappa", ASKING);
            // Once properly, so that the store is there; then garbage beside it.
            let pending = told(&call(&kernel_of(host(), env), subject_request(subject)));
            assert_eq!(pending["kind"], "approval_required", "{pending}");
            let garbage = env.write_user("approvals/zzzzzzzz.json", "{");
            std::fs::set_permissions(garbage, std::fs::Permissions::from_mode(0o600)).unwrap();
            in_process(&kernel_of(host(), env))
        }
        Fault::PanicInStage => in_process(&kernel_of(host(), env).guarded_by(Box::new(Panics))),
        Fault::CallbackHang => {
            env.write("rules/no.kappa", "rule test_no { guards { not false -> reject \"no\" } effects { } }");
            let kernel = kernel_of(host(), env);
            kernel.on_deny(Arc::new(|_| std::thread::sleep(Duration::from_hours(1))));
            in_process(&kernel)
        }
        Fault::HelperStopped => {
            env.write_user("config/kiwi.toml", "[limits]\ntimeout = 2\n");
            let mut host = host();
            let stopping = env.tmp().join("stopping");
            std::fs::write(
                &stopping,
                // The first process of a namespace cannot stop itself.
                format!(
                    "#!/bin/sh\nkill -STOP $$\nwhile [ $$ = 1 ]; do sleep 1; done\nexec {} \"$@\"\n",
                    host.kiwi.display()
                ),
            )
            .unwrap();
            std::fs::set_permissions(&stopping, std::fs::Permissions::from_mode(0o755)).unwrap();
            host.launcher = Some(stopping);
            in_process(&kernel_of(host, env))
        }
    }
}

struct Panics;

impl Stage for Panics {
    fn run<'a>(&'a self, _: Call<'a>, _: Next<'a>) -> StageFuture<'a> {
        Box::pin(async { panic!("a stage that misbehaves") })
    }
}

/// The call as it is typed, in a world where `faults` do not work.
fn typed(subject: &Subject, variables: &[(&str, &str)], faults: &[&str], options: &[&str]) -> Value {
    let env = &subject.env;
    let params = subject.params().to_string();
    let words = [&["run", subject.tool(), "--params", &params, "--json"], options].concat();
    let plain = env.command(&words);
    let mut command = match faults {
        [] => plain,
        faults => {
            let script = env.tmp().join("faulty.py");
            std::fs::write(&script, FAULTY).unwrap();
            let mut command = Command::new("python3");
            command.arg(script).args(faults).arg(plain.get_program()).args(plain.get_args());
            command.current_dir(env.project()).env_clear();
            let variables = plain.get_envs().filter_map(|(name, value)| Some((name, value?)));
            command.envs(variables).stdin(std::process::Stdio::null());
            command
        }
    };
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(output.status.code() == Some(0), said["error"].is_null(), "{said}");
    said["error"].clone()
}

/// A yes to be remembered for a month, given while the clock said 2020.
fn approve_long_ago(kernel: &Kernel, subject: &Subject) {
    let pending = told(&call(kernel, subject_request(subject)));
    assert_eq!(pending["kind"], "approval_required", "{pending}");
    let remember = Some(Remember::default());
    let answer = Answer { by: "tester".into(), reason: None, option: None, remember };
    let then = "2020-01-01T00:00:00Z".parse().unwrap();
    kernel.approvals().unwrap().approve(pending["details"]["id"].as_str().unwrap(), answer, then).unwrap();
}

fn told(outcome: &Outcome) -> Value {
    serde_json::to_value(&outcome.error).unwrap()
}
