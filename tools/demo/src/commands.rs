//! The commands that the demo network executes: credits of its faucet, and transfers between parties.

use serde::Deserialize;

use crate::{
    block::{Draft, Executed},
    catalogue::units,
    world::{Key, Kind, World},
};

/// Whole units that the faucet credits.
const CREDIT: i128 = 1_000;
/// Hex digits of a party's id, its public key.
const PARTY_DIGITS: usize = 64;

/// A transaction that the node has admitted.
#[derive(Clone, Debug)]
pub struct Transaction<'a> {
    /// Its hash, 64 lower-case hex digits.
    pub hash: String,
    /// The public key of its sender in lower case.
    pub sender: String,
    /// Its input data.
    pub input: &'a [u8],
}

/// A command, from the JSON of a transaction's input data.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Command {
    /// Credits the sender, once for each key and asset.
    Faucet { asset: String },
    /// Moves an amount of the sender.
    Transfer { to: String, asset: String, amount: String },
}

/// Executes a transaction. Input data that is no command is included without effect.
pub(crate) fn execute(world: &mut World, draft: &mut Draft, transaction: &Transaction<'_>) -> Executed {
    let command = match parse(transaction.input) {
        None => return Executed::default(),
        Some(command) => command,
    };
    let mut outcome = Ok(());
    let rows = draft.as_transaction(&transaction.hash, |draft| {
        outcome = command.and_then(|command| run(world, draft, &transaction.sender, &command));
    });
    Executed { failure: outcome.err(), rows }
}

/// The command, or what is wrong with it; `None` for other input data.
fn parse(input: &[u8]) -> Option<Result<Command, String>> {
    let value: serde_json::Value = serde_json::from_slice(input).ok()?;
    let members = value.as_object().filter(|members| members.len() == 1)?;
    let name = members.keys().next().filter(|name| ["faucet", "transfer"].contains(&name.as_str()))?.clone();
    let command = serde_json::from_value(value);
    Some(command.map_err(|error| format!("invalid {name} command: {error}")))
}

/// Runs a command. Nothing has changed when it fails.
fn run(world: &mut World, draft: &mut Draft, sender: &str, command: &Command) -> Result<(), String> {
    check_party("the sender", sender)?;
    match command {
        Command::Faucet { asset } => {
            let asset = known_asset(world, asset)?;
            let party = world.party_or_new(sender).ok_or_else(full)?;
            if !world.credited.insert((party, asset)) {
                return Err("the faucet credits each key once per asset".to_owned());
            }
            let amount = units(asset, CREDIT);
            let general = Key::general(asset, party);
            world.transfer(draft, Key::global(asset, Kind::External), general, amount, "DEPOSIT");
            // Its own hash is the deposit's id: there is one deposit a transaction.
            let hash = draft.hash();
            let row = draft.rows.row("deposits").text(&hash).text("STATUS_FINALIZED");
            let row = row.text(world.party_id(party)).text(world.asset_id(asset)).number(amount);
            row.text("").time(draft.time).time(draft.time).text(&hash).time(draft.time).end();
        }
        Command::Transfer { to, asset, amount } => {
            let asset = known_asset(world, asset)?;
            let to = to.to_ascii_lowercase();
            check_party("the receiver", &to)?;
            if to == sender {
                return Err("sender and receiver are the same party".to_owned());
            }
            let digits = !amount.is_empty() && amount.bytes().all(|byte| byte.is_ascii_digit());
            if !digits || amount.bytes().all(|byte| byte == b'0') {
                return Err(format!("amount {amount:?} is not a positive integer"));
            }
            let from = world.party(sender).map(|party| Key::general(asset, party));
            let balance = from.map_or(0, |from| world.balance(from));
            // An amount beyond 128 bits is above every balance.
            let sent = amount.parse::<i128>().ok().filter(|sent| *sent <= balance);
            let (Some(from), Some(sent)) = (from, sent) else {
                return Err(format!("not enough balance: {balance} of {amount}"));
            };
            let party = world.party_or_new(&to).ok_or_else(full)?;
            world.transfer(draft, from, Key::general(asset, party), sent, "TRANSFER_FUNDS_SEND");
        }
    }
    Ok(())
}

fn known_asset(world: &World, asset: &str) -> Result<u8, String> {
    world.asset(asset).ok_or_else(|| format!("unknown asset {asset:?}"))
}

fn check_party(role: &str, id: &str) -> Result<(), String> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    match id.len() == PARTY_DIGITS && id.bytes().all(is_hex) {
        true => Ok(()),
        false => Err(format!("{role} {id:?} is not a public key of {PARTY_DIGITS} hex digits")),
    }
}

fn full() -> String {
    "the demo network has no room for more parties".to_owned()
}
