//! The first lines of `up` and `node`: which version runs, where its messages are, who describes the work, and what it does.

use std::path::Path;

use baton::store::{FORMAT, StoreUrl};

use crate::{
    node::{Log, Plan},
    output::tame,
    settings::{Origin, Settings},
};

/// Names of queues or sources on a line of a terminal.
const NAMED: usize = 8;

/// Says them: five lines on a terminal, one event in a log that goes elsewhere. `gateway` is its address, if there is one.
pub(crate) fn say(settings: &Settings, plan: &Plan, gateway: Option<&str>, log: &Log) {
    let version = env!("CARGO_PKG_VERSION");
    let store = match &settings.store.value {
        StoreUrl::Sqlite(path) => format!("sqlite:{}", whole(path)),
        other => other.to_string(),
    };
    let description = settings.fleet_file.as_ref().map_or_else(|| "none".to_owned(), |file| whole(file.path()));
    let gateway = gateway.unwrap_or("none");
    let (queues, sources) = (plan.worked(), plan.source_names());
    if !log.is_short() {
        let (queues, sources) = (listed(&queues, usize::MAX, ","), listed(&sources, usize::MAX, ","));
        log.line(&format!(
            "started version={version} format={FORMAT} store={store} description={description} gateway={gateway} \
             queues={queues} sources={sources}"
        ));
        return;
    }
    let fleet = match settings.fleet.from {
        Origin::Default => String::new(),
        _ => format!(", fleet {}", settings.fleet.value),
    };
    let (queues, sources) = (listed(&queues, NAMED, ", "), listed(&sources, NAMED, ", "));
    let lines = [
        format!("baton {version}, store format {FORMAT}"),
        format!("  store        {store}{fleet}"),
        format!("  description  {description}"),
        format!("  gateway      {gateway}"),
        format!("  queues       {queues}; sources: {sources}"),
    ];
    lines.iter().for_each(|line| log.heading(&tame(line)));
}

/// The path that leads there from everywhere.
fn whole(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// Names in a row, the first of them if they are many.
fn listed(names: &[&str], most: usize, between: &str) -> String {
    let shown = names.get(..most).unwrap_or(names).join(between);
    match names.len().saturating_sub(most) {
        0 if names.is_empty() => "none".to_owned(),
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn many_names_are_cut_short() {
        assert_eq!(listed(&[], 2, ", "), "none");
        assert_eq!(listed(&["a", "b"], 2, ", "), "a, b");
        assert_eq!(listed(&["a", "b", "c"], 2, ","), "a,b and 1 more");
    }
}
