//! `mesh tx`: makes a key, signs a transaction, submits it and follows it into a block.

pub(crate) mod args;
mod key;
mod sign;
mod work;

use std::{path::Path, time::Duration};

use mesh_transaction::{TxHash, encode};
use proto_msgs::{
    Operation as _,
    v2::{
        CheckTransactionRequest, GetTransactionReply, GetTransactionRequest, SubmissionType,
        SubmitTransactionReply, SubmitTransactionRequest, Transaction, get_transaction_reply::Status,
    },
};
use reqwest::redirect::Policy;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout_at};

use self::args::{DemoCommand, SendArgs, SubmissionArgs, TxCommand};
use crate::{
    failure::{Failure, failed},
    gateway::{Gateway, GatewayArgs, GatewayError},
    signals::run_until_stopped,
    terminal::{self, print, print_json, print_line},
};

/// Limit of the output of `sign`, bytes: a transaction of 1 MiB in base64, and a little.
const LONGEST_BODY: u64 = 2 << 20;
/// Timeout of an answer, longer than the gateway waits for a block.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Pause before the next try of what has not succeeded, or has not been decided.
const LOOK_AGAIN: Duration = Duration::from_millis(300);
/// How long a transaction that is followed may be in no block before it is submitted again: longer than a relay takes the
/// node at its word.
const SUBMIT_AGAIN_AFTER: Duration = Duration::from_secs(6);

/// Fields of the replies to a submission and to the question for a transaction.
const SUBMITTED: &[&str] = &["success", "txHash", "code"];
const FATE: &[&str] = &["txHash", "status", "height", "code"];

pub(crate) async fn tx(command: TxCommand) -> Result<(), Failure> {
    match command {
        TxCommand::Keygen { file, force, json } => keygen(&file, force, json),
        TxCommand::Sign(args) => sign::sign(args).await,
        TxCommand::Submit { file, submission } => submit(signed(&file)?, &submission).await,
        TxCommand::Check { file, gateway, json } => until_stopped(check(&file, &gateway, json)).await,
        TxCommand::Status { hash, gateway, json } => until_stopped(status(&hash, &gateway, json)).await,
        TxCommand::Demo(command) => demo(command).await,
    }
}

async fn until_stopped(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    run_until_stopped(work, "stopped").await
}

fn keygen(file: &Path, replace: bool, as_json: bool) -> Result<(), Failure> {
    if file == Path::new("-") {
        return Err(Failure::usage("a secret key is not printed; name a file, `./-` for one named so"));
    }
    let public = key::make(file, replace)?.public();
    match as_json {
        true => print_json(&json!({"file": file.to_string_lossy(), "publicKey": public})),
        false => print(&public),
    }
}

/// Signs and submits a command of the demo network.
async fn demo(command: DemoCommand) -> Result<(), Failure> {
    let (command, args) = match command {
        DemoCommand::Faucet { asset, send } => (json!({"faucet": {"asset": asset}}), send),
        DemoCommand::Transfer { to, asset, amount, send } => {
            (json!({"transfer": {"to": to, "asset": asset, "amount": amount}}), send)
        }
    };
    let SendArgs { signing, submission } = args;
    let input_data = command.to_string().into_bytes();
    let tx = sign::make(signing, &submission.gateway, input_data, !submission.json).await?;
    submit(tx, &submission).await
}

/// Submits a transaction. Its hash is computed before, so that it can be looked up after any answer, and after none.
async fn submit(tx: Transaction, args: &SubmissionArgs) -> Result<(), Failure> {
    let hash = TxHash::of(&encode(&tx));
    let look = status_command(&hash, &args.gateway);
    let stopped = format!("stopped; the outcome is open: {look} says what became of it");
    run_until_stopped(send(tx, &hash, args), &stopped).await
}

