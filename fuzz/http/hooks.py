"""What schemathesis is told of the gateway: streams end only where somebody works."""

import re

import schemathesis

NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._:-]{1,64}")


@schemathesis.hook
def before_call(context, case, kwargs):
    """Whatever is a queue is the one that is worked: a call to any other streams until somebody comes."""
    queue = (case.path_parameters or {}).get("queue")
    if isinstance(queue, str) and NAME.fullmatch(queue):
        case.path_parameters["queue"] = "work"
