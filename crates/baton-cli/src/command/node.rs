//! `baton node`: one node of the fleet.

use baton::{Role, Shutdown};
use clap::ValueEnum;

use crate::{
    connection::Connection,
    exit::{Exit, Failure},
    first_lines, late_store,
    node::{Log, LogArguments, NodeArguments, obey_leash, obey_signals},
    settings::Settings,
};

/// Run one node of the fleet: it works, and it generates while it holds a source
///
/// A node needs a handler for the messages of its queue, and offers a source only if one is named. Exactly one node
/// runs a source at a time; another one takes over when that node leaves or dies. Ctrl-C or SIGTERM finishes the running
/// messages and leaves; a second one leaves at once. A node of role worker ignores the flags of a source, except --source:
/// with --until-done it also waits for the end of that source.
///
/// If a baton.toml describes queues and sources (see `baton config --help`), the node belongs to that fleet: to all of it,
/// or to the queues chosen by --queue and the sources that feed them. With one queue chosen, flags about a queue override
/// the file; with several they are refused. The same holds for --source and flags about a source.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton node --queue fetch --queue resize     two of the queues that baton.toml describes
  baton node --exec 'python3 resize.py' --queue resize --retries 3
  baton node --handler demo --role worker --concurrency 8 --retries 3
  baton node --exec-once 'curl -fsS -- {}' --lines urls.txt --queue fetch --until-done
  baton node --exec 'node events.js' --lines app.log --follow --queue events
  baton node --exec-once ./nightly.sh --cron '0 3 * * *' --catch-up once --queue nightly
  baton node --role generator --interval 1s --queue resize")]
pub(crate) struct Node {
    /// What the node may do
    #[arg(long, value_enum, value_name = "ROLE", default_value = "auto")]
    role: Part,
    #[command(flatten)]
    node: NodeArguments,
    #[command(flatten)]
    log: LogArguments,
    /// Stop when standard input ends
    #[arg(long, hide = true)]
    leashed: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Part {
    /// Works, and generates while it holds a source
    Auto,
    /// Only works
    Worker,
    /// Only generates
    Generator,
}

impl From<Part> for Role {
    fn from(part: Part) -> Self {
        match part {
            Part::Auto => Self::Auto,
            Part::Worker => Self::Worker,
            Part::Generator => Self::Generator,
        }
    }
}

impl Node {
    pub(crate) async fn run(mut self, settings: &Settings) -> Result<Exit, Failure> {
        self.node.prepare(settings)?;
        let plan = self.node.plan(self.role.into(), settings)?;
        let connection = Connection::open(settings, self.node.missing(&plan), None)?;
        let log = Log::start(settings.fleet.value.clone(), &self.log, None, self.leashed)?;
        let shutdown = Shutdown::new();
        // `up` says them for its workers.
        let announce = || {
            if !self.leashed {
                first_lines::say(settings, &plan, None, &log);
            }
        };
        // From here on outages are waited for; a store that was never there is an error.
        connection.given(late_store::awaited(settings, &connection, false, announce, &log).await)?;
        obey_signals(&shutdown, &log, self.node.work.lease)?;
        if self.leashed {
            obey_leash(&shutdown);
        }
        self.node.check_queues(&plan, &connection, settings).await?;
        let before = self.node.failed_before(&plan, &connection).await?;
        let ended = self.node.run(&plan, &connection, &before, &log, &shutdown).await;
        log.close();
        connection.admin.leave().await;
        ended
    }
}
