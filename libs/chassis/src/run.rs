//! The life of a service process: configure, connect, answer, stop in order.

use std::{
    cell::{Cell, RefCell},
    error::Error,
    future::Future,
    io,
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
    rc::Rc,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use futures_util::future::LocalBoxFuture;
use mesh_bus::{Bus, BusConfig, Credentials, ServiceHandle};
use mesh_problem::error_chain;
use mesh_telemetry::{Registry, span};
use opentelemetry_sdk::trace::SdkTracer;
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use tracing_subscriber::{
    Layer,
    filter::{FilterExt, LevelFilter, Targets, filter_fn},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::{
    Env, StopSignals, admin,
    arguments::{self, Argument},
    log::{self, Events},
    process,
    telemetry::Telemetry,
    tls::install_tls_provider,
};

/// Exit code for a configuration that cannot work.
const WRONG_CONFIGURATION: u8 = 64;

/// Longest time for writing the last lines of the log.
const LOG_WITHIN: Duration = Duration::from_secs(1);

/// Longest time for the end of the runtime.
const ENDED_WITHIN: Duration = Duration::from_secs(3);

/// The variable with the filter of the log.
const LOG: &str = "MESH_LOG";

/// A service's own configuration.
pub trait Config: Sized {
    /// Reads it; mistakes are added to `env`.
    fn read(env: &mut Env) -> Self;
}

/// The arguments of a service's start.
pub struct Setup<C> {
    /// Its configuration.
    pub config: C,
    /// The message bus, which may not be connected yet.
    pub bus: Bus,
    /// The metrics of `/metrics`.
    pub registry: Rc<RefCell<Registry>>,
}

/// The program of a service.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// The name of the workload.
    pub workload: &'static str,
    /// Its version.
    pub version: &'static str,
    /// What it does, for `--help`.
    pub description: &'static str,
}

/// The [`Program`] of the package in which this is written, with the name of its workload.
#[macro_export]
macro_rules! program {
    ($workload:expr) => {
        $crate::Program {
            workload: $workload,
            version: env!("CARGO_PKG_VERSION"),
            description: env!("CARGO_PKG_DESCRIPTION"),
        }
    };
}

/// Why a service cannot start.
pub type Failure = Box<dyn Error + Send + Sync>;

/// [`run`]'s argument without its types, so that the framework is compiled once and not in every service.
type Start = Box<dyn FnOnce(Bus, Rc<RefCell<Registry>>) -> LocalBoxFuture<'static, Result<Service, Failure>>>;

/// Reads the service's configuration and returns what starts it.
type Configure = Box<dyn FnOnce(&mut Env) -> Start>;

/// A running service.
pub struct Service {
    ready: Box<dyn Fn() -> LocalBoxFuture<'static, Result<(), String>>>,
    drain: Box<dyn FnOnce(Duration) -> LocalBoxFuture<'static, ()>>,
}

impl Service {
    /// A service with its own readiness check (the bus is checked in any case), which returns what is
    /// missing, and a function that drains it: stops taking requests and finishes the running ones within the
    /// given time.
    pub fn new<R, D>(ready: impl Fn() -> R + 'static, drain: impl FnOnce(Duration) -> D + 'static) -> Self
    where
        R: Future<Output = Result<(), String>> + 'static,
        D: Future<Output = ()> + 'static,
    {
        Self {
            ready: Box::new(move || Box::pin(ready())),
            drain: Box::new(move |grace| Box::pin(drain(grace))),
        }
    }

    /// A service that answers on the bus: ready when it takes requests and `check` finds nothing missing,
    /// stopped by draining what it serves.
    pub fn on_bus<R>(serving: ServiceHandle, check: impl Fn() -> R + 'static) -> Self
    where
        R: Future<Output = Result<(), String>> + 'static,
    {
        let door = serving.readiness();
        let ready = move || {
            let (checked, is_open) = (check(), door.is_ready());
            async move {
                checked.await?;
                if is_open { Ok(()) } else { Err("not yet subscribed".to_owned()) }
            }
        };
        Self::new(ready, |grace| serving.drain(grace))
    }
}

/// The configuration that all services have.
struct Common {
    bus: BusConfig,
    admin: SocketAddr,
    admin_address_file: Option<PathBuf>,
    stop_grace: Duration,
}

impl Common {
    fn read(env: &mut Env, workload: &str, version: &str) -> Self {
        let credentials = env.optional("MESH_BUS_CREDENTIALS").and_then(|path| {
            Credentials::read(path.as_ref())
                .map_err(|error| env.mistake(format!("MESH_BUS_CREDENTIALS cannot be read: {error}")))
                .ok()
        });
        let url = env.or("MESH_BUS_URL", "nats://127.0.0.1:4222".to_owned());
        env.check("MESH_BUS_URL", mesh_bus::check_url(&url));
        let prefix = env.or("MESH_BUS_PREFIX", "mesh".to_owned());
        env.check("MESH_BUS_PREFIX", mesh_bus::check_prefix(&prefix));
        Self {
            bus: BusConfig {
                url,
                credentials,
                prefix,
                name: workload.to_owned(),
                version: version.to_owned(),
                tls_ca: certificates(env, "MESH_BUS_TLS_CA"),
            },
            admin: env.or("MESH_ADMIN_LISTEN", SocketAddr::from(([127, 0, 0, 1], 9100))),
            admin_address_file: env.optional("MESH_ADMIN_ADDRESS_FILE").map(PathBuf::from),
            stop_grace: env.seconds("MESH_STOP_GRACE_S", 30),
        }
    }
}

/// A variable with the path of a PEM file of certificates. The file is read here to report mistakes at the
/// start.
fn certificates(env: &mut Env, name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env.optional(name)?);
    match std::fs::read(&path) {
        Ok(text) => {
            let mut certificates = CertificateDer::pem_slice_iter(&text).flatten();
            if !certificates.any(|found| RootCertStore::empty().add(found).is_ok()) {
                env.mistake(format!("{name} has no certificate in it"));
            }
        }
        Err(error) => env.mistake(format!("{name} cannot be read: {error}")),
    }
    Some(path)
}

/// Runs a service until SIGTERM or SIGINT. `start` makes it; it returns at once and connects in the
/// background.
pub fn run<C, S, F>(program: Program, start: S) -> ExitCode
where
    C: Config + 'static,
    S: FnOnce(Setup<C>) -> F + 'static,
    F: Future<Output = Result<Service, Failure>> + 'static,
{
    let configure = |env: &mut Env| -> Start {
        let config = C::read(env);
        Box::new(|bus, registry| Box::pin(start(Setup { config, bus, registry })))
    };
    run_configured(program, Box::new(configure))
}

fn run_configured(program: Program, configure: Configure) -> ExitCode {
    let Program { workload, version, description } = program;
    let argument = match arguments::read(std::env::args().skip(1)) {
        Ok(argument) => argument,
        Err(mistake) => {
            eprintln!("{workload}: {mistake}");
            return ExitCode::from(WRONG_CONFIGURATION);
        }
    };
    let mut env = Env::of_process();
    let common = Common::read(&mut env, workload, version);
    let start = configure(&mut env);
    match argument {
        // The variable of the log's filter is read later than the others.
        Some(Argument::Help) => {
            return arguments::help(workload, description, &[env.asked(), vec![LOG.to_owned()]].concat());
        }
        Some(Argument::Ready) => return arguments::ready(common.admin, common.admin_address_file.as_deref()),
        None => {}
    }
    let telemetry = Telemetry::start(&mut env, workload, version);
    let filter = log_filter(&mut env);
    if !env.mistakes().is_empty() {
        eprintln!("{workload}: wrong configuration: {}", env.mistakes().join("; "));
        return ExitCode::from(WRONG_CONFIGURATION);
    }
    log(filter, telemetry.tracer());
    // Pages of 2 MiB would be most of an idle service's memory; where the kernel insists, it takes more.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    install_tls_provider();
    let system = actix::System::new();
    let lived = system.block_on(live((workload, version), common, &telemetry, start));
    let code = match lived {
        Ok(()) => {
            end_within(ENDED_WITHIN, || drop(system));
            0
        }
        Err(failure) => {
            // Dropped, it would begin the actors that have not begun: their timers panic without a runtime.
            std::mem::forget(system);
            report(workload, &*failure)
        }
    };
    telemetry.stop();
    log::flush(LOG_WITHIN);
    ExitCode::from(code)
}

/// Ends the runtime. The process ends with 0 when the runtime waits too long for an operation that blocks, such as
/// writing to a full pipe. Its last spans are then lost, and temporary files of that operation stay.
fn end_within(limit: Duration, end: impl FnOnce()) {
    let (ended, wait) = mpsc::channel::<()>();
    thread::spawn(move || {
        if wait.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            log::flush(LOG_WITHIN);
            std::process::exit(0);
        }
    });
    end();
    drop(ended);
}

