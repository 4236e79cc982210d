//! The supervisor through its requests, with short-lived children; tests wait on events with deadlines.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, os::unix::process::CommandExt as _, path::Path, time::Duration};

use mesh_launcher::{
    Ready, ReplicaSpec, RestartRule,
    control::{Answer, ControlError, ControlSocket, Request, Row, ask},
    home::Home,
    process::ProcessSpec,
    supervisor::{Group, NotReady, Supervisor, Tier},
};
use mesh_testbed::{eventually, retry};
use tempfile::TempDir;
use tokio::time::timeout;

const RULE: RestartRule = RestartRule {
    first: Duration::from_millis(20),
    longest: Duration::from_millis(100),
    settled: Duration::from_secs(10),
};
const PATIENCE: Duration = Duration::from_secs(10);

struct Fixture {
    folder: TempDir,
    home: Home,
    supervisor: Supervisor,
}

impl Fixture {
    fn new() -> Self {
        Self::in_folder(|folder| folder.to_owned())
    }

    fn in_folder(root: impl FnOnce(&Path) -> std::path::PathBuf) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(root(folder.path())).unwrap();
        home.create().unwrap();
        mesh_chassis::install_tls_provider();
        Self { folder, home, supervisor: Supervisor::new(RULE).unwrap() }
    }

    /// Adds a group whose replicas run a shell script; `$0` is the home, `$1` the name of the process.
    fn add(&self, name: &str, tier: Tier, replicas: u32, script: &str) {
        self.add_with(name, tier, replicas, script, |_| Ready::Spawned);
    }

    fn add_with(
        &self,
        name: &str,
        tier: Tier,
        replicas: u32,
        script: &str,
        ready: impl Fn(u32) -> Ready + Send + Sync + 'static,
    ) {
        let (home, script, service) = (self.home.clone(), script.to_owned(), name.to_owned());
        let replica_spec = Box::new(move |replica, _| {
            let process = format!("{service}-{replica}");
            let mut spec = ProcessSpec::new(&process, "/bin/sh", home.log(&service, replica))
                .arg("-c")
                .arg(&script)
                .arg(home.root().to_string_lossy())
                .arg(&process);
            spec.grace = Duration::from_secs(5);
            ReplicaSpec { spec, ready: ready(replica) }
        });
        let group = Group { name: name.to_owned(), tier, scalable: tier != Tier::Server, replica_spec };
        self.supervisor.add(group, replicas).unwrap();
    }

    async fn rows_when(&self, test: impl Fn(&[Row]) -> bool) -> Vec<Row> {
        retry(PATIENCE, async || {
            let rows = self.supervisor.rows();
            if test(&rows) { Ok(rows) } else { Err(format!("{rows:?}")) }
        })
        .await
    }

    fn journal(&self) -> String {
        std::fs::read_to_string(self.home.root().join("journal")).unwrap_or_default()
    }

    async fn done(&self, request: Request) {
        let answer = self.supervisor.answer(request).await;
        assert!(matches!(answer, Answer::Done { .. }), "{answer:?}");
    }
}

const WAITS: &str = "exec sleep 600";
const NOTES_ITS_END: &str =
    "trap 'echo $1 >> $0/journal; exit 0' TERM; echo up >> $0/$1; while :; do sleep 0.02; done";

fn stop(name: &str, replica: Option<u32>) -> Request {
    Request::Stop { name: name.to_owned(), replica }
}

fn start(name: &str, replica: Option<u32>) -> Request {
    Request::Start { name: name.to_owned(), replica }
}

fn pids(rows: &[Row]) -> BTreeMap<(String, u32), u32> {
    rows.iter().map(|row| ((row.service.clone(), row.replica), row.pid)).collect()
}

fn runs(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn a_child_that_keeps_dying_is_started_ever_more_slowly() {
    let fixture = Fixture::new();
    fixture.add("worker", Tier::Service, 1, "date +%s%N >> $0/journal");
    let otherwise = "it is not started five times";
    eventually(PATIENCE, otherwise, async || fixture.journal().lines().count() >= 5).await;
    let starts: Vec<u64> = fixture.journal().lines().map(|line| line.parse().unwrap()).collect();
    let waits: Vec<u64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000_000).collect();
    for (wait, least) in waits.iter().zip([20, 40, 80, 100]) {
        assert!(*wait >= least, "{waits:?}");
    }
    fixture.supervisor.shutdown().await;
}

