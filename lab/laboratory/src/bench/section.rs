//! The results of a section: a table, the same figures as JSON, and whether its bars hold.

use mesh::failure::Failure;
use serde_json::{Value, json};

use super::sections::Row;
use crate::table::render_table;

/// The exit code of a failure because a program is not installed.
const MISSING: u8 = 69;

/// What a section has measured.
#[derive(Default)]
pub(super) struct Figures {
    pub(super) title: String,
    /// The lines of the table, which have the same columns.
    pub(super) lines: Vec<Line>,
    /// A line for each process.
    pub(super) processes: Vec<Line>,
    /// A text below the table.
    pub(super) note: String,
    /// The figures of the section's bars, in their order.
    pub(super) found: Vec<f64>,
}

pub(super) struct Section {
    /// The table as text, with the bars below it.
    pub(super) table: String,
    /// The same as JSON.
    pub(super) figures: Value,
    /// An error when a bar does not hold.
    pub(super) verdict: Result<(), Failure>,
}

impl Section {
    /// Compares the figures of a section with its bars. A section whose programs are not installed is skipped.
    pub(super) fn new(row: &Row, measured: Result<Figures, Failure>) -> Self {
        match measured {
            Ok(figures) => Self::judged(row, figures),
            Err(failure) => {
                let (name, is_skipped) = (row.name, failure.code == MISSING);
                let what = if is_skipped { "skipped" } else { "failed" };
                Self {
                    table: format!("{name}: {what}, {failure}\n"),
                    figures: json!({ "section": name, what: failure.to_string() }),
                    verdict: if is_skipped { Ok(()) } else { Err(failure) },
                }
            }
        }
    }

    fn judged(row: &Row, figures: Figures) -> Self {
        let Figures { title, lines, processes, note, found } = figures;
        // A figure that is missing is no number, which holds nowhere.
        let found = found.into_iter().chain(std::iter::repeat(f64::NAN));
        let bars: Vec<(&Bar, f64)> = row.bars.iter().zip(found).collect();
        let failures: Vec<String> = bars.iter().filter_map(|(bar, figure)| bar.failure(*figure)).collect();
        let verdicts: String = bars.iter().map(|(bar, figure)| bar.line(*figure)).collect();
        let tables = Line::table(&format!("{}: {title}", row.name), &lines) + &Line::table("", &processes);
        let bars: Vec<Value> = bars.iter().map(|(bar, figure)| bar.figures(*figure)).collect();
        let [sides, processes] =
            [lines, processes].map(|lines| lines.iter().map(Line::figures).collect::<Value>());
        Self {
            table: format!("{tables}{note}{verdicts}"),
            figures: json!({ "section": row.name, "sides": sides, "processes": processes, "bars": bars }),
            verdict: if failures.is_empty() { Ok(()) } else { Err(Failure::failed(failures.join("; "))) },
        }
    }
}

/// A line of a section's table: what it is of, and its values by their headings.
pub(super) struct Line {
    heading: &'static str,
    name: String,
    values: Vec<(String, f64)>,
}

impl Line {
    /// Creates a line whose first column has this heading.
    pub(super) fn new(heading: &'static str, name: impl Into<String>) -> Self {
        Self { heading, name: name.into(), values: Vec::new() }
    }

    pub(super) fn value(mut self, heading: impl Into<String>, value: f64) -> Self {
        self.values.push((heading.into(), value));
        self
    }

    fn figures(&self) -> Value {
        let values = self.values.iter().map(|(heading, value)| (heading.clone(), json!(rounded(*value))));
        Value::Object(values.chain([(self.heading.to_owned(), json!(self.name))]).collect())
    }

    /// Renders lines, which have the same columns, as text.
    fn table(title: &str, lines: &[Self]) -> String {
        let Some(first) = lines.first() else { return String::new() };
        let headings = first.values.iter().map(|(heading, _)| heading.as_str());
        let heading: Vec<&str> = [first.heading].into_iter().chain(headings).collect();
        let cells = |line: &Self| {
            let values = line.values.iter().map(|(_, value)| four_digits(*value));
            [line.name.clone()].into_iter().chain(values).collect()
        };
        render_table(title, &heading, &lines.iter().map(cells).collect::<Vec<_>>())
    }
}

/// A value with at least four digits unless it is whole, or `-` when it is unknown.
fn four_digits(value: f64) -> String {
    let before_point = value.abs().max(1.0).log10() as usize;
    let decimals = if value.fract() == 0.0 { 0 } else { 3_usize.saturating_sub(before_point) };
    if value.is_nan() { "-".to_owned() } else { format!("{value:.decimals$}") }
}

