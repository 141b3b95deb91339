"""English phrases that take over the assistant: other instructions, another role, no limits, another speaker.

Each rule is a way of talking, not a known prompt: verbs, pointers and objects within a bounded distance.
"""

from __future__ import annotations

from .rules import rule

_GAP = r"\W+(?:\w+\W+){0,4}?"
_IGNORE = r"""(?:ignor(?:e|es|ing)|disregard(?:s|ing)?|forget(?:ting)?|neglect|overrid(?:e|ing)|bypass
        (?:ing)?|discard|dismiss|abandon|set\ aside|pay\ no\ attention\ to|(?:do\ not|don't|stop
        |no\ longer|never|not)\ (?:follow(?:ing)?|obey(?:ing)?|listen(?:ing)?\ to|adher(?:e|ing)\ to
        |bound\ by|abide\ by))"""
_POINTER = r"""(?:all|any|every|previous|prior|above|earlier|preceding|your|these|those|foregoing|initial
        |original|existing|former|other|openai'?s?|operator'?s?|developer'?s?|system)"""
_ORDERS = r"""(?:instructions?|directives?|prompts?|guidelines?|polic(?:y|ies)|programming|training|rules?
        |orders|system\ messages?|commands|constraints|restrictions|safeguards|safety\ \w+|inputs?)"""
_ANY = r"(?:\w+\ ){0,3}?"

