"""The fixture's tools and prompt that ask the client something before they answer (2026-07-28)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mcp_types as types
from django.core import signing

from hindsight_site.mcp.errors import invalid_params

Params = Mapping[str, Any]
Result = types.CallToolResult | types.InputRequiredResult
PROMPT = "test_input_required_result_prompt"
CAPABILITY = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
ROOTS = {"method": "roots/list", "params": {}}


def capabilities(params: Params) -> Mapping[str, Any]:
    return (params.get("_meta") or {}).get(types.CLIENT_CAPABILITIES_META_KEY) or {}


def form(message: str, field: str, kind: str = "string") -> dict[str, Any]:
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sample(words: str, tokens: int) -> dict[str, Any]:
    said = {"role": "user", "content": {"type": "text", "text": words}}
    return {"method": "sampling/createMessage", "params": {"messages": [said], "maxTokens": tokens}}


def ask(questions: Mapping[str, Any], state: Any = None) -> types.InputRequiredResult:
    return types.InputRequiredResult.model_validate(
        {"inputRequests": questions, "requestState": None if state is None else signing.dumps(state)}
    )


def state_of(params: Params) -> Any:
    """What an earlier round signed; None for a first round. Raises `Fault` when it is not as we signed it."""
    try:
        return signing.loads(params["requestState"]) if params.get("requestState") else None
    except signing.BadSignature:
        raise invalid_params("requestState is not as it was handed out.") from None


def accepted(params: Params, key: str, field: str) -> Any:
    """What a person put into the field of a form; None when the answer is missing or of another form."""
    answer = (params.get("inputResponses") or {}).get(key)
    content = answer.get("content") if isinstance(answer, Mapping) and answer.get("action") == "accept" else None
    return content.get(field) if isinstance(content, Mapping) else None


def done(words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=words)])


def elicitation(params: Params) -> Result:
    name = accepted(params, "user_name", "name")
    return done(f"Hello, {name}!") if name else ask({"user_name": form("What is your name?", "name")})


def sampling(params: Params) -> Result:
    answer = (params.get("inputResponses") or {}).get("capital_question")
    if answer is None:
        return ask({"capital_question": sample("What is the capital of France?", 100)})
    return done(f"The model says: {answer['content']['text']}")


def list_roots(params: Params) -> Result:
    answer = (params.get("inputResponses") or {}).get("client_roots")
    if answer is None:
        return ask({"client_roots": ROOTS})
    return done(f"The roots are {', '.join(root['uri'] for root in answer['roots'])}.")


def request_state(params: Params) -> Result:
    if state_of(params) is None or accepted(params, "confirm", "ok") is None:
        return ask({"confirm": form("Please confirm", "ok", "boolean")}, "confirming")
    return done("state-ok")


def multiple_inputs(params: Params) -> Result:
    questions = {
        "user_name": form("What is your name?", "name"),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": ROOTS,
    }
    if state_of(params) is None or not questions.keys() <= (params.get("inputResponses") or {}).keys():
        return ask(questions, "asking three")
    return done(f"All three are there, {accepted(params, 'user_name', 'name')}.")


def multi_round(params: Params) -> Result:
    state = state_of(params)
    if state is None:
        return ask({"step1": form("Step 1: What is your name?", "name")}, {})
    if "name" not in state:
        name = accepted(params, "step1", "name")
        return ask({"step2": form("Step 2: What is your favorite color?", "color")}, {"name": name})
    return done(f"{state['name']} likes {accepted(params, 'step2', 'color')}.")


def of_what_is_offered(params: Params) -> Result:
    """Asks only what the client says that it can answer."""
    questions = {"name": form("What is your name?", "name"), "greeting": sample("Greet", 50), "roots": ROOTS}
    offered = capabilities(params)
    wanted = {key: one for key, one in questions.items() if CAPABILITY[one["method"]] in offered}
    if not wanted or params.get("inputResponses"):
        return done("There is nothing to ask.")
    return ask(wanted)


def prompt(params: Params) -> types.GetPromptResult | types.InputRequiredResult:
    context = accepted(params, "user_context", "context")
    if context is None:
        return ask({"user_context": form("What context should the prompt use?", "context")})
    said = types.TextContent(text=f"Use this context: {context}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=said)])


TOOLS: dict[str, Callable[[Params], Result]] = {
    "test_input_required_result_elicitation": elicitation,
    "test_input_required_result_sampling": sampling,
    "test_input_required_result_list_roots": list_roots,
    "test_input_required_result_request_state": request_state,
    "test_input_required_result_multiple_inputs": multiple_inputs,
    "test_input_required_result_multi_round": multi_round,
    "test_input_required_result_tampered_state": request_state,
    "test_input_required_result_capabilities": of_what_is_offered,
    "test_streaming_elicitation": elicitation,
}
