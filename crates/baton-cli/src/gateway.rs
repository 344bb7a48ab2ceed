//! The gateway of `up`: its flags, and its way from the start to the end.

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use baton::{
    Name, Shutdown,
    builtin::sales::{Sales, SalesError},
    settings::quantity,
};
use baton_gateway::{
    DEFAULT_ADDRESS, Gateway, GatewayError, GatewayOptions, Limits, Listen, Recipes,
    tokens::{Standing, TokenError, TokenFile},
};
use tokio::task::JoinHandle;

use crate::{
    connection::Connection,
    exit::{Exit, Failure},
    node::{Description, Log, only_with_recipes},
    port_holder,
    settings::{self, Settings},
};

/// The flags of the gateway.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Gateway")]
pub(crate) struct GatewayArguments {
    /// Answer HTTP at this address, or at this port of 127.0.0.1; any other address needs a token (`baton token add`)
    /// [default: 127.0.0.1:8000, with --demo the next port that is free; none with --until-done]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Answer no HTTP
    #[arg(long, conflicts_with_all = ["listen", "hosts", "tokens", "linger", "sales", "demo_init", "open_queues"])]
    no_gateway: bool,
    /// A further name by which callers address the gateway; it knows localhost and its address. May be given several times
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Take messages for any queue. Otherwise, where a baton.toml describes queues, a push to a queue that is not described,
    /// not stored and not worked for is answered with 404 [key of the file: open_queues under [gateway]]
    #[arg(long)]
    open_queues: bool,
    /// How long a search goes on after its caller was cut off, who may come again; needs --recipes or --demo
    /// [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = quantity::time, help_heading = "Recipes")]
    linger: Option<Duration>,
    /// The file with the sales that /totalSales adds up; needs --recipes or --demo [default: sales.db in your state folder]
    #[arg(long, value_name = "PATH", help_heading = "Recipes")]
    sales: Option<PathBuf>,
    /// How long the module behind /say takes to start: requests that come earlier wait; needs --recipes or --demo
    /// [default: 0]
    #[arg(long, value_name = "TIME", value_parser = quantity::time, help_heading = "Demonstration")]
    demo_init: Option<Duration>,
    /// A file with tokens that are valid in place of those of this fleet. It must be there: `baton token add NAME --tokens PATH`
    /// makes it
    #[arg(long, value_name = "PATH")]
    tokens: Option<PathBuf>,
}

/// The rest of the command and the fleet's file, as far as they concern a gateway.
pub(crate) struct Surroundings {
    pub(crate) until_done: bool,
    /// Whether the demonstration runs: it may listen at another port than the usual one.
    pub(crate) demonstrates: bool,
    /// Whether the fleet has the recipes.
    pub(crate) recipes: bool,
    /// Where the fleet's file has it listen.
    pub(crate) listen: Option<SocketAddr>,
    /// How long requests under way may take when the gateway stops.
    pub(crate) stop_time: Duration,
    /// How long a search may take, if that is said.
    pub(crate) search_time: Option<Duration>,
}

impl GatewayArguments {
    /// Whether there is to be one.
    pub(crate) const fn is_wanted(&self, until_done: bool) -> bool {
        !self.no_gateway && (!until_done || self.listen.is_some())
    }

    /// The queues that the fleet's file describes; nothing if messages for any queue are to be taken.
    fn described(&self, settings: &Settings) -> Result<Option<Vec<Name>>, Failure> {
        let description = Description::of(settings).map_err(settings::refused)?;
        let is_closed = description.has_queues() && !self.open_queues && !description.open_queues;
        Ok(is_closed.then(|| description.queue_names().cloned().collect()))
    }

    /// Refuses flags about recipes where there are none.
    pub(crate) fn check(&self, recipes: bool) -> Result<(), Failure> {
        let about_recipes = [
            ("--linger", self.linger.is_some()),
            ("--sales", self.sales.is_some()),
            ("--demo-init", self.demo_init.is_some()),
        ];
        match about_recipes.into_iter().find(|(_, given)| *given && !recipes) {
            Some((flag, _)) => Err(only_with_recipes(flag)),
            None => Ok(()),
        }
    }

    fn recipes(&self) -> Recipes {
        let usual = Recipes::default();
        Recipes {
            sales: self.sales.clone().or_else(|| Sales::of_user().map(|sales| sales.path().to_owned())),
            demo_init: self.demo_init.unwrap_or(usual.demo_init),
            linger: self.linger.unwrap_or(usual.linger),
        }
    }

    /// Listens and begins to answer, if that is wanted. The store need not be up.
    pub(crate) async fn start(
        &self, settings: &Settings, connection: &Connection, around: Surroundings, log: &Arc<Log>, shutdown: &Shutdown,
    ) -> Result<Option<Answering>, Failure> {
        if !self.is_wanted(around.until_done) {
            return Ok(None);
        }
        let told = Arc::clone(log);
        let limits = Limits::default();
        let listen = match self.listen.or(around.listen) {
            Some(address) => Listen::At(address),
            None if around.demonstrates => Listen::NextFree,
            None => Listen::Default,
        };
        let options = GatewayOptions {
            listen,
            hosts: self.hosts.clone(),
            queues: self.described(settings)?,
            tokens: tokens(self.tokens.clone(), settings),
            recipes: around.recipes.then(|| self.recipes()),
            limits: Limits {
                stop_time: around.stop_time,
                search_time: around.search_time.unwrap_or(limits.search_time),
                ..limits
            },
            ear: Some(Arc::new(move |event| told.line(&event.to_string()))),
        };
        let gateway = Gateway::bind(connection.admin.fleet(), options).await.map_err(refused)?;
        if let Some(sales) = &self.sales
            && matches!(Sales::at(sales).look(), Err(SalesError::Missing(_)))
        {
            let sales = sales.display();
            log.line(&format!("gateway: there are no sales in {sales} yet, totals are 0 until some are added"));
        }
        let (address, standing) = (gateway.address(), gateway.standing());
        let is_elsewhere = listen == Listen::NextFree && address != DEFAULT_ADDRESS;
        let running = tokio::spawn(gateway.run(shutdown.clone()));
        Ok(Some(Answering { running, address, standing, is_elsewhere }))
    }
}

