//! The proxy between real sockets. Times are only bounded from below, since the machine may be busy.
#![allow(clippy::unwrap_used)]

use std::{io::ErrorKind, net::SocketAddr, num::NonZeroU32, time::Duration};

use mesh_proxy::{Cut, Line, Proxy};
use mesh_testbed::eventually;
use rand::{Rng as _, RngCore as _, SeedableRng as _, rngs::SmallRng};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::{Instant, interval, timeout},
};

const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Long enough for bytes that are not delayed.
const MOMENT: Duration = Duration::from_millis(150);

/// A listening socket, and a proxy in front of it.
async fn listener_and_proxy() -> (TcpListener, Proxy) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::start(listener.local_addr().unwrap(), 7).await.unwrap();
    (listener, proxy)
}

/// Both ends of a connection through the proxy.
async fn connected(listener: &TcpListener, proxy: &Proxy) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(proxy.address()).await.unwrap();
    let (server, _) = timeout(TIME_LIMIT, listener.accept()).await.unwrap().unwrap();
    (client, server)
}

/// Starts an echo server.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
                let _ = to.shutdown().await;
            });
        }
    });
    address
}

/// Sends bytes to an echo server and returns the bytes received.
async fn there_and_back(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let (mut from, mut to) = TcpStream::connect(address).await.unwrap().into_split();
    let mut back = Vec::new();
    let sent = async {
        to.write_all(bytes).await.unwrap();
        to.shutdown().await.unwrap();
    };
    let (_, read) =
        timeout(TIME_LIMIT, async { tokio::join!(sent, from.read_to_end(&mut back)) }).await.unwrap();
    read.unwrap();
    back
}

fn some_bytes(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    SmallRng::seed_from_u64(count as u64).fill_bytes(&mut bytes);
    bytes
}

/// Whether no byte arrives for a moment.
async fn is_silent(stream: &mut TcpStream) -> bool {
    timeout(MOMENT, stream.read_u8()).await.is_err()
}

async fn byte(stream: &mut TcpStream) -> u8 {
    timeout(TIME_LIMIT, stream.read_u8()).await.unwrap().unwrap()
}

#[tokio::test]
async fn bytes_pass_unchanged_whatever_the_line_does() {
    let proxy = Proxy::start(echo().await, 3).await.unwrap();
    let bytes = some_bytes(3 << 20);
    assert!(there_and_back(proxy.address(), &bytes).await == bytes);
    let mut random = SmallRng::seed_from_u64(5);
    let weather = async {
        let mut pace = interval(Duration::from_millis(15));
        loop {
            pace.tick().await;
            let ms = |random: &mut SmallRng, most| Duration::from_millis(random.random_range(0..=most));
            proxy.set(Line {
                delay: ms(&mut random, 5),
                jitter: ms(&mut random, 10),
                bytes_per_s: random.random_bool(0.3).then(|| NonZeroU32::new(4_000_000).unwrap()),
                stalls: random.random_bool(0.2),
                by_lines: random.random_bool(0.2),
                refuses: false,
            });
        }
    };
    let address = proxy.address();
    let all = async { tokio::join!(there_and_back(address, &bytes), there_and_back(address, &bytes)) };
    let (one, other) = tokio::select! {
        back = all => back,
        () = weather => unreachable!(),
    };
    assert!(one == bytes && other == bytes);
}