/// Reports why a workload cannot run; returns the code with which it ends.
fn report(workload: &str, failure: &(dyn Error + Send + Sync + 'static)) -> u8 {
    let error = error_chain(failure);
    tracing::error!(workload, error, "cannot run");
    // The other program that listens on an address may end; everything else needs a correction.
    let is_taken = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
    if failure.downcast_ref().is_some_and(is_taken) {
        eprintln!("{workload}: {error}");
        1
    } else {
        eprintln!("{workload}: wrong configuration: {error}");
        WRONG_CONFIGURATION
    }
}

/// The error for an address in a variable on which a service cannot listen.
pub fn cannot_listen(variable: &str, address: SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{variable}: cannot listen on {address}: {error}"))
}

async fn live(
    (workload, version): (&'static str, &'static str),
    common: Common,
    telemetry: &Telemetry,
    start: Start,
) -> Result<(), Failure> {
    let mut signals = StopSignals::watch()?;
    let registry = Rc::new(RefCell::new(Registry::default()));
    process::register(&mut registry.borrow_mut(), workload, version);
    telemetry.register(&mut registry.borrow_mut());
    let bus = Bus::connect(common.bus).await?;
    let Service { ready, drain } = start(bus.clone(), Rc::clone(&registry)).await?;

    let stopping = Rc::new(Cell::new(false));
    let listener = admin::bind(common.admin, common.admin_address_file.as_deref()).await?;
    tracing::info!(workload, admin = %listener.local_addr()?, "started");
    let asked = {
        let (bus, stopping) = (bus.clone(), Rc::clone(&stopping));
        move || -> LocalBoxFuture<'static, Result<(), String>> {
            if stopping.get() {
                return Box::pin(async { Err("stopping".to_owned()) });
            }
            match bus.check() {
                Ok(()) => ready(),
                Err(why) => Box::pin(async { Err(why) }),
            }
        }
    };
    actix::spawn(admin::serve(listener, Rc::new(asked), Rc::clone(&registry)));

    signals.stop().await;
    stopping.set(true);
    tracing::info!(workload, "stopping");
    tokio::select! {
        () = drain(common.stop_grace) => {}
        () = signals.stop() => tracing::warn!(workload, "second stop signal, stopping at once"),
    }
    bus.flush(Duration::from_millis(500)).await;
    tracing::info!(workload, "stopped");
    Ok(())
}

