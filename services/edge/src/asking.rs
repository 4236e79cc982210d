//! Asking the services: reads from the cache while that is true, else from the bus, one ask for all who want the same;
//! submissions from the bus, each by itself.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::HeaderMap;
use mesh_bus::{AskOptions, Bus, Encoding, OpenReply, PullLimits, PullOptions, PullStream, Target};
use mesh_problem::{Code, NOT_MAPPED, Problem};
use mesh_telemetry::{TraceContext, span};
use proto_msgs::Contract;
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tracing::Instrument;
use warp::reply::Response;

use crate::{
    answer,
    cache::{Answer, Cache, Question},
    config::Config,
    download::Download,
    exports::ExportPlace,
    flights::{Flights, Landing},
    heads::Heads,
    limits::Refusal,
    metrics::{Counted, Metrics, Source},
};

/// How often a read is asked for whose answer is older than what its client may have seen already: of a replica of
/// the database that lags, or by an ask that had begun before.
const TRIES: u32 = 4;

/// Between two of those tries.
const PAUSE: Duration = Duration::from_millis(10);

/// What a client is told that waits for a submission when its edge has to end.
const STOPPED: &str = "the relay did not answer in time; what became of the request is unknown";

/// Asks for all requests of an edge.
pub(crate) struct Asking {
    bus: Bus,
    heads: Arc<Heads>,
    pub(crate) cache: Arc<Cache>,
    flights: Arc<Flights>,
    operations: HashMap<&'static str, Arc<Asked>>,
    /// See [`answer::places`].
    places: Arc<HeaderMap>,
    metrics: Metrics,
    /// Turns true when a stop leaves no more time to wait for a submission.
    last_call: watch::Receiver<bool>,
}

/// What is known of one operation.
struct Asked {
    target: Arc<Target>,
    /// Whether its replies tell the height that they were read at, as far as seen. Others are asked for one by one:
    /// of two equal asks nobody could say which is the newer.
    tells_height: AtomicBool,
    counted: Arc<Counted>,
}

/// Who asks.
pub(crate) struct Asker {
    /// Id of the request.
    pub(crate) request_id: String,
    /// W3C trace context to pass on where no span is recorded.
    pub(crate) traceparent: Option<TraceContext>,
    /// When it waits no longer.
    pub(crate) deadline: Instant,
    /// Whether that is as long as the operation may take.
    pub(crate) is_patient: bool,
    /// The highest height that was answered on its connection.
    pub(crate) floor: u64,
}

impl Asker {
    /// How long it still waits.
    pub(crate) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// How its question is put.
    pub(crate) fn asks(&self, encoding: Encoding, repeatable: bool) -> AskOptions {
        AskOptions {
            encoding,
            timeout: self.time_left(),
            request_id: self.request_id.clone(),
            traceparent: self.traceparent.clone(),
            repeatable,
        }
    }

    /// How its download is pulled.
    pub(crate) fn pulls(&self, to_byte: Option<u64>) -> PullOptions {
        PullOptions {
            to_byte,
            request_id: self.request_id.clone(),
            traceparent: self.traceparent.clone(),
            limits: PullLimits::default(),
        }
    }
}

