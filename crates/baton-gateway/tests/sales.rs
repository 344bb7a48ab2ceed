//! Total sales: added, asked for, kept, forgotten; and the module behind `/say` that takes its time to start.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use baton::{Fleet, Name, builtin::sales::SalesError};
use baton_gateway::{
    Gateway, GatewayError, GatewayOptions, Listen, Recipes,
    tokens::{Right, TokenFile},
};
use baton_servers::RedisServer;
use rusqlite::Connection;
use scene::{Answer, JSON, NDJSON, Peer, Scene, request, until};
use serde_json::{Value, json};
use tempfile::TempDir;

struct Shop {
    scene: Scene,
    folder: TempDir,
}

fn shop() -> Shop {
    let folder = TempDir::new().unwrap();
    let scene = Scene::with(|options| options.recipes = keeping(Some(folder.path().join("sales.db"))));
    Shop { scene, folder }
}

fn sale(id: &str, item: &str, amount: impl Into<Value>) -> Value {
    json!({"transaction_id": id, "item": item, "amount": amount.into()})
}

impl Shop {
    fn sell(&self, sales: &Value) -> Answer {
        self.scene.ask("POST", "/sales", &[JSON], sales.to_string().as_bytes())
    }

    fn total(&self, query: &str) -> Answer {
        self.scene.get(&format!("/totalSales{query}"))
    }

    #[track_caller]
    fn says(&self, query: &str, text: &str, status: &str) -> Answer {
        let answer = self.total(query);
        assert_eq!((answer.status, answer.text()), (200, text), "{answer:?}");
        assert_eq!(answer.header("cache-status").unwrap(), status);
        answer
    }
}

/// The recipes with their sales in this file.
fn keeping(sales: Option<PathBuf>) -> Option<Recipes> {
    Some(Recipes { sales, ..Default::default() })
}

/// The recipes with a module behind `/say` that takes this long to start.
fn starting(demo_init: Duration) -> Option<Recipes> {
    Some(Recipes { demo_init, ..Default::default() })
}

#[test]
fn sales_are_added_and_their_total_is_kept_until_more_are() {
    let shop = shop();
    // Before there is a file, nothing was sold, and none is made by looking.
    shop.says("", "Total sales for all items is 0", "baton; fwd=bypass");
    assert_eq!(std::fs::read_dir(shop.folder.path()).unwrap().count(), 0);
    let sold = shop.sell(&json!([sale("1", "book", 12.5), sale("2", "game", 7), sale("3", "book", "0.50")]));
    assert_eq!((sold.status, sold.json()), (201, json!({"stored": 3, "known": 0})));
    let generation: u64 = sold.header("baton-generation").unwrap().parse().unwrap();
    let first = shop.says("?item=book", "Total sales for item book is 13", "baton; fwd=miss; stored");
    assert_eq!(first.header("cache-control"), Some("private, no-cache"));
    assert_eq!(first.header("content-type"), Some("text/plain; charset=utf-8"));
    let hit = shop.total("?item=book");
    assert_eq!((hit.status, hit.text()), (200, "Total sales for item book is 13"));
    let status = hit.header("cache-status").unwrap();
    let left: u64 = status.strip_prefix("baton; hit; ttl=").unwrap().parse().unwrap();
    let age: u64 = hit.header("age").unwrap().parse().unwrap();
    assert!((20..=30).contains(&left) && age <= 10 && left + age <= 30, "{status}, {age}");
    // A total of nothing is kept as well.
    shop.says("?item=nothing", "Total sales for item nothing is 0", "baton; fwd=miss; stored");
    assert!(shop.total("?item=nothing").header("cache-status").unwrap().starts_with("baton; hit"));
    shop.says("", "Total sales for all items is 20", "baton; fwd=miss; stored");
    // The ways without it.
    shop.says("?cache=off", "Total sales for all items is 20", "baton; fwd=bypass");
    shop.says("?cache=batch&item=game", "Total sales for item game is 7", "baton; fwd=bypass");
    // More are sold, one of them known.
    let sold = shop.sell(&json!([sale("4", "book", 1.25), sale("2", "game", 7.00)]));
    assert_eq!((sold.status, sold.json()), (201, json!({"stored": 1, "known": 1})));
    let later: u64 = sold.header("baton-generation").unwrap().parse().unwrap();
    assert!(later > generation);
    shop.says("?item=book", "Total sales for item book is 14.25", "baton; fwd=miss; stored");
    let own = shop.scene.ask("GET", "/totalSales?item=book", &[("baton-min-generation", &later.to_string())], b"");
    assert!(
        own.text().ends_with("is 14.25") && own.header("cache-status").unwrap().starts_with("baton; hit"),
        "{own:?}"
    );
    // The same again changes nothing, and is forgotten for all the same.
    let again = shop.sell(&sale("4", "book", 1.25));
    assert_eq!((again.status, again.json()), (200, json!({"stored": 0, "known": 1})));
}

