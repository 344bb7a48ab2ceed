//! The interpreters that are known, by what their options look like.

/// How a program is given code, and what else its options look like.
pub(super) struct Interpreter {
    pub(super) names: &'static [&'static str],
    /// Letters of options with code.
    pub(super) code: &'static str,
    /// Letters of options with another value, which may be the next word.
    pub(super) value: &'static str,
    /// Letters that end a word of options: the rest of the word is their value.
    pub(super) rest: &'static str,
    /// Longer options with code, and with other values: so many words follow.
    pub(super) long_code: &'static [&'static str],
    pub(super) long_value: &'static [(&'static str, usize)],
    pub(super) operands: Operands,
    /// Whether all words behind the code are its arguments.
    pub(super) is_last: bool,
    pub(super) advice: &'static str,
}

/// What stands behind the options.
#[derive(PartialEq, Eq)]
pub(super) enum Operands {
    /// A file with code, or arguments; what looks like an option there is none.
    Others,
    /// More options may stand between them.
    Mixed,
    /// The first is code unless one of these options gave that.
    Code(&'static str),
    /// All but so many of the first are code together.
    CodeBehind(usize),
}

const INPUT: &str = "let the code read the body from its standard input";

const DEFAULT: Interpreter = Interpreter {
    names: &[],
    code: "",
    value: "",
    rest: "",
    long_code: &[],
    long_value: &[],
    operands: Operands::Others,
    is_last: false,
    advice: INPUT,
};

/// Options with a file of code.
pub(super) const FILES: [&str; 2] = ["--file", "--from-file"];

/// Shells are known elsewhere.
pub(super) const KNOWN: [Interpreter; 21] = [
    Interpreter {
        names: &["python", "pypy"],
        code: "c",
        value: "WXQ",
        rest: "m",
        is_last: true,
        advice: "write python3 -c 'import sys; … sys.argv[1] …' {}",
        ..DEFAULT
    },
    Interpreter {
        names: &["perl"],
        // What stands behind -M is code too.
        code: "eEMm",
        value: "I",
        rest: "CDFVix",
        advice: "write perl -e '… $ARGV[0] …' -- {}",
        ..DEFAULT
    },
    Interpreter {
        names: &["ruby"],
        code: "e",
        value: "CIr",
        rest: "EFKTWix",
        advice: "write ruby -e '… ARGV[0] …' -- {}",
        ..DEFAULT
    },
    Interpreter {
        names: &["node", "nodejs", "bun"],
        code: "ep",
        value: "rC",
        long_code: &["--eval", "--print"],
        long_value: &[("--require", 1), ("--import", 1), ("--loader", 1), ("--conditions", 1)],
        advice: "write node -e '… process.argv[1] …' -- {}",
        ..DEFAULT
    },
    Interpreter {
        names: &["php"],
        code: "rBRE",
        value: "cdz",
        long_code: &["--run"],
        advice: "write php -r '… $argv[1] …' -- {}",
        ..DEFAULT
    },
    Interpreter { names: &["lua", "luajit", "julia", "Rscript", "elixir"], code: "eE", value: "lL", ..DEFAULT },
    Interpreter {
        names: &["awk", "gawk", "mawk", "nawk"],
        code: "e",
        value: "FvfiE",
        long_code: &["--source"],
        long_value: &[("--assign", 1), ("--field-separator", 1), ("--file", 1)],
        operands: Operands::Code("efE"),
        advice: "write awk -v body={} '… body …'",
        ..DEFAULT
    },
    Interpreter {
        names: &["sed", "gsed"],
        code: "e",
        value: "fl",
        rest: "i",
        long_code: &["--expression"],
        long_value: &[("--file", 1), ("--line-length", 1)],
        operands: Operands::Code("ef"),
        ..DEFAULT
    },
    Interpreter {
        names: &["jq"],
        value: "fL",
        long_value: &[
            ("--arg", 2),
            ("--argjson", 2),
            ("--slurpfile", 2),
            ("--rawfile", 2),
            ("--indent", 1),
            ("--from-file", 1),
        ],
        operands: Operands::Code("f"),
        advice: "write jq --arg body {} '… $body …'",
        ..DEFAULT
    },
    Interpreter {
        names: &["env"],
        code: "S",
        value: "uC",
        long_code: &["--split-string"],
        long_value: &[("--unset", 1), ("--chdir", 1)],
        advice: "write the command without -S",
        ..DEFAULT
    },
    Interpreter {
        names: &["ssh"],
        // A setting may be a command, such as ProxyCommand.
        code: "o",
        value: "bcDEeFIiJLlmOpQRSWwBP",
        operands: Operands::CodeBehind(1),
        advice: "let the command there read the body from its standard input",
        ..DEFAULT
    },
    Interpreter { names: &["scp", "sftp"], code: "oS", value: "cDFiJlPXBbRs", operands: Operands::Mixed, ..DEFAULT },
    Interpreter {
        names: &["rsync"],
        code: "e",
        value: "fBTM",
        long_code: &["--rsh", "--rsync-path"],
        operands: Operands::Mixed,
        ..DEFAULT
    },
    Interpreter {
        names: &["watch"],
        value: "nq",
        long_value: &[("--interval", 1), ("--equexit", 1)],
        operands: Operands::CodeBehind(0),
        advice: "write the command without watch",
        ..DEFAULT
    },
    Interpreter {
        names: &["tar", "bsdtar", "gtar"],
        code: "I",
        value: "fCTXgbHKLNV",
        long_code: &[
            "--to-command",
            "--checkpoint-action",
            "--use-compress-program",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
        ],
        operands: Operands::Mixed,
        ..DEFAULT
    },
    Interpreter {
        names: &["gdb"],
        long_code: &["-ex", "-iex", "-eval-command", "--ex", "--iex", "--eval-command", "--init-eval-command"],
        operands: Operands::Mixed,
        ..DEFAULT
    },
    Interpreter {
        names: &["npm", "npx", "pnpm", "vi", "vim", "nvim", "ex"],
        code: "c",
        long_code: &["--call", "--cmd"],
        operands: Operands::Mixed,
        ..DEFAULT
    },
    Interpreter {
        names: &["su", "runuser", "sg", "script"],
        code: "c",
        value: "sgGwWI",
        long_code: &["--command"],
        operands: Operands::Mixed,
        ..DEFAULT
    },
    Interpreter {
        names: &["psql"],
        code: "c",
        value: "hpUdfoFPRTLv",
        long_code: &["--command"],
        operands: Operands::Mixed,
        ..DEFAULT
    },
    Interpreter {
        names: &["mysql", "mariadb"],
        code: "e",
        value: "huDPS",
        rest: "p",
        long_code: &["--execute"],
        operands: Operands::Mixed,
        ..DEFAULT
    },
    Interpreter {
        names: &["sqlite3"],
        long_code: &["-cmd"],
        long_value: &[("-separator", 1), ("-newline", 1), ("-nullvalue", 1), ("-init", 1), ("-vfs", 1)],
        operands: Operands::CodeBehind(1),
        ..DEFAULT
    },
];

/// Programs that start another one, which stands among their words.
pub(super) const STARTERS: [&str; 27] = [
    "chroot", "chrt", "docker", "doas", "env", "flock", "ionice", "kubectl", "nice", "nohup", "numactl", "parallel",
    "podman", "poetry", "setarch", "setpriv", "setsid", "stdbuf", "strace", "sudo", "taskset", "time", "timeout",
    "unbuffer", "unshare", "uv", "xargs",
];
/// Options of other programs behind which code may stand.
pub(super) const LIKE_CODE: [&str; 9] =
    ["-c", "-e", "-E", "-x", "--eval", "--exec", "--execute", "--command", "--expression"];
