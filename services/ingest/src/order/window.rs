//! How much is asked for at the same time.

/// A number of requests at the same time. Begins with one: the size of blocks is not known before the first one.
/// Halved for each that is not answered: a slow node or decoder would otherwise answer all of them too late, and never get on.
/// It grows by one for each answer, then by one for as many as there are at the same time.
#[derive(Debug)]
pub(super) struct Window {
    size: f64,
    was_halved: bool,
}

impl Window {
    pub(super) const ONE: Self = Self { size: 1.0, was_halved: false };

    pub(super) fn size(&self) -> usize {
        self.size as usize
    }

    pub(super) fn widen(&mut self, most: usize) {
        let more = if self.was_halved { 1.0 / self.size } else { 1.0 };
        self.size = (self.size + more).min(most as f64);
    }

    pub(super) fn halve(&mut self) {
        *self = Self { size: (self.size / 2.0).max(1.0), was_halved: true };
    }
}
