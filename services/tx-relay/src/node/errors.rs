//! The state of a transaction after each error of a node. CometBFT gives all its errors the same number, so
//! they differ in their texts alone. A transaction counts as not taken after the errors of this table alone:
//! after any other error it may have reached the mempool (contract 5.3).

use mesh_transaction::TxHash;

use super::reply::{TxResult, text};

/// Why a node, or a proxy in front of it, refused a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The transaction is in the node's cache.
    InCache,
    /// The mempool is full.
    Full,
    /// Too many calls wait for a block.
    TooManyWaiting,
    /// The transaction is too large for the node.
    TooLarge,
    /// The node is catching up with the chain.
    CatchingUp,
    /// A proxy limits the rate of calls; the seconds that it named.
    Throttled(Option<u32>),
    /// A proxy does not allow the call.
    Forbidden,
    /// The check refused the transaction of this hash. CometBFT 1.x reports this as an error.
    Invalid(TxHash, TxResult),
    /// The transaction passed the check and was in no block so far.
    NoBlockYet,
    /// No block of the node has the transaction.
    NotFound,
    /// The node keeps no transaction index.
    NoIndex,
    /// Any other reason: the node's text. After a broadcast the outcome is open.
    Other(String),
}

impl Refusal {
    /// Whether the transaction of the call was not taken.
    pub(crate) fn is_before_check(&self) -> bool {
        match self {
            Self::Full
            | Self::TooManyWaiting
            | Self::TooLarge
            | Self::CatchingUp
            | Self::Throttled(_)
            | Self::Forbidden => true,
            Self::InCache
            | Self::Invalid(..)
            | Self::NoBlockYet
            | Self::NotFound
            | Self::NoIndex
            | Self::Other(_) => false,
        }
    }
}

/// A known error.
struct KnownError {
    /// Parts of its text in this order, in lower case.
    parts: &'static [&'static str],
    /// `None`: the outcome is open, also when the text contains another error.
    refusal: Option<Refusal>,
    /// The versions of CometBFT that have it.
    #[cfg_attr(not(test), expect(dead_code, reason = "documentation"))]
    versions: &'static str,
}

const fn known(
    parts: &'static [&'static str],
    refusal: Option<Refusal>,
    versions: &'static str,
) -> KnownError {
    KnownError { parts, refusal, versions }
}

/// Every version.
const ALL: &str = "0.37, 0.38, 1.x";

/// The known errors. The first one that fits counts, so those that leave the outcome open come first: a text may
/// contain another one.
static KNOWN: [KnownError; 14] = [
    known(&["broadcast confirmation not received"], None, ALL),
    known(&["sub was canceled"], None, ALL),
    known(&["already in mempool"], None, "1.x"),
    known(&[" is invalid: code="], None, "1.x"),
    known(&["timed out waiting for tx"], Some(Refusal::NoBlockYet), ALL),
    known(&["tx already exists in cache"], Some(Refusal::InCache), ALL),
    known(&["mempool is full"], Some(Refusal::Full), ALL),
    known(&["is still rechecking"], Some(Refusal::Full), "0.38, 1.x"),
    known(&["lane ", "is full"], Some(Refusal::Full), "after 1.0"),
    known(&["max_subscription_clients"], Some(Refusal::TooManyWaiting), ALL),
    known(&["max_subscriptions_per_client"], Some(Refusal::TooManyWaiting), ALL),
    known(&["tx too large"], Some(Refusal::TooLarge), ALL),
    known(&["http: request body too large"], Some(Refusal::TooLarge), ALL),
    known(&["catching up"], Some(Refusal::CatchingUp), "1.x"),
];

/// The known errors of the transaction index.
static KNOWN_OF_INDEX: [KnownError; 3] = [
    known(&["transaction indexing is disabled"], Some(Refusal::NoIndex), ALL),
    // With `indexer = "psql"`.
    known(&["txindexer.get method is not supported"], Some(Refusal::NoIndex), ALL),
    known(&["tx (", ") not found"], Some(Refusal::NotFound), ALL),
];

impl KnownError {
    fn fits(&self, text: &str) -> bool {
        let mut rest = text;
        self.parts.iter().all(|part| match rest.split_once(part) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    }
}

impl Refusal {
    /// The meaning of an error's text.
    pub(super) fn of(text: String) -> Self {
        if let Some((hash, result)) = invalid(&text) {
            return Self::Invalid(hash, result);
        }
        let lower = text.to_ascii_lowercase();
        let known = KNOWN.iter().chain(&KNOWN_OF_INDEX).find(|known| known.fits(&lower));
        known.and_then(|known| known.refusal.clone()).unwrap_or(Self::Other(text))
    }
}

/// The result of a check in the error of CometBFT 1.x: `tx <hash> is invalid: code=<number>, data=<hex>,
/// log='<text>', codespace='<text>'`.
fn invalid(text_of_error: &str) -> Option<(TxHash, TxResult)> {
    let (before, rest) = text_of_error.split_once(" is invalid: code=")?;
    let hash = before.rsplit_once("tx ")?.1.parse().ok()?;
    let (code, rest) = rest.split_once(", data=")?;
    let (data, rest) = rest.split_once(", log='")?;
    let (log, _) = rest.rsplit_once("', codespace='")?;
    let code = code.parse().ok().filter(|code| *code != 0)?;
    Some((hash, TxResult { code, data: text(hex::decode(data).ok()?), log: log.to_owned() }))
}

#[cfg(test)]
mod tests {
    use mesh_testbed::assert_generated_part;