RULES = (
    rule(
        "ignore_instructions",
        "ignor|disregard|forget|neglect|overrid|bypass|discard|dismiss|abandon|set aside|attention to"
        "|follow|obey|listen|adher|abide|bound by",
        rf"\b{_IGNORE}{_GAP}{_POINTER}\b{_GAP}{_ORDERS}\b",
    ),
    rule(
        "ignore_instructions",
        "ignor|disregard|forget|skip the user",
        r"""\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget)\W+(?:(?:all|of|the|everything|anything|any|about
            |what|whatever)\W+){0,4}(?:above|before\ this|(?:previous|prior|preceding)(?=\W*(?:$
            |[.,:;!\]]|and\b|text|content|conversation))|you(?:'ve|\ have|\ were|\ had|\ are)?[ ]
            (?:been\ )?(?:told|learned|learnt|know|instructed|taught))\b(?!\ (?:warning|error|typo|message
            |email|step|example|line)s?\b)
        | \b(?:ignore|skip|disregard)\ the\ user(?:'s\ (?:\w+\ )?(?:questions?|requests?|instructions?
            |orders?)|\ and)\b""",
    ),
    rule(
        "ignore_content",
        "ignore the|disregard the|ignore this",
        r"""\b(?:ignore|disregard)\ (?:the|this)\ (?:web\ ?page|page|resume|paper|function|table|article
            |document|email|user|code|text)\b(?:'s)?(?:\ \w+){0,2}[\ ,]+(?:and|but|instead|then)\b""",
    ),
    rule(
        "new_instructions",
        "instruction|directive|new task|real task|new goal|request instead|new role|new objective",
        r"""\b(?:your|the|these\ are\ (?:your|the))\ (?:new|only|real|actual|true|updated|next)[ ]
            (?:instruction|directive|task|goal|role|objective|order)s?
        | (?:^|\n)\W{0,4}new\ instructions?\b
        | \b(?:adhere\ to|comply\ with|follow|obey|execute)\ (?:only\ )?(?:the|these|this|my)[ ]
            (?:following|new|next|below|custom)\ (?:instruction|request|order|command|rule|directive)s?
        | \b(?:follow|do|execute|obey)\W+(?:exactly\W+)?(?:what|the\ instructions?)\W+(?:it\ says|inside
            |in\ it|says) | \bupdated?\ instructions?\ (?:for|to)\ (?:the\ )?(?:assistant|ai|agent)""",
    ),
    rule(
        "persona",
        "you are now|you're now|act as|acting as|act just|pretend|roleplay|role of|role-play|simulat"
        "|you will be|you are going to|you are no longer|in character|you are about to|behave as"
        "|respond as",
        r"""\byou(?:\ are|'re)\ (?:now|going\ to\ (?:act|be|pretend|play|respond)|no\ longer
            |about\ to\ immerse) | \b(?:immerse\ yourself|you're|you\ are)\ (?:in|into)\ the\ role\ of
        | \b(?:act|acting|respond|behave)\ (?:just\ |exactly\ )?(?:as|like)\ (?:an?\ |the\ )?(?:dan|evil
            |unfiltered|unrestricted|amoral|jailbroken|\w{1,12}gpt|if\ you\ (?:have|had)\ no)
        | \b(?:stay|remain|be)\ in\ character | \bbreaks?\ (?:of\ )?character
        | \bpretend\ (?:to\ be|you\ are|you're)\ (?:dan|an?\ (?:ai|evil|unfiltered|unrestricted|amoral)\b)
        | \byou\ will\ (?:now\ )?(?:simulate|roleplay) | \bnow\ roleplaying""",
    ),
    rule(
        "do_anything_now",
        "anything now| dan |[dan]|dan mode|jailbr|god mode|dan.|dan,|anything you want",
        r"""do[\ -]anything[\ -]now | (?<![\w-])\[?dan\]?(?:\ mode|\ (?:will|can|has|does|would)\b|\ =)
        | \bjailbr(?:eak|oken)\b(?!\ (?:detect|attack|attempt|dataset|evaluation|prompt|pattern|guide
            |defen|success|probe|test|score))(?!-) | <?god\ mode> | \bcan\ do\ anything\ (?:now|you\ want)""",
    ),
    rule(
        "no_limits",
        "filter|polic|rules|censor|guideline|moral|ethic|refuse|remorse|unrestricted|unlimited|norms"
        "|laws|confines|matrix|never|no matter",
        rf"""\b(?:have|has|had|with|are|is|be|answers?)\ (?:absolutely\ |zero\ |completely\ )?(?:no|zero
            |without(?:\ any)?)\ (?:\w+\ (?:or\ |and\ )?)?(?:content\ polic\w+|polic(?:y|ies)|filters?
            |rules|censorship|guidelines|moral\w*|ethic\w*|remorse)\b
        | \b(?:ai|assistant|model|(?:chat)?bot)\ (?:that\ is\ )?with(?:out)?\ (?:any|no)\ (?:\w+\ (?:or[ ]
            |and\ )?)?(?:rules|guidelines|polic(?:y|ies)|filters?|ethics|morals)\b
        | \bwithout\ (?:any\ )?(?:\w+\ )?(?:remorse|moral\w*|ethics|ethical\w*)\b
        | \b(?:unfiltered|uncensored|amoral|unrestricted|unlimited|unethical)\ (?:and\ \w+\ )?(?:\w+\ )?
            (?:ai|chat\ ?bot|assistant|responses?|answers?|language\ model|being|version)\b
        | \b(?:does\ not|doesn't|do\ not|don't|no\ longer|never|not)\ (?:have\ to\ |required\ to\ )?
            (?:abide\ by|follow|care\ (?:about|for)|bound\ by|adhere\ to|comply\ with)\ (?:any[ ]
            |the\ )?{_ANY}(?:rules|ethic\w*|moral\w*|laws?|polic\w+|guidelines|restrictions|norms)
        | \b(?:broken|freed|break|escaped)\ (?:free\ )?(?:of|from)\ (?:the\ |all\ )?(?:typical\ |usual\ )?
            (?:confines|rules|restrictions|ethics|matrix)
        | \b(?:will|must|can|should)\ never\ (?:refuse|say\ no|tell\ \w+\ that) | \bnever\ refuses?\b
        | \bno\ matter\ how\ (?:\w+,?\ (?:or\ |and\ )?){{0,3}}?(?:immoral|unethical|illegal|dangerous
            |reckless|harmful|offensive|inhumane)""",
    ),
    rule(
        "without_limits",
        "restrict|limit|filter|constraint|censorship",
        r"""\b(?:without|no|zero)\ (?:any\ |content\ |output\ )?(?:restrictions?|limits?|limitations?
            |filters?|censorship)\b | \bcompletely\ unlimited\b
        | \bfree\ (?:of|from)\ (?:all|any)\ (?:restrictions|limits|constraints)""",
    ),
    rule(
        "developer_mode",
        " mode|mode>|mode_",
        r"""\b(?:developer|debug|admin|maintenance|override|system|unrestricted|opposite|sudo|root|god
            |law\ enforcement|diagnostic|knowledge\ verification)[\ _]+(?:override\ )?mode\b(?:\s*(?:>
            |activated|engaged)|\W+in\ \w+\ mode)
        | \b(?:enter(?:ing)?|activate|simulate|now\ in)\ (?:an?\ |the\ )?['"]?(?:\w+\ ){0,2}(?:developer
            |debug|maintenance|override|unrestricted|verification|admin)\ mode
        | \b(?:enable[ds]?|with)\ (?:\w+\ ){0,2}developer\ mode
        | \bdeveloper\ mode\ (?:enabled|output|response)""",
    ),
    rule(
        "safety_off",
        "safety|protocol|policy|policies|filters|your rules|safeguard|restrictions|answer ",
        r"""\b(?:safety|security|content)\ (?:protocols?|rules?|checks?|filters?|polic(?:y|ies)
            |guidelines?)\ (?:are\ |is\ |have\ been\ |now\ )?(?:disabled|off|lifted|suspended|removed|void
            |inactive)
        | (?<!not\ to\ )\b(?:ignor(?:e|ing)|disregard|disabl(?:e|ing)|bypass(?:ing)?|turn\ off)\ (?:all[ ]
            |any\ |the\ |your\ |its\ )?(?:safety|content|openai'?s?)\ (?:rules?|polic\w+|filters?
            |guidelines?|protocols?|measures|content\ polic\w+)
        | \b(?:safety|security|content|ethical)\ (?:rules?|polic\w+|filters?|guidelines?|checks?)\ (?:do
            (?:es)?\ not|don't|doesn't|no\ longer)\ apply | \byour\ rules\ have\ changed
        | \b(?:all|any)\ restrictions\ (?:are\ )?(?:lifted|removed)
        | \banswer\ (?:anything|everything|freely)\b""",
    ),
    rule(
        "must_comply",
        "must |have to ",
        r"""\b(?:you|and|assistant|it)\ (?:must|have\ to)\ (?:now\ |always\ )?(?:comply|obey|answer\ all
            |listen\ to\ my|do\ (?:exactly\ )?(?:as|what)\ i|do\ everything|submit|accept\ any)\b""",
    ),
    rule(
        "claims_authority",
        "i am |i'm |as your |as a |as an ai|as the |authorized|authorised",
        r"""\b(?:i\ am|i'm)\ (?:actually\ )?(?:your\ (?:\w+\ )?(?:developer|creator|administrator|admin
            |programmer|owner|boss)|an?\ (?:developer|engineer|administrator)\ (?:running|doing|performing
            |conducting|with\ full)|a\ police\ officer|the\ president|an?\ (?:security\ )?auditor
            |an?\ engineer\ at\ openai)\b | \b(?:i\ am|i'm)\ god\b
        | \bas\ (?:your|the)\ (?:creator|boss|developer|administrator|owner|supervisor)\b
        | \bas\ an\ ai\ developed\ by\b
        | \b(?:is|are|been|clearly|has)\ (?:fully\ |clearly\ |pre-?)?authori[sz]ed\ (?:full|to\ (?:access
            |bypass|receive))
        | \bas\ an?\ (?:cyber\ ?security|security)\ (?:expert|auditor|researcher)\b""",
    ),
    rule(
        "addresses_ai",
        "assistant|ai agent|ai system|language model|chatgpt|gpt-|llm|to you, |ai model|.name}",
        r"""\b(?:ai|the)\ assistants?\ (?:reading|processing|must|:)
        | \b(?:to|for|attention|dear|any)\ (?:the\ |any\ |all\ )?(?:(?:ai|llm|language\ model)\ )?
            (?:assistant|agent|ai\ (?:system|agent|assistant|model)|language\ model)s?\b\s*(?::|reading
            |processing|,\ (?:please|you|ignore|do))
        | \bto\ you,\ (?:gpt|claude|gemini|llama|the\ ai|ai|assistant) | \bai\ agents\ \w+ing
        | \bif\ you\ are\ an?\ (?:ai|llm|language\ model|assistant)
        | \b(?:hello|hi|hey|greetings),?\ (?:chatgpt|gpt|\{?\w+\.name\}?)
        | \b(?:dear|attention,?|hello,?)\ (?:ai|assistant|agent)\b
        | \b(?:notice|notes?|messages?|instructions?)\ (?:to|for)\ (?:the\ |any\ |all\ )?(?:ai|llm
            |language\ model)s?\b | \byou\ are\ hereby\ instructed""",
    ),
    rule(
        "openai_talk",
        "openai|chatgpt",
        r"""\b(?:openai|chatgpt)(?:'s)?\b[^.\n]{0,40}?\b(?:polic\w+|rules|instructions|guidelines|normally
            |original|opposite|restrictions)\b | \bset\ (?:for\ them\ )?by\ openai\b""",
    ),
    rule(
        "system_mimicry",
        "system|assistant:|assistant :|[inst]|im_start|user input|important message|admin:|developer:"
        "|information>|sys>|end of",
        r"""(?:^|[\n.!?>\]"']\s{0,4}|\s{2})[\[<#*\s]{0,6}(?:system|admin(?:istrator)?|developer|root)
            (?:[\ _]+(?:note|notice|message|prompt|update|alert|override|instruction|mode)s?)?(?:\ (?:to
            |for)\ (?:the\ )?(?:assistant|ai|agent|model))?\s{0,2}[\]>]?\s{0,2}:\s
        | <\|?(?:im_start|im_end|system|endoftext|eot_id|start_header_id)\|?> | \[/?(?:inst|system)\]
        | <<sys>> | </?system(?:[\ _](?:mode|prompt|message)[^>\n]{0,20})?>
        | (?:^|\n)\s{0,3}(?:assistant|human|ai)\s?:\s | \bend\ of\ (?:user\ )?(?:input|prompt)\b
        | \bthis\ is\ an\ important\ message\ from\b | <information>
        | \bimportant\ system\ (?:update|message|notice) | \*\*\ ?system\ i""",
    ),
    rule(
        "shouting",
        "!!!|important|override:|stop.|stop everything",
        r"""\bimportant!!+ | \bimportant\ (?:for|to)\ (?:the\ )?(?:assistant|ai|agent) | ^\W{0,3}override:
        | ^\W{0,3}stop(?:\ everything)?\b[.!]""",
    ),
    rule(
        "hypothetical",
        "imagine|pretend|suppose|hypothetical|in a |in this |in that |fictional|let's |for the purpose"
        "|testing purposes",
        r"""\b(?:imagine\ (?:we|that\ we|you)(?:'re|\ are|\ were)|suppose\ (?:we|that\ we)|hypothetical
            (?:ly)?|in\ a\ (?:parallel|fictional|dystopian)\ \w+|in\ (?:a|this)\ world\ where|in\ (?:this
            |that)\ (?:future|world|scenario|forest|society|universe)|let's\ (?:say|assume|imagine
            |pretend)|for\ the\ purpose\ of\ this\ exercise|just\ for\ testing\ purposes|fictional[ ]
            (?:character|story|ai)\w*)""",
    ),
    rule(
        "talks_about_attacks",
        "injection|jailbreak|poisoning|red team|red-team|attack|untrusted",
        r"""\b(?:(?:indirect|direct|textual|visual)\ )?prompt[\ -]injections?\b
        | \bjailbreak\ (?:detect|attack|attempt|dataset|evaluation|prompt|pattern|guide|defen|probe)\w*
        | \b(?:memory|data)\ poisoning\b | \bred[\ -]team\w*
        | \b(?:attack|adversarial)\ (?:techniques?|vectors?|surface|patterns?|prompts?|attacks?)\b
        | \bdetects?\b[^.\n]{0,40}\battacks?\b | \buntrusted\b | \b(?:an?|the)\ attackers?\b""",
    ),
)
