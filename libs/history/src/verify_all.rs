//! Verification of a whole history: every byte of every segment, its blocks, and the chain that they form.

use std::sync::Arc;

use crate::{
    chain::Fault,
    error::HistoryError,
    name::SegmentName,
    segment::{Segment, SegmentList},
    store::SegmentStore,
};

/// The result of a verification.
#[derive(Debug)]
pub struct Verification {
    /// All faults, by rising height.
    pub faults: Vec<Fault>,
    /// The segments without faults of their own.
    pub sound: Vec<Arc<Segment>>,
    /// Whether the first segment has a previous one that is not in the store.
    pub begins_late: bool,
    /// ZIP files that were not verified, sorted: segments of other chains, and files that are not named as
    /// segments.
    pub others: Vec<String>,
}

impl SegmentStore {
    /// Verifies all segments of a chain, by default of the one with most segments, and how they follow each
    /// other. `progress` is called before each segment is read, with its name, its number from 1, and the
    /// number of segments. The retention may remove the oldest segments meanwhile.
    ///
    /// # Errors
    ///
    /// The object store fails or is late. Damage to single segments is among the faults.
    pub async fn verify_all(
        &self,
        chain_id: Option<&str>,
        progress: impl FnMut(&SegmentName, usize, usize),
    ) -> Result<Verification, HistoryError> {
        let list = self.list().await?;
        // Without a readable segment every file counts.
        let chain_id = chain_id.map(str::to_owned).or_else(|| list.main_chain());
        let of_chain = |list: SegmentList| match &chain_id {
            Some(chain_id) => list.of_chain(chain_id),
            None => (list, Vec::new()),
        };
        let (SegmentList { segments, unreadable }, others) = &of_chain(list);
        let mut faults = Vec::new();
        for unreadable in unreadable {
            faults.push((unreadable.name.clone(), fault(&unreadable.name, &unreadable.error)?));
        }
        let (sound, gone) = self.verify_each(segments, progress, &mut faults).await?;
        let (list, _) = of_chain(self.list().await?);
        let names = list.segments.iter().map(|segment| &segment.name);
        let oldest = names.chain(list.unreadable.iter().map(|unreadable| &unreadable.name)).min();
        for name in gone.into_iter().filter(|name| oldest.is_none_or(|oldest| name > oldest)) {
            let fault = Fault::of(&name, "it is not there any more");
            faults.push((name, fault));
        }
        for fault in list.chain_faults() {
            let name = SegmentName::parse(&fault.object);
            faults.extend(name.map(|name| (name, fault)));
        }
        faults.sort_by(|(a, _), (b, _)| a.cmp(b));
        let faults = faults.into_iter().map(|(_, fault)| fault).collect();
        let begins_late = list.segments.first().is_some_and(|first| {
            let is_first = list.unreadable.iter().all(|other| other.name > first.name);
            is_first && first.previous_id.is_some()
        });
        let mut others: Vec<String> = others.iter().map(ToString::to_string).collect();
        others.extend(self.list_misnamed().await?);
        others.sort();
        Ok(Verification { faults, sound, begins_late, others })
    }

    /// Verifies each segment by itself and adds what is wrong to `faults`. Returns the segments without faults, and the
    /// names of those that are gone.
    ///
    /// # Errors
    ///
    /// The object store is late.
    async fn verify_each(
        &self,
        segments: &[Arc<Segment>],
        mut progress: impl FnMut(&SegmentName, usize, usize),
        faults: &mut Vec<(SegmentName, Fault)>,
    ) -> Result<(Vec<Arc<Segment>>, Vec<SegmentName>), HistoryError> {
        let (mut sound, mut gone) = (Vec::with_capacity(segments.len()), Vec::new());
        for (number, segment) in (1..).zip(segments) {
            progress(&segment.name, number, segments.len());
            match self.verify(&segment.name).await {
                Ok(verified) if verified == **segment => sound.push(Arc::clone(segment)),
                Ok(_) => {
                    let what = "it was replaced while it was verified";
                    faults.push((segment.name.clone(), Fault::of(&segment.name, what)));
                }
                Err(HistoryError::Gone { .. }) => gone.push(segment.name.clone()),
                Err(error) => faults.push((segment.name.clone(), fault(&segment.name, &error)?)),
            }
        }
        Ok((sound, gone))
    }
}

/// The fault of a segment. An error when the object store is late, which is no fault.
fn fault(name: &SegmentName, error: &HistoryError) -> Result<Fault, HistoryError> {
    match error {
        HistoryError::Damaged { what, .. } => Ok(Fault::of(name, what.clone())),
        HistoryError::Late { object, after } => {
            Err(HistoryError::Late { object: object.clone(), after: *after })
        }
        other => Ok(Fault::of(name, format!("it cannot be read ({other})"))),
    }
}
