//! `mesh tx`: makes a key, signs a transaction, submits it and follows it into a block.

pub(crate) mod args;
mod gateway;
mod key;
mod sign;
mod work;

use std::{
    io::{self, Write as _},
    path::Path,
    time::Duration,
};

use mesh_transaction::{TxHash, encode};
use proto_msgs::v2::{
    CheckTransactionRequest, GetTransactionReply, SubmissionType, SubmitTransactionReply,
    SubmitTransactionRequest, Transaction, get_transaction_reply::Status,
};
use reqwest::Url;
use serde_json::json;
use tokio::time::{Instant, sleep};

use self::{
    args::{CheckArgs, KeygenArgs, StatusArgs, SubmitArgs, TxArgs, TxCommand},
    gateway::{Gateway, GatewayError, line},
};
use crate::{
    failure::Failure,
    signals::Signals,
    terminal::{self, print_line},
};

/// Limit of the output of `sign`, bytes: a transaction of 1 MiB in base64, and a little.
const LONGEST_BODY: u64 = 2 << 20;
/// Poll interval of a followed transaction.
const LOOK_AGAIN: Duration = Duration::from_millis(300);

/// Runs the subcommand.
pub(crate) async fn tx(args: TxArgs) -> Result<(), Failure> {
    match args.command {
        TxCommand::Keygen(args) => keygen(&args),
        TxCommand::Sign(args) => sign::sign(args).await,
        TxCommand::Submit(args) => until_stopped(submit(&args)).await,
        TxCommand::Check(args) => until_stopped(check(&args)).await,
        TxCommand::Status(args) => until_stopped(status(&args)).await,
    }
}

async fn until_stopped(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let mut signals = Signals::watch()?;
    tokio::select! {
        outcome = work => outcome,
        () = signals.stop() => Err(Failure::failed("stopped")),
    }
}

fn keygen(args: &KeygenArgs) -> Result<(), Failure> {
    let public = key::make(&args.file, args.force)?.public();
    match args.json {
        true => print(&json!({"file": args.file, "publicKey": public}).to_string()),
        false => print(&public),
    }
    Ok(())
}

