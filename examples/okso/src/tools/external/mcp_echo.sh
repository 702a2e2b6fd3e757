#!/bin/sh
# Reference endpoint of the MCP shape of okso: one JSON request on standard input, one JSON value on standard output.
# It has one tool, `echo_external`, which returns its argument. It needs Python, for JSON.
exec python3 -I -c '
import json
import sys

DESCRIPTOR = {
    "name": "echo_external",
    "description": "Returns the message that it gets.",
    "command": "echo_external MESSAGE",
    "origin": "remote",
    "safety": "Reads and changes nothing.",
    "input_schema": {
        "type": "object",
        "properties": {"message": {"type": "string", "description": "The message to return."}},
        "required": ["message"],
        "additionalProperties": False,
    },
    "result_schema": {
        "type": "object",
        "properties": {"echo": {"type": "string"}},
        "required": ["echo"],
    },
}


class Refused(Exception):
    pass


def answer(request):
    if not isinstance(request, dict):
        raise Refused("the request is no JSON object")
    action = request.get("action")
    if action == "list_tools":
        return {"type": "result", "tools": [DESCRIPTOR]}
    if action not in ("describe_tool", "call_tool"):
        raise Refused("unknown action: there are list_tools, describe_tool and call_tool")
    if request.get("tool") != DESCRIPTOR["name"]:
        raise Refused("unknown tool: there is echo_external")
    if action == "describe_tool":
        return {"type": "result", "tool": DESCRIPTOR}
    arguments = request.get("arguments")
    if not isinstance(arguments, dict) or not isinstance(arguments.get("message"), str):
        raise Refused("the argument message must be a text")
    return {"type": "result", "tool": DESCRIPTOR["name"], "result": {"echo": arguments["message"]}}


def failure(category, message):
    return {"type": "error", "error": {"name": "mcp_echo", "category": category, "message": message}}


try:
    reply = answer(json.load(sys.stdin))
except (Refused, ValueError) as error:
    reply = failure("usage", str(error))
except Exception as error:
    reply = failure("fatal", f"{type(error).__name__}: {error}")
print(json.dumps(reply, ensure_ascii=False))
'
