//! Launchers that are there before anybody asks for them.
//!
//! Building walls takes longer than starting what is put behind them, and most of it is the same every time; so is loading
//! a launcher. So a Kiwi that stays keeps spares: launchers that have built a sandbox, or are to build none, and wait for
//! their orders. A spare serves once, and the next one is made when nothing is being started. Whoever finds none, or none
//! that comes to the same as starting anew, starts anew.
//!
//! There is at most one without walls, and one for each kind of sandbox. Of Kiwi's own walls a spare has what every tool
//! gets, and what one tool has beyond that is added when its order comes. `bwrap` takes everything when it starts: there a
//! spare has the whole view of one tool, and is made only once the same view was asked for twice.

mod keeper;
mod one;
mod surroundings;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::launcher::Door;
use crate::process::Launcher;
use crate::sandbox::{Builder, Sandbox, Shown};
use kiwi_launcher::wire::Launch;

pub use one::Spare;

/// After so many that could not be made no more are tried: what is asked for works without.
const MOST_FAILURES: u32 = 3;

/// The spares of one launcher and its clones. Dropping the last clone ends them.
#[derive(Debug, Clone, Default)]
pub struct Spares(Arc<Owner>);

/// Whoever starts processes; the thread that makes spares is none, so that it can tell when there is nobody left.
#[derive(Debug, Default)]
struct Owner(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_on: bool,
    /// Nobody can ask any more.
    is_over: bool,
    /// Whether there is a thread that makes them.
    is_kept: bool,
    ready: Vec<Spare>,
    /// Those of no use any more, to be waited for.
    leaving: Vec<Spare>,
    wishes: Vec<Wish>,
    /// The wish that is being fulfilled.
    making: Option<Wish>,
    /// The view last asked of `bwrap`, for each kind.
    asked: Vec<(Kind, Vec<Shown>)>,
    /// When something was last started.
    last: Option<Instant>,
    failures: u32,
}

/// What has to be the same for a spare to be of any use.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kind {
    door: Door,
    walls: Option<Walls>,
}

/// What kind of sandbox it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walls {
    pub builder: Builder,
    pub sockets: bool,
}

/// A spare that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wish {
    kind: Kind,
    /// What it is to show, behind its walls; what every tool gets, if nothing is said.
    view: Option<Vec<Shown>>,
}

impl Launcher {
    /// From here on launchers are started and sandboxes built ahead, for a Kiwi that stays and has time between calls.
    /// Nothing happens before the first process has started, and after a while without another one everything is given
    /// back.
    pub fn keep_spares(&self) {
        self.spares.0.0.state().is_on = true;
    }

    /// How many launchers wait for their orders.
    pub fn ready_spares(&self) -> usize {
        self.spares.0.0.state().ready.len()
    }
}

impl Spares {
    /// The spare for a process of this kind, if there is one that is still good.
    pub fn take(&self, launcher: &Launcher, walls: Option<&Walls>) -> Option<Spare> {
        let mut state = self.0.0.state();
        if !state.is_on {
            return None;
        }
        state.last = Some(Instant::now());
        let place = state.ready.iter().position(|spare| {
            let kind = spare.kind();
            kind.door == launcher.door && kind.walls.as_ref() == walls
        })?;
        Some(state.ready.swap_remove(place))
    }

    /// Gives back what did not serve: to be kept where it may serve another time, otherwise to be ended.
    pub fn give_back(&self, spare: Spare, is_good: bool) {
        let mut state = self.0.0.state();
        if is_good && !state.ready.iter().any(|other| other.kind() == spare.kind()) {
            state.ready.push(spare);
        } else {
            state.leaving.push(spare);
        }
        drop(state);
        self.0.0.keep();
    }

    /// Something has been started: the next of its kind is to find a spare.
    pub fn wish(&self, launcher: &Launcher, launch: &Launch, has_snapshot: bool) {
        let is_contained = launch.sandbox.as_ref().is_some_and(Sandbox::is_contained);
        if is_contained || launch.sandbox.is_some() && launch.needs_group() {
            return;
        }
        let mut state = self.0.0.state();
        if !state.is_on || state.failures >= MOST_FAILURES {
            return;
        }
        state.last = Some(Instant::now());
        let kind = Kind { door: launcher.door.clone(), walls: launch.sandbox.as_ref().map(Walls::from) };
        let view = match &launch.sandbox {
            None | Some(Sandbox { builder: Builder::Native, .. }) => None,
            // The name of a snapshot is another one each time.
            Some(_) if has_snapshot => return,
            Some(sandbox) if !state.is_asked_again(&kind, &sandbox.view) => return,
            Some(sandbox) => Some(sandbox.view.clone()),
        };
        let is_there =
            |spare: &Spare| *spare.kind() == kind && view.as_ref().is_none_or(|view| spare.shows(view));
        if state.ready.iter().any(is_there) {
            return;
        }
        let wish = Wish { kind, view };
        state.wishes.retain(|other| other.kind != wish.kind);
        if state.making.as_ref() == Some(&wish) {
            return;
        }
        state.wishes.push(wish);
        drop(state);
        self.0.0.keep();
    }
}

impl From<&Sandbox> for Walls {
    fn from(sandbox: &Sandbox) -> Self {
        Self { builder: sandbox.builder.clone(), sockets: sandbox.sockets }
    }
}

impl State {
    /// Whether this view is the one that was asked for last.
    fn is_asked_again(&mut self, kind: &Kind, view: &[Shown]) -> bool {
        match self.asked.iter_mut().find(|(other, _)| other == kind) {
            Some((_, last)) if last == view => true,
            Some((_, last)) => {
                *last = view.to_vec();
                false
            }
            None => {
                self.asked.push((kind.clone(), view.to_vec()));
                false
            }
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that somebody does what is to be done.
    fn keep(self: &Arc<Self>) {
        let mut state = self.state();
        if !state.is_kept {
            let shared = Arc::clone(self);
            let thread = std::thread::Builder::new().name("kiwi-spares".into());
            // Without a thread there are no spares.
            state.is_kept = thread.spawn(move || keeper::keep(&shared)).is_ok();
        }
        drop(state);
        self.changed.notify_one();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_over = true;
        drop(state);
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiwi_launcher::wire::Limits;
    use kiwi_launcher::wire::{Raw, Word};

    #[test]
    fn what_is_being_made_is_not_wished_for_again() {
        let launcher = Launcher::new("/nowhere", "/nowhere");
        launcher.keep_spares();
        // Nobody makes any here.
        launcher.spares.0.0.state().is_kept = true;
        let launch = Launch {
            program: Word::default(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: Raw::of("/"),
            stdin: false,
            files: 0,
            timeout_ms: 1,
            grace_ms: 1,
            confined: false,
            has_secrets: false,
            limits: Limits::default(),
            scrap: None,
            sandbox: None,
        };
        let wish = || {
            launcher.spares.wish(&launcher, &launch, false);
            launcher.spares.0.0.state().wishes.len()
        };
        assert_eq!((wish(), wish()), (1, 1));
        let mut state = launcher.spares.0.0.state();
        state.making = state.wishes.pop();
        drop(state);
        assert_eq!(wish(), 0);
        launcher.spares.0.0.state().making = None;
        assert_eq!(wish(), 1);
    }
}
