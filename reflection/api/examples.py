"""What the API reference shows for traces: calls that work as they stand."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample

CALL = {
    "at": "2026-03-31T09:00:05Z",
    "role": "assistant",
    "kind": "tool_call",
    "tool": "export",
    "arguments": {"month": "March", "format": "csv"},
}
REFUSAL = {
    "at": "2026-03-31T09:00:06Z",
    "role": "tool",
    "kind": "tool_result",
    "tool": "export",
    "content": "Error: month must be given as YYYY-MM, got 'March'",
    "is_error": True,
}
MENDED = {**CALL, "at": "2026-03-31T09:00:09Z", "arguments": {"month": "2026-03", "format": "csv"}}
RESULT = {
    "at": "2026-03-31T09:00:11Z",
    "role": "tool",
    "kind": "tool_result",
    "tool": "export",
    "content": '{"rows": 412, "file": "invoices.csv"}',
}

WHOLE = OpenApiExample(
    "A whole task",
    request_only=True,
    value={
        "task": "Export the March invoices as CSV",
        "task_type": "export",
        "session_id": "run-2026-03-31",
        "environment": {"os": "linux"},
        "steps": [{"role": "user", "content": "Export the March invoices as CSV."}, CALL, REFUSAL, MENDED, RESULT],
        "outcome": "succeeded",
        "result": "412 invoices in invoices.csv",
    },
)
BEGUN = OpenApiExample("Begun, to be extended", request_only=True, value={"task": "Export the March invoices as CSV"})
RECORDED = OpenApiExample(
    "A reflection is queued",
    response_only=True,
    status_codes=["201"],
    value={
        "id": "0199a3b2-6f0e-7c55-9a41-3f2b7d1c9e10",
        "status": "succeeded",
        "reflection": {
            "id": "0199a3b2-7a44-7d12-b3c8-55e0c2f4a901",
            "status": "queued",
            "reason": "an error that was overcome",
        },
    },
)
MORE = OpenApiExample("Two steps", request_only=True, value={"steps": [MENDED, RESULT], "sequence": 3})
