use kiwi_exec::{Stream, Watch};
use kiwi_gate::{Cancel, Outcome, Request};
use kiwi_model::Fault;
use kiwi_model::lockfile::LockMode;
use serde_json::Value;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::call::CallArgs;
use crate::context::Context;
use crate::printer;

/// Run a tool: resolve its chain, verify every link, check the parameters, record, run, record.
///
/// Standard output holds what the tool printed, standard error everything else.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags are flags")]
pub struct Args {
    #[command(flatten)]
    call: CallArgs,
    /// Plan, check and show what would run, without running it.
    #[arg(long)]
    dry_run: bool,
    /// Refuse to run anything but what the tool's lockfile says.
    #[arg(long, visible_alias = "strict", overrides_with = "locked", conflicts_with = "lock")]
    locked: bool,
    /// What to do about the tool's lockfile: off, warn or strict. The configuration may demand more.
    #[arg(long, value_name = "MODE")]
    lock: Option<LockMode>,
    /// Wait for a person's answer where one is asked for, instead of ending with exit code 4.
    #[arg(long)]
    wait: bool,
    /// Print one JSON object about the whole call.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// The tool is one of a server's.
    pub fn of_server(&mut self, server: &str) {
        self.call.of_server(server);
    }

    /// Makes the call.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let mut request = self.call.request(context)?;
        if !self.dry_run {
            context.kernel.start_ahead(&request);
        }
        request.lock = if self.locked { Some(LockMode::Strict) } else { self.lock };
        if self.wait {
            request.on_ask = Some(Arc::new(|pending| {
                printer::note(format!("waiting for `kiwi approve {0}` or `kiwi reject {0}`", pending.id));
            }));
        }
        request.dry_run = self.dry_run;
        let live = Arc::new(Live::default());
        if !self.json {
            request.watch = Arc::clone(&live) as Arc<dyn Watch>;
        }
        let (outcome, interrupted) = Context::wait(call(context, request))?;
        self.show(&outcome, &live);
        Ok(ExitCode::from(if interrupted { 130 } else { outcome.exit_code() }))
    }

    fn show(&self, outcome: &Outcome, live: &Live) {
        if self.json {
            return printer::json(outcome);
        }
        for warning in &outcome.warnings {
            printer::warning(warning);
        }
        match &outcome.result {
            Value::String(text) if !live.printed() => live.output(Stream::Stdout, text.as_bytes()),
            Value::Null => {}
            // Not streamed: an HTTP answer, or what a dry run tells.
            value if !live.printed() => printer::json(value),
            _ => {}
        }
        live.finish_line();
        if let Some(fault) = &outcome.error {
            // What a service said about it.
            match fault.details.get("body") {
                Some(Value::String(text)) => printer::note(excerpt(text.trim_end())),
                Some(Value::Null) | None => {}
                Some(body) => printer::note(excerpt(&format!("{body:#}"))),
            }
            printer::fault(fault);
        }
    }
}

/// How many characters that is.
const MOST_OF_AN_ANSWER: usize = 2000;

/// As much of an answer as a person reads; `--json` has all of it.
fn excerpt(text: &str) -> String {
    match text.char_indices().nth(MOST_OF_AN_ANSWER) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Makes the call; Ctrl-C ends the tool and everything it started before Kiwi itself ends.
async fn call(context: &Context, request: Request) -> (Outcome, bool) {
    let cancel = request.cancel.clone();
    let interrupted = AtomicBool::new(false);
    // Before anything is begun that would have to be ended.
    let signals = signals();
    let outcome = tokio::select! {
        outcome = context.kernel.call(request) => outcome,
        () = on_signal(signals, &cancel, &interrupted) => std::future::pending().await,
    };
    (outcome, interrupted.load(Ordering::Relaxed))
}

/// The signals that end a call in an orderly way; from here on they end nothing by themselves.
fn signals() -> Vec<Signal> {
    [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
        .into_iter()
        .filter_map(|kind| signal(kind).ok())
        .collect()
}

async fn on_signal(mut signals: Vec<Signal>, cancel: &Cancel, interrupted: &AtomicBool) {
    let next = std::future::poll_fn(|context| {
        let fired = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
        if fired { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    });
    next.await;
    interrupted.store(true, Ordering::Relaxed);
    cancel.fire();
    // The call itself ends the select once the tool is gone.
    std::future::pending::<()>().await;
}

/// Passes a tool's output on while it runs.
#[derive(Default)]
struct Live {
    printed: AtomicBool,
    last: AtomicU8,
}

impl Live {
    fn printed(&self) -> bool {
        self.printed.load(Ordering::Relaxed)
    }

    /// A result that does not end its line would leave the prompt behind it.
    fn finish_line(&self) {
        if self.printed() && self.last.load(Ordering::Relaxed) != b'\n' {
            printer::stream(true, b"\n");
        }
    }
}

impl Watch for Live {
    fn output(&self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Stdout
            && let Some(last) = bytes.last()
        {
            self.printed.store(true, Ordering::Relaxed);
            self.last.store(*last, Ordering::Relaxed);
        }
        printer::stream(stream == Stream::Stdout, bytes);
    }
}
