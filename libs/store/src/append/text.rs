//! Rows in the text form of COPY: one line each, so that PostgreSQL's line numbers are those of the rows.

/// The rows of one table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopyText {
    text: Vec<u8>,
    rows: u64,
    is_open: bool,
}

impl CopyText {
    /// Adds the next cell of the current row; `None` is NULL.
    pub fn cell(&mut self, value: Option<&str>) {
        if std::mem::replace(&mut self.is_open, true) {
            self.text.push(b'\t');
        }
        let Some(value) = value else { return self.text.extend_from_slice(br"\N") };
        for byte in value.bytes() {
            match byte {
                b'\\' => self.text.extend_from_slice(br"\\"),
                b'\n' => self.text.extend_from_slice(br"\n"),
                b'\r' => self.text.extend_from_slice(br"\r"),
                b'\t' => self.text.extend_from_slice(br"\t"),
                byte => self.text.push(byte),
            }
        }
    }

    /// Ends the current row.
    pub fn end_row(&mut self) {
        self.text.push(b'\n');
        self.rows += 1;
        self.is_open = false;
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The text.
    pub fn bytes(&self) -> &[u8] {
        &self.text
    }

    /// A cell as it was added; `None` when it is NULL or there is none.
    pub(super) fn value(&self, row: usize, column: usize) -> Option<String> {
        read_cell(self.lines().nth(row)?.split(is_tab).nth(column)?)
    }

    /// The cells of this many columns, by column, as they were added.
    pub(super) fn columns(&self, number: usize) -> Vec<Vec<Option<String>>> {
        let mut columns = vec![Vec::new(); number];
        for line in self.lines() {
            for (column, cell) in columns.iter_mut().zip(line.split(is_tab)) {
                column.push(read_cell(cell));
            }
        }
        columns
    }

    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        // The part after the last line's end is none.
        self.text.split(|byte| *byte == b'\n').take(usize::try_from(self.rows).unwrap_or(usize::MAX))
    }
}

fn is_tab(byte: &u8) -> bool {
    *byte == b'\t'
}

fn read_cell(cell: &[u8]) -> Option<String> {
    let cell = std::str::from_utf8(cell).ok()?;
    if cell == r"\N" {
        return None;
    }
    let (mut value, mut letters) = (String::new(), cell.chars());
    while let Some(letter) = letters.next() {
        value.push(match letter {
            '\\' => match letters.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                letter => letter,
            },
            letter => letter,
        });
    }
    Some(value)
}
