"""Responses that say that they have no answer, by their wording in some twenty languages.

The patterns name a speaker who does not know, or documents that lack something. A statement about
anything else that is not so ("The warranty does not cover water damage") is an answer.
"""

from __future__ import annotations

import re

_SOURCE = (
    r"(?:context|documents|documentation|passages?|excerpts?|snippets?|knowledge base"
    r"|(?:the|this|these|those|any|your|my|provided|given|retrieved|available|supplied|above) "
    r"(?:\w+ )?(?:documents?|texts?|sources|articles?|materials?)"
    r"|(?:search|retrieved|provided|given|available|supplied|above) (?:results|information|data))"
)
_SAY = (
    r"(?:mention|state|say|specify|provide|contain|include|cover|address|give|indicate|describe"
    r"|discuss|explain|offer|answer|tell|list|have|reveal|disclose|show)\w*"
)
_FACTS = r"(?:information|details?|answers?|mention|context|documentation)"

_ENGLISH = (
    r"\bi (?:really |just |honestly )?(?:do not|don't|dont) know\b(?! (?:any|a|of|anyone|how to)\b)",
    r"\b(?:i am|i'm|we are|we're) (?:really )?(?:not sure|uncertain|unsure)\b",
    r"\b(?:i|we)(?: am|'m| are|'re| was| were)? ?(?:sorry, )?"
    r"(?:cannot|can't|can not|could not|couldn't|unable to|not able to|did not|didn't|do not|don't)"
    r" (?:\w+ ){0,2}?(?:find|answer|determine|tell|say|locate|provide|confirm|help|see|identify|give"
    r"|respond)\b",
    rf"\b(?:i|we) (?:do not|don't|did not|didn't|have no|lack)(?: currently)?(?: have| possess| find"
    rf"| see)? ?(?:\w+ ){{0,4}}?{_FACTS}\b",
    rf"\b{_SOURCE}\b[^.;!?]{{0,30}}?\b(?:(?:do|does|did)(?: not|n't)|never)\b[^.;!?]{{0,30}}?"
    rf"\b{_SAY}",
    rf"\b{_SOURCE}\b[^.;!?]{{0,30}}?\b(?:lacks? (?!of\b)|(?:contain|provide|ha|offer|give|include)\w* no"
    r"|insufficient|not (?:enough|sufficient))\b",
    rf"\b(?:there (?:is|are|was|were)|there's|there) ?(?:no|not (?:enough|any)|isn't (?:enough|any)"
    rf"|insufficient) (?:\w+ ){{0,3}}?{_FACTS}\b",
    r"\b(?:i|we) have no (?:\w+ )?(?:information|data|details|records?) (?:on|about|regarding|for)\b",
    rf"\bno (?:\w+ ){{0,2}}?{_FACTS} (?:\w+ ){{0,6}}?"
    r"(?:available|found|provided|given|exists?|mentioned|in)\b",
    rf"\b(?:not|n't) (?:\w+ ){{0,2}}?(?:mentioned|specified|stated|provided|found|available|given"
    rf"|addressed|covered|included|answered|contained|disclosed|described|clear|possible)\b"
    rf"[^.;!?]{{0,40}}?\b(?:in|by|from|within) (?:the |these |any )?(?:\w+ ){{0,2}}?{_SOURCE}\b",
    rf"\b(?:not enough|insufficient) {_FACTS}\b",
    r"\b(?:question|this|it) (?:cannot|can't|can not|could not) be (?:answered|determined)\b",
    r"^\W*(?:unanswerable|unknown|no answer|no idea|not available|n/a|not (?:mentioned|specified"
    r"|stated|provided|found))\W*$",
)
_OTHERS = (
    # German
    r"\b(?:ich|wir) (?:weiß|weiss|wissen)\b[^.;!?]{0,30}?\bnicht\b|\bkeine ahnung\b",
    r"\b(?:ich|wir)\b[^.;!?]{0,20}?\b(?:kann|konnte|können|konnten)\b[^.;!?]{0,80}?\b(?:nicht|keine?n?)"
    r"\b[^.;!?]{0,80}?\b(?:beantworten|finden|sagen|angeben|entnehmen|nennen|geben)\b"
    r"|\bkann (?:ich|die frage)\b[^.;!?]{0,60}?\b(?:nicht|keine?)\b[^.;!?]{0,40}?\b(?:beantwort\w+"
    r"|sagen|finden|entnehmen|entnommen)\b",
    r"\b(?:dokumente?n?|kontext|unterlagen|quellen?|texte?n?|auszügen?|informationen)\b[^.;!?]{0,40}?"
    r"\b(?:nicht|keine?r?n?|nichts)\b[^.;!?]{0,40}?\b(?:enth\w+|erwähn\w*|genannt|nennen|angegeben"
    r"|hervor|angaben?|informationen?|auskunft|hinweise?|antwort\w*|beantwort\w*|steht|zu finden)\b"
    r"|\b(?:geht|lässt sich)\b[^.;!?]{0,60}?\b(?:dokumenten?|kontext|unterlagen|quellen|text)\b"
    r"[^.;!?]{0,20}?\bnicht\b",
    r"\bkeine (?:\w+ ){0,2}?(?:angaben?|informationen?|antwort|hinweise?|auskunft)\b",
    # French
    r"\b(?:je|nous) (?:ne |n')(?:le |la )?(?:sa[iv]\w*|peu[xt]|pouvons|trouv\w+|dispos\w+|ai|avons|suis)\b"
    r"[^.;!?]{0,60}?\b(?:pas|aucune?)\b|\bje ne sais\b",
    r"\b(?:documents?|contexte|textes?|sources?|informations?|extraits?|passages?)\b[^.;!?]{0,40}?"
    r"\b(?:ne |n')(?:\w+ )?(?:mentionn|indiqu|conti|précis|fourni|donn|inclu|parl|répon|permet|dis"
    r"|spécifi|compor)\w*[^.;!?]{0,15}?\b(?:pas|aucune?|rien)\b",
    r"\b(?:aucune|pas d['e]) ?(?:information|réponse|mention|donnée|indication)s?\b",
    # Spanish, Portuguese, Italian
    r"\bno (?:lo )?(?:sé|sabemos)\b|\bnão (?:o )?(?:sei|sabemos)\b|\bnon (?:lo )?(?:so|sappiamo)\b",
    r"\b(?:no|não|non) (?:puedo|podemos|encuentro|encontré|dispongo|tengo|posso|podemos|consigo"
    r"|encontrei|tenho|disponho|riesco|trovo|ho trovato|possiamo|dispongo di)\b[^.;!?]{0,60}?"
    r"\b(?:respond\w+|inform\w+|encontrar|determinar|decir|dizer|dire|rispond\w+|trovare|datos|dados"
    r"|dati|respuesta|resposta|risposta)\b",
    r"\b(?:documentos?|contextos?|textos?|fuentes?|fontes?|información|informações|documenti"
    r"|contesto|testi|testo|fonti|informazioni|fragmentos?|trechos?)\b[^.;!?]{0,40}?\b(?:no|não|non)"
    r" (?:\w+ )?(?:mencion|menzion|contien|cont[eé]m|conteng|indica|especific|specific|proporcion"
    r"|inclu|dice|dizem|fornec|fornis|aparec|hay|há|respond|ofrec|ofer|riport|permit)\w*",
    r"\b(?:no (?:hay|se encontró|se encuentra|existe)|não (?:há|foi encontrada|existem?)"
    r"|non (?:ci sono|c'è|risultano))\b[^.;!?]{0,30}?\b(?:informaci|informaç|informazion|datos|dados"
    r"|dati|respuesta|resposta|risposta|mención|menção)\w*|\bnessuna (?:informazione|risposta)\b",
    # Dutch, Swedish, Danish, Norwegian
    r"\bik weet (?:het )?niet\b|\b(?:jag vet|jeg ved|jeg vet) (?:det )?(?:inte|ikke)\b",
    r"\bik kan\b[^.;!?]{0,60}?\b(?:niet|geen)\b[^.;!?]{0,60}?\b(?:vinden|beantwoorden|zeggen)\b",
    r"\b(?:documenten?|context|tekst|bronnen|dokumenten?|dokumentet|dokumenterne|källorna|sammanhanget)"
    r"\b[^.;!?]{0,40}?\b(?:niet|geen|inte|ikke|ingen|inga)\b[^.;!?]{0,30}?\b(?:vermeld\w*|genoemd"
    r"|informati\w+|antwoord|svar|nämn\w*|nævn\w*|nevn\w*|oplysning\w*)\b"
    r"|\bgeen (?:informatie|antwoord)\b",
    # Polish, Czech, Russian, Ukrainian
    r"\b(?:nie wiem|nevím|не знаю|не знаємо|не знаем|не могу знать)\b",
    r"\bnie (?:mogę|mam|znalazłem|znaleziono)\b[^.;!?]{0,60}?\b(?:znaleźć|odpowie\w+|informacji)\b",
    r"\bне (?:могу|можу|удалось|вдалося)\b[^.;!?]{0,60}?\b(?:найти|ответить|сказать|определить"
    r"|знайти|відповісти)\b",
    r"\b(?:dokument\w*|kontekst\w*|tekst\w*|źródł\w*|документ\w*|контекст\w*|текст\w*|источник\w*)\b"
    r"[^.;!?]{0,40}?\b(?:nie|не|нет|немає|отсутству\w+)\b[^.;!?]{0,30}?\b(?:содерж|упом|указ|говор"
    r"|сказан|информ|данн|ответ|даних|відпов|zawier|wspomin|podaj|podan|informacj)\w*",
    r"\b(?:нет|немає|brak) (?:\w+ )?(?:информации|данных|ответа|інформації|даних|informacji)\b",
    # Turkish, Vietnamese, Indonesian
    r"\b(?:bilmiyorum|bilgim yok|bilgi (?:yok|bulunamadı|bulunmuyor|bulunmamaktadır|yer almıyor))\b"
    r"|\b(?:belge\w*|bağlam\w*|metin\w*)\b[^.;!?]{0,60}?\b(?:\w+m[ıiuü]yor|yok|bulunma\w+)\b",
    r"\b(?:tôi )?không (?:biết|rõ)\b|\bkhông (?:có|tìm thấy|đủ) (?:\w+ )?thông tin\b"
    r"|\b(?:tài liệu|ngữ cảnh|văn bản)\b[^.;!?]{0,40}?\bkhông\b",
    r"\b(?:saya )?tidak tahu\b|\btidak (?:ada|menemukan|memiliki) (?:\w+ )?informasi\b"
    r"|\b(?:dokumen|konteks|teks)\b[^.;!?]{0,40}?\btidak\b",
    # Arabic, Persian, Hebrew, Hindi, Bengali
    r"لا (?:أعرف|أعلم|أدري|يمكنني|أستطيع|تتوفر|توجد معلومات|تحتوي|تذكر|يذكر|يحتوي)|نمی‌?دانم|لم أجد|לא יודע",
    r"(?:पता|मालूम) नहीं|नहीं (?:पता|जानता|जानती|मालूम)|जानकारी (?:\S+ ){0,3}?नहीं|जानि না|জানি না",
    r"(?:दस्तावेज़?\S*|संदर्भ)[^।;!?]{0,60}?नहीं",
    # Chinese, Japanese, Korean, Thai
    r"不知道|不清楚|不确定|不確定|(?:无法|無法|不能)(?:从|從|在|根据|根據)?.{0,20}?(?:回答|确定|確定|得知|判断|判斷|找到|提供|获取|得出|给出)",
    r"(?:文档|文件|资料|上下文|文中|文本|材料|信息|内容|原文|文檔|資料|資訊|來源|内文|文章|来源)[^。;!?！？]{0,20}?"
    r"(?:没有|未|并未|不|沒有|並未)[^。;!?！？]{0,10}?(?:提及|提到|说明|包含|提供|给出|涉及|找到|相关|說明|相關|记载|足够|显示)",
    r"(?:没有|沒有|未找到|未提供|缺乏|缺少)(?:\w{0,6}?)(?:信息|资料|答案|内容|資訊|資料|依据)",
    r"(?:わかり|分かり|判り|存じ|お答えでき|回答でき|見つかり|見つけられ|判断でき)(?:ませ|かね)|不明です|分からない|わからない",
    r"(?:文書|資料|ドキュメント|文脈|コンテキスト|文中|出典|提供された)[^。！？]{0,20}?"
    r"(?:記載|含ま|言及|情報|見当た|書かれ|述べ|触れ)[^。！？]{0,12}?(?:ません|ない)"
    r"|情報(?:が|は)(?:\w{0,6})(?:ありません|ない|不足)",
    r"모르겠|모릅니다|알 수 없|답변(?:을|할)? ?(?:드릴 )?수 없|찾을 수 없|확인할 수 없"
    r"|(?:문서|자료|컨텍스트|문맥|내용)[^.!?]{0,30}?(?:언급|정보|포함|나와|기재|명시)[^.!?]{0,12}?"
    r"(?:없습니다|않습니다|않았습니다)|정보가 (?:없|부족)",
    r"ไม่(?:ทราบ|รู้|พบข้อมูล|มีข้อมูล|สามารถตอบ|ได้ระบุ)|ខ្ញុំមិនដឹង|ຂ້ອຍບໍ່ຮູ້",
)
_TOPICS = (
    *("context", "document", "passage", "excerpt", "snippet", "knowledge", "text", "source"),
    *("article", "material", "result", "inform", "detail", "answer", "mention", "know", " sure"),
    *("certain", "unable", " data", "find", "n/a", "locate", "help", "available", "unknown", "tell", "respond"),
    *("weiß", "weiss", "wissen", "ahnung", "kontext", "dokument", "unterlagen", "quelle", "angaben"),
    *("antwort", "sagen", "sai", "réponse", "réponds", "répondre", "trouve", "extrait", "fuente"),
    *("sé", "respond", "responder", "sei", "fonte", "so.", "so,", "non so", "non lo so", "rispo"),
    *("contest", "testo", "weet", "bron", "vet", "ved", "wiem", "nevím", "tekst", "kontekst", "źród"),
    *("знаю", "знаем", "документ", "контекст", "источник", "информац", "информ", "ответ", "даних"),
    *("bilm", "bilg", "belge", "bağlam", "metin", "biết", "thông tin", "tài liệu", "tahu", "konteks"),
    *("dokumen", "أعرف", "أعلم", "أدري", "يمكن", "أستطيع", "معلومات", "أجد", "دانم", "יודע", "पता"),
    *("मालूम", "जान", "दस्तावेज", "संदर्भ", "জানি", "知道", "清楚", "确定", "確定", "回答", "答案", "提"),
    *("信息", "資", "资", "文", "内容", "材料", "料", "わか", "分か", "判", "存じ", "お答え", "見", "不明"),
    *("情報", "모르", "모릅", "알", "답", "찾", "확인", "문", "정보", "내용", "ทราบ", "รู้", "ข้อมูล", "ตอบ"),
    *("ระบุ", "ដឹង", "ຮູ້"),
)
_ENGLISH_DENIALS = (
    *("not", "n't", "dont", "no ", "unable", "unsure", "uncertain", "unanswer", "unknown", "lack"),
    *("insufficient", "n/a"),
)
_WORDS = frozenset(
    "nicht nichts kein keine keinen keiner ahnung ne n pas aucune aucun rien no não non nessuna niet "
    "geen inte ikke ingen inga nie nevím не нет немає brak yok bilmiyorum bulunamadı không tidak".split()
)
"""Words that deny in languages with Latin and Cyrillic letters."""
_SYLLABLES = (
    *("yor", "لا", "لم", "نمی", "לא", "नहीं", "না", "ไม่", "មិន", "ບໍ່", "不", "无", "無", "没", "沒"),
    *("未", "缺", "ない", "ませ", "かね", "모르", "모릅", "없", "않"),
)
_LONGEST = 400
"""Characters in which a sentence has to say it."""
_IN_ENGLISH, _IN_OTHERS = (
    re.compile("|".join(patterns), re.IGNORECASE) for patterns in (_ENGLISH, _OTHERS)
)
_CONTRAST = re.compile(
    r"\b(?:but|however|although|though|yet|still|aber|jedoch|allerdings|doch|sondern|mais|cependant"
    r"|toutefois|pero|sin embargo|aunque|ma|però|tuttavia|mas|porém|contudo|maar|echter|men|но|однако"
    r"|але|ale|jednak|ama|fakat|ancak|nhưng|tetapi|namun)\b|但|不过|不過|然而|しかし|ただし|ですが|하지만|그러나|지만"
    r"|لكن|लेकिन|परंतु|แต่",
    re.IGNORECASE,
)
"""Words after which an answer may follow all the same."""
_POINTS = re.compile(
    r"^\W*(?:please|sorry|i(?:'m| am) sorry|i apologi[sz]e|my apologies|unfortunately|thank|feel free"
    r"|let me know|you (?:can|may|might|could|should)|(?:i|we) (?:recommend|suggest|would|'d|can)"
    r"|if you|contact|consult|could you|would you|can you|do you|is there|for more|bitte|leider"
    r"|entschuldig|es tut mir leid|wenden|wenn sie|veuillez|désolée?|malheureusement|n'hésitez"
    r"|por favor|lo siento|desculpe|lamento|sinto muito|mi dispiace|per favore|si prega|alstublieft"
    r"|helaas|het spijt|пожалуйста|извините|к сожалению|proszę|przepraszam|lütfen|maaf|silakan"
    r"|xin lỗi|vui lòng|请|請|抱歉|对不起|很遗憾|申し訳|すみません|恐れ入り|죄송|الرجاء|يرجى|عذر|कृपया|क्षमा|ขออภัย|กรุณา)",
    re.IGNORECASE,
)
"""Beginnings of sentences that apologize, ask back, or name who may know."""


def abstains(text: str) -> bool:
    """Return True if a response sentence says that it has no answer, and gives none."""
    text = text[:_LONGEST].replace("\u2019", "'")
    lowered = text.lower()
    # Most sentences deny nothing about texts or speakers: a look for syllables is faster.
    if not any(hint in lowered for hint in _TOPICS):
        return False
    found = None
    if any(hint in lowered for hint in _ENGLISH_DENIALS):
        found = _IN_ENGLISH.search(text)
    if not found and (
        not _WORDS.isdisjoint(re.findall(r"\w+", lowered))
        or any(hint in lowered for hint in _SYLLABLES)
    ):
        found = _IN_OTHERS.search(text)
    if not found:
        return False
    contrast = _CONTRAST.search(text, found.end())
    return not contrast or not text[contrast.end() :].strip(" ,.") or is_polite(
        text[contrast.end() :]
    )


def is_polite(text: str) -> bool:
    """Return True if a sentence apologizes, asks back, or names who may know."""
    return bool(_POINTS.search(text))
