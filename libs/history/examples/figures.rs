//! What the history costs on this machine: deflating, verifying, laying out 1,000 segments, reading. Prints
//! figures; asserts nothing about them.

use std::{
    error::Error,
    fs::File,
    io::BufWriter,
    time::{Duration, Instant},
};

use mesh_history::{
    DEFAULT_LEVEL, Deadlines, Layout, SegmentStore, Span, StagedMember, TABLES, assemble, verify_file,
};
use rand::{Rng, SeedableRng, rngs::SmallRng};

const SEGMENTS: u64 = 1000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut dice = SmallRng::seed_from_u64(1);
    let text = trades(&mut dice, 100_000);

    for level in [1, DEFAULT_LEVEL, 6] {
        let started = Instant::now();
        let mut member = StagedMember::new("history/trades.csv", level, folder.path())?;
        text.chunks(256 << 10).try_for_each(|piece| member.write(piece))?;
        let ready = member.finish()?;
        let spent = started.elapsed();
        let mut file = BufWriter::new(File::create(folder.path().join("one.zip"))?);
        let (name, _) = assemble(&span(1), vec![ready], &mut file)?;
        drop(file);
        let stored = std::fs::metadata(folder.path().join("one.zip"))?.len();
        let started = Instant::now();
        verify_file(&name, &folder.path().join("one.zip"))?;
        let verified = started.elapsed();
        println!(
            "level {level}: deflate {:.0} MB/s of CSV to {:.3}, verify {:.0} MB/s of CSV",
            rate(text.len(), spent),
            stored as f64 / text.len() as f64,
            rate(text.len(), verified)
        );
    }

    let root = folder.path().join("history");
    let store = SegmentStore::open(&root.to_string_lossy(), Deadlines::default())?;
    let small = trades(&mut dice, 200);
    for number in 0..SEGMENTS {
        let mut members = Vec::new();
        for table in TABLES {
            let mut member =
                StagedMember::new(&format!("history/{table}.csv"), DEFAULT_LEVEL, folder.path())?;
            member.write(&small)?;
            members.push(member.finish()?);
        }
        let path = folder.path().join("segment.zip");
        let (name, _) = assemble(&span(number), members, &mut BufWriter::new(File::create(&path)?))?;
        // As publishing does, without waiting for the disk a thousand times.
        std::fs::create_dir_all(root.join("segments"))?;
        std::fs::rename(path, root.join("segments").join(name.to_string()))?;
    }
    for round in ["cold", "warm"] {
        let started = Instant::now();
        let held = store.held().await?;
        println!("listing {} segments, {round}: {:?}", held.segments.len(), started.elapsed());
    }
    let held = store.held().await?;
    let mut spent: Vec<Duration> = Vec::new();
    for _ in 0..101 {
        let started = Instant::now();
        Layout::of(&held, "trades", 1, SEGMENTS * 1000)?;
        spent.push(started.elapsed());
    }
    spent.sort_unstable();
    println!("layout of {SEGMENTS} segments: median {:?}, worst {:?}", spent[50], spent[100]);

    let mut file = BufWriter::new(File::create(folder.path().join("large.zip"))?);
    let mut member = StagedMember::new("history/trades.csv", 1, folder.path())?;
    for _ in 0..10 {
        text.chunks(256 << 10).try_for_each(|piece| member.write(piece))?;
    }
    let (name, _) = assemble(&span(SEGMENTS), vec![member.finish()?], &mut file)?;
    drop(file);
    std::fs::rename(folder.path().join("large.zip"), root.join("segments").join(name.to_string()))?;
    let held = store.held().await?;
    let layout = Layout::of(&held, "trades", SEGMENTS * 1000 + 1, SEGMENTS * 1000 + 1000)?;
    for max in [64 << 10, 512 << 10, 4 << 20] {
        let (started, mut at) = (Instant::now(), 0);
        while at < layout.length {
            at += store.read(&layout, at, max).await?.len() as u64;
        }
        println!("reading {at} bytes by {} KiB: {:.0} MB/s", max >> 10, rate(at as usize, started.elapsed()));
    }
    Ok(())
}

fn rate(bytes: usize, spent: Duration) -> f64 {
    bytes as f64 / 1e6 / spent.as_secs_f64()
}

fn span(number: u64) -> Span {
    Span {
        chain_id: "mesh".to_owned(),
        database_version: 1,
        height_from: number * 1000 + 1,
        height_to: number * 1000 + 1000,
        block_time_from: 1_700_000_000_000_000_000,
        block_time_to: 1_700_001_000_000_000_000,
        previous_id: None,
    }
}

/// Rows like those of the trades table: mostly hashes.
fn trades(dice: &mut SmallRng, rows: usize) -> Vec<u8> {
    let mut text = b"synthetic_time,tx_hash,id,market_id,price,size,buyer,seller,buy_order,fee\n".to_vec();
    let parties: Vec<String> = (0..50).map(|_| hash(dice)).collect();
    for row in 0..rows {
        let (buyer, seller) = (&parties[dice.random_range(0..50)], &parties[dice.random_range(0..50)]);
        let (price, size) = (dice.random_range(100_000..120_000), dice.random_range(1..500));
        let line = format!(
            "2023-06-20 10:{:02}:{:02}.{row:06}+00,{},{},{},{price},{size},{buyer},{seller},{},\n",
            row / 60 % 60,
            row % 60,
            hash(dice),
            hash(dice),
            parties[0],
            hash(dice)
        );
        text.extend(line.bytes());
    }
    text
}

fn hash(dice: &mut SmallRng) -> String {
    dice.random::<[u8; 32]>().iter().map(|byte| format!("{byte:02x}")).collect()
}
