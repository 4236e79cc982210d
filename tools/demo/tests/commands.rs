//! Blocks after the history: transactions of users, their rows as events, and the saved state.

use mesh_demo::{Block, Executed, Plan, Rows, Simulator, TimeUs, Transaction, write_history};
use mesh_testbed::Database;

use crate::{Parsed, history, money_adds_up, rows_of};

const ALICE: &str = "a11ce00000000000000000000000000000000000000000000000000000000000";
const BOB: &str = "b0b0000000000000000000000000000000000000000000000000000000000000";

fn plan() -> Plan {
    Plan { blocks: 120, markets: 3, parties: 12, ..Plan::default() }
}

fn grown() -> Simulator {
    let mut simulator = Simulator::new(plan()).unwrap();
    (0..plan().blocks).for_each(|_| drop(simulator.next_history_block()));
    simulator
}

/// Makes a block a second after the newest one with these transactions, given as sender and input.
fn decided<'a>(simulator: &mut Simulator, txs: &'a [(&str, String)]) -> Block {
    let height = simulator.height() + 1;
    let transaction = |(number, (sender, input)): (usize, &'a (&str, String))| {
        let hash = format!("{height:032x}{number:032x}");
        Transaction { hash, sender: (*sender).to_owned(), input: input.as_bytes() }
    };
    let transactions: Vec<_> = txs.iter().enumerate().map(transaction).collect();
    simulator.decided_block(simulator.time().plus_seconds(1), &format!("{height:064x}"), &transactions)
}

fn faucet(asset: &str) -> String {
    format!(r#"{{"faucet":{{"asset":"{asset}"}}}}"#)
}

fn transfer(to: &str, asset: &str, amount: &str) -> String {
    format!(r#"{{"transfer":{{"to":"{to}","asset":"{asset}","amount":"{amount}"}}}}"#)
}

/// The tables of a transaction's rows.
fn tables(executed: &Executed) -> Vec<(&'static str, usize)> {
    executed.rows.tables().map(|table| (table, executed.rows.records(table).len())).collect()
}

#[test]
fn the_faucet_credits_once_and_transfers_move_what_is_there() {
    let mut simulator = grown();
    let block = decided(&mut simulator, &[(ALICE, faucet("VOTE")), (ALICE, transfer(BOB, "VOTE", "7"))]);
    assert!(block.executed.iter().all(|executed| executed.failure.is_none()), "{:?}", block.executed);
    // The balance of an account is a row of the transaction that moved it last.
    let credited = [("accounts", 1), ("balances", 1), ("deposits", 1), ("ledger", 1)];
    assert_eq!(tables(&block.executed[0]), credited);
    assert_eq!(tables(&block.executed[1]), [("accounts", 1), ("balances", 2), ("ledger", 1)]);
    let ledger = Parsed::new(&block.executed[1].rows, "ledger");
    let row = &ledger.rows[0];
    assert_eq!(ledger.number(row, "quantity"), 7);
    assert_eq!(ledger.number(row, "account_from_balance"), 1_000 * 10_i128.pow(18) - 7);
    assert_eq!(ledger.text(row, "tx_hash"), format!("{:032x}{:032x}", block.height, 1));
    let fails = [
        (ALICE, faucet("VOTE"), "once per asset"),
        (ALICE, faucet("none"), "unknown asset \"none\""),
        (ALICE, r#"{"faucet":{}}"#.to_owned(), "missing field `asset`"),
        ("alice", faucet("VOTE"), "public key"),
        (BOB, transfer(ALICE, "VOTE", "8"), "not enough balance: 7 of 8"),
        (BOB, transfer(ALICE, "VOTE", &"9".repeat(99)), "not enough balance"),
        (BOB, transfer(ALICE, "VOTE", "0"), "positive integer"),
        (BOB, transfer(ALICE, "VOTE", "-1"), "positive integer"),
        (BOB, transfer(ALICE, "VOTE", "1.5"), "positive integer"),
        (BOB, transfer("bob", "VOTE", "1"), "public key"),
        (BOB, transfer(BOB, "VOTE", "1"), "same party"),
    ];
    let other = ["order", "", "7", "{}", r#"{"other":{}}"#, r#"{"faucet":{"asset":"VOTE"},"more":1}"#];
    let txs: Vec<_> = fails.iter().map(|(sender, input, _)| (*sender, input.clone())).collect();
    let block = decided(&mut simulator, &txs);
    for ((.., expected), executed) in fails.iter().zip(&block.executed) {
        let failure = executed.failure.as_ref().unwrap();
        assert!(failure.contains(expected) && executed.rows == Rows::default(), "{failure}, not {expected}");
    }
    let block = decided(&mut simulator, &other.map(|input| (ALICE, input.to_owned())));
    assert!(block.executed.iter().all(|executed| *executed == Executed::default()));
    let block = decided(&mut simulator, &[(BOB, transfer(&ALICE.to_uppercase(), "VOTE", "7"))]);
    assert_eq!(tables(&block.executed[0]), [("balances", 2), ("ledger", 1)], "both have accounts");
}

#[test]
fn a_saved_state_continues_with_the_same_blocks_and_balances_agree_with_the_ledger() {
    let run = |saves: bool| {
        let (mut simulator, mut blocks) = (grown(), Vec::new());
        for number in 0..60_u32 {
            let receiver = format!("{number:064x}");
            let txs = [
                (ALICE, faucet(["VOTE", "none"][number as usize % 2])),
                (ALICE, transfer(if number % 3 == 0 { BOB } else { &receiver }, "VOTE", "1000")),
                (BOB, transfer(ALICE, "VOTE", "10")),
            ];
            blocks.push(decided(&mut simulator, &txs));
            if saves && number % 7 == 0 {
                simulator = Simulator::load(&simulator.save().unwrap()).unwrap();
            }
        }
        blocks
    };
    let blocks = run(true);
    assert!(blocks == run(false));
    money_adds_up(&rows_of(history(plan()).into_iter().chain(blocks).collect()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_blocks_of_a_node_is_continued_unless_it_has_executed_transactions() {
    let database = Database::fresh().await;
    let mut simulator = write_history(database.url(), &plan(), |_, _| {}).await.unwrap();
    assert_eq!(simulator.hash(), grown().hash());
    let mut client = database.connect().await;
    let mut store = async |block: &Block| {
        let writer = mesh_loader::BlockWriter::begin(&mut client).await.unwrap();
        for rows in block.executed.iter().map(|executed| &executed.rows).chain([&block.rows]) {
            rows.write(&writer).await.unwrap();
        }
        writer.commit().await.unwrap();
    };
    store(&decided(&mut simulator, &[(ALICE, "order".to_owned())])).await;
    let found = write_history(database.url(), &plan(), |_, _| {}).await.unwrap();
    let head = |simulator: &Simulator| -> (u64, TimeUs, String) {
        (simulator.height(), simulator.time(), simulator.hash().to_owned())
    };
    assert_eq!(head(&found), head(&simulator));
    store(&decided(&mut simulator, &[(ALICE, faucet("VOTE"))])).await;
    let refused = write_history(database.url(), &plan(), |_, _| {}).await.unwrap_err();
    assert!(refused.to_string().contains("balances"), "{refused}");
}
