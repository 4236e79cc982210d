//! One client of the fuzzing: sends its share of the requests over a keep-alive connection and checks the
//! answers.

use std::{collections::BTreeMap, io, time::Duration};

use mesh_testbed::{Answer, http1::Connection};
use mesh_tests::problem;
use rand::{SeedableRng, rngs::SmallRng};
use tokio::time::timeout;

use crate::request_fuzzing::requests::{self, FuzzedRequest};

const TIME_LIMIT: Duration = Duration::from_secs(8);

const MAX_FAULTS: usize = 5;

#[derive(Debug, Default)]
pub(crate) struct Observations {
    /// Number of answers by status; 0 means closed without an answer.
    pub(crate) statuses: BTreeMap<u16, usize>,
    /// The faults, each with its request.
    pub(crate) faults: Vec<String>,
}

impl Observations {
    pub(crate) fn add(&mut self, other: Self) {
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.faults.extend(other.faults);
    }
}

pub(crate) struct Attack {
    url: String,
    seed: u64,
    connection: Option<Connection>,
    observations: Observations,
}

impl Attack {
    pub(crate) fn new(url: String, seed: u64) -> Self {
        Self { url, seed, connection: None, observations: Observations::default() }
    }

    pub(crate) fn into_observations(self) -> Observations {
        self.observations
    }

    pub(crate) fn has_enough_faults(&self) -> bool {
        self.observations.faults.len() >= MAX_FAULTS
    }

    /// Sends the request of a turn, which depends on seed and turn alone, and checks its answer.
    pub(crate) async fn turn(&mut self, turn: usize) {
        let mut dice = SmallRng::seed_from_u64(self.seed.wrapping_add(turn as u64));
        let fuzzed = requests::fuzzed(&mut dice);
        let (status, fault) = match timeout(TIME_LIMIT, self.send(&fuzzed)).await {
            Err(_) => (0, Some("no answer in time".to_owned())),
            Ok(Err(error)) if fuzzed.is_sound => (0, Some(format!("no answer: {error}"))),
            Ok(Err(_)) => (0, None),
            Ok(Ok(None)) if fuzzed.is_sound => (0, Some("closed without an answer".to_owned())),
            Ok(Ok(None)) => (0, None),
            Ok(Ok(Some(answer))) => (answer.status, check_answer(&fuzzed, &answer).err()),
        };
        *self.observations.statuses.entry(status).or_default() += 1;
        if let Some(fault) = fault {
            self.connection = None;
            let sent = &fuzzed.bytes[..fuzzed.bytes.len().min(1500)];
            self.observations.faults.push(format!("turn {turn}: {fault}\n  sent {}", sent.escape_ascii()));
        }
    }

    /// A request with a clear end is sent over the keep-alive connection; any other over one of its own,
    /// whose sending side is closed after it.
    async fn send(&mut self, fuzzed: &FuzzedRequest) -> io::Result<Option<Answer>> {
        if !fuzzed.is_sound {
            let mut connection = Connection::open(&self.url).await?;
            // The edge may refuse it before it is complete.
            let _ = connection.send(&fuzzed.bytes).await;
            let _ = connection.finish().await;
            return connection.answer(fuzzed.is_head).await;
        }
        let mut connection = match self.connection.take() {
            Some(kept) => kept,
            None => Connection::open(&self.url).await?,
        };
        connection.send(&fuzzed.bytes).await?;
        let answer = connection.answer(fuzzed.is_head).await?;
        if answer.as_ref().is_some_and(|answer| !answer.closes()) {
            self.connection = Some(connection);
        }
        Ok(answer)
    }
}

/// Why an answer is not one that a hostile request may get, if it is not.
fn check_answer(fuzzed: &FuzzedRequest, answer: &Answer) -> Result<(), String> {
    let description =
        || format!("{} with {}", answer.status, answer.body[..answer.body.len().min(500)].escape_ascii());
    if let Some(ignored) = answer.header("x-ignored") {
        let names: Vec<&str> = ignored.split(", ").collect();
        let is_printable = |name: &&str| name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
        let is_told = |name: &&str| is_printable(name) && (1..=64).contains(&name.len());
        if names.len() > 10 || !names.iter().all(is_told) {
            return Err(format!("X-Ignored is {ignored:?}: {}", description()));
        }
    }
    match answer.status {
        200 if fuzzed.is_head => Ok(()),
        200 => match answer.header("content-type") {
            Some("application/json") if answer.header("content-encoding") == Some("gzip") => Ok(()),
            Some("application/json") => serde_json::from_slice::<serde_json::Value>(&answer.body)
                .map(drop)
                .map_err(|error| format!("no JSON ({error}): {}", description())),
            Some("text/plain; charset=utf-8" | "text/csv" | "application/zip" | "application/x-ndjson") => {
                Ok(())
            }
            // The console's files, which are public.
            Some("text/html; charset=utf-8") if answer.header("content-encoding") == Some("gzip") => Ok(()),
            Some("text/html; charset=utf-8") if answer.body.starts_with(b"<!doctype html>") => Ok(()),
            other => Err(format!("content type {other:?}: {}", description())),
        },
        204 | 304 => Ok(()),
        // Refusals of the HTTP parser itself, and of what it may have read wrongly, have no body.
        400 | 414 | 431 if answer.body.is_empty() => Ok(()),
        400..=499 if fuzzed.is_head => Ok(()),
        400..=499 => problem::read(answer).map(drop).map_err(|wrong| format!("{wrong}: {}", description())),
        _ => Err(description()),
    }
}
