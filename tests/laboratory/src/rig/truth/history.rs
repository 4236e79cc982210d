//! The states of the store in order of time: when each became visible and ceased to be, and the expected
//! answer of every question in it.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::Value;

use super::store_model::{Question, StoreModel, questions};

/// Identifies the content of an answer independently of its encoding: equal JSON values have equal numbers.
pub(super) type Content = usize;

/// The states of the store and the numbers of all answer contents.
pub(super) struct History {
    pub(super) questions: Vec<Question>,
    states: Mutex<Vec<State>>,
    contents: Mutex<Contents>,
}

/// The state of the store between two commits.
#[derive(Debug)]
struct State {
    height: u64,
    /// When its COMMIT was sent: the state cannot be read earlier.
    begins: Instant,
    /// When the COMMIT of the next state had returned: the state cannot be read later. `None` for the last
    /// state.
    ends: Option<Instant>,
    /// The expected answers, in the order of `questions`.
    answers: Vec<Content>,
}

#[derive(Default)]
struct Contents {
    /// By JSON text with sorted members.
    numbers: HashMap<String, Content>,
    /// By decompressed body, so that equal bodies are parsed once.
    bodies: HashMap<Vec<u8>, Content>,
}

/// A complete answer to a question.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) question: usize,
    pub(super) height: u64,
    pub(super) content: Content,
    /// When the request was sent, and when the answer was complete.
    pub(super) when: (Instant, Instant),
}

impl History {
    /// A history without states.
    pub(super) fn new() -> Self {
        Self { questions: questions(), states: Mutex::default(), contents: Mutex::default() }
    }

    /// Appends the next state, just before its COMMIT is sent.
    pub(super) fn commit_begins(&self, model: &StoreModel) {
        let answers = self.questions.iter().map(|question| self.number(&(question.answer)(model))).collect();
        let height = model.height.unsigned_abs();
        self.states.lock().push(State { height, begins: Instant::now(), ends: None, answers });
    }

    /// Ends the state before the last one, whose COMMIT has returned.
    pub(super) fn commit_ended(&self) {
        if let [.., previous, _] = &mut self.states.lock()[..] {
            previous.ends = Some(Instant::now());
        }
    }

    /// Number of states so far.
    pub(super) fn len(&self) -> usize {
        self.states.lock().len()
    }

    /// The content number of a decompressed body; `None` when it is not JSON.
    pub(super) fn content(&self, body: Vec<u8>) -> Option<Content> {
        if let Some(known) = self.contents.lock().bodies.get(&body) {
            return Some(*known);
        }
        let number = self.number(&serde_json::from_slice(&body).ok()?);
        self.contents.lock().bodies.insert(body, number);
        Some(number)
    }

    fn number(&self, value: &Value) -> Content {
        let mut contents = self.contents.lock();
        let next = contents.numbers.len();
        *contents.numbers.entry(value.to_string()).or_insert(next)
    }

    /// How long before the request was sent the answer had ceased to be the store's.
    ///
    /// # Errors
    /// When no state of this height has the answer's content, or not yet when the answer was complete.
    pub(super) fn age(&self, answered: &Answered) -> Result<Duration, String> {
        let Answered { question, height, content, when: (sent, received) } = *answered;
        let states = self.states.lock();
        let from = states.partition_point(|state| state.height < height);
        let to = states.partition_point(|state| state.height <= height);
        let equal: Vec<&State> =
            states[from..to].iter().filter(|state| state.answers[question] == content).collect();
        if equal.is_empty() {
            return Err(format!("not what the store had at height {height}: {}", self.text(content)));
        }
        // States are in order of time: the last that qualifies gives the least age.
        let state = equal.iter().rfind(|state| state.begins <= received);
        let state = state.ok_or_else(|| format!("it is of height {height} before that was committed"))?;
        Ok(state.ends.map_or(Duration::ZERO, |ends| sent.saturating_duration_since(ends)))
    }

    /// The text of a content.
    fn text(&self, content: Content) -> String {
        let contents = self.contents.lock();
        let found = contents.numbers.iter().find(|(_, number)| **number == content);
        found.map_or_else(String::new, |(text, _)| text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::rows::Row, *};

    #[test]
    fn an_answer_is_compared_with_the_states_of_its_height_and_time() {
        let (history, mut model) = (History::new(), StoreModel::default());
        let limits = history.questions.iter().position(|question| question.path.ends_with("/limits"));
        let question = limits.unwrap();
        let begun = Instant::now();
        let mut contents = Vec::new();
        for (height, at, flags) in [(1, 1, 1), (2, 2, 2), (2, 1, 1), (2, 2, 3)] {
            model.apply(&Row::Block { height });
            model.apply(&Row::Limits { at, flags });
            for number in 1..3 {
                model.apply(&Row::Withdrawal { number, at: 1, status: "STATUS_OPEN", reference: 0 });
                model.apply(&Row::OracleSpec { number, at: 1, status: "STATUS_ACTIVE" });
            }
            history.commit_begins(&model);
            history.commit_ended();
            contents.push(history.number(&(history.questions[question].answer)(&model)));
        }
        let later = Instant::now() + Duration::from_secs(5);
        let of = |height, content, sent, received| {
            history.age(&Answered { question, height, content, when: (sent, received) })
        };
        assert_eq!(of(2, contents[3], later, later), Ok(Duration::ZERO), "it is the last state");
        let age = of(1, contents[0], later, later).unwrap();
        assert!(age >= Duration::from_secs(5) && age <= later - begun, "{age:?}");
        // A late row of an earlier block does not change the newest version of a value.
        assert_eq!(contents[1], contents[2]);
        assert!(of(1, contents[1], later, later).is_err(), "content of another height");
        assert!(of(3, contents[3], later, later).is_err(), "a height that the store never had");
        assert!(of(1, contents[0], begun, begun).is_err(), "before the commit");
    }
}
