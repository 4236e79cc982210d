//! A watch of a connection: it begins on the gateway's thread, as a plain watch does, and then has a watcher.

use std::sync::Arc;

use actix::{Addr, Context, Handler, Message};
use futures_util::{
    FutureExt,
    future::{BoxFuture, pending, select_all},
};
use http::HeaderMap;
use mesh_bus::CancelOnDrop;
use mesh_problem::{Code, Problem};
use tokio::time::Instant;

use super::{frame::Id, handshake::Upgrade};
use crate::{
    admission::{ClientContext, head::check_size},
    ask::call_context::CallContext,
    gateway::{Gateway, GatewayState, unanswered},
    route::routes::WATCH,
    watch::{
        event::Emission, event_stream::SIGN_INTERVAL, http::decode_target, registry::OpenStream,
        watcher::Watcher,
    },
};

/// Asks the gateway to begin a watch.
#[derive(Message)]
#[rtype(result = "Result<Box<Begun>, Problem>")]
pub(super) struct BeginWatch {
    pub(super) upgrade: Upgrade,
    /// Path and query of the read.
    pub(super) target: String,
    /// The height of the client's last state.
    pub(super) after: Option<u64>,
}

/// A watch that has begun.
pub(super) struct Begun {
    watcher: Watcher,
    _open: OpenStream,
}

impl Handler<BeginWatch> for Gateway {
    type Result = CancelOnDrop<Result<Box<Begun>, Problem>>;

    fn handle(&mut self, begin: BeginWatch, _: &mut Context<Self>) -> Self::Result {
        let state = self.state.clone();
        CancelOnDrop::new(async move { begin.run(&state).await })
    }
}

impl BeginWatch {
    /// Begins the watch, with the checks of a plain one in their order (contract 2.3).
    async fn run(self, state: &GatewayState) -> Result<Box<Begun>, Problem> {
        check_size(self.target.len(), &HeaderMap::new(), &state.config.limits)
            .map_err(|error| error.problem)?;
        let client = state.admission.count_again(&self.upgrade.client)?;
        let meter = client.key.as_ref().map(|key| Arc::clone(&key.meter));
        let begun = self.begin(state, client).await;
        let is_limited = begun.as_ref().is_err_and(|problem| problem.code == Code::ResourceExhausted);
        if let Some(meter) = meter.filter(|_| is_limited) {
            meter.refuse();
        }
        begun
    }

    async fn begin(self, state: &GatewayState, client: ClientContext) -> Result<Box<Begun>, Problem> {
        let Self { upgrade: Upgrade { handling, watches, .. }, target, after } = self;
        state.admission.check_rate(&client)?;
        let _permit = state.admission.request(&client, WATCH)?;
        let (read, _) = decode_target(&state.routes, &target, handling);
        let read = read?;
        let permit = watches.permit(&client)?;
        let answer_time = state.config.limits.answer_time;
        let context = CallContext::new(nuid::next().to_string(), &client, None, answer_time);
        let watcher = watches.watch(&read.question, read.source, after, &context).await?;
        Ok(Box::new(Begun { watcher, _open: OpenStream::new(&watches, &client.connection, permit) }))
    }
}

/// A watch of a connection.
pub(super) struct Watch {
    pub(super) id: Id,
    state: State,
    /// When a frame of it was last sent.
    pub(super) sent_at: Instant,
}

enum State {
    Beginning(BoxFuture<'static, Result<Box<Begun>, Problem>>),
    Running(Box<Begun>),
}

/// What is new about a watch.
pub(super) enum News {
    /// It has begun, with its first state unless the client has that.
    Begun(Option<Emission>),
    State(Emission),
    /// It was refused, or has ended.
    End(Problem),
}

impl Watch {
    /// A watch that is beginning.
    pub(super) fn begin(id: Id, gateway: &Addr<Gateway>, begin: BeginWatch) -> Self {
        let request = gateway.send(begin);
        let begun = Box::pin(async move { request.await.unwrap_or_else(|error| Err(unanswered(&error))) });
        Self { id, state: State::Beginning(begun), sent_at: Instant::now() }
    }

    /// The greatest height up to which the client is current; `None` until the watch has begun.
    pub(super) fn height(&self) -> Option<u64> {
        match &self.state {
            State::Beginning(_) => None,
            State::Running(begun) => Some(begun.watcher.height()),
        }
    }

    /// When its next sign of life is due; `None` until the watch has begun.
    pub(super) fn sign_at(&self) -> Option<Instant> {
        matches!(self.state, State::Running(_)).then(|| self.sent_at + SIGN_INTERVAL)
    }

    /// The next news. Cancel-safe.
    async fn next(&mut self) -> News {
        let first = match &mut self.state {
            State::Running(begun) => {
                let reset = || Problem::unavailable("the store was reset to an older block");
                return begun.watcher.next().await.map_or_else(|| News::End(reset()), News::State);
            }
            State::Beginning(begun) => begun.await,
        };
        match first {
            Ok(mut begun) => {
                let first = begun.watcher.next().now_or_never().flatten();
                self.state = State::Running(begun);
                News::Begun(first)
            }
            Err(problem) => News::End(problem),
        }
    }
}

/// The next news of any watch, polled from index `turn` on, with its index.
pub(super) async fn next_of(watches: &mut [Watch], turn: usize) -> (usize, News) {
    let count = watches.len();
    match watches {
        [] => return pending().await,
        [only] => return (0, only.next().await),
        _ => {}
    }
    let turn = turn % count;
    let (before, after) = watches.split_at_mut(turn);
    let each = after.iter_mut().chain(before).map(|watch| watch.next().boxed());
    let (news, position, _) = select_all(each).await;
    ((turn + position) % count, news)
}
