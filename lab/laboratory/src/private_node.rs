//! The development node of a private mesh, on a chain without proof of work, and valid transactions for it.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use mesh::{
    failure::{Failure, cannot},
    processes::DEVNODE,
    programs,
};
use mesh_devnode::ReservedPort;
use mesh_node::{devnode_group, prepare_devnode};
use mesh_transaction::{ALGORITHM, Key, encode};
use proto_msgs::v2::{ProofOfWork, Transaction, TxVersion, transaction::From as Sender};

use crate::{
    empty_blocks::NEXT_BLOCK,
    private::{PrivateMesh, Servers},
};

/// The chain's id, which signatures cover.
pub(crate) const CHAIN_ID: &str = "private-1";

/// Defines the chain: no proof of work, and no limit on the transactions of one party per block.
const CHAIN: &str = "INSERT INTO chain (id) VALUES ('private-1');
    INSERT INTO network_parameters (key, value, tx_hash, block_time) VALUES
        ('spam.pow.difficulty', '0', '', 'epoch'), ('spam.pow.numberOfTxPerBlock', '4294967295', '', 'epoch')";
/// Turns an existing chain into this one.
const OTHER_CHAIN: &str = "UPDATE chain SET id = 'private-1';
    INSERT INTO network_parameters (key, value, tx_hash, block_time)
        SELECT key, value, '', now() FROM (VALUES
            ('spam.pow.difficulty', '0'), ('spam.pow.numberOfTxPerBlock', '4294967295'),
            ('spam.pow.increaseDifficulty', '0')
        ) AS rules (key, value)";

/// Bytes of a command, about those of an order.
const COMMAND_BYTES: usize = 160;

impl PrivateMesh {
    /// Creates the chain in the store and starts its node with additional variables. Returns its port.
    /// `has_rows`: whether the store has the rows of another chain, which becomes this one.
    pub(crate) async fn start_node(
        &self,
        servers: &Servers,
        has_rows: bool,
        variables: &[(&str, &str)],
    ) -> Result<ReservedPort, Failure> {
        let statements: &[&str] = if has_rows { &[OTHER_CHAIN] } else { &[CHAIN, NEXT_BLOCK] };
        servers.execute("begin a chain", statements).await?;
        prepare_devnode(&self.home, &servers.database_url, None).await?;
        let port = ReservedPort::take().map_err(|error| cannot("find a port for the node", &error))?;
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let (program, listen) = (programs::beside("mesh")?, Some(port.address()));
        self.add(devnode_group(program, &self.home, listen, variables), 1)?;
        self.ready(&[DEVNODE]).await?;
        Ok(port)
    }
}

/// Creates distinct signed transactions.
pub(crate) struct TransactionFactory {
    key: Key,
    /// Distinguishes the transactions of several factories.
    series: u64,
    made: AtomicU64,
}

impl TransactionFactory {
    /// Creates a factory whose transactions have this series number.
    pub(crate) fn new(series: u64) -> Self {
        Self { key: Key::from_seed(&[7; 32]), series, made: AtomicU64::new(0) }
    }

    /// The next transaction, which the node accepts.
    pub(crate) fn transaction(&self) -> Transaction {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let command = format!("{:016x}{number:0>1$}", self.series, COMMAND_BYTES - 16).into_bytes();
        let tid = format!("{:032x}{number:032x}", self.series);
        Transaction {
            signature: self.key.sign(TxVersion::V3, CHAIN_ID, &command, ALGORITHM),
            input_data: Bytes::from(command),
            version: TxVersion::V3.into(),
            pow: Some(ProofOfWork { tid, nonce: number }),
            from: Some(Sender::PubKey(self.key.public())),
        }
    }

    /// The next transaction, encoded as the node takes it.
    pub(crate) fn encoded(&self) -> Bytes {
        encode(&self.transaction()).into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use mesh_transaction::{Candidate, Network};

    use super::*;

    #[test]
    fn every_transaction_is_another_one_that_a_node_takes() {
        let algorithm = ALGORITHM.to_owned();
        let network = Network { chain_id: CHAIN_ID.to_owned(), algorithm, pow_prefix: String::new() };
        let factories = [TransactionFactory::new(0), TransactionFactory::new(u64::MAX)];
        let made = || factories.iter().map(|factory| Candidate::read(&factory.encoded(), &network).unwrap());
        let made: Vec<Candidate> = made().chain(made()).collect();
        let tids: HashSet<String> = made.iter().map(|made| made.proof.clone().unwrap().tid).collect();
        let hashes: HashSet<_> = made.iter().map(|made| made.hash).collect();
        assert_eq!((hashes.len(), tids.len()), (4, 4));
        assert_eq!(factories[0].transaction().input_data.len(), COMMAND_BYTES);
    }
}
