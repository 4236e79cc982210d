//! The readers of `metadata.json`, `layout.json` and the CSV dialect do not panic on any bytes, and the
//! result does not depend on how the input is cut into pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mesh_history::{Metadata, RecordSplitter, SegmentIndex, fields};

fuzz_target!(|input: &[u8]| {
    let Some((&[first, second], text)) = input.split_first_chunk::<2>() else { return };
    records(text, usize::from(first) + 1);
    let (left, right) = text.split_at(text.len().min(usize::from(u16::from_le_bytes([first, second]))));
    if let Ok(metadata) = Metadata::read(left) {
        let again = serde_json::to_vec(&metadata).expect("metadata is plain JSON");
        assert_eq!(Metadata::read(&again).as_ref(), Ok(&metadata));
        if let Ok(index) = SegmentIndex::read(right, &metadata) {
            let again = serde_json::to_vec(&index).expect("an index is plain JSON");
            assert_eq!(SegmentIndex::read(&again, &metadata), Ok(index));
        }
    }
});

/// Ends of records do not depend on the pieces; each record's fields, written again, read back.
fn records(text: &[u8], piece: usize) {
    let (mut whole, mut ends, mut at) = (RecordSplitter::default(), Vec::new(), 0);
    while let Some(length) = whole.end(&text[at..]) {
        at += length;
        ends.push(at);
    }
    let (mut cut, mut found, mut start) = (RecordSplitter::default(), Vec::new(), 0);
    for bytes in text.chunks(piece) {
        let mut taken = 0;
        while let Some(length) = cut.end(&bytes[taken..]) {
            taken += length;
            found.push(start + taken);
        }
        start += bytes.len();
    }
    assert_eq!(found, ends);
    assert_eq!(cut.finish(), whole.finish());
    let mut from = 0;
    for end in ends {
        let record = &text[from..end];
        from = end;
        let Ok(values) = fields(record).collect::<Result<Vec<_>, _>>() else { continue };
        let written = values.iter().map(|value| match value {
            None => Vec::new(),
            Some(value) => {
                let doubled: Vec<u8> =
                    value.iter().flat_map(|b| [*b].repeat(if *b == b'"' { 2 } else { 1 })).collect();
                [b"\"", &doubled[..], b"\""].concat()
            }
        });
        let written = written.collect::<Vec<_>>().join(&b","[..]);
        assert_eq!(fields(&written).collect::<Result<Vec<_>, _>>().as_ref(), Ok(&values));
    }
}
