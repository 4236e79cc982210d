//! `GET /watch`: several reads on one stream of server-sent events. The edge answers it by the reads of the contract.

use proto_msgs::Contract;

use crate::{
    headers,
    json::{Json, object},
    notes, parameters,
    refusals::Refusals,
    subject,
};

pub(crate) const PATH: &str = "/watch";

const DESCRIPTION: &str = "Server-sent events: `answer-0` has in `data` the answer of the first `read` on one line, `answer-1` \
     that of the second, and so on; `id` is the block's height. Each comes at once, and again whenever \
     the answer differs. `problem-0`, `problem-1` … bring the error of a read that has no answer at \
     present. A comment `: HEIGHT` comes at least every 15 s.\n\n\
     **The answer does not end**: read it as a stream, line by line; a call that waits for the whole body \
     never returns. Made for browsers, which have few connections for a host; one read alone can be \
     watched at its own path with `Accept: text/event-stream`.\n\n\
     With `Upgrade: websocket` and without `read` it is a WebSocket (HTTP/1.1 only): a text frame \
     `{\"id\":\"a\",\"watch\":\"/api/v2/info\"}` begins a watch, `{\"id\":\"a\",\"unwatch\":true}` ends it, and \
     `{\"id\":\"a\",\"height\":\"123\",\"answer\":{…}}` is a state.\n\n\
     `/limits` says how many streams there may be (`rate.watches`, `rate.watchesPerAddress`); one more is \
     429. A client that takes no byte for 120 s is cut. The first read that is refused refuses them all, \
     and `inner` says which one it is.";

const OF_A_READ: &str =
    "A read is refused, as it is at its own path; or there are no reads, or more than 16.";

const EXAMPLE: &str = "retry: 1000\n\
     id: 5969\n\
     event: answer-0\n\
     data: {\"version\":\"v0.2.0\",\"commitHash\":\"43d8017ffa2b2f58749608ea1f20db5b43b57d14\"}\n\
     \n\
     id: 5969\n\
     event: answer-1\n\
     data: {\"protocolUpgradeProposals\":{\"edges\":[],\"pageInfo\":{\"startCursor\":\"\",\"endCursor\":\"\",\
     \"hasNextPage\":false,\"hasPreviousPage\":false}}}\n\
     \n\
     : 5970\n\n";

/// The path item.
pub(crate) fn path_item() -> Json {
    let read = object! {
        "name" => "read",
        "in" => "query",
        "description" => "Path and query of a read, percent-encoded; given once for each.",
        "required" => true,
        "schema" => object! {
            "type" => "array", "minItems" => 1_u32, "maxItems" => 16_u32, "items" => object! { "type" => "string" },
        },
        "example" => vec!["/api/v2/info", "/api/v2/upgrade/proposals?pagination.first=1"],
    };
    let events = object! {
        "schema" => object! { "type" => "string" },
        "examples" => object! {
            "example1" => object! { "summary" => "two reads, then a block that changes neither", "value" => EXAMPLE },
        },
    };
    let mut responses = object! {
        "200" => object! {
            "description" => "The events, without an end.",
            "headers" => headers::of(&["Cache-Control"]),
            "content" => object! { "text/event-stream" => events },
        },
    };
    for (status, response) in refusals().responses(&[]) {
        // The reads have many error numbers; each read documents its own.
        let response = match status {
            400 | 404 => response.without("description").with("description", OF_A_READ),
            _ => response,
        };
        responses.put(&status.to_string(), response);
    }
    object! {
        "get" => object! {
            "tags" => vec![subject::GATEWAY],
            "operationId" => "Watch",
            "summary" => "Watch several reads on one stream",
            "description" => DESCRIPTION,
            "parameters" => vec![read, parameters::reference("Prefer")],
            "responses" => responses,
        },
    }
}

/// All errors of the reads.
fn refusals() -> Refusals {
    let mut all = Refusals::default();
    for operation in Contract::get().operations().iter().filter(|operation| operation.is_watchable()) {
        all.merge(Refusals::of(operation, &notes::of_operation(&operation.rpc)));
    }
    all.add_not_found();
    all
}
