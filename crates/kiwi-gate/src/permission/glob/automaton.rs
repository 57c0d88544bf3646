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
    /// Most patterns begin with what they say: a state for each of these characters, which leads to the next one only.
    begins: Vec<char>,
    /// The states behind.
    states: Vec<State>,
}

impl Automaton {
    pub fn new() -> Self {
        Self { begins: Vec::new(), states: vec![State::default()] }
    }

    fn last(&self) -> usize {
        self.begins.len() + self.states.len().saturating_sub(1)
    }

    fn grow(&mut self) -> usize {
        self.states.push(State::default());
        self.last()
    }

    fn state(&self, number: usize) -> Option<&State> {
        self.states.get(number.checked_sub(self.begins.len())?)
    }

    fn state_mut(&mut self, number: usize) -> Option<&mut State> {
        self.states.get_mut(number.checked_sub(self.begins.len())?)
    }

    fn edge(&mut self, from: usize, on: Set, to: usize) {
        if let Some(state) = self.state_mut(from) {
            state.edges.push((on, to));
        }
    }

    fn free(&mut self, from: usize, to: usize) {
        if let Some(state) = self.state_mut(from) {
            state.free.push(to);
        }
    }

    /// This character.
    pub fn letter(&mut self, c: char) {
        if self.only().is_some() {
            self.begins.push(c);
        } else {
            self.then(Set::one(c));
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

    /// The characters of the one string that it matches, if there is only one.
    pub fn only(&self) -> Option<&[char]> {
        match self.states.as_slice() {
            [only] if only.edges.is_empty() && only.free.is_empty() => Some(&self.begins),
            _ => None,
        }
    }

    /// The characters that everything it matches begins with.
    pub fn begins(&self) -> &[char] {
        &self.begins
    }

    /// The states after these characters.
    pub fn after(&self, mut read: impl Iterator<Item = char>) -> States {
        for (at, own) in self.begins.iter().enumerate() {
            match read.next() {
                None => return vec![at],
                Some(c) if c == *own => {}
                Some(_) => return States::new(),
            }
        }
        let mut now = self.closed(vec![self.begins.len()]);
        for c in read {
            if now.is_empty() {
                break;
            }
            now = self.step(&now, c);
        }
        now
    }

    /// The states after one more character.
    pub fn step(&self, now: &[usize], c: char) -> States {
        let mut next = States::new();
        for at in now {
            match (self.begins.get(*at), self.state(*at)) {
                (Some(own), _) if *own == c => next.push(at + 1),
                (None, Some(state)) => {
                    let edges = state.edges.iter().filter(|(on, _)| on.contains(c));
                    next.extend(edges.map(|(_, to)| *to));
                }
                _ => {}
            }
        }
        self.closed(next)
    }

    /// Whether these characters, and no more, are matched.
    pub fn matches(&self, mut read: impl Iterator<Item = char>) -> bool {
        if !self.begins.iter().all(|own| read.next() == Some(*own)) {
            return false;
        }
        let mut now = self.closed(vec![self.begins.len()]);
        loop {
            // Most patterns end with what matches anything.
            if now.iter().any(|at| self.accepts_all(*at)) {
                return true;
            }
            match read.next() {
                None => return self.accepts(&now),
                Some(_) if now.is_empty() => return false,
                Some(c) => now = self.step(&now, c),
            }
        }
    }

    /// Whether everything is matched from a state on: it leads back to itself by any character, and to the end by none.
    fn accepts_all(&self, at: usize) -> bool {
        let leads_back = |state: &State| state.edges.iter().any(|(on, to)| *to == at && on.is_any());
        self.state(at).is_some_and(leads_back) && self.closed(vec![at]).contains(&self.last())
    }

    pub fn accepts(&self, states: &[usize]) -> bool {
        states.contains(&self.last())
    }

    /// Where something changes in any of its sets.
    pub fn borders(&self) -> impl Iterator<Item = u32> {
        let edges = self.states.iter().flat_map(|state| &state.edges).flat_map(|(on, _)| on.borders());
        self.begins.iter().flat_map(|c| [u32::from(*c), u32::from(*c) + 1]).chain(edges)
    }

    fn closed(&self, mut states: States) -> States {
        let mut at = 0;
        while let Some(number) = states.get(at) {
            for to in self.state(*number).into_iter().flat_map(|state| &state.free) {
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
