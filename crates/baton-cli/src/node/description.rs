//! A fleet as its file describes it: `[queues.NAME]` with their work, `[sources.NAME]` and what they feed.

use std::{convert::Infallible, net::SocketAddr, path::PathBuf};

use baton::{
    Name,
    builtin::CatchUp,
    settings::{
        document::{Document, Mistake, Section, meant},
        quantity,
    },
};
use clap::ValueEnum;

use super::{
    feed::HowToCatchUp,
    program::{Bounds, ProgramTask},
    queue_work::{QueueWork, Task},
    source_feed::{Pull, SourceFeed, calendar},
    work::Built,
};
use crate::{exit::Failure, gateway::address, settings::Settings};

/// The next step for lines from standard input.
const STDIN: &str = "name a file, or give the flag --lines - to the command that reads it";

/// The handler of a queue that other programs work for.
const ELSEWHERE: &str = "none";

/// The queues and sources of a fleet.
#[derive(Debug, Default)]
pub(crate) struct Description {
    pub(super) queues: Vec<QueueWork>,
    pub(super) sources: Vec<SourceFeed>,
    /// Whether the gateway takes messages for queues that are not described.
    pub(crate) open_queues: bool,
    /// The file, as messages name it.
    pub(super) file: PathBuf,
    /// Whether the fleet has the recipes.
    pub(super) recipes: bool,
    /// Where its gateway listens, if that is said.
    pub(crate) listen: Option<SocketAddr>,
}

impl Description {
    /// What the fleet's file describes, nothing if there is none; all of its mistakes if it has some.
    pub(crate) fn of(settings: &Settings) -> Result<Self, Vec<Mistake>> {
        Ok(settings.fleet_file.as_ref().map(Self::read).transpose()?.unwrap_or_default())
    }

    /// Whether it describes queues: only then it takes the place of flags about one.
    pub(crate) const fn has_queues(&self) -> bool {
        !self.queues.is_empty()
    }

    /// How many queues and sources it has.
    pub(crate) const fn size(&self) -> (u64, u64) {
        (self.queues.len() as u64, self.sources.len() as u64)
    }

    /// The names of its queues.
    pub(crate) fn queue_names(&self) -> impl Iterator<Item = &Name> {
        self.queues.iter().map(|work| &work.queue)
    }

    /// What it names that is not on this machine, as it may be on others; and what only a shell would understand.
    pub(crate) fn doubts(&self) -> Vec<String> {
        let programs = self.queues.iter().flat_map(|work| {
            let Some(Task::Program(program)) = &work.task else { return Vec::new() };
            let whose = format!("queue {}", work.queue);
            let missing = program.check(&whose).err().map(|failure| failure.cause);
            let doubts = program.doubts().iter().map(|it| format!("{whose}: {it}"));
            missing.into_iter().chain(doubts).collect()
        });
        let lines = self.sources.iter().filter_map(|it| Some(it.unreadable()?.of(&format!("source {}", it.name))));
        programs.chain(lines.map(|failure| failure.cause)).collect()
    }

    /// What a file describes; all of its mistakes if it has some.
    pub(crate) fn read(document: &Document) -> Result<Self, Vec<Mistake>> {
        document.read(|root| {
            for setting in ["store", "fleet", "wait", "max_keys", "key_lifetime", "max_results"] {
                root.leave(setting);
            }
            let mut names = Vec::new();
            let queues = root.each("queues", "queue", |name, section| {
                names.push(name.to_owned());
                queue(name, section)
            });
            let sources = root.each("sources", "source", |name, section| source(name, section, &names, document));
            let recipes = root.switch("recipes");
            let gateway =
                root.table("gateway", |section| (section.value("listen", address), section.switch("open_queues")));
            let (listen, open_queues) = gateway.unwrap_or_default();
            let file = document.path().to_owned();
            Self {
                queues: queues.into_iter().flatten().collect(),
                sources: sources.into_iter().flatten().collect(),
                open_queues,
                file,
                recipes,
                listen,
            }
        })
    }
}

/// A name that stands in a header.
fn named(kind: &str, name: &str, section: &Section<'_>) -> Option<Name> {
    let named = Name::new(name);
    named.map_err(|error| section.refuse("", &format!("{kind}: {error}"), "rename it")).ok()
}

