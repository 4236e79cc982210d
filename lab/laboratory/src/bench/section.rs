//! The results of a section: a table, the same figures as JSON, and bars with a required bound and a goal.

use mesh::failure::Failure;
use serde_json::{Map, Value, json};

use super::sections::{Bar, Limit, SectionName};
use crate::table::render_table;

/// The results of a section.
pub(super) struct Section {
    /// The table as text, with the bars below it.
    pub(super) table: String,
    /// The same as JSON.
    pub(super) figures: Value,
    /// An error when a bar does not hold.
    pub(super) verdict: Result<(), Failure>,
}

impl Section {
    /// Creates a section from the lines of its table, a note below the table, and what was found for each of
    /// its bars: the figure's name with its unit, and the figure.
    pub(super) fn new(
        name: SectionName,
        title: &str,
        lines: &[Line],
        note: &str,
        found: &[(String, f64)],
    ) -> Self {
        // A figure that is missing is no number, which holds nowhere.
        let found = found.iter().cloned().chain(std::iter::repeat(("figure".to_owned(), f64::NAN)));
        let bars: Vec<Found> = name
            .bars()
            .into_iter()
            .zip(found)
            .map(|(bar, (what, figure))| Found { what, figure, bar })
            .collect();
        let failures: Vec<String> = bars.iter().filter_map(Found::failure).collect();
        let sides: Vec<&Map<String, Value>> = lines.iter().map(|line| &line.figures).collect();
        let figures: Vec<Value> = bars.iter().map(Found::figures).collect();
        let mut figures = json!({ "section": name.to_string(), "sides": sides, "bars": figures });
        if let [bar] = &bars[..] {
            figures["bar"] = bar.figures();
        }
        let bars: String = bars.iter().map(Found::line).collect();
        Self {
            table: format!("{}{note}{bars}", Line::table(title, lines)),
            figures,
            verdict: if failures.is_empty() { Ok(()) } else { Err(Failure::failed(failures.join("; "))) },
        }
    }

    /// Adds a figure that is no bar and of no side.
    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.figures[key] = value.into();
        self
    }

    /// A section that cannot run on this machine.
    pub(super) fn skipped(name: SectionName, why: &str) -> Self {
        Self {
            table: format!("{name}: skipped, {why}\n"),
            figures: json!({ "section": name.to_string(), "skipped": why }),
            verdict: Ok(()),
        }
    }

    /// A section that failed without figures.
    pub(super) fn failed(name: SectionName, failure: Failure) -> Self {
        Self {
            table: format!("{name}: failed, {failure}\n"),
            figures: json!({ "section": name.to_string(), "failed": failure.to_string() }),
            verdict: Err(failure),
        }
    }
}

/// One side of a section: a line of its table, and an object of its figures.
pub(super) struct Line {
    cells: Vec<(String, String)>,
    figures: Map<String, Value>,
}

impl Line {
    /// Creates a line whose first column has this heading.
    pub(super) fn new(heading: &str, name: &str) -> Self {
        Self { cells: Vec::new(), figures: Map::new() }.cell(heading, name).figure("side", name)
    }

    /// Adds a column that the figures do not have.
    pub(super) fn cell(mut self, heading: &str, text: impl Into<String>) -> Self {
        self.cells.push((heading.to_owned(), text.into()));
        self
    }

    /// Adds a figure that the table does not have.
    pub(super) fn figure(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.figures.insert(key.to_owned(), value.into());
        self
    }

    /// Adds a value under a heading in the table, with this number of decimals, and under a key in the
    /// figures.
    pub(super) fn value(
        self,
        (heading, key): (&str, &str),
        decimals: usize,
        value: impl Into<Option<f64>>,
    ) -> Self {
        let value = value.into();
        self.cell(heading, decimal(value, decimals)).figure(key, value.map(rounded))
    }

    /// Renders lines, which have the same columns, as text.
    pub(super) fn table(title: &str, lines: &[Self]) -> String {
        let first = lines.first().map(|line| line.cells.as_slice()).unwrap_or_default();
        let heading: Vec<&str> = first.iter().map(|(heading, _)| heading.as_str()).collect();
        let cells = |line: &Self| line.cells.iter().map(|(_, text)| text.clone()).collect();
        render_table(title, &heading, &lines.iter().map(cells).collect::<Vec<_>>())
    }
}

