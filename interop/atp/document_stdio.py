"""The document's minimal agent, in our words: a request line in, events on stderr, the response as the last line of stdout."""

import json
import sys

import work

request = json.loads(sys.stdin.readline())
for message in work.steps(request):
    print(json.dumps(message), file=sys.stderr if "event_type" in message else sys.stdout)
