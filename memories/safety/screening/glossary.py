"""What each signal means, as a person reads it on the quarantine page: "It …"."""

from __future__ import annotations

MEANING = {
    # Another will
    "ignore_instructions": "tells the assistant to ignore its instructions",
    "ignore_content": "tells the assistant to ignore the content and do something else",
    "new_instructions": "announces new instructions",
    "persona": "gives the assistant another role",
    "do_anything_now": "uses a known jailbreak role",
    "no_limits": "says that rules and ethics do not apply",
    "without_limits": "speaks of having no restrictions",
    "developer_mode": "switches on a special mode",
    "safety_off": "declares safety rules off",
    "must_comply": "demands obedience",
    "claims_authority": "claims an authority",
    "hypothetical": "builds a hypothetical frame",
    "openai_talk": "argues about a vendor's rules",
    # Another speaker
    "addresses_ai": "speaks to the assistant that reads it",
    "system_mimicry": "imitates a system message or a chat role",
    "shouting": "shouts for attention",
    "names_system_prompt": "names the system prompt",
    # Giving away
    "asks_for_secret": "asks for a password, key or other secret",
    "asks_for_personal_data": "asks for someone's personal data",
    "prompt_leak": "asks for the system prompt or its instructions",
    "send_out": "has something sent to an outside address",
    "bulk_data": "reaches for all data of a kind",
    "data_to_outside_service": "sends collected data to an outside service",
    "reads_credentials": "reads credential files",
    "verse_about_secret": "wraps a secret into a verse",
    "overt_crime": "speaks openly of stealing or backdoors",
    # Acting
    "acts_on_my_things": "has someone's account or data acted upon",
    "please_act": "asks the reader to act",
    "todo_for_reader": "leaves a task for the reader",
    "tool_steering": "steers which tool is called",
    "before_anything": "puts itself before the answer",
    "runs_remote_code": "runs code fetched from elsewhere",
    "privilege": "takes higher privileges",
    "skips_checks": "skips checks, reviews or logging",
    # Lasting
    "from_now_on": "sets a rule for all later answers",
    "always_say": "dictates what is always said",
    "remember_this": "asks to be remembered",
    "supersedes": "claims to supersede what was known",
    "secrecy": "asks to keep it from the user",
    # The answer
    "dictates_answer": "dictates words of the answer",
    "steers_the_answer": "changes how the answer is written",
    # Hiding
    "encoded_order": "hides an order in an encoding",
    "asks_to_decode": "asks to decode and obey",
    "payload_splitting": "splits an order into pieces",
    "zero_width": "hides invisible characters inside words",
    "bidi_override": "reverses the reading direction",
    "tag_characters": "hides text in invisible tag characters",
    "variation_selectors": "hides data in variation selectors",
    "mixed_scripts": "mixes alphabets inside words",
    "html_comment": "holds a sentence in an HTML comment",
    "hiding_style": "hides text by its style",
    "repetition": "repeats a word many times",
    "open_question_list": "is a list of answered questions that ends in an open one",
    # Combinations
    "please_act_on_my_things": "asks the reader to act on someone's account or data",
    "secret_in_a_story": "asks for a secret inside a story",
    # What speaks against an attack
    "talks_about_attacks": "talks about attacks",
    "quoted": "quotes",
    "quoted_in_discussion": "quotes an attack while talking about attacks",
}
