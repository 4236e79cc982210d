//! A running server whose permissions or limits change.

use std::{fs, net::TcpListener, time::Duration};

use mesh_bus::Bus;
use mesh_launcher::{
    process::{Process, ProcessSpec, Signal},
    servers::find_nats,
};
use mesh_problem::Code;
use mesh_testbed::eventually;
use proto_msgs::v2::GetNetworkLimitsRequest;

const WITHIN: Duration = Duration::from_secs(20);

#[tokio::test]
async fn what_the_server_refuses_is_reported_until_it_is_permitted() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("nats-server.conf");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let permit = |denied: &str, max_payload: &str| {
        let user = format!("{{ user: u, password: p, permissions: {{ {denied} }} }}");
        let users = format!("no_auth_user: u\nauthorization {{ users: [ {user} ] }}\n");
        let server = format!("listen: \"127.0.0.1:{port}\"\nserver_name: n\nmax_payload: {max_payload}\n");
        fs::write(&config, server + &users).unwrap();
    };
    permit("", "300KB");
    let program = find_nats().unwrap();
    let spec = ProcessSpec::new("nats-server", program, home.path().join("log"));
    let server = Process::spawn(&spec.arg("-c").arg(config.to_str().unwrap())).unwrap();
    let bus = Bus::connect(crate::own_server(port)).await.unwrap();
    let reports = |part| {
        let bus = &bus;
        async move || bus.check().is_err_and(|why| why.contains(part))
    };
    let is_usable = async || bus.check().is_ok();
    eventually(WITHIN, "no connection", reports("takes messages of 307200 bytes")).await;
    permit("", "4MB");
    server.signal(Signal::HUP).unwrap();
    eventually(WITHIN, "no new connection", is_usable).await;

    permit("subscribe: { deny: \">\" }", "4MB");
    server.signal(Signal::HUP).unwrap();
    eventually(WITHIN, "no report", reports("does not permit to subscribe to _INBOX")).await;
    permit("publish: { deny: \"mesh.node-info.>\" }", "4MB");
    server.signal(Signal::HUP).unwrap();
    eventually(WITHIN, "no new subscription", is_usable).await;

    // The first request waits for its answer; the refusal comes meanwhile.
    let is_refused = async || {
        let answer = bus.ask_typed(&GetNetworkLimitsRequest::default(), Duration::from_millis(200)).await;
        answer
            .is_err_and(|problem| problem.code == Code::Unavailable && problem.to_string().contains("permit"))
    };
    eventually(WITHIN, "the request is not refused", is_refused).await;
    server.stop().await.unwrap();
}