#[tokio::test]
async fn a_stopped_process_stays_down_until_it_is_started() {
    let fixture = Fixture::new();
    fixture.add("worker", Tier::Service, 2, WAITS);
    let before = fixture.rows_when(|rows| rows.len() == 2).await;
    fixture.done(stop("worker", Some(1))).await;
    assert!(!runs(before[1].pid));
    assert_eq!(fixture.supervisor.rows(), before[..1]);
    let started = fixture.rows_when(|rows| rows != &before[..1]);
    timeout(RULE.longest * 2, started).await.expect_err("it is started again");

    fixture.done(start("worker", Some(1))).await;
    let after = fixture.rows_when(|rows| rows.len() == 2).await;
    assert_eq!(after[0], before[0]);
    assert_ne!(after[1].pid, before[1].pid);

    let unknown = fixture.supervisor.answer(stop("worker", Some(7))).await;
    assert!(matches!(unknown, Answer::Refused { ref reason } if reason.contains("replica 7")), "{unknown:?}");
    let unknown = fixture.supervisor.answer(stop("nobody", None)).await;
    assert!(matches!(unknown, Answer::Refused { ref reason } if reason.contains("nobody")), "{unknown:?}");
    fixture.supervisor.shutdown().await;
}

#[tokio::test]
async fn one_that_waits_for_its_restart_can_be_held_too() {
    let fixture = Fixture::new();
    fixture.add("worker", Tier::Service, 1, "exit 1");
    timeout(PATIENCE, fixture.done(stop("worker", None))).await.unwrap();
    assert_eq!(fixture.supervisor.rows(), []);
    fixture.supervisor.shutdown().await;
}

#[tokio::test]
async fn everything_stops_in_order_and_nothing_is_left() {
    let fixture = Fixture::new();
    let order = [
        ("database", Tier::Server),
        ("writer", Tier::Node),
        ("worker", Tier::Service),
        ("front", Tier::Front),
    ];
    for (name, tier) in order {
        fixture.add(name, tier, 1, NOTES_ITS_END);
    }
    let rows = fixture
        .rows_when(|rows| {
            let armed = |name: &str| fixture.home.root().join(format!("{name}-0")).exists();
            rows.len() == 4 && order.iter().all(|(name, _)| armed(name))
        })
        .await;
    timeout(PATIENCE, fixture.supervisor.shutdown()).await.unwrap();
    assert_eq!(fixture.journal(), "front-0\nworker-0\nwriter-0\ndatabase-0\n");
    assert!(rows.iter().all(|row| !runs(row.pid)));
    assert_eq!(fixture.supervisor.rows(), []);
}

#[tokio::test]
async fn a_rolling_restart_replaces_every_replica_once_its_successor_is_ready() {
    let fixture = Fixture::new();
    fixture.add("worker", Tier::Service, 3, NOTES_ITS_END);
    fixture.supervisor.ready(&["worker"], PATIENCE).await.unwrap();
    let before = pids(&fixture.rows_when(|rows| rows.len() == 3).await);
    fixture.done(Request::Restart { name: "worker".into() }).await;
    let after = pids(&fixture.supervisor.rows());
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    assert!(before.iter().all(|(key, pid)| after[key] != *pid && !runs(*pid)), "{before:?} {after:?}");
    fixture.supervisor.shutdown().await;
    assert!(after.values().all(|pid| !runs(*pid)));
}

#[tokio::test]
async fn the_number_of_replicas_follows_scale() {
    let fixture = Fixture::new();
    fixture.add("worker", Tier::Service, 1, WAITS);
    fixture.add("database", Tier::Server, 1, WAITS);
    fixture.done(Request::Scale { name: "worker".into(), replicas: 3 }).await;
    let three = fixture.rows_when(|rows| rows.len() == 4).await;
    fixture.done(Request::Scale { name: "worker".into(), replicas: 1 }).await;
    let left = fixture.supervisor.rows();
    assert_eq!(left, [three[0].clone(), three[3].clone()]);
    assert!(!runs(three[1].pid) && !runs(three[2].pid));
    let none = fixture.supervisor.answer(Request::Scale { name: "worker".into(), replicas: 0 }).await;
    assert!(matches!(&none, Answer::Done { note: Some(note) } if note.contains("no replicas")), "{none:?}");
    for request in
        [Request::Restart { name: "worker".into() }, Request::Scale { name: "database".into(), replicas: 2 }]
    {
        let refused = fixture.supervisor.answer(request).await;
        assert!(matches!(refused, Answer::Refused { .. }), "{refused:?}");
    }
    fixture.supervisor.shutdown().await;
}

#[tokio::test]
async fn a_service_that_refuses_its_configuration_ends_the_wait_at_once() {
    let fixture = Fixture::new();
    fixture.add_with("worker", Tier::Service, 1, "exit 64", |_| Ready::probe(|| async { false }));
    let outcome = timeout(PATIENCE, fixture.supervisor.ready(&["worker"], PATIENCE * 2)).await.unwrap();
    assert!(matches!(outcome, Err(NotReady::Misconfigured(ref name)) if name == "worker-0"), "{outcome:?}");
    fixture.supervisor.shutdown().await;
}

