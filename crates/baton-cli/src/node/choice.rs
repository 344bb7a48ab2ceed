//! The part of a described fleet that a command chooses, and the flags that replace settings of the description.

use baton::{Name, Role, settings::document::meant};

use super::{NodeArguments, Plan, description::Description, source_feed::SourceFeed};
use crate::exit::Failure;

impl NodeArguments {
    /// The part of a described fleet that this command is about: all of it, or the queues and the source it names.
    pub(super) fn choose(&self, role: Role, described: Description) -> Result<Plan, Failure> {
        let Description { queues, sources, file, .. } = described;
        let file = file.display();
        let unknown = |kind: &str, name: &Name, known: Vec<&str>| {
            let next = meant(name.as_str(), known.iter().copied())
                .map_or_else(|| format!("there are {}", known.join(", ")), |near| format!("did you mean {near}?"));
            Failure::usage(format!("{file} describes no {kind} {name}"), next)
        };
        let chosen = self.work.queues();
        if let Some(name) = chosen.iter().find(|name| !queues.iter().any(|it| it.queue == **name)) {
            return Err(unknown("queue", name, queues.iter().map(|it| it.queue.as_str()).collect()));
        }
        let is_chosen = |queue: &Name| chosen.is_empty() || chosen.contains(queue);
        let mut queues: Vec<_> = queues.into_iter().filter(|it| is_chosen(&it.queue)).collect();
        let mut sources: Vec<_> = sources.into_iter().filter(|it| is_chosen(&it.queue)).collect();
        if let Some(name) = &self.feed.source {
            let found: Vec<_> = sources.iter().filter(|it| it.name == *name).cloned().collect();
            if found.is_empty() && !sources.is_empty() {
                return Err(unknown("source", name, sources.iter().map(|it| it.name.as_str()).collect()));
            }
            sources = found;
        }
        if let Some(flag) = self.work.about_a_queue() {
            let [only] = queues.as_mut_slice() else {
                return Err(Failure::usage(
                    format!("{flag} is about one queue, and {file} describes {}", queues.len()),
                    "choose one with --queue, or say it in the file",
                ));
            };
            self.work.override_in(only)?;
        }
        if role != Role::Worker {
            match (self.feed.about_a_source(), sources.as_mut_slice(), queues.as_slice()) {
                (None, ..) => {}
                (Some(_), [only], _) => self.feed.override_in(only)?,
                (Some(_), [], [queue]) => sources.extend(self.feed.described(&queue.queue)?),
                (Some(flag), [], several) => {
                    return Err(Failure::usage(
                        format!("{flag} makes a source for one queue, and {file} describes {}", several.len()),
                        "choose one with --queue, or describe the source in the file",
                    ));
                }
                (Some(flag), several, _) => {
                    return Err(Failure::usage(
                        format!("{flag} is about one source, and {file} describes {}", several.len()),
                        "choose one with --source, or say it in the file",
                    ));
                }
            }
        }
        let endless = |it: &&SourceFeed| it.pull.is_endless() && it.count.is_none();
        if let Some(source) = sources.iter().find(endless).filter(|_| self.until_done) {
            return Err(Failure::usage(
                format!("source {} never ends, so --until-done would never end", source.name),
                "choose others with --queue or --source, or give it a count",
            ));
        }
        let awaited = sources.iter().map(|source| source.name.clone()).collect();
        if role == Role::Worker {
            sources.clear();
        }
        let (has_work, has_source) = (queues.iter().any(|it| it.task.is_some()), !sources.is_empty());
        let nothing = match role {
            Role::Generator => (!has_source).then_some("source"),
            Role::Worker => (!has_work).then_some("queue with a handler"),
            Role::Auto => (!has_work && !has_source).then_some("source and no queue with a handler"),
        };
        match nothing {
            Some(what) => Err(Failure::usage(
                format!("{file}: no {what} is chosen, so there is nothing to do"),
                "choose others with --queue, or describe it there",
            )),
            None => {
                let recipes = self.recipes.clone();
                let plan = Plan { role, queues, sources, is_described: true, awaited, cores: None, recipes };
                plan.check_programs()?;
                Ok(plan)
            }
        }
    }
}
