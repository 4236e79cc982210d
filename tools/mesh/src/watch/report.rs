//! The output for the events of a watch: text, or one JSON object for each event.

use std::collections::BTreeMap;

use serde_json::{Value, value::RawValue};

use super::changes::changes;
use crate::{
    events::Event,
    gateway::{GatewayError, foreign, reason},
};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Printed {
    /// For standard output.
    pub(super) result: Option<String>,
    /// For standard error.
    pub(super) note: Option<String>,
}

#[derive(Debug)]
pub(super) struct Report {
    url: String,
    as_json: bool,
    /// The last state of each read; a stream with a single read has no index.
    reads: BTreeMap<Option<u32>, LastState>,
}

#[derive(Debug, Default)]
struct LastState {
    last: Option<Event>,
    answer: Option<Value>,
}

impl Report {
    pub(super) fn new(url: &str, as_json: bool) -> Self {
        Self { url: url.to_owned(), as_json, reads: BTreeMap::new() }
    }

    /// Reports an event received at this time of day; `None` when nothing is new.
    pub(super) fn event(&mut self, event: &Event, time: &str) -> Result<Option<Printed>, GatewayError> {
        let (kind, index) = match event.name.split_once('-') {
            Some((kind, index)) => (kind, Some(index.parse().map_err(|_| foreign(&self.url))?)),
            None => (event.name.as_str(), None),
        };
        if !["answer", "problem"].contains(&kind) {
            return Ok(None);
        }
        let state = self.reads.entry(index).or_default();
        let last = state.last.replace(event.clone());
        // After a reconnection the current state is sent in any case.
        if last.as_ref().is_some_and(|last| last.name == event.name && last.data == event.data) {
            return Ok(None);
        }
        let was_behind = last.is_some_and(|last| last.name != event.name);
        if self.as_json {
            let result = Some(as_json(kind, index, event).ok_or_else(|| foreign(&self.url))?);
            return Ok(Some(Printed { result, note: None }));
        }
        let at = place(event.height, index);
        let body: Value = serde_json::from_str(&event.data).map_err(|_| foreign(&self.url))?;
        if kind == "problem" {
            let why = serde_json::from_str(&event.data)
                .map_or_else(|_| event.data.clone(), |problem| reason(&problem));
            let note = Some(format!("behind since {at}: {why}"));
            return Ok(Some(Printed { result: None, note }));
        }
        let lines = match &state.answer {
            None => vec![format!("{body:#}")],
            Some(old) => changes(old, &body).into_iter().map(|line| format!("  {line}")).collect(),
        };
        state.answer = Some(body);
        let result = (!lines.is_empty()).then(|| format!("{at}  {time}\n{}", lines.join("\n")));
        Ok(Some(Printed { result, note: was_behind.then(|| format!("no longer behind, {at}")) }))
    }
}

fn place(height: Option<u64>, index: Option<u32>) -> String {
    let block = height.map_or_else(|| "no block".to_owned(), |height| format!("block {height}"));
    index.map_or_else(|| block.clone(), |index| format!("{block}  read {index}"))
}

fn as_json(kind: &str, index: Option<u32>, event: &Event) -> Option<String> {
    // Line breaks stand between JSON's tokens only.
    let body = event.data.replace('\n', " ");
    let body: &RawValue = serde_json::from_str(&body).ok()?;
    let read = index.map(|index| format!("\"read\":{index},")).unwrap_or_default();
    let height = event.height.map_or(Value::Null, Value::from);
    Some(format!("{{{read}\"height\":{height},\"{kind}\":{body}}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, height: u64, data: &str) -> Event {
        Event { name: name.to_owned(), height: Some(height), data: data.to_owned() }
    }

    /// What is printed of these events at noon, results after notes.
    fn printed(as_json: bool, events: &[Event]) -> Vec<String> {
        let mut report = Report::new("u", as_json);
        let printed = events.iter().filter_map(|event| report.event(event, "12:00:00Z").unwrap());
        printed.flat_map(|printed| [printed.note, printed.result]).flatten().collect()
    }

    #[test]
    fn programs_get_one_object_a_line_as_it_came() {
        let mut events = vec![event("answer", 5, "{\"b\":1,\n\"a\":1.10}"), event("problem", 5, "{}")];
        events.extend([event("answer-1", 6, "1"), event("answer-0", 6, "1"), event("answer-1", 7, "1")]);
        events[1].height = None;
        let expected = [
            "{\"height\":5,\"answer\":{\"b\":1, \"a\":1.10}}",
            "{\"height\":null,\"problem\":{}}",
            "{\"read\":1,\"height\":6,\"answer\":1}",
            "{\"read\":0,\"height\":6,\"answer\":1}",
        ];
        assert_eq!(printed(true, &events), expected);
        Report::new("u", true).event(&event("answer", 1, "no JSON"), "").unwrap_err();
        Report::new("u", false).event(&event("answer-x", 1, "1"), "").unwrap_err();
    }

    #[test]
    fn reads_of_one_stream_are_distinguished() {
        let events = [event("answer-0", 5, "1"), event("answer-1", 5, "2"), event("answer-0", 6, "3")];
        let found = printed(false, &events);
        assert_eq!(found[2], "block 6  read 0  12:00:00Z\n  : 1 -> 3");
    }
}