/// One queue, if it has no mistake that leaves nothing to go on with.
fn queue(name: &str, section: &mut Section<'_>) -> Option<QueueWork> {
    let named = named("queue", name, section);
    let (built, program) = (handler(name, section), program(name, section));
    let kinds = ["handler", "exec", "exec_once"];
    let mut given = kinds.into_iter().filter(|kind| section.has(kind));
    match (given.next(), given.next()) {
        (None, _) => section.refuse("", &format!("queue {name} has nothing to do"), "add exec, exec_once or handler"),
        (Some(one), Some(two)) => {
            section.refuse(two, &format!("queue {name} has both {one} and {two}"), "leave one of them out");
        }
        _ => {}
    }
    let mut work = QueueWork::of(named?);
    if let Some(built) = built {
        work.take_up(built);
    }
    if let Some(program) = program {
        work.run_by(program);
    }
    let policy = &mut work.policy;
    if let Some(concurrency) = section.number("concurrency", |text| ranged(text, 1, 65_536)) {
        policy.concurrency = concurrency as usize;
    }
    policy.retries = section.number("retries", |text| ranged(text, 0, u32::MAX)).unwrap_or(policy.retries);
    policy.backoff = section.value("backoff", quantity::time).unwrap_or(policy.backoff);
    policy.timeout = section.value("timeout", quantity::time).or(policy.timeout);
    if policy.timeout.is_some_and(|timeout| timeout.is_zero()) {
        section.refuse("timeout", &format!("timeout of queue {name}: 0 lets no attempt end"), "leave it out for none");
    }
    Some(work)
}

/// The handler of the program itself that runs its messages, if one does.
fn handler(name: &str, section: &mut Section<'_>) -> Option<Task> {
    let built = Built::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    let handlers: Vec<String> = built.map(|it| it.get_name().to_owned()).chain([ELSEWHERE.to_owned()]).collect();
    let told = section.value("handler", text);
    let built = told.as_ref().and_then(|told| Built::from_str(told, false).ok());
    if let Some(told) = told.filter(|told| built.is_none() && told != ELSEWHERE) {
        let next = meant(&told, handlers.iter().map(String::as_str))
            .map_or_else(|| format!("there are {}", handlers.join(", ")), |near| format!("did you mean {near}?"));
        section.refuse("handler", &format!("queue {name}: unknown handler {told:?}"), &next);
    }
    let (delay, fail) = (section.value("demo_delay", quantity::range), section.number("demo_fail", quantity::share));
    let refuse = |failure: Failure| section.refuse("handler", &format!("queue {name}: {failure}"), "name another");
    let mut task = built.and_then(|built| built.task().map_err(refuse).ok());
    if let Some(Task::Demo(demo)) = &mut task {
        demo.delay = delay.unwrap_or_else(|| demo.delay.clone());
        demo.fail = fail.unwrap_or(demo.fail);
    } else {
        only_for("the handler demo", &["demo_delay", "demo_fail"], name, section);
    }
    task
}

/// The program that runs its messages, if one does.
fn program(name: &str, section: &mut Section<'_>) -> Option<ProgramTask> {
    let commands =
        [("exec", false), ("exec_once", true)].map(|(key, once)| Some((key, section.value(key, text)?, once)));
    let bounds = Bounds {
        max_memory_per_child: section.value("max_memory_per_child", quantity::bytes),
        output_timeout: section.value("output_timeout", quantity::time),
        max_messages_per_child: section.number("max_messages_per_child", quantity::count),
        idle_timeout: section.value("idle_timeout", quantity::time),
        warm: section.number("warm", quantity::whole::<usize>),
    };
    let allow_dash = section.switch("allow_dash");
    if !section.has("exec_once") {
        only_for("exec_once", &["allow_dash"], name, section);
    }
    if !section.has("exec") {
        only_for("exec", &["output_timeout", "max_messages_per_child", "idle_timeout", "warm"], name, section);
        if !section.has("exec_once") {
            only_for("exec and exec_once", &["max_memory_per_child"], name, section);
        }
    }
    let (key, line, once) = commands.into_iter().flatten().next()?;
    let parsed = ProgramTask::parse(&line, once);
    let refuse = |(cause, next): (String, &str)| section.refuse(key, &format!("{key} of queue {name}: {cause}"), next);
    let mut task = parsed.map_err(refuse).ok()?;
    (task.bounds, task.allow_dash) = (bounds, allow_dash);
    Some(task)
}

