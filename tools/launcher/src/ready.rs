//! Readiness checks of a process: `/readyz` on its admin address, a probe, or that it was started.

use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use tokio::time::sleep;

/// The first and the longest pause between two checks.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
const PROBE_DEADLINE: Duration = Duration::from_secs(2);

/// An asynchronous check that returns whether the process is ready.
pub type Probe = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// The readiness check of a process.
#[derive(Clone)]
pub enum Ready {
    /// Ready as soon as it runs.
    Spawned,
    /// Ready when `/readyz` answers 200 on the admin address that it writes into this file.
    Admin(PathBuf),
    /// Ready when the probe returns true.
    Probe(Probe),
}

impl Ready {
    /// A readiness check of an asynchronous function.
    pub fn probe<F, Answer>(question: F) -> Self
    where
        F: Fn() -> Answer + Send + Sync + 'static,
        Answer: Future<Output = bool> + Send + 'static,
    {
        Self::Probe(Arc::new(move || Box::pin(question())))
    }

    /// Removes the address file of the previous run, before the next start.
    pub(crate) fn forget(&self) {
        if let Self::Admin(file) = self {
            // Usually there is none; a file that cannot be removed is replaced by the service.
            let _ = std::fs::remove_file(file);
        }
    }

    /// Waits until the process is ready; calls `set_admin` with its admin URL as soon as that is known. Has
    /// no deadline: the caller drops the future when the process dies.
    pub(crate) async fn wait(&self, client: &reqwest::Client, set_admin: impl FnOnce(String)) {
        let mut pause = PAUSE;
        let base = match self {
            Self::Spawned => return,
            Self::Admin(file) => {
                let base = format!("http://{}", written_address(file).await);
                set_admin(base.clone());
                Some(base)
            }
            Self::Probe(_) => None,
        };
        loop {
            let serves = match (self, &base) {
                (Self::Probe(question), _) => {
                    tokio::time::timeout(PROBE_DEADLINE, question()).await.unwrap_or(false)
                }
                (_, Some(base)) => matches!(why_unready(client, base, PROBE_DEADLINE).await, Ok(None)),
                (_, None) => true,
            };
            if serves {
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spawned => f.write_str("Spawned"),
            Self::Admin(file) => f.debug_tuple("Admin").field(file).finish(),
            Self::Probe(_) => f.write_str("Probe"),
        }
    }
}

/// An HTTP client for processes of this machine: no proxy, no certificates, answers within two seconds.
///
/// # Errors
/// The client cannot be made.
pub fn local_client() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .redirect(reqwest::redirect::Policy::none())
        .timeout(PROBE_DEADLINE)
        .build()
}

/// Why a process is not ready, by `/readyz` of its admin URL; `None` = it is ready.
///
/// # Errors
/// It does not answer within this time.
pub async fn why_unready(
    client: &reqwest::Client,
    admin: &str,
    within: Duration,
) -> Result<Option<String>, reqwest::Error> {
    let answer = client.get(format!("{admin}/readyz")).timeout(within).send().await?;
    if answer.status() == reqwest::StatusCode::OK {
        return Ok(None);
    }
    let text = answer.text().await?;
    let text = text.trim();
    Ok(Some(text.strip_prefix("not ready: ").unwrap_or(text).to_owned()))
}

async fn written_address(file: &Path) -> SocketAddr {
    loop {
        if let Ok(text) = tokio::fs::read_to_string(file).await
            && let Ok(address) = text.trim().parse()
        {
            return address;
        }
        sleep(PAUSE).await;
    }
}