/// A gateway that answers.
pub(crate) struct Answering {
    running: JoinHandle<()>,
    address: SocketAddr,
    /// Whether callers need a token.
    standing: Standing,
    /// Whether it is not where it is expected.
    is_elsewhere: bool,
}

impl Answering {
    /// Its address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Says who gets in and, if its address is not the expected one, where it is. That, and a gateway that lets no caller in, is
    /// also for those who want no log.
    pub(crate) fn announce(&self, log: &Log) {
        if self.is_elsewhere {
            let (port, holder) = (DEFAULT_ADDRESS.port(), taken_by(DEFAULT_ADDRESS));
            log.say(&format!("port {port} is {holder}: the gateway of the demonstration is at {}", self.url()));
        }
        let standing = self.standing.to_string();
        if self.standing.is_shut() { log.say(&standing) } else { log.line(&standing) }
    }

    /// Waits for its end.
    pub(crate) async fn ended(self) {
        // However it ended, it is gone.
        self.running.await.ok();
    }
}

/// That an address is taken, and by whom if that is known.
fn taken_by(address: SocketAddr) -> String {
    port_holder::of(address).map_or_else(|| "taken".to_owned(), |holder| format!("taken by {holder}"))
}

/// An address, or a port of loopback.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text).parse().ok();
    let loopback = port.map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let named = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    let named = named.map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    loopback
        .or(named)
        .or_else(|| text.parse().ok())
        .ok_or_else(|| "not an address, as 127.0.0.1:8000 or 8000".to_owned())
}

fn refused(error: GatewayError) -> Failure {
    match error {
        GatewayError::Open(_) => {
            Failure::usage(error.to_string(), "make one with `baton token add NAME`, or listen at 127.0.0.1")
        }
        GatewayError::Tokens(error) => of_tokens(&error),
        GatewayError::Sales(error) => Failure::advised(Exit::Store, &error.to_string()),
        GatewayError::Listen { address, error } if error.kind() == ErrorKind::AddrInUse => Failure::new(
            format!("cannot listen at {address}: it is {}", taken_by(address)),
            "name another address by --listen, or by listen under [gateway] in baton.toml; --no-gateway starts none",
        ),
        GatewayError::Thread(_) => Failure::new(error.to_string(), "free some memory or threads"),
        _ => Failure::new(error.to_string(), "choose another address with --listen, or start none with --no-gateway"),
    }
}

/// The tokens of the fleet in force, or those in a file that is named.
pub(crate) fn tokens(file: Option<PathBuf>, settings: &Settings) -> Option<TokenFile> {
    let of_fleet = || TokenFile::of_fleet(&settings.store.value, &settings.fleet.value);
    file.map(TokenFile::at).or_else(of_fleet)
}

/// Why tokens cannot be used, and what to do about it.
pub(crate) fn of_tokens(error: &TokenError) -> Failure {
    let next = match error {
        TokenError::Exposed { path } => {
            format!("run `chmod 600 {}`, and make new tokens if others read them", path.display())
        }
        TokenError::Missing { path } => {
            let next = format!("make it with `baton token add NAME --tokens {}`", path.display());
            return Failure::usage(error.to_string(), next);
        }
        TokenError::Dangling { .. } => {
            "put back what it leads to, or remove the link, and the gateway forgets that it needed tokens".to_owned()
        }
        TokenError::NotRegular { .. } => "remove it, or name another file with --tokens".to_owned(),
        TokenError::Locked { .. } => "let it end, or end it".to_owned(),
        TokenError::Unsynced { .. } => "run `sync`".to_owned(),
        TokenError::Content { .. } => {
            "mend the file, or name another with --tokens; without the fleet's own file, no token is needed any more"
                .to_owned()
        }
        TokenError::Left(_) => "revoke them first, with `baton token revoke NAME`".to_owned(),
        TokenError::Taken(_) => "take another name, or revoke that one first".to_owned(),
        TokenError::Unknown(_) => "see `baton token list`".to_owned(),
        _ => "name another file with --tokens".to_owned(),
    };
    Failure::new(error.to_string(), next)
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn an_address_may_be_a_port() {
        let shown = |text: &str| address(text).map(|it| it.to_string());
        assert_eq!(shown("8001").unwrap(), "127.0.0.1:8001");
        assert_eq!(shown(":8001").unwrap(), "127.0.0.1:8001");
        assert_eq!(shown("localhost:0").unwrap(), "127.0.0.1:0");
        assert_eq!(shown("[::1]:80").unwrap(), "[::1]:80");
        assert_eq!(shown("0.0.0.0:80").unwrap(), "0.0.0.0:80");
        for bad in ["", "x", "1.2.3.4", "70000", "evil.example:80"] {
            shown(bad).unwrap_err();
        }
    }
}
