//! The end of a simulated fleet: faults cease, everything is worked off, all nodes leave, and the books are compared.

use std::sync::Arc;

use baton::{
    MessageId, Name, Role,
    store::{RESULT_TTL_MS, ReadResult, Recount, ask},
};

use super::{
    ledger::{Entry, State},
    report::{Failed, Summary},
    topology::{NodePlan, Topology},
    work::Work,
    world::{World, known_node},
};

/// Milliseconds without a single report after which work is stuck: more than any handler takes or puts off.
const STUCK_MS: u64 = 60_000;

/// Works everything off and checks what is left.
pub(super) async fn play_out(world: &Arc<World>) -> Result<Summary, Failed> {
    wind_down(world);
    let (mut settles, mut since) = (0, world.scene.lock().unwrap().now());
    let mut stuck = false;
    world
        .watch(|now| {
            let scene = world.scene.lock().unwrap();
            if scene.settles != settles {
                (settles, since) = (scene.settles, now);
            }
            stuck = now - since > STUCK_MS;
            let sources =
                scene.sources.iter().zip(&world.topology.sources).all(|(known, plan)| {
                    known.ended || plan.end.is_none() || !offered(world, &scene.nodes, &plan.name)
                });
            stuck || (sources && scene.ledgers.iter().all(|ledger| ledger.open.is_empty()))
        })
        .await?;
    if stuck {
        let mut scene = world.scene.lock().unwrap();
        let open: usize = scene.ledgers.iter().map(|ledger| ledger.open.len()).sum();
        let about = scene.ledgers.iter().enumerate().find_map(|(queue, ledger)| Some((queue, *ledger.open.first()?)));
        scene.violated(format!("everything drains: {open} messages are left and nothing moves"), about);
    }
    // A while of rest, then everybody leaves. A source that found its queue full may have got its last push in meanwhile.
    let rest_until = world.scene.lock().unwrap().now() + 5_000;
    let all_ended = || world.scene.lock().unwrap().ledgers.iter().all(|ledger| ledger.open.is_empty());
    world.watch(|now| now >= rest_until && (all_ended() || now >= rest_until + STUCK_MS)).await?;
    let nodes = world.scene.lock().unwrap().nodes.len();
    (0..nodes).for_each(|nth| world.drain(nth));
    world.watch(|_| world.scene.lock().unwrap().nodes.iter().all(|node| !node.alive)).await?;
    books(world).await;
    world.watch(|_| true).await?;
    Ok(Summary::of(world))
}

fn offered(world: &World, nodes: &[super::known::KnownNode], source: &str) -> bool {
    let Some(source) = super::scene::number(source) else { return false };
    let offers = |nth: usize| {
        world.topology.nodes.get(nth).is_some_and(|plan| plan.role != Role::Worker && plan.offers.contains(&source))
    };
    nodes.iter().enumerate().any(|(nth, node)| node.alive && offers(nth))
}

/// From now on nothing goes wrong, and one more node works for every queue.
fn wind_down(world: &Arc<World>) {
    let nth = {
        let mut scene = world.scene.lock().unwrap();
        scene.winding_down = true;
        scene.note(None, "faults cease", String::new());
        scene.nodes.push(known_node(&sweeper(&world.topology)));
        scene.nodes.len() - 1
    };
    world.start(nth);
}

/// A node that works for every queue.
pub(crate) fn sweeper(topology: &Topology) -> NodePlan {
    NodePlan {
        role: Role::Worker,
        works: (0..topology.queues.len()).map(|queue| (queue, 64)).collect(),
        offers: Vec::new(),
        lease_ms: 1_000,
        heartbeat_ms: 200,
        max_queue_bytes: 64 << 20,
        starts_ms: 0,
    }
}

/// The store's books against the account of what was seen.
async fn books(world: &World) {
    let mut wrong: Option<(String, Option<(usize, u64)>)> = None;
    let recount = ask(&world.store, Recount { max_hold_ms: 1_000 }).await.unwrap();
    for queue in &recount.queues {
        let books = &queue.books;
        let Some(queue_no) = super::scene::number(books.queue.as_str()) else { continue };
        let scene = world.scene.lock().unwrap();
        let seen = (
            scene.ledgers[queue_no].pushed(),
            scene.ledgers[queue_no].count(State::Done),
            scene.ledgers[queue_no].count(State::Dead),
        );
        let cancelled = scene.ledgers[queue_no].cancelled();
        let removed = scene.ledgers[queue_no].count(State::Removed);
        if !queue.balance() {
            wrong = Some((format!("the deep audit balances: {queue:?}"), None));
        } else if seen != (books.pushed, books.done, books.failed) {
            wrong = Some((
                format!("nothing is lost or done twice: {seen:?} pushed, done and dead were seen, {books:?}"),
                None,
            ));
        } else if removed != books.removed {
            wrong = Some((format!("a purge removes what waits: {removed} were seen, {books:?}"), None));
        } else if cancelled != books.cancelled + books.ready + books.delayed {
            wrong = Some((format!("what was cancelled ends so: {cancelled} were seen, {books:?}"), None));
        }
    }
    for (queue, plan) in world.topology.queues.iter().enumerate() {
        let (now, ends): (u64, Vec<(u64, Entry)>) = {
            let scene = world.scene.lock().unwrap();
            (scene.now(), scene.ledgers[queue].entries().map(|(id, entry)| (id, *entry)).collect())
        };
        for (id, Entry { state, crashes, since, .. }) in ends {
            if state == State::Dead && crashes <= 3 && !plan.work.may_die() {
                wrong = Some(("a message dies of its handler or of four crashes".to_owned(), Some((queue, id))));
            }
            let kept = state == State::Done && now < since + RESULT_TTL_MS;
            if kept && matches!(plan.work, Work::Passes { .. }) && id.is_multiple_of(7) {
                let name = Name::new(&plan.name).unwrap();
                if ask(&world.store, ReadResult { queue: name, id: MessageId(id) }).await.unwrap().is_none() {
                    wrong = Some(("a result is kept with its message".to_owned(), Some((queue, id))));
                }
            }
        }
    }
    if let Some((rule, about)) = wrong {
        world.scene.lock().unwrap().violated(rule, about);
    }
}
