"""What leaves this machine for whoever watches many: traces to OpenTelemetry, errors to Sentry.

Off until an address is set, and not imported before. Neither says what a memory, a trace or a request holds, nor
any token: what is sent is put together from a short list of fields, instead of taken whole and cleaned.
"""