/// Refuses keys that say something of what is not there.
fn only_for(what: &str, keys: &[&str], name: &str, section: &Section<'_>) {
    for key in keys.iter().filter(|key| section.has(key)) {
        section.refuse(key, &format!("{key} of queue {name} is for {what}"), "leave it out");
    }
}

/// One source, if it has no mistake that leaves nothing to go on with.
fn source(name: &str, section: &mut Section<'_>, queues: &[String], document: &Document) -> Option<SourceFeed> {
    let named = named("source", name, section);
    let fed = section.value("queue", Name::new);
    match &fed {
        Some(fed) if !queues.iter().any(|queue| queue == fed.as_str()) => {
            let next = meant(fed.as_str(), queues.iter().map(String::as_str))
                .map_or_else(|| format!("describe it under [queues.{fed}]"), |near| format!("did you mean {near}?"));
            section.refuse("queue", &format!("source {name} feeds queue {fed}, which is not described"), &next);
        }
        None if !section.has("queue") => {
            let next = format!("add queue = {}", quoted(queues));
            section.refuse("queue", &format!("source {name} names no queue to feed"), &next);
        }
        _ => {}
    }
    let pull = pull(name, section, document);
    let count = section.number("count", quantity::count);
    Some(SourceFeed { name: named?, queue: fed?, pull: pull?, count })
}

/// Where its messages come from: one of four keys says it, and others say more of it.
fn pull(name: &str, section: &mut Section<'_>, document: &Document) -> Option<Pull> {
    let interval = section.value("interval", quantity::time).map(|interval| Pull::Ticks(Some(interval)));
    let lines = section.value("lines", text).map(|path| document.beside(path.as_ref()));
    let lines_from = section.value("lines_from", text);
    let cron = section.value("cron", text);
    let (follow, json) = (section.switch("follow"), section.switch("json_lines"));
    let catch_up = section.value("catch_up", |text| {
        HowToCatchUp::from_str(text, false).map_err(|_| format!("{text:?} is none of skip, once, all"))
    });
    let catch_up = catch_up.map_or_else(CatchUp::default, CatchUp::from);
    for (key, of) in [("follow", &["lines"][..]), ("json_lines", &["lines", "lines_from"]), ("catch_up", &["cron"])] {
        if section.has(key) && !of.iter().any(|of| section.has(of)) {
            section.refuse(key, &format!("{key} of source {name} is for {}", of.join(" and ")), "leave it out");
        }
    }
    if let Some(Err((cause, next))) = cron.as_ref().map(|expression| calendar(expression, catch_up)) {
        section.refuse("cron", &format!("cron of source {name}: {cause}"), &next);
    }
    if lines.as_ref().is_some_and(|path| path.ends_with("-")) {
        section.refuse("lines", &format!("lines of source {name}: a described fleet has no standard input"), STDIN);
    }
    let kinds = ["interval", "lines", "lines_from", "cron"];
    let mut given = kinds.into_iter().filter(|kind| section.has(kind));
    match (given.next(), given.next()) {
        (None, _) => {
            section.refuse(
                "",
                &format!("source {name} has nothing to send"),
                "add interval, lines, lines_from or cron",
            );
        }
        (Some(one), Some(two)) => {
            section.refuse(two, &format!("source {name} has both {one} and {two}"), "leave one of them out");
        }
        _ => {}
    }
    interval
        .or_else(|| lines.map(|path| Pull::Lines { path, follow, json }))
        .or_else(|| lines_from.map(|command| Pull::LinesFrom { command, json }))
        .or_else(|| cron.map(|expression| Pull::Cron { expression, catch_up }))
}

/// Whatever stands there.
fn text(text: &str) -> Result<String, Infallible> {
    Ok(text.to_owned())
}

fn ranged(text: &str, least: u32, most: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("{text:?} is no whole number from {least} to {most}"))
}

fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    quoted.join(" or ")
}