#[test]
fn who_has_the_answer_is_told_so() {
    let shop = shop();
    shop.sell(&sale("1", "book", 1));
    let tag = shop.total("").header("etag").unwrap().to_owned();
    for (tags, status) in
        [(tag.clone(), 304), (format!("\"x\", W/{tag}"), 304), ("*".to_owned(), 304), ("\"x\"".to_owned(), 200)]
    {
        let mut peer = shop.scene.peer();
        peer.send(&request("GET", "/totalSales", &[("if-none-match", &tags)], b""));
        let answer = peer.head();
        assert_eq!((answer.status, answer.header("etag")), (status, Some(&*tag)), "{tags}");
    }
    shop.sell(&sale("2", "book", 1));
    let changed = shop.scene.ask("GET", "/totalSales", &[("if-none-match", &tag)], b"");
    assert_eq!((changed.status, changed.text()), (200, "Total sales for all items is 2"));
}

#[test]
fn any_item_is_just_an_item_and_what_is_none_is_refused() {
    let shop = shop();
    let (long, deep) = ("ü".repeat(512), "a/b%2F../\u{0}\n\"'");
    let items = ["constructor", "__proto__", "", "toString", " ", "🦀", deep, &long];
    let sales: Vec<Value> = items.iter().enumerate().map(|(at, item)| sale(&at.to_string(), item, at + 1)).collect();
    assert_eq!(shop.sell(&json!(sales)).status, 201);
    let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
    for _ in 0..2 {
        for (at, item) in items.iter().enumerate() {
            let answer = shop.total(&format!("?item={}", encoded(item)));
            assert_eq!((answer.status, answer.text()), (200, &*format!("Total sales for item {item} is {}", at + 1)));
        }
    }
    assert_eq!(shop.total("?item=").text(), "Total sales for item  is 3");
    shop.total("?item=%ff").problem(400, "bad-query");
    shop.total(&format!("?item={}", "x".repeat(1025))).problem(400, "bad-item");
    shop.total("?item=a&item=b").problem(400, "bad-query");
    shop.total("?cache=maybe").problem(400, "bad-query");
    shop.total("?sum=1").problem(400, "bad-query");
    for bad in ["", "x", "-1", "1.5", "18446744073709551616"] {
        shop.scene.ask("GET", "/totalSales", &[("baton-min-generation", bad)], b"").problem(400, "bad-generation");
    }
    let twice = [("baton-min-generation", "1"), ("baton-min-generation", "1")];
    shop.scene.ask("GET", "/totalSales", &twice, b"").problem(400, "bad-generation");
    shop.scene.ask("POST", "/totalSales", &[JSON], b"1").problem(405, "method");
    shop.scene.get("/sales").problem(405, "method");
}

