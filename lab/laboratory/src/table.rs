//! A plain table, columns as wide as their widest cell.

/// Renders a title, a heading and rows as text; the first column is left-aligned, all others right-aligned.
pub(crate) fn render_table(title: &str, heading: &[&str], rows: &[Vec<String>]) -> String {
    let heading: Vec<String> = heading.iter().map(|&cell| cell.to_owned()).collect();
    let lines = || std::iter::once(&heading).chain(rows);
    let widths: Vec<usize> = (0..heading.len())
        .map(|column| lines().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max())
        .map(Option::unwrap_or_default)
        .collect();
    let mut text = format!("{title}\n");
    for line in lines() {
        for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            if column == 0 {
                text.push_str(&format!("{cell:<width$}"));
            } else {
                text.push_str(&format!("  {cell:>width$}"));
            }
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["first page".to_owned(), "9".to_owned()], vec!["é".to_owned(), "1000".to_owned()]];
        let text = render_table("Title", &["what", "ms"], &rows);
        assert_eq!(text, "Title\nwhat          ms\nfirst page     9\né           1000\n");
    }
}
