//! Prepares the chain file of a node: it is kept when its blocks continue the store, else set aside, and a new chain
//! begins after the store's newest block. The node itself then needs no database.

use std::{
    io,
    path::{Path, PathBuf},
};

use mesh_devnode::{Base, ChainFile};
use mesh_launcher::home::Home;
use tokio::task::spawn_blocking;

use crate::{
    error::{NodeError, failed},
    store::{DemoNetwork, Store},
};

/// The chain file of the development node of a home.
pub(crate) fn devnode_file(home: &Home) -> PathBuf {
    home.node().join("blocks")
}

/// Prepares the chain file of a home's development node.
///
/// # Errors
/// The store or the file cannot be read, or the file cannot be made.
pub async fn prepare_devnode(
    home: &Home,
    database_url: &str,
    demo: Option<DemoNetwork>,
) -> Result<(), NodeError> {
    let (file, store) = (devnode_file(home), Store::connect(database_url).await?);
    if continued(&file, &store, 0).await?.is_some() {
        return Ok(());
    }
    set_aside(&file)?;
    create(&file, store.base_with(demo).await?).await
}

/// The base of a chain file whose blocks continue the store: the store's newest block is its base or one of its
/// blocks. A store may also have up to `beyond` blocks above those of the file.
pub(crate) async fn continued(
    file: &Path,
    store: &Store<'_>,
    beyond: u64,
) -> Result<Option<Base>, NodeError> {
    let head = store.base().await?;
    let path = file.to_owned();
    let unread =
        |error: io::Error| failed!("cannot read {} ({error}); remove it and try again", file.display());
    let opening = spawn_blocking(move || ChainFile::open(&path));
    let opened = opening.await.map_err(io::Error::other).and_then(|opened| opened).map_err(unread)?;
    let Some(chain) = opened.filter(|chain| chain.base().chain_id == head.chain_id) else { return Ok(None) };
    let heights = chain.base().height()..=chain.height() + beyond;
    let common = head.height().min(chain.height());
    let is_continued = heights.contains(&head.height())
        && chain.hash_at(common).map_err(unread)? == Some(store.hash_at(common).await?);
    Ok(is_continued.then(|| chain.base().clone()))
}

pub(crate) async fn create(file: &Path, base: Base) -> Result<(), NodeError> {
    let path = file.to_owned();
    let creating = spawn_blocking(move || ChainFile::create(&path, &base));
    let created = creating.await.map_err(io::Error::other).and_then(|created| created);
    created.map_err(|error| failed!("cannot write {} ({error})", file.display()))
}

/// Renames the file or folder of a chain that does not continue the store.
pub(crate) fn set_aside(path: &Path) -> Result<(), NodeError> {
    if !path.exists() {
        return Ok(());
    }
    let aside = path.with_extension("other");
    let place = aside.display();
    eprintln!("the node's blocks do not continue those of the database, they are set aside to {place}");
    let removed = match aside.is_dir() {
        true => std::fs::remove_dir_all(&aside),
        false => std::fs::remove_file(&aside),
    };
    let moved = match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => std::fs::rename(path, &aside),
    };
    moved.map_err(|error| failed!("cannot move {} ({error}); remove it and try again", path.display()))
}

#[cfg(test)]
mod tests {
    use mesh_devnode::{Chain, Settings};
    use mesh_testbed::Database;
    use mesh_transaction::{ALGORITHM, Network};

    use super::*;

    async fn next_blocks(file: &Path, count: usize) -> Vec<mesh_transaction::Block> {
        let (algorithm, pow_prefix) = (ALGORITHM.to_owned(), String::new());
        let network = Network { chain_id: String::new(), algorithm, pow_prefix };
        let chain = Chain::open(Settings::new(network, file)).await.unwrap();
        let mut blocks = Vec::new();
        for _ in 0..count {
            blocks.push(chain.next_block().await.unwrap());
        }
        blocks
    }

    #[tokio::test]
    async fn a_chain_is_continued_by_a_store_with_its_blocks_and_else_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path()).unwrap();
        home.create().unwrap();
        let (file, aside) = (devnode_file(&home), home.node().join("blocks.other"));
        let (database, client) = Database::with_client().await;
        let add = async |height: u64, hash: &str| {
            let sql = "INSERT INTO blocks VALUES (to_timestamp($1::int8), $1::int8, $2)";
            client.execute(sql, &[&height.cast_signed(), &hash.to_uppercase()]).await.unwrap();
        };
        client.batch_execute("INSERT INTO chain (id) VALUES ('net-1')").await.unwrap();
        add(41, &"a".repeat(64)).await;
        let prepare = async || prepare_devnode(&home, database.url(), None).await.unwrap();
        prepare().await;
        let made = next_blocks(&file, 3).await;
        assert_eq!(made[0].height, 42);
        // The store is behind the file, has some of its blocks, then all.
        for block in &made {
            prepare().await;
            add(block.height, &block.hash).await;
        }
        prepare().await;
        assert!(!aside.exists());
        assert_eq!(next_blocks(&file, 1).await[0].height, 45);

        // The store has another block at that height.
        add(45, &"b".repeat(64)).await;
        prepare().await;
        assert!(aside.exists());
        assert_eq!(next_blocks(&file, 1).await[0].height, 46);
        // It was set back, is ahead, or has another chain.
        for change in [
            "DELETE FROM blocks WHERE height > 44; UPDATE last_block SET height = 44",
            "INSERT INTO blocks VALUES (now(), 45, repeat('c', 64)), (now() + interval '1s', 46, repeat('d', 64))",
            "UPDATE chain SET id = 'net-2'",
        ] {
            std::fs::remove_file(&aside).unwrap();
            client.batch_execute(change).await.unwrap();
            prepare().await;
            assert!(aside.exists(), "{change}");
        }
        // A file that is no chain file.
        std::fs::remove_file(&aside).unwrap();
        std::fs::write(&file, "other").unwrap();
        prepare().await;
        assert!(aside.exists());
    }
}