#[test]
fn sales_are_stored_all_or_none_and_the_wrong_one_is_named() {
    let shop = shop();
    shop.sell(&sale("a", "book", 1));
    let problem = shop.sell(&json!([sale("n", "book", 5), sale("a", "book", 2)])).problem(409, "transaction-used");
    assert_eq!(problem["line"], 2);
    let problem = shop.sell(&json!([sale("n", "book", 5), sale("n", "book", 6)])).problem(409, "transaction-used");
    assert_eq!(problem["line"], 2);
    let problem = shop.sell(&json!([sale("n", "book", 5), sale("m", "book", 1.234)])).problem(400, "bad-sale");
    assert_eq!(problem["line"], 2);
    let lines = format!("{}\n\n{}\n", sale("n", "book", 5), sale("m", &"x".repeat(1025), 1));
    let problem = shop.scene.ask("POST", "/sales", &[NDJSON], lines.as_bytes()).problem(400, "bad-sale");
    assert_eq!(problem["line"], 3);
    shop.sell(&json!({"transaction_id": "n", "item": "book"})).problem(400, "bad-sale");
    shop.sell(&json!("x")).problem(400, "bad-sale");
    shop.scene.ask("POST", "/sales", &[JSON], b"{").problem(400, "bad-json");
    shop.scene.ask("POST", "/sales", &[], b"1").problem(415, "media-type");
    let table = [("content-type", "text/csv; charset=utf-8")];
    let csv = shop.scene.ask("POST", "/sales", &table, b"transaction_id,item,amount\n").problem(415, "media-type");
    assert!(csv["detail"].as_str().unwrap().contains("`baton sales load`"), "{csv}");
    let lines = format!("{}\n{}\n", sale("n", "book", 5), sale("m", "book", 1));
    let many = shop.scene.ask("POST", "/sales", &[JSON], lines.as_bytes()).problem(400, "bad-json");
    assert!(many["detail"].as_str().unwrap().contains("application/x-ndjson"), "{many}");
    let huge = format!("[{}]", " ".repeat(1 << 20));
    shop.scene.ask("POST", "/sales", &[JSON], huge.as_bytes()).problem(413, "too-large");
    assert_eq!(shop.total("?cache=off").text(), "Total sales for all items is 1");
    let lines = format!("{}\n{}\n", sale("n", "book", 5), sale("m", "book", 1));
    assert_eq!(shop.scene.ask("POST", "/sales", &[NDJSON], lines.as_bytes()).json(), json!({"stored": 2, "known": 0}));
    assert_eq!(shop.total("").text(), "Total sales for all items is 7");
}