async fn send(tx: Transaction, hash: &TxHash, args: &SubmissionArgs) -> Result<(), Failure> {
    let gateway = open(&args.gateway)?;
    let request = SubmitTransactionRequest { tx: Some(tx), r#type: args.r#type.into() };
    let deadline = Instant::now() + Duration::from_secs(args.patience.into());
    let reply = match post(&gateway, &request, args.wait.then_some(deadline)).await {
        Ok(reply) => reply,
        Err(error) if error.is_refusal() && error.is_temporary() => {
            let how = if args.wait { "a greater --patience" } else { "--wait" };
            return Err(failed!("not submitted ({error}); submit it again later, or with {how}"));
        }
        Err(error) if error.is_refusal() => return Err(failed!("refused: {error}")),
        Err(error) if args.wait => {
            print_line(&format!("no certain answer ({error}); following transaction {hash}"));
            return follow(&gateway, request, hash, args, deadline).await;
        }
        Err(error) => {
            return Err(failed!(
                "no certain answer ({error}); {} says what became of it",
                status_command(hash, &args.gateway)
            ));
        }
    };
    if !reply.success {
        if args.json {
            print_json(&reply)?;
        }
        return Err(refused(reply.height, reply.code, &reply.data, &reply.log));
    }
    if reply.tx_hash != hash.to_string() {
        return Err(failed!(
            "the gateway took transaction {} and not {hash}; look for both with `mesh tx status`",
            reply.tx_hash
        ));
    }
    if args.wait && reply.height == 0 {
        return follow(&gateway, request, hash, args, deadline).await;
    }
    match reply.height {
        _ if args.json => print_json(&reply)?,
        0 => print(&format!("taken {}", reply.tx_hash))?,
        height => print(&format!("included {} in block {height}", reply.tx_hash))?,
    }
    Ok(())
}

/// Submits a transaction; until the deadline again whenever it has certainly not reached the node and may later.
async fn post(
    gateway: &Gateway,
    request: &SubmitTransactionRequest,
    deadline: Option<Instant>,
) -> Result<SubmitTransactionReply, GatewayError> {
    loop {
        match gateway.post(request, SUBMITTED).await {
            Err(error)
                if error.is_refusal()
                    && error.is_temporary()
                    && deadline.is_some_and(|deadline| Instant::now() < deadline) =>
            {
                terminal::overwrite(&format!("waiting to submit it: {error}"));
                sleep(LOOK_AGAIN).await;
            }
            reply => {
                terminal::clear();
                return reply;
            }
        }
    }
}

/// The failure of a transaction: the block that includes it, if there is one, and the reason.
fn refused(height: i64, code: u32, data: &str, log: &str) -> Failure {
    let reason = [data, log].into_iter().find(|text| !text.is_empty()).unwrap_or("no reason is given");
    match height {
        0 => failed!("the node refuses it with code {code}: {reason}"),
        height => failed!("block {height} includes it, and it failed with code {code}: {reason}"),
    }
}

/// Reads the status of a transaction until it is in a block or the deadline has passed. Errors of the gateway are retried.
/// The node or the gateway may have lost the transaction: it is submitted again now and then, which cannot execute it twice.
async fn follow(
    gateway: &Gateway,
    mut request: SubmitTransactionRequest,
    hash: &TxHash,
    args: &SubmissionArgs,
    deadline: Instant,
) -> Result<(), Failure> {
    let url = status_url(gateway, hash);
    request.set_type(SubmissionType::TypeSync);
    let mut last_seen = "its status is unknown".to_owned();
    let outcome = async {
        let mut submit_at = Instant::now() + SUBMIT_AGAIN_AFTER;
        loop {
            match gateway.get(&url, FATE).await {
                Ok(reply) if is_final(&reply) => return Ok(reply),
                Ok(reply) => note(&mut last_seen, format!("it is {}", reply.status().as_str_name())),
                Err(error) => note(&mut last_seen, error.to_string()),
            }
            if Instant::now() >= submit_at {
                if let Err(refusal) = submit_again(gateway, &request, &mut last_seen).await {
                    // A block may have included it since, which is a reason to refuse the repeat.
                    return match gateway.get(&url, FATE).await {
                        Ok(reply) if is_final(&reply) => Ok(reply),
                        _ => Err(refusal),
                    };
                }
                submit_at = Instant::now() + SUBMIT_AGAIN_AFTER;
            }
            sleep(LOOK_AGAIN).await;
        }
    };
    let outcome: Result<Result<_, Failure>, _> = timeout_at(deadline, outcome).await;
    terminal::clear();
    match outcome {
        Ok(outcome) => print_outcome(&outcome?, args.json),
        Err(_) => Err(failed!(
            "not in a block after {} s ({last_seen}); {} says what becomes of it",
            args.patience,
            status_command(hash, &args.gateway)
        )),
    }
}

/// Submits a transaction that is followed again; fails when it is refused for good.
async fn submit_again(
    gateway: &Gateway,
    request: &SubmitTransactionRequest,
    last_seen: &mut String,
) -> Result<(), Failure> {
    match gateway.post(request, SUBMITTED).await {
        Ok(reply) if !reply.success && reply.code != 0 => {
            Err(refused(reply.height, reply.code, &reply.data, &reply.log))
        }
        Ok(_) => Ok(()),
        // A proxy may redirect for a while; the earlier submission is still open.
        Err(error @ GatewayError::Redirect(_)) => {
            note(last_seen, error.to_string());
            Ok(())
        }
        Err(error) if error.is_refusal() && !error.is_temporary() => Err(failed!("refused: {error}")),
        Err(error) => {
            note(last_seen, error.to_string());
            Ok(())
        }
    }
}

fn is_final(reply: &GetTransactionReply) -> bool {
    matches!(reply.status(), Status::Included | Status::Refused)
}

/// Shows the news of a transaction, and stores it for the final message.
fn note(last_seen: &mut String, news: String) {
    terminal::overwrite(&format!("waiting for a block: {news}"));
    *last_seen = news;
}

/// Prints the final status of a followed transaction; fails when it was refused.
fn print_outcome(reply: &GetTransactionReply, as_json: bool) -> Result<(), Failure> {
    if as_json {
        print_json(reply)?;
    }
    if reply.status() == Status::Refused || reply.code != 0 {
        return Err(refused(reply.height, reply.code, "", &reply.log));
    }
    if !as_json {
        print(&format!("included {} in block {}", reply.tx_hash, reply.height))?;
    }
    Ok(())
}

async fn check(file: &Path, at: &GatewayArgs, as_json: bool) -> Result<(), Failure> {
    let request = CheckTransactionRequest { tx: Some(signed(file)?) };
    let reply = open(at)?.post(&request, &["success", "code", "gasUsed"]).await;
    let reply = reply.map_err(|error| unreachable(&error, at))?;
    if as_json {
        print_json(&reply)?;
    }
    if !reply.success {
        return Err(refused(0, reply.code, &reply.data, &reply.log));
    }
    if !as_json {
        print("the node would take it")?;
    }
    Ok(())
}

async fn status(hash: &TxHash, at: &GatewayArgs, as_json: bool) -> Result<(), Failure> {
    let gateway = open(at)?;
    let reply: Result<GetTransactionReply, _> = gateway.get(&status_url(&gateway, hash), FATE).await;
    let reply = reply.map_err(|error| unreachable(&error, at))?;
    if as_json {
        return print_json(&reply);
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
    print(&terminal::printable(&text))
}

/// Reads the transaction from the output of `sign`.
fn signed(file: &Path) -> Result<Transaction, Failure> {
    let text = sign::read(file, LONGEST_BODY)?;
    // Shells of Windows begin files with a byte order mark.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
    let request: Option<CheckTransactionRequest> = serde_json::from_slice(text).ok();
    request
        .and_then(|request| request.tx)
        .ok_or_else(|| failed!("{} holds no transaction; `mesh tx sign` prints one", sign::name(file)))
}

/// A gateway for transactions. A request is never repeated, because a submission may have succeeded. Redirects are not
/// followed, because 301 and 302 would turn a POST into a GET.
fn open(at: &GatewayArgs) -> Result<Gateway, Failure> {
    Gateway::new(at, ANSWER_WITHIN, |client| client.timeout(ANSWER_WITHIN).redirect(Policy::none()))
}

fn status_command(hash: &TxHash, at: &GatewayArgs) -> String {
    format!("`mesh tx status {hash}{}`", at.option())
}

fn status_url(gateway: &Gateway, hash: &TxHash) -> String {
    gateway.url(GetTransactionRequest::NAME).replace("{hash}", &hash.to_string())
}

fn unreachable(error: &GatewayError, at: &GatewayArgs) -> Failure {
    Failure::failed(match error {
        GatewayError::Foreign(why) => why.clone(),
        error if error.is_refusal() => format!("refused: {error}"),
        error => format!("no answer from {} ({error}); {}", at.url, error.advice()),
    })
}
