//! The console in a real browser: every view on a demo network and on the recorded one shows the API's
//! answers, also when services stop and start, with hostile data, by keyboard alone and for screen readers.
//!
//! Without Chromium (`chromium`, `google-chrome`, or `MESH_TEST_CHROMIUM`) the tests say so and pass.
//! With `MESH_TEST_PICTURES=1` screenshots are written to `target/console-screens`.

mod access;
mod browser;
mod built;
mod console_mesh;
mod docs;
mod downloads;
mod explore;
mod guide;
mod hostile_texts;
mod key;
mod keyboard;
mod lines;
mod live;
mod markets;
mod names;
mod now;
mod page;
mod party;
mod past;
mod protocol;
mod services_down;
mod submit;

use access::{FITS, assert_accessible, axe};
use browser::Browser;
use console_mesh::{ASSET, ConsoleMesh, MARKET, ORACLE_SPEC, SharedConsoleMesh, WITHDRAWAL, ungrouped};
use explore::cursors;
use page::Page;
use protocol::Protocol;
use tokio_postgres::Client;

/// A page of the gateway of a demo network, with its browser; `None`, with a message that the test is skipped, when
/// there is none. Other tests read the same gateway.
async fn shared_page() -> Option<(Browser, SharedConsoleMesh, Page)> {
    page_of(SharedConsoleMesh::shared).await
}

/// The same of a gateway that no other test uses.
async fn demo_page() -> Option<(Browser, ConsoleMesh, Page)> {
    page_of(ConsoleMesh::demo).await
}

/// The same of another mesh, which is started if there is a browser.
async fn page_of<P>(start: impl AsyncFnOnce() -> ConsoleMesh<P>) -> Option<(Browser, ConsoleMesh<P>, Page)> {
    let (browser, console_mesh) = (Browser::start().await?, start().await);
    let page = browser.page(console_mesh.mesh_client.url(), 1280, 900).await;
    Some((browser, console_mesh, page))
}

/// Adds a block, a second after the newest one, and rows by a statement.
async fn write_block(client: &Client, rows: &str) {
    let block = "INSERT INTO blocks SELECT block_time + interval '1 second', height + 1, repeat('ab', 32)
        FROM blocks ORDER BY height DESC LIMIT 1";
    client.batch_execute(&format!("BEGIN; {block}; {rows}; COMMIT")).await.unwrap();
}
