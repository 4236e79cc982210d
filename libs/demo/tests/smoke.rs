use mesh_demo::*;
#[test]
fn smoke() {
    let t = std::time::Instant::now();
    let mut s = Simulator::new(Plan::default()).unwrap();
    let mut all = Rows::default();
    for _ in 0..5000 { all.append(&s.next_history_block().rows); }
    println!("{:?}", t.elapsed());
    std::fs::create_dir_all("/tmp/demo-out").unwrap();
    for t in Table::ALL { println!("{} {} {}", t.name(), all.count(t), all.text(t).len());
      std::fs::write(format!("/tmp/demo-out/{}.csv", t.name()), format!("{}\n{}", t.columns().collect::<Vec<_>>().join(","), all.text(t))).unwrap(); }
    println!("total {}", all.total());
}