#[tokio::test]
async fn a_program_that_is_missing_ends_the_wait_and_is_named_in_its_log() {
    let fixture = Fixture::new();
    let log = fixture.home.log("worker", 0);
    let replica =
        ReplicaSpec { spec: ProcessSpec::new("worker-0", "/none/program", &log), ready: Ready::Spawned };
    fixture.supervisor.add(Group::single("worker", Tier::Service, replica), 1).unwrap();
    let outcome = fixture.supervisor.ready(&["worker"], PATIENCE).await;
    assert!(matches!(outcome, Err(NotReady::Dying(ref name)) if name == "worker-0"), "{outcome:?}");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("cannot start /none/program: No such file"), "{log}");
    fixture.supervisor.shutdown().await;
}

#[tokio::test]
async fn a_service_is_ready_when_its_admin_address_says_so() {
    let fixture = Fixture::new();
    let admin = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = admin.local_addr().unwrap();
    let file = fixture.home.admin_address("worker", 0, 0);
    std::fs::write(&file, "127.0.0.1:1\n").unwrap();
    let script = format!("echo {address} > $0/fresh; mv $0/fresh {}; exec sleep 600", file.display());
    fixture.add_with("worker", Tier::Service, 1, &script, move |_| Ready::Admin(file.clone()));
    let server = tokio::spawn(async move {
        for status in ["503 Service Unavailable", "200 OK"] {
            let (mut stream, _) = admin.accept().await.unwrap();
            let mut request = [0; 1024];
            let length = tokio::io::AsyncReadExt::read(&mut stream, &mut request).await.unwrap();
            assert!(request[..length].starts_with(b"GET /readyz "));
            let reply = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            tokio::io::AsyncWriteExt::write_all(&mut stream, reply.as_bytes()).await.unwrap();
        }
    });
    fixture.supervisor.ready(&["worker"], PATIENCE).await.unwrap();
    server.await.unwrap();
    assert_eq!(fixture.supervisor.rows()[0].admin, Some(format!("http://{address}")));
    fixture.supervisor.shutdown().await;
}

#[tokio::test]
async fn a_second_command_line_is_answered_through_the_control_socket() {
    let fixture = Fixture::new();
    assert!(matches!(ask(&fixture.home, &Request::Ps).await, Err(ControlError::NotRunning(_))));
    round_trip(&fixture).await;
    assert!(matches!(ask(&fixture.home, &Request::Ps).await, Err(ControlError::NotRunning(_))));
}

#[tokio::test]
async fn a_home_with_a_very_long_path_works_too() {
    let fixture = Fixture::in_folder(|folder| folder.join("a-rather-long-name-of-a-folder/".repeat(8)));
    assert!(fixture.home.root().as_os_str().len() > 200);
    assert!(fixture.folder.path().exists());
    round_trip(&fixture).await;
}

async fn round_trip(fixture: &Fixture) {
    let socket = ControlSocket::bind(&fixture.home).unwrap();
    let serving = tokio::spawn(socket.serve(fixture.supervisor.clone()));
    fixture.add("worker", Tier::Service, 1, WAITS);
    let rows = fixture.rows_when(|rows| rows.len() == 1).await;
    assert_eq!(ask(&fixture.home, &Request::Ps).await.unwrap(), Answer::Rows { rows, restarting: vec![] });
    std::fs::remove_dir_all(fixture.home.run()).unwrap();
    let is_answered = async || ask(&fixture.home, &Request::Ps).await.is_ok();
    eventually(PATIENCE, "a removed socket is not opened again", is_answered).await;
    let answer = ask(&fixture.home, &stop("worker", None)).await.unwrap();
    assert_eq!(answer, Answer::Done { note: None });
    assert_eq!(
        ask(&fixture.home, &Request::Ps).await.unwrap(),
        Answer::Rows { rows: vec![], restarting: vec![] }
    );
    assert_eq!(ask(&fixture.home, &Request::Shutdown).await.unwrap(), Answer::Done { note: None });
    timeout(PATIENCE, fixture.supervisor.shutdown_asked()).await.unwrap();
    fixture.supervisor.shutdown().await;
    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
}

#[test]
#[cfg(target_os = "linux")]
fn a_child_does_not_inherit_the_home() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path()).unwrap();
    home.create().unwrap();
    let _lock = home.lock().unwrap();
    // A child that inherits the lock's file would keep the home locked after a kill of the launcher.
    let mut child = std::process::Command::new("/bin/sleep").arg("600").process_group(0).spawn().unwrap();
    let root = folder.path().canonicalize().unwrap();
    // The dynamic loader of the new program opens and closes files meanwhile.
    let open: Vec<_> = std::fs::read_dir(format!("/proc/{}/fd", child.id()))
        .unwrap()
        .filter_map(|entry| match std::fs::read_link(entry.unwrap().path()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            path => Some(path.unwrap()),
        })
        .filter(|path| path.starts_with(&root))
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_home_given_back_while_children_start_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path()).unwrap();
    home.create().unwrap();
    let mut child = std::process::Command::new("/bin/true");
    std::thread::scope(|scope| {
        let starting = scope.spawn(|| {
            for _ in 0..200 {
                child.process_group(0).status().unwrap();
            }
        });
        while !starting.is_finished() {
            drop(home.lock().unwrap());
        }
    });
}
