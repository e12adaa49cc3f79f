"""Each vendor's official client against the server that stands in for the vendors.

If a vendor's own client takes its answers for the vendor's, and its refusals for the vendor's refusals, then what the tests of
our clients show about that server holds for the vendor too.

Usage: vendor_clients.py URL KEY. Prints one line for each thing checked; ends with status 1 if one failed.
"""

import json
import sys
import traceback
import urllib.request

import anthropic
import httpx
import httpx2
import ollama
import openai
from google import genai
from google.genai import errors as genai_errors
from google.genai import types as genai_types

URL, KEY = sys.argv[1], sys.argv[2]
QUESTION = "how good is it"
ANSWER = '{"score": 0.5, "explanation": "so so"}'
# The server counts words.
READ, WRITTEN = 4, 5
# Replies are held until the end, so that only patience decides.
PATIENCE = 0.5

checks = []


def check(function):
    checks.append(function)
    return function


def control(method, path, value=None):
    body = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(URL + path, data=body, method=method)
    # Whatever proxy the environment names is not on the way to this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as reply:
        return json.load(reply)


def script(**reply):
    control("POST", "/control", {"replies": [reply]})


def requests():
    return control("GET", "/control")["requests"]


def equal(found, expected):
    if found != expected:
        raise AssertionError(f"{found!r} is not {expected!r}")


def raised(kinds, call):
    """The error of exactly that kind that the call ends with."""
    try:
        call()
    except kinds as error:
        return error
    raise AssertionError(f"no {kinds} came")


# OpenAI


def openai_client(key=KEY):
    web = openai.DefaultHttpxClient(trust_env=False)
    return openai.OpenAI(api_key=key, base_url=URL + "/v1", max_retries=0, timeout=10, http_client=web)


def openai_ask(client, **more):
    messages = [{"role": "user", "content": QUESTION}]
    return client.chat.completions.create(model="gpt-4.1", messages=messages, max_tokens=99, temperature=0, **more)


@check
def openai_answers():
    script(text=ANSWER)
    reply = openai_ask(openai_client())
    equal(reply.choices[0].message.content, ANSWER)
    equal(reply.choices[0].finish_reason, "stop")
    equal(reply.model, "gpt-4.1")
    equal((reply.usage.prompt_tokens, reply.usage.completion_tokens), (READ, WRITTEN))


@check
def openai_reasoning_model_refuses_the_old_setting():
    messages = [{"role": "user", "content": QUESTION}]
    create = openai_client().chat.completions.create
    raised(openai.BadRequestError, lambda: create(model="gpt-5", messages=messages, max_tokens=9))
    equal(create(model="gpt-5", messages=messages, max_completion_tokens=9).model, "gpt-5")


@check
def openai_vectors():
    texts = ["a red house", "two green trees"]
    embed = openai_client().embeddings.create
    # The client asks for base64 by itself.
    packed = embed(model="text-embedding-3-small", input=texts)
    plain = embed(model="text-embedding-3-small", input=texts, encoding_format="float")
    equal([item.index for item in packed.data], [0, 1])
    for one, other in zip(packed.data, plain.data):
        equal(len(one.embedding), 64)
        if any(abs(a - b) > 1e-6 for a, b in zip(one.embedding, other.embedding)):
            raise AssertionError("the two encodings differ")
    equal(packed.usage.prompt_tokens, 6)


@check
def openai_refuses_a_wrong_key():
    error = raised(openai.AuthenticationError, lambda: openai_ask(openai_client("wrong")))
    equal((error.status_code, error.code), (401, "invalid_api_key"))


@check
def openai_limits():
    script(status=429, headers={"retry-after": "7"})
    error = raised(openai.RateLimitError, lambda: openai_ask(openai_client()))
    equal(error.response.headers["retry-after"], "7")


@check
def openai_fails():
    script(status=500)
    raised(openai.InternalServerError, lambda: openai_ask(openai_client()))


@check
def openai_is_slow():
    script(hold="end")
    raised(openai.APITimeoutError, lambda: openai_ask(openai_client(), timeout=PATIENCE))


# Anthropic


def anthropic_client(key=KEY, **more):
    web = anthropic.DefaultHttpxClient(trust_env=False)
    return anthropic.Anthropic(api_key=key, base_url=URL, max_retries=0, timeout=10, http_client=web, **more)


def anthropic_ask(client, **more):
    messages = [{"role": "user", "content": QUESTION}]
    return client.messages.create(model="claude-haiku-4-5", messages=messages, max_tokens=99, **more)


@check
def anthropic_answers():
    # The version the client prefers, and the one that Proctor speaks.
    for version in (None, "2023-06-01"):
        script(text=ANSWER)
        client = anthropic_client(default_headers={"anthropic-version": version} if version else None)
        reply = anthropic_ask(client)
        equal([block.type for block in reply.content], ["text"])
        equal(reply.content[0].text, ANSWER)
        equal(reply.stop_reason, "end_turn")
        equal((reply.usage.input_tokens, reply.usage.output_tokens), (READ, WRITTEN))
    equal(requests()[-1]["headers"]["anthropic-version"], "2023-06-01")


