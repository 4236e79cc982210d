//! Bars: figures with a required bound and a goal.

use serde_json::{Value, json};

use super::section::rounded;

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
    pub(super) fn line(&self, figure: f64) -> String {
        let Self { what, limit, bound, aim } = self;
        let verdict = if self.holds(figure) { "holds" } else { "DOES NOT HOLD" };
        format!("{what} = {figure:.2} ({limit} {bound}, aim {aim}): {verdict}\n")
    }

    /// The verdict as JSON.
    pub(super) fn figures(&self, figure: f64) -> Value {
        let Self { what, limit, bound, aim } = self;
        let (found, holds) = (rounded(figure), self.holds(figure));
        json!({ "what": what, "found": found, "bound": bound, "boundIs": limit, "aim": aim, "holds": holds })
    }

    /// The text of a bar that does not hold.
    pub(super) fn failure(&self, figure: f64) -> Option<String> {
        let Self { what, limit, bound, .. } = self;
        (!self.holds(figure)).then(|| format!("{what} is {figure:.2}, {limit} {bound} is wanted"))
    }
}
