//! The kernel in this process, over a hermetic place: for what a face sees, not what is typed.

use kiwi_gate::{Arguments, Caller, Host, Kernel, Outcome, Request, Session};
use kiwi_model::ToolRef;
use kiwi_space::{Locations, Spaces};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::TestEnvironment;

/// A kernel as a server would have it.
pub fn kernel(env: &TestEnvironment) -> Kernel {
    kernel_of(host(env, &[]), env)
}

/// What a kernel knows about the machine, with some more variables in its environment.
pub fn host(env: &TestEnvironment, variables: &[(&str, &str)]) -> Host {
    let text = |path: std::path::PathBuf| path.display().to_string();
    let mut environment = BTreeMap::from([
        ("PATH".to_owned(), std::env::var("PATH").unwrap()),
        ("HOME".to_owned(), text(env.home())),
        ("TMPDIR".to_owned(), text(env.tmp())),
    ]);
    environment.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Host {
        environment,
        kiwi: env!("CARGO_BIN_EXE_kiwi").into(),
        launcher: None,
        cwd: env.project(),
        scratch: env.tmp(),
        has_terminal: false,
        authorize: None,
    }
}

/// A kernel on such a machine.
pub fn kernel_of(host: Host, env: &TestEnvironment) -> Kernel {
    let locations = Locations { project: None, cwd: env.project(), user: Some(env.home()) };
    Kernel::new(Arc::new(Spaces::open(locations).unwrap()), host).unwrap()
}

/// A plain call by a person.
pub fn request(tool: &str, params: Value) -> Request {
    let Value::Object(params) = params else { panic!("parameters are an object") };
    let tool = ToolRef::parse(tool).unwrap();
    Request::new(tool, Arguments::from(params), Caller::cli("tester"), Session::start())
}

/// Makes calls on a runtime of this thread.
pub fn call(kernel: &Kernel, request: Request) -> Outcome {
    block_on(kernel.call(request))
}

/// Waits.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// The kind of failure, and its typed reason where it is a denial.
pub fn refusal(outcome: &Outcome) -> (String, Value) {
    let fault = outcome.error.as_ref().unwrap_or_else(|| panic!("it was not refused: {outcome:?}"));
    (fault.kind.to_string(), fault.details.get("reason").cloned().unwrap_or(Value::Null))
}