#[test]
fn while_another_writes_all_who_add_are_told_so_in_time_and_totals_are_answered() {
    let shop = shop();
    shop.sell(&sale("a", "book", 1));
    let another = Connection::open(shop.folder.path().join("sales.db")).unwrap();
    another.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = Instant::now();
    let mut peers: Vec<Peer> = (0..100).map(|_| shop.scene.peer()).collect();
    for (nth, peer) in peers.iter_mut().enumerate() {
        peer.send(&request("POST", "/sales", &[JSON], sale(&nth.to_string(), "book", 1).to_string().as_bytes()));
    }
    assert_eq!(shop.total("?cache=off").text(), "Total sales for all items is 1");
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    for peer in &mut peers {
        let refused = peer.answer();
        let problem = refused.problem(503, "sales-busy");
        assert!(problem["detail"].as_str().unwrap().contains("nothing is stored"), "{problem}");
        assert!(refused.header("retry-after").is_some());
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    another.execute_batch("ROLLBACK").unwrap();
    assert_eq!(shop.total("?cache=off").text(), "Total sales for all items is 1");
    assert_eq!(shop.sell(&sale("0", "book", 1)).status, 201);
}

#[test]
fn equal_requests_share_one_scan_and_each_says_so() {
    let shop = shop();
    let many: String = (0..5000).map(|n| format!("{}\n", sale(&n.to_string(), "book", 1))).collect();
    assert_eq!(shop.scene.ask("POST", "/sales", &[NDJSON], many.as_bytes()).status, 201);
    let all = request("GET", "/totalSales?item=book", &[], b"");
    let mut peers: Vec<Peer> = (0..50).map(|_| shop.scene.peer()).collect();
    peers.iter_mut().for_each(|peer| peer.send(&all));
    let answers: Vec<Answer> = peers.iter_mut().map(Peer::answer).collect();
    assert!(answers.iter().all(|answer| answer.text() == "Total sales for item book is 5000"));
    let computed = answers.iter().filter(|it| it.header("cache-status") == Some("baton; fwd=miss; stored")).count();
    assert_eq!(computed, 1);
}

#[test]
fn totals_need_a_token_where_there_is_one_and_adding_needs_the_right_to_operate() {
    let folder = TempDir::new().unwrap();
    let file = TokenFile::at(folder.path().join("tokens.json"));
    let read = file.add(&Name::new("reader").unwrap(), Right::Read).unwrap();
    let sales = Some(folder.path().join("sales.db"));
    let scene = Scene::with(|options| (options.tokens, options.recipes) = (Some(file), keeping(sales)));
    scene.get("/totalSales").problem(401, "token");
    scene.get("/say").problem(401, "token");
    let bearer = format!("Bearer {read}");
    let with = [("authorization", &*bearer), JSON];
    assert_eq!(scene.ask("GET", "/totalSales", &with, b"").status, 200);
    scene.ask("POST", "/sales", &with, sale("a", "b", 1).to_string().as_bytes()).problem(403, "right");
}

#[test]
fn a_gateway_without_sales_and_one_whose_file_is_none_say_so() {
    let scene = Scene::new();
    scene.get("/totalSales").problem(404, "no-sales");
    scene.ask("POST", "/sales", &[JSON], b"{}").problem(404, "no-sales");
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("sales.db");
    std::fs::write(&path, "something else, and of some length so that nobody takes it for a database").unwrap();
    let scene = Scene::with(|options| options.recipes = keeping(Some(path)));
    let problem = scene.get("/totalSales").problem(500, "sales");
    assert!(!problem.to_string().contains("sales.db"), "{problem}");
    assert!(
        problem["detail"].as_str().unwrap().contains("`baton sales total`, with the gateway's --sales"),
        "{problem}"
    );
    scene.ask("POST", "/sales", &[JSON], sale("a", "b", 1).to_string().as_bytes()).problem(500, "sales");
}

#[test]
fn a_gateway_whose_sales_have_no_folder_does_not_start() {
    let folder = TempDir::new().unwrap();
    let sales = Some(folder.path().join("none/sales.db"));
    let (listen, recipes) = (Listen::At("127.0.0.1:0".parse().unwrap()), keeping(sales));
    let options = GatewayOptions { listen, recipes, ..Default::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let refused = runtime.block_on(async {
        let fleet = Fleet::connect("memory:").unwrap();
        Gateway::bind(&fleet, options).await.map(drop).unwrap_err()
    });
    assert!(matches!(refused, GatewayError::Sales(SalesError::Folder { .. })), "{refused}");
    assert!(!folder.path().join("none").exists());
}

#[test]
fn totals_are_computed_while_the_store_is_away_and_sales_wait_for_it() {
    let folder = TempDir::new().unwrap();
    let mut server = RedisServer::start(folder.path(), &[]).unwrap();
    server.kill();
    let sales = Some(folder.path().join("sales.db"));
    let scene = Scene::begin(&server.url(), |_| {}, |options| options.recipes = keeping(sales));
    let mut peer = scene.peer();
    peer.send(&request("POST", "/sales", &[JSON], sale("a", "book", 2).to_string().as_bytes()));
    until("it waits", || scene.get("/health/ready").json()["waiting"] == 1);
    assert_eq!(scene.get("/totalSales").text(), "Total sales for all items is 0");
    server.restart().unwrap();
    assert_eq!(peer.answer().status, 201);
    assert_eq!(scene.get("/totalSales").text(), "Total sales for all items is 2");
}

#[test]
fn who_asks_before_a_module_has_started_waits_for_it() {
    let takes = Duration::from_millis(700);
    let begun = Instant::now();
    let scene = Scene::begin("memory:", |_| {}, |options| options.recipes = starting(takes));
    let early = scene.get("/say");
    assert!(begun.elapsed() >= takes, "{:?}", begun.elapsed());
    assert_eq!(early.status, 200);
    assert!(early.text().starts_with("I say Current time is: ") && early.text().ends_with(" GMT"), "{}", early.text());
    assert_eq!(scene.get("/say").status, 200);
    let full = Scene::begin(
        "memory:",
        |_| {},
        |options| {
            options.recipes = starting(Duration::from_secs(3600));
            options.limits.waiting.calls = 0;
        },
    );
    let refused = full.get("/say");
    refused.problem(503, "starting");
    assert!(refused.header("retry-after").is_some());
}

#[test]
fn who_is_not_answered_when_the_time_to_stop_is_over_is_told_so() {
    let mut scene = Scene::with(|options| {
        options.recipes = starting(Duration::from_secs(3600));
        options.limits.stop_time = Duration::from_millis(200);
        options.limits.requests = 1;
    });
    let mut peer = scene.peer();
    peer.send(&request("GET", "/say", &[], b""));
    until("it waits", || scene.get("/api/openapi.json").status == 503);
    scene.shutdown.graceful();
    let told = peer.answer();
    assert_eq!(told.problem(503, "stopping")["detail"], "the gateway stops; ask again");
    assert!(told.header("retry-after").is_some());
    scene.runtime.block_on(scene.gateway.take().unwrap()).unwrap();
}
