//! Who is answered at all: names of this host, pages of this origin, bearers of tokens, in this order.

mod scene;

use std::time::Duration;

use baton::{Context, Done, Fleet, Name};
use baton_gateway::{
    Gateway, GatewayError, GatewayOptions, Listen,
    tokens::{Right, TokenFile},
};
use scene::{JSON, Scene, until};

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"];
const PATHS: [&str; 5] = ["/health", "/health/ready", "/push/q", "/api/openapi.json", "/nothing"];

#[test]
fn another_name_is_refused_on_every_method_and_path_before_anything_else() {
    let scene = Scene::new();
    for method in METHODS {
        for path in PATHS {
            // A page that is wrong too: the name is looked at first.
            let wrong = [("host", "evil.example:8000"), ("origin", "http://evil.example:8000"), JSON];
            let mut peer = scene.peer();
            peer.send(&scene::request(method, path, &wrong, b""));
            let answer = peer.head();
            assert_eq!(answer.status, 421, "{method} {path}");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    scene.ask("GET", "/health", &[("host", "")], b"").problem(421, "unknown-host");
    let mut peer = scene.peer();
    peer.send(b"GET /health HTTP/1.1\r\n\r\n");
    peer.answer().problem(400, "no-host");
    let mut peer = scene.peer();
    peer.send(b"GET http://evil.example/health HTTP/1.1\r\nhost: localhost\r\n\r\n");
    peer.answer().problem(421, "unknown-host");
    assert_eq!(scene.ready("q"), 0);
}

#[test]
fn a_page_of_another_origin_is_refused_on_every_method_and_path() {
    let scene = Scene::new();
    for (name, value) in [("origin", "http://localhost:1"), ("origin", "null"), ("sec-fetch-site", "same-site")] {
        for method in METHODS {
            for path in PATHS {
                let mut peer = scene.peer();
                peer.send(&scene::request(method, path, &[(name, value), JSON], b""));
                assert_eq!(peer.head().status, 403, "{method} {path} {name} {value}");
            }
        }
    }
    assert_eq!(scene.ask("POST", "/push/q", &[("origin", "http://localhost"), JSON], b"1").status, 202);
    assert_eq!(scene.ready("q"), 1);
}

#[test]
fn tokens_are_needed_once_there_is_one_and_revoked_ones_are_refused_within_a_second() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = TokenFile::at(folder.path().join("tokens.json"));
    let name = |text: &str| Name::new(text).unwrap();
    let read = file.add(&name("reader"), Right::Read).unwrap();
    let admin = file.add(&name("writer"), Right::Operate).unwrap();
    let scene = Scene::with(|options| options.tokens = Some(file.clone()));
    let with = |method, path, token: &str| {
        let bearer = format!("Bearer {token}");
        scene.ask(method, path, &[("authorization", &bearer), JSON], if method == "POST" { b"1" } else { b"" })
    };
    assert_eq!(scene.get("/health").status, 200);
    let missing = scene.push("q", b"1");
    missing.problem(401, "token");
    assert_eq!(missing.header("www-authenticate"), Some("Bearer realm=\"baton\""));
    scene.get("/nothing").problem(401, "token");
    let says = |problem: serde_json::Value, next: &str| {
        assert!(problem["detail"].as_str().unwrap().contains(next), "{problem}");
    };
    says(with("POST", "/push/q", "baton_wrong").problem(401, "token"), "`baton token list`");
    let basic = scene.ask("POST", "/push/q", &[("authorization", "Basic eDp5"), JSON], b"1");
    says(basic.problem(401, "token"), "Authorization: Bearer TOKEN");
    let both = [("authorization", &*format!("Bearer {admin}")), ("authorization", "Bearer x"), JSON];
    scene.ask("POST", "/push/q", &both, b"1").problem(401, "token");
    says(with("POST", "/push/q", &read).problem(403, "right"), "--right operate");
    assert_eq!(with("GET", "/api/openapi.json", &read).status, 200);
    assert_eq!(with("POST", "/push/q", &admin).status, 202);
    // Page before token.
    let page = [("authorization", &*format!("Bearer {admin}")), ("origin", "http://evil.example"), JSON];
    says(scene.ask("POST", "/push/q", &page, b"1").problem(403, "cross-origin"), "--host NAME");
    assert_eq!(scene.ready("q"), 1);
    file.revoke(&name("writer")).unwrap();
    until("it is revoked", || with("POST", "/push/q", &admin).status == 401);
    file.revoke(&name("reader")).unwrap();
    until("all are", || with("GET", "/api/openapi.json", &read).status == 401);
    scene.push("q", b"1").problem(401, "token");
}

#[test]
fn a_stream_ends_once_its_token_is_revoked() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = TokenFile::at(folder.path().join("tokens.json"));
    let name = |text: &str| Name::new(text).unwrap();
    let admin = file.add(&name("writer"), Right::Operate).unwrap();
    let read = file.add(&name("reader"), Right::Read).unwrap();
    let scene = Scene::with(|options| options.tokens = Some(file.clone()));
    scene.work(scene.fleet.node().handler("told", async |(): (), context: Context| {
        for nth in 0..100_000 {
            context.emit("told", &nth).await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(Done::with(&0)?)
    }));
    let (admin, read) = (format!("Bearer {admin}"), format!("Bearer {read}"));
    let (head, mut writer) = scene.open("POST", "/call/told", &[("authorization", &admin), JSON], b"null");
    assert_eq!(head.status, 200);
    let (head, mut reader) = scene.open("GET", "/messages/told/1/events", &[("authorization", &read)], b"");
    assert_eq!(head.status, 200);
    writer.streamed("\"data\":3}\n");
    file.revoke(&name("writer")).unwrap();
    assert!(writer.rest().contains("the token is not valid any more"));
    // The other's is as good as before.
    reader.streamed("\n");
    scene.ask("DELETE", "/messages/told/1", &[("authorization", &admin)], b"").problem(401, "token");
}

#[test]
fn tokens_are_judged_while_the_store_is_away() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = TokenFile::at(folder.path().join("tokens.json"));
    let token = file.add(&Name::new("one").unwrap(), Right::Operate).unwrap();
    let scene = Scene::begin(
        "redis://127.0.0.1:1/",
        |_| {},
        |options| {
            options.tokens = Some(file);
            options.limits.waiting.patience = std::time::Duration::from_millis(200);
        },
    );
    scene.push("q", b"1").problem(401, "token");
    let bearer = format!("bearer {token}");
    let away = scene.ask("POST", "/push/q", &[("authorization", &bearer), JSON], b"1");
    away.problem(503, "store-away");
    assert!(away.header("retry-after").is_some());
    assert_eq!((scene.get("/health").status, scene.get("/health/ready").status), (200, 503));
}

