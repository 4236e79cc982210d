//! How a NATS client connects: its options, the server of each attempt, and the pauses between attempts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_nats::{Client, ConnectOptions, ReconnectToServer, Server};
use rand::{Rng, seq::IteratorRandom as _};

use crate::{
    config::{BusConfig, Credentials},
    error::BusError,
    link::Link,
    subjects::inbox_prefix,
};

/// Longest pause between two attempts to reconnect; the client's own default grows to 4 s.
const MAX_RECONNECT_DELAY: Duration = Duration::from_millis(250);

/// Longest time for one attempt to connect, from the look-up of the name to the server's greeting. The
/// client's own default of 5 s is too long in a cluster, where the address of a server that is being replaced
/// drops packets without an answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval of the pings on a connection that receives nothing. The third one without an answer ends the connection: when
/// a machine is lost without a word, requests reach another server within half of their time.
const PING_INTERVAL: Duration = Duration::from_secs(1);

/// Starts to connect. `waiting` and `unsent`: most messages in the queues of one subscription and of sending.
pub(crate) async fn connect(
    config: &BusConfig,
    name: &str,
    waiting: usize,
    unsent: Option<usize>,
    link: Arc<Link>,
) -> Result<Client, BusError> {
    let latest = AtomicUsize::new(usize::MAX);
    let mut options = ConnectOptions::new()
        .name(name)
        .custom_inbox_prefix(inbox_prefix(config.user()))
        .retry_on_initial_connect()
        // `MESH_BUS_URL` names all servers. What a server calls its own address may be reachable for servers only, or gone:
        // each such address costs the time limit of an attempt.
        .ignore_discovered_servers()
        .subscription_capacity(waiting)
        .connection_timeout(CONNECT_TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .reconnect_delay_callback(reconnect_delay)
        .reconnect_to_server_callback(move |servers, _| std::future::ready(another_server(&servers, &latest)))
        .event_callback(move |event| {
            link.on_event(&event);
            std::future::ready(())
        });
    if let Some(unsent) = unsent {
        options = options.client_capacity(unsent);
    }
    options = match config.credentials.clone() {
        Some(Credentials::Password { user, password }) => options.user_and_password(user, password),
        Some(Credentials::Jwt(text)) => options.credentials(&text).map_err(BusError::configuration)?,
        None => options,
    };
    if let Some(file) = &config.tls_ca {
        options = options.add_root_certificates(file.clone()).require_tls(true);
    }
    let servers: Vec<&str> = config.url.split(',').map(str::trim).collect();
    options.connect(servers).await.map_err(BusError::configuration)
}

/// Any server but the one that was chosen last, if there are several: a lost or frozen one may still take connections,
/// and its clients would wait for its greeting.
fn another_server(servers: &[Server], latest: &AtomicUsize) -> Option<ReconnectToServer> {
    let before = latest.load(Ordering::Relaxed);
    let others = servers.iter().enumerate().filter(|(index, _)| servers.len() == 1 || *index != before);
    let (chosen, server) = others.choose(&mut rand::rng())?;
    latest.store(chosen, Ordering::Relaxed);
    Some(ReconnectToServer { addr: server.addr.clone(), delay: None })
}

/// The pause before an attempt, counted from 1: 10 ms, doubling to 250 ms, with jitter so that a thousand
/// clients do not reconnect together. Starts low because the first attempt may go to the server that just
/// died.
fn reconnect_delay(attempt: usize) -> Duration {
    let steps = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX).min(5);
    let delay = (Duration::from_millis(10) * 2_u32.pow(steps)).min(MAX_RECONNECT_DELAY);
    delay.mul_f64(rand::rng().random_range(0.5..1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_server_is_chosen_twice_in_a_row_if_there_are_several() {
        let server = |number: u16| Server {
            addr: format!("nats://127.0.0.1:{number}").parse().unwrap(),
            failed_attempts: 0,
            did_connect: true,
            is_discovered: false,
            last_error: None,
        };
        for number in 1..4 {
            let (servers, latest) =
                ((0..number).map(server).collect::<Vec<_>>(), AtomicUsize::new(usize::MAX));
            let chosen = || another_server(&servers, &latest).unwrap().addr.port();
            let ports: Vec<u16> = (0..100).map(|_| chosen()).collect();
            assert!(number == 1 || ports.windows(2).all(|pair| pair[0] != pair[1]), "{ports:?}");
            assert!((0..number).all(|port| ports.contains(&port)), "{ports:?}");
        }
        assert!(another_server(&[], &AtomicUsize::new(0)).is_none());
    }
}