async fn submit(args: &SubmitArgs) -> Result<(), Failure> {
    let tx = signed(&args.file)?;
    // Computed here, so that the transaction can be looked up after any answer.
    let hash = TxHash::of(&encode(&tx));
    let gateway = Gateway::new(&args.url)?;
    let request = SubmitTransactionRequest { tx: Some(tx), r#type: SubmissionType::from(args.r#type).into() };
    let reply = match gateway.submit(&request).await {
        Ok(reply) => reply,
        Err(GatewayError::Unknown(why)) if args.wait => {
            print_line(&format!("no certain answer ({why}); following transaction {hash}"));
            return follow(&gateway, &hash, args).await;
        }
        Err(GatewayError::Unknown(why)) => {
            return Err(Failure::failed(format!(
                "no certain answer ({why}); `mesh tx status {hash}` says what became of it"
            )));
        }
        Err(GatewayError::Refused(why)) => return Err(Failure::failed(format!("refused: {why}"))),
    };
    if !reply.success {
        if args.json {
            print(&line(&reply)?);
        }
        return Err(refused(reply.code, &reply.data, &reply.log));
    }
    if reply.tx_hash != hash.to_string() {
        return Err(Failure::failed(format!(
            "the gateway took transaction {} and not {hash}; look for both with `mesh tx status`",
            reply.tx_hash
        )));
    }
    if args.wait && reply.height == 0 {
        return follow(&gateway, &hash, args).await;
    }
    match args.json {
        true => print(&line(&reply)?),
        false => print(&taken(&reply)),
    }
    Ok(())
}

fn taken(reply: &SubmitTransactionReply) -> String {
    match reply.height {
        0 => format!("taken {}", reply.tx_hash),
        height => format!("included {} in block {height}", reply.tx_hash),
    }
}

fn refused(code: u32, data: &str, log: &str) -> Failure {
    let reason = [data, log].into_iter().find(|text| !text.is_empty());
    Failure::failed(format!(
        "the node refuses it with code {code}: {}",
        reason.unwrap_or("it says no reason")
    ))
}

/// Polls a transaction until it is in a block or the time is over. Errors of the gateway are retried.
async fn follow(gateway: &Gateway, hash: &TxHash, args: &SubmitArgs) -> Result<(), Failure> {
    let deadline = Instant::now() + Duration::from_secs(args.patience.into());
    let mut last_seen = "nothing was heard of it".to_owned();
    while Instant::now() < deadline {
        match gateway.status(hash).await {
            Ok(reply) if matches!(reply.status(), Status::Included | Status::Refused) => {
                terminal::clear();
                return print_outcome(&reply, args.json);
            }
            Ok(reply) => last_seen = format!("it is {}", reply.status().as_str_name()),
            Err(GatewayError::Unknown(why) | GatewayError::Refused(why)) => last_seen = why,
        }
        terminal::overwrite(&format!("waiting for a block: {last_seen}"));
        sleep(LOOK_AGAIN).await;
    }
    terminal::clear();
    Err(Failure::failed(format!(
        "not in a block after {} s ({last_seen}); `mesh tx status {hash}` says what becomes of it",
        args.patience
    )))
}

/// Prints the final status of a followed transaction; fails when it was refused.
fn print_outcome(reply: &GetTransactionReply, as_json: bool) -> Result<(), Failure> {
    if as_json {
        print(&line(reply)?);
    }
    if reply.status() == Status::Refused || reply.code != 0 {
        return Err(refused(reply.code, "", &reply.log));
    }
    if !as_json {
        print(&format!("included {} in block {}", reply.tx_hash, reply.height));
    }
    Ok(())
}

async fn check(args: &CheckArgs) -> Result<(), Failure> {
    let request = CheckTransactionRequest { tx: Some(signed(&args.file)?) };
    let reply = Gateway::new(&args.url)?.check(&request).await;
    let reply = reply.map_err(|error| unreachable(error, &args.url))?;
    if args.json {
        print(&line(&reply)?);
    }
    match reply.success {
        true if args.json => Ok(()),
        true => {
            print("the node would take it");
            Ok(())
        }
        false => Err(refused(reply.code, &reply.data, &reply.log)),
    }
}

async fn status(args: &StatusArgs) -> Result<(), Failure> {
    let reply = Gateway::new(&args.url)?.status(&args.hash).await;
    let reply = reply.map_err(|error| unreachable(error, &args.url))?;
    if args.json {
        print(&line(&reply)?);
        return Ok(());
    }
    let mut text = reply.status().as_str_name().to_owned();
    if reply.height > 0 {
        text.push_str(&format!(" in block {}", reply.height));
    }
    if reply.code != 0 {
        text.push_str(&format!(", code {}", reply.code));
    }
    if !reply.log.is_empty() {
        text.push_str(&format!(": {}", reply.log));
    }
    print(&text);
    Ok(())
}

/// Reads the transaction from the output of `sign`.
fn signed(file: &Path) -> Result<Transaction, Failure> {
    let text = sign::read(file, LONGEST_BODY)?;
    let request: Option<CheckTransactionRequest> = serde_json::from_slice(&text).ok();
    request.and_then(|request| request.tx).ok_or_else(|| {
        Failure::failed(format!("{} holds no transaction; `mesh tx sign` prints one", file.display()))
    })
}

fn unreachable(error: GatewayError, url: &Url) -> Failure {
    match error {
        GatewayError::Unknown(why) => {
            Failure::failed(format!("no answer from {url} ({why}); start it with `mesh up`, or check --url"))
        }
        GatewayError::Refused(why) => Failure::failed(format!("refused: {why}")),
    }
}

fn print(line: &str) {
    // A closed pipe is no failure: its reader has read enough.
    let _ = writeln!(io::stdout(), "{line}");
}
