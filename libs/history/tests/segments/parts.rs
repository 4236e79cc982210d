//! Members: their parts inflate separately, and text that is no table is refused.

use flate2::{Decompress, FlushDecompress, Status};
use mesh_history::{Encoded, HistoryError, MemberEncoder, PartIndex};
use rand::Rng;

use crate::fixture::{rng, table};

fn encode(text: &[u8], piece: usize, level: u32) -> Result<Encoded<Vec<u8>>, HistoryError> {
    let mut encoder = MemberEncoder::new("history/trades.csv", Vec::new(), level);
    text.chunks(piece).try_for_each(|piece| encoder.write(piece))?;
    encoder.finish()
}

fn inflate(encoded: &Encoded<Vec<u8>>, part: &PartIndex) -> Vec<u8> {
    let stored = &encoded.sink[part.offset as usize..][..part.stored as usize];
    let mut plain = Vec::with_capacity(part.plain as usize + 1);
    let mut inflate = Decompress::new(false);
    let status = inflate.decompress_vec(stored, &mut plain, FlushDecompress::Sync).unwrap();
    assert_ne!(status, Status::StreamEnd);
    assert_eq!(inflate.total_in(), part.stored);
    assert_eq!((plain.len() as u64, crc32fast::hash(&plain)), (part.plain, part.crc32));
    assert_eq!(crc32c::crc32c(stored), part.crc32c);
    let blocks: Vec<u32> = stored.chunks(512 << 10).map(crc32c::crc32c).collect();
    assert_eq!(blocks, part.blocks);
    plain
}

#[test]
fn each_part_inflates_by_itself_at_every_level() {
    let mut rng = rng(51);
    let columns = ["id", "a_rather_long_name_of_a_column"];
    let header = columns.join(",").into_bytes();
    let noise: Vec<u8> = (0..300_000).map(|_| rng.random_range(b'#'..=b'~')).collect();
    let texts = [
        table(&mut rng, &columns, 3000, 900),
        [&header[..], b"\n", &header, b"\n", &header, b"\n"].concat(),
        [&header[..], b"\n", &header, &noise, b"\n"].concat(),
    ];
    for text in texts {
        for level in 0..=9 {
            let encoded = encode(&text, 4096, level).unwrap();
            let index = &encoded.index;
            let (header, rows) = (inflate(&encoded, &index.header), inflate(&encoded, &index.rows));
            assert_eq!([header, rows].concat(), text);
            assert_eq!(encoded.sink.len() as u64, index.header.stored + index.rows.stored + 2);
            assert!(encoded.sink.ends_with(&[3, 0]));
            assert_eq!(encoded.metadata.columns, columns);
        }
    }
}

#[test]
fn the_stored_bytes_do_not_depend_on_the_pieces() {
    let text = table(&mut rng(52), &["id", "note"], 2000, 900);
    let whole = encode(&text, text.len(), 3).unwrap();
    for piece in [1, 77, 65_536, 131_072, 131_073] {
        let pieces = encode(&text, piece, 3).unwrap();
        assert!(pieces.sink == whole.sink && pieces.index == whole.index, "{piece}");
    }
}

#[test]
fn what_is_no_table_is_refused() {
    for (text, what) in [
        (&b""[..], "history/trades.csv: there is no header record"),
        (b"id,\"note\n1,2\n", "history/trades.csv: a quoted value has no end"),
        (b"id,\"note\"x\n1,2\n", "history/trades.csv: a quote is not allowed here"),
        (b"id\n1\n\"2", "history/trades.csv: a quoted value has no end"),
        (&[b'a'; 70_000], "history/trades.csv: the header record is longer than 65536 bytes"),
    ] {
        let error = encode(text, 5, 3).unwrap_err();
        let HistoryError::Csv { member, source } = error else { panic!("{error}") };
        assert_eq!(format!("{member}: {source}"), what);
    }
}
