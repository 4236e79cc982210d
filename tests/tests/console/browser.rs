//! A headless Chromium for one test. Its process and its profile are removed when the test ends.

use std::{env, path::PathBuf, sync::Arc, time::Duration};

use mesh_launcher::process::{Process, ProcessSpec};
use mesh_testbed::retry;
use mesh_tests::say;
use serde_json::json;
use tempfile::TempDir;

use super::{Page, Protocol};

const READY_WITHIN: Duration = Duration::from_secs(60);

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Command line flags: no network requests of the browser's own, no desktop features.
const FLAGS: [&str; 14] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--force-color-profile=srgb",
    "--remote-debugging-port=0",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "about:blank",
];

pub(crate) struct Browser {
    protocol: Arc<Protocol>,
    process: Process,
    pub(crate) downloads: PathBuf,
    _folder: TempDir,
}

impl Browser {
    /// Starts the browser; `None`, with a message that the test is skipped, when there is none.
    pub(crate) async fn start() -> Option<Self> {
        let Some(program) = program() else {
            say("skipped: there is no Chromium on the PATH; on Debian `apt-get install chromium`");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let profile = folder.path().join("profile");
        let mut spec = ProcessSpec::new("chromium", program, folder.path().join("log"));
        // Debian's wrapper script needs a home directory.
        spec = spec.env("HOME", folder.path().to_string_lossy());
        spec = spec.arg(format!("--user-data-dir={}", profile.display()));
        spec = FLAGS.into_iter().fold(spec, |spec, flag| spec.arg(flag));
        let process = Process::spawn(&spec).unwrap();
        let port_file = profile.join("DevToolsActivePort");
        let (port, path) = retry(READY_WITHIN, async || {
            // The file exists before its content is complete.
            let text = std::fs::read_to_string(&port_file).unwrap_or_default();
            if let Some((port, path)) = text.trim().split_once('\n') {
                return Ok((port.to_owned(), path.to_owned()));
            }
            let log = || std::fs::read_to_string(&spec.log).unwrap_or_default();
            assert!(process.exit_status().is_none(), "Chromium has ended: {}", log());
            Err(format!("Chromium does not begin: {}", log()))
        })
        .await;
        let protocol = Protocol::connect(&format!("ws://127.0.0.1:{port}{path}")).await;
        let downloads = folder.path().join("downloads");
        let behaviour = json!({"behavior": "allow", "downloadPath": downloads, "eventsEnabled": true});
        protocol.call(None, "Browser.setDownloadBehavior", behaviour).await;
        Some(Self { protocol: Arc::new(protocol), process, downloads, _folder: folder })
    }

    /// Opens a page in a context of its own, with a viewport of this size.
    pub(crate) async fn page(&self, url: &str, width: u32, height: u32) -> Page {
        let target = self.protocol.call(None, "Target.createTarget", json!({"url": "about:blank"})).await;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.protocol.call(None, "Target.attachToTarget", attach).await;
        let session = session["sessionId"].as_str().unwrap().to_owned();
        let page = Page::new(Arc::clone(&self.protocol), session, url);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({})).await;
        }
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        page.call("Emulation.setDeviceMetricsOverride", size).await;
        // As on a phone: scroll bars overlay the page and take no width.
        page.call("Emulation.setScrollbarsHidden", json!({"hidden": true})).await;
        page
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.process.kill_group();
    }
}

fn program() -> Option<PathBuf> {
    if let Some(named) = env::var_os("MESH_TEST_CHROMIUM") {
        return Some(named.into());
    }
    let path = env::var_os("PATH")?;
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let files = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files.into_iter().find(|file| file.is_file())
}
