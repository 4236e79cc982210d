//! Reading with replicas that work: the whole, a part, refusals, totals.

use super::*;

#[tokio::test]
async fn a_stream_arrives_whole_and_an_empty_one_too() {
    for length in [0, 1, 64 << 10, (64 << 10) + 1, 12 * MIB + 17] {
        let (server, source, replica) = served(Source::of(length)).await;
        let mut pulled = Reader::connect(&server).await.pull("plain", PullLimits::default()).await;
        read_on(&mut pulled, Vec::new(), &source).await;
        assert!(pulled.next().await.is_none(), "it stays over");
        replica.die();
    }
}

#[tokio::test]
async fn a_part_is_read_from_its_first_byte_to_its_last() {
    let (server, source, replica) = served(Source::of(5 * MIB)).await;
    let reader = Reader::connect(&server).await;
    for (from, to) in [(0, 1), (70_000, 2_000_001), (5 * MIB - 1, 5 * MIB), (7, 7)] {
        let (request, opened) = reader.open("plain", from as u64).await.unwrap();
        let options = PullOptions { to_byte: Some(to as u64), ..PullOptions::default() };
        let mut pulled = reader.bus.pull(&reader.target, request, &opened, options).await.unwrap();
        let (part, _, problem) = read(&mut pulled, usize::MAX).await;
        assert_eq!(problem, None);
        assert!(part == source.bytes[from..to], "{from}..{to}: {} bytes", part.len());
    }
    assert!(source.given.load(Ordering::SeqCst) < 3 * MIB as u64, "not more was read than was wanted");
    replica.die();
}

#[tokio::test]
async fn what_can_be_refused_is_refused_at_the_opening() {
    let (server, _, replica) = served(Source::of(1)).await;
    let problem = Reader::connect(&server).await.open("nobody", 0).await.unwrap_err();
    assert_eq!(problem, Problem::invalid(10013, "no such party"));
    replica.die();
}

#[tokio::test]
async fn totals_that_do_not_agree_break_the_stream_before_its_last_bytes() {
    let length = 3 * MIB;
    let totals = Totals { bytes: length as u64 + 1, rows: None };
    for announced in [None, Some(length as u64)] {
        let source = Source { announced, totals, ..Source::of(length) };
        let (server, source, replica) = served(source).await;
        let mut pulled = Reader::connect(&server).await.pull("plain", PullLimits::default()).await;
        let (read, _, problem) = read(&mut pulled, usize::MAX).await;
        assert_eq!(problem.unwrap().code, Code::Internal);
        assert!(read.len() < length && source.bytes.starts_with(&read));
        assert!(pulled.next().await.is_none());
        replica.die();
    }
}
