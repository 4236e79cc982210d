//! Configuration from environment variables, read and checked once. All mistakes are reported together.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    fmt,
    ops::RangeInclusive,
    str::FromStr,
    time::Duration,
};

/// Longest duration, seconds: more is a mistake, and a sum with it might not fit its type.
const MAX_SECONDS: u64 = 30 * 24 * 3600;

/// Greatest number of milliseconds: a day.
const MAX_MILLISECONDS: u64 = 24 * 3600 * 1000;

/// Greatest count.
const MAX_COUNT: usize = 1_000_000_000;

/// The environment as configuration: returns values and collects mistakes.
#[derive(Debug, Default)]
pub struct Env {
    variables: HashMap<String, String>,
    /// Names of the variables that were read.
    asked: RefCell<BTreeSet<String>>,
    mistakes: Vec<String>,
}

impl Env {
    /// The environment of this process. An empty variable counts as absent.
    pub(crate) fn of_process() -> Self {
        let mut variables = Vec::new();
        let mut mistakes = Vec::new();
        for (name, value) in std::env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => variables.push((name, value)),
                Err(_) if name.starts_with("MESH_") => mistakes.push(format!("{name} is not UTF-8")),
                Err(_) => {}
            }
        }
        Self { mistakes, ..Self::of(variables) }
    }

    /// An environment of these variables.
    pub fn of(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let variables = variables.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        Self { variables, ..Self::default() }
    }

    /// An optional variable.
    pub fn optional(&self, name: &str) -> Option<String> {
        self.given(name).cloned()
    }

    fn given(&self, name: &str) -> Option<&String> {
        self.asked.borrow_mut().insert(name.to_owned());
        self.variables.get(name)
    }

    /// A required variable; no mistake contains its value.
    pub fn required(&mut self, name: &str) -> String {
        self.optional(name).unwrap_or_else(|| {
            self.mistakes.push(format!("{name} is not set"));
            String::new()
        })
    }

    /// A variable of some type, or its default.
    pub fn or<T: FromStr>(&mut self, name: &str, default: T) -> T
    where
        T::Err: fmt::Display,
    {
        match self.given(name).map(|text| text.parse()) {
            None => default,
            Some(Ok(value)) => value,
            Some(Err(error)) => {
                self.mistakes.push(format!("{name} cannot be read: {error}"));
                default
            }
        }
    }

    /// A number within bounds, or its default.
    pub fn within<T>(&mut self, name: &str, default: T, bounds: RangeInclusive<T>) -> T
    where
        T: FromStr<Err: fmt::Display> + PartialOrd + fmt::Display + Copy,
    {
        let number = self.or(name, default);
        if bounds.contains(&number) {
            return number;
        }
        self.mistake(format!("{name} must be between {} and {}", bounds.start(), bounds.end()));
        default
    }

    /// A count of at least 1, or its default.
    pub fn positive(&mut self, name: &str, default: usize) -> usize {
        self.within(name, default, 1..=MAX_COUNT)
    }

    /// A number of milliseconds, at least 1 and at most a day, or its default.
    pub fn milliseconds(&mut self, name: &str, default: u64) -> Duration {
        Duration::from_millis(self.within(name, default, 1..=MAX_MILLISECONDS))
    }

    /// A number of seconds, at most 30 days, or its default.
    pub fn seconds(&mut self, name: &str, default: u64) -> Duration {
        Duration::from_secs(self.within(name, default, 0..=MAX_SECONDS))
    }

    /// Adds what a check has found wrong with the value of a variable.
    pub fn check<E: fmt::Display>(&mut self, name: &str, checked: Result<(), E>) {
        if let Err(error) = checked {
            self.mistake(format!("{name} cannot be read: {error}"));
        }
    }

    /// `true`, `on` or `1`; `false`, `off` or `0`, in letters of either case; or its default.
    pub fn flag(&mut self, name: &str, default: bool) -> bool {
        match self.given(name).map(|text| text.to_ascii_lowercase()).as_deref() {
            None => default,
            Some("true" | "on" | "1") => true,
            Some("false" | "off" | "0") => false,
            Some(_) => {
                self.mistake(format!("{name} must be true or false, or on or off"));
                default
            }
        }
    }

    /// Adds a mistake that the caller has found.
    pub fn mistake(&mut self, mistake: impl Into<String>) {
        self.mistakes.push(mistake.into());
    }

    /// The names of the variables that were read so far, set or not, in alphabetical order.
    pub fn asked(&self) -> Vec<String> {
        self.asked.borrow().iter().cloned().collect()
    }

    /// All mistakes so far.
    pub fn mistakes(&self) -> &[String] {
        &self.mistakes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_are_reported_together() {
        let pairs = [
            ("A", "x"),
            ("B", "0"),
            ("D", "7"),
            ("E", ""),
            ("F", "0"),
            ("G", "yes"),
            ("H", "86400001"),
            ("I", "18446744073709551615"),
            ("J", "18446744073709551615"),
        ];
        let mut env = Env::of(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(env.or("A", 5_u32), 5);
        env.positive("B", 1);
        env.required("C");
        assert_eq!(env.or("D", 1_u8), 7);
        assert_eq!(env.optional("E"), None);
        assert!(!env.flag("F", true) && env.flag("G", true));
        env.milliseconds("H", 1);
        env.seconds("I", 1);
        env.positive("J", 1);
        env.check("K", Err("it is no K"));
        assert_eq!(
            env.mistakes(),
            [
                "A cannot be read: invalid digit found in string",
                "B must be between 1 and 1000000000",
                "C is not set",
                "G must be true or false, or on or off",
                "H must be between 1 and 86400000",
                "I must be between 0 and 2592000",
                "J must be between 1 and 1000000000",
                "K cannot be read: it is no K",
            ]
        );
        assert_eq!(env.asked(), ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"]);
    }
}
