//! The description of all routes, made from the attributes of each.

use std::sync::OnceLock;

use axum::body::Bytes;
use utoipa::{
    Modify, OpenApi,
    openapi::{
        Components, ContentBuilder, Ref, ResponseBuilder,
        security::{Http, HttpAuthScheme, SecurityScheme},
    },
};

use crate::{
    forms::EventShape,
    lines::Ids,
    problem::ProblemShape,
    routes::{self, Route},
};

#[derive(OpenApi)]
#[openapi(
    info(title = "Baton", description = "HTTP in front of a fleet"),
    paths(
        routes::root,
        routes::health,
        routes::ready,
        routes::push,
        routes::call,
        routes::message,
        routes::cancel,
        routes::events,
        routes::search,
        routes::total,
        routes::add,
        routes::say,
        routes::description
    ),
    components(schemas(
        Ids,
        EventShape,
        ProblemShape,
        routes::Greeting,
        routes::Pushed<'static>,
        routes::MessageView<'static>,
        routes::SaleShape,
        routes::Sold
    )),
    security((), ("bearer" = [])),
    modifiers(&Bearer, &Guards)
)]
struct Description;

/// Tokens, where some are demanded.
struct Bearer;

impl Modify for Bearer {
    fn modify(&self, description: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        description.components.get_or_insert_with(Components::new).add_security_scheme("bearer", scheme);
    }
}

/// The answers that every route may give, unless the route describes them itself.
struct Guards;

impl Modify for Guards {
    fn modify(&self, description: &mut utoipa::openapi::OpenApi) {
        let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        for item in description.paths.paths.values_mut() {
            for operation in [&mut item.get, &mut item.post, &mut item.delete].into_iter().flatten() {
                for (status, says) in GUARDS {
                    operation.responses.responses.entry(status.to_owned()).or_insert_with(|| {
                        let response = ResponseBuilder::new().description(says);
                        response.content("application/problem+json", problem.clone()).build().into()
                    });
                }
            }
        }
    }
}

const GUARDS: [(&str, &str); 7] = [
    ("400", "The header `Host` is missing, or it or `Origin` is malformed"),
    ("403", "The request comes from a page of another origin"),
    ("405", "The path has no such method; `Allow` names those it has"),
    ("421", "The header `Host` names another host; `--host` adds a name"),
    ("500", "The gateway has a fault"),
    ("501", "The transfer encoding is not `chunked` alone"),
    ("503", "The gateway is at one of its bounds; `Retry-After` says when to try again"),
];

/// The description, with the recipes or without.
fn description(with_recipes: bool) -> utoipa::openapi::OpenApi {
    let mut description = Description::openapi();
    if !with_recipes {
        description.paths.paths.retain(|path, _| !routes::is_recipe(path));
        if let Some(components) = &mut description.components {
            RECIPE_SCHEMAS.iter().for_each(|name| drop(components.schemas.remove(*name)));
        }
    }
    description
}

/// The schemas that only recipes use.
const RECIPE_SCHEMAS: [&str; 3] = ["Sale", "SalesShape", "Sold"];

/// The description as JSON.
pub(crate) fn json(with_recipes: bool) -> Bytes {
    static JSON: [OnceLock<Bytes>; 2] = [const { OnceLock::new() }; 2];
    let [without, with] = &JSON;
    let kept = if with_recipes { with } else { without };
    kept.get_or_init(|| description(with_recipes).to_json().unwrap_or_default().into()).clone()
}

/// The routes, with what each does.
pub(crate) fn listing(with_recipes: bool) -> &'static [Route] {
    static ROUTES: [OnceLock<Vec<Route>>; 2] = [const { OnceLock::new() }; 2];
    let [without, with] = &ROUTES;
    let kept = if with_recipes { with } else { without };
    kept.get_or_init(|| {
        let paths = description(with_recipes).paths.paths.into_iter();
        let routes = paths.flat_map(|(path, item)| {
            let methods = [("GET", item.get), ("POST", item.post), ("DELETE", item.delete)];
            let methods = methods.into_iter().filter_map(|(method, operation)| Some((method, operation?)));
            let routes = methods.map(move |(method, operation)| Route {
                method,
                path: path.clone(),
                summary: operation.summary.unwrap_or_default(),
            });
            routes.collect::<Vec<_>>()
        });
        routes.collect()
    })
}

/// The methods of a path, for people.
pub(crate) fn methods(path: &str) -> String {
    let description = Description::openapi();
    let Some(item) = description.paths.paths.get(path) else { return "another".to_owned() };
    let methods = [("GET", &item.get), ("POST", &item.post), ("DELETE", &item.delete)];
    let methods = methods.into_iter().filter(|(_, operation)| operation.is_some()).map(|(method, _)| method);
    methods.collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_described_and_there_is_no_other() {
        let description: serde_json::Value = serde_json::from_slice(&json(true)).unwrap();
        let mut described: Vec<_> = description["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        let mut known = routes::paths();
        described.sort_unstable();
        known.sort_unstable();
        assert_eq!(described, known);
        let without: serde_json::Value = serde_json::from_slice(&json(false)).unwrap();
        let mut plain: Vec<_> = without["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        plain.sort_unstable();
        assert_eq!(plain, known.iter().copied().filter(|path| !routes::is_recipe(path)).collect::<Vec<_>>());
        assert!(!without.to_string().contains("schemas/S"), "a schema of the recipes is left");
        assert!(known.iter().all(|path| methods(path).split(" or ").all(|it| ["GET", "POST", "DELETE"].contains(&it))));
    }

    #[test]
    fn what_every_request_may_be_answered_is_said_of_each_and_a_sale_has_no_other_fields() {
        let description: serde_json::Value = serde_json::from_slice(&json(true)).unwrap();
        for (path, item) in description["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                for (status, _) in GUARDS {
                    let content = &operation["responses"][status]["content"]["application/problem+json"];
                    assert_eq!(content["schema"]["$ref"], "#/components/schemas/Problem", "{method} {path} {status}");
                }
            }
        }
        // What a route says itself stays.
        let push = &description["paths"]["/push/{queue}"]["post"]["responses"];
        assert!(push["403"]["description"].as_str().unwrap().contains("token"), "{push}");
        assert_eq!(description["components"]["schemas"]["Sale"]["additionalProperties"], false);
    }

    #[test]
    fn a_message_and_a_result_may_be_any_json() {
        let description: serde_json::Value = serde_json::from_slice(&json(true)).unwrap();
        for path in ["/push/{queue}", "/call/{queue}"] {
            let body = &description["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"];
            assert!(body.is_object() && body.get("type").is_none(), "{path}: {body}");
        }
        let schemas = &description["components"]["schemas"];
        let result = &schemas["MessageView"]["properties"]["result"];
        assert!(result.is_object() && result.get("type").is_none(), "{result}");
        assert!(schemas["Event"]["properties"]["number"].is_object(), "{schemas}");
        assert!(schemas["Problem"]["properties"]["ids"].is_object(), "{schemas}");
    }
}
