//! A figure with a required bound and a goal.

use mesh::failure::Failure;
use serde_json::{Value, json};

use super::contest::rounded;

/// A figure, its required bound, and its goal.
pub(super) struct Bar {
    /// What the figure is, with its unit.
    pub(super) what: String,
    /// The figure.
    pub(super) found: f64,
    /// The required bound.
    pub(super) must: Must,
    /// The goal.
    pub(super) aim: f64,
}

/// A lower or upper bound.
#[derive(Clone, Copy, Debug)]
pub(super) enum Must {
    /// The figure must be the bound or more.
    Reach(f64),
    /// The figure must be the bound or less.
    Keep(f64),
}

impl Bar {
    fn holds(&self) -> bool {
        match self.must {
            Must::Reach(bound) => self.found >= bound,
            Must::Keep(bound) => self.found <= bound,
        }
    }

    fn bound(&self) -> (&'static str, f64) {
        match self.must {
            Must::Reach(bound) => ("at least", bound),
            Must::Keep(bound) => ("at most", bound),
        }
    }

    /// The bar as a line of text.
    pub(super) fn line(&self) -> String {
        let (which, bound) = self.bound();
        let verdict = if self.holds() { "holds" } else { "DOES NOT HOLD" };
        format!("{} = {:.2} ({which} {bound}, aim {}): {verdict}\n", self.what, self.found, self.aim)
    }

    /// The bar as JSON.
    pub(super) fn figures(&self) -> Value {
        let (which, bound) = self.bound();
        json!({
            "what": self.what, "found": rounded(self.found), "bound": bound, "boundIs": which, "aim": self.aim,
            "holds": self.holds(),
        })
    }

    /// An error when the bar does not hold.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        if self.holds() {
            return Ok(());
        }
        let (which, bound) = self.bound();
        Err(Failure::failed(format!("{} is {:.2}, {which} {bound} is wanted", self.what, self.found)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_holds_on_its_good_side_and_at_its_bound() {
        let found = |found, must| Bar { what: "ratio".into(), found, must, aim: 0.6 }.verdict();
        found(0.5, Must::Reach(0.5)).unwrap();
        found(0.5, Must::Keep(0.5)).unwrap();
        assert_eq!(
            found(0.4, Must::Reach(0.5)).unwrap_err().to_string(),
            "ratio is 0.40, at least 0.5 is wanted"
        );
        found(0.6, Must::Keep(0.5)).unwrap_err();
        // A figure that is no number holds nowhere.
        found(f64::NAN, Must::Reach(0.5)).unwrap_err();
        found(f64::NAN, Must::Keep(0.5)).unwrap_err();
    }
}
