//! A download of a few megabytes over several schema versions, in dozens of ranges and from every replica
//! (X4, X4a, X6, X9).
//!
//! `MESH_TEST_EXPORT_MB` and `MESH_TEST_EXPORT_RANGES` set other numbers, such as 150 and 1000;
//! `MESH_TEST_SEED` repeats a run's random ranges.

use std::fs;

use bytes::Bytes;
use futures_util::future::join_all;
use mesh_tests::{assert_problem, env_number, is_here, members, programs::run, say};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::{HandmadeMesh, HandmadeSegments, Plan, expected, noise, *};

/// Three schema versions in seven segments, one of them without rows.
fn plans(megabytes: usize, dice: &mut SmallRng) -> Vec<Plan> {
    let sixth = (megabytes << 20) / 6;
    let plan = |(number, version): (u64, u32)| {
        let bytes = if number == 4 { 0 } else { sixth };
        Plan::new(version, number * 10 + 1, number * 10 + 10).with("trades", noise(dice, bytes))
    };
    (0..7).zip([1, 1, 1, 2, 2, 3, 3]).map(plan).collect()
}

/// The whole download, once it has been checked.
async fn whole(served: &HandmadeMesh, path: &str) -> Answer {
    let answer = served.mesh_client().get(path).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-length"), Some(&*answer.body.len().to_string()));
    assert_eq!(answer.header("repr-digest"), Some(&*history::digest(&answer.body)));
    assert!(members(&answer.body).await == expected(&served.segments.plans, "trades"));
    answer
}

#[tokio::test]
async fn ranges_of_a_large_download_make_the_whole() {
    let (megabytes, ranges) =
        (env_number("MESH_TEST_EXPORT_MB", 6), env_number("MESH_TEST_EXPORT_RANGES", 50));
    let mut dice = SmallRng::seed_from_u64(env_number("MESH_TEST_SEED", 20_230_620));
    let served = HandmadeSegments::write(plans(megabytes, &mut dice)).await.serve(3).await;
    let (mesh_client, path) = (served.mesh_client(), served.whole("trades"));
    let whole = whole(&served, &path).await;
    let (length, etag) = (whole.body.len(), whole.header("etag").unwrap());

    for _ in 0..ranges {
        let first = dice.random_range(0..length);
        let longest = [1, 100, 70_000, 3 << 20][dice.random_range(0..4)];
        let last = first + dice.random_range(0..longest);
        let end = length.min(last + 1);
        let (range, first, end) = match dice.random_range(0..8) {
            0 => (format!("bytes=-{}", last - first + 1), length.saturating_sub(last - first + 1), length),
            1 if length - first < 8 << 20 => (format!("bytes={first}-"), first, length),
            _ => (format!("bytes={first}-{last}"), first, end),
        };
        let part = mesh_client.get_with_all(&path, &[("range", &range), ("if-range", etag)]).await;
        assert_eq!(part.status, 206, "{range}: {part:?}");
        assert!(part.body == whole.body.slice(first..end), "{range}");
        assert_eq!(part.header("content-range"), Some(&*format!("bytes {first}-{}/{length}", end - 1)));
        assert_eq!(part.header("content-length"), Some(&*part.body.len().to_string()));
        assert_eq!(part.header("etag"), Some(etag));
    }

    // Every segment of a download must have its table.
    let plans = &served.segments.plans;
    let missing = mesh_client.get(&HandmadeMesh::path("deposits", plans[0].from, plans[1].to)).await;
    assert_eq!(assert_problem(&missing, 404, 5, 240_014).inner, "made-1-1-1-10.zip");

    let quarter = length.div_ceil(4);
    let quarters = (0..4).map(async |number| {
        let (first, last) = (number * quarter, ((number + 1) * quarter).min(length) - 1);
        mesh_client.get_with(&path, "range", &format!("bytes={first}-{last}")).await.body
    });
    assert!(join_all(quarters).await.concat() == whole.body, "four at a time");

    let cuts = [1, dice.random_range(0..length), length - 1];
    resume_by_curl(&format!("{}{path}", served.mesh.url()), &whole.body, &cuts).await;
    say(&format!("a download of {length} bytes: {ranges} ranges are slices of it"));
}

async fn resume_by_curl(url: &str, whole: &Bytes, cuts: &[usize]) {
    if !is_here("curl") {
        return say("skipped: curl that resumes downloads, which is not installed");
    }
    for cut in cuts {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("part.zip");
        fs::write(&file, &whole[..*cut]).unwrap();
        let arguments = ["-sS", "-f", "--noproxy", "*", "-C", "-", "-o", file.to_str().unwrap(), url];
        let arguments = arguments.map(str::to_owned);
        // The mesh's client belongs to this thread's runtime, so curl runs on another one.
        let curl = move || run("curl", &arguments.each_ref().map(String::as_str));
        tokio::task::spawn_blocking(curl).await.unwrap();
        assert!(fs::read(&file).unwrap() == *whole, "curl from byte {cut}");
    }
}
