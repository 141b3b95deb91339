"""Whether a conclusion says something definite or is advice that always fits ("be careful", "注意检查")."""

from __future__ import annotations

import re
from collections.abc import Collection

LESSON = (2, 5)  # words outside the general ones, or Chinese characters, that make a lesson definite
STATEMENT = (1, 2)  # the same for a fact or preference, which may be short ("不吃辣")

_GENERAL_WORDS = """
a about above account accurate accurately achieve across act action actions after again agent agents all
also always am an and another any anything appropriate appropriately approach are around as ask at
attention avoid aware be because been before being best better both but by call calls can care careful
carefully case cases check checking clear clearly close closely come common complete completely
conclusion confirm consider context correct correctly could data decision detail details different do
does doing done double due during each effective efficient efficiently else end ensure ensuring error
errors especially etc even every everything exactly example expected extra failure failures fail fails
feedback first fix focus follow following for from full fully general get gets give go good goal goals
guidelines handle handling has have helpful high how however if important improve in incorrect
information input instruction instructions into is issue issues it items its just keep key know learn
lesson less like likely look main make makes making may me mind mistake mistakes more most much must
need needed needs never new next no not note now of off on once one only or other others our out outcome
output over own part pay people perform performing plan planning please possible potential precise
precisely prior problem problems proceed proceeding process proper properly provide provided quality
question questions quickly read reading really reason receive relevant remember repeat request requests
require required requirement requirements response result results retry review right rule rules same
save see should situation situations so some something sometimes step steps stick still stop such sure
system take task tasks than that the their them then there these they thing things think thinking
thorough thoroughly this thoroughness those through time times to together too tool tools towards trust
try trying understand up update upon use used useful user users using validate value values verify
verification very want was way ways we well were what when where whether which while who why will wisely
with without work works working worth would wrong you your
"""
_GENERAL = frozenset(_GENERAL_WORDS.split())
_ANCHOR = re.compile(
    r"`[^`]+`|[A-Za-z]+_\w+|[a-z]+[A-Z]\w*|\b[A-Z]{2,}\b|\d|--\w+|/\w+|“[^”]{3,}”"
    r"|\"[^\"]{3,}\"|「[^」]+」|<\w+>"
)
_LATIN_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]+")
_CJK = re.compile(r"[\u3400-\u9fff]")
_ZH_GENERAL = re.compile(
    r"任务|问题|情况|步骤|结果|信息|数据|用户|要求|需求|操作|工具|错误|失败|成功|过程|方法"
    r"|方式|内容|系统|细节|指令|说明|时候|时间|经验|教训|目标|计划|原因"
    r"|注意|小心|仔细|认真|谨慎|务必|一定|应该|应当|需要|必须|可以|尽量|避免|确保|保证|检查"
    r"|核对|确认|验证|理解|遵守|遵循|按照|根据|完成|处理|执行|进行|解决|避开|记住|记得|牢记"
    r"|用户要求|相关|正确|准确|合适|适当|清楚|明确|重要|关键|更好|更多|所有|任何|每次|每个"
    r"|以后|之前|之后|首先|然后|最后|再次|重新|多次|再试|重试|下次|遇到|出现|发生"
    r"|的|了|在|是|和|与|或|并|把|对|要|会|能|先|再|后|前|时|都|也|就|还|更|不|没|有|个|这|那"
    r"|请|让|使|为|以|及|等|中|上|下|里|到|从|做|好|多"
)


def is_vague(content: str, tools: Collection[str] = (), needed: tuple[int, int] = LESSON) -> bool:
    """Return whether `content` names nothing definite: no tool, no name or number, hardly a word of its own.

    `needed` is how many words, or Chinese characters, outside the general ones make it definite.
    """
    if any(tool and tool in content for tool in tools):
        return False
    if _ANCHOR.search(content):
        return False
    own = {word.lower() for word in _LATIN_WORD.findall(content)} - _GENERAL
    chinese = len(_CJK.findall(_ZH_GENERAL.sub("", content)))
    return len(own) < needed[0] and chinese < needed[1]
