"""Words too common to tell one memory from another, in English and Chinese.

They are left out when writing and when asking, so that they cost neither space nor rank. Question
words are in the list: "what", "when" and "什么" are in most questions and in few answers.
"""

from __future__ import annotations

ENGLISH = frozenset(
    """
    a about above actually after again against all almost along already also although always am among an and
    another any anyone anything are around as at away back be became because become been before being below
    between both but by came can could d did do does doing done down during each either else enough even ever
    every everyone everything few for from get gets getting give given go goes going gone got had has have having
    he her here hers herself him himself his how however i if in into is isn it its itself just know let like ll
    lot m made make makes many may maybe me might mine more most much must my myself need never no nor not now of
    off often oh ok okay on once one only onto or other others our ours ourselves out over own per please put
    quite rather re really s said same say says see seem seems several shall she should since so some someone
    something still such sure t take tell than thank thanks that the their theirs them themselves then there these
    they thing things think this those though through thus to together too under until up upon us use used using
    ve very want wants was way we well went were what whatever when where whether which while who whom whose why
    will with within without would yeah yes yet you your yours yourself yourselves
    ain aren couldn didn doesn don hadn hasn haven mightn mustn needn shan shouldn wasn weren won wouldn
    cannot im ive id ill youre youve dont didnt doesnt isnt arent wasnt werent cant couldnt wont wouldnt
    thats whats theres lets
    """.split()
)

CHINESE = frozenset(
    """
    的 了 是 在 我 你 您 他 她 它 们 我们 你们 您们 他们 她们 它们 咱们 自己 这 那 哪 这个 那个 哪个 这些 那些
    哪些 这里 那里 哪里 这儿 那儿 哪儿 这样 那样 怎样 怎么 怎么样 如何 什么 为什么 谁 多少 几 吗 呢 吧 啊 呀 哦
    嗯 哈 嘛 啦 和 与 及 或 或者 以及 还 还是 也 都 就 又 再 才 只 很 太 更 最 非常 比较 不 没 没有 不是 有 有没有
    是不是 一 一个 一些 一下 一种 一样 个 些 种 次 把 被 给 让 对 对于 关于 从 到 向 往 于 以 为 因为 所以 但 但是
    不过 而 而且 并 并且 如果 要是 虽然 然后 可以 可 能 能够 会 要 想 应该 需要 可能 得 地 着 过 上 下 里 中 来 去
    说 看 做 用 等 之 其 其中 此 该 各 每 某 时 时候 现在 已经 曾经 正在 将 曾 请 请问 知道 觉得 认为 告诉 记得 谢谢
    好 好的 是的 对的 当然 吧 有些 有点 大家 东西 事情 就是 那么 这么 什么样 呵呵 哈哈
    """.split()
)

STOP_WORDS = ENGLISH | CHINESE
