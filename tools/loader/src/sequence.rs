//! The sequence of blocks in a CSV text.

use mesh_store::blocks::BlockFault;

/// Checks blocks one after the other, as texts of a CSV. It finds every fault of blocks that come by rising
/// height with times as PostgreSQL prints them in UTC, and knows when it cannot tell.
#[derive(Debug, Default)]
pub(crate) struct BlockSequence {
    height: Option<i64>,
    time: Vec<u8>,
    /// A height did not rise, so that gaps cannot be seen.
    is_unordered: bool,
    /// A time has another form.
    is_untimed: bool,
}

impl BlockSequence {
    /// The sequence behind a stored block, whose time is a text of PostgreSQL in UTC.
    pub(crate) fn after(head: Option<(i64, String)>) -> Self {
        let (height, time) = head.unzip();
        Self { height, time: time.unwrap_or_default().into_bytes(), ..Self::default() }
    }

    pub(crate) fn is_ordered(&self) -> bool {
        !self.is_unordered
    }

    /// Whether the database must check the stored rows.
    pub(crate) fn is_unsure(&self) -> bool {
        self.is_unordered || self.is_untimed
    }

    pub(crate) fn check(&mut self, height: &[u8], time: &[u8]) -> Result<(), BlockFault> {
        let height = std::str::from_utf8(height).ok().and_then(|text| text.trim().parse().ok());
        let Some(height) = height.filter(|height| self.height.is_none_or(|before| before < *height)) else {
            // A height that is no number, or there already, COPY refuses.
            self.is_unordered = true;
            return Ok(());
        };
        if let Some(before) = self.height.replace(height)
            && !self.is_unordered
            && let Some(missing) = BlockFault::between(before, height)
        {
            return Err(missing);
        }
        let time = utc(time).unwrap_or_default();
        self.is_untimed |= time.is_empty();
        // Such texts sort like their times.
        if !self.is_unsure() && time <= &self.time[..] {
            return Err(BlockFault::NotLater { height });
        }
        self.time.clear();
        self.time.extend_from_slice(time);
        Ok(())
    }
}

/// A time of four-digit years as PostgreSQL prints it in UTC: `2023-06-20 10:31:20[.fraction]+00`.
fn utc(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii();
    let plain = text.strip_suffix(b"+00")?;
    let (date, rest) = plain.split_at_checked(19)?;
    let fits = |(shape, byte): (&u8, &u8)| if *shape == b'0' { byte.is_ascii_digit() } else { shape == byte };
    let is_date = b"0000-00-00 00:00:00".iter().zip(date).all(fits);
    let is_fraction = rest.is_empty() || rest[0] == b'.' && rest[1..].iter().all(u8::is_ascii_digit);
    (is_date && is_fraction).then_some(text)
}
