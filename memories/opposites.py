"""Words that exclude each other where one stands in the place of the other. Pure."""

from __future__ import annotations

from memories.statements import stem

# Of a thing that is so or not so: wherever they stand.
_PAIRS = """
enable/disable enabled/disabled allow/deny allow/forbid allowed/denied allowed/forbidden allow/block open/closed
increase/decrease raise/lower add/remove required/optional mandatory/optional true/false yes/no like/dislike love/hate
success/failure succeed/fail works/fails pass/fail accept/reject include/exclude include/omit start/stop
encrypt/decrypt upgrade/downgrade manual/automatic manually/automatically safe/unsafe possible/impossible
available/unavailable supported/unsupported stable/unstable valid/invalid always/rarely before/after on/off
synchronous/asynchronous sync/async case-sensitive/case-insensitive ascending/descending mutable/immutable
enabled/off disabled/on accepts/refuses permitted/prohibited
"""
# Of a choice: only after the verb, since before it they name two things ("the read timeout", "the write timeout").
_CHOICES = """
public/private internal/external local/remote light/dark tabs/spaces metric/imperial tea/coffee window/aisle
morning/evening uppercase/lowercase email/phone cash/card fast/slow early/late minimum/maximum first/last
newest/oldest above/below left/right up/down cheap/expensive hot/cold north/south weekly/daily daily/monthly
weekly/monthly vegetarian/meat sweet/spicy
"""
_ZH_PAIRS = """
启用/禁用 开启/关闭 打开/关闭 允许/禁止 增加/减少 提高/降低 添加/删除 喜欢/讨厌 成功/失败 接受/拒绝 包含/排除
升级/降级 加密/解密 手动/自动 必填/选填 可用/不可用 安全/危险 之前/之后 升序/降序 前/后 开/关
"""
_ZH_CHOICES = """
最大/最小 最多/最少 公开/私有 早上/晚上 上午/下午 靠窗/靠过道 浅色/深色 大写/小写 内部/外部
本地/远程 茶/咖啡 邮件/电话 单人/双人 国内/国际 甜/辣 热/冷 快/慢 周一/周五
"""


def _pairs(text: str) -> frozenset[frozenset[str]]:
    return frozenset(frozenset(stem(word) for word in pair.split("/")) for pair in text.split())


def _zh_pairs(text: str) -> frozenset[frozenset[str]]:
    return frozenset(frozenset(_trimmed(*pair.split("/"))) for pair in text.split())


def _trimmed(a: str, b: str) -> tuple[str, str]:
    """Two words without what they share at both ends: where 之前 and 之后 differ is 前 and 后."""
    while len(a) > 1 and len(b) > 1 and a[0] == b[0]:
        a, b = a[1:], b[1:]
    while len(a) > 1 and len(b) > 1 and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    return a, b


PAIRS, CHOICES = _pairs(_PAIRS), _pairs(_CHOICES)
ZH_PAIRS, ZH_CHOICES = _zh_pairs(_ZH_PAIRS), _zh_pairs(_ZH_CHOICES)


def are_opposites(left: tuple[str, ...], right: tuple[str, ...], before: tuple[str, ...]) -> bool:
    """Whether one stem stands where its opposite does in the other text; `before` is what leads up to it."""
    if len(left) == len(right) == 1 and left[0].isascii():
        pair = frozenset((left[0], right[0]))
        # A sentence has its subject and verb before a choice; an order begins with its verb.
        return pair in PAIRS or (pair in CHOICES and len(before) >= 2)
    pair = frozenset(("".join(left), "".join(right)))
    return pair in ZH_PAIRS or (pair in ZH_CHOICES and len(before) >= 3)
