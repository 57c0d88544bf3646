//! Nondeterministic automata, as small as globs need them.

use super::set::Set;

/// States that an automaton may be in, sorted.
pub(super) type States = Vec<usize>;

#[derive(Debug, Clone, Default)]
struct State {
    edges: Vec<(Set, usize)>,
    /// Where it may go without a character.
    free: Vec<usize>,
}

/// An automaton that is built from left to right. Its last state accepts.
#[derive(Debug, Clone)]
pub(super) struct Automaton {
    states: Vec<State>,
}

impl Automaton {
    pub fn new() -> Self {
        Self { states: vec![State::default()] }
    }

    fn last(&self) -> usize {
        self.states.len().saturating_sub(1)
    }

    fn grow(&mut self) -> usize {
        self.states.push(State::default());
        self.last()
    }

    fn edge(&mut self, from: usize, on: Set, to: usize) {
        if let Some(state) = self.states.get_mut(from) {
            state.edges.push((on, to));
        }
    }

    fn free(&mut self, from: usize, to: usize) {
        if let Some(state) = self.states.get_mut(from) {
            state.free.push(to);
        }
    }

    /// One character of the set.
    pub fn then(&mut self, on: Set) {
        let from = self.last();
        let to = self.grow();
        self.edge(from, on, to);
    }

    /// Any number of characters of the set.
    pub fn repeat(&mut self, on: Set) {
        let before = self.last();
        let inside = self.grow();
        self.free(before, inside);
        self.edge(inside, on, inside);
        let after = self.grow();
        self.free(inside, after);
    }

    /// What `build` adds, or nothing.
    pub fn maybe(&mut self, build: impl FnOnce(&mut Self)) {
        // A state of its own: `build` may leave a loop at the one before.
        let before = self.last();
        let begin = self.grow();
        self.free(before, begin);
        build(self);
        let end = self.last();
        let after = self.grow();
        self.free(end, after);
        self.free(begin, after);
    }

    /// The states before the first character.
    pub fn start(&self) -> States {
        self.closed(vec![0])
    }

    /// The states after one more character.
    pub fn step(&self, now: &[usize], c: char) -> States {
        let edges = now.iter().filter_map(|at| self.states.get(*at)).flat_map(|state| &state.edges);
        self.closed(edges.filter(|(on, _)| on.contains(c)).map(|(_, to)| *to).collect())
    }

    pub fn accepts(&self, states: &[usize]) -> bool {
        states.contains(&self.last())
    }

    /// Where something changes in any of its sets.
    pub fn borders(&self) -> impl Iterator<Item = u32> {
        self.states.iter().flat_map(|state| &state.edges).flat_map(|(on, _)| on.borders())
    }

    fn closed(&self, mut states: States) -> States {
        let mut at = 0;
        while let Some(state) = states.get(at).and_then(|number| self.states.get(*number)) {
            for to in &state.free {
                if !states.contains(to) {
                    states.push(*to);
                }
            }
            at += 1;
        }
        states.sort_unstable();
        states.dedup();
        states
    }
}
