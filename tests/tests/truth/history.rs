//! What the store said when: its states in order, each with the time in which it became visible, and what
//! every question was to be answered in it.

use std::{collections::HashMap, time::Instant};

use parking_lot::Mutex;
use serde_json::Value;

use crate::world::{Question, World, questions};

/// Two answers have the same number when they say the same, in whatever form.
pub(crate) type Content = usize;

/// The states of the store.
pub(crate) struct History {
    pub(crate) questions: Vec<Question>,
    states: Mutex<Vec<State>>,
    contents: Mutex<Contents>,
}

/// The store between two commits.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) height: u64,
    /// When its commit was sent: nobody can have seen it before.
    pub(crate) begins: Instant,
    /// When the commit of the next one had returned: nobody can read it any more. None = it is the last.
    pub(crate) ends: Option<Instant>,
    /// The answers, in the order of the questions.
    pub(crate) answers: Vec<Content>,
}

#[derive(Default)]
struct Contents {
    /// By JSON text with sorted members.
    numbers: HashMap<String, Content>,
    /// By plain bytes as they were sent, so that equal answers are read once.
    sent: HashMap<Vec<u8>, Content>,
}

impl History {
    /// A history that begins with a world.
    pub(crate) fn begin(world: &World, begins: Instant, ends: Instant) -> Self {
        let history = Self { questions: questions(), states: Mutex::default(), contents: Mutex::default() };
        history.add(world, begins, ends);
        history
    }

    /// The next state became visible between these moments.
    pub(crate) fn add(&self, world: &World, sent: Instant, returned: Instant) {
        let answers = self.questions.iter().map(|question| self.number(&(question.answer)(world))).collect();
        let height = u64::try_from(world.height).expect("heights are positive");
        let mut states = self.states.lock();
        if let Some(last) = states.last_mut() {
            last.ends = Some(returned);
        }
        states.push(State { height, begins: sent, ends: None, answers });
    }

    /// The number of an answer's plain body; none when it is no JSON.
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