    use super::*;

    /// The texts of the errors that a broadcast can end with, from the sources of CometBFT 0.37.15, 0.38.19 and
    /// 1.0.1, and what is known after each.
    const TEXTS: [(&str, Refusal); 11] = [
        ("tx already exists in cache", Refusal::InCache),
        ("mempool is full: number of txs 1 (max: 1), total txs bytes 9 (max: 9)", Refusal::Full),
        (
            "mempool is still rechecking after a new committed block, so it is considered as full",
            Refusal::Full,
        ),
        (
            "broadcast error on transaction validation: mempool is full: number of txs 1 (max: 1)",
            Refusal::Full,
        ),
        ("lane default is full: number of txs 1 (max: 1)", Refusal::Full),
        ("Tx too large. Max size is 1048576, but got 1048577", Refusal::TooLarge),
        ("error reading request body: http: request body too large", Refusal::TooLarge),
        ("endpoint is closed while node is catching up", Refusal::CatchingUp),
        ("max_subscription_clients 100 reached", Refusal::TooManyWaiting),
        ("max_subscriptions_per_client 5 reached", Refusal::TooManyWaiting),
        ("timed out waiting for tx to be included in a block", Refusal::NoBlockYet),
    ];

    /// Those after which the outcome is open.
    const OPEN: [&str; 30] = [
        "broadcast confirmation not received: context canceled",
        "broadcast confirmation not received: mempool is full",
        "deliverTxSub was canceled (reason: CometBFT exited)",
        "txSub was canceled (reason: out of capacity)",
        "failed to subscribe to tx: already subscribed",
        "failed to subscribe to tx: service is shutting down",
        "transaction already in mempool, not adding it again",
        "tx already received from the same sender",
        "rechecking has finished; discard late recheck response",
        "transaction not found in mempool",
        "tx pre check: tx size is too big: 9, max: 1",
        "tx size is too big: 9, max: 1",
        "gas wanted 9 is greater than max gas 1",
        "appConn mempool: EOF",
        "flush appConn mempool: EOF",
        "tx AB is invalid: code=1, data=, log='mempool is full', codespace=''",
        "error converting json params to arguments: illegal base64 data",
        "error marshaling response: unexpected",
        "error unmarshaling request: unexpected end of JSON input",
        "batch request exceeds maximum (10) allowed number of requests",
        "path /x is invalid",
        "not allowed with `nop` mempool",
        "gas wanted -1 is negative",
        "invalid transaction found",
        "CheckTx request for tx AB failed: EOF",
        "unexpected response *types.Response_Echo when no call was made",
        "read message: EOF",
        "write to buffer: EOF",
        "flush buffer: EOF",
        "",
    ];

    fn meaning(data: &str) -> Refusal {
        Refusal::of(data.to_owned())
    }

    fn is_open(refusal: &Refusal) -> bool {
        matches!(refusal, Refusal::Other(_) | Refusal::NotFound | Refusal::NoIndex)
    }

    #[test]
    fn every_error_of_a_node_has_its_meaning() {
        let forms = |text: &str| {
            [text.to_owned(), format!("error on broadcastTxCommit: {text}"), text.to_uppercase()]
        };
        for (text, expected) in &TEXTS {
            for text in forms(text) {
                assert_eq!(meaning(&text), *expected, "{text}");
            }
        }
        for text in OPEN.into_iter().flat_map(forms) {
            let found = meaning(&text);
            assert!(is_open(&found), "{text}: {found:?}");
        }
        assert_eq!(meaning("tx (AB) not found"), Refusal::NotFound);
        for none in ["transaction indexing is disabled", "the TxIndexer.Get method is not supported"] {
            assert_eq!(meaning(none), Refusal::NoIndex);
        }
    }

    #[test]
    fn a_refused_check_is_read_from_its_error() {
        let hash = TxHash::of(b"a");
        let log = "it's 'so', codespace='x";
        let text = format!(
            "broadcast error on transaction validation: tx {hash} is invalid: code=89, data=6E6F, \
             log='{log}', codespace='sdk'"
        );
        let result = TxResult { code: 89, data: "no".to_owned(), log: log.to_owned() };
        assert_eq!(meaning(&text), Refusal::Invalid(hash, result));
    }

    fn table() -> String {
        let mut table = String::from(
            "| the node's text contains | CometBFT | the transaction | answer |\n|---|---|---|---|\n",
        );
        for KnownError { parts, refusal, versions } in &KNOWN {
            let (fate, answer) = match refusal {
                None if parts[0].contains("invalid") => ("was refused by the check", "200, `success` false"),
                None => ("outcome open", "504 / 90001"),
                Some(Refusal::NoBlockYet) => ("was accepted; in no block so far", "504 / 90001"),
                Some(Refusal::InCache) => ("was received before", "the earlier answer, or 409 / 90002"),
                Some(Refusal::TooLarge) => ("was not taken", "400 / 90002"),
                Some(Refusal::CatchingUp) => ("was not taken", "503 / 90002"),
                Some(_) => ("was not taken", "429 / 90002"),
            };
            let parts: Vec<String> = parts.iter().map(|part| format!("`{}`", part.trim())).collect();
            let text = parts.join(" … ");
            table.push_str(&format!("| {text} | {versions} | {fate} | {answer} |\n"));
        }
        table
    }

    #[test]
    fn the_generated_table_of_errors_is_in_the_document() {
        assert_generated_part("docs/errors.md", "errors of the node", &table());
    }
}
