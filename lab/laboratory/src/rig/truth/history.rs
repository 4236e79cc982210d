//! The states of the store in order of time: when each was the current one, and the expected answer of every
//! question in it.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::Value;

/// Identifies the content of an answer independently of its encoding: equal JSON values have equal numbers.
pub(super) type Content = usize;

/// The states of the store and the numbers of all answer contents.
pub(super) struct History {
    /// Paths with their queries.
    pub(super) questions: Vec<String>,
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
    pub(super) fn new(questions: Vec<String>) -> Self {
        Self { questions, states: Mutex::default(), contents: Mutex::default() }
    }

    /// Appends the next state, just before its COMMIT is sent: its height, and the answers to all questions.
    pub(super) fn commit_begins(&self, height: u64, answers: impl Iterator<Item = Value>) {
        let answers: Vec<Content> = answers.map(|answer| self.number(&answer)).collect();
        assert_eq!(answers.len(), self.questions.len(), "every question has an answer");
        self.states.lock().push(State { height, begins: Instant::now(), ends: None, answers });
    }

    /// Ends the state before the last one, whose COMMIT has returned.
    pub(super) fn commit_ended(&self) {
        if let [.., previous, _] = &mut self.states.lock()[..] {
            previous.ends = Some(Instant::now());
        }
    }

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

    /// Checks an answer as of a block without late rows.
    ///
    /// # Errors
    /// When it is not that of the last state of this height.
    pub(super) fn check_past(&self, question: usize, height: u64, content: Content) -> Result<(), String> {
        let states = self.states.lock();
        let after = states.partition_point(|state| state.height <= height);
        match states[..after].last() {
            Some(state) if (state.height, state.answers[question]) == (height, content) => Ok(()),
            _ => Err(format!("not what the store had at height {height}: {}", self.text(content))),
        }
    }

    /// Age of an answer: the time from the end of its state to the sending of the request.
    ///
    /// # Errors
    /// When no state of this height has the answer's content, or none had it when the answer was complete.
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

    /// Index of an event's state, at least `from`, and its age: the time from the end of the state to `at`.
    ///
    /// # Errors
    /// When no state of this height has the content, or only one before `from`, or only one after `at`.
    pub(super) fn find_event(
        &self,
        (question, height, content): (usize, u64, Content),
        from: usize,
        at: Instant,
    ) -> Result<(usize, Duration), String> {
        let states = self.states.lock();
        let first = states.partition_point(|state| state.height < height);
        let after = states.partition_point(|state| state.height <= height);
        let is_equal = |place: &usize| states[*place].answers[question] == content;
        let Some(place) = (first.max(from)..after).find(is_equal) else {
            return Err(match (first..after).find(is_equal) {
                Some(place) => {
                    format!("state {place} of the store after state {from}: {}", self.text(content))
                }
                None => format!("not what the store had at height {height}: {}", self.text(content)),
            });
        };
        if states[place].begins > at {
            return Err(format!("it is of height {height} before that was committed"));
        }
        // Later states may have the same answer.
        let last = states[..].partition_point(|state| state.begins <= at);
        let ends = (place..last).rfind(is_equal).map_or(states[place].ends, |last| states[last].ends);
        Ok((place, ends.map_or(Duration::ZERO, |ends| at.saturating_duration_since(ends))))
    }

    /// Whether the answer to a question was constant in this period.
    pub(super) fn is_unchanged(&self, question: usize, from: Instant, to: Instant) -> bool {
        let states = self.states.lock();
        let mut answers = states
            .iter()
            .filter(|state| state.begins <= to && state.ends.is_none_or(|ends| ends >= from))
            .map(|state| state.answers[question]);
        let first = answers.next();
        answers.all(|answer| Some(answer) == first)
    }

    fn text(&self, content: Content) -> String {
        let contents = self.contents.lock();
        let found = contents.numbers.iter().find(|(_, number)| **number == content);
        found.map_or_else(String::new, |(text, _)| text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_compared_with_the_states_of_its_height_and_time() {
        let (history, question) = (History::new(vec!["/path".to_owned()]), 0);
        let begun = Instant::now();
        let mut contents = Vec::new();
        // A late row of an earlier block does not change the newest version of a value.
        for (height, answer) in [(1, "one"), (2, "two"), (2, "two"), (2, "three")] {
            history.commit_begins(height, [Value::from(answer)].into_iter());
            history.commit_ended();
            contents.push(history.number(&Value::from(answer)));
        }
        let later = Instant::now() + Duration::from_secs(5);
        let of = |height, content, sent, received| {
            history.age(&Answered { question, height, content, when: (sent, received) })
        };
        assert_eq!(of(2, contents[3], later, later), Ok(Duration::ZERO), "it is the last state");
        let age = of(1, contents[0], later, later).unwrap();
        assert!(age >= Duration::from_secs(5) && age <= later - begun, "{age:?}");
        assert!(of(1, contents[1], later, later).is_err(), "content of another height");
        assert!(of(3, contents[3], later, later).is_err(), "a height that the store never had");
        assert!(of(1, contents[0], begun, begun).is_err(), "before the commit");
        let find = |height, content, from| {
            history.find_event((question, height, content), from, later).map(|(place, _)| place)
        };
        assert_eq!((find(1, contents[0], 0), find(2, contents[1], 0)), (Ok(0), Ok(1)));
        assert_eq!((find(2, contents[2], 2), find(2, contents[3], 2)), (Ok(2), Ok(3)));
        assert!(find(2, contents[1], 3).is_err(), "a state before one that was sent");
        assert!(find(1, contents[1], 0).is_err() && find(3, contents[3], 0).is_err(), "another height");
        assert!(history.find_event((question, 1, contents[0]), 0, begun).is_err(), "before the commit");
        let age = |content| history.find_event((question, 2, content), 0, later).unwrap().1;
        assert!(age(contents[3]) == Duration::ZERO && age(contents[1]) >= Duration::from_secs(4));
        assert!(
            history.is_unchanged(question, later, later) && !history.is_unchanged(question, begun, later)
        );
    }
}
