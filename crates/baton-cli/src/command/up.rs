//! `baton up`: the whole thing on this machine.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use baton::{
    Role, Shutdown,
    admin::{Limits, Spawner, Workforce},
    settings::quantity,
};
use tokio::sync::watch;

use crate::{
    connection::Connection,
    exit::{Exit, Failure},
    first_lines,
    gateway::{Answering, GatewayArguments, Surroundings},
    late_store,
    node::{Description, Log, LogArguments, NodeArguments, obey_signals},
    output::span,
    panel::Panel,
    settings::{Settings, refused},
    supervisor::{Workers, cores, supervisor},
};

/// Run a fleet on this machine: one node with the sources, and worker processes
///
/// The number of worker processes follows the load, from --min-workers to --max-workers. They start within two seconds of
/// a burst. When fewer were needed for ten seconds, some finish their messages and leave. A worker that crashes is
/// replaced, after a pause that grows with each crash. Further machines with the same store make the fleet larger: they
/// share the load by their cores, each within its own limits.
///
/// Ctrl-C, SIGTERM or `baton stop` finishes the running messages and ends all processes; a second Ctrl-C ends them at once.
/// If this process is killed, its workers notice that and leave.
///
/// If a baton.toml describes queues and sources (see `baton config --help`), all of them run, or those chosen by --queue
/// and --source. Worker processes use the text that this process has read, even if the file changes later.
///
/// The gateway answers HTTP at 127.0.0.1:8000. `curl --json 1 localhost:8000/push/QUEUE` pushes a message, and
/// `curl localhost:8000` lists the routes. --listen names another address, --no-gateway starts none. With a gateway the
/// command waits for a Redis that is not up yet, without a bound unless --wait sets one.
///
/// --demo runs a demonstration on a queue of its own, `demo`. The command is refused if neither a file nor a flag says what
/// to run.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton up --demo
  baton up                                   all that baton.toml describes
  baton up --queue fetch --lines urls.txt --exec-once 'curl -fsS -- {}' --retries 3 --until-done > pages
  find . -name '*.png' | baton up --queue small --lines - --exec-once 'optipng -- {}' --concurrency 8 --until-done
  baton up --queue resize --exec 'python3 resize.py' --retries 3
  baton --config etc/baton.toml up --until-done
  baton up --demo --interval 10ms --demo-delay 0..50ms
  baton up --min-workers 2 --max-workers 16 --concurrency 8 --handler noop --queue resize
  baton --rhost 10.0.0.5 up --workers 8 --handler noop --queue resize")]
pub(crate) struct Up {
    /// How long running messages may take to finish when it stops
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::time)]
    grace: Duration,
    #[command(flatten)]
    workers: Workers,
    #[command(flatten)]
    gateway: GatewayArguments,
    #[command(flatten)]
    node: NodeArguments,
    #[command(flatten)]
    log: LogArguments,
}

impl Up {
    /// What the gateway has to know of the rest.
    fn surroundings(&self, settings: &Settings) -> Result<Surroundings, Failure> {
        Ok(Surroundings {
            until_done: self.node.until_done,
            demonstrates: self.node.work.demonstrates(),
            recipes: self.node.recipes.wanted,
            listen: Description::of(settings).map_err(refused)?.listen,
            stop_time: self.grace,
            search_time: self.node.recipes.search_timeout,
        })
    }

    pub(crate) async fn run(mut self, settings: &Settings) -> Result<Exit, Failure> {
        self.node.prepare(settings)?;
        self.gateway.check(self.node.recipes.wanted)?;
        let mut plan = self.node.plan(Role::Auto, settings)?;
        let limits = if plan.has_programs() {
            // This node runs them all: another process would only stand between it and them.
            self.workers.refuse()?;
            Limits { min: 0, max: 0 }
        } else if plan.has_work() {
            self.workers.limits(settings)?
        } else {
            // Others work for its queues.
            Limits { min: 0, max: 0 }
        };
        if limits.max > 0 {
            plan.beside_workers(cores());
        }
        let connection = Connection::open(settings, self.node.missing(&plan), None)?;
        let panel = Panel::new(self.log.shows_panel(), self.node.until_done);
        let log = Log::start(settings.fleet.value.clone(), &self.log, panel.bar(), false)?;
        let shutdown = Shutdown::new();
        let around = self.surroundings(settings)?;
        let gateway = self.gateway.start(settings, &connection, around, &log, &shutdown).await?;
        obey_signals(&shutdown, &log, self.node.work.lease)?;
        let announce = || {
            first_lines::say(settings, &plan, gateway.as_ref().map(Answering::url).as_deref(), &log);
            gateway.iter().for_each(|gateway| gateway.announce(&log));
        };
        let up = tokio::select! {
            biased;
            () = shutdown.any() => Ok(false),
            up = late_store::awaited(settings, &connection, gateway.is_some(), announce, &log) => up.map(|()| true),
        };
        // From here on outages are waited for.
        if up != Ok(true) {
            shutdown.graceful();
            // Requests that wait for the store are told before their gateway goes.
            if let Some(gateway) = gateway {
                gateway.ended().await;
            }
            return connection.given(up).map(|_| if self.node.until_done { Exit::Failed } else { Exit::Ok });
        }
        self.node.check_queues(&plan, &connection, settings).await?;
        let before = self.node.failed_before(&plan, &connection).await?;
        let workforce = watch::Sender::new(Workforce::default());
        let workers = workforce.subscribe();
        let supervisor = supervisor(settings, &self.node, &self.log, &log)?;
        let spawner = Spawner { supervisor, limits, cores: cores(), queues: plan.slots(), count: workforce };
        let (admin, stop) = (connection.admin.clone(), shutdown.clone());
        let spawner = tokio::spawn(async move { spawner.run(&admin, stop).await });
        let is_at_work = AtomicBool::new(true);
        let lost_patience = async {
            shutdown.any().await;
            tokio::time::sleep(self.grace).await;
            // Else only the gateway has requests left, and tells each of them.
            if is_at_work.load(Ordering::Relaxed) {
                log.line(&format!(
                    "not finished within {}: what still runs is stopped, and runs again later",
                    span(self.grace)
                ));
            }
            shutdown.now();
            std::future::pending::<()>().await;
        };
        let all = async {
            let ended = self.node.run(&plan, &connection, &before, &log, &shutdown).await;
            // However it ended, its workers end with it.
            shutdown.graceful();
            spawner.await.ok();
            is_at_work.store(false, Ordering::Relaxed);
            if let Some(gateway) = gateway {
                gateway.ended().await;
            }
            ended
        };
        let ended = tokio::select! {
            ended = all => ended,
            () = lost_patience => Ok(Exit::Failed),
            () = panel.show(&connection.admin, plan.only_queue(), &workers, &log), if !self.log.is_quiet() => {
                Ok(Exit::Failed)
            }
        };
        log.close();
        panel.close();
        connection.admin.leave().await;
        ended
    }
}