#[test]
fn what_other_machines_could_reach_is_not_listened_at_without_a_token() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = TokenFile::at(folder.path().join("tokens.json"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let fleet = Fleet::connect("memory:").unwrap();
        let listen = Listen::At("0.0.0.0:0".parse().unwrap());
        let options = GatewayOptions { listen, tokens: Some(file.clone()), ..Default::default() };
        file.open().unwrap();
        let refused = Gateway::bind(&fleet, options.clone()).await.err().unwrap();
        assert!(matches!(refused, GatewayError::Open(_)), "{refused}");
        file.add(&Name::new("one").unwrap(), Right::Read).unwrap();
        Gateway::bind(&fleet, options).await.unwrap();
    });
}

#[test]
fn a_search_starts_work_and_needs_the_right_to_operate_in_every_mode() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = TokenFile::at(folder.path().join("tokens.json"));
    let read = format!("Bearer {}", file.add(&Name::new("reader").unwrap(), Right::Read).unwrap());
    let admin = format!("Bearer {}", file.add(&Name::new("writer").unwrap(), Right::Operate).unwrap());
    let scene = Scene::with(|options| options.tokens = Some(file));
    let search = "/subsetSum?data=%5B1,2,-3%5D&sum=0";
    for mode in ["", "&mode=process", "&mode=fleet", "&mode=interleaved"] {
        scene.ask("GET", &format!("{search}{mode}"), &[("authorization", &read)], b"").problem(403, "right");
    }
    assert_eq!(scene.ready("subset-sum"), 0);
    let (head, _) = scene.open("GET", search, &[("authorization", &admin)], b"");
    assert_eq!(head.status, 200);
    // One that was begun may be read.
    let events = format!("{}/events", head.message().unwrap());
    assert_eq!(scene.open("GET", &events, &[("authorization", &read)], b"").0.status, 200);
    assert_eq!(scene.get("/health/ready").status, 200);
}
