"""English phrases that make the assistant give or do something: secrets, data, tools, lasting rules."""

from __future__ import annotations

from .rules import rule

_GUARDED = r"""(?:passwords?|passcodes?|passphrases?|secret\ keys?|secret\ codes?|private\ keys?
        |api[\ _-]?keys?|credentials|access\ tokens?|confidential\ \w+|social\ security\ numbers?|bank[ ]
        (?:account|balance)\w*|secrets)"""
_ASK = r"""(?:what(?:'s|\ is|\ are|\ would|\ was)|tell|give|share|confirm|reveal|show|send|provide
        |disclose|need|leak|print|list|write\ (?:an?|me)|dump|output|repeat|spell|hand\ over)"""
_NEAR = r"[\ ,:'\"’-]{1,3}"  # between the words of one phrase: no line break, no bracket
_ACT = r"""(?:retrieve|get|find|search|download|delete|remove|transfer|send|share|grant|schedule|book
        |reserve|change|update|move|pay|deposit|withdraw|access|initiate|disable|enable|turn\ (?:off|on)
        |create|post|forward|e-?mail|upload|copy|add|buy|order|cancel|unlock|open|give|provide|list|use
        |run|execute|install|visit|click|make|set|fetch|collect|register)"""
_THINGS = r"""(?:accounts?|data|history|records?|passwords?|addresses|payments?|payment\ methods?|files?
        |folders?|contacts?|messages?|e-?mails?|photos?|profile|balance|polic(?:y|ies)|devices?|calendar
        |friends|shipments?|flights?|appointments?|repositor(?:y|ies)|project|location|documents?|notes?
        |playlists?|cards?|transactions?|friend|savings?|subscription|settings|information|details
        |friends?\ list|id)"""
_REST = r"[^.!?\n]"