/// Rounds to three decimals, more than the precision of the measurements.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The quantile of values for a share between 0 and 1, one of the values; NaN when there is none.
pub(super) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

/// The median of values; NaN when there is none.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(&Vec::from_iter(values), 0.5)
}

/// A figure of a section, with a required bound and a goal.
#[derive(Debug)]
pub(super) struct Bar {
    /// The figure's name with its unit.
    what: &'static str,
    /// The side of the bound on which the figure must be; the bound itself holds, too.
    limit: &'static str,
    bound: f64,
    aim: f64,
}

const AT_LEAST: &str = "at least";
const AT_MOST: &str = "at most";

/// A bar for a figure that must be the bound or more.
pub(super) const fn at_least(what: &'static str, bound: f64, aim: f64) -> Bar {
    Bar { what, limit: AT_LEAST, bound, aim }
}

/// A bar for a figure that must be the bound or less.
pub(super) const fn at_most(what: &'static str, bound: f64, aim: f64) -> Bar {
    Bar { what, limit: AT_MOST, bound, aim }
}

impl Bar {
    fn holds(&self, figure: f64) -> bool {
        if self.limit == AT_LEAST { figure >= self.bound } else { figure <= self.bound }
    }

    /// The verdict as text.
    fn line(&self, figure: f64) -> String {
        let Self { what, limit, bound, aim } = self;
        let verdict = if self.holds(figure) { "holds" } else { "DOES NOT HOLD" };
        format!("{what} = {figure:.2} ({limit} {bound}, aim {aim}): {verdict}\n")
    }

    /// The verdict as JSON.
    fn figures(&self, figure: f64) -> Value {
        let Self { what, limit, bound, aim } = self;
        let (found, holds) = (rounded(figure), self.holds(figure));
        json!({ "what": what, "found": found, "bound": bound, "boundIs": limit, "aim": aim, "holds": holds })
    }

    /// The text of a bar that does not hold.
    fn failure(&self, figure: f64) -> Option<String> {
        let Self { what, limit, bound, .. } = self;
        (!self.holds(figure)).then(|| format!("{what} is {figure:.2}, {limit} {bound} is wanted"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(bars: &'static [Bar], found: &[f64]) -> Section {
        let row = Row { name: "name", about: "", bars, measure: |_| Box::pin(async { panic!() }) };
        let lines = vec![Line::new("side", "mesh").value("ms", 1.23456).value("MB", f64::NAN)];
        let (title, note, found) = ("title".to_owned(), "a note\n".to_owned(), found.to_vec());
        Section::new(&row, Ok(Figures { title, lines, note, found, ..Figures::default() }))
    }

    const AT_LEAST: &[Bar] = &[at_least("ratio", 0.5, 0.65)];
    const AT_MOST: &[Bar] = &[at_most("delay", 0.5, 0.3)];

    #[test]
    fn a_bar_holds_on_its_good_side_and_at_its_bound() {
        let verdict =
            |bars, figures: &[f64]| section(bars, figures).verdict.map_err(|error| error.to_string());
        verdict(AT_LEAST, &[0.5]).unwrap();
        verdict(AT_MOST, &[0.5]).unwrap();
        let failure = "ratio is 0.40, at least 0.5 is wanted".to_owned();
        assert_eq!(verdict(AT_LEAST, &[0.4]), Err(failure));
        verdict(AT_MOST, &[0.6]).unwrap_err();
        // A figure that is no number, or that was not found, holds nowhere.
        for bars in [AT_LEAST, AT_MOST] {
            verdict(bars, &[f64::NAN]).unwrap_err();
            verdict(bars, &[]).unwrap_err();
        }
    }

    #[test]
    fn table_and_figures_show_the_same() {
        let section = section(AT_LEAST, &[0.75]);
        let bar = "ratio = 0.75 (at least 0.5, aim 0.65): holds\n";
        assert_eq!(section.table, format!("name: title\nside     ms  MB\nmesh  1.235   -\na note\n{bar}"));
        assert_eq!(section.figures["sides"], json!([{ "side": "mesh", "ms": 1.235, "MB": null }]));
        assert_eq!(section.figures["bars"][0]["aim"], 0.65);
        let shown = [0.25, 9.9996, 10.0, 123.456, 54321.9].map(four_digits);
        assert_eq!(shown, ["0.250", "10.000", "10", "123.5", "54322"]);
    }

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let values = [5.0, 1.0, 3.0, 2.0, 4.0];
        assert_eq!([0.0, 0.5, 0.95, 1.0].map(|share| quantile(&values, share)), [1.0, 3.0, 5.0, 5.0]);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
