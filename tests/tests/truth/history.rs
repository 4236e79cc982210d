//! The states of the store in order of time: when each became visible and ceased to be, and the expected
//! answer of every question in it.

use std::{collections::HashMap, time::Instant};

use parking_lot::Mutex;
use serde_json::Value;

use crate::world::{Question, World, questions};

/// Identifies the content of an answer independently of its encoding: equal JSON values have equal numbers.
pub(crate) type Content = usize;

/// The states of the store and the numbers of all answer contents.
pub(crate) struct History {
    pub(crate) questions: Vec<Question>,
    states: Mutex<Vec<State>>,
    contents: Mutex<Contents>,
}

/// The state of the store between two commits.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) height: u64,
    /// When its COMMIT was sent: the state cannot be read earlier.
    pub(crate) begins: Instant,
    /// When the COMMIT of the next state had returned: the state cannot be read later. `None` for the last
    /// state.
    pub(crate) ends: Option<Instant>,
    /// The expected answers, in the order of `questions`.
    pub(crate) answers: Vec<Content>,
}

#[derive(Default)]
struct Contents {
    /// By JSON text with sorted members.
    numbers: HashMap<String, Content>,
    /// By decompressed body, so that equal bodies are parsed once.
    sent: HashMap<Vec<u8>, Content>,
}

impl History {
    /// Starts a history with the state of a world.
    pub(crate) fn new(world: &World, begins: Instant, ends: Instant) -> Self {
        let history = Self { questions: questions(), states: Mutex::default(), contents: Mutex::default() };
        history.add(world, begins, ends);
        history
    }

    /// Appends the next state, whose COMMIT was sent and had returned at these moments.
    pub(crate) fn add(&self, world: &World, sent: Instant, returned: Instant) {
        let answers = self.questions.iter().map(|question| self.number(&(question.answer)(world))).collect();
        let height = u64::try_from(world.height).expect("heights are positive");
        let mut states = self.states.lock();
        if let Some(last) = states.last_mut() {
            last.ends = Some(returned);
        }
        states.push(State { height, begins: sent, ends: None, answers });
    }

    /// The content number of a decompressed body; `None` when it is not JSON.
    pub(crate) fn content(&self, body: Vec<u8>) -> Option<Content> {
        if let Some(known) = self.contents.lock().sent.get(&body) {
            return Some(*known);
        }
        let number = self.number(&serde_json::from_slice(&body).ok()?);
        self.contents.lock().sent.insert(body, number);
        Some(number)
    }

    fn number(&self, value: &Value) -> Content {
        let mut contents = self.contents.lock();
        let next = contents.numbers.len();
        *contents.numbers.entry(value.to_string()).or_insert(next)
    }

    /// The text of a content, for a failed test's message.
    pub(crate) fn text(&self, content: Content) -> String {
        let contents = self.contents.lock();
        let found = contents.numbers.iter().find(|(_, number)| **number == content);
        found.map_or_else(String::new, |(text, _)| text.clone())
    }

    /// The states so far.
    pub(crate) fn states(&self) -> Vec<State> {
        self.states.lock().clone()
    }
}
