# ruff: noqa: RUF001  # letters of many scripts
"""Words that decide whether a full stop ends a sentence, for all languages at once.

Abbreviations are in lower case, without their last stop. Letters with stops between them, such as
``e.g.`` and ``U.S.``, and single letters need no entry.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEVER_FINAL = _words(
    """
    mr mrs ms dr prof hon rev messrs gov sen rep gen col lt sgt cmdr adm supt atty pres
    eg ie vs cf viz approx ca esp incl excl ltda eds
    bzw evtl ggf ggfs inkl zzgl vgl sog insb insbes bspw dipl fr frl geb gest mio mrd tsd
    ggü gemäß einschl entspr
    mme mlle mgr env éd chap
    sra srta dra dña uds lic arq
    sig sigg dott dssa avv geom egr gent
    exmo exma
    dhr mevr bijv bv nl o.a resp drs jhr m.n
    np tzn tzw ul al godz inż mgr śp płk gen
    г-н г-жа ул пл просп пр-т тов проф акад доц гр обл см ср напр тел табл млн млрд тыс ст
    डॉ रु श्री श्रीमती प्रो पं कु
    κ κα βλ π.χ δηλ αρ
    """
)
"""Abbreviations that something always follows: titles and the like."""

FINAL_BEFORE_STARTER = _words(
    """
    st ft mt dept univ assn capt им inc ltd co corp bros jr sr esq ph
    ave blvd rd hwy bldg al ibid est min max avg misc
    str bd jh jhd aufl hrsg
    cie sté apr av suiv
    uu cía avda depto admón
    spa srl
    ltda cia
    w tys pok wyd
    a.m p.m b.c a.d ph.d т.д т.п т.е
    г гг др пр руб коп кв стр в вв т д п н э
    """
)
"""Abbreviations that may end a sentence: they do if the next word is a starter."""

FINAL_BEFORE_CAPITAL = _words(
    """
    hr hrs etc usw usf ecc enz itd itp zł gem ex
    no nos nr nrs fig figs figure eq eqs sec secs sect art arts par para paras cl clause ch pt vol
    vols pp pg pgs ref refs tab app ed ann amend reg regs ct ver rel ext tel approx lit ziff abs
    rn rdnr rz kap anm bl abb ss
    núm nums n.º nº pág págs cap apdo
    num pag pagg fasc
    blz hfdst
    poz pkt ust zob
    пп гл № ред рис
    jan feb mar apr jun jul aug sep sept oct nov dec jän okt dez
    janv févr juil déc ene abr ago dic genn febbr giu lug ott
    """
)
"""Words that end a sentence before a capital letter, but not before a number or a small letter."""

STARTERS = _words(
    """
    The This These Those That It Its He She They We You I There Here However But And Or In On At
    For From With To By If When While After Before As His Her Their Our My No Not What Why How Who
    Where Is Are Was Were Do Does Did Can Please See Such Some Most Many Both Each According
    Although Because During Also Then Thus Once All A An Another Since Unlike Under Over Until
    Nobody Today Perhaps Maybe Therefore Moreover Furthermore Additionally Finally First Second
    Next Later Despite Among Between Within Without Through Though Instead Similarly Like One Two
    Three Several Few Other Others Any Every Only Even Just Now Yes Still Yet Which Will Would
    Could Should Have Has Had Use Your
    Der Die Das Ein Eine Einen Er Sie Es Wir Ich Ihr Im Am Auf Bei Mit Nach Von Vor Für Dies Diese
    Dieser Dieses Wenn Als Auch Aber Und Doch Dort Hier So Zudem Danach Dabei Damit Man Nur Wer Was
    Dann Das Deshalb Dem Den Beim Zum Zur Wie Weil Sein Seine
    Le La Les Un Une Il Elle Ils Elles On Nous Vous Je Ce Cette Ces Dans En Pour Par Sur Avec Mais
    Et Après Selon Son Sa Ses Cependant Des Au Aux Lors
    El Los Las Una Él Ella Por Para Con Se Su Sus Este Esta Esto Pero Y Si También Según Hay Es Al
    Cuando Después Aunque Sin Ya
    Lo I Gli Uno Per Si Questo Questa Ma È Non Nel Nella Secondo Dopo Lui Lei Sono Il Anche Alla
    O Os As Um Uma Ele Ela Em Na Nos Nas Com Seu Sua Mas Não É Depois Foi
    De Het Een Hij Zij Ze Er Op Voor Met Dit Dat Deze Maar Ook Wij Je U Bij Volgens Daarna Toch
    W Na To Ten Ta Te Ona Oni Jest Nie Po Z Za Od Dla Jak Gdy Ale Jednak Wtedy Są Potem
    В На Это Он Она Они Оно Мы Я Вы Не Но И А По С За От Для При Если Когда Как Так Эта Этот Эти
    Там Затем После Всё Все Его Её Их
    Ο Η Το Οι Τα Και Αυτό Αυτή Δεν
    """
)
"""Words that begin sentences and rarely a name, as written there."""

GERMAN_ORDINAL = _words(
    """
    am vom zum zur der die das den dem des im beim ab bis seit und oder dieser diesem jeden jedem
    ihr ihre ihrem ihren sein seine seinem seinen ein eine einen einem einer
    """
)
"""German words before an ordinal number: no sentence ends in ``am 3. Oktober``."""

GERMAN_MONTHS = _words(
    """
    Januar Jänner Februar März April Mai Juni Juli August September Oktober November Dezember
    Jahrhundert Weltkrieg Klasse Auflage Platz Etage Stock Obergeschoss
    """
)
"""German words after an ordinal number."""

BEGINNERS = STARTERS - {"I", "Sie", "Ihr", "Ihre", "Lei", "U"}
"""Words whose capital begins a sentence; the others have it inside one, too."""

_MAY_END = _words(
    """
    it he she they we you i there here no not what why how who where then thus once all first second
    next later one two three several few other others any only even just now yes still yet like
    today perhaps maybe therefore moreover furthermore additionally finally instead similarly most
    some such both each this that these those
    """
)
OPEN_WORDS = frozenset(map(str.lower, STARTERS)) - _MAY_END | GERMAN_ORDINAL
"""Words, in lower case, with which no line of a list ends."""

JOINING = _words("and or of to for with in on at by from und oder von mit et ou de du y di da")
"""Words with which no entry of a list begins."""
