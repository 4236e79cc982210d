//! `mesh up`: runs a whole mesh on this machine until a stop signal. Prints one line on standard output when every
//! service is ready; steps and status go to standard error. On return no process is left running, also after a failure.

pub mod backing;
mod data;
pub(crate) mod node;
mod status;
mod unknown;

use std::{
    fs::File,
    io::{self, Write as _},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use mesh_devnode::ReservedPort;
use mesh_launcher::{
    Ready, ReplicaSpec,
    bus::Bus,
    control::ControlSocket,
    database::Database,
    home::{Home, Ports, SavedState},
    limit_logs, open_files,
    process::ProcessSpec,
    services::{INGEST, SERVICES, Service, ServiceEnvironment, ServiceVariable, Sockets},
    supervisor::{Group, Supervisor, Tier},
    without_replicas,
};
use mesh_node::{CometbftNode, DemoNetwork, devnode_group, prepare_devnode, watch_cometbft};
use tokio::time::sleep;

use self::unknown::unknown;
use crate::{
    cli::{CommandWords, Consensus, PortArgs, UpArgs},
    doctor,
    failure::{Failure, as_typed, failed},
    migrate::migrate,
    processes::DECODER,
    programs,
    seal::{seal_complete, variables_of_home},
    signals,
    terminal::{self, is_interactive, print_line},
};

/// A decoder that has run for so long counts as ready.
const DECODER_RUNS_FOR: Duration = Duration::from_secs(1);

/// Its variable with the hash of the stored block that the node's first block follows without naming it.
const AFTER_HASH: &str = "MESH_INGEST_AFTER_HASH";

/// Runs a mesh until a signal or a `shutdown` over the control socket.
pub(crate) async fn up(mut args: UpArgs) -> Result<(), Failure> {
    let mut signals = signals::watch()?;
    let program = programs::own()?;
    let services = programs::services()?;
    data::check(&initial_data(&args))?;
    // The file of the keys may be created later.
    for file in args.ports.tls_cert.iter().chain(&args.ports.tls_key) {
        let unreadable = |error| {
            let path = file.display();
            Failure::configuration(format!("cannot read {path} ({error}); correct --tls-cert or --tls-key"))
        };
        File::open(file).map_err(unreadable)?;
    }
    if let Some(file) = args.ports.keys.as_ref().filter(|file| !file.exists()) {
        let file = file.display();
        print_line(&format!("{file} is not there yet; no key is valid until `mesh keys add` makes it"));
    }
    for name in unknown(&args.env) {
        print_line(&format!("no service reads {name}; docs/operations/variables.md lists all variables"));
    }
    let home = args.home.home()?;
    home.create()?;
    let lock = home.lock()?;
    if let (None, Some(database)) = (&args.postgres, home.saved_state()?.database) {
        return Err(failed!(
            "the mesh of {} uses the database {database}; give its address with --postgres, or another --home",
            home.root().display()
        ));
    }
    home.clear_run()?;
    init_log(&home);
    open_files::raise();
    let PortArgs { host, port, grpc_port, .. } = args.ports;
    let files = [
        ("MESH_EDGE_TLS_CERT", &args.ports.tls_cert),
        ("MESH_EDGE_TLS_KEY", &args.ports.tls_key),
        ("MESH_EDGE_KEYS_FILE", &args.ports.keys),
    ];
    for (name, file) in files {
        // The services run in another folder.
        let file = file.as_ref().map(std::path::absolute).transpose();
        let file = file.map_err(|error| failed!("cannot find the file of {name}: {error}"))?;
        args.env.extend(file.map(|file| (name.to_owned(), file.to_string_lossy().into_owned())));
    }
    let sockets = Sockets::bind(host, port, grpc_port).map_err(|(address, error)| taken(address, &error))?;
    let ports = Ports { host, port, grpc_port, http: sockets.http, grpc: sockets.grpc };
    home.save_state(&SavedState { ports: Some(ports), ..home.saved_state()? })?;
    let supervisor = backing::supervisor()?;
    let control = ControlSocket::bind(&home)?;
    let control = tokio::spawn(control.serve(supervisor.clone()));

    let node = Node::from_args(&args)?;
    let mesh = Mesh { args, home, program, services, sockets, node, supervisor };
    let outcome = tokio::select! {
        outcome = mesh.run() => outcome.map_err(|failure| match doctor::full_disk(&mesh.home) {
            Some(finding) => failure.and(&finding),
            None => failure,
        }),
        never = limit_logs(mesh.home.logs()) => match never {},
        () = signals.stop() => Ok(()),
        () = mesh.supervisor.shutdown_asked() => Ok(()),
    };
    terminal::clear();
    if is_interactive() {
        print_line("stopping");
    }
    mesh.supervisor.shutdown().await;
    control.abort();
    // The task removes its socket when it ends.
    let _ = control.await;
    // The kernel releases the lock when this process ends, for which `mesh down` waits.
    std::mem::forget(lock);
    outcome
}

struct Mesh {
    args: UpArgs,
    home: Home,
    program: PathBuf,
    /// The folder with the programs of the services.
    services: PathBuf,
    sockets: Sockets,
    node: Node,
    supervisor: Supervisor,
}

enum Node {
    /// The development node, on this port.
    Development(ReservedPort),
    /// A real one that is started here.
    Cometbft(CometbftNode),
    /// One that runs already.
    Running(String),
}

impl Node {
    fn from_args(args: &UpArgs) -> Result<Self, Failure> {
        match &args.node {
            Some(url) => Ok(Self::Running(url.clone())),
            None if args.consensus == Consensus::Cometbft => Ok(Self::Cometbft(CometbftNode::reserve(None)?)),
            None => ReservedPort::take().map(Self::Development).map_err(|error| {
                failed!("there is no port for the development node ({error}); close programs that hold ports")
            }),
        }
    }

    fn url(&self) -> String {
        match self {
            Self::Development(port) => format!("http://{}", port.address()),
            Self::Cometbft(node) => node.url(),
            Self::Running(url) => url.clone(),
        }
    }
}

impl Mesh {
    /// Starts everything, then waits. Returns only with a failure.
    async fn run(&self) -> Result<(), Failure> {
        let (database, bus) = self.start_backing().await?;
        let database_url = database.url().to_owned();
        let mut of_export = variables_of_home(&database_url, &self.home);
        of_export.extend(self.args.env.clone());
        migrate(&database_url, Some(of_export.clone())).await?;
        let data = data::fill(&self.home, &database_url, &initial_data(&self.args)).await?;
        // Before the services start, so that each finds the complete history at its first read.
        seal_complete(&database_url, of_export).await;
        let of_node = self.prepare_node(&database_url, data).await?;
        self.start_services(database, bus, of_node)?;
        let node = self.start_node()?;
        let own_node = node.iter().map(String::as_str);
        let decoder = self.args.decoder.as_ref().map(|_| DECODER);
        let services = self.running().map(|service| service.name);
        let names: Vec<&str> = services.chain(own_node).chain(decoder).collect();
        backing::until_ready(&self.home, &self.supervisor, &names).await?;
        for service in self.running().filter(|service| self.replicas_of(service) == 0) {
            print_line(&as_typed(&without_replicas(service.name)));
        }
        let scheme = if self.args.ports.tls_cert.is_some() { "https" } else { "http" };
        let ready = format!("ready {scheme}://{} grpc://{}\n", self.sockets.http, self.sockets.grpc);
        let mut out = io::stdout();
        // A closed standard output is no failure.
        let _ = out.write_all(ready.as_bytes()).and_then(|()| out.flush());
        let watch = async {
            match self.node {
                Node::Cometbft(_) => watch_cometbft(&self.supervisor).await,
                Node::Development(_) | Node::Running(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            never = status::show(&self.supervisor) => match never {},
            never = watch => match never {},
        }
    }

    /// Starts the servers that the services need, or checks those that were given.
    async fn start_backing(&self) -> Result<(Database, Bus), Failure> {
        let (postgres, nats) = (self.args.postgres.as_deref(), self.args.nats.as_deref());
        let programs = backing::programs(&self.home, postgres.is_none(), nats.is_none()).await?;
        let (home, supervisor, env) = (&self.home, &self.supervisor, &self.args.env);
        let database = async {
            if let Some(programs) = &programs.postgres {
                return backing::start_postgres(home, supervisor, programs, env).await;
            }
            let url = postgres.unwrap_or_default();
            backing::reach_postgres(url).await.map(|()| Database::shared(url))
        };
        let bus = async {
            match &programs.nats {
                Some(program) => {
                    let prefix = bus_prefix(env);
                    mesh_bus::check_prefix(&prefix).map_err(|why| {
                        Failure::configuration(format!("MESH_BUS_PREFIX {prefix:?}: {why}"))
                    })?;
                    backing::start_nats(home, supervisor, program, &prefix, env).await
                }
                None => backing::reach_nats(home, nats.unwrap_or_default()).await,
            }
        };
        tokio::try_join!(database, bus)
    }

    fn running(&self) -> impl Iterator<Item = &'static Service> {
        let stores_blocks = self.args.stores_blocks();
        SERVICES.iter().filter(move |service| stores_blocks || service.name != INGEST)
    }

    fn start_services(
        &self,
        database: Database,
        bus: Bus,
        of_node: Option<ServiceVariable>,
    ) -> Result<(), Failure> {
        let mut service_env: Vec<_> = of_node.into_iter().collect();
        if let Some(command) = &self.args.decoder {
            let (service, name) = (INGEST, "MESH_INGEST_DECODER");
            service_env.push(ServiceVariable { service, name, value: "nats".to_owned() });
            self.supervisor.add(self.decoder(command, &bus), 1)?;
        }
        let around = Arc::new(ServiceEnvironment {
            home: self.home.clone(),
            binaries: self.services.clone(),
            bus,
            database,
            node_url: Some(self.node.url()),
            sockets: self.sockets.clone(),
            service_env,
            env: self.args.env.clone(),
        });
        for service in self.running() {
            self.supervisor.add(around.group(service), self.replicas_of(service))?;
        }
        Ok(())
    }

    fn replicas_of(&self, service: &Service) -> u32 {
        let count = self.args.replicas.iter().rfind(|count| count.service == service.name);
        count.map_or(1, |count| count.replicas)
    }

    /// A decoder's process, which finds the bus by its variables. The command is run without a shell, so that
    /// signals reach the decoder itself.
    fn decoder(&self, command: &CommandWords, bus: &Bus) -> Group {
        let mut spec = ProcessSpec::new(format!("{DECODER}-0"), &command.program, self.home.log(DECODER, 0));
        spec = command.arguments.iter().fold(spec, ProcessSpec::arg);
        spec.env.extend(bus.variables(DECODER));
        spec.env.extend(self.args.env.clone());
        // What cannot start, such as a program that lacks a library, ends sooner.
        let ready = Ready::probe(|| async {
            sleep(DECODER_RUNS_FOR).await;
            true
        });
        Group::single(DECODER, Tier::Service, ReplicaSpec { spec, ready })
    }

    /// Prepares the node's chain, unless the node runs already. Returns the variable that `ingest` needs for it.
    async fn prepare_node(
        &self,
        database_url: &str,
        demo: Option<DemoNetwork>,
    ) -> Result<Option<ServiceVariable>, Failure> {
        let value = match &self.node {
            Node::Running(_) => return Ok(None),
            Node::Development(_) => {
                prepare_devnode(&self.home, database_url, demo).await?;
                return Ok(None);
            }
            Node::Cometbft(node) => node.prepare(&self.home, database_url, demo).await?,
        };
        let variable = ServiceVariable { service: INGEST, name: AFTER_HASH, value };
        Ok(Some(variable).filter(|variable| !variable.value.is_empty()))
    }

    /// Starts the node's processes, unless it runs already. Returns their names.
    fn start_node(&self) -> Result<Vec<String>, Failure> {
        let env = self.args.env.clone();
        let groups = match &self.node {
            Node::Running(_) => Vec::new(),
            Node::Development(port) => {
                vec![devnode_group(&self.program, &self.home, Some(port.address()), env)]
            }
            Node::Cometbft(node) => node.groups(&self.program, &self.home, env).into(),
        };
        let names = groups.iter().map(|group| group.name.clone()).collect();
        groups.into_iter().try_for_each(|group| self.supervisor.add(group, 1))?;
        Ok(names)
    }
}

/// What an empty database is filled with, from the options.
fn initial_data(args: &UpArgs) -> data::InitialData<'_> {
    let (postgres, load) = (args.postgres.as_deref(), args.load.as_deref());
    data::InitialData { postgres, load, is_followed: args.node.is_some(), demo: &args.demo }
}

/// The first token of the subjects of services with these variables.
fn bus_prefix(env: &[(String, String)]) -> String {
    let given = env.iter().rfind(|(name, _)| name == "MESH_BUS_PREFIX").map(|(_, prefix)| prefix.clone());
    let given = given.or_else(|| std::env::var("MESH_BUS_PREFIX").ok());
    given.filter(|prefix| !prefix.is_empty()).unwrap_or_else(|| "mesh".to_owned())
}

fn taken(address: SocketAddr, error: &io::Error) -> Failure {
    let text = |next: &str| format!("cannot listen on {address} ({error}); {next}");
    const PORTS: &str = "choose other ports with --port and --grpc-port (0 takes a free one)";
    match error.kind() {
        // The other program that listens there may end.
        io::ErrorKind::AddrInUse => Failure::failed(text(PORTS)),
        io::ErrorKind::AddrNotAvailable => {
            Failure::configuration(text("give an address of this machine with --host (0.0.0.0: all of them)"))
        }
        _ => Failure::configuration(text(PORTS)),
    }
}

/// Opens the launcher's own log file, next to those of the processes.
fn init_log(home: &Home) {
    let path = home.log("mesh", 0);
    match std::fs::OpenOptions::new().create(true).append(true).open(&path) {
        Ok(file) => {
            let log = tracing_subscriber::fmt().json().with_writer(std::sync::Mutex::new(file));
            // An error may be that of a full disk, on which standard error may be, too: printing there would panic.
            let log = log.log_internal_errors(false);
            // Fails when a subscriber is installed already, as in a test; that one stays.
            let _ = log.with_max_level(tracing::Level::INFO).try_init();
        }
        Err(error) => {
            print_line(&format!("no log of the launcher: {} cannot be written ({error})", path.display()));
        }
    }
}
