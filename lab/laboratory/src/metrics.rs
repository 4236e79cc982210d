//! Reads the metrics of a process from its admin port.

use std::{sync::LazyLock, time::Duration};

use mesh_launcher::control::Row;
use tokio::time::timeout;

use crate::private::PrivateMesh;

const ANSWER_WITHIN: Duration = Duration::from_secs(5);

static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(local_client);

/// A client for processes of this machine, which no proxy of the environment can reach.
pub(crate) fn local_client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap_or_default()
}

/// The metrics page of a process; `None` when it has no admin port or does not answer in five seconds.
pub(crate) async fn fetch(row: &Row) -> Option<String> {
    let url = format!("{}/metrics", row.admin.as_ref()?);
    let read = async { CLIENT.get(url).send().await.ok()?.text().await.ok() };
    timeout(ANSWER_WITHIN, read).await.ok()?
}

impl PrivateMesh {
    /// The sum of a metric over the processes of a name; `None` when one does not answer.
    pub(crate) async fn metric(&self, name: &str, metric: &str) -> Option<f64> {
        let mut all = 0.0;
        for row in self.supervisor.rows().iter().filter(|row| row.service == name) {
            all += sum(&fetch(row).await?, metric);
        }
        Some(all)
    }
}

/// The sum of a metric over all its labels.
pub(crate) fn sum(metrics: &str, name: &str) -> f64 {
    let values = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let value = if rest.starts_with('{') { rest.rsplit_once("} ")?.1 } else { rest.strip_prefix(' ')? };
        value.trim().parse::<f64>().ok()
    });
    values.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_summed_over_its_labels_and_no_other() {
        let text = "# TYPE a counter\na{b=\"} x\"} 3\na{b=\"y\"} 4.0\na_total 9\nab 5\na 2\n";
        assert_eq!(["a", "ab", "c"].map(|name| sum(text, name)), [9.0, 5.0, 0.0]);
    }
}
