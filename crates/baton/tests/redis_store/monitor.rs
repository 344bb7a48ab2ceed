//! What each script does, as the server itself tells: its commands, and the words of them.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    thread::{self, JoinHandle},
};

use crate::{RedisServer, behind};

/// What ends a look.
const END: &str = "the end of what is monitored";

/// The most that one call of a script did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Most {
    /// Commands in one call.
    pub(crate) commands: usize,
    /// Words of these commands: keys, entries, values.
    pub(crate) words: usize,
    /// How many calls there were.
    pub(crate) calls: usize,
}

/// A look at all that a server does, until it is ended.
pub(crate) struct Monitor(JoinHandle<BTreeMap<String, Most>>);

impl Monitor {
    pub(crate) fn start(server: &RedisServer) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.write_all(b"MONITOR\r\n").unwrap();
        let mut lines = BufReader::new(stream);
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        assert_eq!(first, "+OK\r\n");
        Self(thread::spawn(move || watch(lines)))
    }

    /// By the name of the script.
    pub(crate) fn end(self, server: &RedisServer) -> BTreeMap<String, Most> {
        let mut echo = redis::cmd("ECHO");
        let _: String = echo.arg(END).query(&mut server.connection()).unwrap();
        let seen = self.0.join().unwrap();
        // A look that the server cut off would have seen too little.
        assert_eq!(behind::<String>(server, "PING"), "PONG");
        seen
    }
}

fn watch(lines: BufReader<TcpStream>) -> BTreeMap<String, Most> {
    let (mut by_script, mut script, mut now) = (BTreeMap::<String, Most>::new(), None, Most::default());
    for line in lines.split(b'\n') {
        let line = line.unwrap();
        let line = String::from_utf8_lossy(&line);
        let Some((from, command)) = line.split_once("] ") else { continue };
        if from.ends_with(" lua") {
            now.commands += 1;
            now.words += command.matches("\" \"").count() + 1;
            continue;
        }
        if let Some(name) = script.take() {
            let most = by_script.entry(name).or_default();
            most.commands = most.commands.max(now.commands);
            most.words = most.words.max(now.words);
            most.calls += 1;
        }
        now = Most::default();
        if command.contains(END) {
            return by_script;
        }
        let function = command.strip_prefix("\"FCALL\" \"").and_then(|rest| rest.split('"').next());
        // `baton_<hash>_<name>`
        script = function.and_then(|function| function.splitn(3, '_').nth(2)).map(str::to_owned);
    }
    panic!("the server ended the look")
}
