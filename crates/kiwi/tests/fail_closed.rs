//! Whatever breaks, the call does not happen: every fault against every type of tool, each with a mark that only a run
//! leaves. Containers are in `container.rs`, where there are engines.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and drives the real program"
)]

mod support;

use support::closed::{ALL, Fault, check};
use support::subject::ON_HOST;

/// All types at once: some faults are only known by waiting.
fn on_host(fault: Fault) {
    std::thread::scope(|scope| {
        for kind in ON_HOST {
            scope.spawn(move || check(fault, kind, &[]));
        }
    });
}

macro_rules! faults {
    ($($name:ident: $fault:ident,)*) => {
        $(#[test]
        fn $name() {
            on_host(Fault::$fault);
        })*

        /// A fault that is added to the list must be tested.
        #[test]
        fn every_fault_has_its_test() {
            assert_eq!([$(Fault::$fault),*], ALL);
        }
    };
}

faults! {
    rules_unreadable: RulesUnreadable,
    rules_deleted_while_running: RulesDeletedWhileRunning,
    rule_over_budget: RuleOverBudget,
    permission_file_garbage: PermissionFileGarbage,
    audit_disk_full: AuditDiskFull,
    audit_sync_error: AuditSyncError,
    clock_jump: ClockJump,
    launcher_missing: LauncherMissing,
    sandbox_missing: SandboxMissing,
    approval_store_corrupt: ApprovalStoreCorrupt,
    panic_inside_a_stage: PanicInStage,
    callback_hang: CallbackHang,
    helper_stopped: HelperStopped,
}
