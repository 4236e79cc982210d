//! The progress line of a download, at a terminal only, and the formatting of sizes and times.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::terminal::{self, bar, is_interactive, print_line};

/// Update interval of the line.
pub(super) const PERIOD: Duration = Duration::from_millis(250);
/// Number of samples of which the speed is the average: ten seconds.
const SAMPLES: usize = 40;

/// The progress line.
#[derive(Debug)]
pub(super) struct Progress {
    is_watched: bool,
    samples: VecDeque<(Instant, u64)>,
}

impl Progress {
    /// A line that is not shown yet.
    pub(super) fn new() -> Self {
        Self { is_watched: is_interactive(), samples: VecDeque::new() }
    }

    /// Shows the progress; both arguments are bytes.
    pub(super) fn show(&mut self, position: u64, bytes: u64) {
        if !self.is_watched {
            return;
        }
        let now = Instant::now();
        // The download was restarted: older samples would give a negative speed.
        if self.samples.back().is_some_and(|(_, last)| position < *last) {
            self.samples.clear();
        }
        self.samples.push_back((now, position));
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
        let speed = self.samples.front().map_or(0.0, |(start, from)| {
            let seconds = now.duration_since(*start).as_secs_f64();
            if seconds > 0.0 { (position - from) as f64 / seconds } else { 0.0 }
        });
        terminal::overwrite(&line(position, bytes, speed));
    }

    /// Writes a permanent line.
    pub(super) fn note(&self, text: &str) {
        self.leave();
        print_line(text);
    }

    /// Removes the line.
    pub(super) fn leave(&self) {
        if self.is_watched {
            terminal::clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The text of the line, short because a wrapped line cannot be overwritten.
fn line(position: u64, bytes: u64, speed: f64) -> String {
    let share = if bytes == 0 { 1.0 } else { position as f64 / bytes as f64 };
    let rest = bytes.saturating_sub(position);
    let left = if rest == 0 {
        String::new()
    } else if speed < 1.0 {
        ", waiting".to_owned()
    } else {
        format!(", {} left", time(rest as f64 / speed))
    };
    let percent = (share * 100.0) as u64;
    format!("{} {percent:>3} % of {}, {}/s{left}", bar(share), size(bytes as f64), size(speed))
}

/// A number of bytes with a unit, at least three digits.
pub(super) fn size(bytes: f64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes / unit),
        None => format!("{bytes:.0} bytes"),
    }
}

fn time(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (hours @ 0..100, minutes) => format!("{hours} h {minutes} min"),
        _ => "days".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_how_fast_and_how_long() {
        let half = line(20_000_000, 40_000_000, 8_000_000.0);
        assert_eq!(half, "[============            ]  50 % of 40.0 MB, 8.0 MB/s, 3 s left");
        assert_eq!(line(0, 10, 0.0), "[                        ]   0 % of 10 bytes, 0 bytes/s, waiting");
        assert_eq!(line(10, 10, 5.0), "[========================] 100 % of 10 bytes, 5 bytes/s");
        assert!(line(u64::MAX / 2, u64::MAX, 1234.5).len() < 80, "{}", line(u64::MAX / 2, u64::MAX, 1234.5));
    }

    #[test]
    fn figures_are_short() {
        assert_eq!([999.0, 1000.0, 1.25e6, 4.67e9].map(size), ["999 bytes", "1.0 kB", "1.2 MB", "4.7 GB"]);
        assert_eq!([0.2, 61.0, 7260.0, 1e9].map(time), ["1 s", "1 min 1 s", "2 h 1 min", "days"]);
    }
}