impl Asking {
    pub(crate) fn new(
        bus: Bus,
        heads: Arc<Heads>,
        cache: Arc<Cache>,
        metrics: &Metrics,
        config: &Config,
        last_call: watch::Receiver<bool>,
    ) -> Self {
        let asked = |operation: &'static proto_msgs::OperationInfo| Asked {
            target: bus.target(&operation.workload, &operation.name),
            tells_height: AtomicBool::new(false),
            counted: metrics.counted(&operation.name),
        };
        let operations = Contract::get().operations().iter();
        let operations =
            operations.map(|operation| (operation.name.as_str(), Arc::new(asked(operation)))).collect();
        let places = Arc::new(answer::places(config));
        Self {
            bus,
            heads,
            cache,
            flights: Arc::default(),
            operations,
            places,
            metrics: metrics.clone(),
            last_call,
        }
    }

    /// Answers a read: no older than what its client has seen, and no older than a second while the store is there.
    pub(crate) async fn read(&self, question: &Arc<Question>, asker: &Asker) -> Result<Arc<Answer>, Problem> {
        if let Some(answer) = self.cache.fresh(question, Instant::now()) {
            self.metrics.read(Source::Cache).inc();
            return Ok(answer);
        }
        let asked = &self.operations[question.operation];
        let newest = self.heads.newest();
        let mut may_share = true;
        let mut tries = 0..TRIES;
        while !tries.is_empty() {
            let under_way = self.flights.under_way(question, Instant::now()).filter(|_| may_share);
            let is_shared = under_way.is_some();
            let mut gives_up_early = false;
            let landing = match under_way {
                Some((flight, is_patient)) => {
                    gives_up_early = !is_patient;
                    flight.await
                }
                None if may_share && asked.tells_height.load(Ordering::Relaxed) => {
                    let ask = self.ask(asked, question, asker);
                    self.flights.begin(question, asker.is_patient, ask).await
                }
                None => self.ask(asked, question, asker).await,
            };
            match landing {
                Ok(answer) if answer.height() >= Some(newest) || (answer.head.is_none() && !is_shared) => {
                    let source = if is_shared { Source::Shared } else { Source::Service };
                    self.metrics.read(source).inc();
                    return Ok(answer);
                }
                Ok(_) if is_shared => {}
                Ok(_) => sleep(PAUSE).await,
                // Whom it was begun for had less time.
                Err(Problem { code: Code::DeadlineExceeded, .. }) if gives_up_early => continue,
                Err(problem) if problem.code.is_passing() => {
                    return self.last_known(question, asker.floor).await.ok_or(problem);
                }
                Err(problem) if !is_shared => return Err(problem),
                // That somebody else was refused a little earlier says nothing.
                Err(_) => may_share = false,
            }
            tries.next();
        }
        Err(Problem::unavailable("the database that was read is behind"))
    }

    /// Puts a submission once, whatever becomes of it. One that still waits when this edge must end is told so: a broken
    /// connection would tell its client nothing.
    pub(crate) async fn submit(&self, question: &Question, asker: &Asker) -> Result<Answer, Problem> {
        let asked = &self.operations[question.operation];
        let options = asker.asks(question.encoding, false);
        let mut last_call = self.last_call.clone();
        let reply = tokio::select! {
            biased;
            reply = self.bus.ask(&asked.target, question.message.clone(), &options) => reply?,
            Ok(_) = last_call.wait_for(|is_now| *is_now) => return Err(Problem::new(Code::DeadlineExceeded, NOT_MAPPED, STOPPED)),
        };
        Ok(answer::prepare(&self.places, reply, question, false, Instant::now(), asked.counted.clone()))
    }

    /// Answers with a download.
    pub(crate) async fn download(
        &self,
        question: &Question,
        asker: &Asker,
        headers: &HeaderMap,
        is_head: bool,
        place: ExportPlace,
    ) -> Result<Response, Refusal> {
        let asked = &self.operations[question.operation];
        let (bus, target, message) = (&self.bus, &asked.target, question.message.clone());
        Download { bus, target, message, asker, headers, is_head, place }.answer().await
    }

    /// Opens a download and pulls all of it.
    pub(crate) async fn stream(
        &self,
        question: &Question,
        asker: &Asker,
    ) -> Result<(OpenReply, PullStream), Problem> {
        let target = &self.operations[question.operation].target;
        let options = asker.asks(question.encoding, true);
        let opened = self.bus.open(target, question.message.clone(), 0, &options).await?;
        let pulled = self.bus.pull(target, question.message.clone(), &opened, asker.pulls(None)).await?;
        Ok((opened, pulled))
    }

    /// What can be shown although the store is away.
    async fn last_known(&self, question: &Question, floor: u64) -> Option<Arc<Answer>> {
        let answer = self.cache.last(question, floor)?;
        let is_shown = self.heads.is_store_away().await;
        if is_shown {
            self.metrics.read(Source::Outdated).inc();
        }
        is_shown.then_some(answer)
    }

    fn ask(
        &self,
        asked: &Arc<Asked>,
        question: &Arc<Question>,
        asker: &Asker,
    ) -> impl Future<Output = Landing> + Send + 'static {
        let options = asker.asks(question.encoding, true);
        let (bus, heads, cache) = (self.bus.clone(), Arc::clone(&self.heads), Arc::clone(&self.cache));
        let (asked, question, places) = (Arc::clone(asked), Arc::clone(question), Arc::clone(&self.places));
        let work = async move {
            let asked_at = Instant::now();
            let reply = bus.ask(&asked.target, question.message.clone(), &options).await?;
            let answer = answer::prepare(&places, reply, &question, true, asked_at, asked.counted.clone());
            let answer = Arc::new(answer);
            if let Some(height) = answer.height() {
                asked.tells_height.store(true, Ordering::Relaxed);
                heads.seen(height);
                cache.keep(&question, &answer);
            }
            Ok(answer)
        };
        // Whoever waits for it, it is told in the trace of the one who began it.
        work.instrument(span::current())
    }
}
