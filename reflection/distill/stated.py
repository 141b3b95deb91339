"""What an error message states about the tool: values it allows, a rule, an argument it wants or refuses."""

from __future__ import annotations

import re

_AT_MOST = 8  # values that a list of allowed ones may have
_ITEM = r"[\"'“‘`「]?[A-Za-z0-9\u3400-\u9fff][\w.+#-]{0,39}[\"'”’`」]?"
_JOINT = r"\s*(?:,\s*(?:or|and)\s+|[,/|、，;；]\s*|\s+(?:or|and)\s+|或者?|和)\s*"
_ALLOWED = re.compile(
    r"(?:\b(?:allowed|valid|supported|accepted|permitted|available|possible|choices|options|use|expected"
    r"|known)\b(?: (?:values?|options?|choices?|formats?|types?|modes?|names?|\w+s))?(?: (?:are|is|be))?"
    r"|\b(?:must|should|has to|can only|may only) be|\bone of|\beither"
    r"|(?:可选|允许|有效|支持|可用|合法)(?:的)?(?:值|选项|格式|类型|取值|名称)?(?:为|是|有|包括)?|只能(?:是|为)"
    r"|必须(?:是|为)|应(?:该)?(?:是|为)|取值(?:为|是)?)"
    rf"\s*[:：=]?\s*(?:one of|either|之一)?\s*[:：=]?\s*[\[({{（]?\s*(?P<items>{_ITEM}(?:{_JOINT}{_ITEM})+)",
    re.IGNORECASE,
)
_SPLIT = re.compile(_JOINT)
_MISSING = re.compile(
    r"\b(?:missing|required|requires?|needs?|must (?:be (?:given|provided|set|specified|supplied)"
    r"|specify|provide|include|have)|not (?:given|provided|set|specified|supplied)|without (?:an? )?"
    r"|is empty)\b"
    r"|缺少|缺失|必填|不能为空|需要|未提供|未指定|未填写|必须(?:提供|指定|填写|包含)|没有提供",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(
    r"\b(?:unknown|unexpected|unrecogni[sz]ed|unsupported|extra|superfluous)\b"
    r"|\bnot (?:supported|allowed|accepted|recogni[sz]ed|permitted|a (?:known|valid))\b"
    r"|\binvalid (?:argument|parameter|keyword|field|option)\b"
    r"|\bdoes(?: not|n['’]t) (?:accept|take|support)\b"
    r"|未知|多余|不支持|不接受|不识别|无法识别|不允许",
    re.IGNORECASE,
)
_NOT_FOUND = re.compile(
    r"not found|no such|(?:does|do|did)(?: not|n['’]t) (?:exist|match)|(?:could|can)(?: ?not|n['’]t) find"
    r"|\bno (?:\w+ ){0,2}(?:matches|results|found)\b|unknown (?:user|order|customer|id|host|record)"
    r"|不存在|未找到|找不到|没有找到|查无",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"\b(?:needs?|requires?|required|must|should|has to|have to|(?<!read-)only|at (?:most|least)"
    r"|max(?:imum)?|min(?:imum)?|exceed(?:s|ing)?|limit(?:s|ed)?|no (?:more|less|fewer|later|earlier) than"
    r"|(?:above|below|over|under|beyond|between|up to) (?:[^.\s\d]{1,10} ){0,2}\D?\d+"
    r"|not (?:be )?(?:allowed|permitted|eligible)|may not|prohibited|forbidden (?:for|to|by)"
    r"|(?:cannot|can ?not|can['’]t) be (?:used|modified|changed|cancel+ed|combined|refunded|exchanged"
    r"|returned|booked|updated|deleted|removed|edited|merged|mixed|reused|transferred|empty|negative))\b"
    r"|必须|需要?(?:由|经|先|有)?|须|只能|仅限|仅支持|仅可|不允许|不得|不可以?|不能(?:超过|低于|高于|为空|早于|晚于|修改|退|取消)"
    r"|禁止|上限|下限|最多|至多|最少|至少|超过|限制|限额",
    re.IGNORECASE,
)
_INPUT = re.compile(
    r"\b(?:invalid|bad|malformed|unparsable|unparseable|illegal|incorrect|wrong|expected|format|type|parse|parsing"
    r"|schema|validation|argument|parameter|value|must|should)\b"
    r"|无效|非法|不合法|格式|类型|参数|解析|校验|必须|应为",
    re.IGNORECASE,
)
_TAKEN = re.compile(
    r"\balready\b|\btaken\b|\bin use\b|\boccupied\b|\bduplicate\b|\bconflict|\bunique\b"
    r"|已存在|已被|已经|占用|重复|冲突",
    re.IGNORECASE,
)
_FORBIDS = re.compile(
    r"\bpermission|\b(?:access )?denied\b|\bforbidden\b|\bunauthori[sz]ed\b|\bnot authori[sz]ed\b|\bprivilege"
    r"|权限|拒绝|未授权|无权",
    re.IGNORECASE,
)
_TOO_MUCH = re.compile(
    r"\btoo (?:large|big|high|long|many|much|great)\b|\bexceed(?:s|ed|ing)?\b|\bover the limit\b|\bsmaller\b"
    r"|\bfewer\b|\blower\b|\bless\b|at most|maximum|\bmax\b"
    r"|超出|超过|过大|太大|过多|太多|过长|太长|过高|最多|上限",
    re.IGNORECASE,
)
_TOO_LITTLE = re.compile(
    r"\btoo (?:small|low|short|few|little)\b|\bbelow the\b|\blarger\b|\bgreater\b|\bhigher\b|\bat least\b"
    r"|\bminimum\b|\bmin\b|过小|太小|过短|太短|过少|太少|过低|不足|至少|最少|下限",
    re.IGNORECASE,
)


def allowed_values(message: str) -> tuple[str, ...]:
    """Return the values that an error names as the only ones allowed ("allowed: green, blue"), or ()."""
    found = _ALLOWED.search(message)
    if found is None:
        return ()
    items = [item.strip("\"'“”‘’`「」 .") for item in _SPLIT.split(found["items"])]
    unique = tuple(dict.fromkeys(item for item in items if item))
    return unique if 2 <= len(unique) <= _AT_MOST else ()


def misses(message: str) -> bool:
    """Return whether an error says that something was not given."""
    return _MISSING.search(message) is not None


def does_not_know(message: str) -> bool:
    """Return whether an error says that it was given something it does not take."""
    return _UNKNOWN.search(message) is not None


def not_found(message: str) -> bool:
    """Return whether an error says that the thing asked for is not there."""
    return _NOT_FOUND.search(message) is not None


def states_rule(message: str) -> bool:
    """Return whether an error states a rule (must, only, at most, 必须, 上限 …) and not just a failure."""
    return _RULE.search(message) is not None


def wants_less(message: str) -> bool:
    """Return whether an error says that a number or a text was too large."""
    return _TOO_MUCH.search(message) is not None


def wants_more(message: str) -> bool:
    """Return whether an error says that a number or a text was too small."""
    return _TOO_LITTLE.search(message) is not None


def speaks_of_input(message: str) -> bool:
    """Return whether an error blames what it was given, and not the tool itself."""
    return _INPUT.search(message) is not None


def is_taken(message: str) -> bool:
    """Return whether an error says that a name, a seat or a place belongs to something else already."""
    return _TAKEN.search(message) is not None


def forbids(message: str) -> bool:
    """Return whether an error says that the caller may not do this."""
    return _FORBIDS.search(message) is not None
