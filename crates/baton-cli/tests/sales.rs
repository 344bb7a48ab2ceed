//! `baton sales`, and the totals of a gateway beside it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod sandbox;

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    process::Stdio,
};

use baton_testkit::server::{Persistence, RedisServer};
use sandbox::{Sandbox, until};
use serde_json::json;

fn address(sandbox: &Sandbox) -> String {
    let mut found = None;
    until("the gateway is there", || {
        let log = sandbox.log();
        found = log.split("gateway=http://").nth(1).and_then(|it| it.split_whitespace().next()).map(str::to_owned);
        found.is_some()
    });
    found.unwrap()
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn sales_are_loaded_whole_or_not_at_all_and_added_up() {
    let sandbox = Sandbox::new();
    let missing = sandbox.run(&["sales", "total"]).expect(5);
    assert!(missing.one_line().contains("`baton sales load`"), "{}", missing.err);
    sandbox.write("june.csv", "transaction_id,item,amount\n1,book,12.50\n2,\"a \"\"b\"\", c\",1\n3,book,0.50\n");
    let store = format!("sqlite:{}", sandbox.path().display());
    let loaded = sandbox.run(&["sales", "load", "june.csv"]).expect(0).out;
    assert_eq!(loaded, format!("loaded 3 sales; no gateway was told, since there is no store {store}\n"));
    sandbox.run(&["push", "messages", "1"]).expect(0);
    let loaded = sandbox.run(&["sales", "load", "june.csv"]).expect(0).out;
    let told = format!("loaded 0 sales, 3 were there before; totals of fleet baton in {store} are forgotten\n");
    assert_eq!(loaded, told);
    assert_eq!(sandbox.run(&["sales", "total"]).expect(0).out, "Total sales for all items is 14\n");
    assert_eq!(sandbox.run(&["sales", "total", "book"]).expect(0).out, "Total sales for item book is 13\n");
    let summed = sandbox.run(&["sales", "total", "a \"b\", c", "--json"]).expect(0).json();
    assert_eq!(summed, json!({"item": "a \"b\", c", "total": "1", "minor_units": 100}));
    sandbox.write("bad.csv", "transaction_id,item,amount\n4,book,1\n5,book,1.234\n");
    let bad = sandbox.run(&["sales", "load", "bad.csv"]).expect(1);
    assert!(bad.one_line().contains("line 3") && bad.one_line().contains("nothing was stored"), "{}", bad.err);
    sandbox.write("other.csv", "transaction_id,item,amount\n4,book,1\n1,book,12.51\n");
    assert!(sandbox.run(&["sales", "load", "other.csv"]).expect(1).one_line().contains("line 3"));
    assert!(sandbox.run(&["sales", "load", "none.csv"]).expect(1).one_line().contains("cannot read none.csv"));
    sandbox.run(&["sales", "load"]).expect(2);
    let many = sandbox.run(&["sales", "load", "--random", "99999999999999999999"]).expect(2);
    assert!(many.err.contains("is too many: write 1125899906842624 or less"), "{}", many.err);
    assert_eq!(sandbox.run(&["sales", "total"]).expect(0).out, "Total sales for all items is 14\n");
    let drawn = sandbox.run(&["sales", "load", "--random", "1000", "--seed", "7", "--json"]).expect(0).json();
    assert_eq!(drawn, json!({"stored": 1000, "known": 0}));
    let drawn = sandbox.run(&["sales", "load", "--random", "1000", "--seed", "7", "--json"]).expect(0).json();
    assert_eq!(drawn, json!({"stored": 0, "known": 1000}));
    sandbox.write("text.db", "something else, and of some length so that nobody takes it for a database of sales");
    sandbox.run(&["sales", "total", "--sales", "text.db"]).expect(5);
}

#[test]
fn up_is_refused_where_sales_have_no_folder_and_says_where_there_are_none_yet() {
    let sandbox = Sandbox::new();
    let flags =
        ["up", "--queue", "work", "--handler", "noop", "--workers", "0", "--recipes", "--listen", "0", "--sales"];
    let refused = sandbox.run(&[&flags[..], &["typo/sales.db"]].concat()).expect(5);
    assert!(refused.one_line().contains("there is no folder typo for the sales sales.db; make it"), "{}", refused.err);
    let mut up = sandbox.start(&[&flags[..], &["shop.db"]].concat());
    let address = address(&sandbox);
    assert!(sandbox.log().contains("there are no sales in shop.db yet, totals are 0"), "{}", sandbox.log());
    assert!(get(&address, "/totalSales").ends_with("Total sales for all items is 0"));
    sandbox.write("one.csv", "id;amount\n");
    let bad = sandbox.run(&["sales", "load", "one.csv", "--sales", "shop.db"]).expect(1);
    assert!(bad.one_line().contains("it is \"id;amount\""), "{}", bad.err);
    // The gateway is there before its node is.
    until("the node has joined", || sandbox.nodes(None).len() == 1);
    sandbox.run(&["stop"]).expect(0);
    assert_eq!(up.wait(), Some(0), "{}", sandbox.log());
}

#[test]
fn a_load_that_waits_for_its_input_holds_nobody_up_and_one_beside_a_writer_says_so() {
    let sandbox = Sandbox::new();
    sandbox.write("june.csv", "transaction_id,item,amount\n1,book,12.50\n");
    let mut waiting = sandbox.command(&["sales", "load", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = waiting.stdin.take().unwrap();
    // More than a pipe holds: it has read some of that when all is written.
    input.write_all(b"transaction_id,item,amount\n").unwrap();
    for row in 0..20_000 {
        writeln!(input, "slow-{row},tea,1").unwrap();
    }
    sandbox.run(&["sales", "load", "june.csv"]).expect(0);
    assert_eq!(sandbox.run(&["sales", "total"]).expect(0).out, "Total sales for all items is 12.50\n");
    drop(input);
    assert!(waiting.wait().unwrap().success());
    assert_eq!(sandbox.run(&["sales", "total"]).expect(0).out, "Total sales for all items is 20012.50\n");
    let beside = ["sales", "load", "june.csv", "--sales", "own.db"];
    sandbox.run(&beside).expect(0);
    let another = rusqlite::Connection::open(sandbox.path().with_file_name("own.db")).unwrap();
    another.execute_batch("BEGIN IMMEDIATE").unwrap();
    let busy = sandbox.run(&beside).expect(5);
    assert!(busy.one_line().contains("written by another, nothing was stored; try again"), "{}", busy.err);
}

#[test]
fn what_is_loaded_beside_a_gateway_is_in_its_next_total() {
    let server = RedisServer::start(Persistence::None);
    for sandbox in [Sandbox::new(), Sandbox::on(&server)] {
        sandbox.write("one.csv", "transaction_id,item,amount\n1,book,1\n");
        sandbox.write("two.csv", "transaction_id,item,amount\n2,book,2.50\n");
        sandbox.run(&["sales", "load", "one.csv"]).expect(0);
        let flags = [
            "up",
            "--queue",
            "work",
            "--handler",
            "noop",
            "--workers",
            "0",
            "--recipes",
            "--listen",
            "0",
            "--demo-init",
            "1s",
        ];
        let mut up = sandbox.start(&flags);
        let address = address(&sandbox);
        assert!(get(&address, "/say").contains("\r\n\r\nI say Current time is: "));
        until("it is kept", || get(&address, "/totalSales?item=book").contains("cache-status: baton; hit"));
        sandbox.run(&["sales", "load", "two.csv"]).expect(0);
        let begun = std::time::Instant::now();
        until("it is forgotten", || {
            get(&address, "/totalSales?item=book").ends_with("Total sales for item book is 3.50")
        });
        // Half a lease, and not the time for which a total is kept.
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
        sandbox.run(&["stop"]).expect(0);
        assert_eq!(up.wait(), Some(0), "{}", sandbox.log());
    }
}
