//! `baton up`: the whole thing on this machine.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use baton::{
    Role, Shutdown,
    admin::{Limits, Spawner, Workforce},
    settings::quantity,
};
use tokio::sync::watch;

use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    gateway::{GatewayArguments, Times},
    late_store,
    node::{Log, NodeArguments, obey_signals},
    output::span,
    panel::Panel,
    settings::Settings,
    supervisor::{Workers, cores, supervisor},
};

/// Run a fleet on this machine: a node with the source, and worker processes beside it
///
/// There are as many workers as the load asks for, from --min-workers to --max-workers: they come within two seconds of
/// a burst, and leave, with what they run finished, when fewer were needed for ten. Workers that crash are replaced,
/// after ever longer pauses. Run it on further machines with the same store to make the fleet larger: they share the
/// load by their cores, each within its own limits.
///
/// Ctrl-C, SIGTERM or `baton kill` finishes what runs and ends them all, a second Ctrl-C does so at once; if this process
/// is killed, the workers notice and leave by themselves.
///
/// Where a baton.toml describes queues and sources (see `baton config --help`), it runs all of them, or those that --queue
/// and --source choose. Worker processes go by the text it has read, whatever becomes of the file.
///
/// It answers HTTP at 127.0.0.1:8000, or at the next port that is free: `curl --json 1 localhost:8000/push/QUEUE` pushes a
/// message, /api/openapi.json describes the rest. --listen names another address, --no-gateway none. With a gateway a Redis that
/// is not up yet is waited for, for ever unless --wait says how long.
///
/// Otherwise, without --queue, --exec, --exec-once, --handler, --lines, --lines-from and --cron it is a demonstration, on a queue of its own: `demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton up
  baton up --queue fetch --lines urls.txt --exec-once 'curl -fsS -- {}' --retries 3 --until-done > pages
  find . -name '*.png' | baton up --queue small --lines - --exec-once 'optipng -- {}' --workers 8 --until-done
  baton up --queue resize --exec 'python3 resize.py' --retries 3
  baton --config etc/baton.toml up --until-done
  baton up --interval 10ms --demo-delay 0..50ms
  baton up --min-workers 2 --max-workers 16 --concurrency 8 --handler noop --queue resize
  baton --rhost 10.0.0.5 up --workers 8 --handler noop --queue resize")]
pub(crate) struct Up {
    /// How long what runs may take to finish when stopping
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::time)]
    grace: Duration,
    #[command(flatten)]
    workers: Workers,
    #[command(flatten)]
    gateway: GatewayArguments,
    #[command(flatten)]
    node: NodeArguments,
    /// Neither log nor figures
    #[arg(short, long)]
    quiet: bool,
}

impl Up {
    pub(crate) async fn run(mut self, settings: &Settings) -> Result<Exit, Failure> {
        self.node.demonstrate_if_bare(settings)?;
        self.node.searches.wanted = self.gateway.is_wanted(self.node.until_done);
        let mut plan = self.node.plan(Role::Auto, settings)?;
        let limits = if plan.has_programs() {
            // This node runs them all: another process would only stand between it and them.
            if let Some(workers) = self.workers.in_place_of_concurrency()? {
                plan.set_concurrency(workers);
            }
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
        let connection = Connection::open(settings, Missing::Create, None)?;
        let panel = Panel::new(self.quiet, self.node.until_done);
        let log = Arc::new(Log::new(settings.fleet.value.clone(), self.quiet, panel.bar()));
        let shutdown = Shutdown::new();
        let times = Times { stop: self.grace, search: self.node.searches.timeout };
        let gateway = self.gateway.start(settings, &connection, self.node.until_done, times, &log, &shutdown).await?;
        obey_signals(&shutdown, &log, self.node.work.lease)?;
        let up = tokio::select! {
            biased;
            () = shutdown.any() => Ok(false),
            up = late_store::awaited(settings, &connection, gateway.as_ref(), &log) => up.map(|()| true),
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
        let workforce = watch::Sender::new(Workforce::default());
        let workers = workforce.subscribe();
        let supervisor = supervisor(settings, &self.node, &log)?;
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
                    "not finished within {}: what still runs is broken off and runs again",
                    span(self.grace)
                ));
            }
            shutdown.now();
            std::future::pending::<()>().await;
        };
        let all = async {
            let ended = self.node.run(&plan, &connection, &log, &shutdown).await;
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
            () = panel.show(&connection.admin, plan.only_queue(), &workers, &log), if !self.quiet => {
                Ok(Exit::Failed)
            }
        };
        panel.close();
        connection.admin.leave().await;
        ended
    }
}