@check
def anthropic_refuses_a_wrong_key():
    error = raised(anthropic.AuthenticationError, lambda: anthropic_ask(anthropic_client("wrong")))
    equal(error.body["error"]["type"], "authentication_error")


@check
def anthropic_limits():
    script(status=429)
    raised(anthropic.RateLimitError, lambda: anthropic_ask(anthropic_client()))


@check
def anthropic_fails():
    for status in (500, 529):
        script(status=status)
        error = raised(anthropic.InternalServerError, lambda: anthropic_ask(anthropic_client()))
        equal(error.status_code, status)


@check
def anthropic_is_slow():
    script(hold="end")
    raised(anthropic.APITimeoutError, lambda: anthropic_ask(anthropic_client(), timeout=PATIENCE))


# Gemini


def gemini_client(key=KEY, milliseconds=10_000, **more):
    options = genai_types.HttpOptions(
        base_url=URL,
        timeout=milliseconds,
        client_args={"trust_env": False},
        retry_options=genai_types.HttpRetryOptions(attempts=1),
        **more,
    )
    return genai.Client(api_key=key, http_options=options)


def gemini_ask(client):
    settings = genai_types.GenerateContentConfig(temperature=0, max_output_tokens=99)
    return client.models.generate_content(model="gemini-2.5-flash", contents=QUESTION, config=settings)


@check
def gemini_answers():
    # The version the client prefers, and the one that Proctor speaks.
    for more in ({}, {"api_version": "v1beta"}):
        script(text=ANSWER)
        reply = gemini_ask(gemini_client(**more))
        equal(reply.text, ANSWER)
        equal(reply.candidates[0].finish_reason, genai_types.FinishReason.STOP)
        equal(reply.model_version, "gemini-2.5-flash")
        usage = reply.usage_metadata
        equal((usage.prompt_token_count, usage.candidates_token_count), (READ, WRITTEN))
    equal(requests()[-1]["path"], "/v1beta/models/gemini-2.5-flash:generateContent")


@check
def gemini_refuses_a_wrong_key():
    # Its client has one class for all that is the caller's fault.
    error = raised(genai_errors.ClientError, lambda: gemini_ask(gemini_client("wrong")))
    equal((error.code, error.status), (400, "INVALID_ARGUMENT"))
    equal(error.details["error"]["details"][0]["reason"], "API_KEY_INVALID")


@check
def gemini_limits():
    script(status=429)
    error = raised(genai_errors.ClientError, lambda: gemini_ask(gemini_client()))
    equal((error.code, error.status), (429, "RESOURCE_EXHAUSTED"))


@check
def gemini_fails():
    script(status=500)
    error = raised(genai_errors.ServerError, lambda: gemini_ask(gemini_client()))
    equal((error.code, error.status), (500, "INTERNAL"))


@check
def gemini_is_slow():
    script(hold="end")
    slow = gemini_client(milliseconds=int(PATIENCE * 1000))
    raised(httpx2.TimeoutException, lambda: gemini_ask(slow))


# Ollama


def ollama_client(key=KEY, seconds=10):
    return ollama.Client(host=URL, timeout=seconds, trust_env=False, headers={"Authorization": f"Bearer {key}"})


def ollama_ask(client):
    messages = [{"role": "user", "content": QUESTION}]
    return client.chat(model="llama3", messages=messages, options={"temperature": 0, "num_predict": 99})


@check
def ollama_answers():
    script(text=ANSWER)
    reply = ollama_ask(ollama_client())
    equal(reply.message.content, ANSWER)
    equal((reply.done, reply.done_reason), (True, "stop"))
    equal((reply.prompt_eval_count, reply.eval_count), (READ, WRITTEN))


@check
def ollama_refuses_a_wrong_key():
    error = raised(ollama.ResponseError, lambda: ollama_ask(ollama_client("wrong")))
    equal((error.status_code, error.error), (401, "unauthorized"))


@check
def ollama_limits():
    script(status=429)
    equal(raised(ollama.ResponseError, lambda: ollama_ask(ollama_client())).status_code, 429)


@check
def ollama_fails():
    script(status=500, text="broken")
    error = raised(ollama.ResponseError, lambda: ollama_ask(ollama_client()))
    equal((error.status_code, error.error), (500, "broken"))


@check
def ollama_is_slow():
    script(hold="end")
    raised(httpx.TimeoutException, lambda: ollama_ask(ollama_client(seconds=PATIENCE)))


def main():
    failed = 0
    for function in checks:
        control("DELETE", "/control")
        try:
            function()
            print(f"ok {function.__name__}")
        except Exception:
            failed += 1
            print(f"FAILED {function.__name__}")
            traceback.print_exc(file=sys.stdout)
    print(f"{len(checks) - failed} of {len(checks)} passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
