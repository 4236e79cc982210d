//! The pages that the edge answers by itself: not operations of the contract, and without a request on the
//! bus.

use crate::{
    headers,
    json::{Json, object},
    operation, parameters,
    refusals::Refusals,
    schema::{self, Schemas, Usage},
    subject,
};

/// A page.
struct Page {
    path: &'static str,
    operation: &'static str,
    summary: &'static str,
    description: &'static str,
    /// Description and media type of the response.
    answer: (&'static str, &'static str),
}

const PAGES: [Page; 4] = [
    Page {
        path: "/health",
        operation: "Health",
        summary: "Ask whether the gateway is up",
        description: "For load balancers: answers as soon as this replica takes requests.",
        answer: ("It is up.", "text/plain"),
    },
    Page {
        path: "/limits",
        operation: "Limits",
        summary: "Get the limits in force",
        description: "Sizes, counts and times that a client meets here.",
        answer: (
            "The limits in force. Sizes, counts and times that a client meets; 0 = no limit.",
            "application/json",
        ),
    },
    Page {
        path: "/openapi.json",
        operation: "OpenApi",
        summary: "Get this document",
        description: "OpenAPI 3.1, made from the same contract as the gateway.",
        answer: ("This document.", "application/json"),
    },
    Page {
        path: "/docs",
        operation: "Docs",
        summary: "Read and try the API",
        description: "This document as a page for a browser. It calls no other host.",
        answer: ("The page.", "text/html"),
    },
];

/// The pages, by path.
pub(crate) fn path_items(schemas: &mut Schemas) -> Vec<(&'static str, Json)> {
    PAGES.iter().map(|page| (page.path, object! { "get" => page.described(schemas) })).collect()
}

impl Page {
    fn described(&self, schemas: &mut Schemas) -> Json {
        let (meaning, media_type) = self.answer;
        let is_json = media_type == "application/json";
        let is_kept = self.path != "/health";
        let schema = match self.path {
            "/limits" => schemas.message_named("LimitsReply", Usage::Response),
            "/openapi.json" => {
                schemas.name("OpenApiDocument", object! {
                    "description" => "An OpenAPI 3.1 document.", "type" => "object", "additionalProperties" => true,
                });
                schema::reference("OpenApiDocument")
            }
            _ => object! { "type" => "string" },
        };
        let headers = if is_kept { &["ETag", "Cache-Control"][..] } else { &["Cache-Control"] };
        let answer = object! {
            "description" => meaning,
            "headers" => headers::of_page(headers),
            "content" => object! { media_type => object! { "schema" => schema } },
        };
        let mut refusals = Refusals::of_page(is_kept);
        let mut parameters = Vec::new();
        if is_json {
            refusals.add_malformed();
            parameters.push(parameters::reference("pretty"));
        }
        let mut responses = object! { "200" => answer };
        if is_kept {
            parameters.push(parameters::reference("If-None-Match"));
            responses.put("304", operation::unchanged(headers::of_page(headers)));
        }
        for (status, response) in refusals.responses(&[]) {
            responses.put(&status.to_string(), response);
        }
        object! {
            "tags" => vec![subject::GATEWAY],
            "operationId" => self.operation,
            "summary" => self.summary,
            "description" => self.description,
        }
        .with_some("parameters", (!parameters.is_empty()).then_some(parameters))
        .with("responses", responses)
    }
}
