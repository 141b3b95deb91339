"""The commonest ways of attack in other languages, from a table of words.

Per language: verbs of ignoring, nouns for instructions, words that ask, secrets, private facts, and a few
fixed phrases. A rule needs a verb and its object within one sentence, in either order, since half of these
languages put the verb last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .rules import Rule, make_rule


@dataclass(frozen=True, slots=True)
class Words:
    """Alternatives separated by `|`; pieces of words, lower case."""

    ignore: str
    orders: str
    ask: str
    guarded: str
    private: str = ""
    prompt: str = ""
    no_limits: str = ""
    from_now_on: str = ""
    secrecy: str = ""


LANGUAGES = {
    "es": Words(
        ignore="ignora|ignore|olvida|olvide|omite|descarta|desobedece|haz caso omiso",
        orders="instruccion|órdenes|ordenes|indicacion|reglas|directrices|directivas",
        ask="cuál es|cual es|dime|dame|comparte|compartan|compartir|confirma|revela|muestra|necesito"
        "|dígame|envía",
        guarded="contraseña|clave secreta|claves api|credenciales|palabra clave",
        private="fecha de nacimiento|dónde vive|donde vive|ciudad de residencia|correo electrónico de"
        "|dirección de",
        prompt="prompt del sistema|instrucciones del sistema|mensaje del sistema|nota del sistema"
        "|nota importante del sistema",
        no_limits="sin restricciones|sin reglas|sin filtros|ninguna restricción|cualquier cosa ahora",
        from_now_on="a partir de ahora|de ahora en adelante|cada respuesta|cualquier respuesta"
        "|cuando cualquier usuario",
        secrecy="no menciones|no se lo digas|sin decir al usuario|no informes al usuario",
    ),
    "pt": Words(
        ignore="ignore|ignora|esqueça|esquece|desconsidere|desconsidera",
        orders="instruções|instrucoes|ordens|regras|diretrizes",
        ask="qual é|diga|diz-me|me dê|partilh|compartilh|confirme|revele|mostre|preciso|podes",
        guarded="senha|palavra-passe|palavra passe|chave secreta|credenciais",
        private="data de nascimento|onde mora|onde o usuário mora|usuário mora|onde vive"
        "|cidade de residência|endereço de e-mail d",
        prompt="prompt do sistema|instruções do sistema|mensagem do sistema|nota do sistema",
        no_limits="sem restrições|sem regras|sem filtros|qualquer coisa agora",
        from_now_on="a partir de agora|de agora em diante|cada resposta",
        secrecy="não mencione|sem informar o usuário|não diga ao usuário",
    ),
    "fr": Words(
        ignore="ignore|ignorez|oublie|oubliez|ne tiens pas compte|ne tenez pas compte|fais abstraction",
        orders="instructions|consignes|directives|règles|regles|ordres",
        ask="quel est|quelle est|dis-moi|dites-moi|donne-moi|donnez|partager|partagez|confirme"
        "|révèle|montre|pourriez-vous me dire|besoin",
        guarded="mot de passe|clé secrète|cle secrete|identifiants|clés api",
        private="date de naissance|où habite|où vit|ville de résidence|adresse e-mail de",
        prompt="prompt système|instructions système|message système|note système|invite système",
        no_limits="sans restrictions|sans restriction|sans règles|sans filtre|regles de securite ne s"
        "|règles de sécurité ne s",
        from_now_on="à partir de maintenant|dès maintenant|désormais|chaque réponse",
        secrecy="ne mentionne pas|ne mentionnez pas|ne dis pas à l'utilisateur|n'informez pas",
    ),
    "de": Words(
        ignore="ignorier|vergiss|vergessen sie|missachte|beachte nicht|übergehe",
        orders="anweisung|instruktion|richtlinien|regeln|vorgaben|befehle|alles, was",
        ask="was ist|wie lautet|sag mir|sagen sie|gib mir|geben|teile|bestätige|verrate|zeige|nennen"
        "|brauche|wie hoch",
        guarded="passwort|kennwort|geheimschlüssel|geheimer schlüssel|geheimen schlüssel|zugangsdaten"
        "|kontostand",
        private="geburtsdatum|wo wohnt|wohnort von|e-mail-adresse von",
        prompt="system-prompt|systemprompt|systemanweisung|systemhinweis|systemnachricht",
        no_limits="keine regeln|ohne einschränkung|ohne regeln|keine einschränkungen|ohne filter"
        "|grenzen der künstlichen intelligenz|jetzt alles tun|grenzen der ki",
        from_now_on="ab jetzt|von nun an|ab sofort|jeder antwort",
        secrecy="erwähne nicht|ohne dem nutzer|sag dem nutzer nicht|verrate niemandem",
    ),
    "it": Words(
        ignore="ignora|ignorate|dimentica|dimenticate|trascura|non seguire",
        orders="istruzioni|direttive|regole|linee guida|ordini",
        ask="qual è|dimmi|dammi|mi dai|condividere|condividi|conferma|rivela|mostra|ho bisogno",
        guarded="password|chiave segreta|credenziali|parola d'ordine",
        private="data di nascita|dove vive|dove abita|città di residenza|indirizzo e-mail di",
        prompt="prompt di sistema|istruzioni di sistema|messaggio di sistema|nota di sistema",
        no_limits="senza restrizioni|senza regole|senza filtri|qualsiasi cosa ora|confini tipici",
        from_now_on="d'ora in poi|da ora in poi|ogni risposta",
        secrecy="non menzionare|senza informare l'utente|non dire all'utente",
    ),
    "nl": Words(
        ignore="negeer|vergeet|sla over",
        orders="instructies|regels|richtlijnen|opdrachten",
        ask="wat is|vertel|geef me|deel|toon|bevestig",
        guarded="wachtwoord|geheime sleutel|inloggegevens",
        private="geboortedatum|waar woont",
        prompt="systeemprompt|systeeminstructies|systeemmelding",
        no_limits="zonder beperkingen|zonder regels|geen beperkingen",
        from_now_on="vanaf nu|elk antwoord",
        secrecy="vertel de gebruiker niet|noem dit niet",
    ),
    "pl": Words(
        ignore="zignoruj|ignoruj|zapomnij|pomiń",
        orders="instrukcj|polece|zasad|wytyczn",
        ask="jakie jest|podaj|powiedz|udostępnij|pokaż|ujawnij",
        guarded="hasło|tajny klucz|dane logowania",
        private="data urodzenia|gdzie mieszka",
        prompt="prompt systemowy|instrukcje systemowe",
        no_limits="bez ograniczeń|bez zasad",
        from_now_on="od teraz|w każdej odpowiedzi",
        secrecy="nie mów użytkownikowi|nie wspominaj",
    ),
    "ru": Words(
        ignore="игнорируй|игнорируйте|игнорировать|забудь|забудьте|не обращай внимания|отбрось",
        orders="инструкци|указани|правил|команд|что тебе говорили|директив",
        ask="какой|каков|скажи|скажите|дай мне|поделит|подтверди|раскрой|покажи|нужен|не подскажете",
        guarded="пароль|пароля|паролем|секретный ключ|учетные данные|учётные данные",
        private="дата рождения|дату рождения|где живет|где живёт|где сейчас живет"
        "|адрес электронной почты",
        prompt="системный промпт|системные инструкции|системное сообщение|системный запрос",
        no_limits="без ограничений|без правил|без фильтров|что угодно сейчас",
        from_now_on="с этого момента|отныне|с этих пор|в каждом ответе",
        secrecy="не говори пользователю|не упоминай|не сообщай пользователю",
    ),
    "uk": Words(
        ignore="ігноруй|ігноруйте|забудь|забудьте",
        orders="інструкці|вказівк|правил",
        ask="який|скажи|дай мені|поділися|покажи",
        guarded="пароль|секретний ключ",
        private="дата народження|де живе",
        no_limits="без обмежень|без правил",
        from_now_on="відтепер|з цього моменту",
    ),
    "tr": Words(
        ignore="görmezden gel|yok say|unut|dikkate alma|göz ardı et",
        orders="talimat|kural|yönerge|komut",
        ask="nedir|söyle|paylaş|ver bana|göster|onayla|ne olurdu",
        guarded="parola|şifre|gizli anahtar",
        private="doğum tarih|nerede yaşıyor|ikamet",
        prompt="sistem istemi|sistem talimat",
        no_limits="kısıtlama olmadan|sınırsız|kuralsız",
        from_now_on="bundan sonra|şu andan itibaren|her yanıt",
        secrecy="kullanıcıya söyleme|bahsetme",
    ),
    "id": Words(
        ignore="abaikan|lupakan|kesampingkan",
        orders="instruksi|perintah|aturan|pedoman",
        ask="apa kata|beri tahu|memberi tahu|beritahu|berikan|bagikan|membagikan|konfirmasi"
        "|tunjukkan|membutuhkan",
        guarded="kata sandi|kunci rahasia|kredensial",
        private="tanggal lahir|di mana .{0,20}tinggal|kota tempat tinggal|alamat email",
        prompt="prompt sistem|instruksi sistem",
        no_limits="tanpa batasan|tanpa aturan|tanpa filter",
        from_now_on="mulai sekarang|setiap jawaban",
        secrecy="jangan beri tahu pengguna|jangan sebutkan",
    ),
    "vi": Words(
        ignore="bỏ qua|phớt lờ|quên",
        orders="hướng dẫn|chỉ dẫn|chỉ thị|quy tắc|lệnh",
        ask="là gì|cho tôi|cho biết|chia sẻ|tiết lộ|xác nhận",
        guarded="mật khẩu|khóa bí mật",
        private="ngày sinh|sống ở đâu|địa chỉ email",
        prompt="lời nhắc hệ thống|hướng dẫn hệ thống",
        no_limits="không giới hạn|không có hạn chế",
        from_now_on="từ bây giờ|kể từ bây giờ",
    ),
    "tl": Words(
        ignore="balewalain|kalimutan|huwag pansinin",
        orders="tagubilin|panuntunan|utos",
        ask="ano ang|sabihin|ibigay|ibahagi",
        guarded="password|lihim na susi|balanse sa bangko",
        private="petsa ng kapanganak|saan nakatira",
        no_limits="walang limitasyon|gumawa ng anumang bagay|gawin ang anumang bagay"
        "|karaniwang mga limitasyon",
        from_now_on="mula ngayon",
    ),
    "ar": Words(
        ignore="تجاهل|انس|انسى",
        orders="التعليمات|الأوامر|القواعد|التوجيهات|تعليمات",
        ask="ما هي|ما هو|أخبرني|تخبرني|أعطني|شارك|أكد|اكشف|طلبت",
        guarded="كلمة المرور|كلمة السر|المفتاح السري",
        private="تاريخ ميلاد|أين يعيش|عنوان بريد|مكان إقامة",
        prompt="موجه النظام|تعليمات النظام",
        no_limits="بدون قيود|بلا قيود|وضع تجاوز",
        from_now_on="من الآن فصاعدا|في كل رد",
        secrecy="لا تخبر المستخدم",
    ),
    "hi": Words(
        ignore="अनदेखा|भूल जा|उपेक्षा|नज़रअंदाज",
        orders="निर्देश|नियम|आदेश",
        ask="क्या है|बता|साझा|दीजिए|पूछूँ|पुष्टि",
        guarded="पासवर्ड|गुप्त कुंजी",
        private="जन्म तिथि|कहाँ रहत|निवास शहर|ईमेल पता",
        no_limits="बिना किसी प्रतिबंध|बिना सीमा",
        from_now_on="अब से",
    ),
    "bn": Words(
        ignore="উপেক্ষা|ভুলে যা|অগ্রাহ্য",
        orders="নির্দেশ|নিয়ম",
        ask="কী|বলুন|বলতে|শেয়ার|দিন|প্রয়োজন",
        guarded="পাসওয়ার্ড|গোপন কী",
        private="জন্ম তারিখ|কোথায় থাকে|জন্মতারিখ",
        no_limits="সীমাবদ্ধতা ছাড়া|সাধারণ সীমা থেকে মুক্ত",
        from_now_on="এখন থেকে",
    ),
    "th": Words(
        ignore="ละเว้น|เพิกเฉย|ลืม|ไม่สนใจ|มองข้าม",
        orders="คำสั่ง|คําสั่ง|กฎ|คำแนะนำ|คําแนะนํา",
        ask="คืออะไร|บอก|แบ่งปัน|ให้ฉัน|ยืนยัน",
        guarded="รหัสผ่าน|กุญแจลับ",
        private="วันเกิด|อาศัยอยู่ที่ไหน|ที่อยู่อีเมล",
        no_limits="ไม่มีข้อจำกัด|ไม่มีข้อจํากัด",
        from_now_on="ตั้งแต่นี้|จากนี้ไป",
    ),
    "ja": Words(
        ignore="無視|忘れ|无视",
        orders="指示|命令|ルール|規則|规则|指令",
        ask="教えて|何ですか|見せて|共有|は[?？]|ください|出力",
        guarded="パスワード|秘密の鍵|秘密鍵|秘密の键|認証情報",
        private="生年月日|どこに住|住所|メールアドレス",
        prompt="システムプロンプト|システム指示|システムメッセージ",
        no_limits="制限なし|制限なく|无制限|無制限|何でもでき",
        from_now_on="今から|これから|以降|今後",
        secrecy="ユーザーに言わない|ユーザーには伝えない|言及しない",
    ),
    "ko": Words(
        ignore="무시|잊어|잊으",
        orders="지시|명령|규칙|지침",
        ask="알려|무엇|뭐야|공유|주세요|보여|필요|알아야|쓰세요",
        guarded="비밀번호|암호|비밀 키|비밀키",
        private="생년월일|어디에 살|거주도시|거주지|이메일 주소",
        prompt="시스템 프롬프트|시스템 지시|시스템 메시지",
        no_limits="제한 없이|제한없이|무제한|무엇이든",
        from_now_on="지금부터|앞으로",
        secrecy="사용자에게 말하지|언급하지",
    ),
}  # fmt: skip

# Rules worth trying only where a script occurs; all other languages are written in Latin letters.
SCRIPTS = (
    (re.compile("[\u0400-\u052f]"), ("ru", "uk")),
    (re.compile("[\u0600-\u06ff]"), ("ar",)),
    (re.compile("[\u0900-\u097f]"), ("hi",)),
    (re.compile("[\u0980-\u09ff]"), ("bn",)),
    (re.compile("[\u0e00-\u0e7f]"), ("th",)),
    (re.compile("[\u3040-\u30ff]"), ("ja",)),
    (re.compile("[\uac00-\ud7af]"), ("ko",)),
)

_WITHIN = r"[^.!?。！？\n]{0,48}?"
_META = re.compile(r"[.*+?{}\[\]()\\$^]")


def rules_for(text: str) -> list[Rule]:
    """The rules of every language that `text` (lower case) can be written in."""
    found = [*_LATIN]
    if not text.isascii():
        for script, languages in SCRIPTS:
            if script.search(text):
                found += [rule for language in languages for rule in _RULES[language]]
    return found


def _rules(words: Words) -> list[Rule]:
    edge = r"(?<!\w)" if words.ignore[0] < "\u0900" else ""  # scripts without spaces have no word edges
    pairs = [
        ("ignore_instructions", words.ignore, words.orders),
        ("asks_for_secret", words.guarded, words.ask),
    ]
    if words.private:
        pairs.append(("asks_for_personal_data", words.private, words.ask + "|vive|mora|住"))
    rules = [make_rule(name, _literals(one), re.compile(edge + _either_order(one, two))) for name, one, two in pairs]
    fixed = ("no_limits", words.no_limits), ("from_now_on", words.from_now_on), ("secrecy", words.secrecy)
    for name, phrases in (*fixed, ("names_system_prompt", words.prompt)):
        if phrases:
            rules.append(make_rule(name, _literals(phrases), re.compile(f"{edge}(?:{phrases})")))
    return rules


def _either_order(one: str, two: str) -> str:
    return f"(?:(?:{one}){_WITHIN}(?:{two})|(?:{two}){_WITHIN}(?:{one}))"


def _literals(words: str) -> tuple[str, ...]:
    """The part of each alternative that is plain text, to look for before the pattern is tried."""
    return tuple(_META.split(word)[0] for word in words.split("|"))


_RULES = {language: _rules(words) for language, words in LANGUAGES.items()}
_WITH_SCRIPT = {language for _, languages in SCRIPTS for language in languages}
_LATIN = [rule for language, rules in _RULES.items() if language not in _WITH_SCRIPT for rule in rules]
