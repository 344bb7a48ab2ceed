//! The routes of the gateway: their description as it is served, the JSON they answer with, and how they refuse.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

use baton_gateway::Recipes;
use baton_testkit::golden;
use serde_json::Value;

use crate::{
    fleet::{SmallFleet, WORKED, values},
    sandbox::{Sandbox, until},
    shape::Shape,
    web::Web,
};

/// What routes are asked with that need a query or a body: a part of the path, the query, the body.
const ASKED: [(&str, &str, &str); 5] = [
    ("/push/", "", "{\"n\":1}"),
    ("/call/", "", "{\"n\":1}"),
    ("/sales", "", "{\"transaction_id\":\"1\",\"item\":\"book\",\"amount\":1.5}"),
    ("/subsetSum", "?data=%5B1%2C2%5D&sum=3&mode=interleaved", ""),
    ("/totalSales", "?item=book", ""),
];

/// Requests that are refused.
const REFUSED: [(&str, &str, &str); 5] = [
    ("GET", "/nothing", ""),
    ("DELETE", "/health", ""),
    ("POST", "/push/a%20b", "1"),
    ("POST", "/push/work", "{"),
    ("GET", "/subsetSum", ""),
];

fn url(sandbox: &Sandbox) -> String {
    format!("sqlite:{}", sandbox.path().display())
}

/// The description as it is served.
fn description(web: &Web) -> Value {
    let (status, text) = web.ask("GET", "/api/openapi.json", "");
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn golden_openapi_as_it_is_served() {
    let sandbox = Sandbox::new();
    let web = Web::over(&url(&sandbox));
    let mut description = description(&web);
    description["info"]["version"] = "VERSION".into();
    golden::assert_file("openapi.json", &(serde_json::to_string_pretty(&description).unwrap() + "\n"));
}

#[test]
fn golden_answers_of_every_route() {
    let fleet = SmallFleet::start();
    let web = Web::with(&url(&fleet.sandbox), |options| {
        options.recipes =
            Some(Recipes { sales: Some(fleet.sandbox.dir.path().join("sales.db")), ..Recipes::default() });
    });
    let pushed = web.ask("POST", &format!("/push/{WORKED}"), "{}").1;
    let id = serde_json::from_str::<Value>(&pushed).unwrap()["ids"][0]["first"].to_string();
    let mut shapes = BTreeMap::new();
    let described = description(&web);
    let of_a_message = described["paths"].as_object().unwrap().keys().find(|it| it.ends_with("/{queue}/{id}")).unwrap();
    let message = of_a_message.replace("{queue}", WORKED).replace("{id}", &id);
    until("the message has its result", || web.ask("GET", &message, "").1.contains("\"result\""));
    for (template, item) in described["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys().filter(|it| ["get", "post", "delete"].contains(&it.as_str())) {
            let path = template.replace("{queue}", WORKED).replace("{id}", &id);
            assert!(!path.contains('{'), "{template} has a part that this test does not know");
            let asked = ASKED.iter().find(|(part, ..)| template.starts_with(part));
            let (query, body) = asked.map_or(("", ""), |(_, query, body)| (*query, *body));
            let (method, path) = (method.to_uppercase(), format!("{path}{query}"));
            let (status, answer) = web.ask(&method, &path, body);
            assert!(status < 300, "{method} {path}: {status} {answer}");
            let shape = Shape::of(values(&answer).into_iter().filter(|_| template != "/api/openapi.json"));
            let name = template.trim_start_matches('/').replace(['/', '.'], "-").replace(['{', '}'], "");
            shapes.insert(format!("{}-{name}.txt", method.to_lowercase()), shape.lines());
        }
    }
    let mut problems = Shape::default();
    for (method, path, body) in REFUSED {
        let (status, answer) = web.ask(method, path, body);
        assert!(status >= 400, "{method} {path}: {status} {answer}");
        values(&answer).iter().for_each(|problem| problems.add(problem));
    }
    shapes.insert("problem.txt".to_owned(), problems.lines());
    golden::assert_folder("routes", &shapes);
}
