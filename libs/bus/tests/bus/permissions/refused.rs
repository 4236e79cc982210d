//! Subscriptions that a running server ends because its permissions have changed.

use std::{fs, net::TcpListener, time::Duration};

use mesh_bus::{Bus, BusConfig};
use mesh_launcher::{
    process::{Process, ProcessSpec, Signal},
    servers::find_nats,
};
use mesh_testbed::eventually;

const WITHIN: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_refused_subscription_is_reported_and_made_again_when_it_is_permitted() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("nats-server.conf");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let deny = |subject: &str| {
        let user =
            format!("{{ user: u, password: p, permissions: {{ subscribe: {{ deny: {subject:?} }} }} }}");
        let users = format!("no_auth_user: u\nauthorization {{ users: [ {user} ] }}\n");
        fs::write(&config, format!("listen: \"127.0.0.1:{port}\"\nserver_name: n\n{users}")).unwrap();
    };
    deny("other");
    let program = find_nats().unwrap();
    let spec = ProcessSpec::new("nats-server", program, home.path().join("log"));
    let server = Process::spawn(&spec.arg("-c").arg(config.to_str().unwrap())).unwrap();
    let bus = Bus::connect(BusConfig {
        url: format!("nats://127.0.0.1:{port}"),
        credentials: None,
        prefix: "mesh".to_owned(),
        name: "test".to_owned(),
        version: "1.0.0".to_owned(),
        tls_ca: None,
    });
    let bus = bus.await.unwrap();
    let is_usable = async || bus.check().is_ok();
    eventually(WITHIN, "no connection", is_usable).await;
    deny(">");
    server.signal(Signal::HUP).unwrap();
    let is_reported =
        async || bus.check().is_err_and(|why| why.contains("does not permit to subscribe to _INBOX"));
    eventually(WITHIN, "no report", is_reported).await;
    deny("other");
    server.signal(Signal::HUP).unwrap();
    eventually(WITHIN, "no new subscription", is_usable).await;
    server.stop().await.unwrap();
}
