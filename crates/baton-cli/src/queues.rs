//! The queues a fleet knows, for somebody who names another.

use baton::{message::Name, store::Survey};

use crate::output::{one_of, remark};

/// That the fleet has no such queue, and which it has; nothing if it has it.
pub(crate) fn lack_of(queue: &Name, survey: &Survey) -> Option<String> {
    let known: Vec<String> = survey.queues.iter().map(|it| it.queue.to_string()).collect();
    let is_known = known.iter().any(|it| it == queue.as_str());
    (!is_known).then(|| format!("there is no queue {queue} in this fleet{}", one_of(&known)))
}

/// Remarks that the queue, if one is named, is none of the fleet's: what follows is true, and may not be what was meant.
pub(crate) fn remark_lack(queue: Option<&Name>, survey: &Survey) -> bool {
    let lack = queue.and_then(|queue| lack_of(queue, survey));
    if let Some(lack) = &lack {
        remark(lack);
    }
    lack.is_some()
}
