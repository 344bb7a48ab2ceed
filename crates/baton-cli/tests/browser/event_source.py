"""A page in Chromium that follows server-sent events, driven over the browser's own pipe:

    python3 event_source.py CHROMIUM BASE PATH

Opens BASE/health, has that page follow PATH by an EventSource, which comes again by itself after each cut, and prints a line
for each event: its id, its name and its data. Ends with the last event of the call, and ends the browser it started.
"""

import json
import os
import subprocess
import sys
import tempfile

LAST = ("end", "cancelled", "error")
SCRIPT = """
const source = new EventSource(%s);
const tell = event => window.told(JSON.stringify([event.lastEventId, event.type, event.data]));
for (const name of ["match", "part", "progress", "restart", "gap", "end", "cancelled"]) source.addEventListener(name, tell);
// A connection that broke off is an event of the same name, without data.
source.addEventListener("error", event => { if (event.data !== undefined) tell(event); });
source.addEventListener("open", () => window.told(JSON.stringify(["", "open", ""])));
"""


class Browser:
    """Speaks to a browser by file descriptors 3 and 4, a JSON text and a zero byte each."""

    def __init__(self, program, folder):
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()

        def pipes():
            # Out of the way first: one of them may be 3 or 4 itself.
            given_in, given_out = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(given_in, 3)
            os.dup2(given_out, 4)

        # By itself it would call its makers.
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
                 "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"]
        self.process = subprocess.Popen([program, *flags], preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.number, self.read, self.heard = 0, b"", []

    def next(self):
        while b"\0" not in self.read:
            more = os.read(self.into, 1 << 16)
            if not more:
                sys.exit("the browser has ended")
            self.read += more
        text, self.read = self.read.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]
            self.heard.append(answer)

    def events(self):
        while True:
            yield self.heard.pop(0) if self.heard else self.next()

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def main():
    program, base, path = sys.argv[1:]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(program, folder)
        try:
            target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
            session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            browser.ask("Page.enable", session)
            browser.ask("Page.navigate", session, url=f"{base}/health")
            next(it for it in browser.events() if it.get("method") == "Page.loadEventFired")
            browser.ask("Runtime.enable", session)
            browser.ask("Runtime.addBinding", session, name="told")
            browser.ask("Runtime.evaluate", session, expression=SCRIPT % json.dumps(path))
            for it in browser.events():
                if it.get("method") != "Runtime.bindingCalled":
                    continue
                number, name, data = json.loads(it["params"]["payload"])
                print(f"{number}\t{name}\t{data}", flush=True)
                if name in LAST:
                    return
        finally:
            browser.end()


if __name__ == "__main__":
    main()
