//! What was said of a transaction against what is true of it.

use super::clients::{Submitted, Told};

/// What is true of a transaction, and what the gateway says of it, when all is over.
pub(super) struct Truth {
    /// Whether a block has it.
    pub(super) is_included: bool,
    /// The `status` of `GET /transaction/{hash}`, or what came instead.
    pub(super) status: Result<String, String>,
}

/// Which kinds of contradiction there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contradiction {
    /// Two answers do not agree with each other.
    Answers,
    /// The chain has what was called refused, or not handed over.
    Chain,
    /// What is said of it afterwards is not so.
    Status,
    /// A client was told something that is no answer.
    Form,
}

/// What contradicts.
pub(super) fn contradictions(submitted: &Submitted, truth: &Truth) -> Vec<Contradiction> {
    let Submitted { told, is_bad, .. } = submitted;
    let Truth { is_included, status } = truth;
    let mut found = Vec::new();
    let mut verdicts: Vec<&Told> = told
        .iter()
        .filter(|told| match told {
            // That it was handed over unchecked is no verdict on what the check refuses later.
            Told::Accepted => !is_bad,
            Told::Refused(_) => true,
            _ => false,
        })
        .collect();
    verdicts.sort_unstable();
    verdicts.dedup();
    if verdicts.len() > 1 {
        found.push(Contradiction::Answers);
    }
    let says_refused = told.iter().any(|told| matches!(told, Told::Refused(_)));
    let says_never_sent = told.iter().all(|told| matches!(told, Told::NotTaken(_)));
    if *is_included && (says_refused || says_never_sent) {
        found.push(Contradiction::Chain);
    }
    let is_true = match status.as_deref() {
        Ok("INCLUDED") => *is_included,
        Ok("REFUSED") => !is_included && *is_bad,
        Ok("PENDING" | "UNKNOWN") => !is_included,
        _ => false,
    };
    if !is_true {
        found.push(Contradiction::Status);
    }
    if told.iter().any(|told| matches!(told, Told::Other(_))) {
        found.push(Contradiction::Form);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use mesh_transaction::TxHash;

    fn found(told: &[Told], is_bad: bool, is_included: bool, status: &str) -> Vec<Contradiction> {
        let submitted = Submitted { hash: TxHash::of(b"a"), is_bad, told: told.to_vec() };
        contradictions(&submitted, &Truth { is_included, status: Ok(status.to_owned()) })
    }

    #[test]
    fn answers_agree_with_each_other_and_with_the_chain() {
        use Contradiction::{Answers, Chain, Form, Status};
        use Told::{Accepted, Left, NotTaken, Other, Refused, Unknown};
        assert!(found(&[Accepted, Unknown, Left, NotTaken(503)], false, true, "INCLUDED").is_empty());
        // A killed node loses what it had accepted.
        assert!(found(&[Accepted, Unknown], false, false, "PENDING").is_empty());
        assert!(found(&[Accepted, Refused(89)], true, false, "REFUSED").is_empty());
        assert_eq!(found(&[Accepted, Refused(51)], false, false, "PENDING"), [Answers]);
        assert_eq!(found(&[Refused(51), Refused(89)], true, false, "REFUSED"), [Answers]);
        assert_eq!(found(&[Refused(51)], false, true, "INCLUDED"), [Chain]);
        assert_eq!(found(&[NotTaken(503)], false, true, "INCLUDED"), [Chain]);
        assert_eq!(found(&[Accepted], false, true, "PENDING"), [Status]);
        assert_eq!(found(&[Accepted], false, false, "INCLUDED"), [Status]);
        assert_eq!(found(&[Accepted], false, false, "REFUSED"), [Status]);
        assert_eq!(found(&[Other(String::new())], false, false, "UNKNOWN"), [Form]);
    }
}
