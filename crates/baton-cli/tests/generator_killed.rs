//! The generator is killed with -9: another node goes on where it stood.

mod sandbox;

use sandbox::{Sandbox, until};

#[test]
fn another_node_goes_on_without_a_gap() {
    let sandbox = Sandbox::new();
    let node = || sandbox.start(&["node", "--interval", "5ms", "--handler", "noop", "--queue", "ticking"]);
    let mut nodes = vec![node(), node()];
    let cursor =
        || sandbox.status()["sources"][0]["cursor"].as_str().and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
    until("two nodes run and one of them generates", || sandbox.nodes(None).len() == 2 && cursor() > 10);
    let generator = sandbox.nodes(Some("generator"))[0];
    let place = nodes.iter().position(|node| node.pid() == generator).unwrap();
    nodes.remove(place).kill();
    let at = cursor();
    let other = nodes[0].pid();
    until("the other node generates on", || sandbox.nodes(Some("generator")) == [other] && cursor() > at + 10);

    nodes[0].signal("-TERM");
    assert_eq!(nodes[0].wait(), Some(0), "{}", sandbox.log());
    let books = sandbox.run(&["audit", "--deep", "--json"]).expect(0).json();
    assert_eq!(books["pushed"], cursor(), "each position has one id");
    assert_eq!(books["failed"], 0);
}