#[tokio::test]
async fn a_delay_applies_to_both_directions_and_to_open_connections() {
    let proxy = Proxy::start(echo().await, 0).await.unwrap();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    client.write_u8(1).await.unwrap();
    assert_eq!(byte(&mut client).await, 1);
    let delay = Duration::from_millis(50);
    proxy.set(Line { delay, ..Line::default() });
    let begun = Instant::now();
    client.write_u8(2).await.unwrap();
    assert_eq!(byte(&mut client).await, 2);
    assert!(begun.elapsed() >= 2 * delay, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_line_that_is_not_complete_waits_for_its_end() {
    let (listener, proxy) = listener_and_proxy().await;
    proxy.set(Line { by_lines: true, ..Line::default() });
    let (mut client, mut server) = connected(&listener, &proxy).await;
    client.write_all(b"a\nb").await.unwrap();
    assert_eq!((byte(&mut server).await, byte(&mut server).await), (b'a', b'\n'));
    assert!(is_silent(&mut server).await);
    client.write_all(b"c\nd").await.unwrap();
    client.shutdown().await.unwrap();
    let mut rest = String::new();
    timeout(TIME_LIMIT, server.read_to_string(&mut rest)).await.unwrap().unwrap();
    assert_eq!(rest, "bc\nd");
}

#[tokio::test]
async fn a_slow_line_is_as_slow_as_asked() {
    let (listener, proxy) = listener_and_proxy().await;
    proxy.set(Line { bytes_per_s: NonZeroU32::new(100_000), ..Line::default() });
    let (mut client, mut server) = connected(&listener, &proxy).await;
    let begun = Instant::now();
    client.write_all(&[0; 30_000]).await.unwrap();
    let mut all = vec![0; 30_000];
    timeout(TIME_LIMIT, server.read_exact(&mut all)).await.unwrap().unwrap();
    // The last portion is written without a wait after it.
    assert!(begun.elapsed() >= Duration::from_millis(240), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_stalled_line_loses_nothing_and_forwards_nothing() {
    let (listener, proxy) = listener_and_proxy().await;
    let (mut client, mut server) = connected(&listener, &proxy).await;
    proxy.set(Line { stalls: true, ..Line::default() });
    client.write_u8(1).await.unwrap();
    assert!(is_silent(&mut server).await);
    let newcomer = TcpStream::connect(proxy.address()).await.unwrap();
    assert!(timeout(MOMENT, listener.accept()).await.is_err());
    // A sender blocks once the buffers are full.
    let mut sent = 0;
    while let Ok(written) = timeout(MOMENT, client.write(&[1; 65_536])).await {
        sent += written.unwrap();
        assert!(sent < 64 << 20, "{sent}");
    }
    proxy.set(Line::default());
    timeout(TIME_LIMIT, listener.accept()).await.unwrap().unwrap();
    let mut received = vec![0; sent + 1];
    timeout(TIME_LIMIT, server.read_exact(&mut received)).await.unwrap().unwrap();
    assert!(received.iter().all(|byte| *byte == 1) && is_silent(&mut server).await);
    drop(newcomer);
}

#[tokio::test]
async fn both_ends_notice_a_cut_and_the_next_connection_works() {
    let (listener, proxy) = listener_and_proxy().await;
    for how in [Cut::Reset, Cut::Close] {
        let (mut client, mut server) = connected(&listener, &proxy).await;
        client.write_u8(1).await.unwrap();
        assert_eq!(byte(&mut server).await, 1);
        assert_eq!(proxy.cut(how), 1);
        for end in [&mut client, &mut server] {
            let ended = timeout(TIME_LIMIT, end.read(&mut [0])).await.unwrap();
            match how {
                Cut::Reset => assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset),
                Cut::Close => assert_eq!(ended.unwrap(), 0),
            }
        }
        drop((client, server));
        eventually(TIME_LIMIT, "a cut connection stays open", async || proxy.open() == 0).await;
    }
    let (mut client, mut server) = connected(&listener, &proxy).await;
    server.write_u8(2).await.unwrap();
    assert_eq!(byte(&mut client).await, 2);
}

#[tokio::test]
async fn an_end_of_file_or_a_reset_is_forwarded_as_such() {
    let (listener, proxy) = listener_and_proxy().await;
    // After the end of one direction the other one still works.
    let (mut client, mut server) = connected(&listener, &proxy).await;
    client.shutdown().await.unwrap();
    assert_eq!(timeout(TIME_LIMIT, server.read(&mut [0])).await.unwrap().unwrap(), 0);
    server.write_u8(3).await.unwrap();
    assert_eq!(byte(&mut client).await, 3);
    // A reset on one side is a reset on the other.
    let (client, mut server) = connected(&listener, &proxy).await;
    client.set_zero_linger().unwrap();
    drop(client);
    let ended = timeout(TIME_LIMIT, server.read(&mut [0])).await.unwrap();
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset);
    // Without a listening server there is no connection.
    drop(listener);
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    timeout(TIME_LIMIT, client.read(&mut [0])).await.unwrap().unwrap_err();
}

#[tokio::test]
async fn a_refusing_line_resets_new_connections_and_keeps_open_ones() {
    let (listener, proxy) = listener_and_proxy().await;
    let (mut client, mut server) = connected(&listener, &proxy).await;
    proxy.set(Line { refuses: true, ..Line::default() });
    let refused = async {
        let mut newcomer = TcpStream::connect(proxy.address()).await?;
        newcomer.read_u8().await
    };
    timeout(TIME_LIMIT, refused).await.unwrap().unwrap_err();
    client.write_u8(4).await.unwrap();
    assert_eq!(byte(&mut server).await, 4);
}

#[tokio::test]
async fn dropping_a_proxy_ends_its_connections() {
    let (listener, proxy) = listener_and_proxy().await;
    let (mut client, mut server) = connected(&listener, &proxy).await;
    let address = proxy.address();
    drop(proxy);
    for end in [&mut client, &mut server] {
        assert!(timeout(TIME_LIMIT, end.read(&mut [0])).await.unwrap().map_or(true, |read| read == 0));
    }
    TcpStream::connect(address).await.unwrap_err();
}
