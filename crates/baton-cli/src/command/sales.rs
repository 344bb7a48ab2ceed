//! `baton sales`: how much was sold, over an embedded database of its own.

use std::{fs::File, io, path::PathBuf};

use baton::{
    builtin::sales::{self, Added, SalesError},
    cache::{Cache, CacheOptions},
    settings::quantity,
    store::StoreUrl,
};
use serde::Serialize;

use crate::{
    connection::{Connection, Missing},
    exit::{Exit, Failure},
    output::{Output, plural, tame},
    settings::Settings,
};

/// Load sales and print their total
///
/// Sales are kept in an SQLite database of their own. Amounts are exact to two decimals. A total scans all sales. The
/// gateway caches each total for 30 s (`GET /totalSales?item=NAME`); loading sales invalidates the cache.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  baton sales load june.csv
  baton sales load --random 100000
  baton sales total book
  curl 'localhost:8000/totalSales?item=book'")]
pub(crate) struct Sales {
    #[command(subcommand)]
    deed: Deed,
}

#[derive(Debug, clap::Subcommand)]
enum Deed {
    Load(Load),
    Total(Sum),
}

/// Load sales from a CSV file with the header transaction_id,item,amount
///
/// All rows are stored, or none: if a row is wrong, the error names its line. A known transaction is not stored again. It
/// is refused if its item or amount differs.
#[derive(Debug, clap::Args)]
struct Load {
    /// The CSV file; `-` reads standard input
    #[arg(value_name = "FILE", required_unless_present = "random")]
    file: Option<PathBuf>,
    /// Load this number of random sales of ten items
    #[arg(long, value_name = "N", conflicts_with = "file", value_parser = quantity::count)]
    random: Option<u64>,
    /// The seed of --random: the same seed gives the same sales [default: random]
    #[arg(long, value_name = "NUMBER", requires = "random")]
    seed: Option<u64>,
    #[command(flatten)]
    place: Place,
    /// Print one JSON object: {"stored","known"}
    #[arg(long)]
    json: bool,
}

/// Print the total sales of one item, or of all items
#[derive(Debug, clap::Args)]
struct Sum {
    /// The item [default: all items]
    #[arg(value_name = "ITEM")]
    item: Option<String>,
    #[command(flatten)]
    place: Place,
    /// Print one JSON object: {"item","total","minor_units"}
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Place {
    /// The file with the sales [default: sales.db in your state folder]
    #[arg(long, value_name = "PATH")]
    sales: Option<PathBuf>,
}

#[derive(Serialize)]
struct Loaded {
    stored: u64,
    known: u64,
}

#[derive(Serialize)]
struct Summed {
    item: Option<String>,
    total: String,
    minor_units: i128,
}

impl Place {
    fn sales(self) -> Result<sales::Sales, Failure> {
        let sales = self.sales.map(sales::Sales::at).or_else(sales::Sales::of_user);
        sales.ok_or_else(|| Failure::usage("there is no home folder to keep sales in", "name a file with --sales"))
    }
}

impl Sales {
    pub(crate) async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        match self.deed {
            Deed::Load(load) => load.run(settings).await,
            Deed::Total(sum) => sum.run().await,
        }
    }
}

impl Load {
    async fn run(self, settings: &Settings) -> Result<Exit, Failure> {
        let sales = self.place.sales()?;
        let added = match (self.random, self.file) {
            (Some(count), _) => {
                let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
                sales.add(sales::random_sales(count, seed).collect()).await
            }
            (None, Some(path)) if path.as_os_str() != "-" => {
                let file = File::open(&path);
                let file = file.map_err(|error| {
                    Failure::new(
                        format!("cannot read {}: {error}", path.display()),
                        "name a CSV file, or - for standard input",
                    )
                })?;
                sales.load(io::BufReader::new(file)).await
            }
            _ => sales.load(io::BufReader::new(io::stdin())).await,
        };
        let Added { stored, known } = added.map_err(|error| failure(&error))?;
        let is_told = forget(settings, &sales).await?;
        Output::print(self.json, &Loaded { stored, known }, |output| {
            let known = match known {
                0 => String::new(),
                1 => ", 1 was there before".to_owned(),
                known => format!(", {known} were there before"),
            };
            // Gateways of other fleets are not told, and whoever meant one of those sees it here.
            let (fleet, store) = (&settings.fleet.value, &settings.store.value);
            let told = if is_told {
                format!("totals of fleet {fleet} in {store} are forgotten")
            } else {
                format!("no gateway was told, since there is no store {store}")
            };
            output.line(&format!("loaded {stored} sale{}{known}; {told}", plural(stored)))
        })
    }
}

/// Has gateways forget the totals from before; whether there is a store by which they were told. Where there is none yet,
/// nobody has kept any.
async fn forget(settings: &Settings, sales: &sales::Sales) -> Result<bool, Failure> {
    let prefix = sales.prefix().await.map_err(|error| failure(&error))?;
    let is_absent = matches!(&settings.store.value, StoreUrl::Sqlite(path) if !path.exists());
    if is_absent || settings.store.value == StoreUrl::Memory {
        return Ok(false);
    }
    let connection = Connection::open(settings, Missing::Refuse, None)?;
    // Waits for a store that is not up yet, and tells so.
    connection.given(connection.admin.survey().await)?;
    let cache = Cache::shared(connection.admin.fleet(), CacheOptions::default());
    let forgotten = cache.invalidate_prefix(&prefix).await;
    connection.admin.leave().await;
    forgotten.map(|_| true).map_err(|error| {
        let cause = format!("the sales are loaded, but gateways may show totals from before for 30 s: {error}");
        Failure::new(cause, "run it again: what is loaded is not loaded twice").with(Exit::Store)
    })
}

impl Sum {
    async fn run(self) -> Result<Exit, Failure> {
        let total = self.place.sales()?.total(self.item.as_deref()).await.map_err(|error| failure(&error))?;
        let line = match &self.item {
            Some(item) => format!("Total sales for item {} is {total}", tame(item)),
            None => format!("Total sales for all items is {total}"),
        };
        let summed = Summed { item: self.item, total: total.to_string(), minor_units: total.minor_units };
        Output::print(self.json, &summed, |output| output.line(&line))
    }
}

fn failure(error: &SalesError) -> Failure {
    match error {
        SalesError::Missing(_) | SalesError::Foreign(_) | SalesError::Folder { .. } | SalesError::Busy(_) => {
            Failure::advised(Exit::Store, &error.to_string())
        }
        SalesError::File { .. } => Failure::new(error.to_string(), "name another with --sales").with(Exit::Store),
        _ => Failure::new(error.to_string(), "correct the file and load it again"),
    }
}
