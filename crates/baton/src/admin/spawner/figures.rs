//! The counts of a fleet, from its surveys: books, and what nodes report with their beats.
//!
//! Nodes come and go, and their counts with them; the sums over all of them that are kept here only grow.

use std::collections::{BTreeMap, BTreeSet};

use super::gauge::Counts;
use crate::{
    Handled, Report,
    admin::whereabouts::{live_nodes, nodes},
    message::Name,
    store::{Books, SessionView, Survey},
};

/// What this machine's workers do, and what share of it is theirs.
pub(super) struct Stake {
    /// This node, by its host and process id.
    pub(super) itself: (String, u32),
    /// Its machine's cores.
    pub(super) cores: u32,
    /// The queues that its workers work for, and how many messages of each one works on at once.
    pub(super) queues: BTreeMap<Name, usize>,
}

/// Sums over surveys.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// What each node, by its host and process id, had reported at the last look.
    reported: BTreeMap<(String, u32), BTreeMap<String, Handled>>,
    queues: BTreeMap<Name, Sums>,
}

/// Sums of one queue.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    handled: Handled,
    /// Messages that had failed, and gone to the errors, at the first look.
    before: Option<(u64, u64)>,
    /// Messages that failed and are tried again.
    retried: u64,
}

impl Figures {
    /// Takes a survey in and gives the counts of the queues at stake.
    pub(super) fn take(&mut self, survey: &Survey, stake: &Stake) -> BTreeMap<Name, Counts> {
        self.add_reports(survey, stake);
        let spawners: Vec<(&SessionView, u32)> = live_nodes(survey)
            .filter(|node| (&node.host, node.pid) != (&stake.itself.0, stake.itself.1))
            .filter_map(|node| Some((node, report(node).cores?)))
            .collect();
        let nothing = |name: &Name| Books::new(name.clone());
        let books = |name: &Name| survey.queues.iter().find(|it| it.queue == *name).cloned();
        let counts = stake.queues.iter().map(|(name, slots)| {
            let others = spawners.iter().filter(|(node, _)| node.queues.contains(name));
            let cores = others.map(|(_, cores)| f64::from(*cores)).sum::<f64>() + f64::from(stake.cores);
            let share = if cores > 0.0 { f64::from(stake.cores) / cores } else { 1.0 };
            let books = books(name).unwrap_or_else(|| nothing(name));
            (name.clone(), Counts { slots: *slots, share, ..self.counts(name, &books) })
        });
        counts.collect::<Vec<_>>().into_iter().collect()
    }

    /// Adds what nodes have reported since the last look.
    fn add_reports(&mut self, survey: &Survey, stake: &Stake) {
        let mut present = BTreeSet::new();
        for node in nodes(survey) {
            let (at, handled) = ((node.host.clone(), node.pid), report(node).handled);
            let before = self.reported.entry(at.clone()).or_default();
            for (queue, it) in &handled {
                let Some(name) = stake.queues.keys().find(|name| name.as_str() == queue) else { continue };
                // A node that joined anew goes on counting; another process under its number begins with nothing.
                let before = before.get(queue).copied().filter(|before| before.run <= it.run).unwrap_or_default();
                let (sum, more) = (&mut self.queues.entry(name.clone()).or_default().handled, it.since(before));
                *sum = Handled { run: sum.run + more.run, failed: sum.failed + more.failed, us: sum.us + more.us };
            }
            // A node that has joined anew has reported nothing yet.
            if !handled.is_empty() {
                *before = handled;
            }
            present.insert(at);
        }
        self.reported.retain(|at, _| present.contains(at));
    }

    fn counts(&mut self, name: &Name, books: &Books) -> Counts {
        let sums = self.queues.entry(name.clone()).or_default();
        let (failures, failed) = *sums.before.get_or_insert((sums.handled.failed, books.failed_seq));
        // The books know sooner than the reports: what has failed and is not among the errors is tried again.
        let (failures, failed) = (sums.handled.failed - failures, books.failed_seq.saturating_sub(failed));
        sums.retried = sums.retried.max(failures.saturating_sub(failed));
        Counts {
            arrived: books.pushed.saturating_add(books.requeued).saturating_add(sums.retried),
            waiting: if books.paused { 0 } else { books.ready },
            in_flight: books.in_flight,
            ended: books.done.saturating_add(books.failed_seq).saturating_add(sums.handled.run),
            run: sums.handled.run,
            handler_s: sums.handled.us as f64 / 1e6,
            paused: books.paused,
            ..Counts::default()
        }
    }
}