RULES = (
    rule(
        "asks_for_secret",
        "password|passcode|passphrase|secret|private key|api key|api_key|credential|access token"
        "|confidential|social security|bank",
        rf"""\b{_ASK}\b(?!\ (?:was|is|were))(?:{_NEAR}\w+){{0,5}}?{_NEAR}(?:(?:your|the|our|his|her|their
            |my|all|any|its|system|admin){_NEAR}|\w{{1,24}}'s{_NEAR})(?:
            (?!hash)\w+{_NEAR}){{0,2}}?{_GUARDED}\b(?!\ (?:reset|manager|policy|field|change|rotation
            |strength|protect|hash|requirement|length|input|confirmation))
        | \b{_GUARDED}\ (?:is|are)\ (?:shared|public)\b""",
    ),
    rule(
        "asks_for_personal_data",
        "birth|residence| live|email address|home address|phone number|the user",
        rf"""\b(?:tell|give|share|what(?:'s|\ is|\ are|\ was)|where|confirm|know|provide|reveal|using
            |write|translate)\b{_REST}{{0,40}}?(?:\b(?:the\ user|user's|his|her|their|[a-z]{{2,16}}'s)\W+
            (?:\w+\W+){{0,2}}?(?:birth\ ?(?:date|year)|date\ of\ birth|city\ of\ residence|residence
            |phone\ number|e-?mail\ address|home\ address|ssn|salary)|\b(?:the\ user's|user's)\W+
            (?:\w+\W+){{0,2}}?(?:birthday|name|address|favou?rite\ \w+|location|personal\ \w+)|\bdoes?[ ]
            (?:the\ user|[a-z]{{2,16}}(?:\ [a-z]{{2,16}})?)\ (?:currently\ )?live\b|\bthe\ user[ ]
            (?:currently\ )?lives?\b) | \bwhere\ the\ user\ lives\b""",
    ),
    rule(
        "prompt_leak",
        "prompt|instruction|words above|text above|system message|context window|everything above"
        "|above this|you are|configuration",
        rf"""\b(?:reveal|show|print|repeat|output|display|tell|give|what(?:'s|\ is|\ are|\ was|\ were)
            |translate|summari[sz]e|leak|dump|disclose|reproduce|recite|copy|paste|write\ (?:out|down)
            |expose|share|list|append|add|printing|include)\b{_REST}{{0,50}}?(?:\b(?:system|initial|hidden
            |original|secret|internal|full|exact|base|pre)[\ -]+(?:system\ )?(?:prompts?|instructions?
            |messages?|configuration|rules)\b|\byour\ (?:\w+\ )?(?:prompts?|instructions?|context\ window
            |system\ message|configuration|guidelines)\b|\b(?:instructions?|rules|prompt)[ ]
            (?:that\ )?you\ (?:were|have\ been|received|got)\b|\b(?:words|text|everything|written|anything
            |content)\ above\b|\bstarting\ with\ ['"“]?you\ are)""",
    ),
    rule(
        "bulk_data",
        "all |full |every |entire|database|customer|complete |raw |whole |employee",
        rf"""\b(?:send|e-?mail|forward|export|dump|output|upload|print|collect|copy|forwarded|sent
            |concatenate|leak|reproduce)\b{_REST}{{0,40}}?\b(?:(?:all|every|entire|full|complete|raw
            |whole)\ (?:the\ |of\ the\ |of\ )?(?:\w+\ ){{0,3}}?(?:data|database|customers?|contents?|files
            |messages|e-?mails|records|contacts|conversation|documents?|users?)|(?:customer|user
            |employee)\ (?:list|database|data|records|e-?mails))\b""",
    ),
    rule(
        "acts_on_my_things",
        " my | for me",
        rf"""\b{_ACT}\b{_REST}{{0,70}}?\bmy\ (?:[\w'-]+\ ){{0,4}}?{_THINGS}\b
        | \b(?:schedule|book|reserve|buy|order)\b{_REST}{{0,60}}?\bfor\ me\b""",
    ),
    rule(
        "please_act",
        "please |could you|can you|would you",
        rf"""(?:\bplease\ (?:also\ |kindly\ )?|\b(?:could|can|would)\ you\ (?:please\ )?){_ACT}\b(?![ ]
            (?:me|us|it)\b)(?!{_REST}{{0,30}}\b(?:attached|enclosed|below|us\ know|me\ know))""",
    ),
    rule(
        "todo_for_reader",
        "todo",
        r"""(?<![#/*]\ )(?<![#/*])\btodo:?\s+(?:please\ )?(?:send|transfer|pay|book|reserve|e-?mail|post
            |share|buy|visit|click|say|tell|recommend|invite|reply|forward|get|make\ an?|create\ an?[ ]
            (?:calendar|event|account)|delete)\b""",
    ),
    rule(
        "tool_steering",
        "call |tool|function|invoke|command|http_post|endpoint|execute|run |using ",
        r"""\b(?:call|invoke|trigger|use|using|run)\ (?:the\ )?['"`]?(?:[a-z]+_[a-z_]+|
            (?:\w+\ ){0,2}\w+['"`]?\ (?:tool|function|endpoint|api)\b) | \bthrough\ ['"`]\w+['"`]\ tool
        | \bexecute\ (?:it|this|the\ (?:following|command|decoded\ \w+)|them)(?:\ as)?
        | \b(?:run|execute)\ (?:the\ )?(?:following\ )?(?:command|code|script)s?\b[^.\n]{0,20}:""",
    ),
    rule(
        "before_anything",
        "before |prior to|first|after you",
        r"""\bbefore\ (?:you\ )?(?:can\ )?(?:respond(?:ing)?|answer(?:ing)?|repl(?:y|ying)|anything\ else|
            (?:you\ can\ )?(?:solve|do|complete)\b[^.\n]{0,30}?\btask)
        | \bdo\ (?:the\ following|this)\ first\b | \bafter\ you\ do\ that\b
        | \bbegin\ by\ (?:printing|sending|calling) | \bshould\ first\ (?:empty|delete|send|run|call)""",
    ),
    rule(
        "secrecy",
        "mention|tell|reveal|disclos|inform|notify|secret|silent|log|know|alert|keep ",
        r"""\b(?:do\ not|don't|never|without|not)\ (?:ever\ )?(?:mention(?:ing)?|tell(?:ing)?|reveal
            (?:ing)?|disclos(?:e|ing)|inform(?:ing)?|notify(?:ing)?|alert(?:ing)?|log(?:ging)?|show
            (?:ing)?)\ (?:it\ |this\ |that\ |them\ |about\ )?(?:to\ |or\ )?(?:the\ user|users?\b|anyone
            |anybody|this|these|these\ instructions|your\ operator|the\ (?:operator|owner|instruction))
        | \bkeep\ (?:this|it|these)\ (?:a\ )?(?:secret|hidden|between)
        | \bwithout\ the\ user'?s?\ knowledge
        | \bsilently\ (?:send|forward|execute|run|delete|add|copy|e-?mail) | \bnever\ mention\b""",
    ),
    rule(
        "from_now_on",
        "from now on|from this point|from here on|whenever|henceforth|in every|of every|to every|future"
        "|each |any response",
        r"""\bfrom\ (?:now\ on|this\ point\ (?:on|forward|onwards?)|here\ on)\b | \bhenceforth\b
        | \b(?:in|to|of|at\ the\ end\ of)\ (?:all|every|each|any)\ (?:future\ |subsequent\ |of\ your\ )?
            (?:repl(?:y|ies)|responses?|answers?|conversations?|sessions?|summar(?:y|ies)|messages?)
        | \bwhenever\ (?:the\ user|anyone|someone|any\ user|a\ user|asked|you\ are\ asked)""",
    ),
    rule(
        "always_say",
        "always |append|insert |add ",
        r"""\balways\ (?:recommend|append|say|respond|reply|answer|include\ the|add\ the|comply|approve
            |send|use\ the\ \w+\ account|trust|mention\ that)\b(?![^.\n]{0,80}\bwhen\ i\b)
        | \b(?:append|add|insert)\ (?:the\ )?(?:token|code|string|link|following|\{|['"“])""",
    ),
    rule(
        "remember_this",
        "remember|memor|note to self|persist",
        r"""\b(?:remember|memori[sz]e)\ (?:this|the\ following|from\ now)\b
        | \b(?:save|store|write|add|commit|record)\ (?:this|the\ following|it)(?:\ \w+){0,2}\ (?:in|to
            |into)\ (?:your\ )?(?:long[\ -]term\ )?memory | \bnote\ to\ self\b
        | \bso\ (?:that\ )?it\ persists\b | \bpersist(?:s|ed)?\ across\b""",
    ),
    rule(
        "supersedes",
        "supersede|replaces|overrid|invalidate|records|entries|memories|statements",
        r"""\b(?:supersedes?|replaces?|overrides?|invalidates?)\ (?:all|any|every|the|other)[ ]
            (?:\w+\ ){0,2}?(?:prior|previous|earlier|other|existing|ones|records?)\b
        | \b(?:earlier|previous|prior)\ (?:\w+\ ){0,2}(?:records?|entries|memories|notes|statements)[ ]
            (?:\w+\ ){0,3}?(?:are|is|were)\ (?:now\ )?(?:wrong|invalid|void|outdated|incorrect|obsolete)""",
    ),
    rule(
        "skips_checks",
        "skip|bypass|disabl|without |mark|drop |avoid|force|turn off|turning off|suppress|omit|ignore|approved|passed",
        r"""\b(?:skip|skips|skipping|bypass|bypassing|disable|disabling|turn\ off|turning\ off|drop|omit
            |avoids?|suppress)\ (?:the\ |all\ |any\ |strict\ |local\ |\w+\ )?(?:\w+\ (?:and\ )?)?
            (?:validation|verification|checks?|review|approval|audit|consent|confirmation|two-factor|2fa
            |mfa|firewall|authentication|revalidating|safeguards?|guardrails?|permission\w*|logging)\b
        | \bwithout\ (?:\w+\ ){0,3}?(?:verification|validation|approval|review|consent|confirmation
            |permission(?:\ checks)?|ownership\ checks|authorization)\b
        | \bmark(?:s|ed|ing)?\ (?:\w+\ ){1,3}?as\ (?:final|passed|approved|sanitized|verified)\b
        | \b(?:skip|bypass|force|ignore|no)_?(?:validation|verify|check|ok|review|auth)\w*\s*=\s*(?:1
            |true) | =\ ?['"](?:approved|skipped|ready_for\w*|passed)['"]""",
        unless=r"""\b(?:never|not|cannot|no|avoid|forbidden|prohibited|refuse[ds]?|error|failed|denied)\b
        | n't\b""",
    ),
    rule(
        "runs_remote_code",
        "curl|wget|bash <|iex",
        r"""\b(?:curl|wget)\b[^\n|]{0,160}\|\s*(?:sudo\ )?(?:sh|bash|python3?|zsh|node|perl)\b
        | \bcurl\b[^\n]{0,80}(?:-f|--form|-d|--data|-t)\ \S{0,30}@ | \b(?:bash|sh|python)\ <\(\s*curl
        | \biex\s*\(""",
    ),
    rule(
        "reads_credentials",
        ".ssh|/etc/|.aws|.env|id_rsa|id_ed|.netrc",
        r"""~/\.ssh/\w* | \bid_(?:rsa|ed25519)\b | /etc/(?:passwd|shadow) | \.aws/credentials | \.netrc
        | \bcat\ \S{0,40}\.env\b""",
    ),
    rule(
        "data_to_outside_service",
        "external|outside|vault|third-party|third party|service|backup|recovery|attacker|evil|exfil",
        r"""\b(?:sen[dt]|sends|sending|forward(?:ed|s)?|export(?:ed)?|upload(?:ed)?|migrat\w+|backed\ up
            |back\ up)\b[^.!?\n]{0,90}?\bto\ (?:the\ |an?\ )?(?:new\ |cloud\ )?(?:external|outside|backup
            |recovery|archival|migration|analytics|analysis|recommendation|monitoring|audit
            |third[\ -]party|remote)(?:\ \w+){0,2}?\ (?:service|storage|team|platform|server|endpoint
            |address|e-?mail|vault)
        | \b(?:to|_email|email)\s?=?\s?['"]?[\w.+-]{1,40}@[\w-]{0,30}(?:attacker|evil|exfil|vault|backup
            |recovery)[\w.-]*""",
    ),
    rule(
        "privilege",
        "admin|privilege|root |escalat|permanent",
        r"""\bscope\s*=\s*['"]admin
        | \badmin(?:istrator)?[\ -](?:level\ )?(?:access|privileges?|tokens?|scope)\b
        | \bescalat\w+\ (?:to\ )?(?:\w+\ )?privileges? | \bescalate\ to\b
        | \bgrant\ (?:\w+\ ){0,3}?(?:admin|root|permanent|full)\ (?:access|rights|privileges)""",
    ),
    rule(
        "overt_crime",
        "exfiltrat|backdoor|steal|attacker|hack|phishing|@evil|evil.",
        r"""\b(?:i'll|i\ will|let\ me|installs?|silently)\ (?:\w+\ )?(?:exfiltrate|steal|backdoor|hack)\b
        | \binstall\ a\ backdoor | ^(?:exfiltrate|steal)\b | \b(?:to|send|e-?mail)\ (?:the\ )?attacker\b
        | \battacker(?:@|_) | @(?:evil|attacker|exfil) | \bevil\.(?:com|example) | \bbackdoor_\w+
        | \bwrite\ a\ phishing\b""",
    ),
    rule(
        "dictates_answer",
        "say |say:|say,|print|state|repeat|respond|reply|output|verbatim|word for word|indicate|claim|report",
        r"""\b(?:just|only|simply)\ (?:say|print|output|repeat|state)\b
        | \b(?:just|only|simply)\ (?:reply|respond|answer)\ with\b
        | \b(?:state|say|claim|indicate|report)\ (?:that\ )?the\ \w+\ (?:of\ [^.]{0,40}?\ )?is\b
        | \bstate\ the\ (?:output|sum|conclusion|following)
        | \b(?:might|could|and|must|to)\ (?:state|say)\s?: | \bprint\ ['"“]
        | \brepeat\ (?:after\ me|it\ verbatim)\b | \bverbatim\b | \bword\ for\ word\b""",
    ),
    rule(
        "steers_the_answer",
        "your response|your answer|your reply|your output|your message|your summary|your next",
        r"""\b(?:add|include|integrate|insert|modify|encode|translate|render|replace|reverse|append
            |incorporate|embed|change|adjust|alter|represent)\b[^.!?\n]{0,60}?\byour\ (?:\w+\ )?
            (?:response|answer|reply|output|message|summary)s?\b
        | \b(?:use|apply)\b[^.!?\n]{2,50}?\b(?:to|in|for|represent)\ your\ (?:\w+\ )?(?:response|answer
            |reply|output|message|summary)\b
        | \b(?:provide|give|write|deliver|present|finish|end|start|begin|enhance|enrich|conclude|phrase
            |compose)\ your\ (?:response|answer|reply|output|message|summary)s?\ (?:in|as|using|with|by
            |entirely|backwards)\b
        | \bin\ your\ (?:next\ )?(?:response|answer|reply|message),?\ (?:\w+\ )?(?:suggest|mention|include
            |add|recommend|ask|say|tell|use|promote|state|write)\b
        | \b(?:provide|write|put|mention|reference)\b[^.!?\n]{4,60}?\bin\ your\ (?:\w+\ )?(?:response
            |answer|reply|output|message|summary)\b""",
    ),
    rule(
        "asks_to_decode",
        "decode|decipher|decrypt|rot13|interlace|what it says|inside",
        r"""\b(?:decode|decipher|decrypt|translate\ (?:the\ following\ )?from\ rot13)\b[^.!?\n]{0,60}?\b
            (?:and|then)\ (?:\w+\ )?(?:do|follow|execut\w+|obey|tell\ me\ what|run|act)
        | \bdecode\ (?:this|the)\ (?:\w+\ )?(?:string|cipher|message|base64|binary|hex\w*)
        | \bdo\ exactly\ what\ it\ says | \binterlace\ part
        | \b(?:follow|execute)\ the\ instructions?\ inside""",
    ),
    rule(
        "payload_splitting",
        "+ b|combine a|strings:|first letter|split the",
        r"""\b[a-z]\s?\+\s?[a-z]\s?\+\s?[a-z]\b | \bcombine\ a,\ b
        | \bwe\ have\ (?:two|three|four)\ strings\b | \bfirst\ letter\ of\ (?:each|every)\b
        | \bsplit\ the\ \w+\ into\ (?:two|three)\ parts""",
    ),
    rule(
        "verse_about_secret",
        "poem|acrostic|haiku|song|limerick",
        rf"""\b(?:poem|acrostic|haiku|song|limerick)\b{_REST}{{0,40}}?\b(?:the|your|our)\ {_GUARDED}""",
    ),
)