/// A bar and the figure that was found for it.
struct Found {
    what: String,
    figure: f64,
    bar: Bar,
}

impl Found {
    fn holds(&self) -> bool {
        match self.bar.limit {
            Limit::AtLeast => self.figure >= self.bar.bound,
            Limit::AtMost => self.figure <= self.bar.bound,
        }
    }

    fn which(&self) -> &'static str {
        match self.bar.limit {
            Limit::AtLeast => "at least",
            Limit::AtMost => "at most",
        }
    }

    fn line(&self) -> String {
        let (which, Bar { bound, aim, .. }) = (self.which(), self.bar);
        let verdict = if self.holds() { "holds" } else { "DOES NOT HOLD" };
        format!("{} = {:.2} ({which} {bound}, aim {aim}): {verdict}\n", self.what, self.figure)
    }

    fn figures(&self) -> Value {
        json!({
            "what": self.what, "found": rounded(self.figure), "bound": self.bar.bound, "boundIs": self.which(),
            "aim": self.bar.aim, "holds": self.holds(),
        })
    }

    /// The text of a bar that does not hold.
    fn failure(&self) -> Option<String> {
        let (which, bound) = (self.which(), self.bar.bound);
        let text = || format!("{} is {:.2}, {which} {bound} is wanted", self.what, self.figure);
        (!self.holds()).then(text)
    }
}

/// A value with this number of decimals, or `-` when it is unknown.
pub(super) fn decimal(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
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

/// The median of values; `None` when one is unknown.
pub(super) fn median_if_known(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    values.into_iter().collect::<Option<Vec<f64>>>().map(median)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(name: SectionName, figures: &[f64]) -> Section {
        let found: Vec<_> = figures.iter().map(|figure| ("ratio".to_owned(), *figure)).collect();
        let line = Line::new("side", "mesh").value(("ms", "tookMs"), 1, 1.23456).cell("least", "1");
        Section::new(name, "title", &[line.figure("rounds", 3)], "a note\n", &found)
    }

    #[test]
    fn a_bar_holds_on_its_good_side_and_at_its_bound() {
        let verdict = |name, figure| section(name, &[figure]).verdict.map_err(|error| error.to_string());
        verdict(SectionName::Point, 0.5).unwrap();
        verdict(SectionName::SubmitHop, 0.5).unwrap();
        let failure = "ratio is 0.40, at least 0.5 is wanted".to_owned();
        assert_eq!(verdict(SectionName::Point, 0.4), Err(failure));
        verdict(SectionName::SubmitHop, 0.6).unwrap_err();
        // A figure that is no number, or that was not found, holds nowhere.
        verdict(SectionName::Point, f64::NAN).unwrap_err();
        verdict(SectionName::SubmitHop, f64::NAN).unwrap_err();
        section(SectionName::Splice, &[9.0]).verdict.unwrap_err();
        section(SectionName::Splice, &[9.0, 9.0]).verdict.unwrap();
    }

    #[test]
    fn table_and_figures_show_the_same() {
        let section = section(SectionName::Point, &[0.75]).with("runs", 7);
        let bar = "ratio = 0.75 (at least 0.5, aim 0.65): holds\n";
        assert_eq!(section.table, format!("title\nside   ms  least\nmesh  1.2      1\na note\n{bar}"));
        let side = json!({ "side": "mesh", "tookMs": 1.235, "rounds": 3 });
        assert_eq!(section.figures["sides"], json!([side]));
        assert_eq!((&section.figures["bar"]["aim"], &section.figures["runs"]), (&json!(0.65), &json!(7)));
    }

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let values = [5.0, 1.0, 3.0, 2.0, 4.0];
        assert_eq!([0.0, 0.5, 0.95, 1.0].map(|share| quantile(&values, share)), [1.0, 3.0, 5.0, 5.0]);
        assert!(quantile(&[], 0.5).is_nan());
        assert_eq!(median_if_known([Some(1.0), None]), None);
    }
}