/// The NATS client logs each attempt to connect; `mesh_bus` logs what it reports when that changes.
const QUIET: &str = "async_nats=off";

/// The filter of the log, such as `info` or `mesh_bus=debug,info`. An `EnvFilter` also matches spans, by regular
/// expressions: 200 KB of code in each program.
fn log_filter(env: &mut Env) -> Targets {
    let given = env.optional(LOG).unwrap_or_else(|| "info".to_owned());
    // The last one of two directives for a target counts; an empty one would be a level, and any text a target.
    let directives: Vec<&str> = std::iter::once(QUIET)
        .chain(given.split(',').map(str::trim).filter(|text| !text.is_empty()))
        .collect();
    let is_target = |byte: u8| byte.is_ascii_alphanumeric() || b"_:-=".contains(&byte);
    let is_read = directives.iter().all(|directive| directive.bytes().all(is_target));
    let filter = if is_read { directives.join(",").parse().ok() } else { None };
    filter.unwrap_or_else(|| {
        env.mistake(format!("{LOG} cannot be read: write it as info or as mesh_bus=debug,info"));
        Targets::default()
    })
}

/// Starts logging: JSON lines on standard error. Only spans are sent to the tracer.
fn log(filter: Targets, tracer: Option<SdkTracer>) {
    let lines = tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(Events);
    let Some(tracer) = tracer else {
        return tracing_subscriber::registry().with(lines).with(filter).init();
    };
    let spans = tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false);
    // One filter per layer, with a cacheable decision per callsite and a maximum level: otherwise disabled
    // trace events of libraries would be evaluated each time.
    let no_span = filter_fn(|metadata| metadata.target() != span::TARGET);
    let no_span = no_span.with_max_level_hint(LevelFilter::TRACE);
    let only_span = filter_fn(|metadata| metadata.target() == span::TARGET);
    let only_span = only_span.with_max_level_hint(LevelFilter::INFO);
    tracing_subscriber::registry()
        .with(lines.with_filter(filter.and(no_span)))
        .with(spans.with_filter(only_span))
        .init();
}
