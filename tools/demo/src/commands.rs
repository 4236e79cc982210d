//! The commands that the demo network executes: credits of its faucet, and transfers between parties.

use serde::Deserialize;

use crate::{
    block::{Draft, Executed},
    catalogue::units,
    world::{Key, Kind},
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
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Command {
    /// Credits the sender, once for each key and asset.
    Faucet { asset: String },
    /// Moves an amount of the sender.
    Transfer { to: String, asset: String, amount: String },
}

impl Draft<'_> {
    /// Executes a transaction. Input data that is no command is included without effect.
    pub(crate) fn execute(&mut self, transaction: &Transaction<'_>) -> Executed {
        let Some(command) = parse(transaction.input) else { return Executed::default() };
        let mut outcome = Ok(());
        let rows = self.as_transaction(&transaction.hash, |draft| {
            outcome = command.and_then(|command| match command {
                Command::Faucet { asset } => draft.credit(&transaction.sender, &asset),
                Command::Transfer { to, asset, amount } => {
                    draft.send(&transaction.sender, &to.to_ascii_lowercase(), &asset, &amount)
                }
            });
        });
        Executed { failure: outcome.err(), rows }
    }

    /// Credits a party. Nothing has changed when it fails.
    fn credit(&mut self, sender: &str, asset: &str) -> Result<(), String> {
        check_party("the sender", sender)?;
        let asset = self.known_asset(asset)?;
        let party = self.world.party_or_new(sender).ok_or_else(full)?;
        if !self.world.credited.insert((party, asset)) {
            return Err("the faucet credits each key once per asset".to_owned());
        }
        let amount = units(asset, CREDIT);
        self.transfer(Key::global(asset, Kind::External), Key::general(asset, party), amount, "DEPOSIT");
        // The deposit's id is the hash of the transaction: there is one deposit a transaction.
        row! { self, deposits:
            id: self.transaction, status: "STATUS_FINALIZED", party_id: sender,
            asset: self.world.asset_id(asset), amount: amount, foreign_tx_hash: "",
            credited_timestamp: self.time, created_timestamp: self.time,
        }
        Ok(())
    }

    /// Moves money between parties. Nothing has changed when it fails.
    fn send(&mut self, sender: &str, to: &str, asset: &str, amount: &str) -> Result<(), String> {
        check_party("the sender", sender)?;
        let asset = self.known_asset(asset)?;
        check_party("the receiver", to)?;
        if to == sender {
            return Err("sender and receiver are the same party".to_owned());
        }
        let is_number = !amount.is_empty() && amount.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || amount.bytes().all(|byte| byte == b'0') {
            return Err(format!("amount {amount:?} is not a positive integer"));
        }
        let from = self.world.party(sender).map(|party| Key::general(asset, party));
        let balance = from.map_or(0, |from| self.world.balance(from));
        // An amount beyond 128 bits is above every balance.
        let sent = amount.parse::<i128>().ok().filter(|sent| *sent <= balance);
        let (Some(from), Some(sent)) = (from, sent) else {
            return Err(format!("not enough balance: {balance} of {amount}"));
        };
        let party = self.world.party_or_new(to).ok_or_else(full)?;
        self.transfer(from, Key::general(asset, party), sent, "TRANSFER_FUNDS_SEND");
        Ok(())
    }

    fn known_asset(&self, asset: &str) -> Result<u8, String> {
        self.world.asset(asset).ok_or_else(|| format!("unknown asset {asset:?}"))
    }
}

/// The command, or what is wrong with it; `None` for other input data.
fn parse(input: &[u8]) -> Option<Result<Command, String>> {
    let value: serde_json::Value = serde_json::from_slice(input).ok()?;
    let members = value.as_object().filter(|members| members.len() == 1)?;
    let name = members.keys().next().filter(|name| ["faucet", "transfer"].contains(&name.as_str()))?.clone();
    let command = serde_json::from_value(value);
    Some(command.map_err(|error| format!("invalid {name} command: {error}")))
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