fn report(node: &SessionView) -> Report {
    serde_json::from_slice(&node.report).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{message::SessionId, store::Kind};

    fn name(name: &str) -> Name {
        Name::new(name).unwrap()
    }

    fn stake() -> Stake {
        Stake { itself: ("here".to_owned(), 1), cores: 2, queues: BTreeMap::from([(name("messages"), 4)]) }
    }

    fn node(host: &str, pid: u32, queue: &str, report: &Report) -> SessionView {
        SessionView {
            session: SessionId::random(),
            kind: Kind::Node,
            host: host.to_owned(),
            pid,
            queues: vec![name(queue)],
            lease_ms: 1_000,
            join_no: 1,
            joined_ms: 0,
            beat_ms: 10_000,
            report: serde_json::to_vec(report).unwrap().into(),
        }
    }

    fn ran(run: u64, failed: u64, us: u64) -> Report {
        Report { handled: BTreeMap::from([("messages".to_owned(), Handled { run, failed, us })]), ..Report::default() }
    }

    fn spawner(cores: u32) -> Report {
        Report { cores: Some(cores), ..Report::default() }
    }

    fn survey(sessions: Vec<SessionView>, books: Books) -> Survey {
        Survey { now_ms: 10_000, sessions, sources: Vec::new(), queues: vec![books] }
    }

    fn counts(figures: &mut Figures, sessions: Vec<SessionView>, books: Books) -> Counts {
        figures.take(&survey(sessions, books), &stake())[&name("messages")]
    }

    #[test]
    fn what_nodes_count_adds_up_whoever_comes_joins_anew_or_goes() {
        let mut figures = Figures::default();
        let mut look = |sessions| {
            let counts = counts(&mut figures, sessions, Books::new(name("messages")));
            (counts.run, (counts.handler_s * 1e6).round() as u64)
        };
        assert_eq!(look(vec![node("a", 1, "messages", &ran(10, 0, 100))]), (10, 100));
        assert_eq!(
            look(vec![node("a", 1, "messages", &ran(15, 0, 150)), node("b", 1, "messages", &ran(5, 0, 50))]),
            (20, 200)
        );
        assert_eq!(look(vec![node("b", 1, "messages", &Report::default())]), (20, 200), "anew");
        assert_eq!(look(vec![node("b", 1, "messages", &ran(6, 0, 60))]), (21, 210), "it goes on counting");
        assert_eq!(look(vec![node("b", 1, "messages", &ran(2, 0, 20))]), (23, 230), "another process");
    }

    #[test]
    fn what_is_tried_again_arrives_again_and_what_is_held_back_or_delayed_does_not_wait() {
        let mut figures = Figures::default();
        let books =
            Books { pushed: 100, ready: 40, delayed: 20, failed: 5, failed_seq: 5, ..Books::new(name("messages")) };
        let before = counts(&mut figures, vec![node("a", 1, "messages", &ran(50, 30, 1))], books.clone());
        assert_eq!((before.arrived, before.waiting), (100, 40), "what was before the first look is not looked into");
        let later = Books { failed_seq: 7, requeued: 1, ..books.clone() };
        let after = counts(&mut figures, vec![node("a", 1, "messages", &ran(60, 40, 1))], later.clone());
        assert_eq!(after.arrived, 100 + 1 + 8);
        let paused = Books { paused: true, ..later };
        assert_eq!(counts(&mut figures, Vec::new(), paused).waiting, 0);
    }

    #[test]
    fn the_load_of_a_queue_is_shared_by_the_cores_of_those_that_spawn_for_it() {
        let share =
            |others: Vec<SessionView>| counts(&mut Figures::default(), others, Books::new(name("messages"))).share;
        let close = |left: f64, right: f64| (left - right).abs() < 1e-9;
        assert!(close(share(vec![node("here", 1, "messages", &spawner(2))]), 1.0), "it is among them itself");
        assert!(close(share(vec![node("there", 1, "messages", &spawner(6))]), 0.25));
        assert!(close(share(vec![node("there", 1, "messages", &Report::default())]), 1.0), "one that works only");
        assert!(close(share(vec![node("there", 1, "other", &spawner(6))]), 1.0));
        let gone = SessionView { beat_ms: 8_000, ..node("there", 1, "messages", &spawner(6)) };
        assert!(close(share(vec![gone]), 1.0));
    }
}
