"""Why something failed, told from the words of its error message (English and Chinese)."""

from __future__ import annotations

import re

from memories.enums import FailureClass

# A message about a setting called "timeout" is a wrong argument, not a time-out.
_ABOUT_A_SETTING = re.compile(
    r"(?:invalid|unexpected|unknown|missing|unrecogni[sz]ed|unsupported|illegal|bad)\b[^.\n]{0,40}"
    r"\b(?:timeout|time_out|rate[_ ]?limit\w*|retr(?:y|ies)\w*|network)\b"
    r"|\b(?:timeout|rate[_ ]?limit\w*|max_retries|retries)\b['\"`]?\s*"
    r"(?:must|should|has to|needs to|argument|parameter|option|field|is not a|expects)"
    r"|(?:超时时间|超时参数|重试次数|timeout|网络参数)\s*(?:参数)?\s*(?:必须|不能|应|格式|无效"
    r"|不合法|不支持)",
    re.IGNORECASE,
)
_TRANSIENT = re.compile(
    r"\btime[ds]?[ -]?out\b|\btimeout(?:error|exception|expired)?\b|\b\w+timeout(?:error|exception)?\b"
    r"|\bETIMEDOUT\b|\bECONNRESET\b|\bECONNABORTED\b|\bEAI_AGAIN\b|\bEPIPE\b|broken pipe"
    r"|deadline exceeded|took too long|too ?many ?requests|rate[ -]?limit(?:ed|s|ing)?\b|\bratelimiterror\b"
    r"|quota (?:exceeded|exhausted)[^.\n]{0,40}(?:minute|second|retry)|throttl(?:ed|ing)"
    r"|\b(?:http|status|code|error|returned|response|got)\b\W{0,3}(?:code\W{0,3}|error\W{0,3})?"
    r"(?:408|425|429|502|503|504|520|522|524|529)\b"
    r"|\b429\b[^\n]{0,20}\btoo many|\b50[234]\b\W{0,3}(?:bad gateway|service|gateway|server)"
    r"|service (?:is )?(?:temporarily )?unavailable|temporar(?:ily|y) (?:unavailable|failure"
    r"|error|overloaded)"
    r"|bad gateway|gateway time-?out|server (?:is )?(?:busy|overloaded)|overloaded(?:_error)?\b|over capacity"
    r"|connection (?:was |has been |is )?(?:reset|aborted|closed|lost|dropped|interrupted|timed)"
    r"|connection(?:reset|aborted)error|remote end closed|server disconnected|incomplete ?read"
    r"|(?:remote|server) (?:has )?closed the connection|connection error\b|\bapiconnectionerror\b"
    r"|network (?:is )?(?:unreachable|error|failure|down)|(?:tls|ssl) handshake (?:timed|time-?out)"
    r"|temporary failure in name resolution|no route to host|socket hang up|fetch failed"
    r"|(?:try|retry)(?: your request)? (?:again )?(?:later|in (?:a|\d+) )|please retry|retry[- ]after"
    r"|deadlock (?:detected|found)|lock wait|could not serialize access|database is locked"
    r"|(?-i:\bUNAVAILABLE\b)|\b(?:408|425|429|502|503|504|529)\b\W{0,3}(?:client|server) error"
    r"|(?:^|returned |returns )\W{0,3}(?:429|502|503|504)\b(?=\W*$|:)"
    r"|busy\w*error|is loading the dataset|unexpected EOF|premature(?:ly)? (?:close|end)"
    r"|abnormal closure|rate exceeded|(?:obtain|acquire|get) (?:the |a )?lock"
    r"|\bSERVFAIL\b|dns (?:lookup|resolution|query)\b[^.\n]{0,20}(?:failed|error)"
    r"|request (?:was )?cancell?ed while"
    r"|\bERR_(?:CONNECTION_(?!REFUSED)|NETWORK_|TIMED_OUT|INTERNET_)\w*|\bERR_EMPTY_RESPONSE\b"
    r"|did(?: not|n't) respond|no response from"
    r"|lost connection|connection (?:\w+ )?unexpectedly|(?:stopped|not) responding"
    r"|unable to reach|could not reach|max retries exceeded"
    r"|too many (?:connections|open requests)|slow down\b|retry in \d|please wait|starting up"
    r"|not (?:yet )?ready|stream (?:error|reset|closed)"
    r"|currently (?:unavailable|overloaded|experiencing)|high (?:load|demand|traffic)"
    r"|resource temporarily|index\.lock|temporarily out of service|undergoing maintenance"
    r"|超时|限流|限速|流控|熔断|(?:过于|太|过)频繁|频率(?:过高|限制|超限)|(?:调用|请求"
    r"|访问)(?:次数|量)?过(?:多|大)|并发(?:过高|超限)"
    r"|(?:状态码?|返回|错误码?|代码)\W{0,3}(?:408|429|502|503|504)|网关(?:错误|超时)|(?:无"
    r"|没有|未|停止)响应|断线|掉线|断网|维护升级|升级维护|检查(?:您|你)?的?网络|太快了?|(?:秒"
    r"|分钟|小时)后(?:再|重)|连接(?:服务器|网络|远程)?失败|开小差|忙不过来|拥堵|拥挤|排队中"
    r"|(?:服务|系统|服务器|接口|数据库)(?:器)?(?:暂时|暂|当前|正)?(?:不可用|繁忙|过载|维护中"
    r"|升级中|忙)|服务降级|正在维护"
    r"|网络(?:连接)?(?:不给力|不佳|不好|较差|繁忙|错误|异常|中断|故障|不稳定|不可达|抖动|波动|断开|失败)"
    r"|连接(?:已)?(?:被)?(?:重置|断开|中断|超时|关闭|丢失)|(?:请)?(?:稍[后候]|过一会儿?"
    r"|等一会儿?)再?(?:重)?试|重试一下|暂时(?:无法|不可)|死锁",
    re.IGNORECASE,
)
_IMPOSSIBLE = re.compile(
    r"(?:no|without a) (?:feasible |valid )?solution (?:exists|is possible)|infeasible|unsatisfiable"
    r"|(?:task|request|goal) (?:is impossible|cannot be (?:completed|done|fulfilled|satisfied))"
    r"|not (?:physically )?possible to|out of stock|sold out|discontinued|no longer (?:offered|sold|exists)"
    r"|against (?:our |the )?policy|not (?:allowed|permitted) (?:by|under) (?:the "
    r"|our )?(?:policy|fare|rules)"
    r"|non-?refundable|not enough seats|no (?:seats|rooms|appointments) (?:left|available)"
    r"|there (?:are|is) no (?:\w+ )?(?:flights?|trains?|routes?|seats?|rooms?|connections?)\b"
    r"|无解|不可能(?:完成|实现|满足)|(?:任务|需求|请求)无法(?:完成|满足)|已?售罄|缺货|无货"
    r"|已停产|已下架|已停售"
    r"|不符合(?:政策|规定)|余票不足|没有(?:直达|航班|车次)|已?满员|座位已满|名额已满|(?:没有"
    r"|无)(?:空房|余票|余位)|不予退款",
    re.IGNORECASE,
)
_USER_ERROR = re.compile(
    r"(?:cancel+ed|aborted|declined|rejected|denied|interrupted) by (?:the )?(?:user|customer"
    r"|operator)\b(?!['’]s)"
    r"|user (?:has )?(?:cancel+ed|declined|rejected|denied|aborted|interrupted)|keyboardinterrupt"
    r"|(?:incorrect|wrong|invalid) (?:password|passcode|pin\b|verification code|security answer)"
    r"|(?:user|customer|client|caller|passenger|travell?er|guest) (?:has )?(?:provided|entered"
    r"|gave|supplied|typed) (?:an? |the )?(?:wrong|invalid|incorrect)"
    r"|用户(?:已)?(?:取消|拒绝|中止|终止|输入(?:有误|错误))|(?:用户|客户|旅客|乘客"
    r"|对方)(?:自己)?(?:输|填|写|说|报|给)错|(?:密码|口令|验证码)(?:错误|不正确|有误)",
    re.IGNORECASE,
)
_ENVIRONMENT = re.compile(
    r"command not found|is not recogni[sz]ed as an internal|no module named|modulenotfounderror"
    r"|cannot find module|module not found|could not find a version that satisfies"
    r"|no such file or directory|\bENOENT\b|filenotfounderror"
    r"|(?:permission|access) denied|\bEACCES\b|\bEPERM\b|permissionerror|operation not permitted"
    r"|read-only file ?system|no space left|disk (?:is )?full|\bENOSPC\b|disk quota"
    r"|out of memory|\boom\b|memoryerror|cannot allocate memory|\bENOMEM\b"
    r"|address already in use|\bEADDRINUSE\b"
    r"|connection refused|\bECONNREFUSED\b|could not resolve host|name or service not known|\bENOTFOUND\b"
    r"|proxy ?(?:error|authentication)|certificate verify failed|self[- ]signed certificate"
    r"|unable to get local issuer"
    r"|(?:is|are) not installed|shared (?:librar(?:y|ies)|object)"
    r"|invalid active developer path|GLIBC|unsupported (?:platform|architecture"
    r"|operating system)"
    r"|unable to locate package|no matching distribution|cannot connect to the docker daemon"
    r"|is the \w+(?: \w+)? running\?"
    r"|release version \d+ not supported|EBADENGINE|unsupported engine|(?:must be"
    r"|run(?:ning)?(?: this)? as|requires?) (?:root|sudo|administrator|elevated)"
    r"|(?:cannot|can't|failed to) (?:find|open|launch) (?:chrome|display|the browser|browser|firefox)"
    r"|wrong (?:python|node|java) version|requires python|no cuda|cuda (?:driver|is not available)"
    r"|(?:api[ _-]?key|credentials?|token|environment variable)s? (?:is |are "
    r"|was )?(?:not (?:set|found|configured|provided)|missing)"
    r"|no (?:api[ _-]?key|credentials)|unable to locate credentials"
    r"|找不到命令|命令(?:不存在|未找到)|(?:模块|依赖|软件包?|组件)(?:未安装|不存在|缺失)|未安装|没有安装"
    r"|(?:没有|无)(?:那个|该|此)?文件(?:或目录)?|(?:文件|目录|路径)(?:不存在|未找到)"
    r"|权限(?:不足|不够|被拒绝)|(?:没有|无)(?:访问|操作|写入|读取|执行)?权限|拒绝访问"
    r"|需要(?:管理员|root|超级用户)权限|环境(?:不支持|缺失)|版本过低"
    r"|磁盘(?:空间)?(?:不足|已满)|内存(?:不足|溢出)|端口(?:已)?被占用|连接被?拒绝|证书(?:验证|校验)失败"
    r"|(?:缺少|未设置|没有设置)环境变量|环境变量(?:未|没有)|未配置(?:密钥|凭据|凭证)|代理(?:错误|失败)",
    re.IGNORECASE,
)
_FAILURE = re.compile(
    r"\berrors?\b|\b\w*(?:Error|Exception)\b|\bexception\b|\bfail(?:ed|ure|s|ing)?\b|\bfatal\b"
    r"|\bpanic\b|traceback"
    r"|\binvalid\b|\bincorrect\b|\bwrong\b|not (?:found|allowed|supported|permitted|enough"
    r"|available|valid|defined)"
    r"|\b(?:can ?not|could not|can't|couldn't|unable to|must be|must not|refused|rejected"
    r"|denied|unknown|unexpected|missing)\b"
    r"|\bunauthori[sz]ed\b|\bforbidden\b|already exists|\bduplicate\b|\bexpired\b"
    r"|\bmismatch\w*|out of range|too (?:long|large|short|small|big)\b"
    r"|expected .{1,40}\b(?:got|found|received)\b|\bviolates?\b|\bundefined\b|\bdeclined\b|exceeds the"
    r"|does(?: not|n't) (?:exist|match|add up)|should match|is required|deprecated|has been removed|no such"
    r"|\b(?:http|status)\b\W{0,3}(?:code\W{0,3})?[45]\d\d\b|\b[45]\d\d (?:bad|unauth|unprocess"
    r"|forbidden|not|method|conflict|gone|internal)"
    r"|错误|失败|异常|报错|出错|无效|不存在|未找到|找不到|不支持|不合法|无法|不能为空|缺少"
    r"|非法|已废弃|拒绝|不匹配|不足|不符|有误|没有(?:该|此|这个)|超出|未授权|未登录|已过期"
    r"|冲突|重复",
    re.IGNORECASE,
)
# "timeout: 30" states a setting; it reports nothing.
_SETTING = re.compile(r"\b\w*time_?out\w*[\"']?\s*[:=]\s*\d+\s*(?:m?s|sec\w*|min\w*)?\b(?! exceeded)", re.IGNORECASE)
_DENIED = re.compile(
    r"\b(?:no|zero|0|without(?: any)?) (?:\w+ )?(?:errors?|failures?|exceptions?|issues?)\b|error-free"
    r"|\b(?:errors?|failures?|failed|exceptions?)[\"']?\s*[:=]\s*(?:0\b|none\b|null\b|\[\]"
    r"|false\b|\"\")|\b0 failed\b"
    r"|(?:没有|无|未发现|未出现|零)(?:任何)?(?:错误|异常|失败|报错|问题)|(?:错误|异常"
    r"|失败)(?:数|次数|率)?\s*[:：为]?\s*0(?![.\d])",
    re.IGNORECASE,
)


def classify(text: str) -> FailureClass:
    """Return why `text`, an error message or a sentence about one, says that something failed.

    `none` when it names no failure. A failure of no recognised sort counts as `permanent`: the call
    as it was made will fail again, which is the reading that does not excuse it.
    """
    text = _SETTING.sub(" ", _DENIED.sub(" ", text))
    if _ABOUT_A_SETTING.search(text):
        return FailureClass.PERMANENT
    ordered = (
        (_TRANSIENT, FailureClass.TRANSIENT),
        (_USER_ERROR, FailureClass.USER_ERROR),
        (_ENVIRONMENT, FailureClass.ENVIRONMENT),
        (_IMPOSSIBLE, FailureClass.IMPOSSIBLE),
        (_FAILURE, FailureClass.PERMANENT),
    )
    return next((verdict for signs, verdict in ordered if signs.search(text)), FailureClass.NONE)


def denies_failure(text: str) -> bool:
    """Return whether `text` says outright that nothing went wrong ("0 errors", "没有错误")."""
    return _DENIED.search(text) is not None and _FAILURE.search(_DENIED.sub(" ", text)) is None
