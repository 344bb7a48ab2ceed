//! A small fleet that has something of everything: a node, a source, children, messages that are done and that failed.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;

use crate::sandbox::{Ran, Running, Sandbox, until};

/// The queue for which the node works, by the command below.
pub(crate) const WORKED: &str = "work";
/// The queue with a message that failed.
pub(crate) const BROKEN: &str = "broken";

/// A child that keeps what it is given, and answers each message.
const CHILD: &str = "env > exec.env
while read -r line; do
    printf '%s\\n' \"$line\" >> exec.lines
    id=${line#*:}
    printf '{\"id\":%s,\"event\":\"end\",\"data\":{}}\\n' \"${id%%,*}\"
done
";

pub(crate) struct SmallFleet {
    pub(crate) sandbox: Sandbox,
    /// Works until the fleet is dropped.
    _node: Running,
}

impl SmallFleet {
    pub(crate) fn start() -> Self {
        let sandbox = Sandbox::new();
        sandbox.failed(BROKEN, &[("1", "boom")]);
        sandbox.write("child.sh", CHILD);
        let mut command = sandbox.command(&["node", "--queue", WORKED, "--exec", "sh child.sh", "--source", "beats"]);
        // Nothing is named but what is needed to find `sh`.
        command.args(["--interval", "20ms", "--quiet"]).env("PATH", std::env::var_os("PATH").unwrap());
        let node = sandbox.start_by(&mut command);
        until("some messages are done", || sandbox.count(WORKED, "done") > 1);
        Self { sandbox, _node: node }
    }

    /// Runs a command that may need other programs.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = self.sandbox.command(arguments);
        Ran::of(command.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap())
    }

    /// The lines of a file that the children wrote.
    pub(crate) fn lines(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.sandbox.dir.path().join(file)).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

/// The JSON values of a text: as a whole, or a line each, after `data:` where events have that; no other lines.
pub(crate) fn values(text: &str) -> Vec<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return vec![value];
    }
    let lines = text.lines().map(|line| line.strip_prefix("data:").unwrap_or(line));
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}
