//! *Export*: the size known beforehand, picking a range, the tables and their columns, and a download that is
//! paused and interrupted by a gateway restart and still gives the right file.

use std::{num::NonZeroU32, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use crc32c::crc32c;
use mesh_testbed::{Cut, Line, Proxy};
use serde_json::{Value, json};

use super::{Browser, ConsoleMesh, Page, page_of};

/// Without the File System Access API the page keeps a download in memory and saves it at the end.
const SAVES_AT_THE_END: &str = "delete window.showSaveFilePicker";

/// With the File System Access API the page writes to a file that the test can read.
const WRITES: &str = "window.showSaveFilePicker = async () =>
    (await navigator.storage.getDirectory()).getFileHandle('download', { create: true })";

/// Opens a view of a browser in which this script runs before the page's own.
async fn open(page: &Page, view: &str, behaviour: &str) {
    page.call("Page.addScriptToEvaluateOnNewDocument", json!({"source": behaviour})).await;
    page.open(view).await;
}

/// Waits for the file that the browser saved.
async fn saved_file(page: &Page, folder: &Path) -> Vec<u8> {
    let done = page.protocol.until("Browser.downloadProgress", |event| event["state"] == "completed").await;
    let guid = done["guid"].clone();
    let begun = page.protocol.until("Browser.downloadWillBegin", |event| event["guid"] == guid).await;
    std::fs::read(folder.join(begun["suggestedFilename"].as_str().unwrap())).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn base64_crc(bytes: &[u8]) -> String {
    STANDARD.encode(crc32c(bytes).to_be_bytes())
}

#[tokio::test]
async fn a_download_is_whole_after_a_pause_a_restart_of_the_edge_and_a_broken_line() {
    let Some(browser) = Browser::start().await else { return };
    let mut console_mesh = ConsoleMesh::sealed().await;
    let path = "/api/v2/networkhistory/export?fromBlock=1&toBlock=500&table=TABLE_ORDERS";
    let whole = console_mesh.mesh_client.get(path).await.body;
    let digest = base64_crc(&whole);
    let edge = console_mesh.mesh_client.url().trim_start_matches("http://").parse().unwrap();
    let proxy = Proxy::start(edge, 1).await.unwrap();
    let url = format!("http://{}", proxy.address());
    for behaviour in [SAVES_AT_THE_END, WRITES] {
        let page = browser.page(&url, 1280, 900).await;
        open(&page, "#/export?table=TABLE_ORDERS&from=1&to=500", behaviour).await;
        page.until_data("[data-digest]", "digest", &digest).await;
        assert_eq!(page.data("[data-bytes]", "bytes").await, whole.len().to_string());
        // Slow enough to pause it in the middle.
        let slow = u32::try_from(whole.len() / 20).ok().and_then(NonZeroU32::new);
        proxy.set(Line { bytes_per_s: slow, ..Line::default() });
        page.press("Download").await;
        page.until("Number(document.querySelector('.transfer').dataset.received) > 0").await;
        page.press("Pause").await;
        page.until_data(".transfer", "phase", "paused").await;
        let before = page.data(".transfer", "received").await;
        assert!(before.parse::<usize>().unwrap() < whole.len(), "nothing is left to be resumed");
        page.picture("export-paused").await;
        // The download is still shown after a visit to another view.
        page.click("nav a[href='#/explore']").await;
        page.until("document.title.startsWith('Explore')").await;
        page.eval::<Value>("void history.back()").await;
        page.until_data(".transfer", "phase", "paused").await;
        // Resuming finds no gateway at first, and then a restarted one.
        console_mesh.mesh.service("edge").kill().await;
        page.press("Resume").await;
        console_mesh.mesh.service_mut("edge").restart().await;
        page.until(&format!("Number(document.querySelector('.transfer').dataset.received) > {before}")).await;
        proxy.cut(Cut::Reset);
        proxy.set(Line::default());
        page.until_data(".transfer", "phase", "done").await;
        assert!(page.is("Number(document.querySelector('.transfer').dataset.resumed) > 0").await);
        page.picture("export-done").await;
        assert_eq!(page.data("[data-checksum]", "checksum").await, digest);
        let file = match behaviour {
            WRITES => {
                let read =
                    "navigator.storage.getDirectory().then(folder => folder.getFileHandle('download'))\
                    .then(handle => handle.getFile())
                    .then(file => file.arrayBuffer()).then(buffer => Array.from(new Uint8Array(buffer)))";
                page.eval::<Vec<u8>>(read).await
            }
            _ => saved_file(&page, &browser.downloads).await,
        };
        assert!(file == whole, "{} bytes are another file than these {}", file.len(), whole.len());
        page.assert_quiet_but_for_failed_answers();
    }
}

#[tokio::test]
async fn a_range_is_picked_by_dragging_and_by_keys() {
    let Some((_browser, console_mesh, page)) = page_of(ConsoleMesh::sealed).await else { return };
    open(&page, "#/export", SAVES_AT_THE_END).await;
    let range = |range: &str| format!("document.querySelector('[data-range]').dataset.range === '{range}'");
    page.until(&range("401-500")).await;
    let sealed = "document.querySelector('[data-sealed=\"500\"]').textContent";
    page.until(&format!("{sealed}.includes('The next segment, up to block 600')")).await;
    page.until("document.querySelector('[data-digest]')").await;
    let shown: String = page.eval("document.querySelector('[data-digest] code').textContent").await;
    let digest = STANDARD.decode(page.data("[data-digest]", "digest").await).unwrap();
    assert_eq!(shown, hex(&digest));
    page.drag(".map svg", 0.05, 0.5).await;
    page.until(&range("1-300")).await;
    let path = "/api/v2/networkhistory/export?fromBlock=1&toBlock=300&table=TABLE_TRADES";
    let head = console_mesh.mesh_client.send("HEAD", path).await;
    page.until_data("[data-rows]", "rows", head.header("x-total-rows")).await;
    page.eval::<Value>("void document.querySelector('[role=slider]').focus()").await;
    page.key("ArrowRight", false).await;
    page.until(&range("101-400")).await;
    page.key("ArrowLeft", true).await;
    page.until(&range("101-300")).await;
    assert!(page.is("location.hash.includes('from=101') && location.hash.includes('to=300')").await);
    page.fill("Table", "TABLE_BLOCKS").await;
    page.until_data("[data-rows]", "rows", "200").await;
    page.assert_quiet();
}

#[tokio::test]
async fn the_tables_show_what_is_sealed_and_the_columns_of_the_chosen_one() {
    let Some((_browser, console_mesh, page)) = page_of(ConsoleMesh::sealed).await else { return };
    let datasets = console_mesh.json("/api/v2/datasets").await["datasets"].take();
    let datasets = datasets.as_array().unwrap();
    page.open("#/export?table=TABLE_TRADES").await;
    page.click("main a[href^='#/export/tables']").await;
    page.until("document.querySelector('a[aria-current=true]').textContent === 'trades'").await;
    let of_all =
        |name| format!("[...document.querySelectorAll('[data-{name}]')].map(cell => cell.dataset.{name})");
    for name in ["rows", "bytes"] {
        let expected: Vec<_> = datasets.iter().map(|dataset| dataset[name].as_str().unwrap()).collect();
        assert_eq!(page.eval::<Vec<String>>(&of_all(name)).await, expected);
    }
    page.click("a[href*='table=TABLE_ORDERS']").await;
    page.until("document.querySelector('a[aria-current=true]').textContent === 'orders'").await;
    let orders = datasets.iter().find(|dataset| dataset["table"] == "orders").unwrap();
    let expected: Vec<_> =
        orders["columns"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    let shown =
        "[...document.querySelectorAll('table[data-list=columns] tbody code')].map(name => name.textContent)";
    assert_eq!(page.eval::<Value>(shown).await, json!(expected));
    page.until_text(".content", "Size that is not filled yet").await;
    page.assert_quiet();
}
