//! GetPortfolio: the accounts, positions and live orders of a party.

use actix::{Context, Handler};
use mesh_bus::{Answer, AnswerFuture, AnswerResult, Ask, Format, offload};
use mesh_problem::{Code, Problem};
use mesh_store::{List, PageRequest, PageRows, PageSizes, ReadError, Store, Window};
use prost::Message as _;
use proto_msgs::{
    numbers::get_portfolio::PORTFOLIO,
    v2::{
        GetPortfolioReply, GetPortfolioRequest, ListAccountsRequest, ListOrdersRequest, ListPositionsRequest,
        Portfolio,
    },
};

use crate::{
    Query,
    paging::{INLINE_ROWS, MAX_BYTES, PagedList, nodes},
};

/// Most accounts, positions or live orders of a portfolio.
const MAX_ROWS: usize = 5000;

impl Handler<Ask<GetPortfolioRequest>> for Query {
    type Result = AnswerFuture<GetPortfolioReply>;

    fn handle(&mut self, ask: Ask<GetPortfolioRequest>, _: &mut Context<Self>) -> Self::Result {
        let Ask(request, scope) = ask;
        let format = scope.format();
        scope.run(portfolio(self.store.clone(), request, format))
    }
}

/// The beginning of the three lists, read in one snapshot.
async fn portfolio(
    store: Store,
    request: GetPortfolioRequest,
    format: Format,
) -> AnswerResult<GetPortfolioReply> {
    let failed = |error: ReadError| error.problem(PORTFOLIO);
    let past = store.past(request.at_block, request.chain_id.as_deref(), PORTFOLIO).await?;
    let (party, past) = (Some(request.party_id), past.as_ref());
    let accounts = ListAccountsRequest { party: party.clone(), ..ListAccountsRequest::default() };
    let positions = ListPositionsRequest { party_id: party.clone(), ..ListPositionsRequest::default() };
    let orders = ListOrdersRequest { party_id: party, live_only: Some(true), ..ListOrdersRequest::default() };
    let windows = [
        window(ListAccountsRequest::LIST, !ListAccountsRequest::HAS_FIXED_ORDER)?,
        window(ListPositionsRequest::LIST, true)?,
        window(ListOrdersRequest::LIST, true)?,
    ];
    let [of_accounts, of_positions, of_orders] = &windows;
    let statements = [
        ListAccountsRequest::LIST.statement(of_accounts, accounts.filters()?, past),
        ListPositionsRequest::LIST.statement(of_positions, positions.filters()?, past),
        ListOrdersRequest::LIST.statement(of_orders, orders.filters()?, past),
    ];
    let pages = store.snapshot("portfolio", &statements, past).await.map_err(failed)?;
    let rows: usize = pages.iter().map(PageRows::count).sum();
    let is_final = past.is_some_and(|past| past.is_sealed);
    let answer = offload(rows > INLINE_ROWS, move || answer(&store, &windows, pages, format)).await?;
    Ok(answer.finally(is_final))
}

/// A whole list as one page.
fn window(list: &List, newest_first: bool) -> Result<Window, Problem> {
    let request = PageRequest { newest_first: Some(newest_first), ..PageRequest::default() };
    Window::read(list, request, PageSizes { default: MAX_ROWS, greatest: MAX_ROWS })
}

fn answer(
    store: &Store,
    [of_accounts, of_positions, of_orders]: &[Window; 3],
    pages: Vec<PageRows>,
    format: Format,
) -> AnswerResult<GetPortfolioReply> {
    let Ok([accounts, positions, orders]) = <[PageRows; 3]>::try_from(pages) else {
        return Err(Problem::internal(PORTFOLIO, "the query failed"));
    };
    let head = accounts.head();
    let portfolio = Portfolio {
        accounts: whole::<ListAccountsRequest>(store, of_accounts, accounts)?,
        positions: whole::<ListPositionsRequest>(store, of_positions, positions)?,
        orders: whole::<ListOrdersRequest>(store, of_orders, orders)?,
    };
    let reply = GetPortfolioReply { portfolio: Some(portfolio) };
    match reply.encoded_len() {
        // Clients of gRPC take no longer message by default.
        bytes if format == Format::Protobuf && bytes > MAX_BYTES => {
            Err(too_large(format!("it has {bytes} bytes")))
        }
        _ => Ok(Answer::at(head, reply)),
    }
}

fn too_large(why: String) -> Problem {
    let reason = "the portfolio is too large, list its parts in pages";
    Problem::new(Code::FailedPrecondition, PORTFOLIO, reason).with_inner(why)
}

/// The nodes of a list; refused when there are more.
fn whole<R: PagedList>(store: &Store, window: &Window, rows: PageRows) -> Result<Vec<R::Node>, Problem> {
    let failed = |error: ReadError| error.problem(PORTFOLIO);
    let page = rows.page(R::LIST, window).map_err(failed)?;
    if page.has_next_page {
        return Err(too_large(format!("{} has more than {MAX_ROWS} rows or 16 MiB", R::NAME)));
    }
    let nodes = nodes::<R>(store, page.edges).map_err(failed)?;
    Ok(nodes.into_iter().map(|(node, _)| node).collect())
}
