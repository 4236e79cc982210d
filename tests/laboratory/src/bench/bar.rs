//! A figure with a required bound and a goal.

use mesh::failure::Failure;
use serde_json::{Value, json};

use super::comparison::rounded;

/// A figure, its required bound, and its goal.
pub(super) struct Bar {
    /// What the figure is, with its unit.
    pub(super) what: String,
    /// The figure.
    pub(super) found: f64,
    /// The required bound.
    pub(super) bound: Bound,
    /// The goal.
    pub(super) aim: f64,
}

/// A lower or upper bound.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    /// The figure must be the bound or more.
    AtLeast(f64),
    /// The figure must be the bound or less.
    AtMost(f64),
}

impl Bar {
    fn holds(&self) -> bool {
        match self.bound {
            Bound::AtLeast(bound) => self.found >= bound,
            Bound::AtMost(bound) => self.found <= bound,
        }
    }

    fn bound(&self) -> (&'static str, f64) {
        match self.bound {
            Bound::AtLeast(bound) => ("at least", bound),
            Bound::AtMost(bound) => ("at most", bound),
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
        let found = |found, bound| Bar { what: "ratio".into(), found, bound, aim: 0.6 }.verdict();
        found(0.5, Bound::AtLeast(0.5)).unwrap();
        found(0.5, Bound::AtMost(0.5)).unwrap();
        assert_eq!(
            found(0.4, Bound::AtLeast(0.5)).unwrap_err().to_string(),
            "ratio is 0.40, at least 0.5 is wanted"
        );
        found(0.6, Bound::AtMost(0.5)).unwrap_err();
        // A figure that is no number holds nowhere.
        found(f64::NAN, Bound::AtLeast(0.5)).unwrap_err();
        found(f64::NAN, Bound::AtMost(0.5)).unwrap_err();
    }
}
